/* SPDX-License-Identifier: MIT */
/* lock_order_posix.c: the functions of POSIX on locks, which tell lock_order.c what a thread takes and leaves. lock_order.h
 * puts them in the place of POSIX's, in a build with --enable-checks. */
#ifndef HIPMM_CHECKS
#define HIPMM_CHECKS
#define LOCK_ORDER_IS_CHECKER
#endif
#include "../../../core/base/lock_order.h"

static int lock_order_taken(int code, const void *lock, const struct lock_order_site *site)
{
  if (!code) lock_order_push_site(lock, site);
  return code;
}

int lock_order_mutex_lock(pthread_mutex_t *lock, const struct lock_order_site *site)
{
  if (!lock_order_is_refused(lock, site)) lock_order_wait_site(lock, site);
  return lock_order_taken(pthread_mutex_lock(lock), lock, site);
}

/* These two do not wait, or not for long, so their order is free. */
int lock_order_mutex_trylock(pthread_mutex_t *lock, const struct lock_order_site *site)
{
  return lock_order_taken(pthread_mutex_trylock(lock), lock, site);
}

int lock_order_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until, const struct lock_order_site *site)
{
  return lock_order_taken(pthread_mutex_timedlock(lock, until), lock, site);
}

int lock_order_mutex_unlock(pthread_mutex_t *lock)
{
  lock_order_pop(lock);
  return pthread_mutex_unlock(lock);
}

int lock_order_mutex_destroy(pthread_mutex_t *lock)
{
  lock_order_forget(lock);
  return pthread_mutex_destroy(lock);
}

/* The thread takes the lock again after the wait, so it must be the last one that the thread took. */
int lock_order_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct lock_order_site *site)
{
  lock_order_pop(lock);
  lock_order_check_site(lock, site);
  int code = pthread_cond_wait(condition, lock);
  lock_order_push_site(lock, site);
  return code;
}

int lock_order_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until,
                              const struct lock_order_site *site)
{
  lock_order_pop(lock);
  lock_order_check_site(lock, site);
  int code = pthread_cond_timedwait(condition, lock, until);
  lock_order_push_site(lock, site);
  return code;
}

int lock_order_rwlock_rdlock(pthread_rwlock_t *lock, const struct lock_order_site *site)
{
  lock_order_check_site(lock, site);
  return lock_order_taken(pthread_rwlock_rdlock(lock), lock, site);
}

int lock_order_rwlock_wrlock(pthread_rwlock_t *lock, const struct lock_order_site *site)
{
  lock_order_check_site(lock, site);
  return lock_order_taken(pthread_rwlock_wrlock(lock), lock, site);
}

int lock_order_rwlock_unlock(pthread_rwlock_t *lock)
{
  lock_order_pop(lock);
  return pthread_rwlock_unlock(lock);
}

int lock_order_rwlock_destroy(pthread_rwlock_t *lock)
{
  lock_order_forget(lock);
  return pthread_rwlock_destroy(lock);
}

/* Other threads wait while the function runs, so it counts as a lock. */
int lock_order_once(pthread_once_t *once, void (*function)(void), const struct lock_order_site *site)
{
  lock_order_check_site(once, site);
  lock_order_push_site(once, site);
  int code = pthread_once(once, function);
  lock_order_pop(once);
  return code;
}
