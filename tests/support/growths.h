/* SPDX-License-Identifier: MIT */
/* growths.h: a pool over device memory that grows as a test's row says, for tests that are made of it mapped and in
 * segments. */
#ifndef HIPMM_TESTS_SUPPORT_GROWTHS_H
#define HIPMM_TESTS_SUPPORT_GROWTHS_H

#include "fixture.h"

enum { KIB = 1024 };

/* What a row may say. */
extern const char mapped[], segments[];

#define BOTH(test)                                                                         \
  {"mapped: " #test, test, fixture_setup, fixture_teardown, (void *)(uintptr_t)mapped},    \
  {                                                                                        \
    "segments: " #test, test, fixture_setup, fixture_teardown, (void *)(uintptr_t)segments \
  }
#define ONCE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* With more options of the pool: `, 'record': 'lazy'`. */
void start(void **state, const char *options);
void start_with(const char *runtime_options, const char *growth, const char *options);

/* The pool's. */
void trim(size_t keep_bytes);
int64_t value(const char *name);

#endif
