/* SPDX-License-Identifier: MIT */
/* Tests of hipmm/inspect.h: from pointers to blocks, and visits of what lives. */
#include <hipmm/inspect.h>
#include <hipmm/stream.h>

#include "../support/fixture.h"

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

/* A resource made in code stands on one of the device's stack, and both have a block at one address. */
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

#define inspect_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      inspect_test(finds_blocks_of_segments),   inspect_test(finds_the_chunk_behind_mapped_memory),
      inspect_test(finds_blocks_of_every_type), inspect_test(finds_the_resource_nearest_to_the_program),
      inspect_test(refuses_foreign_pointers),   inspect_test(writes_no_more_than_there_is_room_for),
  };
  return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
