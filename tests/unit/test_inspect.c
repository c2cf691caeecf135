/* SPDX-License-Identifier: MIT */
/* Tests of hipmm/inspect.h: from pointers to blocks, and visits of what lives. */
#include <hipmm/inspect.h>
#include <hipmm/stream.h>

#include "../support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Pointers ---- */

static struct hipmm_pointer looked_up(const void *ptr)
{
  struct hipmm_pointer found = {.struct_size = sizeof found};
  assert_ok(hipmm_pointer_lookup(ptr, &found));
  hipmm_resource_release(found.resource);
  return found;
}

static void assert_unknown(const void *ptr)
{
  struct hipmm_pointer found = {.struct_size = sizeof found, .bytes = 77};
  assert_status(hipmm_pointer_lookup(ptr, &found), HIPMM_E_POINTER);
  assert_int_equal(found.bytes, 77);
}

static void finds_blocks_of_segments(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'device']");
  hipmm_stream_t stream = fixture_stream();
  char *first = fixture_allocate(1000, NULL), *second = fixture_allocate(5000, stream);
  struct hipmm_pointer one = looked_up(first), other = looked_up(second);
  assert_ptr_equal(one.resource, fixture_resource("pool"));
  assert_int_equal(one.device, 0);
  assert_ptr_equal(one.ptr, first);
  assert_int_equal(one.bytes, 1000);
  assert_true(one.usable_bytes >= 1000 && one.usable_bytes % 256 == 0);
  assert_ptr_equal((char *)one.base + one.offset, first);
  assert_true(one.offset + one.usable_bytes <= one.base_bytes);
  assert_int_equal(one.flags, HIPMM_POINTER_STREAM_KNOWN);
  assert_null(one.stream);
  assert_ptr_equal(other.stream, stream);
  assert_int_equal(one.base_bytes + (other.base == one.base ? 0 : other.base_bytes), fixture_held_bytes());
  fixture_free(first, 1000, NULL);
  assert_unknown(first);
  assert_message("was freed before");
  fixture_free(second, 5000, stream);
  fixture_drop_stream(stream);
}

/* A thread keeps small blocks for their stream: one that was freed on another stream than it was allocated for, and a stream
 * that ended, whose record the next stream gets. */
static void tells_the_stream_of_the_last_allocation(void **state)
{
  static const size_t sizes[] = {1000, 100000};
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    hipmm_stream_t first, second, third;
    assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &first));
    assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &second));
    assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &third));
    void *ptr = fixture_allocate(sizes[i], first);
    assert_ptr_equal(looked_up(ptr).stream, first);
    fixture_free(ptr, sizes[i], second);
    assert_ptr_equal(fixture_allocate(sizes[i], second), ptr);
    assert_ptr_equal(looked_up(ptr).stream, second);
    assert_ok(hipmm_stream_destroy(second));
    void *other = fixture_allocate(sizes[i], third);
    assert_ptr_equal(looked_up(other).stream, third);
    assert_ptr_equal(looked_up(ptr).stream, second);
    fixture_free(ptr, sizes[i], first);
    fixture_free(other, sizes[i], third);
    assert_ok(hipmm_stream_destroy(first));
    assert_ok(hipmm_stream_destroy(third));
  }
}

static void finds_the_chunk_behind_mapped_memory(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
  char *small = fixture_allocate(1000, NULL), *large = fixture_allocate(9 * MIB, NULL);
  struct hipmm_pointer one = looked_up(small), other = looked_up(large);
  assert_int_equal(one.flags, HIPMM_POINTER_STREAM_KNOWN | HIPMM_POINTER_MAPPED);
  assert_int_equal(other.flags, HIPMM_POINTER_STREAM_KNOWN | HIPMM_POINTER_MAPPED);
  assert_ptr_equal((char *)one.base + one.offset, small);
  assert_ptr_equal((char *)other.base + other.offset, large);
  assert_true(one.base_bytes && one.base_bytes % MIB == 0 && one.offset < one.base_bytes);
  assert_true(other.offset < other.base_bytes);
  fixture_free(small, 1000, NULL);
  fixture_free(large, 9 * MIB, NULL);
  assert_unknown(small);
  assert_unknown(large);
}

static void finds_blocks_of_every_type(void **state)
{
  (void)state;
  static const struct {
    const char *graph, *resource;
    size_t bytes, usable_bytes;
    bool is_divided, has_stream;
  } cases[] = {
      {"'stack': ['device']", "device", 1000, 1000, false, false},
      {"'stack': ['async']", "async", 1000, 1000, false, false},
      {"'stack': ['managed']", "managed", 1000, 1000, false, false},
      {"'stack': ['pinned']", "pinned", 1000, 1000, false, false},
      {"'stack': ['host']", "host", 1000, 1000, false, false},
      {"'stack': ['arena', 'device']", "arena", 1000, 1024, true, true},
      {"'stack': ['thread_safe', 'arena', 'device']", "thread_safe", 1000, 1024, true, true},
      {"'stack': [{'type': 'fixed_size', 'block_size': 4096}, 'device']", "fixed_size", 1000, 4096, true, true},
      {"'stack': [{'type': 'binning', 'bins': [{'size': 4096}]}, 'device']", "binning", 1000, 4096, true, true},
      {"'stack': [{'type': 'binning', 'bins': [{'size': 4096}]}, 'device']", "device", 5000, 5000, false, false},
      {"'stack': [{'type': 'limiting', 'limit': '64MiB'}, 'pool', 'async']", "pool", 1000, 1024, true, true},
      {"'stack': [{'type': 'fixed_size', 'block_size': 4096}, 'arena', 'device']", "fixed_size", 9, 4096, true, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture_start(cases[i].graph);
    char *first = fixture_allocate(cases[i].bytes, NULL), *second = fixture_allocate(cases[i].bytes, NULL);
    for (char *ptr = first;; ptr = second) {
      struct hipmm_pointer found = looked_up(ptr), inside = looked_up(ptr + cases[i].bytes - 1);
      assert_string_equal(hipmm_resource_name(found.resource), cases[i].resource);
      assert_ptr_equal(found.ptr, ptr);
      assert_int_equal(found.bytes, cases[i].bytes);
      assert_int_equal(found.usable_bytes, cases[i].usable_bytes);
      assert_int_equal(!!(found.flags & HIPMM_POINTER_STREAM_KNOWN), cases[i].has_stream);
      assert_ptr_equal((char *)found.base + found.offset, ptr);
      assert_true(found.offset + found.bytes <= found.base_bytes);
      if (!cases[i].is_divided) assert_int_equal(found.offset, 0);
      assert_memory_equal(&inside, &found, sizeof found);
      if (ptr == second) break;
    }
    assert_unknown(second + cases[i].usable_bytes + 100 * MIB);
    fixture_free(first, cases[i].bytes, NULL);
    assert_unknown(first);
    assert_unknown(first + 5);
    fixture_free(second, cases[i].bytes, NULL);
    fixture_teardown(state);
  }
}

/* A resource made in code depends on one of the device's stack, and both have a block at one address. */
static void finds_the_resource_nearest_to_the_program(void **state)
{
  (void)state;
  void *ptr = NULL;
  struct hipmm_resource *pool = NULL, *device;
  fixture_start("'stack': ['device']");
  device = fixture_resource("device");
  assert_ok(hipmm_resource_create(0, "pool", "{\"growth\": \"segments\"}", &device, 1, &pool));
  assert_ok(hipmm_allocate(pool, 100, NULL, &ptr));
  struct hipmm_pointer found = {.struct_size = sizeof found};
  assert_ok(hipmm_pointer_lookup(ptr, &found));
  assert_ptr_equal(found.resource, pool);
  assert_ok(hipmm_deallocate(found.resource, found.ptr, found.bytes, NULL));
  assert_unknown(ptr); /* the start of a block of the device, which the pool divides */
  hipmm_resource_release(pool);
  hipmm_resource_release(found.resource); /* the last reference */
  assert_int_equal(fixture_held_bytes(), 0);
}

/* A library has a stack of its own in a program that does not use hipmm. */
static void finds_blocks_without_initialisation(void **state)
{
  (void)state;
  void *ptr;
  struct hipmm_resource *pool;
  assert_ok(
      hipmm_stack_build_from_string(0, NULL, "{\"runtime\": \"software\", \"stack\": [\"pool\", \"device\"]}", &pool));
  assert_ok(hipmm_allocate(pool, 1000, NULL, &ptr));
  struct hipmm_pointer found = looked_up((char *)ptr + 10);
  assert_ptr_equal(found.resource, pool);
  assert_ptr_equal(found.ptr, ptr);
  assert_ok(hipmm_deallocate(pool, ptr, 1000, NULL));
  assert_unknown(ptr);
  hipmm_resource_release(pool);
  assert_status(hipmm_pointer_lookup(ptr, &found), HIPMM_E_STATE);
}

static void refuses_foreign_pointers(void **state)
{
  (void)state;
  struct hipmm_pointer found = {.struct_size = sizeof found};
  void *foreign = NULL, *heap = malloc(100);
  int local = 0;
  assert_status(hipmm_pointer_lookup(&local, &found), HIPMM_E_STATE);
  fixture_start("'stack': ['pool', 'device']");
  assert_int_equal(fixture_hip()->Malloc(&foreign, 1000), 0);
  assert_unknown(foreign);
  assert_message("is in no live block of hipmm: it is foreign, or was freed before");
  assert_unknown(heap);
  assert_unknown(&local);
  assert_unknown((void *)(uintptr_t)-1);
  assert_status(hipmm_pointer_lookup(NULL, &found), HIPMM_E_ARGUMENT);
  assert_message("ptr is NULL");
  assert_status(hipmm_pointer_lookup(heap, NULL), HIPMM_E_ARGUMENT);
  found.struct_size = 3;
  assert_status(hipmm_pointer_lookup(heap, &found), HIPMM_E_ARGUMENT);
  assert_message("struct_size of the pointer is 3");
  assert_int_equal(fixture_hip()->Free(foreign), 0);
  free(heap);
}

/* A program of an older header has a smaller struct. A success leaves the thread's error as it was. */
static void writes_no_more_than_there_is_room_for(void **state)
{
  (void)state;
  struct hipmm_pointer found = {.struct_size = offsetof(struct hipmm_pointer, usable_bytes), .base_bytes = 77};
  fixture_start("'stack': ['pool', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_unknown(&found);
  assert_ok(hipmm_pointer_lookup(ptr, &found));
  assert_message("is foreign");
  assert_int_equal(found.struct_size, offsetof(struct hipmm_pointer, usable_bytes));
  assert_int_equal(found.bytes, 1000);
  assert_int_equal(found.base_bytes, 77);
  hipmm_resource_release(found.resource);
  fixture_free(ptr, 1000, NULL);
}

/* ---- Resources ---- */

struct names {
  char text[400];
};

static void add_name(void *arg, struct hipmm_resource *resource)
{
  struct names *names = arg;
  size_t used = strlen(names->text);
  snprintf(names->text + used, sizeof names->text - used, "%d:%s ", hipmm_resource_device(resource),
           hipmm_resource_name(resource));
  int64_t value; /* the visitor may call hipmm */
  if (hipmm_resource_query(resource, "reserved_bytes", &value)) names->text[used] = '?';
}

static void visits_every_resource(void **state)
{
  (void)state;
  struct names names = {""};
  struct hipmm_resource *made = NULL, *pool, *other;
  fixture_start("'stack': ['statistics', 'pool', 'device']");
  pool = fixture_resource("pool");
  assert_ok(hipmm_resource_get_for_device(1, &other));
  assert_ok(hipmm_resource_create(0, "statistics", NULL, &pool, 1, &made));
  assert_ok(hipmm_resource_visit(-1, add_name, &names));
  assert_contains(names.text, "0:statistics 0:pool ?:device 1:statistics 1:pool ?:device 0:statistics ");
  names.text[0] = '\0';
  assert_ok(hipmm_resource_visit(1, add_name, &names));
  assert_string_equal(names.text, "1:statistics 1:pool ?:device ");
  assert_status(hipmm_resource_visit(9, add_name, &names), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_resource_visit(0, NULL, &names), HIPMM_E_ARGUMENT);
  hipmm_resource_release(made);
  hipmm_resource_release(other);
}

static void goes_from_a_resource_to_its_upstreams(void **state)
{
  (void)state;
  size_t count = 0;
  struct hipmm_resource *found = NULL;
  fixture_start("'resources': {'small': {'type': 'pool', 'upstream': 'device'}, 'device': {'type': 'device'}, 'top': "
                "{'type': 'binning', 'upstream': 'device', 'bins': [{'size': 4096, 'resource': 'small'}]}}, "
                "'devices': {'default': 'top'}");
  assert_ok(hipmm_resource_upstream_count(NULL, &count));
  assert_int_equal(count, 2);
  assert_ok(hipmm_resource_upstream(NULL, 0, &found));
  assert_ptr_equal(found, fixture_resource("device"));
  hipmm_resource_release(found);
  assert_ok(hipmm_resource_upstream(fixture_resource("top"), 1, &found));
  assert_ptr_equal(found, fixture_resource("small"));
  assert_int_equal(hipmm_resource_is_equal(found, fixture_resource("small")), 1);
  assert_int_equal(hipmm_resource_is_equal(found, fixture_resource("device")), 0);
  assert_int_equal(hipmm_resource_is_equal(NULL, NULL), 0);
  assert_status(hipmm_resource_upstream(NULL, 2, &found), HIPMM_E_ARGUMENT);
  assert_message("index 2: top has 2 upstreams, numbered from 0");
  assert_status(hipmm_resource_upstream(NULL, 0, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_upstream_count(NULL, NULL), HIPMM_E_ARGUMENT);
  hipmm_resource_release(found);
}

static void tells_who_may_access_the_memory(void **state)
{
  static const struct {
    const char *graph;
    unsigned access;
  } cases[] = {
      {"'stack': ['pool', 'device']", HIPMM_ACCESS_DEVICE},
      {"'stack': ['async']", HIPMM_ACCESS_DEVICE},
      {"'stack': ['statistics', 'managed']", HIPMM_ACCESS_DEVICE | HIPMM_ACCESS_HOST},
      {"'stack': ['pool', 'pinned']", HIPMM_ACCESS_DEVICE | HIPMM_ACCESS_HOST},
      {"'stack': ['pool', 'host']", HIPMM_ACCESS_HOST},
      {"'resources': {'top': {'type': 'fallback', 'upstream': ['device', 'pinned']}, 'device': {'type': 'device'}, "
       "'pinned': {'type': 'pinned'}}, 'devices': {'default': 'top'}",
       HIPMM_ACCESS_DEVICE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned access = 77;
    fixture_start(cases[i].graph);
    assert_ok(hipmm_resource_access(NULL, &access));
    assert_int_equal(access, cases[i].access);
    assert_status(hipmm_resource_access(NULL, NULL), HIPMM_E_ARGUMENT);
    fixture_teardown(state);
  }
}

static void hands_the_drivers_pool_out(void **state)
{
  void *pool = NULL, *memory = NULL;
  fixture_start("'stack': ['statistics', 'async']");
  assert_ok(hipmm_resource_pool_handle(NULL, &pool));
  assert_int_equal((uintptr_t)pool, fixture_value("async", "pool_handle"));
  assert_int_equal(fixture_hip()->MallocFromPoolAsync(&memory, 1000, pool, NULL), 0);
  assert_int_equal(fixture_hip()->FreeAsync(memory, NULL), 0);
  fixture_teardown(state);
  fixture_start("'stack': ['pool', 'device']");
  assert_status(hipmm_resource_pool_handle(NULL, &pool), HIPMM_E_NOT_SUPPORTED);
  assert_message("pool: neither it nor a resource below it allocates from a pool of the driver; async does");
  assert_status(hipmm_resource_pool_handle(NULL, NULL), HIPMM_E_ARGUMENT);
}

static void count_release(void *data)
{
  ++*(int *)data;
}

static void keeps_a_pointer_of_the_program(void **state)
{
  (void)state;
  int first = 0, second = 0;
  void *data = &data;
  struct hipmm_resource *made = NULL;
  fixture_start("'stack': ['pool', 'device']");
  assert_ok(hipmm_resource_get_user_data(NULL, &data));
  assert_null(data);
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &made));
  assert_ok(hipmm_resource_set_user_data(made, &first, count_release));
  assert_ok(hipmm_resource_get_user_data(made, &data));
  assert_ptr_equal(data, &first);
  assert_ok(hipmm_resource_set_user_data(made, &second, count_release));
  assert_int_equal(first, 1);
  assert_ok(hipmm_resource_set_user_data(NULL, &first, NULL));
  assert_ok(hipmm_resource_get_user_data(fixture_resource("pool"), &data));
  assert_ptr_equal(data, &first);
  hipmm_resource_release(made);
  assert_int_equal(second, 1);
  assert_int_equal(first, 1);
  assert_status(hipmm_resource_get_user_data(NULL, NULL), HIPMM_E_ARGUMENT);
}

/* ---- Values, options, blocks ---- */

static void check_value(void *arg, const struct hipmm_value *value)
{
  int *seen = arg;
  ++*seen;
  assert_non_null(value->unit);
  assert_non_null(value->doc);
  assert_int_equal(value->is_known, 1);
  if (!strcmp(value->name, "live_bytes")) assert_int_equal(value->value, 1000);
  if (!strcmp(value->name, "live_count")) assert_int_equal(value->value, 1);
}

static void visits_values(void **state)
{
  (void)state;
  int seen = 0;
  fixture_start("'stack': ['pool', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_resource_visit_values(NULL, check_value, &seen));
  assert_int_equal(seen, 16);
  assert_ok(hipmm_resource_visit_values(fixture_resource("device"), check_value, &seen));
  assert_int_equal(seen, 16);
  assert_status(hipmm_resource_visit_values(NULL, NULL, &seen), HIPMM_E_ARGUMENT);
  fixture_free(ptr, 1000, NULL);
}

struct wanted_option {
  const char *name, *type, *text;
  int64_t integer;
  bool is_default, is_reloadable;
};

static void check_option(void *arg, const struct hipmm_option_state *option)
{
  const struct wanted_option **wanted = arg, *row = (*wanted)++;
  assert_string_equal(option->name, row->name);
  assert_string_equal(option->type, row->type);
  if (row->text)
    assert_string_equal(option->text, row->text);
  else
    assert_null(option->text);
  assert_int_equal(option->integer, row->integer);
  assert_int_equal(option->is_default, row->is_default);
  assert_int_equal(option->is_reloadable, row->is_reloadable);
}

static void visits_options(void **state)
{
  (void)state;
  static const struct wanted_option of_pool[] = {
      {"initial_size", "bytes", "3MiB", 3 << 20, false, false},
      {"maximum_size", "bytes", "unlimited", INT64_MAX, true, true},
      {"growth", "enum", "segments", 2, false, false},
      {"record", "enum", "auto", 0, true, false},
      {"slack", "bytes", "auto", INT64_MAX, true, false},
      {"exportable", "bool", "false", 0, true, false},
      {"ipc", "enum", "hipmm", 0, true, false},
      {"save_to", "enum", "pinned", 0, true, false},
      {"folder", "string", NULL, 0, true, false},
  };
  static const struct wanted_option of_async[] = {
      {"initial_pool_size", "bytes", "0", 0, true, false},
      {"release_threshold", "bytes", "25%", 64 << 20, false, true},
      {"reuse_follow_event_dependencies", "bool", "false", 0, false, true},
      {"reuse_allow_opportunistic", "bool", "true", 1, true, true},
      {"reuse_allow_internal_dependencies", "bool", "true", 1, true, true},
      {"handle_type", "enum", "none", 0, true, false},
      {"peers", "list", "[{\"device\":1}]", 0, false, true},
  };
  const struct wanted_option *next = of_pool;
  fixture_start("'stack': [{'type': 'pool', 'initial_size': '3MiB', 'growth': 'segments'}, {'type': 'async', "
                "'release_threshold': '25%', 'reuse_follow_event_dependencies': false, 'peers': [{'device': 1}]}]");
  assert_ok(hipmm_resource_visit_options(NULL, check_option, &next));
  assert_ptr_equal(next, of_pool + sizeof of_pool / sizeof *of_pool);
  next = of_async;
  assert_ok(hipmm_resource_visit_options(fixture_resource("async"), check_option, &next));
  assert_ptr_equal(next, of_async + sizeof of_async / sizeof *of_async);
  assert_status(hipmm_resource_visit_options(NULL, NULL, &next), HIPMM_E_ARGUMENT);
}

static void see_label(void *arg, const struct hipmm_option_state *option)
{
  if (!strcmp(option->name, "label")) *(const char **)arg = option->text;
}

static void has_no_text_for_an_option_without_a_value(void **state)
{
  (void)state;
  const char *text = "unseen";
  fixture_start("'stack': ['variable_plugin', 'device']");
  assert_ok(hipmm_resource_visit_options(NULL, see_label, &text));
  assert_null(text);
}

/* ---- Calls that need to know more ---- */

static void frees_nothing_of_a_size_that_nobody_knows(void **state)
{
  (void)state;
  fixture_start("'stack': ['statistics', 'mute']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_NOT_SUPPORTED);
  assert_message("no resource below knows the size of");
  fixture_free(ptr, 1000, NULL);
  assert_ok(hipmm_finalize());
  fixture_start("'stack': ['statistics', 'device']");
  assert_status(hipmm_deallocate(NULL, &ptr, 0, NULL), HIPMM_E_POINTER);
  assert_message("is not allocated here");
}

static void allocates_from_the_resource_that_is_given(void **state)
{
  (void)state;
  struct hipmm_resource *other;
  void *ptr = NULL;
  fixture_start("'stack': ['pool', 'device']");
  assert_ok(hipmm_resource_get_for_device(1, &other));
  assert_ok(hipmm_allocate_aligned(other, 1000, 4096, NULL, &ptr));
  assert_int_equal(looked_up(ptr).device, 1);
  assert_ok(hipmm_deallocate_aligned(other, ptr, 1000, 4096, NULL));
  hipmm_resource_release(other);
}

static void add_live_bytes(void *arg, const struct hipmm_extent *extent)
{
  void *ptr = NULL;
  if (extent->state == HIPMM_EXTENT_LIVE) *(size_t *)arg += extent->bytes;
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_STATE); /* the visitor may be under locks */
  assert_message("a visitor of blocks");
}

static void visits_blocks(void **state)
{
  static const char *const types[] = {"device", "async", "host", "managed"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char graph[100];
    size_t of_pool = 0, of_source = 0;
    snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': 'segments'}, '%s']", types[i]);
    fixture_start(graph);
    void *one = fixture_allocate(1000, NULL), *other = fixture_allocate(2000, NULL);
    assert_ok(hipmm_resource_visit_blocks(NULL, add_live_bytes, &of_pool));
    assert_int_equal(of_pool, 3000);
    assert_ok(hipmm_resource_visit_blocks(fixture_resource(types[i]), add_live_bytes, &of_source));
    assert_int_equal(of_source, fixture_value("pool", "reserved_bytes"));
    assert_status(hipmm_resource_visit_blocks(NULL, NULL, NULL), HIPMM_E_ARGUMENT);
    fixture_free(one, 1000, NULL);
    fixture_free(other, 2000, NULL);
    fixture_teardown(state);
  }
}

/* ---- Upkeep ---- */

/* A stack made in code gives back to one below it. */
static void trims_a_device_and_all(void **state)
{
  (void)state;
  void *on_made = NULL, *on_other = NULL;
  struct hipmm_resource *pool, *made = NULL, *other;
  fixture_start("'stack': ['pool', 'device']");
  pool = fixture_resource("pool");
  assert_ok(hipmm_resource_get_for_device(1, &other));
  assert_ok(hipmm_resource_create(0, "arena", NULL, &pool, 1, &made));
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_allocate(made, 9 * MIB, NULL, &on_made));
    assert_ok(hipmm_allocate(other, 9 * MIB, NULL, &on_other));
    assert_ok(hipmm_deallocate(made, on_made, 9 * MIB, NULL));
    assert_ok(hipmm_deallocate(other, on_other, 9 * MIB, NULL));
    assert_true(fixture_held_bytes() >= 9 * MIB);
    assert_ok(i ? hipmm_trim(0) : hipmm_device_trim(0, 0));
    assert_int_equal(fixture_held_bytes(), 0);
    assert_int_equal(resource_value(other, "reserved_bytes") > 0, !i);
  }
  assert_status(hipmm_device_trim(7, 0), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_device_trim(-1, 0), HIPMM_E_NO_DEVICE);
  hipmm_resource_release(made);
  hipmm_resource_release(other);
}

static void starts_peaks_again(void **state)
{
  static const struct {
    const char *graph, *resource, *value;
  } cases[] = {
      {"'stack': ['statistics', 'pool', 'device']", "pool", "peak_reserved_bytes"},
      {"'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'device']", "pool", "peak_reserved_bytes"},
      {"'stack': ['statistics', 'arena', 'device']", "arena", "peak_reserved_bytes"},
      {"'stack': ['statistics', 'monotonic', 'device']", "monotonic", "peak_reserved_bytes"},
      {"'stack': ['statistics', {'type': 'fixed_size', 'block_size': '16MiB', 'blocks_to_preallocate': 0}, 'device']",
       "fixed_size", "peak_reserved_bytes"},
      {"'stack': ['statistics', 'async']", "async", "peak_used_bytes"},
      {"'stack': ['statistics', 'device']", "statistics", "peak_bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture_start(cases[i].graph);
    fixture_free(fixture_allocate(9 * MIB, NULL), 9 * MIB, NULL);
    assert_ok(hipmm_device_trim(0, 0));
    assert_true(fixture_value(cases[i].resource, cases[i].value) >= (int64_t)(9 * MIB));
    assert_true(fixture_peak_held_bytes() >= 9 * MIB);
    assert_ok(hipmm_resource_reset_peaks(NULL));
    assert_true(fixture_value(cases[i].resource, cases[i].value) < (int64_t)MIB);
    assert_int_equal(fixture_value("statistics", "peak_bytes"), 0);
    assert_int_equal(fixture_value("statistics", "total_count"), 1);
    assert_int_equal(fixture_peak_held_bytes(), fixture_held_bytes());
    fixture_teardown(state);
  }
}

#define inspect_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      inspect_test(finds_blocks_of_segments),
      inspect_test(tells_the_stream_of_the_last_allocation),
      inspect_test(finds_the_chunk_behind_mapped_memory),
      inspect_test(finds_blocks_of_every_type),
      inspect_test(finds_the_resource_nearest_to_the_program),
      inspect_test(finds_blocks_without_initialisation),
      inspect_test(refuses_foreign_pointers),
      inspect_test(writes_no_more_than_there_is_room_for),
      inspect_test(visits_every_resource),
      inspect_test(goes_from_a_resource_to_its_upstreams),
      inspect_test(tells_who_may_access_the_memory),
      inspect_test(hands_the_drivers_pool_out),
      inspect_test(keeps_a_pointer_of_the_program),
      inspect_test(visits_values),
      inspect_test(visits_options),
      inspect_test(has_no_text_for_an_option_without_a_value),
      inspect_test(frees_nothing_of_a_size_that_nobody_knows),
      inspect_test(allocates_from_the_resource_that_is_given),
      inspect_test(visits_blocks),
      inspect_test(trims_a_device_and_all),
      inspect_test(starts_peaks_again),

  };
  return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
