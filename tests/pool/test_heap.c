/* SPDX-License-Identifier: MIT */
/* Tests of the heap: how blocks split and merge, where they are looked for, and that whoever gets a block comes after all
 * work that used it, which the make-believe streams know to the single operation. */
#include "../support.h"
#include "fake.h"
#include "heap.h"
#include "random.h"

#include <string.h>

enum { MOST_BLOCKS = 1 << 24, KIB = 1024 };

static const uint64_t START = 0x300000000000; /* a multiple of any alignment */

static struct heap heap;

static int close_heap(void **state)
{
  (void)state;
  heap_close(&heap);
  const char *mistake = fake_end();
  if (mistake) print_error("%s\n", mistake);
  return mistake ? -1 : 0;
}

static void open_heap(enum record record)
{
  assert_true(heap_open(&heap, fake_begin(), record));
}

/* One region, clean. Streams are known in order, so that id STREAM_FIRST + i is stream i; the default one is known. */
static void open_with(enum record record, uint64_t bytes, unsigned n_streams)
{
  open_heap(record);
  assert_int_not_equal(heap_add_region(&heap, START, bytes, 0, STREAM_CLEAN), BLOCK_NONE);
  for (unsigned i = 0; i < n_streams; i++)
    assert_int_equal(streams_id(&heap.streams, fake_stream(i)), STREAM_FIRST + i);
}

static struct request request_for(uint64_t bytes, uint64_t alignment, unsigned stream)
{
  return (struct request){
      .bytes = bytes, .alignment = alignment, .requested = bytes - 1, .stream = STREAM_FIRST + stream};
}

static uint32_t take(uint64_t bytes, unsigned stream)
{
  struct request request = request_for(bytes, HIPMM_ALIGNMENT, stream);
  uint32_t id = heap_take_ready(&heap, &request);
  assert_true(heap_is_valid(&heap));
  return id;
}

static void give(uint32_t id, unsigned stream)
{
  heap_give(&heap, id, STREAM_FIRST + stream);
  assert_true(heap_is_valid(&heap));
}

static uint64_t start_of(uint32_t id)
{
  return block_of(&heap.blocks, id)->start;
}

static void assert_whole(uint64_t bytes)
{
  assert_int_equal(heap_largest_free(&heap), bytes);
  assert_int_equal(heap.live_bytes, 0);
  assert_int_equal(heap.requested_bytes, 0);
  assert_int_equal(heap.blocks.live, 0);
}

/* ---- Splitting and merging ---- */

static void cuts_from_the_front_and_merges_all_again(void **state)
{
  uint32_t ids[8];
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  for (unsigned i = 0; i < 8; i++) {
    ids[i] = take(128 * KIB, 0);
    assert_int_equal(start_of(ids[i]), START + i * 128 * KIB);
    assert_int_equal(heap.live_bytes, (i + 1) * 128 * KIB);
    assert_int_equal(heap.requested_bytes, (i + 1) * (128 * KIB - 1));
  }
  assert_int_equal(take(256, 0), BLOCK_NONE);
  static const unsigned order[] = {0, 2, 1, 7, 5, 3, 6, 4};
  for (unsigned i = 0; i < 8; i++) give(ids[order[i]], 0);
  assert_whole(MIB);
}

static void puts_small_blocks_where_they_were_freed_last(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint32_t first = take(512, 0), second = take(1024, 0), third = take(512, 0), fence = take(256, 0);
  uint64_t at = start_of(third);
  give(first, 0);
  give(third, 0);
  assert_int_equal(start_of(take(512, 0)), at);
  give(second, 0); /* merges with the first: 1536 bytes */
  assert_int_equal(start_of(take(1536, 0)), START);
  give(fence, 0);
}

static void keeps_freed_blocks_of_two_streams_apart(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  uint32_t first = take(512 * KIB, 0), second = take(512 * KIB, 1);
  give(first, 0);
  give(second, 1);
  assert_int_equal(heap_largest_free(&heap), 512 * KIB);
  assert_int_equal(take(MIB, 0), BLOCK_NONE);
  heap_clean_stream(&heap, STREAM_FIRST);
  assert_int_equal(heap_largest_free(&heap), 512 * KIB);
  heap_clean_stream(&heap, STREAM_FIRST + 1);
  assert_true(heap_is_valid(&heap));
  assert_whole(MIB);
}

/* A small used block would make all of a large clean one look used to the other streams. */
static void spoils_no_larger_clean_block_where_there_are_streams(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  give(take(64 * KIB, 0), 0);
  assert_int_equal(heap_largest_free(&heap), MIB - 64 * KIB);
  uint32_t small = take(64 * KIB, 0);
  assert_int_equal(start_of(small), START);
  uint32_t most = take(960 * KIB, 1);
  assert_int_equal(start_of(most), START + 64 * KIB);
  give(small, 0);
  heap_clean_stream(&heap, STREAM_FIRST);
  give(most, 1); /* takes the smaller clean one in */
  assert_int_equal(heap_largest_free(&heap), MIB);
  assert_int_equal(block_of(&heap.blocks, free_index_any(&stream_of(&heap.streams, STREAM_FIRST + 1)->free))->bytes,
                   MIB);
}

static void merges_with_clean_memory_for_its_only_stream(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  give(take(256, 0), 0);
  assert_whole(MIB);
  assert_int_equal(start_of(take(MIB, 0)), START);
}

static void aligns_up_to_4_mib_and_loses_nothing(void **state)
{
  (void)state;
  for (uint64_t alignment = 512; alignment <= 4 * MIB; alignment *= 2) {
    open_with(RECORD_AUTO, 16 * MIB, 1);
    uint32_t shift = take(256, 0); /* what follows is aligned to nothing */
    struct request request = request_for(3 * MIB, alignment, 0);
    uint32_t id = heap_take_ready(&heap, &request);
    assert_true(heap_is_valid(&heap));
    assert_int_equal(start_of(id) % alignment, 0);
    assert_int_equal(block_of(&heap.blocks, id)->bytes, 3 * MIB);
    uint32_t before = take(alignment - 256, 0); /* the part that was cut off in front is there to be used */
    assert_int_equal(start_of(before), START + 256);
    give(shift, 0);
    give(id, 0);
    give(before, 0);
    assert_whole(16 * MIB);
    assert_int_equal(close_heap(NULL), 0);
  }
  open_heap(RECORD_AUTO);
}

static void needs_room_for_the_alignment_wherever_a_block_starts(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, 4 * MIB, 1);
  struct request request = request_for(MIB, 4 * MIB, 0);
  assert_int_equal(request_room(&request), 5 * MIB - 256);
  assert_int_equal(heap_take_ready(&heap, &request), BLOCK_NONE);
  request.alignment = 2 * MIB;
  assert_int_equal(start_of(heap_take_ready(&heap, &request)) % (2 * MIB), 0);
}

/* ---- Regions ---- */

static void merges_nothing_across_regions(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  assert_int_not_equal(heap_add_region(&heap, START + MIB, MIB, 0, STREAM_CLEAN), BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap.bytes, 2 * MIB);
  uint32_t a = take(MIB, 0), b = take(MIB, 0);
  assert_int_equal(take(256, 0), BLOCK_NONE);
  give(a, 0);
  give(b, 0);
  assert_whole(MIB);
  heap_all_passed(&heap);
  assert_true(heap_remove_region(&heap, START + MIB, MIB));
  assert_true(heap_remove_region(&heap, START, MIB));
  assert_int_equal(heap.bytes, 0);
}

static void takes_regions_out_when_they_are_idle(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint64_t second = START + 64 * MIB;
  assert_int_not_equal(heap_add_region(&heap, second, MIB, 0, STREAM_CLEAN), BLOCK_NONE);
  uint32_t all = take(MIB, 0), some = take(4 * KIB, 0);
  assert_int_equal(start_of(some), second);
  assert_false(heap_remove_region(&heap, second, MIB));
  give(some, 0);
  assert_false(heap_remove_region(&heap, second, MIB)); /* work may still use it */
  heap_all_passed(&heap);
  assert_true(heap_remove_region(&heap, second, MIB));
  assert_false(heap_remove_region(&heap, second, MIB));
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap.bytes, MIB);
  give(all, 0);
  assert_whole(MIB);
}

/* Whichever record covers it in the end. */
static void knows_an_idle_region_after_any_use(void **state)
{
  uint64_t random = 5;
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  for (unsigned round = 0; round < 200; round++) {
    uint32_t ids[16];
    for (unsigned i = 0; i < 16; i++) ids[i] = take(256 * (1 + draw(&random, 200)), 0);
    for (unsigned i = 16; i > 0; i--) {
      unsigned which = (unsigned)draw(&random, i);
      assert_false(heap_remove_region(&heap, START, MIB));
      give(ids[which], 0);
      ids[which] = ids[i - 1];
    }
    heap_all_passed(&heap);
    assert_whole(MIB);
    assert_true(heap_remove_region(&heap, START, MIB));
    assert_true(heap_is_valid(&heap));
    assert_int_not_equal(heap_add_region(&heap, START, MIB, 0, STREAM_CLEAN), BLOCK_NONE);
  }
}

static void is_ready_for_the_stream_that_a_region_was_added_for(void **state)
{
  (void)state;
  open_heap(RECORD_AUTO);
  for (unsigned i = 0; i < 2; i++) streams_id(&heap.streams, fake_stream(i));
  assert_int_not_equal(heap_add_region(&heap, START, MIB, 0, STREAM_FIRST), BLOCK_NONE);
  assert_int_equal(take(256, 1), BLOCK_NONE);
  assert_int_not_equal(take(256, 0), BLOCK_NONE);
}

static void adds_no_region_without_host_memory(void **state)
{
  (void)state;
  open_heap(RECORD_AUTO);
  fake_fail_host_allocation(1);
  assert_int_equal(heap_add_region(&heap, START, MIB, 0, STREAM_CLEAN), BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap.bytes, 0);
  assert_int_not_equal(heap_add_region(&heap, START, MIB, 0, STREAM_CLEAN), BLOCK_NONE);
}

/* ---- Records ---- */

static void gives_the_whole_block_when_records_are_short(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint32_t count = heap.blocks.count;
  heap.blocks.count = MOST_BLOCKS;
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  uint32_t id = heap_take_ready(&heap, &request);
  heap.blocks.count = count;
  assert_int_equal(block_of(&heap.blocks, id)->bytes, MIB);
  assert_int_equal(heap.requested_bytes, 4 * KIB - 1);
  assert_true(heap_is_valid(&heap));
  give(id, 0);
  assert_whole(MIB);
}

static void refuses_an_alignment_when_records_are_short(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, 4 * MIB, 1);
  uint32_t fence = take(256, 0), count = heap.blocks.count;
  heap.blocks.count = MOST_BLOCKS;
  struct request request = request_for(4 * KIB, 4096, 0);
  assert_int_equal(heap_take_ready(&heap, &request), BLOCK_NONE);
  heap.blocks.count = count;
  assert_true(heap_is_valid(&heap));
  assert_int_not_equal(heap_take_ready(&heap, &request), BLOCK_NONE);
  give(fence, 0);
}

/* ---- Streams ---- */

/* Takes all of the heap in two halves on stream 1 and gives them back; between the two, does `between`. */
static void free_halves(void (*between)(void))
{
  uint32_t first = take(512 * KIB, 1), second = take(512 * KIB, 1);
  fake_work(1);
  give(first, 1);
  if (between) between();
  fake_work(1);
  give(second, 1);
}

static void record_on_stream_1(void)
{
  assert_true(stream_cover(&heap.streams, STREAM_FIRST + 1));
}

static void uses_what_has_passed_and_waits_for_nothing(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 2);
  free_halves(NULL);
  fake_progress(1);
  struct request request = request_for(MIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_take_ready(&heap, &request), BLOCK_NONE);
  assert_int_equal(start_of(heap_take_passed(&heap, &request)), START);
  assert_int_equal(fake_calls.stream_wait_event, 0);
  assert_int_equal(fake_calls.event_synchronize, 0);
}

static void does_not_use_what_has_not_passed(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 2);
  free_halves(NULL);
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_take_passed(&heap, &request), BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
}

/* Stream 1 has come as far as the first event: the second half is not covered by it. Its handle may not be used any more,
 * so no later event can be recorded. */
static void cleans_only_what_an_event_covers(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  stream_of(&heap.streams, STREAM_FIRST + 1)->lasts = true;
  uint32_t first = take(128 * KIB, 1), fence = take(256, 1), second = take(896 * KIB - 256, 1);
  fake_work(1);
  give(first, 1);
  record_on_stream_1();
  stream_of(&heap.streams, STREAM_FIRST + 1)->lasts = false;
  fake_set_alive(1, false);
  fake_progress(1);
  fake_work(1);
  give(second, 1);
  struct request large = request_for(512 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_take_passed(&heap, &large), BLOCK_NONE);
  assert_int_equal(start_of(take(128 * KIB, 0)), START);
  assert_int_equal(heap_take_waiting(&heap, &large), BLOCK_NONE);
  assert_int_equal(heap_withheld_bytes(&heap, STREAM_FIRST), 896 * KIB - 256);
  give(fence, 1);
}

static void waits_for_the_stream_that_has_what_fits(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t first = take(512 * KIB, 1), second = take(512 * KIB, 2);
  uint64_t work = fake_work(1);
  fake_work(2);
  give(first, 1);
  give(second, 2);
  struct request request = request_for(512 * KIB, HIPMM_ALIGNMENT, 0);
  uint32_t id = heap_take_waiting(&heap, &request);
  assert_int_equal(start_of(id), START);
  assert_true(fake_is_ordered(0, 1, work));
  assert_false(fake_is_ordered(0, 2, 1));
  assert_int_equal(fake_calls.stream_wait_event, 1);
  assert_int_equal(heap.streams.waits, 1);
}

static void joins_what_several_streams_hold(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t first = take(512 * KIB, 1), second = take(512 * KIB, 2);
  uint64_t works[] = {fake_work(1), fake_work(2)};
  give(first, 1);
  give(second, 2);
  struct request request = request_for(MIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_take_waiting(&heap, &request), BLOCK_NONE);
  assert_int_equal(start_of(heap_take_merged(&heap, &request)), START);
  assert_true(fake_is_ordered(0, 1, works[0]) && fake_is_ordered(0, 2, works[1]));
  assert_true(heap_is_valid(&heap));
}

/* What stream 0 got by waiting for stream 1 and freed unused is stream 0's: whoever gets it from there must come after
 * stream 1, too. */
static void order_is_handed_on_through_streams(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t all = take(MIB, 1);
  uint64_t work = fake_work(1);
  give(all, 1);
  struct request first = request_for(MIB, HIPMM_ALIGNMENT, 0), second = request_for(MIB, HIPMM_ALIGNMENT, 2);
  give(heap_take_waiting(&heap, &first), 0);
  assert_int_not_equal(heap_take_waiting(&heap, &second), BLOCK_NONE);
  assert_true(fake_is_ordered(2, 1, work));
}

static void uses_no_handle_that_may_be_gone(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  free_halves(NULL);
  fake_set_alive(1, false);
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_take_passed(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_take_waiting(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_take_merged(&heap, &request), BLOCK_NONE);
  assert_false(heap_wait(&heap));
  assert_int_equal(heap_withheld_bytes(&heap, STREAM_FIRST), MIB);
  assert_int_equal(heap_withheld_bytes(&heap, STREAM_FIRST + 1), 0);
  fake_hip.DeviceSynchronize();
  heap_all_passed(&heap);
  assert_int_equal(start_of(take(MIB, 0)), START);
  assert_int_equal(fake_calls.event_record, 0);
}

static void records_at_each_free_if_told_to(void **state)
{
  (void)state;
  open_with(RECORD_ON_FREE, MIB, 2);
  free_halves(NULL);
  assert_int_equal(fake_calls.event_record, 2);
  assert_int_equal(fake_calls.event_create, 1);
  fake_set_alive(1, false);
  struct request request = request_for(MIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(start_of(heap_take_waiting(&heap, &request)), START);
  assert_true(fake_is_ordered(0, 1, 2));
}

static void does_without_events_that_fail(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 2);
  free_halves(NULL);
  fake_set_record_fails(true);
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_take_passed(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_take_waiting(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_take_merged(&heap, &request), BLOCK_NONE);
  assert_false(heap_wait(&heap));
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap_withheld_bytes(&heap, STREAM_FIRST), MIB);
  fake_set_record_fails(false);
  assert_int_not_equal(heap_take_waiting(&heap, &request), BLOCK_NONE);
}

static void waits_on_the_host_for_all(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t first = take(512 * KIB, 1), second = take(512 * KIB, 2);
  fake_work(1);
  fake_work(2);
  give(first, 1);
  give(second, 2);
  assert_true(heap_wait(&heap));
  assert_true(heap_is_valid(&heap));
  assert_true(fake_is_ordered(0, 1, 1) && fake_is_ordered(0, 2, 1));
  assert_whole(MIB);
  assert_int_equal(start_of(take(MIB, 0)), START);
}

/* ---- Anything, in any order ---- */

enum { UNITS = 1 << 15, REGION_UNITS = UNITS / 2, MOST_LIVE = 64, STEPS = 6000, STREAMS = 5 };

/* Per unit of the two regions: who used it last. */
struct use {
  bool live;
  unsigned stream;
  uint64_t work;
};

static struct use uses[UNITS];

struct held {
  uint32_t id;
  unsigned stream;
};

struct world {
  uint64_t random;
  struct held live[MOST_LIVE];
  unsigned n_live, taken, refused;
};

static struct use *uses_of(const struct block *block)
{
  return &uses[(block->start - START) / HIPMM_ALIGNMENT];
}

/* Handles that are known to be good: those that last, and the caller's. */
static void set_alive(unsigned caller)
{
  for (unsigned i = 0; i < STREAMS; i++) {
    bool lasts = stream_of(&heap.streams, STREAM_FIRST + i)->lasts;
    fake_set_alive(i, i == caller || lasts || heap.streams.record == RECORD_LAZY);
  }
}

static void assert_may_be_used(const struct block *block, unsigned stream)
{
  struct use *use = uses_of(block);
  for (uint64_t i = 0; i < block->bytes / HIPMM_ALIGNMENT; i++) {
    assert_false(use[i].live);
    assert_true(fake_is_ordered(stream, use[i].stream, use[i].work));
    use[i].live = true;
  }
}

static void take_one(struct world *world)
{
  unsigned stream = (unsigned)draw(&world->random, STREAMS);
  uint64_t most = draw(&world->random, 3) ? 64 : UNITS / 8;
  uint64_t alignment = HIPMM_ALIGNMENT << (draw(&world->random, 4) ? 0 : draw(&world->random, 15));
  struct request request = request_for((1 + draw(&world->random, most)) * HIPMM_ALIGNMENT, alignment, stream);
  set_alive(stream);
  uint32_t id = heap_take_ready(&heap, &request);
  if (!id) id = heap_take_passed(&heap, &request);
  if (!id) id = heap_take_waiting(&heap, &request);
  if (!id) id = heap_take_merged(&heap, &request);
  if (!id && heap_withheld_bytes(&heap, request.stream)) {
    fake_hip.DeviceSynchronize();
    heap_all_passed(&heap);
    id = heap_take_ready(&heap, &request);
  }
  world->refused += !id;
  if (!id) return;
  const struct block *block = block_of(&heap.blocks, id);
  assert_int_equal(block->start % alignment, 0);
  assert_int_equal(block->bytes, request.bytes);
  assert_int_equal(block_at(&heap.blocks, (void *)(uintptr_t)block->start), id);
  assert_may_be_used(block, stream);
  fake_work(stream);
  world->live[world->n_live++] = (struct held){id, stream};
  world->taken++;
}

static void give_one(struct world *world)
{
  unsigned which = (unsigned)draw(&world->random, world->n_live);
  struct held held = world->live[which];
  world->live[which] = world->live[--world->n_live];
  unsigned stream = draw(&world->random, 4) ? held.stream : (unsigned)draw(&world->random, STREAMS);
  fake_order(stream, held.stream);
  uint64_t work = fake_work(stream);
  const struct block *block = block_of(&heap.blocks, held.id);
  for (uint64_t i = 0; i < block->bytes / HIPMM_ALIGNMENT; i++) uses_of(block)[i] = (struct use){false, stream, work};
  set_alive(stream);
  heap_give(&heap, held.id, STREAM_FIRST + stream);
}

static void do_something_else(struct world *world)
{
  unsigned stream = (unsigned)draw(&world->random, STREAMS);
  set_alive(stream);
  switch (draw(&world->random, 4)) {
  case 0: stream_of(&heap.streams, STREAM_FIRST + stream)->lasts = !stream || draw(&world->random, 2); break;
  case 1: heap_wait(&heap); break;
  case 2:
    fake_hip.StreamSynchronize(fake_stream(stream));
    heap_clean_stream(&heap, STREAM_FIRST + stream);
    break;
  default: fake_progress(stream);
  }
}

static void survives_anything(enum record record, uint64_t seed)
{
  struct world world = {.random = seed};
  memset(uses, 0, sizeof uses);
  open_with(record, REGION_UNITS * HIPMM_ALIGNMENT, STREAMS);
  uint64_t second = START + REGION_UNITS * HIPMM_ALIGNMENT;
  assert_int_not_equal(heap_add_region(&heap, second, REGION_UNITS * HIPMM_ALIGNMENT, 0, STREAM_CLEAN), BLOCK_NONE);
  for (unsigned i = 0; i < STEPS; i++) {
    uint64_t lot = draw(&world.random, 100);
    if (lot < 6)
      do_something_else(&world);
    else if (world.n_live == MOST_LIVE || (world.n_live && lot % 2))
      give_one(&world);
    else
      take_one(&world);
    assert_true(heap_is_valid(&heap));
  }
  assert_true(world.taken > STEPS / 4 && world.refused > STEPS / 100);
  while (world.n_live) give_one(&world);
  fake_hip.DeviceSynchronize();
  heap_all_passed(&heap);
  assert_true(heap_is_valid(&heap));
  assert_whole(REGION_UNITS * HIPMM_ALIGNMENT);
  assert_int_equal(close_heap(NULL), 0);
}

static void survives_anything_recording(void **state)
{
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) survives_anything(RECORD_AUTO, seed);
  for (uint64_t seed = 4; seed <= 6; seed++) survives_anything(RECORD_LAZY, seed);
  for (uint64_t seed = 7; seed <= 9; seed++) survives_anything(RECORD_ON_FREE, seed);
  open_heap(RECORD_AUTO);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_heap)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(cuts_from_the_front_and_merges_all_again),
      TEST(puts_small_blocks_where_they_were_freed_last),
      TEST(keeps_freed_blocks_of_two_streams_apart),
      TEST(spoils_no_larger_clean_block_where_there_are_streams),
      TEST(merges_with_clean_memory_for_its_only_stream),
      TEST(aligns_up_to_4_mib_and_loses_nothing),
      TEST(needs_room_for_the_alignment_wherever_a_block_starts),
      TEST(merges_nothing_across_regions),
      TEST(takes_regions_out_when_they_are_idle),
      TEST(knows_an_idle_region_after_any_use),
      TEST(is_ready_for_the_stream_that_a_region_was_added_for),
      TEST(adds_no_region_without_host_memory),
      TEST(gives_the_whole_block_when_records_are_short),
      TEST(refuses_an_alignment_when_records_are_short),
      TEST(uses_what_has_passed_and_waits_for_nothing),
      TEST(does_not_use_what_has_not_passed),
      TEST(cleans_only_what_an_event_covers),
      TEST(waits_for_the_stream_that_has_what_fits),
      TEST(joins_what_several_streams_hold),
      TEST(order_is_handed_on_through_streams),
      TEST(uses_no_handle_that_may_be_gone),
      TEST(records_at_each_free_if_told_to),
      TEST(does_without_events_that_fail),
      TEST(waits_on_the_host_for_all),
      TEST(survives_anything_recording),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
