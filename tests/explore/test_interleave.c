/* SPDX-License-Identifier: MIT */
/* test_interleave.c: the biased lock (plugins/common/biased_lock.h) and its gate, with two threads in all orders: the owner
 * beside another thread, the lock that gets an owner, the gate that opens again, and the owner that goes. One thread at a time is
 * inside, and nobody waits for ever. Mistakes that are put back must be found. */
#include "interleave.h"

#include "../../core/base/asymmetric_fence.h"

/* The mistakes. */
static enum { NONE, NO_FENCE, NO_OWN_FENCE, NO_WAIT, NO_RELEASE } mistake;

#define asymmetric_fence_light() (mistake == NO_OWN_FENCE ? (void)0 : (asymmetric_fence_light)())

#include "../../plugins/common/gate.h"

#define gate_await(gate) (mistake == NO_WAIT ? (void)0 : (gate_await)(gate))

#include "../../plugins/common/biased_lock.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNER = 0, OTHER = 1 };

static bool has_membarrier = true;

static struct biased_lock lock;
static int n_inside, protected_data;

/* ---- What the threads do ---- */

/* Not reported to the search, unlike what the lock protects. */
static __attribute__((no_sanitize("thread"))) void go_inside(int direction)
{
  if ((n_inside += direction) > 1) interleave_note("two threads are inside");
}

static void stay_inside(void)
{
  go_inside(1);
  interleave_step();
  protected_data++;
  go_inside(-1);
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

static const void *owner_me;
static struct thread_memory *owner_memory;

static void register_thread(void)
{
  thread_register();
  if (interleave_self() != OWNER) return;
  owner_me = &thread_memories;
  owner_memory = thread_memories;
}

static void begin_alone(void)
{
  memset(&lock, 0, sizeof lock);
  n_inside = protected_data = 0;
  asymmetric_fence_prepare();
  asymmetric_fence_is_light = has_membarrier;
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_alone(i, register_thread);
  if (mistake == NO_FENCE) interleave_drop_fences();
  if (mistake >= NO_FENCE && mistake <= NO_WAIT) {
    interleave_share(&lock.has_waited, sizeof lock - offsetof(struct biased_lock, has_waited));
    interleave_share(&protected_data, sizeof protected_data);
  }
  if (mistake == NO_RELEASE) interleave_weaken(&lock.gate, sizeof lock.gate);
}

/* The owner is there, and the gate is open. */
static void begin_owned(void)
{
  begin_alone();
  lock.owner = owner_memory;
}

static void make_shut(void)
{
  lock.gate.shut = true;
  lock.last = owner_me;
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
  begin_alone();
  make_shut();
}

static const struct interleave_scenario scenarios[] = {
    {"the owner passes twice", begin_owned, {pass_twice, pass}, NULL, INTERLEAVE_UNBOUNDED},
    {"the other passes twice", begin_owned, {pass, pass_twice}, NULL, INTERLEAVE_UNBOUNDED},
    {"the other tries", begin_owned, {pass_twice, try_to_pass}, NULL, INTERLEAVE_UNBOUNDED},
    {"the other tries, and passes", begin_owned, {pass, try_and_pass}, NULL, INTERLEAVE_UNBOUNDED},
    {"the owner's gate opens", begin_about_to_open, {pass_twice, pass}, NULL, INTERLEAVE_UNBOUNDED},
    {"the lock gets an owner", begin_about_to_own, {pass_twice, pass}, NULL, 6},
    {"the owner goes", begin_owned, {pass_and_disown, pass}, NULL, INTERLEAVE_UNBOUNDED},
    {"another comes after it", begin_owned, {disown, own_and_pass}, NULL, INTERLEAVE_UNBOUNDED},
};

enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static void one_is_inside_in_all_orders(void **state)
{
  (void)state;
  mistake = NONE;
  unsigned long runs = 0;
  const char *wrong = interleave_explore_all(scenarios, SCENARIOS, &runs);
  if (wrong) fail_msg("%s", wrong);
  assert_true(runs > 10000);
}

static void one_is_inside_in_all_orders_on_a_weaker_processor(void **state)
{
  interleave_weaken_processor(true);
  one_is_inside_in_all_orders(state);
  interleave_weaken_processor(false);
}

/* Without membarrier(2) all of the gate's operations must be sequentially consistent: acquire and release do not suffice. */
static void a_gate_without_membarrier_needs_one_order(void **state)
{
  (void)state;
  mistake = NONE;
  has_membarrier = false;
  unsigned long runs = 0;
  const char *wrong = interleave_explore(&scenarios[0], &runs);
  if (wrong) fail_msg("%s", wrong);
  interleave_weaken_processor(true);
  assert_true(interleave_finds(scenarios, 1, "a gate of acquire and release alone", NULL));
  interleave_weaken_processor(false);
  has_membarrier = true;
}

static void finds_each_mistake(void **state)
{
  static const struct {
    const char *name, *found;
  } mistakes[] = {[NO_FENCE] = {"no fence of the other thread", "two threads are inside"},
                  [NO_OWN_FENCE] = {"no fence of the owner", "two threads are inside"},
                  [NO_WAIT] = {"no wait for the owner", "two threads are inside"},
                  [NO_RELEASE] = {"a gate without acquire and release", "a race between"}};
  (void)state;
  for (mistake = NO_FENCE; mistake <= NO_RELEASE; mistake++)
    assert_true(interleave_finds(scenarios, SCENARIOS, mistakes[mistake].name, mistakes[mistake].found));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_is_inside_in_all_orders),
      cmocka_unit_test(one_is_inside_in_all_orders_on_a_weaker_processor),
      cmocka_unit_test(a_gate_without_membarrier_needs_one_order),
      cmocka_unit_test(finds_each_mistake),
  };
  return cmocka_run_group_tests_name("interleavings", tests, NULL, NULL);
}
