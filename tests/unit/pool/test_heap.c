/* SPDX-License-Identifier: MIT */
/* Tests of the heap: how blocks split and merge, its regions, and what happens when its records run out. */
#include "heap_fixture.h"
#include "random.h"

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
  heap_complete_stream(&heap, STREAM_FIRST);
  assert_int_equal(heap_largest_free(&heap), 512 * KIB);
  heap_complete_stream(&heap, STREAM_FIRST + 1);
  assert_true(heap_is_valid(&heap));
  assert_whole(MIB);
}

/* A small used block would make all of a large ready one look used to the other streams. */
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
  heap_complete_stream(&heap, STREAM_FIRST);
  give(most, 1); /* takes the smaller ready one in */
  assert_int_equal(heap_largest_free(&heap), MIB);
  assert_int_equal(block_of(&heap.blocks, free_index_any(&heap.free[STREAM_FIRST + 1], &heap.blocks))->bytes, MIB);
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
    uint32_t id = heap_allocate_ready(&heap, &request);
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
  assert_int_equal(request_fit_bytes(&request), 5 * MIB - 256);
  assert_int_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  request.alignment = 2 * MIB;
  assert_int_equal(start_of(heap_allocate_ready(&heap, &request)) % (2 * MIB), 0);
}

/* ---- Regions ---- */

static void merges_nothing_across_regions(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  assert_int_not_equal(heap_add_region(&heap, START + MIB, MIB, 0, STREAM_READY), BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap.bytes, 2 * MIB);
  uint32_t a = take(MIB, 0), b = take(MIB, 0);
  assert_int_equal(take(256, 0), BLOCK_NONE);
  give(a, 0);
  give(b, 0);
  assert_whole(MIB);
  heap_complete_all(&heap);
  assert_true(heap_remove_region(&heap, START + MIB, MIB));
  assert_true(heap_remove_region(&heap, START, MIB));
  assert_int_equal(heap.bytes, 0);
}

static void takes_regions_out_when_they_are_idle(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint64_t second = START + 64 * MIB;
  assert_int_not_equal(heap_add_region(&heap, second, 2 * MIB, 0, STREAM_READY), BLOCK_NONE);
  uint32_t all = take(MIB, 0), some = take(4 * KIB, 0);
  assert_int_equal(start_of(some), second);
  assert_false(heap_remove_region(&heap, second, 2 * MIB));
  give(some, 0);
  assert_false(heap_remove_region(&heap, second, 2 * MIB)); /* work may still use it */
  heap_complete_all(&heap);
  assert_true(heap_remove_region(&heap, second, 2 * MIB));
  assert_false(heap_remove_region(&heap, second, 2 * MIB));
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
    heap_complete_all(&heap);
    assert_whole(MIB);
    assert_true(heap_remove_region(&heap, START, MIB));
    assert_true(heap_is_valid(&heap));
    assert_int_not_equal(heap_add_region(&heap, START, MIB, 0, STREAM_READY), BLOCK_NONE);
  }
}

static void is_ready_for_the_stream_that_a_region_was_added_for(void **state)
{
  (void)state;
  open_heap(RECORD_AUTO);
  enter_streams(2);
  assert_int_not_equal(heap_add_region(&heap, START, MIB, 0, STREAM_FIRST), BLOCK_NONE);
  assert_int_equal(take(256, 1), BLOCK_NONE);
  assert_int_not_equal(take(256, 0), BLOCK_NONE);
}

static void adds_no_region_without_host_memory(void **state)
{
  (void)state;
  open_heap(RECORD_AUTO);
  fake_fail_host_allocation(1);
  assert_int_equal(heap_add_region(&heap, START, MIB, 0, STREAM_READY), BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap.bytes, 0);
  assert_int_not_equal(heap_add_region(&heap, START, MIB, 0, STREAM_READY), BLOCK_NONE);
}

/* ---- Records ---- */

static void gives_the_whole_block_when_records_are_short(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint32_t most = heap.blocks.most;
  heap.blocks.most = heap.blocks.count;
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  uint32_t id = heap_allocate_ready(&heap, &request);
  heap.blocks.most = most;
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
  uint32_t fence = take(256, 0), most = heap.blocks.most;
  heap.blocks.most = heap.blocks.count;
  struct request request = request_for(4 * KIB, 4096, 0);
  assert_int_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  heap.blocks.most = most;
  assert_true(heap_is_valid(&heap));
  assert_int_not_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  give(fence, 0);
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
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
