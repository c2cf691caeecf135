/* SPDX-License-Identifier: MIT */
/* Tests of pool: what it takes from its upstream and when, that all of it can be used, and that it goes back; mapped and
 * in segments. Streams and threads are tested in tests/pool. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { KIB = 1024, MOST_BLOCKS = 70000 };

/* What a test's row says: how the pool grows. */
static const char mapped[] = "mapped", segments[] = "segments";

static void *blocks[MOST_BLOCKS];

static bool is_mapped(void **state)
{
  return *state == mapped;
}

/* A pool over device memory, with more options: `, 'record': 'lazy'`. */
static void start_with(const char *runtime_options, const char *growth, const char *options)
{
  char graph[400];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s'%s}, 'device']", growth, options);
  rig_start_with(runtime_options, graph);
}

static void start(void **state, const char *options)
{
  start_with("", *state, options);
}

static void trim(size_t keep_bytes)
{
  assert_ok(hipmm_resource_trim(rig_resource("pool"), keep_bytes));
}

static int64_t value(const char *name)
{
  return rig_value("pool", name);
}

static uint64_t draw(uint64_t *random, uint64_t below)
{
  *random = *random * 6364136223846793005ull + 1442695040888963407ull;
  return (*random >> 33 ^ *random >> 11) % below;
}

/* ---- Allocating ---- */

static void gives_aligned_memory_that_keeps_its_data(void **state)
{
  static const size_t sizes[] = {1, 255, 256, 257, 4 * KIB, 64 * KIB - 1, 64 * KIB, MIB + 3, 2 * MIB, 5 * MIB};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  start(state, "");
  for (int round = 0; round < 3; round++) {
    unsigned char *ptr[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
      ptr[i] = rig_allocate(sizes[i], NULL);
      assert_int_equal((uintptr_t)ptr[i] % HIPMM_ALIGNMENT, 0);
      memset(ptr[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
      assert_int_equal(ptr[i][0], i + 1);
      assert_memory_equal(ptr[i], ptr[i] + 1, sizes[i] - 1);
      rig_free(ptr[i], i % 2 ? sizes[i] : 0, NULL);
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
    memset(blocks[n], (int)n, sizes[n]);
    n++;
  }
  void *ptr = NULL;
  assert_status(hipmm_allocate_aligned(NULL, 256, 3, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_status(hipmm_allocate_aligned(NULL, 256, (size_t)1 << 60, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_null(ptr);
  for (unsigned i = 0; i < n; i++) {
    const unsigned char *data = blocks[i];
    assert_int_equal(data[0], i);
    assert_memory_equal(data, data + 1, sizes[i] - 1);
    assert_ok(hipmm_deallocate_aligned(NULL, blocks[i], sizes[i], (size_t)256 << i, NULL));
  }
  trim(0);
  assert_int_equal(rig_held_bytes(), 0);
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
  rig_free(rig_allocate(200 * MIB, NULL), 200 * MIB, NULL);
}

static void takes_nothing_for_nothing(void **state)
{
  start(state, "");
  assert_null(rig_allocate(0, NULL));
  rig_free(NULL, 0, NULL);
  rig_free(NULL, 17, NULL);
  assert_int_equal(value("live_count"), 0);
  assert_int_equal(rig_held_bytes(), 0);
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
      sizes[n] = 1 + draw(&random, draw(&random, 4) ? 4 * KIB : 60 * KIB);
      sum += (sizes[n] + 255) / 256 * 256;
      if (sum > 64 * MIB) break;
      blocks[n] = rig_allocate(sizes[n], NULL);
    }
    assert_int_equal(value("live_count"), n);
    for (int left = n; left > 0; left--) {
      int which = (int)draw(&random, (uint64_t)left);
      rig_free(blocks[which], sizes[which], NULL);
      blocks[which] = blocks[left - 1];
      sizes[which] = sizes[left - 1];
    }
    trim(64 * MIB);
    assert_int_equal(value("largest_free_bytes"), 64 * MIB);
    assert_int_equal(value("free_bytes"), 64 * MIB);
    assert_int_equal(rig_held_bytes(), 64 * MIB);
    rig_free(rig_allocate(64 * MIB, NULL), 64 * MIB, NULL);
    assert_int_equal(rig_peak_held_bytes(), 64 * MIB);
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
  assert_int_equal(value("reserved_bytes"), rig_held_bytes());
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
    unsigned which = (unsigned)draw(&random, BLOCKS);
    if (blocks[which]) {
      rig_free(blocks[which], draw(&random, 2) * sizes[which], NULL);
      expected.live_count--, expected.live_bytes -= (int64_t)sizes[which];
      rounded -= (int64_t)((sizes[which] + 255) / 256 * 256);
      blocks[which] = NULL;
    } else {
      sizes[which] = 1 + draw(&random, draw(&random, 3) ? 4 * KIB : 300 * KIB);
      blocks[which] = rig_allocate(sizes[which], NULL);
      expected.live_count++, expected.live_bytes += (int64_t)sizes[which];
      rounded += (int64_t)((sizes[which] + 255) / 256 * 256);
    }
    assert_values(&expected, rounded);
    if (i % 500 == 499) trim(0);
    assert_values(&expected, rounded);
  }
  assert_int_equal(value("peak_reserved_bytes"), rig_peak_held_bytes());
  assert_int_equal(value("stream_waits"), 0);
  assert_int_not_equal(value("metadata_bytes"), 0);
  struct hipmm_block block;
  (void)block;
  for (unsigned i = 0; i < BLOCKS; i++) rig_free(blocks[i], 0, NULL);
}

static void tells_what_its_cache_keeps(void **state)
{
  start(state, "");
  void *ptr = rig_allocate(1000, NULL), *fence = rig_allocate(1000, NULL);
  assert_int_equal(value("cached_bytes"), 0);
  rig_free(ptr, 1000, NULL);
  assert_int_equal(value("cached_bytes"), 1024);
  assert_int_equal(value("live_count"), 1);
  assert_int_equal(value("live_bytes"), 1000);
  assert_ptr_equal(rig_allocate(1024, NULL), ptr);
  assert_int_equal(value("cached_bytes"), 0);
  assert_int_equal(value("live_bytes"), 2024);
  rig_free(ptr, 1024, NULL);
  rig_free(fence, 1000, NULL);
  assert_int_equal(value("cached_bytes"), 2048);
  trim(0);
  assert_int_equal(value("cached_bytes"), 0);
  assert_int_equal(value("free_bytes"), 0);
}

/* ---- The maximum ---- */

static int fill(size_t bytes)
{
  int n = 0;
  while (n < MOST_BLOCKS && !hipmm_allocate(NULL, bytes, NULL, &blocks[n])) n++;
  return n;
}

/* Whatever was done before, one block can have it all. */
static void reaches_all_of(size_t maximum_bytes)
{
  static const size_t sizes[] = {60 * KIB, 4 * KIB, 700 * KIB, 3 * MIB - 256};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int n = fill(sizes[i]);
    assert_true(rig_held_bytes() <= maximum_bytes);
    assert_true(n < MOST_BLOCKS);
    for (int k = 0; k < n; k += 2) rig_free(blocks[k], sizes[i], NULL);
    for (int k = 0; k < n; k += 4) blocks[k] = rig_allocate(sizes[i] / 2 + 1, NULL);
    for (int k = 0; k < n; k++)
      if (k % 4 != 2) rig_free(blocks[k], 0, NULL);
    assert_int_equal(value("live_count"), 0);
    void *all = rig_allocate(maximum_bytes, NULL);
    memset(all, 1, 4 * KIB);
    memset((char *)all + maximum_bytes - 4 * KIB, 1, 4 * KIB);
    assert_int_equal(rig_held_bytes(), maximum_bytes);
    rig_free(all, maximum_bytes, NULL);
  }
  assert_int_equal(rig_peak_held_bytes(), maximum_bytes);
  assert_int_equal(value("peak_reserved_bytes"), maximum_bytes);
}

static void reaches_its_maximum_with_one_block(void **state)
{
  start(state, ", 'maximum_size': '62MiB'");
  reaches_all_of(62 * MIB);
}

static void reaches_its_maximum_after_an_initial_size(void **state)
{
  start(state, ", 'initial_size': '10MiB', 'maximum_size': '62MiB'");
  reaches_all_of(62 * MIB);
}

static void reaches_a_maximum_that_it_began_with(void **state)
{
  start(state, ", 'initial_size': '32MiB', 'maximum_size': '32MiB'");
  assert_int_equal(rig_held_bytes(), 32 * MIB);
  reaches_all_of(32 * MIB);
}

static void reaches_the_end_of_the_device(void **state)
{
  start(state, "");
  reaches_all_of(256 * MIB);
}

static void says_that_its_maximum_is_reached(void **state)
{
  void *ptr = NULL;
  start(state, ", 'maximum_size': '16MiB'");
  void *half = rig_allocate(9 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 8 MiB: maximum_size 16 MiB is reached");
  assert_null(ptr);
  assert_int_equal(value("live_count"), 1);
  rig_free(half, 9 * MIB, NULL);
  rig_free(rig_allocate(16 * MIB, NULL), 16 * MIB, NULL);
}

/* Under `auto`, since granules are larger. */
static void serves_under_a_maximum_below_the_granule(void **state)
{
  start_with("", "auto", *state == mapped ? ", 'maximum_size': '1MiB'" : ", 'maximum_size': 1000000");
  size_t most = *state == mapped ? MIB : 1000000 / 256 * 256;
  void *all = rig_allocate(most, NULL);
  assert_in_range(rig_held_bytes(), most, *state == mapped ? MIB : 1000000);
  rig_free(all, most, NULL);
  int n = fill(4 * KIB);
  assert_int_equal(n, most / (4 * KIB));
  while (n) rig_free(blocks[--n], 4 * KIB, NULL);
  rig_free(rig_allocate(most, NULL), most, NULL);
}

static void says_that_granules_are_larger_than_its_maximum(void **state)
{
  (void)state;
  assert_status(rig_try("", "'stack': [{'type': 'pool', 'growth': 'mapped', 'maximum_size': '1MiB'}, 'device']"),
                HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/growth");
  assert_message("maximum_size is less than the smallest piece");
}

/* No multiple of a granule: percentages seldom are. */
static void begins_with_all_of_an_odd_maximum(void **state)
{
  start(state, ", 'initial_size': 33000000, 'maximum_size': 33000000");
  assert_in_range(rig_held_bytes(), is_mapped(state) ? 30 * MIB : 33000000 - 256, 33000000);
  size_t most = rig_held_bytes();
  rig_free(rig_allocate(most, NULL), most, NULL);
  int n = fill(100 * KIB);
  assert_int_equal(rig_held_bytes(), most);
  while (n) rig_free(blocks[--n], 100 * KIB, NULL);
  rig_free(rig_allocate(most, NULL), most, NULL);
  assert_int_equal(rig_peak_held_bytes(), most);
}

/* ---- What it begins with ---- */

static void takes_its_initial_size_at_once(void **state)
{
  start(state, ", 'initial_size': '40MiB'");
  assert_int_equal(rig_held_bytes(), 40 * MIB);
  software()->reset_calls();
  void *ptr = rig_allocate(40 * MIB, NULL);
  assert_int_equal(software()->calls("hipMalloc") + software()->calls("hipMemCreate") + software()->calls("hipMemMap"),
                   0);
  assert_int_equal(rig_held_bytes(), 40 * MIB);
  rig_free(ptr, 40 * MIB, NULL);
}

static void takes_a_share_of_the_device(void **state)
{
  start(state, ", 'initial_size': '25%', 'maximum_size': '50%'");
  assert_int_equal(rig_held_bytes(), 64 * MIB);
  reaches_all_of(128 * MIB);
}

static void takes_nothing_at_first_without_an_initial_size(void **state)
{
  start(state, "");
  assert_int_equal(rig_held_bytes(), 0);
  void *ptr = rig_allocate(1, NULL);
  assert_in_range(rig_held_bytes(), 1, 2 * MIB);
  rig_free(ptr, 1, NULL);
}

static void says_that_its_initial_size_cannot_be_had(void **state)
{
  char graph[200];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s', 'initial_size': '300MiB'}, 'device']",
           (const char *)*state);
  assert_status(rig_try("", graph), HIPMM_E_OUT_OF_MEMORY);
  assert_message("/stack/0/initial_size");
  assert_int_equal(live_on_all_devices(), 0);
}

static void refuses_a_maximum_below_the_initial_size(void **state)
{
  (void)state;
  assert_status(rig_try("", "'stack': [{'type': 'pool', 'initial_size': '2MiB', 'maximum_size': '1MiB'}, 'device']"),
                HIPMM_E_CONFIG);
  assert_message("/stack/0/maximum_size");
}

/* ---- Giving back ---- */

static void gives_back_down_to_what_is_to_be_kept(void **state)
{
  start(state, "");
  for (int i = 0; i < 32; i++) blocks[i] = rig_allocate(4 * MIB, NULL);
  assert_in_range(rig_held_bytes(), 128 * MIB, 160 * MIB);
  trim(0);
  assert_true(rig_held_bytes() >= 128 * MIB);
  for (int i = 1; i < 32; i++) rig_free(blocks[i], 4 * MIB, NULL);
  trim(64 * MIB);
  assert_in_range(rig_held_bytes(), 64 * MIB, is_mapped(state) ? 64 * MIB : 80 * MIB);
  trim(0);
  assert_in_range(rig_held_bytes(), 4 * MIB, is_mapped(state) ? 4 * MIB : 8 * MIB);
  assert_int_equal(value("live_count"), 1);
  rig_free(blocks[0], 4 * MIB, NULL);
  trim(0);
  assert_int_equal(rig_held_bytes(), 0);
  assert_int_equal(value("reserved_bytes"), 0);
  assert_int_equal(value("pieces"), 0);
  rig_free(rig_allocate(100 * MIB, NULL), 100 * MIB, NULL);
}

/* A trim must not take memory from under work. */
static void waits_for_work_before_it_gives_memory_back(void **state)
{
  start_with("'scheduler': 'stepped', 'seed': 3", *state, "");
  hipStream_t stream = rig_stream();
  void *ptr = rig_allocate(8 * MIB, stream);
  assert_int_equal(rig_hip()->MemsetAsync(ptr, 1, 8 * MIB, stream), 0);
  rig_free(ptr, 8 * MIB, stream);
  trim(0);
  assert_int_equal(rig_held_bytes(), 0);
  assert_int_equal(rig_hip()->DeviceSynchronize(), 0);
  assert_int_equal(faults_on_all_devices(), 0);
  rig_drop_stream(stream);
}

static void gives_everything_back_at_the_end(void **state)
{
  start(state, ", 'initial_size': '20MiB'");
  for (int i = 0; i < 500; i++) blocks[i] = rig_allocate(1000 * (size_t)(i + 1), NULL);
  for (int i = 0; i < 500; i += 3) rig_free(blocks[i], 0, NULL);
  assert_ok(hipmm_finalize());
  assert_int_equal(live_on_all_devices(), 0);
}

/* ---- When memory is short ---- */

static void recovers_from_an_exhausted_device(void **state)
{
  void *ptr = NULL;
  start(state, "");
  int n = fill(5 * MIB);
  assert_in_range(n, is_mapped(state) ? 51 : 42, 51);
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 5 MiB");
  assert_int_equal(value("live_count"), n);
  for (int i = 0; i < n; i++) memset(blocks[i], i, 256);
  for (int i = 0; i < n; i++) assert_int_equal(*(unsigned char *)blocks[i], i);
  rig_free(blocks[n / 2], 5 * MIB, NULL);
  blocks[n / 2] = rig_allocate(5 * MIB, NULL);
  for (int i = 0; i < n; i++) rig_free(blocks[i], 5 * MIB, NULL);
  rig_free(rig_allocate(256 * MIB, NULL), 256 * MIB, NULL);
}

/* Only mapped memory can: half of it is free, but in no piece of more than one granule. */
static void moves_memory_under_a_block_that_no_hole_fits(void **state)
{
  (void)state;
  start_with("", mapped, "");
  for (int i = 0; i < 128; i++) blocks[i] = rig_allocate(2 * MIB, NULL);
  assert_int_equal(rig_held_bytes(), 256 * MIB);
  for (int i = 0; i < 128; i++) memset(blocks[i], i, 2 * MIB);
  for (int i = 0; i < 128; i += 2) rig_free(blocks[i], 2 * MIB, NULL);
  unsigned char *large = rig_allocate(128 * MIB, NULL);
  assert_true(value("moves") > 0);
  assert_int_equal(rig_held_bytes(), 256 * MIB);
  memset(large, 255, 128 * MIB);
  for (int i = 1; i < 128; i += 2) {
    assert_int_equal(*(unsigned char *)blocks[i], i);
    assert_memory_equal(blocks[i], (char *)blocks[i] + 1, 2 * MIB - 1);
    rig_free(blocks[i], 2 * MIB, NULL);
  }
  rig_free(large, 128 * MIB, NULL);
}

/* ---- How it grows ---- */

static void says_that_its_upstream_cannot_map(void **state)
{
  (void)state;
  assert_status(rig_try("", "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'pinned']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/growth");
  assert_message("write \"auto\"");
}

static void says_that_the_device_cannot_map(void **state)
{
  (void)state;
  assert_status(rig_try("'virtual_memory': false", "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']"),
                HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/growth");
  assert_message("no virtual memory management");
}

static void falls_back_to_segments_by_itself(void **state)
{
  static const char *const cases[][3] = {
      {"'virtual_memory': false", "'stack': ['pool', 'device']",
       "growth segments: this runtime or device has no virtual memory"},
      {"", "'stack': ['pool', 'pinned']", "growth segments: the upstream hands out no virtual memory"},
      {"", "'stack': [{'type': 'pool', 'maximum_size': '1MiB'}, 'device']", "growth segments: maximum_size is less"},
      {"", "'stack': ['pool', 'device']", "growth mapped"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    logged();
    rig_start_with(cases[i][0], cases[i][1]);
    assert_contains(logged(), cases[i][2]);
    rig_free(rig_allocate(MIB, NULL), MIB, NULL);
    assert_ok(hipmm_finalize());
  }
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
  char *ptr = rig_allocate(700, NULL), *large = rig_allocate(MIB, NULL), *freed = rig_allocate(MIB, NULL);
  rig_free(freed, MIB, NULL);
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
  rig_free(ptr, 700, NULL);
  rig_free(large, MIB, NULL);
}

static void refuses_another_size(void **state)
{
  start(state, "");
  static const size_t sizes[] = {700, 3 * MIB};
  for (int i = 0; i < 2; i++) {
    void *ptr = rig_allocate(sizes[i], NULL);
    assert_status(hipmm_deallocate(NULL, ptr, sizes[i] + 1, NULL), HIPMM_E_SIZE);
    assert_status(hipmm_deallocate(NULL, ptr, sizes[i] - 1, NULL), HIPMM_E_SIZE);
    assert_status(hipmm_deallocate(NULL, ptr, SIZE_MAX, NULL), HIPMM_E_SIZE);
    assert_message("cannot be freed with");
    assert_int_equal(value("live_count"), 1);
    rig_free(ptr, sizes[i], NULL);
  }
}

/* Once it is in a cache, once in the heap, once it is part of a larger block, and once it is gone. */
static void refuses_a_second_free(void **state)
{
  start(state, "");
  char *small = rig_allocate(700, NULL), *middle = rig_allocate(100 * KIB, NULL), *large = rig_allocate(4 * MIB, NULL);
  rig_free(small, 700, NULL);
  assert_foreign(small);
  rig_free(large, 4 * MIB, NULL);
  assert_foreign(large);
  rig_free(middle, 0, NULL);
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
  rig_start(graph);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_get_device_resource(i, &pools[i]));
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
  assert_int_equal(rig_held_bytes(), 0);
}

/* ---- Everything together ---- */

#define BOTH(test)                                                                 \
  {"mapped: " #test, test, rig_setup, rig_teardown, (void *)(uintptr_t)mapped},    \
  {                                                                                \
    "segments: " #test, test, rig_setup, rig_teardown, (void *)(uintptr_t)segments \
  }
#define ONCE(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(gives_aligned_memory_that_keeps_its_data),
      BOTH(aligns_up_to_4_mib),
      BOTH(refuses_sizes_that_no_device_has),
      BOTH(takes_nothing_for_nothing),
      BOTH(joins_all_that_is_freed),
      BOTH(counts_exactly),
      BOTH(tells_what_its_cache_keeps),
      BOTH(reaches_its_maximum_with_one_block),
      BOTH(reaches_its_maximum_after_an_initial_size),
      BOTH(reaches_a_maximum_that_it_began_with),
      BOTH(reaches_the_end_of_the_device),
      BOTH(says_that_its_maximum_is_reached),
      BOTH(serves_under_a_maximum_below_the_granule),
      ONCE(says_that_granules_are_larger_than_its_maximum),
      BOTH(begins_with_all_of_an_odd_maximum),
      BOTH(takes_its_initial_size_at_once),
      BOTH(takes_a_share_of_the_device),
      BOTH(takes_nothing_at_first_without_an_initial_size),
      BOTH(says_that_its_initial_size_cannot_be_had),
      ONCE(refuses_a_maximum_below_the_initial_size),
      BOTH(gives_back_down_to_what_is_to_be_kept),
      BOTH(waits_for_work_before_it_gives_memory_back),
      BOTH(gives_everything_back_at_the_end),
      BOTH(recovers_from_an_exhausted_device),
      ONCE(moves_memory_under_a_block_that_no_hole_fits),
      ONCE(says_that_its_upstream_cannot_map),
      ONCE(says_that_the_device_cannot_map),
      ONCE(falls_back_to_segments_by_itself),
      BOTH(refuses_pointers_that_are_not_its_own),
      BOTH(refuses_another_size),
      BOTH(refuses_a_second_free),
      BOTH(keeps_devices_apart),
  };
  log_to_file("info");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
