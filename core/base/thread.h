/* SPDX-License-Identifier: MIT */
/* thread.h: threads of our own in a program's process. */
#ifndef HIPMM_CORE_BASE_THREAD_H
#define HIPMM_CORE_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create(). The thread blocks all signals: they belong to the program. Returns an errno; 0: it runs. */
static inline int thread_start(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(thread, attributes, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

#endif
