/* SPDX-License-Identifier: MIT */
/* Tests of fallback: which upstream serves a request, and that a free finds its way back to it. */
#include "../support/stream_program.h"

#include <stdio.h>
#include <string.h>

#define POOL   "'pool': {'type': 'pool', 'upstream': 'memory', 'maximum_size': '4MiB', 'growth': 'segments'}"
#define MEMORY "'memory': {'type': 'device'}"

/* At most 1 MiB of the pool, then pinned memory. */
static const char two[] = "'resources': {'top': {'type': 'fallback', 'upstream': ['limit', 'other']}, "
                          "'limit': {'type': 'limiting', 'limit': '1MiB', 'upstream': 'pool'}, " POOL
                          ", 'other': {'type': 'pinned'}, " MEMORY "}";

/* Two upstreams over the same memory: a pool, and where the pool has it from. */
static const char shared[] =
    "'resources': {'top': {'type': 'fallback', 'upstream': ['pool', 'memory']}, " POOL ", " MEMORY "}";

static bool is_pinned(void *ptr)
{
  struct hipmm_block block;
  return fixture_resource("other")->ops->find(fixture_resource("other")->self, ptr, &block) == HIPMM_OK;
}

/* ---- Which upstream ---- */

static void serves_from_the_first_that_is_not_short(void **state)
{
  (void)state;
  fixture_start(two);
  void *first = fixture_allocate(MIB, NULL), *second = fixture_allocate(1, NULL);
  assert_false(is_pinned(first));
  assert_true(is_pinned(second));
  assert_int_equal(fixture_value("top", "fallbacks"), 1);
  assert_int_equal(fixture_value("top", "allocations_1"), 1);
  assert_int_equal(fixture_value("top", "allocations_2"), 1);
  assert_int_equal(fixture_value("top", "allocations_3"), 0);
  assert_int_equal(fixture_value("top", "live_fallback_count"), 1);
  assert_int_equal(fixture_value("top", "live_fallback_bytes"), 1);
  fixture_free(first, MIB, NULL);
  void *third = fixture_allocate(1, NULL); /* the first has room again */
  assert_false(is_pinned(third));
  fixture_free(second, 1, NULL);
  fixture_free(third, 1, NULL);
  assert_int_equal(fixture_value("top", "live_fallback_count"), 0);
  assert_int_equal(fixture_value("top", "live_fallback_bytes"), 0);
  assert_int_equal(fixture_value("top", "fallbacks"), 1);
}

static void asks_them_in_the_order_of_the_graph(void **state)
{
  enum { ALL = 8 };
  void *blocks[ALL + 1];
  (void)state;
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']}, "
                "'a': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'b': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'c': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'d': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'e': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'f': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'g': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, "
                "'h': {'type': 'limiting', 'limit': 256, 'upstream': 'memory'}, " MEMORY "}");
  for (int i = 0; i < ALL; i++) {
    const char name[] = {(char)('a' + i), '\0'}, value[] = "allocations_#";
    char counted[sizeof value];
    memcpy(counted, value, sizeof value);
    counted[sizeof value - 2] = (char)('1' + i);
    assert_int_equal(fixture_value(name, "allocated_bytes"), 0);
    blocks[i] = fixture_allocate(200, NULL);
    assert_int_equal(fixture_value(name, "allocated_bytes"), 256);
    assert_int_equal(fixture_value("top", counted), 1);
  }
  assert_status(hipmm_allocate(NULL, 1, NULL, &blocks[ALL]), HIPMM_E_LIMIT);
  assert_message("h: cannot allocate 1 byte");
  assert_int_equal(fixture_value("top", "failures"), 1);
  assert_int_equal(fixture_value("top", "fallbacks"), ALL - 1);
  for (int i = 0; i < ALL; i++) fixture_free(blocks[i], i % 2 ? 200 : 0, NULL);
  for (int i = 0; i < ALL; i++) {
    const char name[] = {(char)('a' + i), '\0'};
    assert_int_equal(fixture_value(name, "allocated_bytes"), 0);
  }
}

static void gives_records_back_when_trimmed(void **state)
{
  enum { BLOCKS = 20000, KEPT = 10 };
  static void *ptrs[BLOCKS];
  (void)state;
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['limit', 'pool']}, "
                "'limit': {'type': 'limiting', 'limit': 0, 'upstream': 'memory'}, "
                "'pool': {'type': 'pool', 'upstream': 'memory'}, " MEMORY "}");
  int64_t before = fixture_value("top", "metadata_bytes");
  for (int i = 0; i < BLOCKS; i++) ptrs[i] = fixture_allocate(300, NULL);
  int64_t full = fixture_value("top", "metadata_bytes");
  for (int i = KEPT; i < BLOCKS; i++) fixture_free(ptrs[i], 300, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("top"), 0));
  assert_in_range(fixture_value("top", "metadata_bytes"), 1, before + full / 16);
  assert_int_equal(fixture_value("top", "live_fallback_count"), KEPT);
  for (int i = 0; i < KEPT; i++) fixture_free(ptrs[i], 300, NULL);
}

static void falls_back_when_the_device_is_full(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['memory', 'managed']}, " MEMORY
                ", 'managed': {'type': 'managed'}}");
  void *large = fixture_allocate(200 * MIB, NULL), *other = fixture_allocate(200 * MIB, NULL);
  assert_int_equal(fixture_value("top", "fallbacks"), 1);
  assert_int_equal(fixture_hip()->MemsetAsync(other, 7, 200 * MIB, NULL), 0);
  fixture_free(large, 200 * MIB, NULL);
  fixture_free(other, 0, NULL);
}

static void passes_other_failures_on(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(shared);
  fixture_fail_call("hipMalloc", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_null(ptr);
  assert_int_equal(fixture_value("top", "fallbacks") + fixture_value("top", "failures"), 0);
  void *pooled = fixture_allocate(4 * MIB, NULL);
  fixture_fail_call("hipMalloc", 1, 999); /* that of the second upstream: the pool may not grow */
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_message("memory: hipMalloc");
  assert_int_equal(fixture_value("top", "failures"), 1);
  fixture_free(pooled, 4 * MIB, NULL);
}

/* An upstream that is not short of memory but broken ends the search: the next one is not asked. */
static void ends_the_search_with_another_failure(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['limit', 'memory', 'other']}, "
                "'limit': {'type': 'limiting', 'limit': 256, 'upstream': 'pool'}, "
                "'pool': {'type': 'pool', 'upstream': 'memory'}, 'other': {'type': 'pinned'}, " MEMORY "}");
  fixture_fail_call("hipMalloc", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_message("memory: hipMalloc");
  assert_int_equal(fixture_value("top", "allocations_3"), 0);
}

static void refuses_an_upstream_twice_in_code(void **state)
{
  struct hipmm_resource *made = NULL, *upstreams[2];
  (void)state;
  fixture_start("'stack': ['device']");
  upstreams[0] = upstreams[1] = fixture_resource("device");
  assert_status(hipmm_resource_create(0, "fallback", NULL, upstreams, 2, &made), HIPMM_E_CONFIG);
  assert_message("upstreams 1 and 2 are the same");
  assert_null(made);
}

static void serves_alignments_that_the_others_cannot(void **state)
{
  void *ptr = NULL, *aligned = NULL;
  (void)state;
  fixture_start(shared);
  assert_ok(hipmm_allocate_aligned(NULL, 3 * MIB, 4096, NULL, &aligned));
  assert_int_equal((uintptr_t)aligned % 4096, 0);
  assert_status(hipmm_allocate_aligned(NULL, 3 * MIB, 4096, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("upstreams that align to 4 KiB are short of memory");
  assert_null(ptr);
  assert_ok(hipmm_deallocate_aligned(NULL, aligned, 3 * MIB, 4096, NULL));
  assert_ok(hipmm_finalize());
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['memory', 'pool']}, " POOL ", " MEMORY "}");
  assert_status(hipmm_allocate_aligned(NULL, 1000, 4096, NULL, &ptr), HIPMM_E_ARGUMENT); /* no want of memory */
}

static void serves_nothing_and_the_largest_sizes(void **state)
{
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 256, SIZE_MAX / 2, (size_t)1 << 50};
  void *ptr = NULL;
  (void)state;
  fixture_start(two);
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  fixture_free(NULL, 4096, NULL);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_null(ptr);
  assert_int_equal(fixture_value("top", "failures"), sizeof sizes / sizeof *sizes);
  assert_int_equal(fixture_value("top", "live_fallback_count"), 0);
}

/* ---- The way back ---- */

static void refuses_wrong_frees(void **state)
{
  int local;
  (void)state;
  fixture_start(two);
  char *first = fixture_allocate(MIB, NULL), *second = fixture_allocate(3000, NULL);
  for (int i = 0; i < 2; i++) {
    char *ptr = i ? second : first;
    size_t bytes = i ? 3000 : MIB;
    assert_status(hipmm_deallocate(NULL, ptr, bytes - 1, NULL), HIPMM_E_SIZE);
    assert_status(hipmm_deallocate(NULL, ptr + 256, bytes, NULL), HIPMM_E_POINTER);
    assert_status(hipmm_deallocate(NULL, ptr + 256, 0, NULL), HIPMM_E_POINTER);
    assert_status(hipmm_deallocate(NULL, &local, bytes, NULL), HIPMM_E_POINTER);
    fixture_free(ptr, i ? 0 : bytes, NULL);
    assert_status(hipmm_deallocate(NULL, ptr, bytes, NULL), HIPMM_E_POINTER);
    assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_POINTER);
  }
}

static void says_what_is_wrong_with_a_size(void **state)
{
  (void)state;
  fixture_start(two);
  void *first = fixture_allocate(MIB, NULL), *second = fixture_allocate(3000, NULL);
  assert_status(hipmm_deallocate(NULL, second, 2999, NULL), HIPMM_E_SIZE);
  assert_message("was allocated with 3000 bytes and cannot be freed with 2999");
  fixture_free(second, 3000, NULL);
  fixture_free(first, MIB, NULL);
}

/* The pool's first block has the address of a block of `memory`, the pool's own: it must not be taken for one that the
 * application freed. */
static void never_frees_what_an_upstream_depends_on(void **state)
{
  (void)state;
  fixture_start(shared);
  void *pooled = fixture_allocate(4 * MIB, NULL), *other = fixture_allocate(4 * MIB, NULL);
  size_t held = fixture_held_bytes();
  assert_int_equal(fixture_value("top", "fallbacks"), 1);
  fixture_free(pooled, 4 * MIB, NULL);
  assert_status(hipmm_deallocate(NULL, pooled, 0, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, pooled, 4 * MIB, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_held_bytes(), held);
  pooled = fixture_allocate(4 * MIB, NULL);
  fixture_free(other, 0, NULL);
  assert_int_equal(fixture_held_bytes(), held - 4 * MIB);
  fixture_free(pooled, 0, NULL);
}

/* Adaptors above ask for the size. */
static void finds_blocks_of_every_upstream(void **state)
{
  (void)state;
  fixture_start("'resources': {'top': {'type': 'statistics', 'upstream': 'fallback'}, "
                "'fallback': {'type': 'fallback', 'upstream': ['limit', 'other']}, "
                "'limit': {'type': 'limiting', 'limit': '1MiB', 'upstream': 'memory'}, "
                "'other': {'type': 'pinned'}, " MEMORY "}");
  void *first = fixture_allocate(700000, NULL), *second = fixture_allocate(800000, NULL);
  assert_int_equal(fixture_value("top", "current_bytes"), 1500000);
  fixture_free(second, 0, NULL);
  assert_int_equal(fixture_value("top", "current_bytes"), 700000);
  fixture_free(first, 0, NULL);
  assert_int_equal(fixture_value("top", "current_bytes"), 0);
  assert_status(hipmm_deallocate(NULL, first, 0, NULL), HIPMM_E_POINTER);
}

static void keeps_a_block_whose_free_fails(void **state)
{
  (void)state;
  fixture_start(two);
  void *first = fixture_allocate(MIB, NULL), *second = fixture_allocate(3000, NULL);
  fixture_fail_call("hipHostFree", 1, 999);
  assert_status(hipmm_deallocate(NULL, second, 3000, NULL), HIPMM_E_HIP);
  assert_int_equal(fixture_value("top", "live_fallback_bytes"), 3000);
  fixture_free(second, 3000, NULL);
  fixture_free(first, MIB, NULL);
  assert_int_equal(fixture_value("top", "live_fallback_bytes"), 0);
}

/* More than there are buckets to keep them apart. */
static void keeps_many_blocks_apart(void **state)
{
  enum { MANY = 100000 };
  static void *blocks[MANY];
  (void)state;
  fixture_start("'resources': {'top': {'type': 'fallback', 'upstream': ['none', 'pool']}, "
                "'none': {'type': 'limiting', 'limit': 0, 'upstream': 'memory'}, "
                "'pool': {'type': 'pool', 'upstream': 'memory'}, " MEMORY "}");
  for (size_t i = 0; i < MANY; i++) blocks[i] = fixture_allocate(i % 500 + 1, NULL);
  assert_int_equal(fixture_value("top", "live_fallback_count"), MANY);
  for (size_t i = 0; i < MANY; i++) {
    size_t at = i * 7919 % MANY; /* in another order than they came */
    assert_status(hipmm_deallocate(NULL, blocks[at], at % 500 + 2, NULL), HIPMM_E_SIZE);
    fixture_free(blocks[at], i % 3 ? at % 500 + 1 : 0, NULL);
  }
  assert_int_equal(fixture_value("top", "live_fallback_count"), 0);
  assert_int_equal(fixture_value("pool", "live_bytes"), 0);
}

/* ---- Graphs ---- */

struct graph_case {
  const char *upstream, *message;
};

static const struct graph_case wrong_graphs[] = {
    {"'memory'", "/resources/top/upstream: fallback takes 2 to 8 upstreams, not 1"},
    {"['memory']", "fallback takes 2 to 8 upstreams, not 1"},
    {"[]", "fallback takes 2 to 8 upstreams, not 0"},
    {"['memory', 'memory']", "/resources/top/upstream: upstreams 1 and 2 are the same"},
    {"['memory', 'above']", "cycle: "},
    {"['top', 'memory']", "cycle: top → top"},
    {"['memory', 'memry']", "/resources/top/upstream/1: no resource is called \"memry\""},
    {"['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']", "fallback takes 2 to 8 upstreams, not 9"},
};

static void refuses_wrong_upstreams(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof wrong_graphs / sizeof *wrong_graphs; i++) {
    char graph[600];
    snprintf(graph, sizeof graph,
             "'resources': {'above': {'type': 'statistics', 'upstream': 'top'}, "
             "'top': {'type': 'fallback', 'upstream': %s}, 'memory': {'type': 'device'}}, "
             "'devices': {'default': 'above'}",
             wrong_graphs[i].upstream);
    assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
    assert_message(wrong_graphs[i].message);
    hipmm_finalize();
  }
  assert_status(fixture_try("", "'stack': ['fallback', 'device']"), HIPMM_E_CONFIG);
  assert_message("fallback needs 2 upstreams; write \"resources\" instead of \"stack\"");
}

/* ---- Random programs ---- */

/* Half of what is asked for falls back. */
static const char half[] = "'resources': {'top': {'type': 'fallback', 'upstream': ['limit', 'other']}, "
                           "'limit': {'type': 'limiting', 'limit': '128KiB', 'upstream': 'pool'}, "
                           "'pool': {'type': 'pool', 'upstream': 'memory'}, "
                           "'other': {'type': 'pool', 'upstream': 'memory'}, " MEMORY "}";

static void agrees_with_a_model(void **state)
{
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    fixture_start_with(seed % 2 ? "'scheduler': 'stepped', 'seed': 3" : "", half);
    struct stream_program program = {.seed = seed,
                                     .steps = 2000,
                                     .n_streams = 4,
                                     .most_live = 100,
                                     .most_bytes = 65536,
                                     .destroys_streams = true,
                                     .ends_with_no_live = seed != 4};
    stream_program_run(&program);
    assert_in_range(fixture_value("top", "fallbacks"), 101, 2000);
    assert_in_range(fixture_value("top", "allocations_1"), 101, 2000);
    if (program.ends_with_no_live) assert_int_equal(fixture_value("limit", "allocated_bytes"), 0);
    assert_ok(hipmm_finalize());
  }
}

enum { THREADS = 4, ROUNDS = 4000, LIVE = 64 };

/* Blocks of its own, of which some fall back; each holds its number. */
static void allocate_and_free(int *failures)
{
  struct hipmm_block blocks[LIVE] = {{0}};
  for (size_t i = 0; i < ROUNDS; i++) {
    struct hipmm_block *block = &blocks[i * 31 % LIVE];
    if (block->ptr) {
      *failures += *(size_t *)block->ptr != block->bytes;
      *failures += hipmm_deallocate(NULL, block->ptr, i % 5 ? block->bytes : 0, NULL) != HIPMM_OK;
    }
    *block = (struct hipmm_block){.bytes = sizeof(size_t) + i * 997 % 30000};
    *failures += hipmm_allocate(NULL, block->bytes, NULL, &block->ptr) != HIPMM_OK;
    if (block->ptr) *(size_t *)block->ptr = block->bytes;
  }
  for (size_t i = 0; i < LIVE; i++)
    *failures += hipmm_deallocate(NULL, blocks[i].ptr, blocks[i].bytes, NULL) != HIPMM_OK;
}

static void serves_threads(void **state)
{
  (void)state;
  needs_software();
  fixture_start(half);
  fixture_run_threads(THREADS, allocate_and_free);
  assert_int_equal(fixture_value("top", "fallbacks") + fixture_value("top", "allocations_1"), THREADS * ROUNDS);
  assert_int_equal(fixture_value("limit", "allocated_bytes"), 0);
  assert_int_equal(fixture_value("top", "live_fallback_count"), 0);
}

/* ---- Failing calls ---- */

static void work(void)
{
  void *blocks[8] = {NULL};
  for (int i = 0; i < 8; i++)
    if (hipmm_allocate(NULL, MIB / 3, NULL, &blocks[i])) blocks[i] = NULL;
  for (int i = 0; i < 8; i++)
    if (hipmm_deallocate(NULL, blocks[i], i % 2 ? MIB / 3 : 0, NULL)) /* fails once */
      if (hipmm_deallocate(NULL, blocks[i], MIB / 3, NULL)) print_error("a free failed twice\n");
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_in_range(fixture_fail_each_call("'scheduler': 'stepped'", two, work), 10, 1000);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* The second upstream cuts its blocks out of the first one's memory: a block that was freed is not taken for the chunk
 * that starts where it did, without a size or with the chunk's. */
static void frees_no_chunk_of_another_upstream(void **state)
{
  (void)state;
  fixture_start(
      "'resources': {'memory': {'type': 'device'}, 'none': {'type': 'limiting', 'upstream': 'memory', 'limit': "
      "256}, 'blocks': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': '64KiB', 'blocks_per_chunk': "
      "1}, 'main': {'type': 'fallback', 'upstream': ['none', 'blocks']}}, 'devices': {'default': 'main'}");
  void *first = fixture_allocate(65536, NULL), *second = fixture_allocate(65536, NULL),
       *direct = fixture_allocate(256, NULL);
  size_t held = fixture_held_bytes();
  fixture_free(first, 65536, NULL);
  for (int round = 0; round < 2; round++) {
    assert_status(hipmm_deallocate(NULL, first, 0, NULL), HIPMM_E_POINTER);
    assert_status(hipmm_deallocate(NULL, first, 65536, NULL), HIPMM_E_POINTER);
    assert_int_equal(fixture_held_bytes(), held);
  }
  assert_status(hipmm_deallocate(NULL, direct, 255, NULL), HIPMM_E_SIZE);
  fixture_free(direct, 0, NULL);
  fixture_free(second, 0, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(serves_from_the_first_that_is_not_short),
      TEST(asks_them_in_the_order_of_the_graph),
      TEST(gives_records_back_when_trimmed),
      TEST(falls_back_when_the_device_is_full),
      TEST(passes_other_failures_on),
      TEST(ends_the_search_with_another_failure),
      TEST(refuses_an_upstream_twice_in_code),
      TEST(serves_alignments_that_the_others_cannot),
      TEST(serves_nothing_and_the_largest_sizes),
      TEST(refuses_wrong_frees),
      TEST(says_what_is_wrong_with_a_size),
      TEST(never_frees_what_an_upstream_depends_on),
      TEST(frees_no_chunk_of_another_upstream),
      TEST(finds_blocks_of_every_upstream),
      TEST(keeps_a_block_whose_free_fails),
      TEST(keeps_many_blocks_apart),
      TEST(refuses_wrong_upstreams),
      TEST(agrees_with_a_model),
      TEST(serves_threads),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
