/* SPDX-License-Identifier: MIT */
/* calls.h: one valid call of each function of the nvidia runtime that calls the driver. Over the fake driver each
 * succeeds, but for hipExtMallocWithFlags(), which is called for a kind of memory that NVIDIA's devices lack. */
#ifndef HIPMM_TESTS_RUNTIMES_NVIDIA_CALLS_H
#define HIPMM_TESTS_RUNTIMES_NVIDIA_CALLS_H

#include "runtime.h"

struct call {
  const char *function;
  const char *needed; /* the function that the call needs and that a driver may lack; or NULL */
  hipError_t (*make)(void);
};

extern const struct call calls[];
extern const size_t n_calls;

#endif
