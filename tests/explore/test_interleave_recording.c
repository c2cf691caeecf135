/* SPDX-License-Identifier: MIT */
/* test_interleave_recording.c: the adaptor `recording`, with two threads in all orders: each records events, ends, and leaves its
 * buffer to the other. In each order all events are counted, and no buffer has two owners. Mistakes must be found. */
#include "../../plugins/recording/recorder.h"
#include "interleave.h"
#include "interleave_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FIRST = 0, SECOND = 1 };

static enum { NO_MISTAKE, WEAK_OWNER, WEAK_LIST, MISTAKES } mistake;
static struct recorder recorder;
static char file_name[] = "/tmp/hipmm-interleave-XXXXXX";
static int64_t expected;

/* ---- What threads do ---- */

static void record(void)
{
  recorder_add_now(&recorder, RECORD_ALLOCATE, &recorder, 256, NULL);
}

static void record_twice(void)
{
  record();
  record();
}

static void record_and_end(void)
{
  record();
  interleave_end_thread();
}

static void count(void)
{
  struct recorder_counts counts = recorder_count(&recorder);
  if (counts.events < expected - 1 || counts.events > expected || counts.lost_events)
    interleave_note("the count of events is wrong");
}

/* As another process, which finds the place of the block in the file by itself. */
static struct record_block *_Atomic mapped;

static void map_block(void)
{
  uint32_t generation;
  struct record_block *block = record_file_map_block(&recorder.file, 7, 5, &generation);
  if (!block) interleave_note("no block is mapped");
  atomic_store_explicit(&mapped, block, memory_order_relaxed);
}

static void read_block(void)
{
  const struct record_block *block = atomic_load_explicit(&mapped, memory_order_relaxed);
  if (!block || __atomic_load_n(&block->magic, __ATOMIC_ACQUIRE) != RECORD_BLOCK_MAGIC) return;
  if (block->thread != 7 || block->lost_events != 5 || !block->sequence)
    interleave_note("a block is found that is not whole");
}

/* ---- Beginning and end ---- */

static void open_recorder(int64_t events)
{
  enum log_file_clash clash;
  const struct log_file_spec spec = {.name = file_name};
  memset(&recorder, 0, sizeof recorder);
  expected = events;
  if (recorder_open(&recorder, &device_services, &spec, &clash)) interleave_note("the record is not opened");
  if (mistake == WEAK_LIST) interleave_weaken(&recorder.threads, sizeof recorder.threads);
}

static void begin_new(void)
{
  open_recorder(2);
}

static void begin_unmapped(void)
{
  open_recorder(0);
  atomic_store(&mapped, NULL);
}

static void begin_known(void)
{
  open_recorder(3);
  interleave_alone(FIRST, record);
  if (mistake == WEAK_OWNER) interleave_weaken(&recorder.threads->owner, sizeof recorder.threads->owner);
}

static void begin_known_for_more(void)
{
  begin_known();
  expected = 4;
}

static void begin_known_to_count(void)
{
  begin_known();
  expected = 2;
}

static void end(void)
{
  struct recorder_counts counts = recorder_count(&recorder);
  if (counts.events != expected || counts.lost_events) interleave_note("events are lost");
  recorder_close(&recorder);
}

static void end_mapped(void)
{
  record_block_release(atomic_load(&mapped), false);
  end();
}

static const struct interleave_scenario scenarios[] = {
    {"two first events", begin_new, {record, record}, end, 1},
    {"a thread's end beside a first event", begin_known, {record_and_end, record}, end, 4},
    {"two ends", begin_known, {record_and_end, record_and_end}, end, 4},
    {"a thread's end beside two events", begin_known_for_more, {record_and_end, record_twice}, end, 4},
    {"an event beside a count", begin_known_to_count, {record, count}, end, 4},
    {"a block beside its reader", begin_unmapped, {map_block, read_block}, end_mapped, 4},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void all_orders_are_right(void **state)
{
  (void)state;
  mistake = NO_MISTAKE;
  unsigned long runs = 0;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
}

static void all_orders_are_right_on_a_weaker_processor(void **state)
{
  interleave_weaken_processor(true);
  all_orders_are_right(state);
  interleave_weaken_processor(false);
}

static void finds_each_mistake(void **state)
{
  static const char *const names[] = {
      [WEAK_OWNER] = "a buffer that is left without release", [WEAK_LIST] = "a list of buffers without release"};
  (void)state;
  for (mistake = NO_MISTAKE + 1; mistake < MISTAKES; mistake++)
    assert_true(interleave_finds(scenarios, SCENARIOS, names[mistake], NULL));
}

static int make_file(void **state)
{
  (void)state;
  int file = mkstemp(file_name);
  return file < 0 || close(file);
}

static int remove_file(void **state)
{
  (void)state;
  return unlink(file_name);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders_are_right),
      cmocka_unit_test(all_orders_are_right_on_a_weaker_processor),
      cmocka_unit_test(finds_each_mistake),
  };
  return cmocka_run_group_tests_name("interleavings of recording", tests, make_file, remove_file);
}
