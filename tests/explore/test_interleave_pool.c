/* SPDX-License-Identifier: MIT */
/* test_interleave_pool.c: the pool and the arena, all their files as they are, with two threads in all orders: caches of
 * threads beside trims, growth, ends of streams and of threads; frees of the other thread's blocks; heaps of threads; depots of
 * caches. In each order no block is given out twice, the counts are right, the upstream has everything back, and there is no
 * race. Mistakes must be found. */
#include "../../plugins/arena/options.h"
#include "../../plugins/heap/backing.h"
#include "../../plugins/pool/allocate.h"
#include "../../plugins/pool/options.h"
#include "interleave.h"
#include "interleave_device.h"
#include "interleave_use.h"
#include "mistakes/interleave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MEDIUM = 64 << 10, LARGE = 3 << 20, ALL = 4 << 20, CAPACITY = 64 << 20 };

enum interleave_mistake interleave_mistake;

static uint64_t capacity;

/* ---- What threads do: each with its own place for a block, or with the other's ---- */

static void use_small_and_end(void)
{
  use_small();
  interleave_end_thread();
}

/* All that the pool may hold: with caches flushed there is room for it, unless a small block is live. */
static void get_all(void)
{
  try_get(8, ALL, NULL);
}

static void try_small(void)
{
  try_get(4, SMALL, NULL);
  give(4, NULL);
}

static void try_small_twice(void)
{
  try_small();
  try_small();
}

static void try_small_and_end(void)
{
  try_small();
  interleave_end_thread();
}

static void free_shared_medium(void)
{
  if (!plugin->ops->deallocate(resource, shared_block, MEDIUM, HIPMM_ALIGNMENT, NULL))
    __atomic_fetch_add(&n_frees, 1, __ATOMIC_RELAXED);
}

/* Frees the shared block, which merges with the memory in front of it; then its record is that of a block elsewhere. */
static void free_shared_and_move(void)
{
  free_shared_medium();
  get(10, MEDIUM - SMALL, NULL);
  get(11, MEDIUM, NULL);
}

/* The same in a pool, whose heap gives that record to the next block, in front. */
static void free_shared_and_get_medium(void)
{
  free_shared_medium();
  get(11, MEDIUM, NULL);
}

static void try_to_free_shared_medium(void)
{
  if (plugin->ops->try_deallocate(resource, shared_block, MEDIUM, HIPMM_ALIGNMENT, NULL))
    __atomic_fetch_add(&n_frees, 1, __ATOMIC_RELAXED);
}

/* Two blocks that are neighbours, behind one that stays. */
static void get_three(void)
{
  get_first();
  get(12, MEDIUM, NULL);
  get(13, MEDIUM, NULL);
}

/* Merges what is free, and cuts it twice: the second block begins where none did before, far from the others. */
static void merge_and_cut(void)
{
  give(12, NULL);
  give(13, NULL);
  get(10, 8 * MEDIUM, NULL);
  get(11, MEDIUM, NULL);
}

static void count_free(void)
{
  if (value("free_bytes") <= 0) interleave_note("nothing is free");
}

static void get_large(void)
{
  get(8, LARGE, NULL);
}

static void use_medium(void)
{
  get(14, MEDIUM, NULL);
  give(14, NULL);
}

static void use_pair(void)
{
  get(12u + (unsigned)interleave_self(), MEDIUM, NULL);
  use_small();
}

/* Frees the block that the other thread got with get_medium(), and gets one. */
static void exchange_medium(void)
{
  unsigned self = (unsigned)interleave_self();
  give(12 + 1 - self, NULL);
  get(14 + self, MEDIUM, NULL);
}

static void get_medium(void)
{
  get(12u + (unsigned)interleave_self(), MEDIUM, NULL);
}

static void give_second(void)
{
  give(SECOND, NULL);
}

static void give_second_on_other_stream(void)
{
  give(SECOND, other_stream);
}

/* Too large for a message: it needs the lock of the other thread's arena. */
static void give_medium_of_second(void)
{
  give(12 + SECOND, NULL);
}

static void get_superblock(void)
{
  get(10, ARENA_SUPERBLOCK_BYTES, NULL);
}

/* The second thread's block: it is freed meanwhile, or not. */
static void count_two(void)
{
  int64_t live = value("live_count");
  if (live < 1 || live > 2) interleave_note("the count of live blocks is wrong");
}

/* As if the thread's cache were full. */
static void overflow(void)
{
  struct pool *pool = resource;
  struct cache *cache = cache_of_thread(&pool->caches, NULL);
  biased_lock_acquire(&pool->arena.lock);
  cache->most_bytes = 4 * SMALL;
  cache_make_room(&pool->caches, cache, &pool->arena.heap, cache->most_bytes);
  biased_lock_release(&pool->arena.lock);
}

static void use_and_overflow(void)
{
  use_small();
  overflow();
}

/* Nothing is ever allocated there, but the maps of addresses go that far once the pool has memory. */
static void free_foreign(void)
{
  if (!plugin->ops->deallocate(resource, (void *)(uintptr_t)(1 << 30), SMALL, HIPMM_ALIGNMENT, NULL))
    interleave_note("what is not allocated is freed");
}

/* ---- How it begins ---- */

static void open_resource(const struct hipmm_plugin *type, const void *options)
{
  struct hipmm_resource *upstream = device_begin(capacity);
  plugin = type;
  if (plugin->create(&device_services, options, &upstream, 1, &resource))
    interleave_note("the resource is not created");
  if (interleave_mistake == NO_FENCE) interleave_drop_fences();
  const struct pool *pool = resource;
  for (int i = 0; type == &pool_LTX_hipmm_plugin && i < INTERLEAVE_THREADS; i++) {
    if (interleave_mistake == WEAK_END) interleave_weaken(&pool->caches.items[i].is_abandoned, sizeof(bool));
    if (interleave_mistake == WEAK_OPENING) interleave_weaken(&pool->caches.items[i].gate.shut, sizeof(bool));
  }
}

static void open_pool(void)
{
  static const struct pool_options options = {
      .initial_size = 4 << 20, .maximum_size = UINT64_MAX, .slack = SLACK_AUTO, .growth = GROWTH_SEGMENTS};
  open_resource(&pool_LTX_hipmm_plugin, &options);
}

static void open_arena(void)
{
  static const struct arena_options options = {.maximum_size = UINT64_MAX};
  open_resource(&arena_LTX_hipmm_plugin, &options);
}

/* Nothing of the upstream is there yet. */
static void begin_empty(void)
{
  static const struct pool_options options = {
      .maximum_size = UINT64_MAX, .slack = SLACK_AUTO, .growth = GROWTH_SEGMENTS};
  capacity = CAPACITY;
  open_resource(&pool_LTX_hipmm_plugin, &options);
}

static void begin_pool(void)
{
  capacity = CAPACITY;
  open_pool();
  interleave_alone(FIRST, use_small);
  interleave_alone(SECOND, use_small);
}

static void begin_arena(void)
{
  capacity = CAPACITY;
  open_arena();
  interleave_alone(FIRST, use_small);
  interleave_alone(SECOND, use_small);
}

/* What is free in the pool is in the thread's cache, or between such blocks: a large block needs a flush. */
static void begin_full_pool(void)
{
  capacity = 4 << 20;
  open_pool();
  interleave_alone(FIRST, use_small);
  interleave_alone(SECOND, use_small);
}

static void begin_with_blocks(void)
{
  begin_pool();
  interleave_alone(FIRST, get_first);
  interleave_alone(SECOND, get_first);
}

static void begin_arena_with_blocks(void)
{
  begin_arena();
  interleave_alone(FIRST, get_first);
  interleave_alone(SECOND, get_first);
}

static void begin_arena_with_medium(void)
{
  begin_arena();
  interleave_alone(SECOND, get_medium);
}

static void begin_arena_with_pending(void)
{
  begin_arena_with_blocks();
  interleave_alone(FIRST, give_second_on_other_stream);
}

static void begin_with_shared_block(void)
{
  size_t bytes;
  begin_with_blocks();
  n_frees = 0;
  shared_block = device_take(FIRST, &bytes);
}

static void begin_arena_with_shared_block(void)
{
  size_t bytes;
  begin_arena_with_blocks();
  n_frees = 0;
  shared_block = device_take(FIRST, &bytes);
}

static void get_pair(void)
{
  get(12, MEDIUM, NULL);
  get(FIRST, MEDIUM, NULL);
  give(12, NULL);
}

/* What is in front of it and behind it is free. */
static void share_block_between(void)
{
  size_t bytes;
  interleave_alone(FIRST, get_pair);
  n_frees = 0;
  shared_block = device_take(FIRST, &bytes);
}

static void begin_with_shared_block_between(void)
{
  begin_pool();
  share_block_between();
}

static void begin_arena_with_shared_block_between(void)
{
  begin_arena();
  share_block_between();
}

static void begin_arena_with_neighbours(void)
{
  begin_arena();
  interleave_alone(FIRST, get_three);
}

/* The first thread has no arena yet. */
static void begin_arena_beside_new(void)
{
  capacity = CAPACITY;
  open_arena();
  interleave_alone(SECOND, use_small);
}

static void begin_with_stream(void)
{
  begin_pool();
  interleave_alone(FIRST, retain_and_use);
}

static void begin_arena_with_stream(void)
{
  begin_arena();
  interleave_alone(FIRST, retain_and_use);
}

/* The first thread has no cache yet. */
static void begin_beside_new(void)
{
  capacity = CAPACITY;
  open_pool();
  interleave_alone(SECOND, use_small);
}

static void want_heap(void)
{
  struct pool *pool = resource;
  struct cache *cache = cache_of_thread(&pool->caches, NULL);
  if (!cache) interleave_note("the thread has no cache");
  cache->wants_heap = true;
}

static void begin_with_wishes(void)
{
  begin_pool();
  interleave_alone(FIRST, want_heap);
  interleave_alone(SECOND, want_heap);
}

static void begin_with_heaps(void)
{
  begin_with_wishes();
  interleave_alone(FIRST, use_medium);
  interleave_alone(SECOND, use_medium);
}

/* Each thread has a block from its heap. */
static void begin_with_blocks_of_heaps(void)
{
  begin_with_heaps();
  interleave_alone(FIRST, get_medium);
  interleave_alone(SECOND, get_medium);
}

/* What the second thread's cache had is in a depot, where the first one finds it. */
static void begin_with_depot(void)
{
  begin_pool();
  interleave_alone(FIRST, get_first);
  interleave_alone(SECOND, overflow);
  const struct pool *pool = resource;
  if (!pool->caches.index->in_depots[pool->caches.items[1].stream]) interleave_note("no depot has a block");
}

static void get_on_other_stream(void)
{
  plugin->ops->stream_retain(resource, other_stream);
  get((unsigned)interleave_self(), SMALL, other_stream);
}

static void begin_arena_with_blocks_of_stream(void)
{
  begin_arena();
  interleave_alone(FIRST, get_on_other_stream);
  interleave_alone(SECOND, get_on_other_stream);
}

/* Without what the first thread frees there is no room. */
static void begin_full_arena(void)
{
  capacity = 4 << 20;
  open_arena();
  interleave_alone(SECOND, get_first);
}

/* ---- How it ends ---- */

static void end_full(void)
{
  give(8, NULL);
  get(8, ALL, NULL);
  end();
}

/* A call that does not wait may claim a block and leave it, while the free of the other thread is refused. */
static void end_with_one_free_at_last(void)
{
  if (!n_frees) free_shared_medium();
  end_with_one_free();
}

static const struct interleave_scenario scenarios[] = {
    {"pool: a block freed twice", begin_with_shared_block, {free_shared, free_shared}, end_with_one_free, 2},
    {"pool: a second free beside the next allocation",
     begin_with_shared_block,
     {free_shared_and_get, free_shared},
     end_with_next_block,
     2},
    {"pool: a second free while the record is used anew",
     begin_with_shared_block_between,
     {free_shared_and_get_medium, free_shared_medium},
     end_with_one_free,
     2},
    {"pool: a second free that does not wait, while the record is used anew",
     begin_with_shared_block_between,
     {free_shared_and_get_medium, try_to_free_shared_medium},
     end_with_one_free_at_last,
     2},
    {"pool: a free of foreign memory beside the first growth", begin_empty, {use_small, free_foreign}, end, 2},
    {"pool: a thread's end beside a trim", begin_pool, {use_small_and_end, trim}, end, 2},
    {"pool: a hit beside a trim", begin_pool, {use_small_twice, trim}, end, 2},
    {"pool: a hit beside a count", begin_pool, {use_small, count}, end, 2},
    {"pool: hits beside growth", begin_full_pool, {try_small_twice, get_all}, end_full, 2},
    {"pool: a hit beside a stream's end", begin_with_stream, {use_small, retire}, end, 2},
    {"pool: a new stream beside the end of another", begin_with_stream, {use_other_stream, trim}, end, 2},
    {"pool: a thread's end beside growth", begin_full_pool, {try_small_and_end, get_all}, end_full, 2},
    {"pool: two ends", begin_pool, {use_small_and_end, use_small_and_end}, end, 2},
    {"pool: a first cache beside an end", begin_beside_new, {use_small, use_small_and_end}, end, 2},
    {"pool: each frees the other's block", begin_with_blocks, {give_second_and_get, give_first_and_get}, end, 2},
    {"pool: a free of the other's block beside a trim", begin_with_blocks, {give_second_and_get, trim}, end, 2},
    {"pool: two threads get heaps", begin_with_wishes, {use_pair, use_pair}, end, 1},
    {"pool: a heap beside a trim", begin_with_heaps, {use_pair, trim}, end, 1},
    {"pool: a heap beside its thread's end", begin_with_heaps, {use_small_and_end, get_large}, end, 2},
    {"pool: heaps, and each frees the other's block",
     begin_with_blocks_of_heaps,
     {exchange_medium, exchange_medium},
     end,
     1},
    {"pool: a depot beside a trim", begin_with_depot, {use_small, trim}, end, 2},
    {"pool: a depot beside a count", begin_with_depot, {use_small, count_two}, end, 2},
    {"pool: a depot beside a full cache", begin_with_depot, {use_small, use_and_overflow}, end, 2},
    {"pool: a depot beside an end", begin_with_depot, {use_small, use_small_and_end}, end, 2},
    {"arena: a message beside a trim", begin_arena_with_blocks, {give_second, trim}, end, 2},
    {"arena: a message beside a count", begin_arena_with_blocks, {give_second, count_two}, end, 2},
    {"arena: a message beside a hit", begin_arena_with_blocks, {give_second, use_small_twice}, end, 3},
    {"arena: a message beside its stream's end",
     begin_arena_with_blocks_of_stream,
     {give_second_on_other_stream, retire},
     end,
     2},
    {"arena: a message while memory is short", begin_full_arena, {give_second, get_all}, end_full, 2},
    {"arena: a hit beside a trim", begin_arena, {use_small_twice, trim}, end, 1},
    {"arena: a hit beside a trim that ends what is pending", begin_arena_with_pending, {trim, use_small}, end, 2},
    {"arena: a hit beside a free on another stream",
     begin_arena_with_blocks,
     {give_second_on_other_stream, use_small},
     end,
     2},
    {"arena: a larger block beside a new superblock",
     begin_arena_with_medium,
     {give_medium_of_second, get_superblock},
     end,
     2},
    {"arena: a hit beside a count", begin_arena, {use_small, count}, end, 2},
    {"arena: a hit beside a stream's end", begin_arena_with_stream, {use_small, retire}, end, 2},
    {"arena: each frees the other's block", begin_arena_with_blocks, {give_second_and_get, give_first_and_get}, end, 2},
    {"arena: a thread's end beside a trim", begin_arena, {use_small_and_end, trim}, end, 1},
    {"arena: a thread's end beside the free of its block",
     begin_arena_with_blocks,
     {use_small_and_end, give_first},
     end,
     2},
    {"arena: a block freed twice", begin_arena_with_shared_block, {free_shared, free_shared}, end_with_one_free, 2},
    {"arena: a second free beside the next allocation",
     begin_arena_with_shared_block,
     {free_shared_and_get, free_shared},
     end_with_next_block,
     2},
    {"arena: a second free while the record is used anew",
     begin_arena_with_shared_block_between,
     {free_shared_and_move, free_shared_medium},
     end_with_one_free,
     2},
    {"arena: cuts beside a trim", begin_arena_with_neighbours, {merge_and_cut, trim}, end, 1},
    {"arena: cuts beside a visit", begin_arena_with_neighbours, {merge_and_cut, count_free}, end, 1},
    {"arena: a first use beside a thread's end", begin_arena_beside_new, {use_small, use_small_and_end}, end, 2},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void all_orders_are_right(void **state)
{
  (void)state;
  interleave_mistake = NO_MISTAKE;
  unsigned long runs = 0;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
  assert_true(runs > 10000);
}

static void all_orders_are_right_on_a_weaker_processor(void **state)
{
  interleave_weaken_processor(true);
  all_orders_are_right(state);
  interleave_weaken_processor(false);
}

static void finds_each_mistake(void **state)
{
  /* A search of all scenarios up to the right one takes a minute. */
  static const struct {
    enum interleave_mistake mistake;
    const char *name, *scenario;
  } rows[] = {{NO_FENCE, "gates without the fence", "pool: a thread's end beside a trim"},
              {NO_WAIT_AT_GATES, "gates without a wait for who is inside", "pool: a hit beside a trim"},
              {NO_CLAIM, "a claim in two steps", "pool: a block freed twice"},
              {NO_CLAIM, "a claim of an arena's block in two steps", "arena: a block freed twice"},
              {WEAK_END, "a thread's end without release", "pool: a thread's end beside a trim"},
              {WEAK_OPENING, "a gate that opens without release", "pool: a hit beside a trim"}};
  (void)state;
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    size_t i = 0;
    while (i < SCENARIOS && strcmp(scenarios[i].name, rows[row].scenario)) i++;
    interleave_mistake = rows[row].mistake;
    assert_true(i < SCENARIOS && interleave_finds(&scenarios[i], 1, rows[row].name, NULL));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders_are_right),
      cmocka_unit_test(all_orders_are_right_on_a_weaker_processor),
      cmocka_unit_test(finds_each_mistake),
  };
  return cmocka_run_group_tests_name("interleavings of the pool", tests, NULL, NULL);
}
