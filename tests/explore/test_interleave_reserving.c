/* SPDX-License-Identifier: MIT */
/* test_interleave_reserving.c: the budget of reserving, as it is, with two threads in all orders: both want more than there is for
 * both; one tries and one waits; each holds what the other waits for; two releases of one reservation; a block that is freed
 * while its reservation goes; a resize beside a request. Time is the test's: a timed wait may end at its end at any moment. In
 * each order no more is held than the limit, but for what is overbooked when nobody moves; nothing is held in the end, and there
 * is no race. A mistake must be found. test_reserving.c runs eight threads at random. */
#include "../../plugins/reserving/budget.h"
#include "interleave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { LIMIT = 8, FOR_EVER = -1, PATIENCE = 1000, NEVER = 1 << 30 };

bool reserving_lacks_lock;

static struct budget budget;
static struct budget_holder holders[INTERLEAVE_THREADS], more[INTERLEAVE_THREADS];
static int n_done[INTERLEAVE_THREADS]; /* each thread's own */
static enum budget_answer answers[INTERLEAVE_THREADS];
static int64_t now_ns; /* under the budget's lock */

/* ---- Time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
  (void)clock;
  *time = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
  return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
  int code = pthread_cond_wait(condition, mutex);
  int64_t end = (int64_t)until->tv_sec * 1000000000 + until->tv_nsec;
  if (now_ns < end) now_ns = end;
  return code;
}

/* ---- What threads do ---- */

static enum budget_answer take(struct budget_holder *holder, uint64_t bytes, int64_t timeout)
{
  char text[256];
  return budget_reserve(&budget, holder, bytes, timeout, 0, text, sizeof text);
}

static void check_limit(void)
{
  struct budget_counts counts = budget_count(&budget);
  if (counts.held_bytes > LIMIT && !counts.overbooked) interleave_note("more is held than there is");
  if (counts.used_bytes > counts.held_bytes) interleave_note("more is in use than is held");
}

static void give_back(struct budget_holder *holder)
{
  if (budget_release(&budget, holder) != BUDGET_GRANTED) interleave_note("a release is refused");
}

static void take_and_give(uint64_t bytes, int64_t timeout)
{
  int self = interleave_self();
  answers[self] = take(&holders[self], bytes, timeout);
  if (answers[self] != BUDGET_GRANTED) return;
  check_limit();
  give_back(&holders[self]);
}

static void wait_for_six(void)
{
  take_and_give(6, FOR_EVER);
  if (answers[interleave_self()] != BUDGET_GRANTED) interleave_note("a request that waits for ever fails");
}

static void try_six(void)
{
  take_and_give(6, 0);
}

static void wait_a_little_for_six(void)
{
  take_and_give(6, 10);
}

/* Each has 4 already. */
static void wait_for_more(void)
{
  int self = interleave_self();
  answers[self] = take(&more[self], 4, FOR_EVER);
  check_limit();
  if (answers[self] == BUDGET_GRANTED) give_back(&more[self]);
  give_back(&holders[self]);
}

static void release_shared(void)
{
  n_done[interleave_self()] = budget_release(&budget, &holders[0]) == BUDGET_GRANTED;
}

static void abandon_shared(void)
{
  n_done[interleave_self()] = budget_abandon(&budget, &holders[0]);
}

static void free_block(void)
{
  n_done[interleave_self()] = budget_unspend(&budget, &holders[0], 3);
}

static void spend_and_free(void)
{
  enum budget_answer answer = budget_spend(&budget, &holders[0], 2);
  check_limit();
  if (answer == BUDGET_GRANTED) (void)budget_unspend(&budget, &holders[0], 2);
}

static void resize_shared(void)
{
  enum budget_answer grown = budget_resize(&budget, &holders[0], 6);
  check_limit();
  if (grown == BUDGET_GRANTED && budget_resize(&budget, &holders[0], 1) != BUDGET_GRANTED)
    interleave_note("a reservation cannot shrink");
  give_back(&holders[0]);
}

static void wait_for_four(void)
{
  int self = interleave_self();
  answers[self] = take(&more[self], 4, FOR_EVER);
  check_limit();
  give_back(&more[self]);
}

/* ---- How it begins and ends ---- */

static void begin_with(int64_t patience, bool overbooks)
{
  memset(holders, 0, sizeof holders);
  memset(more, 0, sizeof more);
  memset(n_done, 0, sizeof n_done);
  for (int i = 0; i < INTERLEAVE_THREADS; i++) holders[i].name = more[i].name = "holder";
  now_ns = 0;
  budget_open(&budget, LIMIT, patience, overbooks);
}

static void begin(void)
{
  begin_with((int64_t)NEVER * NEVER, true);
}

static void hold_four(void)
{
  (void)take(&holders[interleave_self()], 4, 0);
}

static void begin_stuck(bool overbooks)
{
  begin_with(PATIENCE, overbooks);
  interleave_alone(0, hold_four);
  interleave_alone(1, hold_four);
}

static void begin_stuck_to_overbook(void)
{
  begin_stuck(true);
}

static void begin_stuck_to_fail(void)
{
  begin_stuck(false);
}

static void begin_held(void)
{
  begin();
  interleave_alone(0, hold_four);
}

static void spend_three(void)
{
  (void)budget_spend(&budget, &holders[0], 3);
}

static void begin_spent(void)
{
  begin_held();
  interleave_alone(0, spend_three);
}

static void end(void)
{
  struct budget_counts counts = budget.counts;
  if (counts.held_bytes || counts.used_bytes || counts.waiting || budget.waiters || budget.holders)
    interleave_note("something is held in the end");
  budget_close(&budget);
}

static void end_once(void)
{
  if (n_done[0] + n_done[1] != 1) interleave_note("one of two does not do it, or both do");
  end();
}

static const struct interleave_scenario scenarios[] = {
    {"two that do not fit together", begin, {wait_for_six, wait_for_six}, end, INTERLEAVE_UNBOUNDED},
    {"a try beside a wait", begin, {wait_for_six, try_six}, end, INTERLEAVE_UNBOUNDED},
    {"a timeout beside a wait", begin, {wait_for_six, wait_a_little_for_six}, end, INTERLEAVE_UNBOUNDED},
    {"two that wait for each other",
     begin_stuck_to_overbook,
     {wait_for_more, wait_for_more},
     end,
     INTERLEAVE_UNBOUNDED},
    {"two of which one fails", begin_stuck_to_fail, {wait_for_more, wait_for_more}, end, INTERLEAVE_UNBOUNDED},
    {"two releases", begin_held, {release_shared, release_shared}, end_once, INTERLEAVE_UNBOUNDED},
    {"the last block beside the last reference",
     begin_spent,
     {abandon_shared, free_block},
     end_once,
     INTERLEAVE_UNBOUNDED},
    {"a block beside a release", begin_held, {spend_and_free, release_shared}, end, INTERLEAVE_UNBOUNDED},
    {"a resize beside a request", begin_held, {resize_shared, wait_for_four}, end, INTERLEAVE_UNBOUNDED},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void all_orders_are_right(void **state)
{
  unsigned long runs = 0;
  (void)state;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
  assert_true(runs > SCENARIOS);
}

static void finds_what_is_not_locked(void **state)
{
  (void)state;
  reserving_lacks_lock = true;
  assert_true(interleave_finds(scenarios, SCENARIOS, "a budget without its lock", NULL));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders_are_right),
      cmocka_unit_test(finds_what_is_not_locked),
  };
  return cmocka_run_group_tests_name("interleavings of reserving", tests, NULL, NULL);
}
