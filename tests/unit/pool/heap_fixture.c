/* SPDX-License-Identifier: MIT */
/* heap_fixture.c: the helpers of heap_fixture.h. */
#include "heap_fixture.h"

struct heap heap;

int close_heap(void **state)
{
  (void)state;
  heap_close(&heap);
  return fake_end();
}

void open_heap(enum record record)
{
  assert_true(heap_open(&heap, fake_begin(), record));
}

void enter_streams(unsigned n_streams)
{
  for (unsigned i = 0; i < n_streams; i++) {
    uint32_t id = STREAM_READY;
    assert_ok(streams_enter(&heap.streams, fake_stream(i), &id));
    assert_int_equal(id, STREAM_FIRST + i);
  }
}

void open_with(enum record record, uint64_t bytes, unsigned n_streams)
{
  open_heap(record);
  assert_int_not_equal(heap_add_region(&heap, START, bytes, 0, STREAM_READY), BLOCK_NONE);
  enter_streams(n_streams);
}

struct request request_for(uint64_t bytes, uint64_t alignment, unsigned stream)
{
  return (struct request){
      .bytes = bytes, .alignment = alignment, .requested = bytes - 1, .stream = STREAM_FIRST + stream};
}

uint32_t take(uint64_t bytes, unsigned stream)
{
  struct request request = request_for(bytes, HIPMM_ALIGNMENT, stream);
  uint32_t id = heap_allocate_ready(&heap, &request);
  assert_true(heap_is_valid(&heap));
  return id;
}

void give(uint32_t id, unsigned stream)
{
  heap_free(&heap, id, STREAM_FIRST + stream);
  assert_true(heap_is_valid(&heap));
}

uint64_t start_of(uint32_t id)
{
  return block_of(&heap.blocks, id)->start;
}

void assert_whole(uint64_t bytes)
{
  assert_int_equal(heap_largest_free(&heap), bytes);
  assert_int_equal(heap.live_bytes, 0);
  assert_int_equal(heap.requested_bytes, 0);
  assert_int_equal(heap.blocks.live, 0);
}
