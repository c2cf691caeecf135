/* SPDX-License-Identifier: MIT */
/* Tests of the asymmetric gate: while it is shut, its owner is not inside, with membarrier(2) and without. */
#include "../../../plugins/common/gate.h"
#include "../../support/support.h"

#include <pthread.h>

enum { ROUNDS = 20000 };

static struct gate gate;
static atomic_bool begun, stop;
static volatile unsigned long passed; /* what the gate guards: counted without any order of its own */

static void *own(void *refused)
{
  while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
    if (!gate_enter(&gate)) {
      ++*(unsigned long *)refused;
      continue;
    }
    passed++;
    gate_leave(&gate);
    atomic_store_explicit(&begun, true, memory_order_relaxed);
  }
  return NULL;
}

/* What is counted between shutting and opening must be what is counted by us. */
static unsigned long strays_while_shut(void)
{
  gate_shut(&gate);
  asymmetric_fence_heavy();
  gate_await(&gate);
  unsigned long before = passed;
  for (volatile unsigned i = 0; i < 200; i++) passed++;
  unsigned long strays = passed - before - 200;
  gate_open(&gate);
  return strays;
}

static void keeps_its_owner_out(bool light)
{
  pthread_t thread;
  unsigned long strays = 0, refused = 0;
  asymmetric_fence_prepare();
  bool could_be_light = atomic_load(&asymmetric_fence_is_light);
  atomic_store(&asymmetric_fence_is_light, light && could_be_light);
  atomic_store(&begun, false);
  atomic_store(&stop, false);
  passed = 0;
  assert_int_equal(pthread_create(&thread, NULL, own, &refused), 0);
  while (!atomic_load(&begun)) continue;
  for (unsigned i = 0; i < ROUNDS; i++) strays += strays_while_shut();
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  atomic_store(&asymmetric_fence_is_light, could_be_light);
  assert_int_equal(strays, 0);
  assert_true(passed > 200 * ROUNDS); /* it has been in, too */
}

static void keeps_its_owner_out_where_processors_agree(void **state)
{
  (void)state;
  keeps_its_owner_out(true);
}

static void keeps_its_owner_out_where_they_do_not(void **state)
{
  (void)state;
  keeps_its_owner_out(false);
}

static void lets_its_owner_pass_when_open(void **state)
{
  (void)state;
  asymmetric_fence_prepare();
  assert_true(gate_enter(&gate));
  gate_leave(&gate);
  gate_shut(&gate);
  assert_false(gate_enter(&gate));
  asymmetric_fence_heavy();
  gate_await(&gate); /* a refused owner is not inside */
  gate_open(&gate);
  assert_true(gate_enter(&gate));
  gate_leave(&gate);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lets_its_owner_pass_when_open),
      cmocka_unit_test(keeps_its_owner_out_where_processors_agree),
      cmocka_unit_test(keeps_its_owner_out_where_they_do_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
