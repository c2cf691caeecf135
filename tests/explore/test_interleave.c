/* SPDX-License-Identifier: MIT */
/* test_interleave.c: the biased lock (plugins/common/biased_lock.h) and its gate, with two threads in all orders: the owner
 * beside another thread, the lock that gets an owner, the gate that opens again, and the owner that goes. One thread at a time is
 * inside, and nobody waits for ever. Mistakes that are put back must be found. */
#include "interleave.h"

#include "../../plugins/common/gate.h"

/* The mistakes. */
static enum { NONE, NO_FENCE, NO_WAIT } mistake;

#undef asymmetric_fence_heavy
#define asymmetric_fence_heavy() (mistake == NO_FENCE ? (void)0 : interleave_fence_all())
#define gate_await(gate)         (mistake == NO_WAIT ? (void)0 : (gate_await)(gate))

#include "../../plugins/common/biased_lock.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNER = 0, OTHER = 1 };

static struct biased_lock lock;
static struct thread_memory own_memory[INTERLEAVE_THREADS]; /* what thread_memories points to */
static int n_inside;

/* In the place of thread_cache.c's. */
bool thread_register(void)
{
  *interleave_memories() = &own_memory[interleave_self()];
  return true;
}

/* ---- What the threads do ---- */

static void stay_inside(void)
{
  if (n_inside++) interleave_note("two threads are inside");
  interleave_step();
  n_inside--;
}

static void pass(void)
{
  biased_lock_acquire(&lock);
  stay_inside();
  biased_lock_release(&lock);
}

static void pass_twice(void)
{
  pass();
  pass();
}

static void try_to_pass(void)
{
  if (!biased_lock_try(&lock)) return;
  stay_inside();
  biased_lock_release(&lock);
}

static void try_and_pass(void)
{
  try_to_pass();
  pass();
}

static void pass_and_disown(void)
{
  pass();
  biased_lock_disown(&lock);
}

static void disown(void)
{
  biased_lock_disown(&lock);
}

static void own_and_pass(void)
{
  biased_lock_acquire(&lock);
  stay_inside();
  biased_lock_own(&lock);
  biased_lock_release(&lock);
  pass();
}

/* ---- How it begins ---- */

static void begin_alone(void)
{
  memset(&lock, 0, sizeof lock);
  memset(own_memory, 0, sizeof own_memory);
  n_inside = 0;
  for (int i = 0; i < INTERLEAVE_THREADS; i++) *interleave_memories_of(i) = NULL;
  interleave_constant(&asymmetric_fence_is_light, INTERLEAVE_ANY);
  interleave_constant(&lock.taker,
                      INTERLEAVE_ANY); /* compared with the thread's own identity alone, which nobody else writes */
}

/* What only the owner writes; the other one reads `shut` with the mutex, under which alone it is written. */
static void begin_with_one_owner(void)
{
  begin_alone();
  interleave_constant(&lock.gate.inside, OWNER);
  interleave_constant(&lock.owner, OWNER);
  interleave_constant(&lock.gate.shut, OTHER);
}

/* The owner is there, and the gate is open. */
static void make_owned(void)
{
  *interleave_memories_of(OWNER) = own_memory;
  lock.owner = own_memory;
}

static void begin_owned(void)
{
  begin_with_one_owner();
  make_owned();
}

static void make_shut(void)
{
  lock.gate.shut = true;
  lock.last = interleave_memories_of(OWNER);
  lock.n_alone = LONG_ALONE - 1; /* with the next time */
}

/* The gate was shut long ago: the owner's next pass opens it. */
static void begin_about_to_open(void)
{
  begin_owned();
  make_shut();
}

/* Nobody owns the lock: the next pass of this thread makes it the owner. */
static void begin_about_to_own(void)
{
  begin_with_one_owner();
  make_shut();
}

static void begin_owned_to_hand_over(void)
{
  begin_alone();
  make_owned();
}

static const struct scenario {
  const char *name;
  void (*begin)(void);
  void (*threads[INTERLEAVE_THREADS])(void);
} scenarios[] = {
    {"the owner passes twice", begin_owned, {pass_twice, pass}},
    {"the other passes twice", begin_owned, {pass, pass_twice}},
    {"the other tries", begin_owned, {pass_twice, try_to_pass}},
    {"the other tries, and passes", begin_owned, {pass, try_and_pass}},
    {"the owner's gate opens", begin_about_to_open, {pass_twice, pass}},
    {"the lock gets an owner", begin_about_to_own, {pass_twice, pass}},
    {"the owner goes", begin_owned, {pass_and_disown, pass}},
    {"another comes after it", begin_owned_to_hand_over, {disown, own_and_pass}},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* ---- Searches ---- */

static struct choices choices;

/* NULL: all orders are right. */
static const char *explore(const struct scenario *scenario, unsigned long *runs_out)
{
  const char *wrong = NULL;
  choices.n_given = 0;
  do {
    choices_begin(&choices);
    scenario->begin();
    wrong = interleave_run(&choices, scenario->threads);
    ++*runs_out;
  } while (!wrong && choices_next(&choices));
  return wrong;
}

static void one_is_inside_in_all_orders(void **state)
{
  unsigned long all = 0;
  (void)state;
  mistake = NONE;
  asymmetric_fence_is_light = true;
  for (size_t i = 0; i < SCENARIOS; i++) {
    unsigned long runs = 0;
    const char *wrong = explore(&scenarios[i], &runs);
    char list[600];
    choices_print(&choices, list, sizeof list);
    if (wrong) fail_msg("%s: %s, with the decisions %s", scenarios[i].name, wrong, list);
    print_message("%s: %lu orders\n", scenarios[i].name, runs);
    all += runs;
  }
  assert_true(all > 10000);
}

static void finds_each_mistake(void **state)
{
  (void)state;
  for (mistake = NO_FENCE; mistake <= NO_WAIT; mistake++) {
    unsigned long runs = 0;
    const char *wrong = NULL;
    for (size_t i = 0; i < SCENARIOS && !wrong; i++) wrong = explore(&scenarios[i], &runs);
    if (!wrong) fail_msg("mistake %d was not found in %lu orders", (int)mistake, runs);
    assert_string_equal(wrong, "two threads are inside");
    print_message("mistake %d: found after %lu orders\n", (int)mistake, runs);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_is_inside_in_all_orders),
      cmocka_unit_test(finds_each_mistake),
  };
  return cmocka_run_group_tests_name("interleavings", tests, NULL, NULL);
}
