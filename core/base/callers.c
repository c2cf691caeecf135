/* SPDX-License-Identifier: MIT */
/* callers.c: the slots of threads, and the wait for all of them. Called by lifecycle.c. Never allocates for a thread
 * whose slot can come from one that ended. */
#include "callers.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YIELDS = 1000, NAP_NS = 50000 };

static atomic_bool callers_are_light; /* the system makes every processor finish its stores */
static struct caller callers_rest;    /* the place of all threads that have none of their own, being at their end */

_Thread_local struct caller_here caller_here;

static struct caller *_Atomic first; /* slots are never freed, but used again */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void callers_return_slot(void *caller)
{
  caller_here = (struct caller_here){.place = &callers_rest};
  atomic_store(&((struct caller *)caller)->inside, 0); /* a cancelled thread may end in a call */
  atomic_store(&((struct caller *)caller)->is_taken, false);
}

static void callers_prepare_once(void)
{
  atomic_store(&callers_are_light, !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
  has_key = !pthread_key_create(&key, callers_return_slot);
}

void callers_prepare(void)
{
  pthread_once(&once, callers_prepare_once);
}

static struct caller *callers_find_unused(void)
{
  struct caller *caller = atomic_load(&first);
  while (caller && atomic_exchange(&caller->is_taken, true)) caller = caller->next;
  return caller;
}

static struct caller *callers_new(void)
{
  struct caller *caller = aligned_alloc(_Alignof(struct caller), sizeof *caller);
  if (!caller) return NULL;
  *caller = (struct caller){.is_taken = true, .next = atomic_load(&first)};
  while (!atomic_compare_exchange_weak(&first, &caller->next, caller)) continue;
  return caller;
}

static void callers_find_place(struct caller_here *here)
{
  callers_prepare();
  struct caller *caller = has_key ? callers_find_unused() : NULL;
  if (has_key && !caller) caller = callers_new();
  if (caller && pthread_setspecific(key, caller)) {
    atomic_store(&caller->is_taken, false);
    caller = NULL;
  }
  here->place = caller ? caller : &callers_rest;
  here->light = atomic_load(&callers_are_light) ? caller : NULL;
}

/* Only the outermost call of a thread is counted in a place that threads share. */
void caller_enter_slowly(struct caller_here *here)
{
  if (!here->place) callers_find_place(here);
  if (here->light || !here->depth++) atomic_fetch_add(&here->place->inside, 1);
}

void caller_leave_slowly(struct caller_here *here)
{
  if (here->light || !--here->depth) atomic_fetch_sub(&here->place->inside, 1);
}

/* Yields at first, then sleeps: a call may be in the driver, or wait for work of the device. */
static void callers_await_slot(const struct caller *caller)
{
  const struct timespec nap = {.tv_nsec = NAP_NS};
  for (int turns = 0; atomic_load(&caller->inside); turns++)
    if (turns < YIELDS)
      sched_yield();
    else
      nanosleep(&nap, NULL);
}

void callers_await(void)
{
  /* After the registration it does not fail. */
  if (atomic_load(&callers_are_light)) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  for (const struct caller *caller = atomic_load(&first); caller; caller = caller->next) callers_await_slot(caller);
  callers_await_slot(&callers_rest);
}
