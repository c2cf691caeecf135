/* SPDX-License-Identifier: MIT */
/* test_interleave_log.c: core/base/log.c as it is, with a line of the log in all orders beside a change of the log's file,
 * whose descriptor the program may have closed before. A line goes to the log's file, to standard error only where the
 * program closed the descriptor, and never into a file of the program; and the last file stays the log's. A mistake must be
 * found. */
#include "interleave.h"

#include <stdatomic.h>

static enum { NO_MISTAKE, NO_MARK, MISTAKES } mistake;

/* The mark of a file that is being replaced. */
#undef atomic_fetch_add
#define atomic_fetch_add(object, by) \
  atomic_fetch_add_explicit(object, mistake == NO_MARK ? 0 : (by), memory_order_seq_cst)

#include "../../core/base/log.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- In the place of the system: three files, and one of the program ---- */

enum { NO_FILE, ONE, TWO, OWN };

/* On two file systems. */
static const struct output_file_identity identities[] = {[ONE] = {1, 7}, [TWO] = {2, 8}, [OWN] = {1, 9}};

enum { FIRST_DESCRIPTOR = 1000, DESCRIPTORS = 3, LOG_DESCRIPTOR = FIRST_DESCRIPTOR };

static int behind[DESCRIPTORS]; /* the file behind each */

static int file_behind(int descriptor)
{
  return descriptor < FIRST_DESCRIPTOR ? NO_FILE : behind[descriptor - FIRST_DESCRIPTOR];
}

int __wrap_output_file_open(const char *name, enum output_file_mode mode);
int __wrap_output_file_open(const char *name, enum output_file_mode mode)
{
  int at = 0;
  (void)mode;
  while (behind[at]) at++;
  behind[at] = *name == '1' ? ONE : TWO;
  return FIRST_DESCRIPTOR + at;
}

bool __wrap_output_file_identify(int descriptor, struct output_file_identity *identity_out);
bool __wrap_output_file_identify(int descriptor, struct output_file_identity *identity_out)
{
  *identity_out = identities[file_behind(descriptor)];
  return true;
}

bool __wrap_output_file_is(int descriptor, const struct output_file_identity *identity);
bool __wrap_output_file_is(int descriptor, const struct output_file_identity *identity)
{
  const struct output_file_identity now = identities[file_behind(descriptor)];
  return now.device == identity->device && now.number == identity->number;
}

int __wrap_dup3(int from, int to, int flags);
int __wrap_dup3(int from, int to, int flags)
{
  (void)flags;
  behind[to - FIRST_DESCRIPTOR] = behind[from - FIRST_DESCRIPTOR];
  return to;
}

int __real_close(int descriptor);
int __wrap_close(int descriptor);
int __wrap_close(int descriptor)
{
  if (descriptor < FIRST_DESCRIPTOR) return __real_close(descriptor);
  behind[descriptor - FIRST_DESCRIPTOR] = NO_FILE;
  return 0;
}

/* ---- The threads ---- */

static bool is_lost; /* the first file, before the threads begin */

static void begin(void)
{
  memset(behind, 0, sizeof behind);
  output = STDERR_FILENO;
  file = -1;
  file_device = 0;
  file_number = 0;
  is_lost = false;
  if (!log_open_file("1")) interleave_note("no file is opened");
  interleave_share(behind, sizeof behind);
}

static void begin_taken(void)
{
  begin();
  is_lost = true;
  behind[0] = OWN;
}

static void begin_closed(void)
{
  begin();
  is_lost = true;
  behind[0] = NO_FILE;
}

static void write_line(void)
{
  int descriptor = log_descriptor();
  if (descriptor == STDERR_FILENO && !is_lost) interleave_note("a line goes to standard error");
  if (file_behind(descriptor) == OWN) interleave_note("a line goes into the program's file");
}

static void open_two(void)
{
  if (!log_open_file("2")) interleave_note("a file is not opened");
}

static void open_two_and_one(void)
{
  open_two();
  if (!log_open_file("1")) interleave_note("a file is not opened");
}

static void end_with(int last)
{
  if (file_behind(log_descriptor()) != last) interleave_note("the log has lost its file");
}

static void end_with_one(void)
{
  end_with(ONE);
}

static void end_with_two(void)
{
  end_with(TWO);
}

static const struct interleave_scenario scenarios[] = {
    {"a line beside a change of the file", begin, {write_line, open_two}, end_with_two, 4},
    {"a line beside a change there and back", begin, {write_line, open_two_and_one}, end_with_one, 4},
    {"a line beside a new file after the program took the first", begin_taken, {write_line, open_two}, end_with_two, 4},
    {"a line beside a new file after the program closed the first",
     begin_closed,
     {write_line, open_two},
     end_with_two,
     4},
    {"two lines after the program took the file", begin_taken, {write_line, write_line}, NULL, INTERLEAVE_UNBOUNDED},
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
  static const char *const names[] = {[NO_MARK] = "a file that is replaced without a mark"};
  (void)state;
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
  return cmocka_run_group_tests_name("interleavings of the log", tests, NULL, NULL);
}
