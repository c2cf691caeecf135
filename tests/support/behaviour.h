/* SPDX-License-Identifier: MIT */
/* behaviour.h: what every resource does, as RMM's and hipmm's users expect it: a table of cases, each run on the top of
 * any stack. For the tests of adaptors, which must not change any of it. */
#ifndef HIPMM_TESTS_SUPPORT_BEHAVIOUR_H
#define HIPMM_TESTS_SUPPORT_BEHAVIOUR_H

#include "fixture.h"

enum { BEHAVIOURS = 8 };

struct behaviour_stack {
  const char *name;
  const char *runtime; /* options of the software runtime */
  const char *graph;   /* as for fixture_start */
  bool aligns;         /* to more than 256 bytes */
};

/* Writes a test for each behaviour and each stack to `tests`, which has room for BEHAVIOURS * n_stacks; returns how
 * many. */
size_t behaviour_tests(const struct behaviour_stack *stacks, size_t n_stacks, struct CMUnitTest *tests);

/* For main(): runs a type's own tests, and then a test for each behaviour and each stack. */
int behaviour_run(const char *type, const struct CMUnitTest *own, size_t n_own, const struct behaviour_stack *stacks,
                  size_t n_stacks);

/* Frees, right and wrong ones, go through what stands under statistics: `'prefetch', 'pool', 'device'`. */
void behaviour_frees_pass_through(const char *stack);

#endif
