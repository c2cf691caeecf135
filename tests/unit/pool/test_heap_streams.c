/* SPDX-License-Identifier: MIT */
/* Tests of the heap's memory among streams: where the heap finds a block, and that the new user of a block comes after all
 * work that used it, which the fake streams know for each operation. */
#include "../../../plugins/pool/cache.h"
#include "../../support/random.h"
#include "heap_fixture.h"

#include <string.h>

/* ---- Streams ---- */

/* Takes all of the heap in two halves on stream 1 and gives them back; between the two, does `between`. */
static void free_halves(void (*between)(void))
{
  uint32_t first = allocate_block(512 * KIB, 1), second = allocate_block(512 * KIB, 1);
  fake_work(1);
  free_block(first, 1);
  if (between) between();
  fake_work(1);
  free_block(second, 1);
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
  assert_int_equal(heap_allocate_ready(&heap, &request), BLOCK_NONE);
  assert_int_equal(start_of(heap_allocate_completed(&heap, &request)), START);
  assert_int_equal(fake_calls.stream_wait_event, 0);
  assert_int_equal(fake_calls.event_synchronize, 0);
}

static void does_not_use_what_has_not_passed(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 2);
  free_halves(NULL);
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_allocate_completed(&heap, &request), BLOCK_NONE);
  assert_true(heap_is_valid(&heap));
}

static uint64_t without_event_bytes(uint32_t stream)
{
  uint64_t bytes = 0;
  while (heap_has_without_event(&heap, stream, bytes + HIPMM_ALIGNMENT)) bytes += HIPMM_ALIGNMENT;
  return bytes;
}

/* Stream 1 has come as far as the first event: the second half is not covered by it. Its handle may not be used any
 * more, so no later event can be recorded. */
static void makes_ready_only_what_an_event_covers(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  heap_retain_stream(&heap, STREAM_FIRST + 1);
  uint32_t first = allocate_block(128 * KIB, 1), fence = allocate_block(256, 1),
           second = allocate_block(896 * KIB - 256, 1);
  fake_work(1);
  free_block(first, 1);
  record_on_stream_1();
  stream_of(&heap.streams, STREAM_FIRST + 1)->lasts = false;
  fake_set_alive(1, false);
  fake_progress(1);
  fake_work(1);
  free_block(second, 1);
  struct request large = request_for(512 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_allocate_completed(&heap, &large), BLOCK_NONE);
  assert_int_equal(start_of(allocate_block(128 * KIB, 0)), START);
  assert_int_equal(heap_allocate_waiting(&heap, &large), BLOCK_NONE);
  assert_int_equal(without_event_bytes(STREAM_FIRST), 896 * KIB - 256);
  free_block(fence, 1);
}

static void waits_for_the_stream_that_has_what_fits(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t first = allocate_block(512 * KIB, 1), second = allocate_block(512 * KIB, 2);
  uint64_t work = fake_work(1);
  fake_work(2);
  free_block(first, 1);
  free_block(second, 2);
  struct request request = request_for(512 * KIB, HIPMM_ALIGNMENT, 0);
  uint32_t id = heap_allocate_waiting(&heap, &request);
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
  uint32_t first = allocate_block(512 * KIB, 1), second = allocate_block(512 * KIB, 2);
  uint64_t works[] = {fake_work(1), fake_work(2)};
  free_block(first, 1);
  free_block(second, 2);
  struct request request = request_for(MIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_allocate_waiting(&heap, &request), BLOCK_NONE);
  assert_int_equal(start_of(heap_allocate_merged(&heap, &request)), START);
  assert_true(fake_is_ordered(0, 1, works[0]) && fake_is_ordered(0, 2, works[1]));
  assert_true(heap_is_valid(&heap));
}

/* What stream 0 got by waiting for stream 1 and freed unused is stream 0's: whoever gets it from there must come after
 * stream 1, too. */
static void order_is_handed_on_through_streams(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t all = allocate_block(MIB, 1);
  uint64_t work = fake_work(1);
  free_block(all, 1);
  struct request first = request_for(MIB, HIPMM_ALIGNMENT, 0), second = request_for(MIB, HIPMM_ALIGNMENT, 2);
  free_block(heap_allocate_waiting(&heap, &first), 0);
  assert_int_not_equal(heap_allocate_waiting(&heap, &second), BLOCK_NONE);
  assert_true(fake_is_ordered(2, 1, work));
}

static void uses_no_handle_that_may_be_gone(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  free_halves(NULL);
  fake_set_alive(1, false);
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_allocate_completed(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_allocate_waiting(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_allocate_merged(&heap, &request), BLOCK_NONE);
  assert_false(heap_wait(&heap));
  assert_int_equal(without_event_bytes(STREAM_FIRST), MIB);
  assert_int_equal(without_event_bytes(STREAM_FIRST + 1), 0);
  fake_hip.DeviceSynchronize();
  heap_complete_all(&heap);
  assert_int_equal(start_of(allocate_block(MIB, 0)), START);
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
  assert_int_equal(start_of(heap_allocate_waiting(&heap, &request)), START);
  assert_true(fake_is_ordered(0, 1, 2));
}

static void does_without_events_that_fail(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 2);
  free_halves(NULL);
  fake_set_record_fails(true);
  struct request request = request_for(4 * KIB, HIPMM_ALIGNMENT, 0);
  assert_int_equal(heap_allocate_completed(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_allocate_waiting(&heap, &request), BLOCK_NONE);
  assert_int_equal(heap_allocate_merged(&heap, &request), BLOCK_NONE);
  assert_false(heap_wait(&heap));
  assert_true(heap_is_valid(&heap));
  assert_int_equal(without_event_bytes(STREAM_FIRST), MIB);
  fake_set_record_fails(false);
  assert_int_not_equal(heap_allocate_waiting(&heap, &request), BLOCK_NONE);
}

static void waits_on_the_host_for_all(void **state)
{
  (void)state;
  open_with(RECORD_LAZY, MIB, 3);
  uint32_t first = allocate_block(512 * KIB, 1), second = allocate_block(512 * KIB, 2);
  fake_work(1);
  fake_work(2);
  free_block(first, 1);
  free_block(second, 2);
  assert_true(heap_wait(&heap));
  assert_true(heap_is_valid(&heap));
  assert_true(fake_is_ordered(0, 1, 1) && fake_is_ordered(0, 2, 1));
  assert_whole(MIB);
  assert_int_equal(start_of(allocate_block(MIB, 0)), START);
}

/* ---- Anything, in any order ---- */

enum { UNITS = 1 << 15, REGION_UNITS = UNITS / 2, MOST_LIVE = 64, STEPS = 6000, STREAMS = 5 };

/* For each unit of the two regions: its last user. */
struct use {
  bool live;
  unsigned stream;
  uint64_t work;
};

static struct use uses[UNITS];

struct model_block {
  uint32_t id;
  unsigned stream;
};

struct world {
  uint64_t random;
  struct model_block live[MOST_LIVE];
  unsigned n_live, taken, refused;
};

static struct use *uses_of(const struct block *block)
{
  return &uses[(block->start - START) / HIPMM_ALIGNMENT];
}

/* Handles that are known to be valid: those of lasting streams, and the caller's. */
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
  unsigned stream = (unsigned)random_below(&world->random, STREAMS);
  uint64_t most = random_below(&world->random, 3) ? 64 : UNITS / 8;
  uint64_t alignment = (uint64_t)HIPMM_ALIGNMENT
                       << (random_below(&world->random, 4) ? 0 : random_below(&world->random, 15));
  struct request request = request_for((1 + random_below(&world->random, most)) * HIPMM_ALIGNMENT, alignment, stream);
  set_alive(stream);
  uint32_t id = heap_allocate_ready(&heap, &request);
  if (!id) id = heap_allocate_completed(&heap, &request);
  if (!id) id = heap_allocate_waiting(&heap, &request);
  if (!id) id = heap_allocate_merged(&heap, &request);
  if (!id && without_event_bytes(request.stream)) {
    fake_hip.DeviceSynchronize();
    heap_complete_all(&heap);
    id = heap_allocate_ready(&heap, &request);
  }
  world->refused += !id;
  if (!id) return;
  const struct block *block = block_of(&heap.blocks, id);
  assert_int_equal(block->start % alignment, 0);
  assert_int_equal(block->bytes, request.bytes);
  assert_int_equal(block_at(&heap.blocks, (void *)(uintptr_t)block->start, block->bytes), id);
  assert_may_be_used(block, stream);
  fake_work(stream);
  world->live[world->n_live++] = (struct model_block){id, stream};
  world->taken++;
}

static void give_one(struct world *world)
{
  unsigned which = (unsigned)random_below(&world->random, world->n_live);
  struct model_block held = world->live[which];
  world->live[which] = world->live[--world->n_live];
  unsigned stream = random_below(&world->random, 4) ? held.stream : (unsigned)random_below(&world->random, STREAMS);
  fake_order(stream, held.stream);
  uint64_t work = fake_work(stream);
  const struct block *block = block_of(&heap.blocks, held.id);
  for (uint64_t i = 0; i < block->bytes / HIPMM_ALIGNMENT; i++) uses_of(block)[i] = (struct use){false, stream, work};
  set_alive(stream);
  heap_free(&heap, held.id, STREAM_FIRST + stream);
}

static void do_something_else(struct world *world)
{
  unsigned stream = (unsigned)random_below(&world->random, STREAMS);
  set_alive(stream);
  switch (random_below(&world->random, 4)) {
  case 0: stream_of(&heap.streams, STREAM_FIRST + stream)->lasts = !stream || random_below(&world->random, 2); break;
  case 1: heap_wait(&heap); break;
  case 2:
    fake_hip.StreamSynchronize(fake_stream(stream));
    heap_complete_stream(&heap, STREAM_FIRST + stream);
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
  assert_int_not_equal(heap_add_region(&heap, second, REGION_UNITS * HIPMM_ALIGNMENT, 0, STREAM_READY), BLOCK_NONE);
  for (unsigned i = 0; i < STEPS; i++) {
    uint64_t lot = random_below(&world.random, 100);
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
  heap_complete_all(&heap);
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

/* ---- Marks ---- */

/* Work on a stream and a free that comes after it; returns the work's number. */
static uint64_t work_and_free(unsigned stream)
{
  uint32_t id = allocate_block(4 * KIB, stream);
  uint64_t work = fake_work(stream);
  free_block(id, stream);
  return work;
}

/* The first wait finds no mark, and is for all that the stream was given; a later one is for what is needed. */
static void waits_no_longer_than_to_the_next_mark(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  work_and_free(0);
  uint64_t later = fake_work(0);
  assert_true(stream_host_wait_for(&heap.streams, STREAM_FIRST, 1));
  assert_true(fake_is_ordered(1, 0, later));
  uint64_t work = work_and_free(0);
  stream_mark(&heap.streams, STREAM_FIRST);
  later = work_and_free(0);
  assert_true(stream_host_wait_for(&heap.streams, STREAM_FIRST, 2));
  assert_true(fake_is_ordered(1, 0, work));
  assert_false(fake_is_ordered(1, 0, later));
}

/* It is too late to record an event when the wait comes. */
static void marks_where_a_handle_may_go(void **state)
{
  (void)state;
  open_with(RECORD_AUTO, MIB, 2);
  uint64_t work = work_and_free(1);
  stream_mark(&heap.streams, STREAM_FIRST + 1);
  uint64_t later = fake_work(1);
  fake_set_alive(1, false);
  assert_true(stream_host_wait_for(&heap.streams, STREAM_FIRST + 1, 1));
  assert_true(fake_is_ordered(0, 1, work));
  assert_false(fake_is_ordered(0, 1, later));
}

static void marks_nothing_long_after_the_last_wait(void **state)
{
  enum { MANY = 1000 };
  (void)state;
  open_with(RECORD_AUTO, MIB, 1);
  for (unsigned wait = 0; wait < 2; wait++) {
    for (unsigned i = 0; i < MANY; i++) {
      work_and_free(0);
      stream_mark(&heap.streams, STREAM_FIRST);
      if (i + 1 == MANY / 2) fake_calls.event_record = 0;
    }
    assert_int_equal(fake_calls.event_record, 0);
    assert_true(stream_host_wait_for(&heap.streams, STREAM_FIRST, (wait + 1) * MANY));
  }
}

/* ---- Thousands of streams ---- */

enum { THOUSANDS = 20000 };

/* Handles that HIP need not know: nothing is done on them. */
static hipmm_stream_t handle_of(uint32_t index)
{
  return (hipmm_stream_t)(uintptr_t)(0x100000 + 64ull * index);
}

/* Against an array of what must be known. */
static uint32_t enter_stream(hipmm_stream_t handle)
{
  uint32_t id = STREAM_READY;
  assert_int_equal(streams_enter(&heap.streams, handle, &id), HIPMM_OK);
  return id;
}

static void knows_streams_that_come_and_go(void **state)
{
  static uint32_t ids[THOUSANDS];
  uint64_t random = 5;
  (void)state;
  open_heap(RECORD_LAZY);
  memset(ids, 0, sizeof ids);
  for (int i = 0; i < 200000; i++) {
    uint32_t index = (uint32_t)random_below(&random, THOUSANDS);
    assert_int_equal(streams_known_id(&heap.streams, handle_of(index)), ids[index]);
    if (ids[index])
      stream_forget(&heap.streams, ids[index]);
    else
      assert_int_not_equal(enter_stream(handle_of(index)), STREAM_READY);
    ids[index] = ids[index] ? STREAM_READY : streams_known_id(&heap.streams, handle_of(index));
  }
  uint32_t active = 0;
  for (uint32_t index = 0; index < THOUSANDS; index++) {
    active += ids[index] != STREAM_READY;
    assert_int_equal(streams_known_id(&heap.streams, handle_of(index)), ids[index]);
  }
  assert_int_equal(heap.streams.active, active);
  assert_in_range(heap.streams.count, active, THOUSANDS + STREAM_FIRST);
}

static uint32_t n_known;

static void meet_a_hundred(void)
{
  for (uint32_t end = n_known + 100; n_known < end; n_known++)
    assert_int_not_equal(enter_stream(handle_of(n_known)), STREAM_READY);
}

static void exchange_a_hundred(void)
{
  for (uint32_t index = 0; index < 100; index++)
    stream_forget(&heap.streams, streams_known_id(&heap.streams, handle_of(index)));
  for (uint32_t index = 0; index < 100; index++) assert_int_not_equal(enter_stream(handle_of(index)), STREAM_READY);
}

static void forgets_a_stream_as_fast_among_thousands(void **state)
{
  (void)state;
  open_heap(RECORD_LAZY);
  n_known = 0;
  meet_a_hundred();
  uint64_t among_few = least_time(10, exchange_a_hundred);
  while (n_known < THOUSANDS) meet_a_hundred();
  assert_in_range(least_time(10, exchange_a_hundred), 1, 20 * among_few);
}

static void visits_streams_that_have_free_blocks_and_no_others(void **state)
{
  static struct stream_set set;
  static bool has[MAX_STREAMS];
  uint64_t random = 7;
  (void)state;
  open_heap(RECORD_LAZY);
  for (int round = 0; round < 40; round++) {
    for (int i = 0; i < 500; i++) {
      uint32_t stream = (uint32_t)random_below(&random, round % 2 ? MAX_STREAMS : 300);
      has[stream] = random_below(&random, 3);
      (has[stream] ? stream_set_add : stream_set_remove)(&set, stream);
      assert_int_equal(stream_set_has(&set, stream), has[stream]);
    }
    uint32_t next = stream_set_next(&set, 0);
    for (uint32_t stream = 0; stream < MAX_STREAMS; stream++)
      if (has[stream]) {
        assert_int_equal(next, stream);
        next = stream_set_next(&set, stream + 1);
      }
    assert_int_equal(next, MAX_STREAMS);
    if (round % 10 < 9) continue;
    stream_set_clear(&set);
    memset(has, 0, sizeof has);
    assert_true(!set.summaries);
  }
}

static struct caches caches;
static uint32_t n_caches;

static void find_a_hundred_caches(void)
{
  for (uint32_t i = 0; i < 100; i++) {
    uint32_t index = n_caches - 1 - i * (n_caches / 100);
    const struct cache *cache = cache_new(&caches, NULL, handle_of(index), 1 + index);
    assert_int_equal(cache->stream, 1 + index);
    assert_ptr_equal(cache->handle, handle_of(index));
  }
}

static void finds_a_cache_as_fast_among_thousands(void **state)
{
  enum { CACHES = 4000 };
  (void)state;
  open_heap(RECORD_LAZY);
  assert_true(caches_open(&caches, heap.blocks.services));
  for (n_caches = 0; n_caches < 100; n_caches++) cache_new(&caches, NULL, handle_of(n_caches), 1 + n_caches);
  uint64_t among_few = least_time(20, find_a_hundred_caches);
  for (; n_caches < CACHES; n_caches++) assert_non_null(cache_new(&caches, NULL, handle_of(n_caches), 1 + n_caches));
  assert_in_range(least_time(20, find_a_hundred_caches), 1, 10 * among_few);
  /* Those of streams that end are used for others. */
  for (uint32_t round = 0; round < 3; round++)
    for (uint32_t index = 0; index < CACHES; index += 3) {
      caches_end_stream(&caches, &heap, 1 + index + round * CACHES);
      assert_non_null(cache_new(&caches, NULL, handle_of(index), 1 + index + (round + 1) * CACHES));
    }
  assert_int_equal(caches.count, CACHES);
  caches_close(&caches);
}

#define TEST(test) cmocka_unit_test_teardown(test, close_heap)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(uses_what_has_passed_and_waits_for_nothing),
      TEST(does_not_use_what_has_not_passed),
      TEST(makes_ready_only_what_an_event_covers),
      TEST(waits_for_the_stream_that_has_what_fits),
      TEST(joins_what_several_streams_hold),
      TEST(order_is_handed_on_through_streams),
      TEST(uses_no_handle_that_may_be_gone),
      TEST(records_at_each_free_if_told_to),
      TEST(does_without_events_that_fail),
      TEST(waits_on_the_host_for_all),
      TEST(survives_anything_recording),
      TEST(waits_no_longer_than_to_the_next_mark),
      TEST(marks_where_a_handle_may_go),
      TEST(marks_nothing_long_after_the_last_wait),
      TEST(knows_streams_that_come_and_go),
      TEST(forgets_a_stream_as_fast_among_thousands),
      TEST(visits_streams_that_have_free_blocks_and_no_others),
      TEST(finds_a_cache_as_fast_among_thousands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
