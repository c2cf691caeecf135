/* SPDX-License-Identifier: MIT */
/* Tests of pool, mapped and in segments: what it gives, what it counts, and what it refuses. How it grows, and what it
 * does on streams and in threads, is tested in tests/pool. */
#include "../support/growths.h"
#include "../support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_BLOCKS = 70000 };

static void *blocks[MOST_BLOCKS];

/* ---- Allocating ---- */

static void gives_aligned_memory_that_keeps_its_data(void **state)
{
  static const size_t sizes[] = {1, 255, 256, 257, 4 * KIB, 64 * KIB - 1, 64 * KIB, MIB + 3, 2 * MIB, 5 * MIB};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  start(state, "");
  for (int round = 0; round < 3; round++) {
    unsigned char *ptr[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
      ptr[i] = fixture_allocate(sizes[i], NULL);
      assert_int_equal((uintptr_t)ptr[i] % HIPMM_ALIGNMENT, 0);
      fixture_fill(ptr[i], (unsigned char)(i + 1), sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
      assert_true(fixture_holds(ptr[i], (unsigned char)(i + 1), sizes[i]));
      fixture_free(ptr[i], i % 2 ? sizes[i] : 0, NULL);
    }
  }
}

static void aligns_up_to_4_mib(void **state)
{
  start(state, "");
  unsigned n = 0;
  size_t sizes[64];
  for (size_t alignment = 256; alignment <= 4 * MIB; alignment *= 2) {
    sizes[n] = alignment / 2 + 300;
    assert_ok(hipmm_allocate_aligned(NULL, sizes[n], alignment, NULL, &blocks[n]));
    assert_int_equal((uintptr_t)blocks[n] % alignment, 0);
    fixture_fill(blocks[n], (unsigned char)n, sizes[n]);
    n++;
  }
  void *ptr = NULL;
  assert_status(hipmm_allocate_aligned(NULL, 256, 3, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_status(hipmm_allocate_aligned(NULL, 256, (size_t)1 << 60, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_null(ptr);
  for (unsigned i = 0; i < n; i++) {
    assert_true(fixture_holds(blocks[i], (unsigned char)i, sizes[i]));
    assert_ok(hipmm_deallocate_aligned(NULL, blocks[i], sizes[i], (size_t)256 << i, NULL));
  }
  trim(0);
  assert_int_equal(fixture_held_bytes(), 0);
}

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

static void refuses_sizes_that_no_device_has(void **state)
{
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2, (size_t)1 << 47, (size_t)1 << 40};
  void *ptr = NULL;
  start(state, "");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_null(ptr);
  }
  assert_int_equal(value("live_count"), 0);
  fixture_free(fixture_allocate(200 * MIB, NULL), 200 * MIB, NULL);
}

static void takes_nothing_for_nothing(void **state)
{
  start(state, "");
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  fixture_free(NULL, 17, NULL);
  assert_int_equal(value("live_count"), 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

/* ---- Joining ---- */

static void joins_all_that_is_freed(void **state)
{
  uint64_t random = 3;
  start(state, ", 'initial_size': '64MiB'");
  for (int round = 0; round < 4; round++) {
    int n = 0;
    size_t sum = 0;
    static size_t sizes[MOST_BLOCKS];
    for (; n < 3000; n++) {
      sizes[n] = 1 + random_below(&random, random_below(&random, 4) ? 4 * KIB : 60 * KIB);
      sum += (sizes[n] + 255) / 256 * 256;
      if (sum > 64 * MIB) break;
      blocks[n] = fixture_allocate(sizes[n], NULL);
    }
    assert_int_equal(value("live_count"), n);
    for (int left = n; left > 0; left--) {
      int which = (int)random_below(&random, (uint64_t)left);
      fixture_free(blocks[which], sizes[which], NULL);
      blocks[which] = blocks[left - 1];
      sizes[which] = sizes[left - 1];
    }
    trim(64 * MIB);
    assert_int_equal(value("largest_free_bytes"), 64 * MIB);
    assert_int_equal(value("free_bytes"), 64 * MIB);
    assert_int_equal(fixture_held_bytes(), 64 * MIB);
    fixture_free(fixture_allocate(64 * MIB, NULL), 64 * MIB, NULL);
    assert_int_equal(fixture_peak_held_bytes(), 64 * MIB);
  }
}

/* ---- Values ---- */

struct expected {
  int64_t live_count, live_bytes;
};

static void assert_values(const struct expected *expected, int64_t rounded_bytes)
{
  assert_int_equal(value("live_count"), expected->live_count);
  assert_int_equal(value("live_bytes"), expected->live_bytes);
  assert_int_equal(value("reserved_bytes"), fixture_held_bytes());
  assert_int_equal(value("free_bytes"), value("reserved_bytes") - rounded_bytes);
  assert_true(value("cached_bytes") >= 0 && value("cached_bytes") <= value("free_bytes"));
  assert_true(value("largest_free_bytes") <= value("free_bytes") - value("cached_bytes"));
}

static void counts_exactly(void **state)
{
  enum { BLOCKS = 64 };
  size_t sizes[BLOCKS];
  struct expected expected = {0, 0};
  int64_t rounded = 0;
  uint64_t random = 9;
  start(state, "");
  assert_values(&expected, 0);
  memset(blocks, 0, BLOCKS * sizeof *blocks);
  for (int i = 0; i < 3000; i++) {
    unsigned which = (unsigned)random_below(&random, BLOCKS);
    if (blocks[which]) {
      fixture_free(blocks[which], random_below(&random, 2) * sizes[which], NULL);
      expected.live_count--, expected.live_bytes -= (int64_t)sizes[which];
      rounded -= (int64_t)((sizes[which] + 255) / 256 * 256);
      blocks[which] = NULL;
    } else {
      sizes[which] = 1 + random_below(&random, random_below(&random, 3) ? 4 * KIB : 300 * KIB);
      blocks[which] = fixture_allocate(sizes[which], NULL);
      expected.live_count++, expected.live_bytes += (int64_t)sizes[which];
      rounded += (int64_t)((sizes[which] + 255) / 256 * 256);
    }
    assert_values(&expected, rounded);
    if (i % 500 == 499) trim(0);
    assert_values(&expected, rounded);
  }
  assert_int_equal(value("peak_reserved_bytes"), fixture_peak_held_bytes());
  assert_int_equal(value("stream_waits"), 0);
  assert_int_not_equal(value("metadata_bytes"), 0);
  struct hipmm_block block;
  (void)block;
  for (unsigned i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 0, NULL);
}

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

/* ---- Frees that are wrong ---- */

static void assert_foreign(void *ptr)
{
  assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 700, NULL), HIPMM_E_POINTER);
  assert_message("foreign, or was freed before");
}

static void refuses_pointers_that_are_not_its_own(void **state)
{
  static char global[1024];
  char local[1024];
  start(state, "");
  char *ptr = fixture_allocate(700, NULL), *large = fixture_allocate(MIB, NULL), *freed = fixture_allocate(MIB, NULL);
  fixture_free(freed, MIB, NULL);
  char *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_int_equal(munmap(unmapped, 4096), 0);
  void *heap = malloc(1024);
  void *const foreign[] = {ptr + 1,
                           ptr + 256,
                           ptr - 256,
                           ptr + 255,
                           large + 4096,
                           large + MIB,
                           freed,
                           freed + 256,
                           local,
                           global,
                           heap,
                           unmapped,
                           (void *)1,
                           (void *)256,
                           (void *)(uintptr_t)(1ull << 47),
                           (void *)(uintptr_t)(1ull << 63),
                           (void *)(UINTPTR_MAX - 255),
                           (void *)UINTPTR_MAX,
                           (void *)(uintptr_t)assert_foreign};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) assert_foreign(foreign[i]);
  free(heap);
  assert_int_equal(value("live_count"), 2);
  assert_int_equal(value("live_bytes"), 700 + MIB);
  fixture_free(ptr, 700, NULL);
  fixture_free(large, MIB, NULL);
}

static void refuses_another_size(void **state)
{
  start(state, "");
  static const size_t sizes[] = {700, 3 * MIB};
  for (int i = 0; i < 2; i++) {
    void *ptr = fixture_allocate(sizes[i], NULL);
    assert_status(hipmm_deallocate(NULL, ptr, sizes[i] + 1, NULL), HIPMM_E_SIZE);
    assert_status(hipmm_deallocate(NULL, ptr, sizes[i] - 1, NULL), HIPMM_E_SIZE);
    assert_status(hipmm_deallocate(NULL, ptr, SIZE_MAX, NULL), HIPMM_E_SIZE);
    assert_message("cannot be freed with");
    assert_int_equal(value("live_count"), 1);
    fixture_free(ptr, sizes[i], NULL);
  }
}

/* Once it is in a cache, once in the heap, once it is part of a larger block, and once it is gone. */
static void refuses_a_second_free(void **state)
{
  start(state, "");
  char *small = fixture_allocate(700, NULL), *middle = fixture_allocate(100 * KIB, NULL),
       *large = fixture_allocate(4 * MIB, NULL);
  fixture_free(small, 700, NULL);
  assert_foreign(small);
  fixture_free(large, 4 * MIB, NULL);
  assert_foreign(large);
  fixture_free(middle, 0, NULL);
  assert_foreign(middle);
  assert_foreign(large);
  assert_foreign(small);
  assert_int_equal(value("live_count"), 0);
  trim(0);
  assert_foreign(small);
  assert_foreign(large);
  assert_int_equal(value("live_bytes"), 0);
  assert_int_equal(value("free_bytes"), 0);
}

/* ---- Two devices ---- */

static void keeps_devices_apart(void **state)
{
  char graph[200];
  struct hipmm_resource *pools[2];
  void *ptr[2] = {0};
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s'}, 'device']", (const char *)*state);
  fixture_start(graph);
  needs_devices(2);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_resource_get_for_device(i, &pools[i]));
    assert_ok(hipmm_allocate(pools[i], 1000, NULL, &ptr[i]));
  }
  for (int i = 0; i < 2; i++) {
    int64_t live = 0;
    assert_status(hipmm_deallocate(pools[i], ptr[1 - i], 1000, NULL), HIPMM_E_POINTER);
    assert_ok(hipmm_resource_query(pools[i], "live_count", &live));
    assert_int_equal(live, 1);
  }
  /* What a thread has cached of one pool is not for the other. */
  for (int i = 0; i < 2; i++) assert_ok(hipmm_deallocate(pools[i], ptr[i], 1000, NULL));
  for (int i = 0; i < 2; i++) {
    void *again = NULL;
    assert_ok(hipmm_allocate(pools[i], 1000, NULL, &again));
    assert_ptr_equal(again, ptr[i]);
    assert_ok(hipmm_deallocate(pools[i], again, 1000, NULL));
    assert_ok(hipmm_resource_trim(pools[i], 0));
    hipmm_resource_release(pools[i]);
  }
  size_t held = 1;
  assert_ok(hipmm_device_held_bytes(1, &held, NULL));
  assert_int_equal(held, 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

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

static void leave_allocated(size_t freed_bytes, size_t live_bytes)
{
  fixture_start("'stack': ['pool', 'device']");
  fixture_free(fixture_allocate(freed_bytes, NULL), freed_bytes, NULL);
  fixture_allocate(live_bytes, NULL);
  logged();
  assert_ok(hipmm_finalize());
}

/* A block that comes from a thread's cache was counted by the pool with the size of the block's first use. */
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

static void tells_what_is_left_allocated(void **state)
{
  (void)state;
  leave_allocated(10000, 1000);
  assert_contains(logged(), "pool: destroyed with 1 block (1000 bytes) still allocated");
  leave_allocated(1024, 1000);
  assert_contains(logged(), "pool: destroyed with 1 block (1000 bytes) still allocated");
  fixture_start("'stack': ['pool', 'device']");
  void *first = fixture_allocate(1000, NULL);
  fixture_allocate(10000, NULL);
  fixture_free(first, 1000, NULL);
  fixture_allocate(999, NULL);
  logged();
  assert_ok(hipmm_finalize());
  assert_contains(logged(), "pool: destroyed with 2 blocks (10999 bytes) still allocated");
  fixture_start("'stack': ['pool', 'device']");
  fixture_free(fixture_allocate(10000, NULL), 10000, NULL);
  logged();
  assert_ok(hipmm_finalize());
  assert_null(strstr(logged(), "still allocated"));
}

int main(void)
{
  log_to_file("warning");
  const struct CMUnitTest tests[] = {
      BOTH(gives_aligned_memory_that_keeps_its_data),
      BOTH(aligns_up_to_4_mib),
      BOTH(names_the_alignment_of_what_it_cannot_allocate),
      BOTH(refuses_sizes_that_no_device_has),
      BOTH(takes_nothing_for_nothing),
      BOTH(joins_all_that_is_freed),
      BOTH(counts_exactly),
      BOTH(tells_what_its_cache_keeps),
      BOTH(refuses_pointers_that_are_not_its_own),
      BOTH(refuses_another_size),
      BOTH(refuses_a_second_free),
      BOTH(keeps_devices_apart),
      BOTH(serves_a_block_once_where_it_serves_at_once),
      ONCE(shows_no_chunks_of_what_is_not_its_own),
      ONCE(keeps_nothing_for_what_it_refused),
      ONCE(tells_what_is_left_allocated),
      ONCE(keeps_its_limits_over_pinned_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
