/* SPDX-License-Identifier: MIT */
/* Tests of what `async` does beyond other sources: options, the driver's pool, its values. Sharing is in
 * test_share.c. */
#include "../../core/runtime/hip.h"
#include "../support/fixture.h"

#include <stdlib.h>
#include <string.h>

static void counts_what_the_driver_reserves(void **state)
{
  (void)state;
  fixture_start("'stack': ['async']");
  void *ptr = fixture_allocate(1000, NULL);
  int64_t reserved = fixture_value("async", "reserved_bytes");
  assert_true(reserved >= 1000);
  assert_int_equal(fixture_held_bytes(), reserved);
  assert_true(fixture_value("async", "used_bytes") >= 1000);
  fixture_free(ptr, 1000, NULL);
  fixture_hip()->DeviceSynchronize();
  assert_int_equal(fixture_value("async", "used_bytes"), 0);
  assert_int_equal(fixture_held_bytes(), reserved);
}

static void holds_no_more_while_it_reuses(void **state)
{
  (void)state;
  fixture_start("'stack': ['async']");
  for (int i = 0; i < 100; i++) fixture_free(fixture_allocate(10 * MIB, NULL), 10 * MIB, NULL);
  assert_true(fixture_peak_held_bytes() < 100 * MIB);
}

static void takes_its_initial_pool_size_at_once(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'async', 'initial_pool_size': '64MiB'}]");
  assert_true(fixture_held_bytes() >= 64 * MIB);
  assert_int_equal(fixture_value("async", "used_bytes"), 0);
}

static void allocates_from_its_initial_pool_size(void **state)
{
  void *parts[8];
  (void)state;
  fixture_start("'stack': [{'type': 'async', 'initial_pool_size': '64MiB'}]");
  size_t held = fixture_held_bytes();
  for (size_t i = 0; i < 8; i++) parts[i] = fixture_allocate(8 * MIB, NULL);
  assert_int_equal(fixture_held_bytes(), held);
  for (size_t i = 0; i < 8; i++) fixture_free(parts[i], 8 * MIB, NULL);
}

static void says_that_the_initial_pool_size_is_too_large(void **state)
{
  needs_software();
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'async', 'initial_pool_size': '1GiB'}]"), HIPMM_E_OUT_OF_MEMORY);
  assert_message("/stack/0/initial_pool_size");
  assert_message("ask for less");
}

static void gives_idle_memory_back_when_trimmed(void **state)
{
  (void)state;
  fixture_start("'stack': ['async']");
  void *kept = fixture_allocate(MIB, NULL);
  fixture_free(fixture_allocate(64 * MIB, NULL), 64 * MIB, NULL);
  assert_true(fixture_held_bytes() >= 64 * MIB);
  assert_ok(hipmm_resource_trim(fixture_resource("async"), 0));
  assert_true(fixture_held_bytes() >= MIB && fixture_held_bytes() < 64 * MIB);
  fixture_free(kept, MIB, NULL);
}

static void releases_above_its_threshold_at_synchronisations(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'async', 'release_threshold': 0}]");
  fixture_free(fixture_allocate(64 * MIB, NULL), 64 * MIB, NULL);
  fixture_hip()->StreamSynchronize(NULL);
  assert_int_equal(fixture_held_bytes(), 0);
  assert_int_equal(fixture_value("async", "reserved_bytes"), 0);
  assert_ok(hipmm_set("devices/0/async/release_threshold", "unlimited"));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* What the driver gives back by itself is counted when it is asked for, in every way that there is to ask. */
static void counts_when_it_is_asked(void **state)
{
  char *text = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'async', 'release_threshold': 0}]");
  for (int way = 0; way < 4; way++) {
    int64_t held = -1;
    fixture_free(fixture_allocate(64 * MIB, NULL), 64 * MIB, NULL);
    fixture_hip()->StreamSynchronize(NULL);
    switch (way) {
    case 0: held = (int64_t)fixture_held_bytes(); break;
    case 1: assert_ok(hipmm_query("devices/0/held_bytes", &held)); break;
    case 2:
      assert_ok(hipmm_list("devices/0/held_bytes", &text));
      held = strstr(text, "\"value\": 0") ? 0 : 1;
      break;
    default:
      assert_ok(hipmm_snapshot(&text));
      held = strstr(text, "\"held_bytes\": 0,") ? 0 : 1;
      break;
    }
    assert_int_equal(held, 0);
    hipmm_string_free(text);
    text = NULL;
  }
}

/* An allocation that fails makes the driver give idle memory back first. The message adds up to the device. */
static void counts_again_after_a_failure(void **state)
{
  void *ptr = NULL;
  size_t unused = 0, total = 0;
  needs_software();
  (void)state;
  fixture_start("'stack': ['async']");
  void *first = fixture_allocate(160 * MIB, NULL), *second = fixture_allocate(80 * MIB, NULL);
  fixture_free(first, 160 * MIB, NULL);
  fixture_free(second, 80 * MIB, NULL);
  void *kept = fixture_allocate(88 * MIB, NULL); /* of the larger part, which stays */
  assert_status(hipmm_allocate(NULL, 120 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("async holds 160 MiB (88 MiB used, 72 MiB idle); ");
  assert_message("has 256 MiB, 96 MiB of it free; ");
  assert_int_equal(fixture_hip()->MemGetInfo(&unused, &total), 0);
  assert_int_equal(fixture_held_bytes(), total - unused);
  fixture_free(kept, 88 * MIB, NULL);
}

/* Where the driver does not tell, the last count stands, and the thread's error is what it was. */
static void keeps_its_count_if_the_driver_does_not_tell(void **state)
{
  needs_software();
  (void)state;
  fixture_start("'stack': ['async']");
  void *ptr = fixture_allocate(64 * MIB, NULL);
  assert_status(hipmm_query("devices/0/nothing", &(int64_t){0}), HIPMM_E_ARGUMENT);
  fixture_fail_call("hipMemPoolGetAttribute", 1, 0);
  assert_int_equal(fixture_held_bytes(), 64 * MIB);
  assert_message("there is no value \"nothing\"");
  fixture_free(ptr, 64 * MIB, NULL);
}

static void starts_its_peaks_again(void **state)
{
  (void)state;
  fixture_start("'stack': ['async']");
  fixture_free(fixture_allocate(64 * MIB, NULL), 64 * MIB, NULL);
  assert_true(fixture_value("async", "peak_used_bytes") >= (int64_t)(64 * MIB));
  fixture_hip()->DeviceSynchronize();
  assert_ok(hipmm_resource_perform(fixture_resource("async"), "reset_peaks"));
  assert_int_equal(fixture_value("async", "peak_used_bytes"), 0);
  assert_int_equal(fixture_value("async", "peak_reserved_bytes"), fixture_value("async", "reserved_bytes"));
}

static void needs_a_device_with_pools(void **state)
{
  (void)state;
  assert_status(fixture_try("'memory_pools': false", "'stack': ['async']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("device 0 has no stream-ordered pools");
}

static void takes_every_option(void **state)
{
  (void)state;
  fixture_start(
      "'stack': [{'type': 'async', 'initial_pool_size': '10%', 'release_threshold': 'unlimited', 'handle_type': "
      "'posix_fd', 'reuse_follow_event_dependencies': false, 'reuse_allow_opportunistic': false, "
      "'reuse_allow_internal_dependencies': false}]");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void options_may_change_while_in_use(void **state)
{
  (void)state;
  fixture_start("'stack': ['async']");
  assert_int_equal(fixture_value("async", "threshold_bytes"), INT64_MAX);
  assert_ok(hipmm_set("devices/0/async/release_threshold", "0"));
  assert_int_equal(fixture_value("async", "threshold_bytes"), 0);
  assert_int_equal(fixture_value("async", "follows_events"), 1);
  assert_ok(hipmm_set("devices/0/async/reuse_follow_event_dependencies", "false"));
  assert_ok(hipmm_set("devices/0/async/reuse_allow_opportunistic", "false"));
  assert_int_equal(fixture_value("async", "follows_events"), 0);
  assert_int_equal(fixture_value("async", "is_opportunistic"), 0);
  assert_int_equal(fixture_value("async", "makes_streams_wait"), 1);
  assert_ok(hipmm_set("devices/0/async/reuse_allow_internal_dependencies", "false"));
  assert_ok(hipmm_set("devices/0/async/reuse_allow_opportunistic", NULL));
  assert_int_equal(fixture_value("async", "makes_streams_wait"), 0);
  assert_int_equal(fixture_value("async", "is_opportunistic"), 1);
  fixture_free(fixture_allocate(64 * MIB, NULL), 64 * MIB, NULL);
  fixture_hip()->StreamSynchronize(NULL);
  assert_int_equal(fixture_value("async", "reserved_bytes"), 0);
  assert_status(hipmm_set("devices/0/async/initial_pool_size", "1MiB"), HIPMM_E_NOT_SUPPORTED);
}

static void tells_the_handle_of_the_pool(void **state)
{
  (void)state;
  uint64_t used = 0;
  fixture_start("'stack': ['async']");
  void *ptr = fixture_allocate(1000, NULL);
  hipmm_hip_mempool_t pool = (hipmm_hip_mempool_t)(intptr_t)fixture_value("async", "pool_handle");
  assert_int_equal(fixture_hip()->MemPoolGetAttribute(pool, HIPMM_HIP_POOL_USED_CURRENT, &used), 0);
  assert_int_equal(used, fixture_value("async", "used_bytes"));
  assert_true(used >= 1000);
  fixture_free(ptr, 1000, NULL);
}

static void a_change_that_fails_changes_nothing(void **state)
{
  (void)state;
  char *text = NULL;
  fixture_start("'stack': [{'type': 'async', 'release_threshold': '1MiB'}]");
  fixture_fail_call("hipMemPoolSetAttribute", 1, 0);
  assert_status(hipmm_set("devices/0/async/release_threshold", "5"), HIPMM_E_HIP);
  assert_message("hipMemPoolSetAttribute");
  assert_int_equal(fixture_value("async", "threshold_bytes"), MIB);
  assert_ok(hipmm_get("devices/0/async/release_threshold", &text));
  assert_contains(text, "1");
  hipmm_string_free(text);
}

/* ---- Access ---- */

/* What device 1 may do with the memory of the pool made last. */
static hipmm_hip_mempool_t last_pool;
static struct hipmm_hip real;

static int note_pool(hipmm_hip_mempool_t *pool, int device, int handle_type)
{
  int code = real.MemPoolCreate(pool, device, handle_type);
  last_pool = *pool;
  return code;
}

static int access_of(int device)
{
  int access = -1;
  assert_int_equal(fixture_hip()->MemPoolGetAccess(&access, last_pool, device), 0);
  return access;
}

static void start_noting(const char *graph)
{
  fixture_start("'stack': ['device']"); /* the table of functions is filled */
  assert_ok(hipmm_finalize());
  real = hip_table_functions;
  hip_table_functions.MemPoolCreate = note_pool;
  enum hipmm_status status = fixture_try("", graph);
  hip_table_functions = real;
  assert_ok(status);
}

static void other_devices_have_the_access_that_is_said(void **state)
{
  needs_software();
  (void)state;
  start_noting("'stack': ['async']");
  assert_int_equal(access_of(0), HIPMM_HIP_ACCESS_READ_WRITE);
  assert_int_equal(access_of(1), HIPMM_HIP_ACCESS_READ_WRITE);
  assert_ok(hipmm_finalize());
  setenv("HIPMM_SOFTWARE", "devices=4,peer_group=2", 1); /* over the fixture's own */
  start_noting("'stack': ['async']");
  unsetenv("HIPMM_SOFTWARE");
  assert_int_equal(access_of(1), HIPMM_HIP_ACCESS_READ_WRITE);
  assert_int_equal(access_of(2), HIPMM_HIP_ACCESS_NONE);
  assert_int_equal(access_of(3), HIPMM_HIP_ACCESS_NONE);
  assert_ok(hipmm_finalize());
  start_noting("'stack': [{'type': 'async', 'peers': [{'device': 1}, {'device': 0}]}]");
  assert_int_equal(access_of(1), HIPMM_HIP_ACCESS_READ_WRITE);
  assert_ok(hipmm_finalize());
  start_noting("'stack': [{'type': 'async', 'peers': [{'device': 1, 'mode': 'read'}]}]");
  assert_int_equal(access_of(1), HIPMM_HIP_ACCESS_READ);
}

static void says_which_device_cannot_have_access(void **state)
{
  needs_software();
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'async', 'peers': [{'device': 2}]}]"), HIPMM_E_CONFIG);
  assert_message("/stack/0/peers/0");
  assert_message("device 2 does not exist: there are 2");
  assert_ok(hipmm_finalize());
  assert_status(fixture_try("", "'stack': [{'type': 'async', 'peers': [{'device': -1}]}]"), HIPMM_E_CONFIG);
  hipmm_finalize();
  assert_status(fixture_try("", "'stack': [{'type': 'async', 'peers': [{'device': 1, 'mode': 'write'}]}]"),
                HIPMM_E_CONFIG);
  hipmm_finalize();
  assert_status(fixture_try("'fail': ['hipMemPoolSetAccess:1:hipErrorInvalidDevice']",
                            "'stack': [{'type': 'async', 'peers': [{'device': 1}]}]"),
                HIPMM_E_NOT_SUPPORTED);
  assert_message("device 1 cannot use memory of device 0 (hipMemPoolSetAccess: hipErrorInvalidDevice)");
  hipmm_finalize();
  assert_status(fixture_try("'peer_group': 1", "'stack': [{'type': 'async', 'peers': [{'device': 1}]}]"),
                HIPMM_E_NOT_SUPPORTED);
  assert_message("device 1 cannot use memory of device 0 (hipMemPoolSetAccess: hipErrorInvalidDevice)");
}

/* Without a row nobody asked for that device in particular: the pool goes on without, and other failures count. */
static void goes_on_without_access_that_a_driver_cannot_give(void **state)
{
  (void)state;
  fixture_start_with("'fail': ['hipMemPoolSetAccess:1:hipErrorNotSupported']", "'stack': ['async']");
  assert_contains(logged(), "async: device 1 gets no access to this memory of device 0 (hipMemPoolSetAccess: "
                            "hipErrorNotSupported)");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_finalize());
  assert_status(fixture_try("'fail': ['hipMemPoolSetAccess:1:hipErrorOutOfMemory']", "'stack': ['async']"),
                HIPMM_E_OUT_OF_MEMORY);
  assert_message("hipMemPoolSetAccess");
}

/* Work of a free that has not happened yet must not meet the next owner's: the driver's business, but ours to hand the
 * right streams on. */
static void keeps_the_order_of_streams(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped', 'seed': 3", "'stack': ['async']");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  for (int i = 0; i < 50; i++) {
    unsigned char *ptr = fixture_allocate(4096, first);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, 4096, first), 0);
    fixture_free(ptr, 4096, first);
    ptr = fixture_allocate(4096, second);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 2, 4096, second), 0);
    assert_true(fixture_holds(ptr, 2, 4096));
    fixture_free(ptr, 4096, second);
  }
  fixture_drop_stream(first);
  fixture_drop_stream(second);
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
  assert_true(
      fixture_fail_each_call("", "'stack': [{'type': 'async', 'initial_pool_size': '1MiB', 'peers': [{'device': 1}]}]",
                             use_each_op) > 10);
}

static int refuse_free(void *ptr, hipmm_stream_t stream)
{
  (void)ptr, (void)stream;
  return HIPMM_HIP_ERROR_INVALID_VALUE;
}

static int waits;

static int count_wait(void)
{
  waits++;
  return 0;
}

/* A graph frees only memory of graphs. To wait, and free the memory without the graph, would end the capture. */
static void a_free_that_a_capture_refuses_does_not_end_it(void **state)
{
  (void)state;
  fixture_start("'stack': ['async']");
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(1000, stream);
  struct hipmm_hip *hip = fixture_lend_hip();
  hip->StreamIsCapturing = fixture_says_captured;
  hip->FreeAsync = refuse_free;
  hip->DeviceSynchronize = count_wait;
  enum hipmm_status status = hipmm_deallocate(NULL, ptr, 1000, stream);
  fixture_take_hip_back();
  assert_int_equal(status, HIPMM_E_STATE);
  assert_message("is being captured, and a graph frees only memory");
  assert_int_equal(waits, 0);
  fixture_free(ptr, 1000, stream);
  fixture_drop_stream(stream);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  log_to_file("warning");
  const struct CMUnitTest tests[] = {
      TEST(counts_what_the_driver_reserves),
      TEST(holds_no_more_while_it_reuses),
      TEST(takes_its_initial_pool_size_at_once),
      TEST(allocates_from_its_initial_pool_size),
      TEST(says_that_the_initial_pool_size_is_too_large),
      TEST(gives_idle_memory_back_when_trimmed),
      TEST(releases_above_its_threshold_at_synchronisations),
      TEST(counts_when_it_is_asked),
      TEST(counts_again_after_a_failure),
      TEST(keeps_its_count_if_the_driver_does_not_tell),
      TEST(starts_its_peaks_again),
      TEST(needs_a_device_with_pools),
      TEST(takes_every_option),
      TEST(options_may_change_while_in_use),
      TEST(tells_the_handle_of_the_pool),
      TEST(a_change_that_fails_changes_nothing),
      TEST(other_devices_have_the_access_that_is_said),
      TEST(says_which_device_cannot_have_access),
      TEST(goes_on_without_access_that_a_driver_cannot_give),
      TEST(keeps_the_order_of_streams),
      TEST(a_free_that_a_capture_refuses_does_not_end_it),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
