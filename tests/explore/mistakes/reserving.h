/* SPDX-License-Identifier: MIT */
/* reserving.h: a mistake in reserving's budget: who holds what is changed without the lock. Included in front of its file. */
#ifndef HIPMM_TESTS_EXPLORE_MISTAKES_RESERVING_H
#define HIPMM_TESTS_EXPLORE_MISTAKES_RESERVING_H

#include <pthread.h>
#include <stdbool.h>

extern bool reserving_lacks_lock;

#define pthread_mutex_lock(lock)   (reserving_lacks_lock ? 0 : (pthread_mutex_lock)(lock))
#define pthread_mutex_unlock(lock) (reserving_lacks_lock ? 0 : (pthread_mutex_unlock)(lock))

#endif
