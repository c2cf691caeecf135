/* SPDX-License-Identifier: MIT */
/* test_pool_reuse.c: what pools do with the blocks that were freed: which part of a block a request takes, how blocks are
 * put together again, and which stream may have a block before its free has executed. */
#include "device.h"

static void an_idle_block_is_cut_and_put_together_again(void **state)
{
  (void)state;
  hipMemPool_t pool = default_pool();
  hipStream_t stream = create_stream();
  set_pool_amount(pool, hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  char *whole = allocate_on(stream, 8 * MIB), *parts[4];
  assert_ok(hipFreeAsync(whole, stream));
  for (size_t i = 0; i < 4; i++) {
    parts[i] = allocate_on(stream, 2 * MIB);
    assert_ptr_equal(parts[i], whole + i * 2 * MIB);
    assert_ok(hipMemsetAsync(parts[i], (int)i, 2 * MIB, stream));
  }
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), 8 * MIB);
  assert_ok(hipStreamSynchronize(stream));
  for (int i = 0; i < 4; i++) assert_true(is_filled(parts[i], i, 2 * MIB));
  const size_t order[] = {2, 0, 3, 1};
  for (size_t i = 0; i < 4; i++) assert_ok(hipFreeAsync(parts[order[i]], stream));
  assert_ptr_equal(allocate_on(stream, 8 * MIB), whole);
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemHigh), 8 * MIB);
  assert_ok(hipFree(whole));
  assert_ok(hipMemPoolTrimTo(pool, 0));
  assert_int_equal(free_bytes(), 64 * MIB);
  assert_ok(hipStreamDestroy(stream));
}

/* Parts that different streams have freed are one block again when the frees have executed. */
static void parts_of_several_streams_are_put_together(void **state)
{
  (void)state;
  hipMemPool_t pool = default_pool();
  hipStream_t first = create_stream(), second = create_stream();
  set_pool_amount(pool, hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  char *whole = allocate_on(first, 4 * MIB);
  assert_ok(hipFreeAsync(whole, first));
  char *left = allocate_on(first, 2 * MIB), *right = allocate_on(first, 2 * MIB);
  assert_ok(hipStreamSynchronize(first));
  assert_ok(hipFreeAsync(left, first));
  assert_ok(hipFreeAsync(right, second));
  assert_ok(hipDeviceSynchronize());
  assert_ptr_equal(allocate_on(second, 4 * MIB), whole);
  assert_ok(hipFreeAsync(whole, second));
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipStreamDestroy(first));
  assert_ok(hipStreamDestroy(second));
}

static void trimming_leaves_a_chunk_of_which_a_part_is_allocated(void **state)
{
  (void)state;
  hipMemPool_t pool = default_pool();
  hipStream_t stream = create_stream();
  set_pool_amount(pool, hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  assert_ok(hipFreeAsync(allocate_on(stream, 4 * MIB), stream));
  void *part = allocate_on(stream, MIB);
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipMemPoolTrimTo(pool, 0));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), 4 * MIB);
  assert_ok(hipFreeAsync(part, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_ok(hipMemPoolTrimTo(pool, 0));
  assert_int_equal(pool_amount(pool, hipMemPoolAttrReservedMemCurrent), 0);
  assert_ok(hipStreamDestroy(stream));
}

/* Streams, and the memory of the first, which the tests below free there before its work has executed. */
struct chain {
  hipStream_t first, second, third;
  hipEvent_t event;
  char *memory;
};

static struct chain start_chain(void)
{
  int no = 0;
  struct chain chain = {.first = create_stream(), .second = create_stream(), .third = create_stream()};
  assert_ok(hipMemPoolSetAttribute(default_pool(), hipMemPoolReuseAllowOpportunistic, &no));
  set_pool_amount(default_pool(), hipMemPoolAttrReleaseThreshold, UINT64_MAX);
  assert_ok(hipEventCreate(&chain.event));
  chain.memory = allocate_on(chain.first, MIB);
  assert_ok(hipMemsetAsync(chain.memory, 1, MIB, chain.first));
  return chain;
}

static void end_chain(struct chain *chain)
{
  assert_ok(hipDeviceSynchronize());
  assert_ok(hipEventDestroy(chain->event));
  assert_ok(hipStreamDestroy(chain->first));
  assert_ok(hipStreamDestroy(chain->second));
  assert_ok(hipStreamDestroy(chain->third));
}

/* Whether `stream` gets the memory of the first stream; works on what it gets, and frees it. */
static bool gets_memory(const struct chain *chain, hipStream_t stream)
{
  char *memory = allocate_on(stream, MIB);
  assert_ok(hipMemsetAsync(memory, 2, MIB, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_true(is_filled(memory, 2, MIB));
  assert_ok(hipFreeAsync(memory, stream));
  return memory == chain->memory;
}

static void a_stream_that_waits_for_an_event_after_the_free_gets_the_block(void **state)
{
  (void)state;
  struct chain chain = start_chain();
  assert_ok(hipFreeAsync(chain.memory, chain.first));
  assert_ok(hipEventRecord(chain.event, chain.first));
  assert_ok(hipStreamWaitEvent(chain.second, chain.event, 0));
  assert_true(gets_memory(&chain, chain.second));
  end_chain(&chain);
}

static void an_event_before_the_free_is_not_enough(void **state)
{
  (void)state;
  struct chain chain = start_chain();
  assert_ok(hipEventRecord(chain.event, chain.first));
  assert_ok(hipFreeAsync(chain.memory, chain.first));
  assert_ok(hipStreamWaitEvent(chain.second, chain.event, 0));
  assert_false(gets_memory(&chain, chain.second));
  end_chain(&chain);
}

static void the_order_passes_on_from_stream_to_stream(void **state)
{
  (void)state;
  struct chain chain = start_chain();
  assert_ok(hipFreeAsync(chain.memory, chain.first));
  assert_ok(hipEventRecord(chain.event, chain.first));
  assert_ok(hipStreamWaitEvent(chain.second, chain.event, 0));
  assert_ok(hipEventRecord(chain.event, chain.second));
  assert_ok(hipStreamWaitEvent(chain.third, chain.event, 0));
  assert_true(gets_memory(&chain, chain.third));
  end_chain(&chain);
}

static void an_event_that_has_completed_orders_too(void **state)
{
  (void)state;
  struct chain chain = start_chain();
  assert_ok(hipFreeAsync(chain.memory, chain.first));
  assert_ok(hipEventRecord(chain.event, chain.first));
  assert_ok(hipEventSynchronize(chain.event));
  assert_ok(hipStreamWaitEvent(chain.second, chain.event, 0));
  assert_true(gets_memory(&chain, chain.second));
  end_chain(&chain);
}

static void the_default_stream_orders_blocking_streams(void **state)
{
  (void)state;
  struct chain chain = start_chain();
  hipStream_t one, other;
  assert_ok(hipStreamCreate(&one));
  assert_ok(hipStreamCreate(&other));
  assert_ok(hipStreamSynchronize(chain.first));
  assert_ok(hipFreeAsync(chain.memory, one));
  assert_false(gets_memory(&chain, other));
  assert_ok(hipMemPoolTrimTo(default_pool(), 0));
  chain.memory = allocate_on(one, MIB);
  assert_ok(hipFreeAsync(chain.memory, one));
  assert_true(gets_memory(&chain, NULL));
  chain.memory = allocate_on(one, MIB);
  assert_ok(hipFreeAsync(chain.memory, one));
  assert_ok(hipEventRecord(chain.event, NULL));
  assert_true(gets_memory(&chain, other));
  chain.memory = allocate_on(NULL, MIB);
  assert_ok(hipFreeAsync(chain.memory, NULL));
  assert_false(gets_memory(&chain, chain.second)); /* it does not block */
  end_chain(&chain);
  assert_ok(hipStreamDestroy(one));
  assert_ok(hipStreamDestroy(other));
}

static void following_events_can_be_forbidden(void **state)
{
  (void)state;
  int no = 0;
  struct chain chain = start_chain();
  assert_ok(hipMemPoolSetAttribute(default_pool(), hipMemPoolReuseFollowEventDependencies, &no));
  assert_ok(hipFreeAsync(chain.memory, chain.first));
  assert_ok(hipEventRecord(chain.event, chain.first));
  assert_ok(hipStreamWaitEvent(chain.second, chain.event, 0));
  assert_false(gets_memory(&chain, chain.second));
  assert_true(gets_memory(&chain, chain.first)); /* which needs no event */
  end_chain(&chain);
}

#define BOTH(test)                                         \
  {#test " (threads)", test, start_threads, finish, NULL}, \
  {                                                        \
#test " (stepped)", test, start_stepped, finish, NULL  \
  }

int main(void)
{
  static const struct CMUnitTest tests[] = {
      BOTH(an_idle_block_is_cut_and_put_together_again),
      BOTH(parts_of_several_streams_are_put_together),
      BOTH(trimming_leaves_a_chunk_of_which_a_part_is_allocated),
      BOTH(a_stream_that_waits_for_an_event_after_the_free_gets_the_block),
      BOTH(an_event_before_the_free_is_not_enough),
      BOTH(the_order_passes_on_from_stream_to_stream),
      BOTH(an_event_that_has_completed_orders_too),
      BOTH(the_default_stream_orders_blocking_streams),
      BOTH(following_events_can_be_forbidden),
  };
  return cmocka_run_group_tests_name("software: reuse in pools", tests, NULL, NULL);
}
