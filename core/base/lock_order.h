/* SPDX-License-Identifier: MIT */
/* lock_order.h: checks the order of locks in the table of doc/locks.md. A build with --enable-checks includes this
 * header before every source file. Each call that takes or leaves a lock then reports it to tests/lab/locks, which has
 * the table. The build aborts if a thread takes a lock that ranks no higher than one that it holds, if it takes a lock
 * twice, and if it calls a function of the program under a lock that forbids that. In every other build all of this is
 * empty. Plugins include this header too. */
#ifndef HIPMM_CORE_BASE_LOCK_ORDER_H
#define HIPMM_CORE_BASE_LOCK_ORDER_H

#ifdef HIPMM_CHECKS

#include <pthread.h>

/* A place in the source that takes a lock or calls the program. */
struct lock_order_site {
  const char *file;
  int line;
  const char *expression; /* of the lock; NULL: a call of the program */
  const char *kind;       /* the header of a lock of our own, which has the row; NULL: the file has it */
};

#define LOCK_ORDER_EXPORT __attribute__((visibility("default")))

#define LOCK_ORDER_SITE(expression) LOCK_ORDER_SITE_OF(expression, NULL)
#define LOCK_ORDER_SITE_OF(expression, kind)                                                      \
  __extension__({                                                                                 \
    static const struct lock_order_site lock_order_site = {__FILE__, __LINE__, expression, kind}; \
    &lock_order_site;                                                                             \
  })

/* check: before a thread may wait for the lock, where it may be refused instead (services->check_wait). wait: before it
 * may wait and is not refused. push: once it has the lock. pop: before it leaves it. forget: when the lock is
 * destroyed. */
LOCK_ORDER_EXPORT void lock_order_check_site(const void *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT void lock_order_wait_site(const void *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT void lock_order_push_site(const void *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT void lock_order_pop(const void *lock);
LOCK_ORDER_EXPORT void lock_order_forget(const void *lock);

/* Around a call of a function of the program. */
LOCK_ORDER_EXPORT void lock_order_enter_program_site(const struct lock_order_site *site);
LOCK_ORDER_EXPORT void lock_order_leave_program(void);

#define lock_order_check(lock)     lock_order_check_site(lock, LOCK_ORDER_SITE(#lock))
#define lock_order_push(lock)      lock_order_push_site(lock, LOCK_ORDER_SITE(#lock))
#define lock_order_enter_program() lock_order_enter_program_site(LOCK_ORDER_SITE(NULL))

/* ---- Locks of POSIX ---- */

LOCK_ORDER_EXPORT int lock_order_mutex_lock(pthread_mutex_t *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_mutex_trylock(pthread_mutex_t *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_mutex_timedlock(pthread_mutex_t *lock, const struct timespec *until,
                                                 const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_mutex_unlock(pthread_mutex_t *lock);
LOCK_ORDER_EXPORT int lock_order_mutex_destroy(pthread_mutex_t *lock);
LOCK_ORDER_EXPORT int lock_order_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                           const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                                const struct timespec *until, const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_rwlock_rdlock(pthread_rwlock_t *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_rwlock_wrlock(pthread_rwlock_t *lock, const struct lock_order_site *site);
LOCK_ORDER_EXPORT int lock_order_rwlock_unlock(pthread_rwlock_t *lock);
LOCK_ORDER_EXPORT int lock_order_rwlock_destroy(pthread_rwlock_t *lock);
LOCK_ORDER_EXPORT int lock_order_once(pthread_once_t *once, void (*function)(void), const struct lock_order_site *site);

#ifdef LOCK_ORDER_IS_CHECKER /* defined for lock_order.c and lock_order_posix.c */
#include <stdbool.h>
/* Whether the lock itself refuses a thread that holds it. */
bool lock_order_is_refused(const void *lock, const struct lock_order_site *site);
#else
#define pthread_mutex_lock(lock)             lock_order_mutex_lock(lock, LOCK_ORDER_SITE(#lock))
#define pthread_mutex_trylock(lock)          lock_order_mutex_trylock(lock, LOCK_ORDER_SITE(#lock))
#define pthread_mutex_timedlock(lock, until) lock_order_mutex_timedlock(lock, until, LOCK_ORDER_SITE(#lock))
#define pthread_mutex_unlock(lock)           lock_order_mutex_unlock(lock)
#define pthread_mutex_destroy(lock)          lock_order_mutex_destroy(lock)
#define pthread_cond_wait(condition, lock)   lock_order_cond_wait(condition, lock, LOCK_ORDER_SITE(#lock))
#define pthread_cond_timedwait(condition, lock, until) \
  lock_order_cond_timedwait(condition, lock, until, LOCK_ORDER_SITE(#lock))
#define pthread_rwlock_rdlock(lock)  lock_order_rwlock_rdlock(lock, LOCK_ORDER_SITE(#lock))
#define pthread_rwlock_wrlock(lock)  lock_order_rwlock_wrlock(lock, LOCK_ORDER_SITE(#lock))
#define pthread_rwlock_unlock(lock)  lock_order_rwlock_unlock(lock)
#define pthread_rwlock_destroy(lock) lock_order_rwlock_destroy(lock)
#define pthread_once(once, function) lock_order_once(once, function, LOCK_ORDER_SITE(#once))
#endif

#else

#define lock_order_check(lock)     ((void)0)
#define lock_order_push(lock)      ((void)0)
#define lock_order_pop(lock)       ((void)0)
#define lock_order_forget(lock)    ((void)0)
#define lock_order_enter_program() ((void)0)
#define lock_order_leave_program() ((void)0)

#endif
#endif
