/* SPDX-License-Identifier: MIT */
/* managed.h: what the software device knows about managed memory, for tests of adaptors that tell it; and the tests
 * that they share. */
#ifndef HIPMM_TESTS_SUPPORT_MANAGED_H
#define HIPMM_TESTS_SUPPORT_MANAGED_H

#include "fixture.h"

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

/* An adaptor that tells HIP one thing of each block. */
struct managed_adaptor {
  const char *type, *entry; /* of a graph */
  const char *function;     /* of HIP, with which it tells */
  const char *counter;      /* a value of the adaptor: how often it did */
  int attribute;            /* of the memory: the device that the adaptor told of */
};

/* It is the resource's device that it means; the current one stays. */
void managed_means_the_device_of_the_resource(const struct managed_adaptor *adaptor);

/* It tries with other memory, once a block, and does not mind; without managed memory it does not try. */
void managed_leaves_other_memory_alone(const struct managed_adaptor *adaptor);

/* What the upstream has refused is refused, and nothing told. */
void managed_passes_failures_of_the_upstream_on(const struct managed_adaptor *adaptor);

/* For fixture_run_threads: allocates and frees MANAGED_ROUNDS times, half of them without a size. */
enum { MANAGED_ROUNDS = 500 };
void managed_allocate_and_free(int *failures);

/* For fixture_fail_each_call. */
void managed_allocate_and_free_whatever_fails(void);

#endif
