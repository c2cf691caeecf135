/* SPDX-License-Identifier: MIT */
/* Tests of core/call/device_table.c: which resource is in force on which device, under threads, and what becomes of
 * resources that are held past the end. */
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <hipmm/memory.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char graph[] = "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"64MiB\"}, "
                            "\"stack\": [\"statistics\", {\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]}";

static int start(void **state)
{
  (void)state;
  if (hipmm_init_from_string(graph)) return -1;
  return hip_table()->SetDevice(0);
}

static int finish(void **state)
{
  (void)state;
  hipmm_finalize();
  uint64_t lost = live_on_all_devices();
  if (lost) print_error("%llu blocks lost\n", (unsigned long long)lost);
  software()->reset();
  return lost ? -1 : 0;
}

static struct hipmm_resource *held(int device, const char *name)
{
  struct hipmm_resource *resource = NULL;
  if (name)
    assert_ok(hipmm_resource_get_by_name(device, name, &resource));
  else
    assert_ok(hipmm_resource_get_for_device(device, &resource));
  return resource;
}

static void assert_current(int device, const char *name)
{
  struct hipmm_resource *resource = held(device, NULL);
  assert_string_equal(hipmm_resource_name(resource), name);
  assert_int_equal(hipmm_resource_device(resource), device);
  hipmm_resource_release(resource);
}

/* ---- Get ---- */

static void current_is_the_threads_device(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  int device = -1;
  for (int current = 0; current < 2; current++) {
    hip_table()->SetDevice(current);
    assert_ok(hipmm_device_current(&device));
    assert_int_equal(device, current);
    assert_ok(hipmm_resource_get_current(&resource));
    assert_int_equal(hipmm_resource_device(resource), current);
    hipmm_resource_release(resource);
  }
}

static void counts_devices(void **state)
{
  (void)state;
  int count = -1;
  assert_ok(hipmm_device_count(&count));
  assert_int_equal(count, 2);
}

static void refuses_devices_that_do_not_exist(void **state)
{
  (void)state;
  static const int devices[] = {-1, 2, 63, 64, 1000000, INT32_MIN, INT32_MAX};
  struct hipmm_resource *resource = NULL;
  size_t now = 77, peak = 77;
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    int device = devices[i];
    assert_status(hipmm_resource_get_for_device(device, &resource), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_resource_get_by_name(device, "pool", &resource), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_resource_set_for_device(device, NULL, &resource), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_resource_reset_for_device(device), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_device_held_bytes(device, &now, &peak), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_stream_retain(device, NULL), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_stream_retire(device, NULL), HIPMM_E_NO_DEVICE);
    assert_message("does not exist: runtime software has 2, numbered from 0");
    assert_null(resource);
    assert_int_equal(now + peak, 154);
  }
}

static void a_free_builds_no_stack(void **state)
{
  (void)state;
  char *text;
  assert_status(hipmm_deallocate(NULL, &text, 100, NULL), HIPMM_E_POINTER);
  assert_message("nothing was allocated from device 0: it has no stack yet");
  assert_status(hipmm_deallocate_aligned(NULL, &text, 100, 512, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate_batch(NULL, 1, (void *[]){&text}, NULL, NULL), HIPMM_E_POINTER);
  assert_ok(hipmm_deallocate_batch(NULL, 0, NULL, NULL, NULL));
  assert_ok(hipmm_deallocate(NULL, NULL, 0, NULL));
  void *moved = NULL;
  assert_status(hipmm_reallocate(NULL, &text, 0, 100, NULL, &moved), HIPMM_E_POINTER);
  assert_status(hipmm_reallocate(NULL, &text, 100, 0, NULL, &moved), HIPMM_E_POINTER);
  assert_null(moved);
  assert_status(hipmm_list("devices/0", &text), HIPMM_E_STATE);
  assert_message("the stack of device 0 is not built yet");
}

static void refuses_missing_arguments(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL;
  assert_status(hipmm_resource_get_for_device(0, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_get_current(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_get_by_name(0, "pool", NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_get_by_name(0, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_message("name is NULL");
  assert_status(hipmm_device_count(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_device_current(NULL), HIPMM_E_ARGUMENT);
  assert_null(resource);
  assert_ok(hipmm_device_held_bytes(0, NULL, NULL));
}

static void finds_resources_by_name(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL;
  static const char *const names[] = {"statistics", "pool", "device"};
  for (size_t i = 0; i < 3; i++) {
    struct hipmm_resource *one = held(1, names[i]), *again = held(1, names[i]);
    assert_string_equal(hipmm_resource_name(one), names[i]);
    assert_string_equal(hipmm_resource_type(one), names[i]);
    assert_ptr_equal(one, again);
    hipmm_resource_release(one);
    hipmm_resource_release(again);
  }
  assert_status(hipmm_resource_get_by_name(1, "poo", &resource), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_get_by_name(1, "", &resource), HIPMM_E_ARGUMENT);
  assert_null(resource);
}

/* ---- Set and reset ---- */

static void makes_another_current_and_gives_the_one_before(void **state)
{
  (void)state;
  struct hipmm_resource *pool = held(1, "pool"), *previous = NULL;
  assert_ok(hipmm_resource_set_for_device(1, pool, &previous));
  assert_string_equal(hipmm_resource_name(previous), "statistics");
  hipmm_resource_release(previous);
  hipmm_resource_release(pool); /* the table keeps its own */
  assert_current(1, "pool");
  assert_current(0, "statistics");
  assert_ok(hipmm_resource_set_for_device(1, NULL, &previous));
  assert_string_equal(hipmm_resource_name(previous), "pool");
  hipmm_resource_release(previous);
  assert_current(1, "statistics");
}

static void sets_the_current_devices(void **state)
{
  (void)state;
  struct hipmm_resource *source = held(1, "device"), *previous = NULL;
  hip_table()->SetDevice(1);
  assert_ok(hipmm_resource_set_current(source, &previous));
  assert_int_equal(hipmm_resource_device(previous), 1);
  hipmm_resource_release(previous);
  assert_current(1, "device");
  void *memory;
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
  struct hipmm_resource *pool = held(1, "pool");
  assert_status(hipmm_deallocate(pool, memory, 1000, NULL), HIPMM_E_POINTER);
  hipmm_resource_release(pool);
  assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
  assert_ok(hipmm_resource_reset_current());
  assert_current(1, "statistics");
  assert_current(0, "statistics");
  hipmm_resource_release(source);
}

static void refuses_another_devices_resource(void **state)
{
  (void)state;
  struct hipmm_resource *pool = held(0, "pool"), *previous = NULL;
  assert_status(hipmm_resource_set_for_device(1, pool, &previous), HIPMM_E_ARGUMENT);
  assert_message("resource pool serves device 0 and cannot be made current on device 1");
  assert_null(previous);
  assert_current(1, "statistics");
  hipmm_resource_release(pool);
}

static void may_be_set_and_reset_for_ever(void **state)
{
  (void)state;
  struct hipmm_resource *pool = held(0, "pool");
  for (int i = 0; i < 1000; i++) {
    assert_ok(hipmm_resource_set_for_device(0, i % 2 ? pool : NULL, NULL));
    assert_ok(hipmm_resource_reset_for_device(0));
  }
  hipmm_resource_release(pool);
  assert_current(0, "statistics");
}

/* A pool that holds memory from its creation on. */
static struct hipmm_resource *new_pool(int device)
{
  struct hipmm_resource *device_memory = held(device, "device"), *pool = NULL;
  assert_ok(hipmm_resource_create(device, "pool", "{\"initial_size\": \"1MiB\", \"growth\": \"segments\"}",
                                  &device_memory, 1, &pool));
  hipmm_resource_release(device_memory);
  return pool;
}

/* The table keeps a resource as long as it is in force. */
static void a_resource_that_is_replaced_is_released(void **state)
{
  (void)state;
  struct hipmm_resource *previous = NULL;
  for (int i = 0; i < 100; i++) {
    struct hipmm_resource *pool = new_pool(0);
    assert_ok(hipmm_resource_set_for_device(0, pool, NULL));
    hipmm_resource_release(pool);
    assert_int_equal(live_on(0), 1); /* 64 MiB would not do for all of them */
    void *memory;
    assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
    assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
  }
  assert_ok(hipmm_resource_set_for_device(0, NULL, &previous));
  assert_int_equal(live_on(0), 1); /* of the caller, from now on */
  assert_string_equal(hipmm_resource_type(previous), "pool");
  hipmm_resource_release(previous);
  assert_int_equal(live_on(0), 0);
}

static int make_another_current(void *began_with, size_t bytes)
{
  struct hipmm_resource **above = began_with, *pool = new_pool(0);
  (void)bytes;
  if (hipmm_resource_set_for_device(0, pool, NULL) || !hipmm_resource_name(*above)) *above = NULL;
  hipmm_resource_release(pool);
  return 0;
}

/* A call that began with the resource in force ends with it. */
static void a_call_keeps_the_resource_that_it_began_with(void **state)
{
  (void)state;
  struct hipmm_resource *above = NULL, *pool = new_pool(0);
  const struct hipmm_failure_handler handler = {
      .struct_size = sizeof handler, .callback = make_another_current, .arg = &above};
  const struct hipmm_object object = {.option = "callback", .object = &handler};
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = "failure_callback",
                                      .upstreams = &pool,
                                      .n_upstreams = 1,
                                      .objects = &object,
                                      .n_objects = 1};
  assert_ok(hipmm_resource_create_from(0, &recipe, &above));
  assert_ok(hipmm_resource_set_for_device(0, above, NULL));
  hipmm_resource_release(above);
  hipmm_resource_release(pool);
  void *memory = NULL;
  assert_status(hipmm_allocate(NULL, 1ull << 40, NULL, &memory), HIPMM_E_OUT_OF_MEMORY);
  assert_non_null(above);
  assert_ok(hipmm_resource_reset_for_device(0));
  assert_null(hipmm_resource_name(above));
  assert_int_equal(live_on(0), 0);
}

/* ---- Threads ---- */

static atomic_bool stop;

static void *allocate_from_the_current_resource(void *unused)
{
  (void)unused;
  while (!atomic_load(&stop)) {
    struct hipmm_resource *resource;
    void *memory;
    if (hipmm_allocate(NULL, 0, NULL, &memory)) return &stop;
    if (hipmm_resource_get_current(&resource)) return &stop;
    if (!hipmm_resource_name(resource)) return &stop;
    hipmm_resource_release(resource);
    sched_yield(); /* valgrind, which runs one thread at a time, could stop this one within a call for long */
  }
  return NULL;
}

/* While a thread is in a call, what it may have is kept. */
static void serves_threads_while_resources_come_and_go(void **state)
{
  (void)state;
  pthread_t threads[2];
  atomic_store(&stop, false);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, allocate_from_the_current_resource, NULL), 0);
  for (int i = 0; i < 30; i++) {
    struct hipmm_resource *pool = new_pool(0);
    assert_ok(hipmm_resource_set_for_device(0, pool, NULL));
    hipmm_resource_release(pool);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 2; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_ok(hipmm_resource_reset_for_device(0));
  assert_int_equal(live_on(0), 0);
}

static void *allocate_from_whatever_is_current(void *unused)
{
  (void)unused;
  while (!atomic_load(&stop)) {
    struct hipmm_resource *resource;
    void *memory;
    if (hipmm_resource_get_for_device(0, &resource)) return &stop;
    if (hipmm_allocate(resource, 1000, NULL, &memory)) return &stop;
    if (hipmm_deallocate(resource, memory, 1000, NULL)) return &stop;
    hipmm_resource_release(resource);
  }
  return NULL;
}

static void serves_threads_while_it_changes(void **state)
{
  (void)state;
  pthread_t threads[4];
  struct hipmm_resource *pool = held(0, "pool");
  atomic_store(&stop, false);
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, allocate_from_whatever_is_current, NULL), 0);
  for (int i = 0; i < 500; i++) {
    struct hipmm_resource *previous = NULL;
    assert_ok(hipmm_resource_set_for_device(0, i % 2 ? pool : NULL, &previous));
    assert_non_null(previous);
    hipmm_resource_release(previous);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  hipmm_resource_release(pool);
}

/* ---- Holding past the end ---- */

static void a_held_resource_works_past_finalize(void **state)
{
  (void)state;
  struct hipmm_resource *pool = held(1, "pool");
  void *before, *after;
  int64_t value = 0;
  assert_ok(hipmm_allocate(pool, 1000, NULL, &before));
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_allocate(pool, 2000, NULL, &after));
  assert_ok(hipmm_resource_query(pool, "live_bytes", &value));
  assert_int_equal(value, 3000);
  assert_string_equal(hipmm_resource_name(pool), "pool");
  assert_int_equal(hipmm_resource_device(pool), 1);
  assert_ok(hipmm_deallocate(pool, before, 1000, NULL));
  assert_ok(hipmm_deallocate(pool, after, 0, NULL));
  assert_ok(hipmm_resource_trim(pool, 0));
  assert_status(hipmm_allocate(NULL, 1000, NULL, &after), HIPMM_E_STATE);
  hipmm_resource_retain(pool);
  hipmm_resource_release(pool);
  assert_string_equal(hipmm_resource_type(pool), "pool");
  hipmm_resource_release(pool);
}

static void a_resource_of_an_earlier_time_may_be_made_current(void **state)
{
  (void)state;
  struct hipmm_resource *old = held(0, "pool"), *previous = NULL;
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_init_from_string(graph));
  assert_ok(hipmm_resource_set_for_device(0, old, &previous));
  assert_ptr_not_equal(previous, old);
  hipmm_resource_release(previous);
  hipmm_resource_release(old);
  void *memory;
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
  assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
}

#define device_test(name) cmocka_unit_test_setup_teardown(name, start, finish)

/* ---- Threads that build ---- */

/* Two threads that build on a device each, and what the program's function below gets from the other device meanwhile. */
static struct {
  pthread_barrier_t both;
  const char *name; /* of what they build; NULL: the devices' stacks */
  enum hipmm_status others[2];
} builders;

static _Thread_local int built_device = -1;

static enum hipmm_status get_built(int device)
{
  struct hipmm_resource *resource;
  enum hipmm_status status = builders.name ? hipmm_resource_get_by_name(device, builders.name, &resource)
                                           : hipmm_resource_get_for_device(device, &resource);
  if (!status) hipmm_resource_release(resource);
  return status;
}

static int get_from_the_other(void *unused, size_t bytes)
{
  int device = built_device;
  (void)unused, (void)bytes;
  if (device < 0) return 0;
  built_device = -1;
  pthread_barrier_wait(&builders.both);
  builders.others[device] = get_built(1 - device);
  pthread_barrier_wait(&builders.both);
  return 0;
}

static void *build_too_large(void *device)
{
  built_device = (int)(uintptr_t)device;
  return get_built(built_device) == HIPMM_E_OUT_OF_MEMORY ? NULL : &builders;
}

static void builders_do_not_wait_for_each_other(void **state)
{
  static const char *const graphs[] = {"'large'", "'calls'"};
  const struct hipmm_failure_handler handler = {sizeof handler, get_from_the_other, NULL};
  (void)state;
  assert_ok(hipmm_failure_handler_register("meets", &handler));
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    pthread_t threads[2];
    char text[500];
    snprintf(
        text, sizeof text,
        "{'runtime': {'type': 'software', 'devices': 2, 'memory': '64MiB'}, 'resources': {'large': {'type': 'pool', "
        "'initial_size': '100MiB', 'upstream': 'calls'}, 'calls': {'type': 'failure_callback', 'callback': 'meets', "
        "'upstream': 'memory'}, 'memory': {'type': 'device'}}, 'devices': {'default': %s}}",
        graphs[i]);
    for (char *quote = text; (quote = strchr(quote, '\''));) *quote = '"';
    hipmm_finalize();
    assert_ok(hipmm_init_from_string(text));
    builders.name = i ? "large" : NULL;
    for (int device = 0; i && device < 2; device++) hipmm_resource_release(held(device, NULL));
    pthread_barrier_init(&builders.both, NULL, 2);
    alarm(20);
    for (int device = 0; device < 2; device++)
      assert_int_equal(pthread_create(&threads[device], NULL, build_too_large, (void *)(uintptr_t)device), 0);
    for (int device = 0; device < 2; device++) {
      void *failed;
      pthread_join(threads[device], &failed);
      assert_null(failed);
      assert_int_equal(builders.others[device], HIPMM_E_STATE);
    }
    alarm(0);
    pthread_barrier_destroy(&builders.both);
  }
  assert_ok(hipmm_failure_handler_register("meets", NULL));
}

int main(void)
{
  log_to_file("error");
  const struct CMUnitTest tests[] = {
      device_test(current_is_the_threads_device),
      device_test(counts_devices),
      device_test(refuses_devices_that_do_not_exist),
      device_test(a_free_builds_no_stack),
      device_test(refuses_missing_arguments),
      device_test(finds_resources_by_name),
      device_test(makes_another_current_and_gives_the_one_before),
      device_test(sets_the_current_devices),
      device_test(refuses_another_devices_resource),
      device_test(may_be_set_and_reset_for_ever),
      device_test(a_resource_that_is_replaced_is_released),
      device_test(a_call_keeps_the_resource_that_it_began_with),
      device_test(serves_threads_while_resources_come_and_go),
      device_test(serves_threads_while_it_changes),
      device_test(a_held_resource_works_past_finalize),
      device_test(a_resource_of_an_earlier_time_may_be_made_current),
      device_test(builders_do_not_wait_for_each_other),
  };
  return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
