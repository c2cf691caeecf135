/* SPDX-License-Identifier: MIT */
/* log_sink.c: passes lines of the log to a function of the program. The function may run under locks of plugins, so its
 * calls of hipmm are refused, and lines that these calls write are dropped. Replacing the sink waits until no thread is
 * inside it. */
#include "error.h"
#include "lifecycle.h"
#include "lock_order.h"
#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { NO_LEVEL = -1 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* held for reading while in the sink */
static void (*sink)(void *arg, enum hipmm_log_level level, const char *about, const char *message);
static void *sink_arg;
static atomic_int
    process; /* that set the sink: in a child of it the lock may be held by a thread that does not exist */
static atomic_int highest_level = NO_LEVEL;

bool log_sink_exists(void)
{
  return atomic_load_explicit(&highest_level, memory_order_acquire) != NO_LEVEL;
}

bool log_sink_wants(enum hipmm_log_level level)
{
  return (int)level <= atomic_load_explicit(&highest_level, memory_order_acquire);
}

static void log_sink_call(enum hipmm_log_level level, const char *about, const char *message)
{
  const char *outer = lifecycle_forbid_reentry("a log sink");
  lock_order_enter_program();
  sink(sink_arg, level, about ? about : "", message);
  lock_order_leave_program();
  lifecycle_allow_reentry(outer);
}

void log_sink_write(enum hipmm_log_level level, const char *about, const char *message)
{
  if (lifecycle_forbidden_by() || atomic_load_explicit(&process, memory_order_relaxed) != getpid()) return;
  const struct error_record before = error_mark(); /* of the call that writes the line */
  pthread_rwlock_rdlock(&lock);
  if (sink && log_sink_wants(level)) log_sink_call(level, about, message);
  pthread_rwlock_unlock(&lock);
  error_return_to_mark(&before);
}

static void (*_Atomic watcher)(void);

void log_watch(void (*changed)(void))
{
  atomic_store(&watcher, changed);
}

void log_notify_change(void)
{
  void (*changed)(void) = atomic_load(&watcher);
  if (changed) changed();
}

enum hipmm_status hipmm_log_set_sink(void (*function)(void *arg, enum hipmm_log_level level, const char *about,
                                                      const char *message),
                                     void *arg, enum hipmm_log_level level)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (function && (level < HIPMM_LOG_ERROR || level > HIPMM_LOG_TRACE))
    return error_set(HIPMM_E_ARGUMENT, "level: %d is not a level of the log; it is HIPMM_LOG_ERROR to HIPMM_LOG_TRACE",
                     (int)level);
  pthread_rwlock_wrlock(&lock);
  sink = function;
  sink_arg = arg;
  atomic_store_explicit(&process, getpid(), memory_order_relaxed);
  atomic_store_explicit(&highest_level, function ? (int)level : NO_LEVEL, memory_order_release);
  pthread_rwlock_unlock(&lock);
  log_notify_change();
  return HIPMM_OK;
}
