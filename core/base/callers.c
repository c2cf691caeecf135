/* SPDX-License-Identifier: MIT */
/* callers.c: the slots of threads, and the wait for all of them. Called by lifecycle.c and device_table.c. Never allocates for a
 * thread whose slot can come from one that ended. */
#include "callers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* The place of all threads without one of their own: at their end, or without memory for one. */
static struct caller callers_rest;

_Thread_local struct caller_thread caller_this_thread;

static struct caller *_Atomic first; /* slots are never freed, but used again */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void callers_return_slot(void *caller_)
{
  struct caller *caller = caller_;
  caller_this_thread = (struct caller_thread){.place = &callers_rest};
  atomic_store(&caller->is_taken, false);
}

/* From the first call on the object that this code is in stays loaded, whoever closes it: threads call it at their end, and
 * may be in it. Nothing to do in a program, which cannot be opened. */
static void callers_stay_loaded(void)
{
  Dl_info info;
  if (dladdr(&key, &info) && !dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)) dlerror();
}

static void callers_create_key(void)
{
  callers_stay_loaded();
  has_key = !pthread_key_create(&key, callers_return_slot);
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

static void callers_find_place(struct caller_thread *this_thread)
{
  asymmetric_fence_prepare();
  pthread_once(&once, callers_create_key);
  struct caller *caller = has_key ? callers_find_unused() : NULL;
  if (has_key && !caller) caller = callers_new();
  if (caller && pthread_setspecific(key, caller)) {
    atomic_store(&caller->is_taken, false);
    caller = NULL;
  }
  this_thread->place = caller ? caller : &callers_rest;
  this_thread->light = atomic_load(&asymmetric_fence_is_light) ? caller : NULL;
}

/* Only the outermost call of a thread is counted in a place that threads share. */
void caller_enter_slow_path(struct caller_thread *this_thread)
{
  if (!this_thread->place) callers_find_place(this_thread);
  if (this_thread->light || !this_thread->depth++) atomic_fetch_add(&this_thread->place->inside, 1);
}

void caller_leave_slow_path(struct caller_thread *this_thread)
{
  if (this_thread->light || !--this_thread->depth) atomic_fetch_sub(&this_thread->place->inside, 1);
}

/* Inside the place for all others are several threads, so a refusal of one tells nothing there. */
void caller_leave_refused(struct caller_thread *this_thread)
{
  struct caller *place = this_thread->place;
  bool is_outermost = caller_depth(this_thread) == 1;
  caller_leave(this_thread);
  if (is_outermost && place != &callers_rest) atomic_fetch_add(&place->refusals, 1);
}

/* ---- Waiting ---- */

/* Once a call of the thread was refused, which was in no other call, those from before are over. */
static void callers_await_slot(const struct caller *caller)
{
  unsigned refusals = atomic_load(&caller->refusals);
  for (unsigned turn = 0; atomic_load(&caller->inside) && atomic_load(&caller->refusals) == refusals; turn++)
    asymmetric_fence_pause(turn);
}

/* Whether the place was seen without a call, or with `own` alone, at least once. */
static bool callers_was_left(const struct caller *caller, unsigned own)
{
  enum { TURNS = 50 };
  unsigned turn = 0;
  for (; atomic_load(&caller->inside) > own && turn < TURNS; turn++) asymmetric_fence_pause(turn);
  return turn < TURNS;
}

bool callers_have_left(void)
{
  const struct caller_thread *this_thread = caller_self();
  if (caller_depth(this_thread) > 1) return false;
  asymmetric_fence_heavy();
  bool have_left = true;
  for (const struct caller *caller = atomic_load(&first); caller && have_left; caller = caller->next)
    have_left = callers_was_left(caller, caller == this_thread->place);
  return have_left && callers_was_left(&callers_rest, this_thread->place == &callers_rest);
}

void callers_await(void)
{
  asymmetric_fence_heavy();
  for (const struct caller *caller = atomic_load(&first); caller; caller = caller->next) callers_await_slot(caller);
  callers_await_slot(&callers_rest);
}
