/* SPDX-License-Identifier: MIT */
/* Tests of which devices have access to the memory of stacks that PyTorch's hooks build: each device from the time that it
 * has a stack, whoever builds that, if the hooks give PyTorch all its memory; and that the memory of all other stacks is
 * open to every device from the start. */
#include "../support/fixture.h"

#include <hipmm/share.h>
#include <hipmm/torch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 3 << 20, BLOCKS = 8 };

static const char pool_over_device[] = "{'stack': ['pool', 'device']}";

/* Nothing is built yet. */
static void start(const char *software_options, const char *graph)
{
  char text[200];
  needs_software();
  snprintf(text, sizeof text, "%s", graph);
  for (char *at = text; (at = strchr(at, '\''));) *at = '"';
  setenv("HIPMM_SOFTWARE", software_options, 1);
  setenv("HIPMM_RUNTIME", "software", 1);
  enum hipmm_status status = hipmm_init_from_string(text);
  unsetenv("HIPMM_SOFTWARE");
  unsetenv("HIPMM_RUNTIME");
  assert_ok(status);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  software()->reset_calls();
}

static void start_torch(const char *software_options, const char *graph)
{
  int count = 0;
  start(software_options, graph);
  assert_ok(hipmm_device_count(&count));
  hipmm_torch_init(count);
  software()->reset_calls();
}

static uint64_t calls(const char *name)
{
  return software()->calls(name);
}

static void *torch_allocate(int device)
{
  void *ptr = hipmm_torch_malloc(BYTES, device, NULL);
  assert_non_null(ptr);
  return ptr;
}

static void torch_allocate_all(void **blocks, int device)
{
  for (int i = 0; i < BLOCKS; i++) blocks[i] = torch_allocate(device);
}

static void torch_free_all(void *const *blocks, int device)
{
  for (int i = 0; i < BLOCKS; i++) hipmm_torch_free(blocks[i], BYTES, device, NULL);
}

/* Copies from and to the block with `device` current. Returns HIP's code. */
static int copy_with(int device, void *block)
{
  static unsigned char sent[BYTES], received[BYTES];
  memset(sent, device + 3, BYTES);
  memset(received, 0, BYTES);
  assert_int_equal(fixture_hip()->SetDevice(device), 0);
  int code = fixture_hip()->Memcpy(block, sent, BYTES, HIPMM_HIP_MEMCPY_DEFAULT);
  if (!code) code = fixture_hip()->Memcpy(received, block, BYTES, HIPMM_HIP_MEMCPY_DEFAULT);
  assert_int_equal(fixture_hip()->SetDevice(0), 0);
  fixture_hip()->GetLastError();
  if (!code) assert_memory_equal(received, sent, BYTES);
  return code;
}

static void assert_open_to(int device, void *const *blocks)
{
  for (int i = 0; i < BLOCKS; i++) assert_int_equal(copy_with(device, blocks[i]), 0);
}

/* As a driver refuses it: or the other tests could not tell. */
static void assert_closed_to(int device, void *const *blocks)
{
  for (int i = 0; i < BLOCKS; i++) assert_int_equal(copy_with(device, blocks[i]), HIPMM_HIP_ERROR_INVALID_VALUE);
}

/* ---- Which devices ---- */

static void opens_memory_to_devices_as_they_are_used(void **state)
{
  (void)state;
  void *early[BLOCKS], *late[BLOCKS], *other[BLOCKS];
  start_torch("devices=3", pool_over_device);
  torch_allocate_all(early, 0);
  uint64_t mappings = calls("hipMemMap");
  assert_true(mappings >= BLOCKS);
  assert_int_equal(calls("hipMemSetAccess"), mappings); /* its own device's */
  assert_closed_to(1, early);
  software()->reset_calls();
  torch_allocate_all(other, 1);
  assert_int_equal(calls("hipMemSetAccess"), 2 * mappings + 2 * calls("hipMemMap")); /* its own device's, again last */
  software()->reset_calls();
  torch_allocate_all(late, 0);
  assert_true(calls("hipMemMap") >= BLOCKS);
  assert_int_equal(calls("hipMemSetAccess"), 2 * calls("hipMemMap"));
  for (int device = 0; device < 2; device++) {
    assert_open_to(device, early);
    assert_open_to(device, late);
    assert_open_to(device, other);
  }
  assert_closed_to(2, early);
  assert_closed_to(2, other);
  torch_free_all(early, 0);
  torch_free_all(late, 0);
  torch_free_all(other, 1);
}

/* On ROCm 7.14, access for another device takes away that of the own one. */
static void gives_the_own_device_access_last(void **state)
{
  (void)state;
  void *early[BLOCKS], *late[BLOCKS];
  start_torch("devices=2,rocm_mapping=true", "{'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']}");
  torch_allocate_all(early, 0);
  hipmm_torch_free(torch_allocate(1), BYTES, 1, NULL);
  torch_allocate_all(late, 0);
  for (int device = 0; device < 2; device++) {
    assert_open_to(device, early);
    assert_open_to(device, late);
  }
  torch_free_all(early, 0);
  torch_free_all(late, 0);
}

/* Memory that another process exported is opened likewise; here the other process is this one. */
static void opens_imported_memory_too(void **state)
{
  (void)state;
  struct hipmm_share_block block = {.bytes = 0};
  struct hipmm_share_part parts[8];
  struct hipmm_resource *top = NULL, *device = NULL;
  void *imported[2] = {NULL};
  start_torch("devices=3", "{'stack': ['pool', {'type': 'device', 'handle_type': 'posix_fd'}]}");
  void *ptr = torch_allocate(0);
  assert_ok(hipmm_resource_get_for_device(0, &top));
  assert_ok(hipmm_resource_get_by_name(0, "device", &device));
  assert_ok(hipmm_share_export_block(top, ptr, &block, parts, 8));
  assert_ok(hipmm_share_import_block(device, &block, parts, 8, &imported[0]));
  assert_int_equal(copy_with(0, imported[0]), 0);
  assert_int_equal(copy_with(1, imported[0]), HIPMM_HIP_ERROR_INVALID_VALUE);
  hipmm_torch_free(torch_allocate(1), BYTES, 1, NULL);
  assert_int_equal(copy_with(1, imported[0]), 0);
  assert_int_equal(copy_with(2, imported[0]), HIPMM_HIP_ERROR_INVALID_VALUE);
  assert_ok(hipmm_share_import_block(device, &block, parts, 8, &imported[1]));
  assert_int_equal(copy_with(1, imported[1]), 0);
  for (int i = 0; i < 2; i++) assert_ok(hipmm_deallocate(device, imported[i], BYTES, NULL));
  hipmm_torch_free(torch_allocate(2), BYTES, 2, NULL); /* nothing is given access to what was unmapped */
  assert_int_equal(copy_with(2, ptr), 0);
  for (size_t i = 0; i < block.n_parts; i++) close(parts[i].fd);
  hipmm_torch_free(ptr, BYTES, 0, NULL);
  hipmm_resource_release(device);
  hipmm_resource_release(top);
}

/* What was unmapped before gets no access. */
static void opens_only_what_is_mapped(void **state)
{
  (void)state;
  void *freed[BLOCKS], *kept[BLOCKS];
  start_torch("devices=2", pool_over_device);
  torch_allocate_all(kept, 0);
  torch_allocate_all(freed, 0);
  torch_free_all(freed, 0);
  hipmm_torch_reset();
  assert_true(calls("hipMemUnmap") >= BLOCKS);
  uint64_t left = calls("hipMemMap") - calls("hipMemUnmap");
  software()->reset_calls();
  hipmm_torch_free(torch_allocate(1), BYTES, 1, NULL);
  assert_int_equal(calls("hipMemSetAccess"), 2 * left + 2 * calls("hipMemMap"));
  assert_open_to(1, kept);
  torch_free_all(kept, 0);
}

static void asks_for_nothing_of_devices_out_of_reach(void **state)
{
  (void)state;
  void *blocks[BLOCKS];
  start_torch("devices=3,peer_group=2", "{'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']}");
  torch_allocate_all(blocks, 0);
  software()->reset_calls();
  hipmm_torch_free(torch_allocate(2), BYTES, 2, NULL);
  assert_int_equal(calls("hipMemSetAccess"), calls("hipMemMap"));
  assert_closed_to(2, blocks);
  torch_free_all(blocks, 0);
}

/* ---- Who uses the second device first ---- */

static void get_resource(void)
{
  struct hipmm_resource *resource;
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  hipmm_resource_release(resource);
}

static void create_resource(void)
{
  struct hipmm_resource *resource;
  assert_ok(hipmm_resource_create(1, "device", NULL, NULL, 0, &resource));
  hipmm_resource_release(resource);
}

static void use_cupy(void)
{
  hipmm_cupy_free(NULL, hipmm_cupy_malloc(NULL, BYTES, 1), 1);
}

static void set_fraction(void)
{
  hipmm_torch_memory_fraction(0.5, 1);
}

static void opens_memory_whoever_uses_the_device(void **state)
{
  (void)state;
  static void (*const uses[])(void) = {get_resource, create_resource, use_cupy, set_fraction};
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    void *blocks[BLOCKS];
    start_torch("devices=2", pool_over_device);
    torch_allocate_all(blocks, 0);
    assert_closed_to(1, blocks);
    uses[i]();
    assert_open_to(1, blocks);
    torch_free_all(blocks, 0);
    assert_ok(hipmm_finalize());
  }
}

/* A device whose stacks are all gone counts as unused; the memory of a stack that is held past hipmm_finalize() does not
 * matter to the next ones. */
static void starts_anew_after_finalize(void **state)
{
  (void)state;
  for (int round = 0; round < 3; round++) {
    void *blocks[BLOCKS];
    start_torch("devices=2", pool_over_device);
    torch_allocate_all(blocks, 0);
    assert_int_equal(calls("hipMemSetAccess"), calls("hipMemMap"));
    hipmm_torch_free(torch_allocate(1), BYTES, 1, NULL);
    assert_open_to(1, blocks);
    torch_free_all(blocks, 0);
    assert_ok(hipmm_finalize());
  }
}

/* ---- Stacks of others ---- */

static void use_c(void **block)
{
  struct hipmm_resource *resource;
  assert_ok(hipmm_resource_get_for_device(0, &resource));
  assert_ok(hipmm_allocate(resource, BYTES, NULL, block));
  assert_ok(hipmm_deallocate(resource, *block, BYTES, NULL));
  hipmm_resource_release(resource);
}

static void use_cupy_first(void **block)
{
  *block = hipmm_cupy_malloc(NULL, BYTES, 0);
  hipmm_cupy_free(NULL, *block, 0);
}

/* PyTorch's own allocator has memory that hipmm does not see, on any device. */
static void use_memory_pool(void **block)
{
  hipmm_torch_init(0);
  *block = torch_allocate(0);
  hipmm_torch_free(*block, BYTES, 0, NULL);
}

/* Of a process in which PyTorch has built the device's own stack. */
static void use_created(void **block)
{
  hipmm_torch_init(4);
  struct hipmm_resource *device, *pool;
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &device));
  assert_ok(hipmm_resource_create(0, "pool", "{\"growth\": \"mapped\"}", &device, 1, &pool));
  hipmm_torch_memory_fraction(0.5, 0);
  software()->reset_calls();
  assert_ok(hipmm_allocate(pool, BYTES, NULL, block));
  assert_ok(hipmm_deallocate(pool, *block, BYTES, NULL));
  hipmm_resource_release(pool);
  hipmm_resource_release(device);
}

static const struct {
  const char *name;
  void (*use)(void **block);
} others[] = {{"use_memory_pool", use_memory_pool},
              {"use_c", use_c},
              {"use_cupy_first", use_cupy_first},
              {"use_created", use_created}};

static void keeps_other_stacks_open_to_all(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    void *block = NULL;
    start("devices=4", "{'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']}");
    others[i].use(&block);
    assert_non_null(block);
    assert_true(calls("hipMemMap") > 0);
    if (calls("hipMemSetAccess") != 4 * calls("hipMemMap")) fail_msg("%s: not open to all", others[i].name);
    assert_ok(hipmm_finalize());
  }
}

/* ---- Failures ---- */

static void want_of_memory_for_access_refuses_the_device(void **state)
{
  (void)state;
  void *blocks[BLOCKS];
  start_torch("devices=2", pool_over_device);
  torch_allocate_all(blocks, 0);
  for (uint64_t nth = 3; nth < 60;
       nth++) /* out of memory, a stack is built again once others have given what is idle */
    fixture_fail_call("hipMemSetAccess", nth, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  assert_null(hipmm_torch_malloc(BYTES, 1, NULL));
  assert_message("the access was for device 1");
  software()->fail_none();
  hipmm_torch_free(torch_allocate(0), BYTES, 0, NULL); /* the first device works on */
  hipmm_torch_free(torch_allocate(1), BYTES, 1, NULL);
  assert_open_to(1, blocks);
  torch_free_all(blocks, 0);
}

static void goes_without_access_that_cannot_be_had(void **state)
{
  (void)state;
  void *blocks[BLOCKS];
  start_torch("devices=2", pool_over_device);
  torch_allocate_all(blocks, 0);
  logged();
  fixture_fail_call("hipMemSetAccess", 1, HIPMM_HIP_ERROR_NOT_SUPPORTED);
  hipmm_torch_free(torch_allocate(1), BYTES, 1, NULL);
  assert_contains(logged(), "device 1 gets no access to this memory of device 0 (hipMemSetAccess: ");
  torch_free_all(blocks, 0);
}

static void allocate_on_three(void)
{
  void *ptr[3];
  hipmm_torch_init(3);
  for (int device = 0; device < 3; device++) ptr[device] = hipmm_torch_malloc(BYTES, device, NULL);
  for (int device = 0; device < 3; device++)
    if (ptr[device]) hipmm_torch_free(ptr[device], BYTES, device, NULL);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  needs_software();
  setenv("HIPMM_SOFTWARE", "devices=3", 1);
  unsigned failed = fixture_fail_each_call("", "'stack': ['pool', 'device']", allocate_on_three);
  unsetenv("HIPMM_SOFTWARE");
  assert_in_range(failed, 20, 1000);
}

/* ---- Threads ---- */

static bool is_in_flight;

static void *use_second_device(void *argument)
{
  (void)argument;
  void *ptr = hipmm_torch_malloc(BYTES, 1, NULL);
  if (ptr) hipmm_torch_free(ptr, BYTES, 1, NULL);
  return ptr;
}

/* While a chunk of device 0 is mapped and not accessible yet, another thread uses device 1 for the first time. */
static int set_access_meanwhile(void *address, size_t bytes, int device)
{
  pthread_t thread;
  if (!is_in_flight) {
    is_in_flight = true;
    if (pthread_create(&thread, NULL, use_second_device, NULL)) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
    pthread_join(thread, NULL);
  }
  return fixture_usual_hip()->MemSetAccess(address, bytes, device);
}

static void opens_what_is_being_mapped(void **state)
{
  (void)state;
  start_torch("devices=2", pool_over_device);
  void *first = torch_allocate(0), *blocks[BLOCKS];
  is_in_flight = false;
  fixture_lend_hip()->MemSetAccess = set_access_meanwhile;
  torch_allocate_all(blocks, 0);
  fixture_take_hip_back();
  assert_true(is_in_flight);
  assert_open_to(1, blocks);
  torch_free_all(blocks, 0);
  hipmm_torch_free(first, BYTES, 0, NULL);
}

static pthread_barrier_t barrier;
static void *racing[2][BLOCKS];

/* Two devices, which are used for the first time at once, whose pools grow and shrink meanwhile. */
static void *race(void *argument)
{
  int device = (int)(intptr_t)argument, failures = 0;
  pthread_barrier_wait(&barrier);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < BLOCKS; i++) failures += !(racing[device][i] = hipmm_torch_malloc(BYTES, device, NULL));
    if (round == 4) break;
    for (int i = 0; i < BLOCKS; i++) hipmm_torch_free(racing[device][i], BYTES, device, NULL);
    hipmm_torch_reset();
  }
  return (void *)(intptr_t)failures;
}

static void opens_memory_while_pools_grow_and_shrink(void **state)
{
  (void)state;
  pthread_barrier_init(&barrier, NULL, 2);
  for (int turn = 0; turn < 5; turn++) {
    pthread_t threads[2];
    void *failures;
    start_torch("devices=2", pool_over_device);
    for (intptr_t device = 0; device < 2; device++)
      assert_int_equal(pthread_create(&threads[device], NULL, race, (void *)device), 0);
    for (int device = 0; device < 2; device++) {
      pthread_join(threads[device], &failures);
      assert_null(failures);
    }
    for (int device = 0; device < 2; device++) {
      assert_open_to(1 - device, racing[device]);
      torch_free_all(racing[device], device);
    }
    assert_ok(hipmm_finalize());
  }
  pthread_barrier_destroy(&barrier);
}

#define ONCE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  static const struct CMUnitTest tests[] = {
      ONCE(keeps_other_stacks_open_to_all), /* first: PyTorch calls the init function once in a process */
      ONCE(opens_memory_to_devices_as_they_are_used),
      ONCE(gives_the_own_device_access_last),
      ONCE(opens_imported_memory_too),
      ONCE(opens_only_what_is_mapped),
      ONCE(asks_for_nothing_of_devices_out_of_reach),
      ONCE(opens_memory_whoever_uses_the_device),
      ONCE(starts_anew_after_finalize),
      ONCE(want_of_memory_for_access_refuses_the_device),
      ONCE(goes_without_access_that_cannot_be_had),
      ONCE(loses_nothing_whatever_call_fails),
      ONCE(opens_what_is_being_mapped),
      ONCE(opens_memory_while_pools_grow_and_shrink),
  };
  log_to_file("warning");
  return cmocka_run_group_tests_name("torch_peers", tests, NULL, NULL);
}
