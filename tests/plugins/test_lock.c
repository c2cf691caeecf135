/* SPDX-License-Identifier: MIT */
/* Tests of the lock of what one thread uses most: one at a time inside, whoever passes how, and its owner by the gate as
 * long as it is alone. */
#include "../../plugins/common/biased_lock.h"
#include "../support/support.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 20000, LONG = 3000 };

static struct biased_lock lock;
static unsigned long inside; /* what the lock guards: counted without any order of its own */

static void become_owner(void)
{
  biased_lock_acquire(&lock);
  biased_lock_own(&lock);
  biased_lock_release(&lock);
}

static int begin(void **state)
{
  (void)state;
  memset(&lock, 0, sizeof lock);
  biased_lock_open(&lock);
  inside = 0;
  return 0;
}

static void pass(unsigned long times)
{
  for (unsigned long i = 0; i < times; i++) {
    biased_lock_acquire(&lock);
    inside++;
    biased_lock_release(&lock);
  }
}

static void *pass_as_other(void *unused)
{
  (void)unused;
  pass(ROUNDS);
  return NULL;
}

static void *pass_once(void *unused)
{
  (void)unused;
  pass(1);
  return NULL;
}

static void lets_one_in_at_a_time(void **state)
{
  (void)state;
  pthread_t threads[THREADS];
  become_owner();
  for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, pass_as_other, NULL), 0);
  pass(10 * ROUNDS); /* alone for long in between, too */
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(inside, (10 + THREADS) * ROUNDS);
  biased_lock_disown(&lock);
}

static bool passes_by_the_gate(void)
{
  biased_lock_acquire(&lock);
  bool by_the_gate = gate_is_passed(&lock.gate);
  biased_lock_release(&lock);
  return by_the_gate;
}

static void lets_its_owner_pass_by_the_gate_while_it_is_alone(void **state)
{
  (void)state;
  pthread_t thread;
  assert_false(passes_by_the_gate()); /* nobody owns it */
  become_owner();
  assert_true(passes_by_the_gate());
  assert_int_equal(pthread_create(&thread, NULL, pass_once, NULL), 0);
  pthread_join(thread, NULL);
  assert_false(passes_by_the_gate());
  pass(LONG);
  assert_true(passes_by_the_gate());
  biased_lock_disown(&lock);
  assert_false(passes_by_the_gate());
  assert_int_equal(inside, LONG + 1);
}

static void is_owned_by_who_is_alone_for_long(void **state)
{
  (void)state;
  pthread_t thread;
  pass(LONG);
  assert_true(passes_by_the_gate());
  assert_int_equal(pthread_create(&thread, NULL, pass_as_other, NULL), 0); /* and stays so, however long others come */
  pthread_join(thread, NULL);
  assert_false(passes_by_the_gate());
  pass(LONG);
  assert_true(passes_by_the_gate());
  biased_lock_disown(&lock);
}

static void *try_here(void *unused)
{
  (void)unused;
  if (!biased_lock_try(&lock)) return NULL;
  inside++;
  biased_lock_release(&lock);
  return &lock;
}

static bool can_be_had_elsewhere(void)
{
  pthread_t thread;
  void *result;
  assert_int_equal(pthread_create(&thread, NULL, try_here, NULL), 0);
  pthread_join(thread, &result);
  return result != NULL;
}

static void is_had_without_waiting_or_not_at_all(void **state)
{
  (void)state;
  assert_true(can_be_had_elsewhere()); /* nobody owns it */
  become_owner();
  biased_lock_acquire(&lock); /* by the gate */
  assert_true(gate_is_passed(&lock.gate));
  assert_false(can_be_had_elsewhere());
  assert_false(biased_lock_try(&lock)); /* it is held here */
  biased_lock_release(&lock);
  assert_true(passes_by_the_gate()); /* it was in vain, and the owner pays nothing for it */
  assert_true(can_be_had_elsewhere());
  biased_lock_acquire(&lock); /* by the mutex, since another thread was there */
  assert_false(can_be_had_elsewhere());
  biased_lock_release(&lock);
  assert_true(biased_lock_try(&lock));
  biased_lock_release(&lock);
  assert_int_equal(inside, 2);
  biased_lock_disown(&lock);
}

static void *is_held_here(void *unused)
{
  (void)unused;
  return biased_lock_is_held(&lock) ? &lock : NULL;
}

static bool is_held_elsewhere(void)
{
  pthread_t thread;
  void *result;
  assert_int_equal(pthread_create(&thread, NULL, is_held_here, NULL), 0);
  pthread_join(thread, &result);
  return result != NULL;
}

static void knows_who_holds_it(void **state)
{
  (void)state;
  for (unsigned i = 0; i < 2; i++) { /* not by the gate, and by it */
    assert_false(biased_lock_is_held(&lock));
    biased_lock_acquire(&lock);
    assert_int_equal(gate_is_passed(&lock.gate), i);
    assert_true(biased_lock_is_held(&lock));
    assert_false(is_held_elsewhere());
    biased_lock_release(&lock);
    assert_false(biased_lock_is_held(&lock));
    become_owner();
  }
  biased_lock_disown(&lock);
}

static void *own_for_life(void *by_the_gate)
{
  become_owner();
  *(bool *)by_the_gate = passes_by_the_gate();
  biased_lock_disown(&lock);
  return NULL;
}

static void goes_from_owner_to_owner(void **state)
{
  (void)state;
  for (unsigned i = 0; i < 3; i++) {
    pthread_t thread;
    bool by_the_gate = false;
    assert_int_equal(pthread_create(&thread, NULL, own_for_life, &by_the_gate), 0);
    pthread_join(thread, NULL);
    assert_true(by_the_gate);
  }
  become_owner();
  assert_true(passes_by_the_gate());
  bool others = true;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, own_for_life, &others), 0);
  pthread_join(thread, NULL);
  assert_false(others); /* it has an owner */
  biased_lock_disown(&lock);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(lets_one_in_at_a_time, begin),
      cmocka_unit_test_setup(lets_its_owner_pass_by_the_gate_while_it_is_alone, begin),
      cmocka_unit_test_setup(is_owned_by_who_is_alone_for_long, begin),
      cmocka_unit_test_setup(is_had_without_waiting_or_not_at_all, begin),
      cmocka_unit_test_setup(knows_who_holds_it, begin),
      cmocka_unit_test_setup(goes_from_owner_to_owner, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
