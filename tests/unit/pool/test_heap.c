/* SPDX-License-Identifier: MIT */
/* Tests of the heap: how blocks split and merge, its regions, and what happens when its records run out. */
#include "../../support/random.h"
#include "heap_fixture.h"

/* ---- Splitting and merging ---- */

static void cuts_from_the_front_and_merges_all_again(void **state)
{
  uint32_t ids[8];
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  for (unsigned i = 0; i < 8; i++) {
    ids[i] = allocate_block(128 * KIB, 0);
    assert_int_equal(start_of(ids[i]), START + i * 128 * KIB);
    assert_int_equal(heap.live_bytes, (i + 1) * 128 * KIB);
    assert_int_equal(heap.requested_bytes, (i + 1) * (128 * KIB - 1));
  }
  assert_int_equal(allocate_block(256, 0), BLOCK_NONE);
  static const unsigned order[] = {0, 2, 1, 7, 5, 3, 6, 4};
  for (unsigned i = 0; i < 8; i++) free_block(ids[order[i]], 0);
  assert_whole(MIB);
}

static void puts_small_blocks_where_they_were_freed_last(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint32_t first = allocate_block(512, 0), second = allocate_block(1024, 0), third = allocate_block(512, 0),
           fence = allocate_block(256, 0);
  uint64_t at = start_of(third);
  free_block(first, 0);
  free_block(third, 0);
  assert_int_equal(start_of(allocate_block(512, 0)), at);
  free_block(second, 0); /* merges with the first: 1536 bytes */
  assert_int_equal(start_of(allocate_block(1536, 0)), START);
  free_block(fence, 0);
}

static void keeps_freed_blocks_of_two_streams_apart(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  uint32_t first = allocate_block(512 * KIB, 0), second = allocate_block(512 * KIB, 1);
  free_block(first, 0);
  free_block(second, 1);
  assert_int_equal(heap_largest_free(&heap), 512 * KIB);
  assert_int_equal(allocate_block(MIB, 0), BLOCK_NONE);
  heap_complete_stream(&heap, STREAM_FIRST);
  assert_int_equal(heap_largest_free(&heap), 512 * KIB);
  heap_complete_stream(&heap, STREAM_FIRST + 1);
  assert_true(heap_is_valid(&heap));
  assert_whole(MIB);
}

/* A small used block would make all of a large ready one look used to the other streams. */
static void leaves_a_larger_ready_block_where_there_are_streams(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  free_block(allocate_block(64 * KIB, 0), 0);
  assert_int_equal(heap_largest_free(&heap), MIB - 64 * KIB);
  uint32_t small = allocate_block(64 * KIB, 0);
  assert_int_equal(start_of(small), START);
  uint32_t most = allocate_block(960 * KIB, 1);
  assert_int_equal(start_of(most), START + 64 * KIB);
  free_block(small, 0);
  heap_complete_stream(&heap, STREAM_FIRST);
  free_block(most, 1); /* takes the smaller ready one in */
  assert_int_equal(heap_largest_free(&heap), MIB);
  assert_int_equal(block_of(&heap.blocks, free_index_any(&heap.free[STREAM_FIRST + 1], &heap.blocks))->bytes, MIB);
}

static void merges_with_ready_memory_for_its_only_stream(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  free_block(allocate_block(256, 0), 0);
  assert_whole(MIB);
  assert_int_equal(start_of(allocate_block(MIB, 0)), START);
}

/* Where memory is plentiful, the best fit; where it is short, the lowest address. */
static void goes_to_the_lowest_address_while_memory_is_short(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, 16 * MIB, 1);
  uint32_t large = allocate_block(5 * MIB, 0), first = allocate_block(256, 0);
  uint32_t fitting = allocate_block(3 * MIB, 0), second = allocate_block(256, 0);
  free_block(large, 0);
  free_block(fitting, 0);
  uint32_t best = allocate_block(3 * MIB, 0);
  assert_int_equal(start_of(best), START + 5 * MIB + 256);
  free_block(best, 0);
  heap.is_low_on_memory = true;
  uint32_t lowest = allocate_block(3 * MIB, 0);
  assert_int_equal(start_of(lowest), START);
  assert_int_equal(allocate_block(16 * MIB, 0), BLOCK_NONE);
  free_block(lowest, 0);
  free_block(first, 0);
  free_block(second, 0);
  assert_whole(16 * MIB);
}

/* The region there, if it has that size. */
static bool remove_region(uint64_t start, uint64_t bytes)
{
  uint32_t id = BLOCK_NONE;
  while ((id = heap_next_region(&heap, id)))
    if (block_of(&heap.blocks, id)->start == start && block_of(&heap.blocks, id)->bytes == bytes) break;
  return id && heap_remove_region(&heap, id);
}

static uint32_t all_is_uncommitted(const void *chunks, uint64_t start, uint64_t end)
{
  (void)chunks;
  return (uint32_t)((end - start + 2 * MIB - 1) / (2 * MIB));
}

/* Where no chunk can be mapped at the lowest address, there is still the block that was passed over. */
static void passes_a_fit_over_and_finds_it_again(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, 16 * MIB, 1);
  heap.blocks.granule_bytes = 2 * MIB;
  heap.uncommitted_in = all_is_uncommitted;
  heap.is_low_on_memory = true;
  uint32_t whole = heap_next_region(&heap, BLOCK_NONE);
  heap_unlink(&heap, whole);
  heap_link(&heap, whole); /* its kind is another with granules */
  assert_int_not_equal(heap_add_region(&heap, START - 64 * MIB, 16 * MIB, 8, STREAM_READY), BLOCK_NONE);
  struct request request = request_for(3 * MIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  assert_int_equal(start_of(heap_fit_uncommitted(&heap, &request)), START - 64 * MIB);
  uint32_t id = heap_allocate_fit(&heap, KIND_BUSY, &request);
  assert_int_equal(start_of(id), START);
  free_block(id, 0);
}

static void aligns_up_to_4_mib_and_loses_nothing(void **state)
{
  (void)state;
  for (uint64_t alignment = 512; alignment <= 4 * MIB; alignment *= 2) {
    open_with(RECORD_AUTO, 16 * MIB, 1);
    uint32_t shift = allocate_block(256, 0); /* what follows is aligned to nothing */
    struct request request = request_for(3 * MIB, alignment, 0);
    uint32_t id = heap_allocate_ready(&heap, &request);
    assert_true(heap_is_valid(&heap));
    assert_int_equal(start_of(id) % alignment, 0);
    assert_int_equal(block_of(&heap.blocks, id)->bytes, 3 * MIB);
    uint32_t before = allocate_block(alignment - 256, 0); /* the part that was cut off in front is there to be used */
    assert_int_equal(start_of(before), START + 256);
    free_block(shift, 0);
    free_block(id, 0);
    free_block(before, 0);
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
  uint32_t a = allocate_block(MIB, 0), b = allocate_block(MIB, 0);
  assert_int_equal(allocate_block(256, 0), BLOCK_NONE);
  free_block(a, 0);
  free_block(b, 0);
  assert_whole(MIB);
  heap_complete_all(&heap);
  assert_true(remove_region(START + MIB, MIB));
  assert_true(remove_region(START, MIB));
  assert_int_equal(heap.bytes, 0);
}

static void takes_regions_out_when_they_are_idle(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  uint64_t second = START + 64 * MIB;
  assert_int_not_equal(heap_add_region(&heap, second, 2 * MIB, 0, STREAM_READY), BLOCK_NONE);
  uint32_t all = allocate_block(MIB, 0), some = allocate_block(4 * KIB, 0);
  assert_int_equal(start_of(some), second);
  assert_false(remove_region(second, 2 * MIB));
  free_block(some, 0);
  assert_false(remove_region(second, 2 * MIB)); /* work may still use it */
  heap_complete_all(&heap);
  assert_true(remove_region(second, 2 * MIB));
  assert_false(remove_region(second, 2 * MIB));
  assert_true(heap_is_valid(&heap));
  assert_int_equal(heap.bytes, MIB);
  free_block(all, 0);
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
    for (unsigned i = 0; i < 16; i++) ids[i] = allocate_block(256 * (1 + random_below(&random, 200)), 0);
    for (unsigned i = 16; i > 0; i--) {
      unsigned which = (unsigned)random_below(&random, i);
      assert_false(remove_region(START, MIB));
      free_block(ids[which], 0);
      ids[which] = ids[i - 1];
    }
    heap_complete_all(&heap);
    assert_whole(MIB);
    assert_true(remove_region(START, MIB));
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
  assert_int_equal(allocate_block(256, 1), BLOCK_NONE);
  assert_int_not_equal(allocate_block(256, 0), BLOCK_NONE);
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
  free_block(id, 0);
  assert_whole(MIB);
}

static void refuses_an_alignment_when_records_are_short(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, 4 * MIB, 1);
  uint32_t fence = allocate_block(256, 0), most = heap.blocks.most;
  heap.blocks.most = heap.blocks.count;
  struct request request = request_for(4 * KIB, 4096, 0);
  assert_int_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  heap.blocks.most = most;
  assert_true(heap_is_valid(&heap));
  assert_int_not_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  free_block(fence, 0);
}

/* A record is left for the cut in front of the aligned address, and none for the one behind. */
static void keeps_a_free_block_whole_when_records_run_out_halfway(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  heap.blocks.granule_bytes = 2 * MIB;
  heap.uncommitted_in = all_is_uncommitted;
  uint32_t id = heap_add_region(&heap, START - 62 * MIB, 16 * MIB, 8, STREAM_READY), most = heap.blocks.most;
  heap.blocks.most = heap.blocks.count + 1;
  struct request request = request_for(2 * MIB, 8 * MIB, 0);
  assert_int_equal(heap_allocate(&heap, id, &request), BLOCK_NONE);
  assert_int_equal(block_of(&heap.blocks, id)->bytes, 16 * MIB);
  assert_int_equal(block_of(&heap.blocks, id)->uncommitted, 8);
  assert_int_equal(block_of(&heap.blocks, id)->after, BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
  heap.blocks.most = most;
  assert_true(remove_region(START - 62 * MIB, 16 * MIB));
}

/* ---- What the other tests ask after each step ---- */

static void knows_that_a_heap_is_not_valid(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  struct block *block = block_of(&heap.blocks, free_index_any(&heap.free[STREAM_READY], &heap.blocks));
  struct stream *stream = stream_of(&heap.streams, STREAM_FIRST);
  const struct block sound_block = *block;
  const struct stream sound_stream = *stream;
  assert_true(heap_is_valid(&heap));
  block->start++;
  assert_false(heap_is_valid(&heap));
  *block = sound_block;
  block->epoch = 1; /* later than any free of its stream */
  assert_false(heap_is_valid(&heap));
  *block = sound_block;
  stream->completed = 1; /* more than was recorded */
  assert_false(heap_is_valid(&heap));
  *stream = sound_stream;
  assert_true(heap_is_valid(&heap));
}

#define TEST(test) cmocka_unit_test_teardown(test, close_heap)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(cuts_from_the_front_and_merges_all_again),
      TEST(puts_small_blocks_where_they_were_freed_last),
      TEST(keeps_freed_blocks_of_two_streams_apart),
      TEST(leaves_a_larger_ready_block_where_there_are_streams),
      TEST(merges_with_ready_memory_for_its_only_stream),
      TEST(goes_to_the_lowest_address_while_memory_is_short),
      TEST(passes_a_fit_over_and_finds_it_again),
      TEST(aligns_up_to_4_mib_and_loses_nothing),
      TEST(needs_room_for_the_alignment_wherever_a_block_starts),
      TEST(merges_nothing_across_regions),
      TEST(takes_regions_out_when_they_are_idle),
      TEST(knows_an_idle_region_after_any_use),
      TEST(is_ready_for_the_stream_that_a_region_was_added_for),
      TEST(adds_no_region_without_host_memory),
      TEST(gives_the_whole_block_when_records_are_short),
      TEST(refuses_an_alignment_when_records_are_short),
      TEST(keeps_a_free_block_whole_when_records_run_out_halfway),
      TEST(knows_that_a_heap_is_not_valid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
