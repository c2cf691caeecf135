/* SPDX-License-Identifier: MIT */
/* cancel.h: two calls between which pthread_cancel() does not end the thread. They enclose every possible cancellation
 * point (driver calls, files, functions of the program) at which a lock of hipmm may be held: a thread that ended there
 * would hold the lock for ever. They cost a few instructions and stand where a call leaves the fast path, never on it.
 * Plugins include this header too. */
#ifndef HIPMM_CORE_BASE_CANCEL_H
#define HIPMM_CORE_BASE_CANCEL_H

#include <pthread.h>

/* Returns the thread's state for cancel_allow(). Pairs may be nested. */
static inline int cancel_forbid(void)
{
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void cancel_allow(int before)
{
  pthread_setcancelstate(before, &before);
}

#endif
