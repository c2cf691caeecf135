/* SPDX-License-Identifier: MIT */
/* test_interleave_publish.c: the counters in shared memory, from core/inspect/publish.c to tools/command/top/processes.c, both as they are:
 * one thread writes rows, the other reads word after word. What the reader takes is what was written at one time. Mistakes must be
 * found. */
#include "interleave.h"

#include <stdint.h>

static enum { NO_MISTAKE, NO_ODD, NO_FENCE, NO_RECHECK, MISTAKES } mistake;

/* The writer marks the beginning of a change with this order, and the end with another. */
#define __atomic_fetch_add(at, by, order)           \
  (mistake == NO_ODD && (order) == __ATOMIC_RELAXED \
       ? 1                                          \
       : __atomic_fetch_add(at, (order) == __ATOMIC_RELEASE && mistake == NO_ODD ? 2 : by, order))
#define __atomic_thread_fence(order) (mistake == NO_FENCE ? (void)0 : __atomic_thread_fence(order))

#include "../../core/inspect/publish.c"
#include "../../tools/command/top/processes.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WORD = 8 };

static struct live_file shared;
static struct stack device;
static struct graph no_nodes;
static int64_t now;
static unsigned n_looks; /* at the sequence: before a copy, and after it */

/* ---- In the place of what publish.c asks: one device, whose two values are the same at any time ---- */

struct stack *__wrap_stack_next(struct stack *before);
struct stack *__wrap_stack_next(struct stack *before)
{
  return before ? NULL : &device;
}

const char *__wrap_path_of(const struct instance *instance, char *path, size_t bytes);
const char *__wrap_path_of(const struct instance *instance, char *path, size_t bytes)
{
  (void)instance;
  snprintf(path, bytes, "devices/0/pool");
  return path;
}

int64_t __wrap_path_device_value(const struct stack *stack, size_t index);
int64_t __wrap_path_device_value(const struct stack *stack, size_t index)
{
  (void)stack, (void)index;
  return now;
}

/* ---- In the place of what processes.c reads ---- */

ssize_t __wrap_pread(int file, void *to, size_t bytes, off_t offset);
ssize_t __wrap_pread(int file, void *to, size_t bytes, off_t offset)
{
  static uint64_t sequence; /* before the copy */
  (void)file;
  bool is_sequence = offset == offsetof(struct live_file, sequence);
  if (is_sequence) n_looks++;
  if (is_sequence && n_looks % 2 == 0 && mistake == NO_RECHECK) {
    memcpy(to, &sequence, sizeof sequence);
    return WORD;
  }
  for (size_t at = 0; at < bytes; at += WORD) {
    const uint64_t *from = (const void *)((const char *)&shared + (size_t)offset + at);
    uint64_t word = is_sequence ? __atomic_load_n(from, __ATOMIC_RELAXED) : *from;
    memcpy((char *)to + at, &word, sizeof word);
    if (is_sequence) sequence = word;
  }
  return (ssize_t)bytes;
}

int __wrap_usleep(useconds_t microseconds);
int __wrap_usleep(useconds_t microseconds)
{
  (void)microseconds;
  return sched_yield();
}

/* The command's: processes.c writes JSON too. */
json_t *output_json_string(const char *text)
{
  return json_string(text);
}

/* ---- The threads ---- */

static void write_once(void)
{
  now++;
  publish_rows(&shared);
}

static void write_twice(void)
{
  write_once();
  write_once();
}

static void read_copy(void)
{
  static struct live_file copy;
  if (!processes_copy(0, &copy)) interleave_note("nothing is read");
  const struct live_row *row = &copy.rows[0];
  if (copy.n_rows != 1 || copy.n_wanted != 1) interleave_note("a row is missing");
  if (row->counters[LIVE_RESERVED] != row->counters[LIVE_PEAK_RESERVED] || row->counters[LIVE_BYTES] != LIVE_UNKNOWN)
    interleave_note("a row is of two times");
}

static void begin(void)
{
  memset(&shared, 0, sizeof shared);
  now = n_looks = 0;
  device.graph = &no_nodes;
  device.instances = NULL;
  publish_write_head(&shared);
  publish_rows(&shared);
  interleave_share(&shared, sizeof shared);
  interleave_share(&now, sizeof now);
}

static const struct interleave_scenario scenarios[] = {
    {"a reader beside a change", begin, {write_once, read_copy}, NULL, 2},
    {"a reader beside two changes", begin, {write_twice, read_copy}, NULL, 2},
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
  static const char *const names[] = {[NO_ODD] = "a change that is not marked",
                                      [NO_FENCE] = "a mark without a fence behind it",
                                      [NO_RECHECK] = "a reader that does not look again"};
  (void)state;
  interleave_weaken_processor(true);
  for (mistake = NO_MISTAKE + 1; mistake < MISTAKES; mistake++)
    assert_true(interleave_finds(scenarios, SCENARIOS, names[mistake], NULL));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders_are_right),
      cmocka_unit_test(all_orders_are_right_on_a_weaker_processor),
      cmocka_unit_test(finds_each_mistake),
  };
  return cmocka_run_group_tests_name("interleavings of published counters", tests, NULL, NULL);
}
