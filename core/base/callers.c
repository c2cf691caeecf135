/* SPDX-License-Identifier: MIT */
/* callers.c: the slots of threads, and the wait for all of them. Called by lifecycle.c and stack_list.c. Never allocates for a
 * thread whose slot can come from one that ended. */
#include "callers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const unsigned NOTIFY_PART = 60; /* of the timeout, after which the user is told of the wait */

unsigned callers_timeout_ms = 60000;

static struct caller callers_rest; /* the place of all threads that have none of their own, being at their end */

_Thread_local struct caller_thread caller_this_thread;

static struct caller *_Atomic first; /* slots are never freed, but used again */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static atomic_uint abandoned;

unsigned callers_abandoned(void)
{
  return atomic_load(&abandoned);
}

/* A thread that ends in a function of the program ends in a call. */
static void callers_return_slot(void *caller_)
{
  struct caller *caller = caller_;
  caller_this_thread = (struct caller_thread){.place = &callers_rest};
  bool is_inside = atomic_exchange(&caller->inside, 0), is_walking = atomic_exchange(&caller->walks, 0);
  bool is_in_program = atomic_exchange(&caller->in_program, 0);
  if (is_inside || is_walking || is_in_program) atomic_fetch_add(&abandoned, 1);
  atomic_fetch_add(&caller->walks_over, is_walking);
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
  if (caller) atomic_store(&caller->thread, gettid());
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

/* ---- Walks and functions of the program ---- */

/* Only the outermost walk of a thread is counted. */
void caller_begin_walk(struct caller_thread *this_thread)
{
  if (!this_thread->place) callers_find_place(this_thread);
  if (!this_thread->walks++) atomic_fetch_add(&this_thread->place->walks, 1);
}

void caller_end_walk(struct caller_thread *this_thread)
{
  if (--this_thread->walks) return;
  if (this_thread->place != &callers_rest) atomic_fetch_add(&this_thread->place->walks_over, 1);
  atomic_fetch_sub(&this_thread->place->walks, 1);
}

/* A function that was entered without a place is left without a count: those that were entered since then, with a place, are
 * left before. */
void caller_enter_program(struct caller_thread *this_thread, bool has_place)
{
  if (has_place && !this_thread->place) callers_find_place(this_thread);
  if (!this_thread->place || this_thread->place == &callers_rest) return;
  atomic_store_explicit(&this_thread->place->in_program, ++this_thread->in_program, memory_order_relaxed);
}

void caller_leave_program(struct caller_thread *this_thread)
{
  if (!this_thread->in_program) return;
  atomic_store_explicit(&this_thread->place->in_program, --this_thread->in_program, memory_order_relaxed);
}

/* ---- Waiting ---- */

static bool callers_any_in_program(void)
{
  bool any = false;
  for (const struct caller *caller = atomic_load(&first); caller && !any; caller = caller->next)
    any = atomic_load(&caller->in_program);
  return any;
}

struct callers_wait {
  void (*notify)(int thread);
  unsigned turn;
  uint64_t since_ms; /* a function of the program has run all the time since then */
  bool is_notified;
};

static uint64_t callers_now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for a while, for a call of `thread`. False: the wait is to be given up. */
static bool callers_pause(int thread, struct callers_wait *wait)
{
  uint64_t now_ms = callers_now_ms();
  if (!wait->turn || !(callers_any_in_program() || callers_abandoned())) wait->since_ms = now_ms;
  uint64_t waited_ms = now_ms - wait->since_ms;
  if (waited_ms >= callers_timeout_ms) return false;
  if (!wait->is_notified && waited_ms > callers_timeout_ms / NOTIFY_PART) {
    wait->is_notified = true;
    wait->notify(thread);
  }
  asymmetric_fence_pause(wait->turn++);
  return true;
}

/* Once a call of the thread was refused, which was in no other call, those from before are over. */
static bool callers_await_slot(const struct caller *caller, struct callers_wait *wait)
{
  unsigned refusals = atomic_load(&caller->refusals);
  while (atomic_load(&caller->inside) && atomic_load(&caller->refusals) == refusals)
    if (!callers_pause(atomic_load(&caller->thread), wait)) return false;
  return true;
}

/* Once a walk is over, one that began before is over. Of several threads in one place that shows nothing, and is not counted. */
static bool callers_await_walk(const struct caller *caller, const atomic_uint *awaited, struct callers_wait *wait)
{
  unsigned over = atomic_load(&caller->walks_over);
  while ((!awaited || atomic_load(awaited)) && atomic_load(&caller->walks) && atomic_load(&caller->walks_over) == over)
    if (!callers_pause(atomic_load(&caller->thread), wait)) return false;
  return true;
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

int callers_await(void (*notify)(int thread))
{
  struct callers_wait wait = {.notify = notify};
  asymmetric_fence_heavy();
  for (const struct caller *caller = atomic_load(&first); caller; caller = caller->next)
    if (!callers_await_slot(caller, &wait)) return atomic_load(&caller->thread);
  callers_await_slot(&callers_rest, &wait);
  return 0;
}

void callers_await_walks(const atomic_uint *awaited, void (*notify)(int thread))
{
  struct callers_wait wait = {.notify = notify};
  for (const struct caller *caller = atomic_load(&first); caller; caller = caller->next)
    if (!callers_await_walk(caller, awaited, &wait)) atomic_fetch_add(&abandoned, 1);
  if (!callers_await_walk(&callers_rest, awaited, &wait)) atomic_fetch_add(&abandoned, 1);
}
