/* SPDX-License-Identifier: MIT */
/* test_exhausted_handles.c: objects of the software device when the host has no memory and no thread left: each handle is given, or
 * the call fails as a whole, and then succeeds. */
#include "../../../core/base/hip_layout.h"
#include "failures.h"

#include <unistd.h>

/* A kind of object: it has a handle, and a handle of a new chunk needs memory. */
struct kind {
  hipError_t (*create)(void **object);
  hipError_t (*destroy)(void *object);
};

static hipGraph_t shared_graph;
static int shared_fd;

static hipError_t create_an_event(void **object)
{
  return hipEventCreate((hipEvent_t *)object);
}

static hipError_t destroy_an_event(void *object)
{
  return hipEventDestroy(object);
}

static hipError_t create_a_stream(void **object)
{
  return hipStreamCreate((hipStream_t *)object);
}

static hipError_t destroy_a_stream(void *object)
{
  return hipStreamDestroy(object);
}

static hipError_t create_a_pool(void **object)
{
  hipMemPoolProps properties = {.allocType = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 0}};
  return hipMemPoolCreate((hipMemPool_t *)object, &properties);
}

static hipError_t destroy_a_pool(void *object)
{
  return hipMemPoolDestroy(object);
}

static hipError_t create_a_graph(void **object)
{
  return hipGraphCreate((hipGraph_t *)object, 0);
}

static hipError_t destroy_a_graph(void *object)
{
  return hipGraphDestroy(object);
}

static hipError_t create_a_node(void **object)
{
  return hipGraphAddEmptyNode((hipGraphNode_t *)object, shared_graph, NULL, 0);
}

static hipError_t destroy_no_node(void *object)
{
  (void)object; /* its graph destroys it */
  return hipSuccess;
}

static hipError_t create_an_instance(void **object)
{
  return hipGraphInstantiate((hipGraphExec_t *)object, shared_graph, NULL, NULL, 0);
}

static hipError_t destroy_an_instance(void *object)
{
  return hipGraphExecDestroy(object);
}

static hipError_t create_physical_memory(void **object)
{
  void *shareable = software_version() < HIP_LAYOUT_7_1 ? (void *)&shared_fd : (void *)(intptr_t)shared_fd;
  return hipMemImportFromShareableHandle((hipMemGenericAllocationHandle_t *)object, shareable,
                                         hipMemHandleTypePosixFileDescriptor);
}

static hipError_t destroy_physical_memory(void *object)
{
  return hipMemRelease(object);
}

static void share_physical_memory(void)
{
  const hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned,
                                           .requestedHandleType = hipMemHandleTypePosixFileDescriptor,
                                           .location = {hipMemLocationTypeDevice, 0}};
  hipMemGenericAllocationHandle_t handle;
  assert_ok(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  assert_ok(hipMemExportToShareableHandle(&shared_fd, handle, hipMemHandleTypePosixFileDescriptor, 0));
  assert_ok(hipMemRelease(handle));
}

static void each_handle_is_given_or_not(void **state)
{
  enum { N = 200 }; /* more than two chunks have */
  static const struct kind kinds[] = {{create_an_event, destroy_an_event},
                                      {create_a_stream, destroy_a_stream},
                                      {create_a_pool, destroy_a_pool},
                                      {create_a_graph, destroy_a_graph},
                                      {create_an_instance, destroy_an_instance},
                                      {create_a_node, destroy_no_node},
                                      {create_physical_memory, destroy_physical_memory}};
  (void)state;
  assert_ok(hipGraphCreate(&shared_graph, 0));
  share_physical_memory();
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    void *objects[N];
    int steps = 0;
    for (int i = 0; i < N; i++)
      steps += FAIL_ALL_STEPS(kinds[kind].create(&objects[i]), kinds[kind].destroy(objects[i]));
    assert_true(steps > 0);
    for (int i = 0; i < N; i++) assert_ok(kinds[kind].destroy(objects[i]));
  }
  close(shared_fd);
  assert_ok(hipGraphDestroy(shared_graph));
}

/* The pools that a device makes for itself: there is no handle left when one is asked for first. */
static size_t take_all_pools(hipMemPool_t *pools, size_t most)
{
  size_t n = 0;
  while (n < most && (until_failure = 1, create_a_pool((void **)&pools[n]) == hipSuccess)) n++;
  until_failure = 0;
  assert_true(n < most);
  return n;
}

static void a_devices_own_pools_are_there_or_not(void **state)
{
  enum { MOST = 5000 };
  static hipMemPool_t pools[MOST];
  (void)state;
  uint64_t used;
  void *memory;
  hipMemPool_t pool;
  size_t n = take_all_pools(pools, MOST);
  assert_in_range(FAIL_EACH_STEP(hipDeviceGetDefaultMemPool(&pool, 0)), 1, 1);
  n += take_all_pools(pools + n, MOST - n);
  assert_in_range(FAIL_EACH_STEP(hipDeviceGetGraphMemAttribute(0, (hipGraphMemAttributeType)0, &used)), 1, 1);
  assert_int_equal(used, 0);
  n += take_all_pools(pools + n, MOST - n);
  assert_ok(hipSetDevice(1));
  hipStream_t stream = create_stream();
  assert_in_range(FAIL_ALL_STEPS(hipMallocAsync(&memory, 10000, stream), hipFree(memory)), 1, 10);
  assert_ok(hipFree(memory));
  assert_ok(hipStreamDestroy(stream));
  for (size_t i = 0; i < n; i++) assert_ok(hipMemPoolDestroy(pools[i]));
}

struct own_stream {
  char *memory;
  int device, n_failed;
  hipError_t error;
};

static void *work_on_own_stream(void *argument)
{
  struct own_stream *own = argument;
  (void)!hipSetDevice(own->device);
  while (until_failure = own->n_failed + 1, own->error = hipMemsetAsync(own->memory, 4, 1000, hipStreamPerThread),
         own->error == hipErrorOutOfMemory)
    own->n_failed++;
  until_failure = 0;
  if (own->error == hipSuccess) own->error = hipStreamSynchronize(hipStreamPerThread);
  return NULL;
}

/* Also those of a thread and of a device. The streams before take the queues that earlier tests left. */
static void default_streams_are_there_or_not(void **state)
{
  (void)state;
  enum { N = 500 };
  static hipStream_t streams[N];
  size_t n = 0;
  pthread_t thread;
  struct software_config config = software.config;
  bool has_threads = config.scheduler == SOFTWARE_THREADS;
  int device = has_threads ? 1 : 2; /* one that no test used before */
  config.devices = 3;
  restart(&config);
  while (n < N && (until_failure = 1, create_a_stream((void **)&streams[n]) == hipSuccess)) n++;
  until_failure = 0;
  assert_true(n < N);
  assert_ok(hipSetDevice(device));
  struct own_stream own = {.memory = allocate(1000), .device = device};
  assert_in_range(FAIL_EACH_STEP(hipMemsetAsync(own.memory, 5, 1000, NULL)), 2, 5);
  assert_ok(hipStreamSynchronize(NULL));
  assert_true(is_filled(own.memory, 5, 1000));
  assert_int_equal(pthread_create(&thread, NULL, work_on_own_stream, &own), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_hip(own.error, hipSuccess);
  assert_in_range(own.n_failed, has_threads ? 3 : 2, 6);
  assert_true(is_filled(own.memory, 4, 1000));
  assert_ok(hipFree(own.memory));
  for (size_t i = 0; i < n; i++) assert_ok(hipStreamDestroy(streams[i]));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"each handle is given or not", each_handle_is_given_or_not, start_threads, finish, NULL},
      {"a devices own pools are there or not", a_devices_own_pools_are_there_or_not, start_threads, finish, NULL},
      BOTH(default_streams_are_there_or_not),
  };
  return cmocka_run_group_tests_name("software: handles, no host memory", tests, NULL, NULL);
}
