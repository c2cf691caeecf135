/* SPDX-License-Identifier: MIT */
/* Tests of core/stack/resource.c: values, actions, statistics and names of a resource that the caller holds. */
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <hipmm/buffer.h>

#include <stdlib.h>
#include <string.h>

static struct hipmm_resource *top; /* device 0's: witness, statistics, witness, statistics, pool, device */

static int start(void **state)
{
  (void)state;
  static const char graph[] =
      "{\"runtime\": \"software\", \"stack\": [\"witness\", \"statistics\", \"witness\", \"statistics\", \"pool\", "
      "\"device\"]}";
  if (hipmm_init_from_string(graph) || hipmm_resource_get_current(&top)) return -1;
  return 0;
}

static int finish(void **state)
{
  (void)state;
  hipmm_resource_release(top);
  hipmm_finalize();
  return live_on_all_devices() ? -1 : 0;
}

static struct hipmm_resource *named(const char *name)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_by_name(0, name, &resource));
  hipmm_resource_release(resource);
  return resource;
}

/* ---- Names ---- */

static void knows_its_name_type_and_device(void **state)
{
  (void)state;
  static const char *const names[] = {"witness", "statistics", "witness.2", "statistics.2", "pool", "device"};
  static const char *const types[] = {"witness", "statistics", "witness", "statistics", "pool", "device"};
  assert_ptr_equal(named("witness"), top);
  for (size_t i = 0; i < 6; i++) {
    assert_string_equal(hipmm_resource_name(named(names[i])), names[i]);
    assert_string_equal(hipmm_resource_type(named(names[i])), types[i]);
    assert_int_equal(hipmm_resource_device(named(names[i])), 0);
  }
}

static void nothing_has_no_name(void **state)
{
  (void)state;
  assert_null(hipmm_resource_name(NULL));
  assert_null(hipmm_resource_type(NULL));
  assert_int_equal(hipmm_resource_device(NULL), -1);
  hipmm_resource_retain(NULL);
  hipmm_resource_release(NULL);
}

/* ---- Values and actions ---- */

static void asks_the_nearest_below(void **state)
{
  (void)state;
  int64_t value = -1;
  assert_ok(hipmm_resource_perform(top, "act"));
  assert_ok(hipmm_resource_query(top, "actions", &value));
  assert_int_equal(value, 1);
  assert_ok(hipmm_resource_query(named("statistics"), "actions", &value)); /* of the second witness */
  assert_int_equal(value, 0);
  assert_ok(hipmm_resource_perform(named("statistics"), "act"));
  assert_ok(hipmm_resource_perform(named("witness.2"), "act"));
  assert_ok(hipmm_resource_query(named("witness.2"), "actions", &value));
  assert_int_equal(value, 2);
  assert_ok(hipmm_resource_query(top, "reserved_bytes", &value));
}

static void refuses_values_and_actions_that_nobody_has(void **state)
{
  (void)state;
  int64_t value = 77;
  assert_status(hipmm_resource_query(named("pool"), "create_device", &value), HIPMM_E_ARGUMENT);
  assert_message("pool: neither it nor a resource below it offers a value called \"create_device\"");
  assert_status(hipmm_resource_query(top, "act", &value), HIPMM_E_ARGUMENT); /* an action is no value */
  assert_status(hipmm_resource_query(top, "", &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_perform(top, "actions"), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_perform(named("device"), "push"), HIPMM_E_ARGUMENT);
  assert_message("device: neither it nor a resource below it offers an action called \"push\"");
  assert_int_equal(value, 77);
}

static void hands_a_refusal_on(void **state)
{
  (void)state;
  struct hipmm_error error = {.struct_size = sizeof error};
  assert_status(hipmm_resource_perform(top, "refuse"), HIPMM_E_STATE);
  hipmm_last_error(&error);
  assert_string_equal(error.message, "witness: not 42");
  assert_string_equal(error.resource, "witness");
}

/* NULL is the resource in force, in every function that takes one. */
static void nothing_is_the_current_resource(void **state)
{
  (void)state;
  int64_t value = 77;
  struct hipmm_statistics statistics;
  void *memory;
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
  assert_ok(hipmm_resource_query(NULL, "live_bytes", &value));
  assert_int_equal(value, 1000);
  assert_ok(hipmm_statistics_get(NULL, &statistics));
  assert_int_equal(statistics.current_bytes, 1000);
  assert_ok(hipmm_statistics_push(NULL, NULL));
  assert_ok(hipmm_statistics_pop(NULL, &statistics));
  assert_ok(hipmm_resource_perform(NULL, "act"));
  char *report = NULL;
  assert_status(hipmm_resource_report(NULL, &report), HIPMM_E_NOT_SUPPORTED);
  assert_message("witness: ");
  assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(live_on_all_devices(), 0);
}

/* A resource whose last reference was released, and what never was one. */
static void refuses_what_is_no_live_resource(void **state)
{
  (void)state;
  struct hipmm_resource *stale = NULL, *above = NULL;
  struct hipmm_statistics statistics;
  struct hipmm_buffer *buffer = NULL;
  char *text = NULL;
  void *memory = NULL;
  int64_t value = 77;
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &stale));
  hipmm_resource_release(stale);
  assert_status(hipmm_allocate(stale, 100, NULL, &memory), HIPMM_E_ARGUMENT);
  assert_message("resource is not a live resource: it never was one, or its last reference was released");
  assert_status(hipmm_deallocate(stale, &value, 100, NULL), HIPMM_E_ARGUMENT);
  struct hipmm_resource *const none[] = {stale, (struct hipmm_resource *)((char *)top + 8),
                                         (struct hipmm_resource *)&value, (struct hipmm_resource *)8};
  for (size_t i = 0; i < 4; i++) {
    assert_status(hipmm_resource_query(none[i], "actions", &value), HIPMM_E_ARGUMENT);
    assert_message("resource is not a live resource");
    assert_status(hipmm_resource_perform(none[i], "act"), HIPMM_E_ARGUMENT);
    assert_status(hipmm_resource_report(none[i], &text), HIPMM_E_ARGUMENT);
    assert_status(hipmm_resource_trim(none[i], 0), HIPMM_E_ARGUMENT);
    assert_status(hipmm_statistics_get(none[i], &statistics), HIPMM_E_ARGUMENT);
    assert_status(hipmm_statistics_push(none[i], NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_statistics_pop(none[i], NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_resource_set_current(none[i], NULL), HIPMM_E_ARGUMENT);
    assert_status(hipmm_buffer_create(none[i], 10, NULL, &buffer), HIPMM_E_ARGUMENT);
    assert_status(hipmm_resource_create(0, "pool", NULL, &none[i], 1, &above), HIPMM_E_ARGUMENT);
    assert_message("upstreams[0] is not a live resource");
    assert_null(hipmm_resource_name(none[i]));
    assert_null(hipmm_resource_type(none[i]));
    assert_int_equal(hipmm_resource_device(none[i]), -1);
    hipmm_resource_retain(none[i]);
    hipmm_resource_release(none[i]);
  }
  assert_null(memory);
  assert_null(text);
  assert_int_equal(value, 77);
}

/* A reference that the program does not have is not taken from the table of devices. */
static void a_release_too_many_is_ignored(void **state)
{
  (void)state;
  struct hipmm_resource *pool = named("pool");
  void *memory;
  for (int i = 0; i < 3; i++) hipmm_resource_release(pool);
  assert_status(hipmm_resource_query(top, "no such value", &(int64_t){0}), HIPMM_E_ARGUMENT);
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
  assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
  assert_string_equal(hipmm_resource_name(pool), "pool");
}

static void refuses_missing_arguments(void **state)
{
  (void)state;
  int64_t value = 77;
  assert_status(hipmm_resource_query(top, NULL, &value), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_query(top, "actions", NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_perform(top, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_statistics_get(NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_statistics_get(top, NULL), HIPMM_E_ARGUMENT);
  assert_int_equal(value, 77);
}

/* ---- Trimming ---- */

static void trims_itself_and_all_below_from_the_top_down(void **state)
{
  (void)state;
  int64_t first = 0, second = 0, bytes = 0;
  assert_ok(hipmm_resource_trim(top, 5000));
  assert_ok(hipmm_resource_query(named("witness"), "trim_turn", &first));
  assert_ok(hipmm_resource_query(named("witness.2"), "trim_turn", &second));
  assert_int_equal(second, first + 1);
  assert_ok(hipmm_resource_query(top, "trim_bytes", &bytes));
  assert_int_equal(bytes, 5000);
  assert_ok(hipmm_resource_trim(named("statistics"), 6000));
  assert_ok(hipmm_resource_query(top, "trim_bytes", &bytes));
  assert_int_equal(bytes, 5000); /* what is above is left alone */
  assert_ok(hipmm_resource_query(named("witness.2"), "trim_bytes", &bytes));
  assert_int_equal(bytes, 6000);
}

static void gives_idle_memory_back_and_tells_what_is_held(void **state)
{
  (void)state;
  void *memory;
  size_t now = 0, peak = 0, trimmed = 0;
  assert_ok(hipmm_allocate(top, 5 * MIB, NULL, &memory));
  assert_ok(hipmm_device_held_bytes(0, &now, &peak));
  assert_in_range(now, 5 * MIB, 64 * MIB);
  assert_ok(hipmm_resource_trim(top, 0));
  assert_ok(hipmm_device_held_bytes(0, &trimmed, NULL));
  assert_in_range(trimmed, 5 * MIB, now);
  assert_ok(hipmm_deallocate(top, memory, 5 * MIB, NULL));
  assert_ok(hipmm_resource_trim(top, 0));
  assert_ok(hipmm_device_held_bytes(0, &now, &trimmed));
  assert_int_equal(now, 0);
  assert_int_equal(trimmed, peak);
  assert_int_equal(live_on_all_devices(), 0);
}

/* ---- Statistics ---- */

static void assert_statistics(const struct hipmm_statistics *got, int64_t current_bytes, int64_t current_count,
                              int64_t peak_bytes, int64_t peak_count, int64_t total_bytes, int64_t total_count)
{
  assert_int_equal(got->current_bytes, current_bytes);
  assert_int_equal(got->current_count, current_count);
  assert_int_equal(got->peak_bytes, peak_bytes);
  assert_int_equal(got->peak_count, peak_count);
  assert_int_equal(got->total_bytes, total_bytes);
  assert_int_equal(got->total_count, total_count);
}

static void counts_what_is_requested(void **state)
{
  (void)state;
  struct hipmm_statistics statistics;
  void *first, *second;
  assert_ok(hipmm_allocate(top, 100, NULL, &first));
  assert_ok(hipmm_allocate(top, 1000, NULL, &second));
  assert_ok(hipmm_deallocate(top, first, 100, NULL));
  assert_ok(hipmm_statistics_get(top, &statistics));
  assert_statistics(&statistics, 1000, 1, 1100, 2, 1100, 2);
  assert_ok(hipmm_deallocate(top, second, 0, NULL)); /* the size is found below */
  assert_ok(hipmm_statistics_get(top, &statistics));
  assert_statistics(&statistics, 0, 0, 1100, 2, 1100, 2);
}

/* As RMM: a child's counters start at zero, may become negative, and are merged into the parent's. */
static void pushes_and_pops(void **state)
{
  (void)state;
  struct hipmm_statistics statistics;
  void *first, *second;
  assert_ok(hipmm_allocate(top, 100, NULL, &first));
  assert_ok(hipmm_statistics_push(top, &statistics));
  assert_statistics(&statistics, 100, 1, 100, 1, 100, 1);
  assert_ok(hipmm_allocate(top, 30, NULL, &second));
  assert_ok(hipmm_deallocate(top, second, 30, NULL));
  assert_ok(hipmm_deallocate(top, first, 100, NULL));
  assert_ok(hipmm_statistics_pop(top, &statistics));
  assert_statistics(&statistics, -100, -1, 30, 1, 30, 1);
  assert_ok(hipmm_statistics_get(top, &statistics));
  assert_statistics(&statistics, 0, 0, 130, 2, 130, 2);
  assert_ok(hipmm_statistics_get(named("witness.2"), &statistics)); /* the lower counter saw no scope */
  assert_statistics(&statistics, 0, 0, 130, 2, 130, 2);
  assert_ok(hipmm_statistics_push(top, NULL));
  assert_ok(hipmm_statistics_pop(top, NULL));
  memset(&statistics, 0x5a, sizeof statistics);
  struct hipmm_statistics untouched = statistics;
  assert_status(hipmm_statistics_pop(top, &statistics), HIPMM_E_STATE);
  assert_memory_equal(&statistics, &untouched, sizeof statistics);
}

static void has_no_statistics_without_the_type(void **state)
{
  (void)state;
  struct hipmm_statistics statistics;
  static const char advice[] =
      "pool: neither it nor a resource below it is a statistics resource, which counts allocations; put one on top of "
      "it, as in {\"stack\": [\"statistics\", \"pool\", \"device\"]}";
  assert_status(hipmm_statistics_get(named("pool"), &statistics), HIPMM_E_ARGUMENT);
  assert_string_equal(hipmm_last_error_message(), advice);
  assert_status(hipmm_statistics_push(named("pool"), NULL), HIPMM_E_ARGUMENT);
  assert_string_equal(hipmm_last_error_message(), advice);
  assert_status(hipmm_statistics_pop(named("device"), NULL), HIPMM_E_ARGUMENT);
}

#define resource_test(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      resource_test(knows_its_name_type_and_device),
      resource_test(nothing_has_no_name),
      resource_test(asks_the_nearest_below),
      resource_test(refuses_values_and_actions_that_nobody_has),
      resource_test(hands_a_refusal_on),
      resource_test(nothing_is_the_current_resource),
      resource_test(refuses_what_is_no_live_resource),
      resource_test(a_release_too_many_is_ignored),
      resource_test(refuses_missing_arguments),
      resource_test(trims_itself_and_all_below_from_the_top_down),
      resource_test(gives_idle_memory_back_and_tells_what_is_held),
      resource_test(counts_what_is_requested),
      resource_test(pushes_and_pops),
      resource_test(has_no_statistics_without_the_type),
  };
  return cmocka_run_group_tests_name("resource", tests, NULL, NULL);
}
