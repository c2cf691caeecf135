/* SPDX-License-Identifier: MIT */
/* managed.h: what the software device knows about managed memory, for tests of adaptors that tell it. */
#ifndef HIPMM_TESTS_MANAGED_H
#define HIPMM_TESTS_MANAGED_H

#include "rig.h"

/* HIP's numbers of what can be asked, and of what is said. */
enum {
  MANAGED_READ_MOSTLY = 1,
  MANAGED_PREFERRED_LOCATION = 2,
  MANAGED_ACCESSED_BY = 3,
  MANAGED_LAST_PREFETCH = 4,
  MANAGED_COARSE_GRAIN = 100,
  MANAGED_NOWHERE = -2
};

/* Asserts that the memory is managed. */
int managed_ask(const void *ptr, int attribute);
void managed_ask_all(const void *ptr, int attribute, int *values_out, size_t n_values);

#endif
