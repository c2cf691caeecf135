/* SPDX-License-Identifier: MIT */
/* lifecycle.c: hipmm's state in this process. A GPU runtime does not survive fork, and threads that the child does not
 * have may hold locks: a child refuses every call. Called at the start of every public function. */
#include "lifecycle.h"
#include "error.h"

#include <pthread.h>

atomic_int lifecycle_now = LIFECYCLE_BEFORE;
atomic_uint lifecycle_n_forbidding;
unsigned lifecycle_users;
atomic_uint lifecycle_own_stacks;

static _Thread_local const char *forbidden_by; /* the function of the program that the thread is in */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local bool is_in_change; /* the thread initialises or finalizes */

static atomic_int changing;         /* threads that hold the lock, wait for it, or are about to */
static atomic_bool is_runtime_open; /* it stays, and resources may still be held after hipmm_finalize() */

/* Before the first initialisation nothing is held, and the child may initialise hipmm itself. */
static void lifecycle_mark_child(void)
{
  if (atomic_load(&is_runtime_open) || atomic_load(&changing)) atomic_store(&lifecycle_now, LIFECYCLE_FORKED);
}

static void lifecycle_watch_forks(void)
{
  pthread_atfork(NULL, NULL, lifecycle_mark_child);
}

static enum hipmm_status lifecycle_refuse_child(void)
{
  return error_set(HIPMM_E_STATE, "this process is the child of a fork, where the GPU runtime cannot be used; start it "
                                  "anew (exec, or Python's \"spawn\") or fork before hipmm_init()");
}

static enum hipmm_status lifecycle_refuse_reentry(void)
{
  return error_set(HIPMM_E_STATE, "this is called from within %s, which must call nothing of hipmm", forbidden_by);
}

const char *lifecycle_forbidden_by(void)
{
  return forbidden_by;
}

const char *lifecycle_forbid_reentry(const char *function)
{
  const char *outer = forbidden_by;
  forbidden_by = function;
  atomic_fetch_add_explicit(&lifecycle_n_forbidding, 1, memory_order_relaxed);
  return outer;
}

void lifecycle_allow_reentry(const char *outer)
{
  atomic_fetch_sub_explicit(&lifecycle_n_forbidding, 1, memory_order_relaxed);
  forbidden_by = outer;
}

enum hipmm_status lifecycle_check(void)
{
  if (forbidden_by && !lifecycle_is_forked()) return lifecycle_refuse_reentry();
  switch (atomic_load_explicit(&lifecycle_now, memory_order_acquire)) {
  case LIFECYCLE_READY: return HIPMM_OK;
  case LIFECYCLE_FORKED: return lifecycle_refuse_child();
  case LIFECYCLE_CLOSING:
    return error_set(HIPMM_E_STATE, "hipmm_finalize() is under way: hipmm is not initialised any more");
  default: return error_set(HIPMM_E_STATE, "hipmm is not initialised; call hipmm_init() or hipmm_init_from_file()");
  }
}

enum hipmm_status lifecycle_check_runtime(void)
{
  return !lifecycle_refuses_calls() && atomic_load(&is_runtime_open) ? HIPMM_OK : lifecycle_check();
}

enum hipmm_status lifecycle_check_argument(const void *argument, const char *name)
{
  enum hipmm_status status = lifecycle_check();
  if (!status && !argument) status = error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  return status;
}

enum hipmm_status lifecycle_check_use(const void *argument, const char *name)
{
  enum hipmm_status status =
      !lifecycle_refuses_calls() && atomic_load(&lifecycle_own_stacks) ? HIPMM_OK : lifecycle_check();
  if (!status && !argument) status = error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  return status;
}

/* ---- Calls ---- */

bool lifecycle_may_go_on(struct caller_thread *this_thread)
{
  bool is_nested = caller_depth(this_thread) > 1;
  if ((is_nested && !lifecycle_refuses_calls()) || !lifecycle_check()) return true;
  caller_leave_refused(this_thread);
  return false;
}

/* ---- Changes ---- */

static enum hipmm_status lifecycle_refuse_inner_change(void)
{
  return error_set(HIPMM_E_STATE, "this is called from within a call of hipmm, which must end before hipmm can be "
                                  "initialised or finalized");
}

int hipmm_is_initialized(void)
{
  return atomic_load(&lifecycle_now) == LIFECYCLE_READY;
}

enum hipmm_status lifecycle_begin_change(void)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  const struct caller_thread *this_thread = caller_self();
  if (caller_depth(this_thread) || this_thread->pins || this_thread->programs || is_in_change)
    return lifecycle_refuse_inner_change();
  pthread_once(&once, lifecycle_watch_forks);
  asymmetric_fence_prepare();
  atomic_fetch_add(&changing, 1);
  pthread_mutex_lock(&lock);
  is_in_change = true;
  return HIPMM_OK;
}

void lifecycle_begin_opening(void)
{
  pthread_once(&once, lifecycle_watch_forks);
  atomic_fetch_add(&changing, 1);
}

void lifecycle_end_opening(void)
{
  atomic_fetch_sub(&changing, 1);
}

void lifecycle_mark_runtime(void)
{
  atomic_store(&is_runtime_open, true);
}

void lifecycle_drop_surplus(void)
{
  if (lifecycle_begin_change()) return;
  if (lifecycle_users > 1) lifecycle_users--;
  lifecycle_end_change((enum lifecycle)atomic_load(&lifecycle_now));
}

static void (*_Atomic at_end)(void);

void lifecycle_watch_end(void (*function)(void))
{
  atomic_store(&at_end, function);
}

void lifecycle_await_calls(void)
{
  atomic_store(&lifecycle_now, LIFECYCLE_CLOSING);
  callers_await();
  void (*function)(void) = atomic_load(&at_end);
  if (function) function();
}

void lifecycle_end_change(enum lifecycle now)
{
  if (now == LIFECYCLE_READY) lifecycle_mark_runtime();
  is_in_change = false;
  atomic_store_explicit(&lifecycle_now, now, memory_order_release);
  pthread_mutex_unlock(&lock);
  atomic_fetch_sub(&changing, 1);
}
