/* SPDX-License-Identifier: MIT */
/* Tests of pool, mapped and in segments: what it counts, shows and refuses by itself. test_sub_allocators.c and
 * test_stream_reuse.c have what it shares with the other sub-allocators, tests/unit/pool how it grows and what it does in
 * threads. */
#include "../support/growths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Allocating ---- */

/* One byte seems little: the message says what makes it much. */
static void names_the_alignment_of_what_it_cannot_allocate(void **state)
{
  static const char *const graphs[] = {
      "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']", "'stack': ['pool', 'device']",
      "'stack': [{'type': 'pool', 'growth': 'segments', 'maximum_size': '1GiB'}, 'device']",
      "'stack': [{'type': 'pool', 'maximum_size': '1GiB'}, 'device']"};
  const size_t alignment = (size_t)1 << 45;
  void *ptr;
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    fixture_start(graphs[i]);
    enum hipmm_status status = hipmm_allocate_aligned(NULL, 1, alignment, NULL, &ptr);
    if (!status && !on_software()) { /* a driver may reserve that many addresses, and the byte needs one granule */
      assert_int_equal((uintptr_t)ptr % alignment, 0);
      assert_ok(hipmm_deallocate_aligned(NULL, ptr, 1, alignment, NULL));
    } else {
      if (!hipmm_is_out_of_memory(status)) fail_msg("%s: %s", graphs[i], hipmm_last_error_message());
      assert_message("pool: cannot allocate 1 byte");
      assert_message("an alignment of 32 TiB can need a hole of 32 TiB");
    }
    assert_true(hipmm_is_out_of_memory(hipmm_allocate(NULL, alignment, NULL, &ptr)));
    assert_null(strstr(hipmm_last_error_message(), "alignment"));
    hipmm_finalize();
  }
}

/* ---- Values ---- */

static void tells_what_its_cache_keeps(void **state)
{
  start(state, "");
  void *ptr = fixture_allocate(1000, NULL), *fence = fixture_allocate(1000, NULL);
  assert_int_equal(value("cached_bytes"), 0);
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(value("cached_bytes"), 1024);
  assert_int_equal(value("live_count"), 1);
  assert_int_equal(value("live_bytes"), 1000);
  assert_ptr_equal(fixture_allocate(1024, NULL), ptr);
  assert_int_equal(value("cached_bytes"), 0);
  assert_int_equal(value("live_bytes"), 2024);
  fixture_free(ptr, 1024, NULL);
  fixture_free(fence, 1000, NULL);
  assert_int_equal(value("cached_bytes"), 2048);
  trim(0);
  assert_int_equal(value("cached_bytes"), 0);
  assert_int_equal(value("free_bytes"), 0);
}

/* ---- What it shows ---- */

struct wanted {
  const void *ptr;
  struct hipmm_extent extent;            /* that is there */
  size_t bytes[HIPMM_EXTENT_CACHED + 1]; /* by state */
};

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct wanted *wanted = closure;
  if (extent->ptr == wanted->ptr) wanted->extent = *extent;
  wanted->bytes[extent->state % (HIPMM_EXTENT_CACHED + 1)] += extent->bytes;
}

static struct wanted assert_is(const void *ptr, size_t bytes, enum hipmm_extent_state state, hipmm_stream_t stream)
{
  const struct hipmm_resource *pool = fixture_resource("pool");
  struct wanted wanted = {.ptr = ptr};
  assert_ok(pool->ops->visit(pool->self, see, &wanted));
  assert_ptr_equal(wanted.extent.ptr, ptr);
  assert_int_equal(wanted.extent.state, state);
  assert_int_equal(wanted.extent.bytes, bytes);
  assert_ptr_equal(wanted.extent.stream, stream);
  return wanted;
}

static void shows_each_block_in_its_state(void **state)
{
  start_with("'scheduler': 'stepped'", *state, "");
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retain(0, stream));
  void *small = fixture_allocate(1000, stream), *kept = fixture_allocate(3 * MIB + 1, stream),
       *large = fixture_allocate(5 * MIB, NULL), *end = fixture_allocate(100000, NULL);
  assert_is(small, 1000, HIPMM_EXTENT_LIVE, stream);
  assert_is(large, 5 * MIB, HIPMM_EXTENT_LIVE, NULL);
  fixture_free(small, 1000, stream);
  fixture_free(large, 5 * MIB, NULL);
  struct wanted wanted = assert_is(small, 1024, HIPMM_EXTENT_CACHED, stream);
  assert_int_equal(wanted.bytes[HIPMM_EXTENT_CACHED], value("cached_bytes"));
  assert_int_equal(wanted.bytes[HIPMM_EXTENT_LIVE], 3 * MIB + 1 + 100000);
  assert_true(wanted.bytes[HIPMM_EXTENT_PENDING] >= 5 * MIB);
  trim(0);
  wanted = assert_is(kept, 3 * MIB + 1, HIPMM_EXTENT_LIVE, stream);
  assert_int_equal(wanted.bytes[HIPMM_EXTENT_PENDING] + wanted.bytes[HIPMM_EXTENT_CACHED], 0);
  fixture_free(kept, 3 * MIB + 1, stream);
  fixture_free(end, 100000, NULL);
  fixture_drop_stream(stream);
}

/* ---- Its limits ---- */

/* Pinned memory has no virtual memory: the limits are those of segments, to the byte. */
static void keeps_its_limits_over_pinned_memory(void **state)
{
  void *none = NULL;
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'pool', 'initial_size': 1024, 'maximum_size': 256}, 'pinned']"),
                HIPMM_E_CONFIG);
  assert_message("/stack/0/maximum_size: 256 is below initial_size (1024)");
  fixture_start("'stack': [{'type': 'pool', 'initial_size': 1000192, 'maximum_size': 1000192}, 'pinned']");
  assert_int_equal(fixture_held_bytes(), 1000192);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  fixture_free(fixture_allocate(1000192, NULL), 1000192, NULL);
  assert_status(hipmm_allocate(NULL, 1000193, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_finalize());
  fixture_start("'stack': [{'type': 'pool', 'initial_size': 0, 'maximum_size': 1024}, 'pinned']");
  unsigned char *all = fixture_allocate(1024, NULL);
  memset(all, 7, 1024);
  assert_status(hipmm_allocate(NULL, 1024, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("maximum_size");
  assert_status(hipmm_allocate(NULL, 1, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(fixture_peak_held_bytes(), 1024);
  fixture_free(all, 1024, NULL);
  fixture_free(fixture_allocate(1024, NULL), 1024, NULL);
  assert_ok(hipmm_finalize());
  /* A size that is no multiple of 256 is rounded: what it takes of the host is never above the limit. */
  fixture_start("'stack': [{'type': 'pool', 'initial_size': 1000031, 'maximum_size': 1000200}, 'pinned']");
  assert_int_equal(fixture_held_bytes() % 256, 0);
  assert_in_range(fixture_held_bytes(), 1000031 - 255, 1000200);
  assert_status(hipmm_allocate(NULL, 1000200, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
}

static void keeps_nothing_for_what_it_refused(void **state)
{
  void *none = NULL;
  (void)state;
  fixture_start("'stack': ['pool', 'device']");
  void *block = fixture_allocate(8 * MIB, NULL);
  size_t held = fixture_held_bytes();
  assert_status(hipmm_allocate(NULL, (size_t)1 << 40, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(fixture_held_bytes(), held);
  fixture_free(block, 8 * MIB, NULL);
}

/* ---- Calls that are served at once or not at all ---- */

static bool try_allocate(size_t bytes, void **ptr_out)
{
  const struct hipmm_resource *pool = fixture_resource("pool");
  return pool->ops->try_allocate(pool->self, bytes, HIPMM_ALIGNMENT, NULL, ptr_out);
}

static bool try_free(void *ptr, size_t bytes)
{
  const struct hipmm_resource *pool = fixture_resource("pool");
  return pool->ops->try_deallocate(pool->self, ptr, bytes, HIPMM_ALIGNMENT, NULL);
}

/* By the cache, and by the heap. */
static void serves_a_block_once_where_it_serves_at_once(void **state)
{
  static const size_t sizes[] = {1000, 20 * KIB};
  char foreign[512];
  start(state, ", 'initial_size': '4MiB'");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char *first = NULL;
    void *second = NULL;
    fixture_free(fixture_allocate(sizes[i], NULL), sizes[i], NULL);
    assert_true(try_allocate(sizes[i], (void **)&first));
    assert_true(try_allocate(sizes[i], &second));
    assert_ptr_not_equal(first, second);
    assert_int_equal(value("live_count"), 2);
    assert_int_equal(value("live_bytes"), 2 * sizes[i]);
    assert_false(try_free(first, sizes[i] + 1));
    assert_false(try_free(first + 256, sizes[i]));
    assert_false(try_free(foreign, sizes[i]));
    assert_false(try_free(NULL, sizes[i]));
    assert_int_equal(value("live_count"), 2);
    assert_true(try_free(first, sizes[i]));
    assert_int_equal(value("live_count"), 1);
    assert_int_equal(value("live_bytes"), sizes[i]);
    assert_false(try_free(first, sizes[i]));
    assert_status(hipmm_deallocate(NULL, first, 0, NULL), HIPMM_E_POINTER);
    assert_int_equal(value("live_count"), 1);
    assert_true(try_free(second, sizes[i]));
  }
  assert_int_equal(value("live_bytes"), 0);
  trim(0);
  assert_int_equal(fixture_held_bytes(), 0);
}

static int visit_no_chunk(void *closure, const struct hipmm_chunk *chunk)
{
  (void)closure, (void)chunk;
  return 0;
}

static void shows_no_chunks_of_what_is_not_its_own(void **state)
{
  char foreign;
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
  const struct hipmm_resource *pool = fixture_resource("pool");
  assert_status(pool->ops->visit_chunks(pool->self, &foreign, visit_no_chunk, NULL), HIPMM_E_POINTER);
}

/* ---- Fragmentation ---- */

/* Takes `count` blocks in a row, and frees every other. */
static void leave_holes(void **blocks, int count, size_t bytes)
{
  for (int i = 0; i < count; i++) blocks[i] = fixture_allocate(bytes, NULL);
  for (int i = 0; i < count; i += 2) fixture_free(blocks[i], bytes, NULL);
  logged();
}

static void drop_the_rest(void **blocks, int count, size_t bytes)
{
  for (int i = 1; i < count; i += 2) fixture_free(blocks[i], bytes, NULL);
}

static void warns_once_of_memory_in_pieces(void **state)
{
  static const struct {
    const char *graph, *name, *remedy;
    bool grows;
    int count; /* of blocks; those of 160 are smaller than a granule */
  } rows[] = {{"'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '160MiB'}, 'device']", "pool",
               "\"growth\": \"mapped\" joins them", true, 40},
              {"'stack': [{'type': 'pool', 'growth': 'mapped', 'initial_size': '160MiB'}, 'device']", "pool",
               "a pool of their own", true, 160},
              {"'stack': [{'type': 'pool', 'initial_size': '160MiB', 'maximum_size': '256MiB'}, 'async']", "pool",
               "a pool of their own", true, 40},
              {"'stack': [{'type': 'arena', 'arena_size': '160MiB'}, 'device']", "arena",
               "a pool with \"growth\": \"mapped\"", true, 40},
              {"'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '160MiB', 'maximum_size': '160MiB'}, "
               "'device']",
               "pool", "\"growth\": \"mapped\" joins them", false, 40}};
  void *blocks[160], *large[2] = {NULL, NULL};
  (void)state;
  needs_software(); /* the warning comes where less is left on the device than is held */
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    char wanted[160];
    const int count = rows[row].count;
    const size_t bytes = (160u << 20) / (size_t)count;
    fixture_start(rows[row].graph);
    leave_holes(blocks, count, bytes);
    assert_int_equal(fixture_value(rows[row].name, "fragmented_bytes"), (80 << 20) - bytes);
    for (int i = 0; i < 2; i++) {
      enum hipmm_status status = hipmm_allocate(NULL, 16 << 20, NULL, &large[i]);
      assert_int_equal(status == HIPMM_OK, rows[row].grows);
      const char *text = logged();
      if (i) assert_string_equal(text, "");
      if (i) continue;
      snprintf(wanted, sizeof wanted,
               "16.0 MiB are wanted, and of the 160.0 MiB that are held 80.0 MiB are idle, but in pieces of at most "
               "%zu.0 MiB: ",
               bytes >> 20);
      assert_contains(text, wanted);
      assert_contains(text, rows[row].remedy);
    }
    for (int i = 0; i < 2 && rows[row].grows; i++) fixture_free(large[i], 16 << 20, NULL);
    drop_the_rest(blocks, count, bytes);
    assert_ok(hipmm_finalize());
  }
}

/* Where idle memory moves, serves the request, or is little, nothing is said; nor where the device has more left than is held. */
static void warns_of_no_memory_that_serves(void **state)
{
  static const struct {
    const char *graph;
    int count;
    size_t bytes;
  } rows[] = {{"'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']", 40, 100 << 20},
              {"'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '160MiB'}, 'device']", 40, 4 << 20},
              {"'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '120MiB'}, 'device']", 30, 16 << 20},
              {"'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '128MiB'}, 'device']", 32, 16 << 20}};
  void *blocks[40];
  (void)state;
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    fixture_start(rows[row].graph);
    leave_holes(blocks, rows[row].count, 4 << 20);
    fixture_free(fixture_allocate(rows[row].bytes, NULL), rows[row].bytes, NULL);
    assert_string_equal(logged(), "");
    drop_the_rest(blocks, rows[row].count, 4 << 20);
    assert_ok(hipmm_finalize());
  }
}

int main(void)
{
  log_to_file("warning");
  const struct CMUnitTest tests[] = {
      BOTH(names_the_alignment_of_what_it_cannot_allocate),
      BOTH(tells_what_its_cache_keeps),
      BOTH(shows_each_block_in_its_state),
      BOTH(serves_a_block_once_where_it_serves_at_once),
      ONCE(shows_no_chunks_of_what_is_not_its_own),
      ONCE(keeps_nothing_for_what_it_refused),
      ONCE(keeps_its_limits_over_pinned_memory),
      ONCE(warns_once_of_memory_in_pieces),
      ONCE(warns_of_no_memory_that_serves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
