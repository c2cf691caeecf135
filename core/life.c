/* SPDX-License-Identifier: MIT */
/* life.c: hipmm's state in this process. A GPU runtime does not survive fork, and its locks may be held by threads that
 * the child does not have: in the child every call is refused from the start. */
#include "life.h"
#include "cancel.h"
#include "error.h"

#include <sched.h>
#include <time.h>

atomic_int life_now = LIFE_BEFORE;
atomic_uint life_sinks;

static _Thread_local bool in_sink;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Calls that use the table of devices, counted apart so that threads do not meet. */
enum { SHARDS = 32, YIELDS = 1000, NAP_NS = 50000 };
static struct {
  _Alignas(64) atomic_uint calls;
} shards[SHARDS];

/* Of the calling thread. In the static block of thread-local storage: a call to find it would cost as much as all the
 * rest of life_enter(). */
static _Thread_local struct {
  unsigned depth;    /* of calls */
  unsigned shard;    /* plus one; 0: none yet */
  bool is_in_change; /* it initialises or finalizes */
  int cancel;        /* for cancel_allow() */
} here __attribute__((tls_model("initial-exec")));

static int change_cancel; /* the same, of the thread that holds the lock */

static atomic_int changing;   /* threads that hold the lock or wait for it */
static atomic_bool was_ready; /* once: resources may be held, and the runtime stays in the process */

/* Before the first initialisation nothing is held, and the child may use hipmm as any process may. */
static void mark_child(void)
{
  if (atomic_load(&was_ready) || atomic_load(&changing)) atomic_store(&life_now, LIFE_FORKED);
}

static void watch_forks(void)
{
  pthread_atfork(NULL, NULL, mark_child);
}

static enum hipmm_status refuse_child(void)
{
  return error_set(HIPMM_E_STATE, "this process is the child of a fork, where the GPU runtime cannot be used; start it "
                                  "anew (exec, or Python's \"spawn\") or fork before hipmm_init()");
}

static enum hipmm_status refuse_sink(void)
{
  return error_set(HIPMM_E_STATE, "this is called from within a log sink, which must call nothing of hipmm");
}

bool life_in_sink(void)
{
  return in_sink;
}

void life_enter_sink(void)
{
  in_sink = true;
  atomic_fetch_add_explicit(&life_sinks, 1, memory_order_relaxed);
}

void life_leave_sink(void)
{
  atomic_fetch_sub_explicit(&life_sinks, 1, memory_order_relaxed);
  in_sink = false;
}

enum hipmm_status life_check(void)
{
  if (in_sink && !life_is_forked()) return refuse_sink();
  switch (atomic_load_explicit(&life_now, memory_order_acquire)) {
  case LIFE_READY: return HIPMM_OK;
  case LIFE_FORKED: return refuse_child();
  case LIFE_CLOSING:
    return error_set(HIPMM_E_STATE, "hipmm_finalize() is under way: hipmm is not initialised any more");
  default: return error_set(HIPMM_E_STATE, "hipmm is not initialised; call hipmm_init() or hipmm_init_from_file()");
  }
}

enum hipmm_status life_check_runtime(void)
{
  return !life_is_barred() && atomic_load(&was_ready) ? HIPMM_OK : life_check();
}

enum hipmm_status life_check_argument(const void *argument, const char *name)
{
  enum hipmm_status status = life_check();
  if (!status && !argument) status = error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  return status;
}

enum hipmm_status life_check_held(const struct hipmm_resource *resource, const void *argument, const char *name)
{
  if (life_is_barred()) return life_check();
  if (!resource) return error_set(HIPMM_E_ARGUMENT, "resource is NULL");
  if (!argument) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  return HIPMM_OK;
}

/* ---- Calls ---- */

static atomic_uint *calls_here(void)
{
  static atomic_uint threads;
  if (!here.shard) here.shard = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHARDS + 1;
  return &shards[here.shard - 1].calls;
}

/* The call is counted before it looks whether hipmm is initialised, and hipmm_finalize() says that it is not before it
 * looks at the counts: one of the two sees the other. */
enum hipmm_status life_enter(void)
{
  if (here.depth && !life_is_barred()) {
    here.depth++;
    return HIPMM_OK;
  }
  int cancel = cancel_forbid();
  atomic_fetch_add(calls_here(), 1);
  enum hipmm_status status = atomic_load(&life_now) == LIFE_READY && !life_is_barred() ? HIPMM_OK : life_check();
  if (status) {
    atomic_fetch_sub(calls_here(), 1);
    cancel_allow(cancel);
    return status;
  }
  here.depth = 1;
  here.cancel = cancel;
  return HIPMM_OK;
}

void life_leave(void)
{
  if (--here.depth) return;
  atomic_fetch_sub(calls_here(), 1);
  cancel_allow(here.cancel);
}

/* ---- Changes ---- */

static enum hipmm_status refuse_inner_change(void)
{
  return error_set(HIPMM_E_STATE, "this is called from within a call of hipmm, which must end before hipmm can be "
                                  "initialised or finalized");
}

enum hipmm_status life_begin_change(void)
{
  if (life_is_barred()) return life_check();
  if (here.depth || here.is_in_change) return refuse_inner_change();
  pthread_once(&once, watch_forks);
  int cancel = cancel_forbid();
  atomic_fetch_add(&changing, 1);
  pthread_mutex_lock(&lock);
  change_cancel = cancel;
  here.is_in_change = true;
  return HIPMM_OK;
}

/* A call may be in the driver, or wait for work. */
void life_await_calls(void)
{
  const struct timespec nap = {.tv_nsec = NAP_NS};
  atomic_store(&life_now, LIFE_CLOSING);
  for (size_t i = 0; i < SHARDS; i++)
    for (int turns = 0; atomic_load(&shards[i].calls); turns++)
      if (turns < YIELDS)
        sched_yield();
      else
        nanosleep(&nap, NULL);
}

void life_end_change(enum life now)
{
  if (now == LIFE_READY) atomic_store(&was_ready, true);
  int cancel = change_cancel;
  here.is_in_change = false;
  atomic_store_explicit(&life_now, now, memory_order_release);
  pthread_mutex_unlock(&lock);
  atomic_fetch_sub(&changing, 1);
  cancel_allow(cancel);
}
