/* SPDX-License-Identifier: MIT */
/* stream_costs.c: has streams that nobody retained use one stack, for stream_counts.sh, which counts the instructions
 * between costs_start() and costs_stop():
 *
 *     stream_costs pairs STREAMS BYTES 'GRAPH'     each stream in turn allocates a block and frees it
 *     stream_costs wait STREAMS BYTES 'GRAPH'      each stream has a free block, as has a retained stream that is busy;
 *                                                  another retained stream takes the blocks of that one
 */
#include "../support/fixture.h"

#include <hipmm/stream.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STREAMS = 20000, OPERATIONS = 1000 };

static hipmm_stream_t streams[MOST_STREAMS];
static void *blocks[MOST_STREAMS];
static atomic_bool is_over;

void costs_start(void);
void costs_stop(void);

/* Callgrind finds them by name. */
__attribute__((noinline)) void costs_start(void)
{
  __asm__ volatile("");
}

__attribute__((noinline)) void costs_stop(void)
{
  __asm__ volatile("");
}

static void *allocate(size_t bytes, hipmm_stream_t stream)
{
  void *ptr = NULL;
  if (!hipmm_allocate(NULL, bytes, stream, &ptr)) return ptr;
  print_error("%s\n", hipmm_last_error_message());
  exit(1);
}

static void release(void *ptr, hipmm_stream_t stream)
{
  if (!hipmm_deallocate(NULL, ptr, 0, stream)) return;
  print_error("%s\n", hipmm_last_error_message());
  exit(1);
}

static void pairs(int count, size_t bytes)
{
  for (int i = 0; i < count; i++) release(allocate(bytes, streams[i]), streams[i]);
  costs_start();
  for (int i = 0; i < OPERATIONS / 2; i++) release(allocate(bytes, streams[i % count]), streams[i % count]);
  costs_stop();
}

static void stay_busy(void *argument)
{
  (void)argument;
  while (!atomic_load(&is_over)) sched_yield();
}

static void take_of_another(int count, size_t bytes)
{
  hipmm_stream_t busy, taker;
  static void *taken[OPERATIONS];
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &busy));
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &taker));
  for (int i = 0; i < count; i++) blocks[i] = allocate(bytes, streams[i]);
  for (int i = 0; i < OPERATIONS; i++) taken[i] = allocate(bytes, busy);
  if (fixture_hip()->LaunchHostFunc(busy, stay_busy, NULL)) exit(1);
  for (int i = 0; i < count; i++) release(blocks[i], streams[i]);
  for (int i = 0; i < OPERATIONS; i++) release(taken[i], busy);
  costs_start();
  for (int i = 0; i < OPERATIONS / 2; i++) taken[i] = allocate(bytes, taker);
  costs_stop();
  atomic_store(&is_over, true);
  for (int i = 0; i < OPERATIONS / 2; i++) release(taken[i], taker);
}

int main(int argc, char **argv)
{
  if (argc != 5) return 2;
  int count = atoi(argv[2]);
  size_t bytes = strtoull(argv[3], NULL, 10);
  if (count > MOST_STREAMS) return 2;
  fixture_start(argv[4]);
  for (int i = 0; i < count; i++) streams[i] = fixture_stream();
  if (!strcmp(argv[1], "pairs"))
    pairs(count, bytes);
  else
    take_of_another(count, bytes);
  for (int i = 0; i < count; i++) fixture_drop_stream(streams[i]);
  return hipmm_finalize() ? 1 : 0;
}
