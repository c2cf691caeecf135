/* SPDX-License-Identifier: MIT */
/* Tests of what `async_view` does beyond other sources: which pool it takes from, and that it leaves it alone. Pools
 * can be made once the runtime is there, and must be before the stack that views them: that is device 1's here. */
#include "../support/fixture.h"

static hipmm_hip_mempool_t default_pool(int device)
{
  hipmm_hip_mempool_t pool = NULL;
  assert_int_equal(fixture_hip()->DeviceGetDefaultMemPool(&pool, device), 0);
  return pool;
}

static hipmm_hip_mempool_t new_pool(int device)
{
  hipmm_hip_mempool_t pool = NULL;
  assert_int_equal(fixture_hip()->MemPoolCreate(&pool, device, HIPMM_HIP_HANDLE_NONE), 0);
  return pool;
}

static uint64_t used_bytes(hipmm_hip_mempool_t pool)
{
  uint64_t bytes = 0;
  assert_int_equal(fixture_hip()->MemPoolGetAttribute(pool, HIPMM_HIP_POOL_USED_CURRENT, &bytes), 0);
  return bytes;
}

static void register_pool(hipmm_hip_mempool_t pool)
{
  struct hipmm_mempool mempool = {.struct_size = sizeof mempool, .handle = pool};
  assert_ok(hipmm_mempool_register("ours", &mempool));
}

#define VIEW(options)                                                                                   \
  "'resources': {'plain': {'type': 'device'}, 'view': {'type': 'async_view'" options "}}, 'devices': {" \
  "'default': 'plain', '1': 'view'}"

static void start_view(const char *graph)
{
  fixture_start(graph);
  needs_devices(2);
}

/* Device 1's, built now. */
static struct hipmm_resource *view(void)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_for_device(1, &resource));
  hipmm_resource_release(resource); /* the table of devices keeps it */
  return resource;
}

static void *allocate_in_view(void)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(view(), MIB, NULL, &ptr));
  return ptr;
}

static void takes_from_the_devices_default_pool(void **state)
{
  (void)state;
  fixture_start("'stack': ['async_view']");
  void *ptr = fixture_allocate(MIB, NULL);
  assert_int_equal(used_bytes(default_pool(0)), MIB);
  assert_int_equal(fixture_value("async_view", "used_bytes"), MIB);
  assert_int_equal(fixture_held_bytes(), MIB);
  assert_int_equal(software()->calls("hipMemPoolSetAccess"), 0); /* the device has all access to its own pool */
  fixture_free(ptr, MIB, NULL);
  assert_int_equal(used_bytes(default_pool(0)), 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

static void takes_from_the_devices_current_pool(void **state)
{
  (void)state;
  start_view(VIEW(", 'pool': 'current'"));
  hipmm_hip_mempool_t pool = new_pool(1);
  assert_int_equal(fixture_hip()->DeviceSetMemPool(1, pool), 0);
  void *ptr = allocate_in_view();
  assert_int_equal(used_bytes(pool), MIB);
  assert_int_equal(used_bytes(default_pool(1)), 0);
  assert_ok(hipmm_deallocate(view(), ptr, MIB, NULL));
  assert_ok(hipmm_finalize());
  assert_int_equal(fixture_hip()->MemPoolDestroy(pool), 0);
}

static void takes_from_the_pool_that_was_registered(void **state)
{
  (void)state;
  hipmm_hip_mempool_t current = NULL;
  start_view(VIEW(", 'pool_handle': 'ours'"));
  hipmm_hip_mempool_t pool = new_pool(1);
  register_pool(pool);
  void *ptr = allocate_in_view();
  assert_int_equal(used_bytes(pool), MIB);
  assert_int_equal(fixture_hip()->DeviceGetMemPool(&current, 1), 0);
  assert_ptr_equal(current, default_pool(1));
  assert_ok(hipmm_deallocate(view(), ptr, MIB, NULL));
  assert_ok(hipmm_finalize());
  assert_int_equal(fixture_hip()->MemPoolDestroy(pool), 0);
}

static void never_destroys_the_pool(void **state)
{
  (void)state;
  start_view(VIEW(", 'pool_handle': 'ours'"));
  hipmm_hip_mempool_t pool = new_pool(1);
  register_pool(pool);
  allocate_in_view();
  assert_ok(hipmm_finalize());
  assert_int_equal(used_bytes(pool), 0);
  assert_int_equal(fixture_hip()->MemPoolDestroy(pool), 0);
}

static void leaves_the_owners_settings_alone(void **state)
{
  (void)state;
  uint64_t threshold = 12345;
  int no = 0;
  int64_t value = -1;
  start_view(VIEW(", 'pool_handle': 'ours'"));
  hipmm_hip_mempool_t pool = new_pool(1);
  assert_int_equal(fixture_hip()->MemPoolSetAttribute(pool, HIPMM_HIP_POOL_RELEASE_THRESHOLD, &threshold), 0);
  assert_int_equal(fixture_hip()->MemPoolSetAttribute(pool, HIPMM_HIP_POOL_REUSE_ALLOW_OPPORTUNISTIC, &no), 0);
  register_pool(pool);
  assert_ok(hipmm_resource_query(view(), "threshold_bytes", &value));
  assert_int_equal(value, 12345);
  assert_ok(hipmm_resource_query(view(), "is_opportunistic", &value));
  assert_int_equal(value, 0);
  assert_ok(hipmm_resource_query(view(), "follows_events", &value));
  assert_int_equal(value, 1);
  assert_ok(hipmm_finalize());
  assert_int_equal(fixture_hip()->MemPoolDestroy(pool), 0);
}

static void refuses_a_pool_of_another_device(void **state)
{
  (void)state;
  hipmm_hip_mempool_t current = NULL;
  struct hipmm_resource *resource;
  start_view(VIEW(", 'pool_handle': 'ours'"));
  hipmm_hip_mempool_t pool = new_pool(0);
  register_pool(pool);
  assert_status(hipmm_resource_get_for_device(1, &resource), HIPMM_E_CONFIG);
  assert_message("/resources/view/pool_handle");
  assert_message("is not a pool of device 1 that allows allocations (hipDeviceSetMemPool: hipErrorInvalid");
  assert_int_equal(fixture_hip()->DeviceGetMemPool(&current, 1), 0);
  assert_ptr_equal(current, default_pool(1));
  assert_int_equal(fixture_hip()->GetLastError(), 0);
  assert_int_equal(fixture_hip()->MemPoolDestroy(pool), 0);
}

static void refuses_what_is_no_pool(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  needs_software(); /* a driver trusts handles */
  start_view(VIEW(", 'pool_handle': 'ours'"));
  hipmm_mempool_register("ours", NULL);
  assert_status(hipmm_resource_get_for_device(1, &resource), HIPMM_E_CONFIG);
  assert_message("ours");
  default_pool(1); /* which would take the handle of a pool that is gone */
  hipmm_hip_mempool_t pool = new_pool(1);
  assert_int_equal(fixture_hip()->MemPoolDestroy(pool), 0);
  register_pool(pool);
  assert_status(hipmm_resource_get_for_device(1, &resource), HIPMM_E_CONFIG);
  assert_message("hipErrorInvalidValue");
  assert_ok(hipmm_finalize());
  assert_status(fixture_try("'memory_pools': false", "'stack': ['async_view']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no stream-ordered pools");
}

static void each_device_has_its_own_default(void **state)
{
  (void)state;
  struct hipmm_resource *second;
  void *ptr = NULL;
  start_view("'stack': ['async_view']");
  assert_ok(hipmm_resource_get_for_device(1, &second));
  assert_ok(hipmm_allocate(second, MIB, NULL, &ptr));
  assert_int_equal(used_bytes(default_pool(1)), MIB);
  assert_int_equal(used_bytes(default_pool(0)), 0);
  assert_ok(hipmm_deallocate(second, ptr, MIB, NULL));
  hipmm_resource_release(second);
}

static void use_each_op(void)
{
  struct hipmm_resource *resource = NULL;
  void *ptr = NULL;
  int64_t value;
  if (hipmm_resource_get_for_device(0, &resource)) return;
  if (!hipmm_allocate(resource, MIB, NULL, &ptr)) hipmm_deallocate(resource, ptr, MIB, NULL);
  if (!hipmm_resource_query(resource, "peak_used_bytes", &value)) hipmm_resource_perform(resource, "reset_peaks");
  hipmm_resource_trim(resource, 0);
  hipmm_resource_release(resource);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_true(fixture_fail_each_call("", "'stack': [{'type': 'async_view', 'pool': 'current'}]", use_each_op) > 10);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(takes_from_the_devices_default_pool),
      TEST(takes_from_the_devices_current_pool),
      TEST(takes_from_the_pool_that_was_registered),
      TEST(never_destroys_the_pool),
      TEST(leaves_the_owners_settings_alone),
      TEST(refuses_a_pool_of_another_device),
      TEST(refuses_what_is_no_pool),
      TEST(each_device_has_its_own_default),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
