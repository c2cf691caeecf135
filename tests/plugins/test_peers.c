/* SPDX-License-Identifier: MIT */
/* Tests of what other devices may do with a device's memory: copies and fills with another device current, for memory
 * of hipMalloc, mapped memory and that of pools; the option "peers"; devices that cannot reach each other; and what is
 * refused. */
#include "../support/fixture.h"

#include <hipmm/buffer.h>
#include <hipmm/torch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20 };

#define PEERS(list) "{'type': 'device', 'peers': [" list "]}"
#define BOTH_PEERS  PEERS("{'device': 0}, {'device': 1}")

/* Has `device`, on its default stream, fill a block of device 0's stack. Returns HIP's code. */
static int fill_from(int device, void *ptr, unsigned char value)
{
  int code = fixture_hip()->SetDevice(device);
  if (!code) code = fixture_hip()->MemsetAsync(ptr, value, BYTES, NULL);
  if (!code) code = fixture_hip()->DeviceSynchronize();
  fixture_hip()->SetDevice(0);
  return code;
}

struct stack {
  const char *name, *below; /* what depends on the device source */
};

static const struct stack stacks[] = {{"device", ""},
                                      {"segments", "{'type': 'pool', 'growth': 'segments'}, "},
                                      {"mapped", "{'type': 'pool', 'growth': 'mapped'}, "}};

static void start(const struct stack *stack, const char *device)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [%s%s]", stack->below, device);
  fixture_start(graph);
}

/* The fixture has two devices; the environment has the last word. */
static void start_with_devices(const char *software, const char *graph)
{
  setenv("HIPMM_SOFTWARE", software, 1);
  enum hipmm_status status = fixture_try("", graph);
  unsetenv("HIPMM_SOFTWARE");
  assert_ok(status);
}

static uint64_t calls(const char *name)
{
  return software()->calls(name);
}

/* ---- What a program does with two devices ---- */

/* Whole stacks. As with hipMalloc's memory, kernels and fills of another device need hipDeviceEnablePeerAccess where
 * the memory is hipMalloc's, which the program calls. */
struct program {
  const char *graph;
  bool is_enabled; /* other devices write to it without hipDeviceEnablePeerAccess */
};

#define MAPPED_POOL "{'type': 'pool', 'growth': 'mapped'}, 'device'"
static const struct program programs[] = {
    {"'device'", false},
    {"{'type': 'pool', 'growth': 'segments'}, 'device'", false},
    {MAPPED_POOL, true},
    {"'pool', 'device'", false},
    {"'arena', " MAPPED_POOL, true},
    {"'binning', " MAPPED_POOL, true},
    {"'fixed_size', " MAPPED_POOL, true},
    {"'monotonic', " MAPPED_POOL, true},
    {"'guard', " MAPPED_POOL, true},
    {"'arena', 'device'", false},
    {"'async'", true},
    {"{'type': 'async', 'handle_type': 'posix_fd'}", true},
    {"'arena', 'async'", true},
    {"'pool', 'async'", true},
    {"'async_managed'", true},
    {"'async_pinned'", true},
    {"'pool', 'managed'", true},
    {"'pool', 'pinned'", true},
};

enum { N_PROGRAMS = sizeof programs / sizeof *programs };

enum { COPY_BYTES = 100000, COPY_BLOCKS = 30 };

static void copy(void *to, const void *from, hipmm_stream_t stream)
{
  int code = stream ? fixture_hip()->MemcpyAsync(to, from, COPY_BYTES, HIPMM_HIP_MEMCPY_DEFAULT, stream)
                    : fixture_hip()->Memcpy(to, from, COPY_BYTES, HIPMM_HIP_MEMCPY_DEFAULT);
  assert_int_equal(code, 0);
  if (stream) assert_int_equal(fixture_hip()->StreamSynchronize(stream), 0);
}

static void fill_host(unsigned char *host, int seed)
{
  for (int i = 0; i < COPY_BYTES; i++) host[i] = (unsigned char)(i * 7 + seed);
}

static void assert_seed(const unsigned char *host, int seed)
{
  for (int i = 0; i < COPY_BYTES; i++)
    if (host[i] != (unsigned char)(i * 7 + seed)) fail_msg("byte %d is of other data than %d's", i, seed);
}

/* Through the block and `other`, memory of device 1, with the current device as it is. */
static void copy_round(void *block, void *other, hipmm_stream_t stream, int seed)
{
  unsigned char *host = malloc(COPY_BYTES);
  fill_host(host, seed);
  copy(block, host, stream);
  memset(host, 0, COPY_BYTES);
  copy(other, block, stream);
  copy(host, other, stream);
  assert_seed(host, seed);
  fill_host(host, seed + 1);
  copy(other, host, stream);
  copy(block, other, stream);
  memset(host, 0, COPY_BYTES);
  copy(host, block, stream);
  assert_seed(host, seed + 1);
  free(host);
}

static void copy_with_each_device(void *const *blocks, void *other)
{
  for (int current = 0; current < 2; current++) {
    hipmm_stream_t stream;
    assert_int_equal(fixture_hip()->SetDevice(current), 0);
    assert_int_equal(fixture_hip()->StreamCreateWithFlags(&stream, 0), 0);
    for (int i = 0; i < COPY_BLOCKS; i++) copy_round(blocks[i], other, i % 2 ? stream : NULL, current * 100 + i);
    assert_int_equal(fixture_hip()->StreamDestroy(stream), 0);
  }
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
}

static void fill_with_the_other(void *const *blocks, bool is_enabled)
{
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  if (!is_enabled) assert_int_equal(fixture_hip()->DeviceEnablePeerAccess(0, 0), 0);
  for (int i = 0; i < COPY_BLOCKS; i++)
    assert_int_equal(fixture_hip()->MemsetAsync(blocks[i], i + 1, COPY_BYTES, NULL), 0);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  for (int i = 0; i < COPY_BLOCKS; i++) assert_true(fixture_holds(blocks[i], (unsigned char)(i + 1), COPY_BYTES));
}

static void serves_a_program_with_two_devices(void **state)
{
  const struct program *program = *state;
  char graph[200];
  void *blocks[COPY_BLOCKS], *other;
  snprintf(graph, sizeof graph, "'stack': [%s]", program->graph);
  fixture_start(graph);
  for (int i = 0; i < COPY_BLOCKS; i++) blocks[i] = fixture_allocate(COPY_BYTES, NULL);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  assert_int_equal(fixture_hip()->Malloc(&other, COPY_BYTES), 0);
  copy_with_each_device(blocks, other);
  fill_with_the_other(blocks, program->is_enabled);
  assert_int_equal(fixture_hip()->Free(other), 0);
  for (int i = 0; i < COPY_BLOCKS; i++) fixture_free(blocks[i], COPY_BYTES, NULL);
}

/* Between stacks of two devices, with the containers' own copies too. */
static void serves_each_device_to_the_other(void **state)
{
  void *ptr[2];
  struct hipmm_resource *top[2];
  start(*state, "'device'");
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_resource_get_for_device(i, &top[i]));
    hipmm_resource_release(top[i]);
    assert_ok(hipmm_allocate(top[i], COPY_BYTES, NULL, &ptr[i]));
  }
  for (int current = 0; current < 2; current++) {
    assert_int_equal(fixture_hip()->SetDevice(current), 0);
    copy_round(ptr[0], ptr[1], NULL, current);
    copy_round(ptr[1], ptr[0], NULL, current + 50);
  }
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  for (int i = 0; i < 2; i++) assert_ok(hipmm_deallocate(top[i], ptr[i], COPY_BYTES, NULL));
}

/* ---- The order on the default streams ---- */

/* A stack of device 1, and whether a copy on device 0's default stream waits for the default stream of device 1. */
struct order {
  const char *graph;
  bool waits;
};

static const struct order orders[] = {
    {"'device'", true},
    {"{'type': 'pool', 'growth': 'segments'}, 'device'", true},
    {"'pool', 'device'", true},
    {"'arena', 'device'", true},
    {"'arena', 'pool', 'device'", true},
    {"'binning', 'pool', 'device'", true},
    {"'guard', 'pool', 'device'", true},
    {MAPPED_POOL, false},
    {"'arena', " MAPPED_POOL, false},
    {"'async'", false},
    {"'pool', 'async'", false},
};

enum { N_ORDERS = sizeof orders / sizeof *orders, BUSY = 40, OLD = 1, NEW = 2 };

/* Device 1's default stream writes to its memory after much other work, and device 0's copies that memory. Returns the
 * first byte of the copy. */
static int copy_what_is_being_written(void *source, void *work, void *target)
{
  unsigned char *host = malloc(COPY_BYTES);
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(source, OLD, COPY_BYTES, NULL), 0);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  for (int i = 0; i < BUSY; i++) assert_int_equal(fixture_hip()->MemsetAsync(work, i, COPY_BYTES, NULL), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(source, NEW, COPY_BYTES, NULL), 0);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  assert_int_equal(fixture_hip()->Memcpy(target, source, COPY_BYTES, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  assert_int_equal(fixture_hip()->Memcpy(host, target, COPY_BYTES, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  int found = host[0];
  for (int i = 0; i < COPY_BYTES; i++) assert_int_equal(host[i], found);
  free(host);
  return found;
}

static void keeps_or_lacks_the_order_of_hipmallocs_memory(void **state)
{
  const struct order *order = *state;
  char graph[200];
  void *source, *work, *target;
  struct hipmm_resource *top;
  needs_software();
  snprintf(graph, sizeof graph, "'stack': [%s]", order->graph);
  fixture_start_with("'scheduler': 'stepped'", graph);
  assert_int_equal(fixture_hip()->Malloc(&target, COPY_BYTES), 0);
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  assert_int_equal(fixture_hip()->Malloc(&work, COPY_BYTES), 0);
  assert_ok(hipmm_resource_get_for_device(1, &top));
  assert_ok(hipmm_allocate(top, COPY_BYTES, NULL, &source));
  assert_int_equal(copy_what_is_being_written(source, work, target), order->waits ? NEW : OLD);
  assert_ok(hipmm_deallocate(top, source, COPY_BYTES, NULL));
  hipmm_resource_release(top);
  assert_int_equal(fixture_hip()->Free(target), 0);
  assert_int_equal(fixture_hip()->Free(work), 0);
}

/* ---- What a pool takes by itself ---- */

#define SEVERAL "growth segments: this process has several devices, and a copy of mapped memory does not wait"

static void a_pool_takes_segments_where_the_order_counts(void **state)
{
  (void)state;
  needs_software();
  logged();
  fixture_start("'stack': ['pool', 'device']");
  const char *log = logged();
  assert_contains(log, SEVERAL);
  assert_contains(log, "make one device visible (CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES)");
  assert_contains(log, "\"growth\": \"mapped\"");
  fixture_free(fixture_allocate(BYTES, NULL), BYTES, NULL);
  assert_int_equal(calls("hipMemMap"), 0);
}

static void a_pool_maps_for_one_device(void **state)
{
  (void)state;
  needs_software();
  logged();
  start_with_devices("devices=1", "'stack': ['pool', 'device']");
  assert_contains(logged(), "growth mapped");
}

/* The stack is told by what builds it: device 0's is built by the fixture, device 1's and 2's by the frameworks. */
static void a_pool_maps_for_pytorch_and_not_for_cupy(void **state)
{
  (void)state;
  void *ptr[2], *copied;
  needs_software();
  start_with_devices("devices=4", "'stack': ['pool', 'device']");
  assert_contains(logged(), SEVERAL);
  ptr[0] = hipmm_torch_malloc(BYTES, 1, NULL);
  assert_non_null(ptr[0]);
  assert_contains(logged(), "growth mapped");
  ptr[1] = hipmm_cupy_malloc(NULL, BYTES, 2);
  assert_non_null(ptr[1]);
  assert_contains(logged(), SEVERAL);
  struct hipmm_resource *last;
  assert_ok(hipmm_resource_get_for_device(3, &last));
  hipmm_resource_release(last);
  assert_contains(logged(), SEVERAL);
  assert_int_equal(fixture_hip()->Malloc(&copied, COPY_BYTES), 0);
  for (int i = 0; i < 2; i++) copy_round(ptr[i], copied, NULL, i);
  assert_int_equal(fixture_hip()->Free(copied), 0);
  hipmm_torch_free(ptr[0], BYTES, 1, NULL);
  hipmm_cupy_free(NULL, ptr[1], 2);
}

/* Whichever hook of PyTorch is called first. */
static void a_pool_maps_for_each_hook_of_pytorch(void **state)
{
  (void)state;
  needs_software();
  for (int hook = 0; hook < 2; hook++) {
    struct hipmm_torch_pool pool = {1, 2};
    start_with_devices("devices=2", "'stack': ['pool', 'device']");
    logged();
    if (hook) {
      hipmm_torch_begin_allocate_to_pool(1, pool, NULL);
      hipmm_torch_end_allocate_to_pool(1, pool);
      hipmm_torch_release_pool(1, pool);
    } else {
      hipmm_torch_memory_fraction(0.5, 1);
    }
    assert_contains(logged(), "growth mapped");
    assert_ok(hipmm_finalize());
  }
}

/* ---- What that costs ---- */

static void use_the_stack(void)
{
  void *ptr[20];
  for (int i = 0; i < 20; i++) ptr[i] = fixture_allocate(BYTES, NULL);
  for (int i = 0; i < 20; i++) fixture_free(ptr[i], BYTES, NULL);
}

/* Starts the runtime first, so that what is counted is the stack's own. */
static void count_calls_of(const char *software_options)
{
  start_with_devices(software_options, "'stack': ['device']");
  assert_ok(hipmm_finalize());
  software()->reset_calls();
  start_with_devices(software_options, "'stack': [" MAPPED_POOL "]");
  use_the_stack();
}

static void asks_for_nothing_with_one_device(void **state)
{
  (void)state;
  needs_software();
  count_calls_of("devices=1");
  assert_int_equal(calls("hipDeviceCanAccessPeer"), 0);
  assert_true(calls("hipMemMap") > 3);
  assert_int_equal(calls("hipMemSetAccess"), calls("hipMemMap"));
}

static void gives_access_once_a_device_and_mapping(void **state)
{
  (void)state;
  needs_software();
  count_calls_of("devices=5,peer_group=3");
  assert_int_equal(calls("hipDeviceCanAccessPeer"), 4);
  assert_true(calls("hipMemMap") > 3);
  assert_int_equal(calls("hipMemSetAccess"), 3 * calls("hipMemMap"));
  assert_int_equal(calls("hipDeviceEnablePeerAccess"), 0);
}

/* On ROCm 7.14, access for another device takes away that of the own one. */
static void gives_the_own_device_access_last(void **state)
{
  (void)state;
  needs_software();
  start_with_devices("devices=3,rocm_mapping=true", "'stack': [" MAPPED_POOL "]");
  void *ptr = fixture_allocate(BYTES, NULL);
  for (int device = 0; device < 3; device++) {
    assert_int_equal(fill_from(device, ptr, (unsigned char)(device + 1)), 0);
    assert_true(fixture_holds(ptr, (unsigned char)(device + 1), BYTES));
  }
  fixture_free(ptr, BYTES, NULL);
}

/* ---- Devices that cannot reach each other ---- */

static void copies_reach_devices_that_cannot_reach_it(void **state)
{
  (void)state;
  needs_software();
  fixture_start_with("'peer_group': 1", "'stack': ['pool', 'device']");
  assert_contains(logged(), "growth segments: some device of this process cannot reach the memory of this one");
  void *blocks[COPY_BLOCKS], *other;
  for (int i = 0; i < COPY_BLOCKS; i++) blocks[i] = fixture_allocate(COPY_BYTES, NULL);
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  assert_int_equal(fixture_hip()->Malloc(&other, COPY_BYTES), 0);
  copy_with_each_device(blocks, other);
  assert_int_equal(fixture_hip()->Free(other), 0);
  for (int i = 0; i < COPY_BLOCKS; i++) fixture_free(blocks[i], COPY_BYTES, NULL);
  assert_int_equal(calls("hipMemMap"), 0);
}

static void copy_buffer_to(int device)
{
  struct hipmm_resource *target;
  struct hipmm_buffer *buffer, *copied;
  unsigned char host[1000], back[1000] = {0};
  memset(host, 9, sizeof host);
  assert_ok(hipmm_resource_get_for_device(device, &target));
  assert_ok(hipmm_buffer_create_from(NULL, host, sizeof host, NULL, &buffer));
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0); /* the caller orders work of two devices */
  assert_ok(hipmm_buffer_copy(buffer, target, NULL, &copied));
  assert_ok(hipmm_buffer_read(copied, 0, sizeof back, NULL, back));
  assert_memory_equal(back, host, sizeof host);
  assert_ok(hipmm_buffer_destroy(copied));
  assert_ok(hipmm_buffer_destroy(buffer));
  hipmm_resource_release(target);
}

/* Then copies that name both devices go, and the containers' do. */
static void maps_for_those_in_reach_when_told_to(void **state)
{
  (void)state;
  needs_software();
  start_with_devices("devices=3,peer_group=2", "'stack': [" MAPPED_POOL "]");
  unsigned char host[100], back[100];
  void *other, *ptr = fixture_allocate(sizeof host, NULL);
  assert_true(calls("hipMemMap") > 0);
  memset(host, 5, sizeof host);
  assert_int_equal(fixture_hip()->SetDevice(1), 0);
  assert_int_equal(fixture_hip()->Memcpy(ptr, host, sizeof host, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  assert_int_equal(fixture_hip()->SetDevice(2), 0);
  assert_int_equal(fixture_hip()->Memcpy(back, ptr, sizeof back, HIPMM_HIP_MEMCPY_DEFAULT),
                   HIPMM_HIP_ERROR_INVALID_VALUE);
  fixture_hip()->GetLastError();
  assert_int_equal(fixture_hip()->Malloc(&other, sizeof host), 0);
  assert_int_equal(fixture_hip()->MemcpyPeerAsync(other, 2, ptr, 0, sizeof host, NULL), 0);
  assert_int_equal(fixture_hip()->Memcpy(back, other, sizeof back, HIPMM_HIP_MEMCPY_DEFAULT), 0);
  assert_memory_equal(back, host, sizeof host);
  assert_int_equal(fixture_hip()->Free(other), 0);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  copy_buffer_to(1);
  copy_buffer_to(2);
  fixture_free(ptr, sizeof host, NULL);
}

/* ---- Access that is refused ---- */

static void want_of_memory_for_access_fails_the_allocation(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'stack': [" MAPPED_POOL "]");
  for (uint64_t nth = 1; nth <= 10; nth++) fixture_fail_call("hipMemSetAccess", nth, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  assert_status(hipmm_allocate(NULL, BYTES, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("the access was for device 1; a pool with \"growth\": \"segments\" needs no such access");
  assert_null(ptr);
  software()->fail_none();
  ptr = fixture_allocate(BYTES, NULL);
  assert_int_equal(fill_from(1, ptr, 3), 0);
  fixture_free(ptr, BYTES, NULL);
}

static void goes_without_access_that_cannot_be_had(void **state)
{
  (void)state;
  fixture_start("'stack': [" MAPPED_POOL "]");
  logged();
  fixture_fail_call("hipMemSetAccess", 1, HIPMM_HIP_ERROR_NOT_SUPPORTED); /* the own device is last */
  use_the_stack();
  const char *said = strstr(logged(), "device 1 gets no access to this memory of device 0 (hipMemSetAccess: "
                                      "hipErrorNotSupported)");
  assert_non_null(said);
  assert_null(strstr(said + 1, "device 1 gets no access"));
  assert_int_equal(calls("hipMemSetAccess"), calls("hipMemMap") + 1);
  assert_int_equal(fixture_hip()->GetLastError(), 0);
}

/* ---- The option ---- */

static void is_open_to_peers(void **state)
{
  start(*state, PEERS("{'device': 1}"));
  void *ptr[20];
  for (int i = 0; i < 20; i++) ptr[i] = fixture_allocate(BYTES, NULL); /* later memory too */
  for (int i = 0; i < 20; i++) assert_int_equal(fill_from(1, ptr[i], (unsigned char)(i + 1)), 0);
  for (int i = 0; i < 20; i++) assert_true(fixture_holds(ptr[i], (unsigned char)(i + 1), BYTES));
  for (int i = 0; i < 20; i++) fixture_free(ptr[i], BYTES, NULL);
}

static void lets_a_graph_name_all_devices(void **state)
{
  void *ptr[2] = {0};
  struct hipmm_resource *top[2];
  start(*state, BOTH_PEERS);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_resource_get_for_device(i, &top[i]));
    hipmm_resource_release(top[i]);
    assert_ok(hipmm_allocate(top[i], BYTES, NULL, &ptr[i]));
  }
  for (int i = 0; i < 2; i++) assert_int_equal(fill_from(1 - i, ptr[i], (unsigned char)(i + 3)), 0);
  for (int i = 0; i < 2; i++) assert_true(fixture_holds(ptr[i], (unsigned char)(i + 3), BYTES));
  for (int i = 0; i < 2; i++) assert_ok(hipmm_deallocate(top[i], ptr[i], BYTES, NULL));
}

/* Devices gain access while blocks are in use, in each kind of memory that has the option. */
static void may_be_changed_in_use(void **state)
{
  (void)state;
  needs_devices(2);
  fixture_start("'stack': ['device']");
  void *ptr = fixture_allocate(BYTES, NULL);
  assert_int_not_equal(fill_from(1, ptr, 3), 0);
  fixture_hip()->GetLastError();
  assert_status(hipmm_set("devices/0/device/peers", "[{\"device\": 7}]"), HIPMM_E_CONFIG);
  assert_status(hipmm_set("devices/0/device/peers", "1"), HIPMM_E_CONFIG);
  assert_ok(hipmm_set("devices/0/device/peers", "[{\"device\": 1}]"));
  assert_int_equal(fill_from(1, ptr, 4), 0);
  assert_true(fixture_holds(ptr, 4, BYTES));
  assert_ok(hipmm_set("devices/0/device/peers", NULL));
  fixture_free(ptr, BYTES, NULL);
  fixture_teardown(state);
  fixture_start("'stack': ['async']");
  ptr = fixture_allocate(BYTES, NULL);
  assert_int_equal(fill_from(1, ptr, 5), 0);
  assert_ok(hipmm_set("devices/0/async/peers", "[{\"device\": 1, \"mode\": \"read\"}]"));
  if (on_software()) assert_int_not_equal(fill_from(1, ptr, 6), 0);
  fixture_hip()->GetLastError();
  assert_ok(hipmm_set("devices/0/async/peers", NULL));
  assert_int_equal(fill_from(1, ptr, 7), 0);
  assert_true(fixture_holds(ptr, 7, BYTES));
  fixture_free(ptr, BYTES, NULL);
}

static void may_be_asked_for_again(void **state)
{
  for (int i = 0; i < 3; i++) {
    start(*state, PEERS("{'device': 1}, {'device': 1}"));
    void *ptr = fixture_allocate(BYTES, NULL);
    assert_int_equal(fill_from(1, ptr, 9), 0);
    fixture_free(ptr, BYTES, NULL);
    assert_int_equal(fixture_hip()->GetLastError(), 0);
    assert_ok(hipmm_finalize());
  }
}

static void leaves_the_current_device_as_it_was(void **state)
{
  int device = -1;
  start(*state, PEERS("{'device': 1}"));
  fixture_free(fixture_allocate(BYTES, NULL), BYTES, NULL);
  assert_int_equal(fixture_hip()->GetDevice(&device), 0);
  assert_int_equal(device, 0);
}

static void refuses_devices_that_do_not_exist(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': [" PEERS("{'device': 2}") "]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0");
  assert_message("device 2 does not exist: there are 2");
  hipmm_finalize();
  assert_status(fixture_try("", "'stack': [" PEERS("{'device': -1}") "]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0/device");
  assert_status(fixture_try("", "'stack': [" PEERS("{'devise': 1}") "]"), HIPMM_E_CONFIG);
  assert_message("did you mean \"device\"");
  assert_status(fixture_try("", "'stack': [" PEERS("{}") "]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0");
}

static int cannot(int *can_access, int device, int peer)
{
  (void)device, (void)peer;
  *can_access = 0;
  return 0;
}

static void refuses_devices_that_cannot(void **state)
{
  (void)state;
  fixture_start("'stack': ['device']"); /* loads the runtime */
  assert_ok(hipmm_finalize());
  struct hipmm_hip *table = fixture_lend_hip();
  table->DeviceCanAccessPeer = cannot;
  enum hipmm_status status = fixture_try("", "'stack': [" PEERS("{'device': 1}") "]");
  table->DeviceCanAccessPeer = NULL;
  assert_status(status, HIPMM_E_NOT_SUPPORTED);
  assert_message("device 1 cannot reach the memory of device 0");
  hipmm_finalize();
  status = fixture_try("", "'stack': [" PEERS("{'device': 1}") "]");
  fixture_take_hip_back();
  assert_status(status, HIPMM_E_NOT_SUPPORTED);
  assert_message("hipDeviceCanAccessPeer");
}

static void refuses_devices_out_of_reach(void **state)
{
  (void)state;
  needs_software();
  assert_status(fixture_try("'peer_group': 1", "'stack': [" PEERS("{'device': 1}") "]"), HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/peers/0");
  assert_message("device 1 cannot reach the memory of device 0");
}

static void allocate_and_free(void)
{
  void *ptr;
  if (!hipmm_allocate(NULL, BYTES, NULL, &ptr)) hipmm_deallocate(NULL, ptr, BYTES, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  char graph[300];
  const struct stack *stack = *state;
  snprintf(graph, sizeof graph, "'stack': [%s%s]", stack->below, BOTH_PEERS);
  assert_in_range(fixture_fail_each_call("", graph, allocate_and_free), 5, 1000);
}

#define ONCE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
#define ROW(test, row)                                                                      \
  {                                                                                         \
#row ": " #test, test, fixture_setup, fixture_teardown, (void *)(uintptr_t)&stacks[row] \
  }
enum { DEVICE, SEGMENTS, MAPPED };
#define EACH(test) ROW(test, DEVICE), ROW(test, SEGMENTS), ROW(test, MAPPED)

static void add_programs(struct CMUnitTest *tests)
{
  for (size_t i = 0; i < N_PROGRAMS; i++)
    tests[i] = (struct CMUnitTest){programs[i].graph, serves_a_program_with_two_devices, fixture_setup,
                                   fixture_teardown, (void *)(uintptr_t)&programs[i]};
}

static void add_orders(struct CMUnitTest *tests)
{
  for (size_t i = 0; i < N_ORDERS; i++)
    tests[i] = (struct CMUnitTest){orders[i].graph, keeps_or_lacks_the_order_of_hipmallocs_memory, fixture_setup,
                                   fixture_teardown, (void *)(uintptr_t)&orders[i]};
}

int main(void)
{
  static const struct CMUnitTest others[] = {
      EACH(serves_each_device_to_the_other),
      ONCE(asks_for_nothing_with_one_device),
      ONCE(gives_access_once_a_device_and_mapping),
      ONCE(gives_the_own_device_access_last),
      ONCE(copies_reach_devices_that_cannot_reach_it),
      ONCE(maps_for_those_in_reach_when_told_to),
      ONCE(want_of_memory_for_access_fails_the_allocation),
      ONCE(goes_without_access_that_cannot_be_had),
      EACH(is_open_to_peers),
      EACH(lets_a_graph_name_all_devices),
      EACH(may_be_asked_for_again),
      EACH(leaves_the_current_device_as_it_was),
      EACH(loses_nothing_whatever_call_fails),
      ONCE(refuses_devices_that_do_not_exist),
      ONCE(refuses_devices_that_cannot),
      ONCE(refuses_devices_out_of_reach),
      ONCE(may_be_changed_in_use),
      ONCE(a_pool_takes_segments_where_the_order_counts),
      ONCE(a_pool_maps_for_one_device),
      ONCE(a_pool_maps_for_pytorch_and_not_for_cupy),
      ONCE(a_pool_maps_for_each_hook_of_pytorch),
  };
  enum { N_OTHERS = sizeof others / sizeof *others };
  struct CMUnitTest tests[N_PROGRAMS + N_ORDERS + N_OTHERS];
  add_programs(tests);
  add_orders(tests + N_PROGRAMS);
  memcpy(tests + N_PROGRAMS + N_ORDERS, others, sizeof others);
  log_to_file("info");
  return _cmocka_run_group_tests("peers", tests, N_PROGRAMS + N_ORDERS + N_OTHERS, NULL, NULL);
}
