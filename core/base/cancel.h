/* SPDX-License-Identifier: MIT */
/* cancel.h: pthread_cancel() does not end a thread between these two calls. They stand around whatever may be a
 * cancellation point (driver calls, files, functions of the program) wherever a lock of hipmm may be held: a thread that
 * ended there would hold the lock for ever. Plugins include this header too. Both cost a few instructions, so they stand
 * where a call leaves the fast path, and not on it. */
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
