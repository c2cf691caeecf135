/* SPDX-License-Identifier: MIT */
/* least_time.c: a file of its own, for programs that replace functions of the core which support.c uses. */
#include "support.h"

#include <time.h>

static uint64_t processor_time(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t least_time(unsigned n, void (*run)(void))
{
  uint64_t least = UINT64_MAX;
  for (unsigned i = 0; i < n; i++) {
    uint64_t before = processor_time();
    run();
    uint64_t took = processor_time() - before;
    if (took < least) least = took;
  }
  return least;
}
