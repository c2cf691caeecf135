/* SPDX-License-Identifier: MIT */
/* Tests of what sub-allocators say when memory is short: what is held, free, and in one chunk, after they waited for
 * the work of other streams, and whose limit it is. What they say can be had can be had. */
#include "../../../plugins/pool/allocate.h"
#include "../../support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char limited[] = "{'type': 'limiting', 'limit': '16MiB'}, ";

/* Two streams: `mine`, which asks, and `other`, on which memory was freed that its work may still use. */
static hipmm_stream_t mine, other;
static void *kept, *apart;

/* 5 MiB are live, and 7 MiB in two places free on a stream whose work has not begun. */
static void start(const char *type, const char *below, const char *options)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s'%s}, %s'device']", type, options, below);
  fixture_start_with("'scheduler': 'stepped'", graph);
  mine = fixture_stream();
  other = fixture_stream();
  assert_ok(hipmm_stream_retain(0, mine));
  assert_ok(hipmm_stream_retain(0, other));
  kept = fixture_allocate(4 * MIB, mine);
  void *first = fixture_allocate(2 * MIB, other);
  apart = fixture_allocate(MIB, mine);
  void *second = fixture_allocate(5 * MIB, other);
  assert_int_equal(fixture_hip()->MemsetAsync(first, 1, 2 * MIB, other), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(second, 1, 5 * MIB, other), 0);
  fixture_free(first, 2 * MIB, other);
  fixture_free(second, 5 * MIB, other);
  assert_int_equal(fixture_hip()->StreamQuery(other), HIPMM_HIP_ERROR_NOT_READY);
}

static void finish(void)
{
  fixture_free(kept, 4 * MIB, mine);
  fixture_free(apart, MIB, mine);
  fixture_drop_stream(mine);
  fixture_drop_stream(other);
}

static void fails(size_t bytes, enum hipmm_status status)
{
  void *none = NULL;
  assert_status(hipmm_allocate(NULL, bytes, mine, &none), status);
  assert_null(none);
}

/* What stands before `words` in the message, in bytes. */
static size_t said(const char *words)
{
  const char *message = hipmm_last_error_message(), *at = strstr(message, words);
  if (!at || at < message + 5 || memcmp(at - 4, "MiB ", 4)) fail_msg("no MiB before \"%s\" in: %s", words, message);
  at -= 5; /* the blank before the unit */
  while (at > message && at[-1] != ' ' && at[-1] != '(') at--;
  return strtoull(at, NULL, 10) * MIB;
}

/* ---- The pool ---- */

static void says_what_waiting_gave(const char *growth)
{
  char options[100];
  snprintf(options, sizeof options, ", 'growth': '%s', 'maximum_size': '16MiB'", growth);
  start("pool", "", options);
  fails(12 * MIB, HIPMM_E_OUT_OF_MEMORY);
  assert_message(
      "pool: cannot allocate 12 MiB: maximum_size 16 MiB leaves no room for it, with 11 MiB of it free; pool: after "
      "waiting for all streams");
  size_t most = said("can be allocated");
  assert_int_equal(fixture_hip()->StreamQuery(other), 0);
  assert_in_range(most, 8 * MIB, 11 * MIB);
  assert_int_equal(said("are held"), fixture_value("pool", "reserved_bytes"));
  fixture_free(fixture_allocate(most, mine), most, mine);
  finish();
}

static void says_what_waiting_gave_mapped(void **state)
{
  (void)state;
  says_what_waiting_gave("mapped");
}

static void says_what_waiting_gave_in_segments(void **state)
{
  (void)state;
  says_what_waiting_gave("segments");
}

/* Free memory on both sides of what is live cannot be joined; the message says how much is in one block. */
static void says_what_is_in_one_block(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments', 'initial_size': '16MiB', 'maximum_size': '16MiB'}, "
                "'device']");
  mine = fixture_stream();
  void *blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = fixture_allocate(4 * MIB, mine);
  fixture_free(blocks[0], 4 * MIB, mine);
  fixture_free(blocks[2], 4 * MIB, mine);
  fixture_free(blocks[3], 4 * MIB, mine);
  fails(12 * MIB, HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(said("of it free in one block"), 8 * MIB);
  assert_int_equal(said("can be allocated"), 8 * MIB);
  assert_message("maximum_size 16 MiB is reached, with 12 MiB of it free");
  fixture_free(blocks[1], 4 * MIB, mine);
  fixture_drop_stream(mine);
}

static void says_whose_limit_it_is(void **state)
{
  (void)state;
  start("pool", limited, ", 'growth': 'segments'");
  fails(12 * MIB, HIPMM_E_LIMIT);
  assert_message("limiting: cannot allocate 12 MiB: 6 MiB of the limit of 16 MiB are in use");
  assert_message("; pool: cannot allocate 12 MiB: holds 6 MiB, 1 MiB free (1 MiB of it in one block) after waiting for "
                 "all streams");
  assert_null(strstr(hipmm_last_error_message(), "maximum_size"));
  finish();
}

/* It is not asked for as much as the pool would like, but for what is needed. */
static void takes_what_the_limit_leaves(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments'}, {'type': 'limiting', 'limit': '66MiB'}, 'device']");
  void *large = fixture_allocate(64 * MIB, NULL), *rest = fixture_allocate(MIB + 4096, NULL);
  assert_in_range(fixture_held_bytes(), 65 * MIB + 4096, 66 * MIB);
  fixture_free(large, 64 * MIB, NULL);
  fixture_free(rest, MIB + 4096, NULL);
}

static void says_what_the_device_lacks(void **state)
{
  (void)state;
  start("pool", "", ", 'growth': 'mapped', 'slack': 0");
  fails(1024 * MIB, HIPMM_E_OUT_OF_MEMORY);
  assert_message("device: ");
  assert_message("; pool: cannot allocate 1 GiB: holds 12 MiB, 7 MiB free (");
  size_t movable = said("of it reclaimable) after waiting for all streams");
  assert_in_range(movable, 4 * MIB, 7 * MIB);
  size_t held = fixture_held_bytes();
  fixture_free(fixture_allocate(movable, mine), movable, mine);
  assert_int_equal(fixture_held_bytes(), held);
  finish();
}

/* ---- The others ---- */

static void tells_of_an_arena_at_its_maximum(void **state)
{
  (void)state;
  start("arena", "", ", 'arena_size': '16MiB', 'maximum_size': '16MiB'");
  fails(12 * MIB, HIPMM_E_OUT_OF_MEMORY);
  assert_message(
      "arena: cannot allocate 12 MiB: 16 MiB are held, 5 MiB of it allocated, and maximum_size does not allow "
      "enough more; arena: all streams were waited for, all arenas gave back what was idle; 11 MiB are free, ");
  assert_message("and maximum_size 16 MiB allows 0 bytes more");
  size_t most = said("of it in one range");
  assert_in_range(most, 5 * MIB, 11 * MIB);
  assert_int_equal(fixture_hip()->StreamQuery(other), 0);
  fixture_free(fixture_allocate(most, mine), most, mine);
  fails(most + 256, HIPMM_E_OUT_OF_MEMORY);
  finish();
}

static void tells_of_an_arena_whose_upstream_has_no_more(void **state)
{
  (void)state;
  start("arena", limited, "");
  fails(16 * MIB, HIPMM_E_LIMIT);
  assert_message("limiting: cannot allocate ");
  assert_message("all streams were waited for, all arenas gave back what was idle, and ");
  assert_in_range(said("are free in one range"), 0, 11 * MIB);
  finish();
}

/* A block that another stream's work may still use is no reason to fail, in blocks of one size. */
static void uses_what_other_streams_freed_before_it_fails(const char *stack, const char *type)
{
  void *blocks[4];
  char graph[300], words[200];
  snprintf(graph, sizeof graph, "'stack': [%s, {'type': 'limiting', 'limit': '4MiB'}, 'device']", stack);
  fixture_start_with("'scheduler': 'stepped'", graph);
  mine = fixture_stream();
  other = fixture_stream();
  for (int i = 0; i < 4; i++) blocks[i] = fixture_allocate(MIB, other);
  assert_int_equal(fixture_hip()->MemsetAsync(blocks[0], 1, MIB, other), 0);
  fixture_free(blocks[0], MIB, other);
  blocks[0] = fixture_allocate(MIB, mine);
  fails(MIB, HIPMM_E_LIMIT);
  snprintf(words, sizeof words, "; %s: cannot allocate 1 MiB: 4 MiB are held in 4 blocks of 1 MiB, all in use", type);
  assert_message(words);
  for (int i = 0; i < 4; i++) fixture_free(blocks[i], MIB, mine);
  fixture_drop_stream(mine);
  fixture_drop_stream(other);
}

static void tells_of_fixed_size(void **state)
{
  (void)state;
  uses_what_other_streams_freed_before_it_fails("{'type': 'fixed_size', 'block_size': '1MiB', 'blocks_per_chunk': 1}",
                                                "fixed_size");
}

static void tells_of_binning(void **state)
{
  (void)state;
  uses_what_other_streams_freed_before_it_fails("{'type': 'binning', 'bins': [{'size': '1MiB'}]}", "binning");
}

/* ---- Records ---- */

/* The pool has few records in place of hundreds of millions. What is free is told right, and one free helps. */
static void says_that_there_are_no_more_records(const char *growth, size_t bytes)
{
  enum { BLOCKS = 100 };
  void *blocks[BLOCKS + 1];
  char graph[100];
  size_t n = 0;
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s', 'initial_size': '1MiB'}, 'device']",
           growth);
  fixture_start(graph);
  struct pool *pool = fixture_resource("pool")->self;
  blocks[n++] = fixture_allocate(bytes, NULL);
  pool->arena.heap.blocks.most = pool->arena.heap.blocks.count + BLOCKS - 1;
  while (n <= BLOCKS && !hipmm_allocate(NULL, bytes, NULL, &blocks[n])) n++;
  bool is_mapped = !strcmp(growth, "mapped");
  assert_int_equal(n, is_mapped ? BLOCKS : BLOCKS + 1); /* in a segment the last one has all the rest */
  for (int time = 0; time < 3; time++) {
    fails(bytes, HIPMM_E_OUT_OF_MEMORY);
    assert_message(is_mapped ? "100 blocks are allocated" : "101 blocks are allocated");
    assert_message("and with the free ones between them the pool has records for 101 and no more");
    assert_in_range(fixture_value("pool", "free_bytes"), 0,
                    (size_t)fixture_value("pool", "reserved_bytes") - n * bytes);
    assert_int_equal(fixture_value("pool", "live_bytes"), (int64_t)(n * bytes));
    fixture_free(blocks[50], bytes, NULL);
    blocks[50] = fixture_allocate(bytes, NULL);
  }
  while (n) fixture_free(blocks[--n], bytes, NULL);
  assert_int_equal(fixture_value("pool", "free_bytes"), fixture_value("pool", "reserved_bytes"));
  fixture_free(fixture_allocate(bytes, NULL), bytes, NULL);
}

static void says_that_there_are_no_more_records_mapped(void **state)
{
  (void)state;
  mine = NULL;
  says_that_there_are_no_more_records("mapped", 8000);
}

static void says_that_there_are_no_more_records_in_segments(void **state)
{
  (void)state;
  mine = NULL;
  says_that_there_are_no_more_records("segments", 8000);
}

/* The last one has more bytes than a cache of a thread has bins for. */
static void says_that_there_are_no_more_records_of_small_blocks(void **state)
{
  (void)state;
  mine = NULL;
  says_that_there_are_no_more_records("segments", 100);
}

static void has_records_for_more_blocks_than_24_bits_number(void **state)
{
  (void)state;
  fixture_start("'stack': ['pool', 'device']");
  struct pool *pool = fixture_resource("pool")->self;
  assert_true(pool->arena.heap.blocks.most > 1u << 24);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(says_what_waiting_gave_mapped),
      TEST(says_what_waiting_gave_in_segments),
      TEST(says_what_is_in_one_block),
      TEST(says_whose_limit_it_is),
      TEST(takes_what_the_limit_leaves),
      TEST(says_what_the_device_lacks),
      TEST(tells_of_an_arena_at_its_maximum),
      TEST(tells_of_an_arena_whose_upstream_has_no_more),
      TEST(tells_of_fixed_size),
      TEST(tells_of_binning),
      TEST(says_that_there_are_no_more_records_mapped),
      TEST(says_that_there_are_no_more_records_in_segments),
      TEST(says_that_there_are_no_more_records_of_small_blocks),
      TEST(has_records_for_more_blocks_than_24_bits_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
