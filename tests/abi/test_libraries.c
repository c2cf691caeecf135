/* SPDX-License-Identifier: MIT */
/* Tests of several users of hipmm in one process: the program, linked to libhipmm.so, and two libraries that it opens when
 * it runs. Each has a graph of its own or shares the table of devices, and they begin and end in any order. */
#include "library.h"

#include <hipmm/stream.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char graph[] = "{\"runtime\": {\"type\": \"software\", \"memory\": \"256MiB\"}, "
                            "\"stack\": [\"statistics\", \"device\"]}";

#define assert_ok(call)                                                                         \
  do {                                                                                          \
    if (call) fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, #call, hipmm_last_error_message()); \
  } while (0)

/* ---- The program, as a user like the libraries ---- */

static void *memory;

static enum hipmm_status program_open(int has_own_graph)
{
  (void)has_own_graph;
  return hipmm_init_from_string(graph);
}

static enum hipmm_status program_use(void)
{
  enum hipmm_status status = hipmm_allocate(NULL, 300, NULL, &memory);
  if (!status) memset(memory, 3, 300);
  return status;
}

static enum hipmm_status program_end_use(void)
{
  if (((char *)memory)[299] != 3) return HIPMM_E_INTERNAL;
  return hipmm_deallocate(NULL, memory, 300, NULL);
}

static const struct library program = {"program", program_open, program_use, program_end_use, hipmm_finalize, NULL};

enum { PROGRAM, FIRST, SECOND, USERS };

static const struct library *users[USERS] = {&program, NULL, NULL};

static const struct library *open_library(const char *name)
{
  char file[4096];
  snprintf(file, sizeof file, "%s/tests/abi/.libs/%s.so", getenv("top_builddir"), name);
  void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const struct library *found = object ? dlsym(object, "library") : NULL;
  if (!found) print_error("%s\n", dlerror());
  return found;
}

static int open_libraries(void **state)
{
  (void)state;
  users[FIRST] = open_library("first_library");
  users[SECOND] = open_library("second_library");
  return users[FIRST] && users[SECOND] ? 0 : -1;
}

/* ---- Orders ---- */

static const int orders[][USERS] = {{PROGRAM, FIRST, SECOND}, {PROGRAM, SECOND, FIRST}, {FIRST, PROGRAM, SECOND},
                                    {FIRST, SECOND, PROGRAM}, {SECOND, PROGRAM, FIRST}, {SECOND, FIRST, PROGRAM}};

enum { ORDERS = sizeof orders / sizeof *orders };

/* Those of `active` begin in one order and end in another; whoever has begun can use memory until it ends. */
static void live_together(const int *begin, const int *end, const bool *active, const int *has_own_graph)
{
  for (int i = 0; i < USERS; i++) {
    const struct library *user = users[begin[i]];
    if (!active[begin[i]]) continue;
    assert_ok(user->open(has_own_graph[begin[i]]));
    assert_ok(user->use());
  }
  for (int i = 0; i < USERS; i++) {
    const struct library *user = users[end[i]];
    if (!active[end[i]]) continue;
    assert_ok(user->end_use());
    assert_ok(user->use()); /* also after others have ended */
    assert_ok(user->end_use());
    assert_ok(user->close());
  }
  assert_false(hipmm_is_initialized());
}

static void live_in_all_orders(const bool *active, const int *has_own_graph)
{
  for (int begin = 0; begin < ORDERS; begin++)
    for (int end = 0; end < ORDERS; end++) live_together(orders[begin], orders[end], active, has_own_graph);
}

/* The program's graph is the one that the libraries would find. */
static void share_the_programs_graph(void **state)
{
  (void)state;
  char file[] = "/tmp/hipmm-XXXXXX";
  int descriptor = mkstemp(file);
  assert_true(descriptor >= 0 && write(descriptor, graph, strlen(graph)) == (ssize_t)strlen(graph));
  close(descriptor);
  setenv("HIPMM_CONFIG", file, 1);
  live_in_all_orders((bool[]){true, true, true}, (int[]){0, 0, 0});
  live_in_all_orders((bool[]){false, true, true}, (int[]){0, 0, 0});
  unsetenv("HIPMM_CONFIG");
  unlink(file);
}

static void have_graphs_of_their_own(void **state)
{
  (void)state;
  live_in_all_orders((bool[]){true, true, true}, (int[]){0, 1, 1});
  live_in_all_orders((bool[]){false, true, true}, (int[]){0, 1, 1});
}

static void share_or_have_a_graph(void **state)
{
  (void)state;
  static const int programs_first[][USERS] = {
      {PROGRAM, FIRST, SECOND}, {PROGRAM, SECOND, FIRST}, {SECOND, PROGRAM, FIRST}};
  for (int begin = 0; begin < 3; begin++)
    for (int end = 0; end < ORDERS; end++)
      live_together(programs_first[begin], orders[end], (bool[]){true, true, true}, (int[]){0, 0, 1});
}

/* ---- A stack beside the table ---- */

static int64_t value_at(const char *path)
{
  int64_t value = -1;
  assert_ok(hipmm_query(path, &value));
  return value;
}

static void is_listed_under_its_name(void **state)
{
  (void)state;
  char *text = NULL;
  assert_int_equal(hipmm_list(NULL, &text), HIPMM_E_STATE);
  assert_ok(users[FIRST]->open(1));
  assert_ok(users[FIRST]->use());
  assert_false(hipmm_is_initialized());
  assert_int_equal(value_at("created/first/statistics/current_bytes"), LIBRARY_BYTES);
  assert_true(value_at("created/first/held_bytes") >= LIBRARY_BYTES);
  assert_ok(hipmm_list("created/first/limiting", &text));
  assert_non_null(strstr(text, "\"created/first/limiting/limit\""));
  assert_null(strstr(text, "statistics"));
  hipmm_string_free(text);
  assert_ok(hipmm_set("created/first/limiting/limit", "1KiB"));
  assert_int_equal(hipmm_get("created/first/limitng/limit", &text), HIPMM_E_ARGUMENT);
  assert_non_null(strstr(hipmm_last_error_message(), "no resource \"limitng\"; did you mean \"limiting\"?"));
  assert_ok(hipmm_snapshot(&text));
  assert_non_null(strstr(text, "\"created/first/pool\""));
  hipmm_string_free(text);
  assert_int_equal(hipmm_query("devices/0/held_bytes", &(int64_t){0}), HIPMM_E_STATE);
  assert_ok(users[FIRST]->end_use());
  assert_ok(users[FIRST]->close());
}

static void is_not_current(void **state)
{
  (void)state;
  void *ptr;
  assert_ok(users[FIRST]->open(1));
  assert_int_equal(hipmm_allocate(NULL, 10, NULL, &ptr), HIPMM_E_STATE);
  assert_ok(hipmm_init_from_string(graph));
  struct hipmm_resource *current = NULL, *own = users[FIRST]->resource(), *above = NULL;
  assert_ok(hipmm_resource_get_current(&current));
  assert_ptr_not_equal(current, own);
  assert_string_equal(hipmm_resource_name(own), "statistics");
  hipmm_resource_release(current);

  /* It can be put in force, and resources can be made over it, which retain it. */
  assert_ok(hipmm_resource_create(0, "thread_safe", NULL, &own, 1, &above));
  assert_ok(hipmm_resource_set_current(above, NULL));
  hipmm_resource_release(above);
  assert_ok(users[FIRST]->close());
  assert_ok(hipmm_allocate(NULL, 10, NULL, &ptr));
  assert_int_equal(value_at("created/first/statistics/current_bytes"), 10);
  assert_ok(hipmm_deallocate(NULL, ptr, 10, NULL));
  assert_ok(hipmm_finalize());
}

/* A library with only a stack of its own, in a program that does not use hipmm. */
static void has_streams_devices_and_named_resources(void **state)
{
  (void)state;
  static const char json[] =
      "{\"runtime\": \"software\", \"resources\": {\"memory\": {\"type\": \"device\"}, "
      "\"main\": {\"type\": \"pool\", \"upstream\": \"memory\"}, "
      "\"weights\": {\"type\": \"statistics\", \"upstream\": \"memory\"}}, \"devices\": {\"default\": \"main\"}}";
  struct hipmm_resource *own = NULL, *weights = NULL, *source = NULL, *above = NULL, *none = NULL;
  struct hipmm_stream_pool *pool = NULL;
  struct hipmm_stream_event *event = NULL;
  hipmm_stream_t stream = NULL, pooled = NULL;
  int count = 0, device = -1, least = 0, greatest = 0;
  int64_t value = -1;
  void *ptr = NULL;
  assert_int_equal(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream), HIPMM_E_STATE);
  assert_ok(hipmm_stack_build_from_string(0, "own", json, &own));
  assert_ok(hipmm_device_count(&count));
  assert_int_equal(count, 1);
  assert_ok(hipmm_device_current(&device));
  assert_int_equal(device, 0);
  assert_ok(hipmm_stream_priority_range(0, &least, &greatest));
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_int_equal(hipmm_stream_create(1, HIPMM_STREAM_NON_BLOCKING, &pooled), HIPMM_E_NO_DEVICE);
  assert_ok(hipmm_stream_retain(0, HIPMM_PER_THREAD_STREAM));
  assert_int_equal(hipmm_stream_retain(1, HIPMM_PER_THREAD_STREAM), HIPMM_E_NO_DEVICE);
  assert_ok(hipmm_stream_pool_create(0, 2, HIPMM_STREAM_NON_BLOCKING, &pool));
  assert_ok(hipmm_stream_pool_get(pool, &pooled));
  assert_ok(hipmm_stream_event_create(0, &event));
  assert_ok(hipmm_stream_event_record(event, stream));
  assert_ok(hipmm_stream_event_wait(event, 0, pooled));
  assert_ok(hipmm_stream_event_synchronize(event));

  assert_int_equal(hipmm_query("created/own/weights/current_bytes", &value), HIPMM_E_STATE);
  assert_non_null(strstr(hipmm_last_error_message(), "get it with hipmm_stack_get_by_name()"));
  assert_ok(hipmm_stack_get_by_name(own, "weights", &weights));
  assert_ok(hipmm_stack_get_by_name(weights, "memory", &source));
  assert_int_equal(hipmm_stack_get_by_name(own, "weigths", &none), HIPMM_E_ARGUMENT);
  assert_non_null(strstr(hipmm_last_error_message(), "did you mean \"weights\"?"));
  assert_int_equal(hipmm_resource_get_by_name(0, "weights", &none), HIPMM_E_STATE);
  assert_int_equal(hipmm_stack_get_by_name(NULL, "weights", &none), HIPMM_E_STATE);
  assert_null(none);
  assert_ok(hipmm_resource_create(0, "statistics", NULL, &weights, 1, &above));
  assert_int_equal(hipmm_resource_create(0, "device", NULL, NULL, 0, &none), HIPMM_E_STATE);
  assert_ok(hipmm_allocate(above, 100, stream, &ptr));
  assert_ok(hipmm_query("created/own/weights/current_bytes", &value));
  assert_int_equal(value, 100);
  assert_ok(hipmm_deallocate(above, ptr, 100, stream));

  hipmm_resource_release(above), hipmm_resource_release(source), hipmm_resource_release(weights);
  assert_ok(hipmm_stream_event_destroy(event));
  assert_ok(hipmm_stream_pool_destroy(pool));
  assert_ok(hipmm_stream_destroy(stream));
  hipmm_resource_release(own);
  assert_int_equal(hipmm_device_count(&count), HIPMM_E_STATE);
  assert_false(hipmm_is_initialized());
}

static void refuses_wrong_arguments(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL, *second = NULL;
  static const char json[] = "{\"runtime\": \"software\", \"stack\": [\"device\"]}";
  const struct {
    int device;
    const char *name, *json, *message;
    struct hipmm_resource **out;
    enum hipmm_status status;
  } rows[] = {
      {0, NULL, NULL, "json is NULL", &resource, HIPMM_E_ARGUMENT},
      {0, NULL, json, "resource_out is NULL", NULL, HIPMM_E_ARGUMENT},
      {0, "a/b", json, "name: \"a/b\" is not a name", &resource, HIPMM_E_ARGUMENT},
      {99, NULL, json, "device 99 does not exist", &resource, HIPMM_E_NO_DEVICE},
      {-1, NULL, json, "device -1 does not exist", &resource, HIPMM_E_NO_DEVICE},
      {0, NULL, "{", "<string>:1:", &resource, HIPMM_E_SYNTAX},
      {0, NULL, "{\"stack\": [\"pol\", \"device\"]}", "/stack/0: unknown type \"pol\"", &resource, HIPMM_E_CONFIG},
      {0, NULL, "{\"runtime\": \"amd\"}", "this process already uses software", &resource, HIPMM_E_STATE},
      {0, "taken", json, "called \"taken\" was created before", &resource, HIPMM_E_ARGUMENT},
  };
  assert_ok(hipmm_stack_build_from_string(0, "taken", json, &second));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    enum hipmm_status status = hipmm_stack_build_from_string(rows[i].device, rows[i].name, rows[i].json, rows[i].out);
    if (status != rows[i].status || !strstr(hipmm_last_error_message(), rows[i].message))
      fail_msg("row %zu: %s: %s", i, hipmm_status_string(status), hipmm_last_error_message());
    assert_null(resource);
  }
  assert_int_equal(hipmm_stack_build_from_file(0, NULL, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_int_equal(hipmm_stack_build_from_file(0, NULL, "/nowhere.json", &resource), HIPMM_E_IO);
  hipmm_resource_release(second);
  char *text;
  assert_int_equal(hipmm_list(NULL, &text), HIPMM_E_STATE); /* no stack is counted any more */
}

/* A process has one runtime. While a stack uses it, it is not configured again. */
static void leaves_the_runtime_as_it_is(void **state)
{
  (void)state;
  int count = 0;
  assert_ok(users[FIRST]->open(1));
  assert_ok(hipmm_init_from_string("{\"runtime\": {\"type\": \"software\", \"devices\": 3}}"));
  assert_ok(hipmm_device_count(&count));
  assert_int_equal(count, 1);
  assert_ok(hipmm_finalize());
  assert_ok(users[FIRST]->use());
  assert_ok(users[FIRST]->end_use());
  assert_ok(users[FIRST]->close());
  assert_ok(hipmm_init_from_string("{\"runtime\": {\"type\": \"software\", \"devices\": 3}}"));
  assert_ok(hipmm_device_count(&count));
  assert_int_equal(count, 3);
  assert_ok(hipmm_finalize());
}

int main(void)
{
  char file[4096];
  snprintf(file, sizeof file, "%s/.libs/libhipmm.so", getenv("top_builddir"));
  if (access(file, F_OK)) {
    printf("1..0 # SKIP no shared library was built\n");
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_streams_devices_and_named_resources),
      cmocka_unit_test(is_listed_under_its_name),
      cmocka_unit_test(is_not_current),
      cmocka_unit_test(refuses_wrong_arguments),
      cmocka_unit_test(leaves_the_runtime_as_it_is),
      cmocka_unit_test(share_the_programs_graph),
      cmocka_unit_test(have_graphs_of_their_own),
      cmocka_unit_test(share_or_have_a_graph),
  };
  return cmocka_run_group_tests_name("libraries", tests, open_libraries, NULL);
}
