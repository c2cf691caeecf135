/* SPDX-License-Identifier: MIT */
/* test_recycled.c: streams that a program destroys without a word while their work is still to run. HIP gives the
 * handle to the next stream at once; what was freed on the old one must not reach work on the new one too early. */
#include "rig.h"

#include <stdio.h>

#define BYTES ((size_t)1 << 16)

enum { OLD = 0x11, NEW = 0x22 };

/* Fills a block on `stream` with `value`, much later. */
static void fill(void *block, int value, hipStream_t stream)
{
  assert_int_equal(rig_hip()->MemsetAsync(block, value, BYTES, stream), 0);
}

/* A stream with the handle that was destroyed last. */
static hipStream_t successor_of(hipStream_t old)
{
  hipStream_t stream;
  assert_int_equal(rig_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0);
  if (on_software()) assert_ptr_equal(stream, old);
  return stream;
}

/* The old stream fills a block and frees it, and is destroyed before that has run. Whatever block the new one gets and
 * fills must hold what the new one wrote, once both have run. */
static void old_work_never_reaches_new_blocks(void)
{
  const struct hipmm_hip *hip = rig_hip();
  for (int round = 0; round < 20; round++) {
    hipStream_t old = rig_stream();
    void *first = rig_allocate(BYTES, old);
    fill(first, OLD, old);
    rig_free(first, BYTES, old);
    assert_int_equal(hip->StreamDestroy(old), 0);
    hipStream_t new = successor_of(old);
    void *second = rig_allocate(BYTES, new);
    fill(second, NEW, new);
    assert_int_equal(hip->DeviceSynchronize(), 0);
    assert_true(rig_holds(second, NEW, BYTES));
    rig_free(second, BYTES, new);
    assert_int_equal(hip->StreamDestroy(new), 0);
  }
  assert_int_equal(faults_on_all_devices(), 0);
}

static void run(const char *graph, int seed)
{
  char options[64];
  snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
  rig_start_with(options, graph);
  old_work_never_reaches_new_blocks();
  assert_ok(hipmm_finalize());
}

static void run_seeds(const char *graph)
{
  for (int seed = 1; seed <= 5; seed++) run(graph, seed);
  rig_start(graph); /* for the teardown */
}

static void pool_auto(void **state)
{
  (void)state;
  run_seeds("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
}

static void pool_on_free(void **state)
{
  (void)state;
  run_seeds("'stack': [{'type': 'pool', 'growth': 'mapped', 'record': 'on_free'}, 'device']");
}

static void pool_of_segments(void **state)
{
  (void)state;
  run_seeds("'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']");
}

static void fixed_size(void **state)
{
  (void)state;
  run_seeds("'stack': [{'type': 'fixed_size', 'block_size': '64KiB'}, 'device']");
}

/* Freed memory of streams that are gone is not lost: it comes back before the pool says no. */
static void memory_of_lost_streams_comes_back(void **state)
{
  (void)state;
  rig_start_with("'scheduler': 'stepped'",
                 "'stack': [{'type': 'pool', 'growth': 'mapped', 'maximum_size': '8MiB'}, 'device']");
  for (int round = 0; round < 1000; round++) {
    hipStream_t stream = rig_stream();
    void *block = rig_allocate(1 << 20, stream);
    rig_free(block, 1 << 20, stream);
    assert_int_equal(rig_hip()->StreamDestroy(stream), 0);
  }
  void *all = rig_allocate(8 << 20, NULL);
  rig_free(all, 8 << 20, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      {"pool, auto: work of a lost stream never reaches the blocks of its successor", pool_auto, rig_setup,
       rig_teardown, NULL},
      {"pool, on_free: likewise", pool_on_free, rig_setup, rig_teardown, NULL},
      {"pool of segments: likewise", pool_of_segments, rig_setup, rig_teardown, NULL},
      {"fixed_size: likewise", fixed_size, rig_setup, rig_teardown, NULL},
      {"memory that lost streams freed comes back before the pool says no", memory_of_lost_streams_comes_back,
       rig_setup, rig_teardown, NULL},
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
