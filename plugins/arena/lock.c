/* SPDX-License-Identifier: MIT */
/* lock.c: taking turns with others, and ownership. */
#include "lock.h"

enum { LONG_ALONE = 1024 };

void lock_take_busy(struct lock *lock)
{
  spin_lock(&lock->busy);
  if (lock_is_own(lock)) {
    if (++lock->n_alone == LONG_ALONE)
      gate_open(&lock->gate); /* for the next time; nobody shuts it while we hold `busy` */
    return;
  }
  lock->n_alone = 0;
  if (gate_is_shut(&lock->gate)) return;
  gate_shut(&lock->gate);
  gates_agree();
  gate_await(&lock->gate);
}

void lock_own(struct lock *lock)
{
  if (!thread_memories || atomic_load(&lock->owner)) return;
  atomic_store(&lock->owner, thread_memories);
  gate_open(&lock->gate);
}

void lock_disown(struct lock *lock)
{
  if (lock_is_own(lock)) atomic_store(&lock->owner, NULL); /* whose gate stays as it is: it is for others to shut */
}
