/* SPDX-License-Identifier: MIT */
/* deadline.h: the monotonic clock; and the end of a wait, as the timed waits of POSIX threads take it. */
#ifndef HIPMM_CORE_BASE_DEADLINE_H
#define HIPMM_CORE_BASE_DEADLINE_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds; a wall clock may be set back. */
static inline uint64_t monotonic_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time of the clock in so many milliseconds. */
static inline struct timespec deadline_in_ms(clockid_t clock, long ms)
{
  struct timespec until;
  clock_gettime(clock, &until);
  until.tv_nsec += ms % 1000 * 1000000L;
  until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  return until;
}

#endif
