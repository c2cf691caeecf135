/* SPDX-License-Identifier: MIT */
/* lifecycle.h: whether hipmm is initialised, and whether this process may use it at all. */
#ifndef HIPMM_CORE_BASE_LIFECYCLE_H
#define HIPMM_CORE_BASE_LIFECYCLE_H

#include "callers.h"

#include <hipmm/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

enum lifecycle {
  LIFECYCLE_BEFORE,
  LIFECYCLE_READY,
  LIFECYCLE_CLOSING /* hipmm_finalize() is under way */,
  LIFECYCLE_FORKED
};

extern atomic_int lifecycle_now;

/* Threads in the log's sink: they may hold locks of ours, so no call of theirs may go on. Counted, so that only while
 * there are any a call looks for the thread's own mark, which a library that was opened late finds by a call. */
extern atomic_uint lifecycle_sinks;
bool lifecycle_in_sink(void); /* whether the calling thread is */
void lifecycle_enter_sink(void);
void lifecycle_leave_sink(void);

/* For calls on a resource that the caller holds, which may outlive hipmm_finalize(). One load. */
static inline bool lifecycle_is_forked(void)
{
  return atomic_load_explicit(&lifecycle_now, memory_order_relaxed) == LIFECYCLE_FORKED;
}

/* Whether no call may go on: in a fork's child, and in a log sink. lifecycle_check() then says which. */
static inline bool lifecycle_is_barred(void)
{
  return lifecycle_is_forked() || (atomic_load_explicit(&lifecycle_sinks, memory_order_relaxed) && lifecycle_in_sink());
}

/* HIPMM_E_STATE unless initialised and not a fork's child. What the graph and the per-device table have may go at any
 * time after it. */
enum hipmm_status lifecycle_check(void);

/* For calls that use the graph and the per-device table: as lifecycle_check, and until lifecycle_leave() the table stays open.
 * hipmm_finalize() waits for such calls of other threads (callers.h). Pairs may be nested. */
static inline enum hipmm_status lifecycle_enter(void);
static inline void lifecycle_leave(void);

/* For calls that need only the runtime, which stays in the process: initialised at least once. */
enum hipmm_status lifecycle_check_runtime(void);

/* As lifecycle_check, then HIPMM_E_ARGUMENT if `argument`, a pointer that the caller must give, is NULL. */
enum hipmm_status lifecycle_check_argument(const void *argument, const char *name);

/* For calls on a resource that the caller holds: what bars every call, then HIPMM_E_ARGUMENT if it or `argument` is
 * NULL. */
enum hipmm_status lifecycle_check_held(const struct hipmm_resource *resource, const void *argument, const char *name);

/* Serialise init and finalize between these; begin refuses in a fork's child, and in a thread that is in a call between
 * lifecycle_enter() and lifecycle_leave(), or in a change already: a function of the program that such a call runs. */
enum hipmm_status lifecycle_begin_change(void);
void lifecycle_end_change(enum lifecycle now);

/* Within a change: no call may begin to use the table from now on, and none uses it when this returns. */
void lifecycle_await_calls(void);

/* ---- Entering ---- */

/* For a call that found hipmm not initialised, or a thread in a log sink: whether it may go on, being within another
 * call or not in the sink itself. If not, it is over. */
bool lifecycle_may_go_on(struct caller_here *here);

/* The same two for calls on the path of allocations, which find the thread's struct once. NULL: refused, with the
 * thread's error. The call is told of before it looks whether hipmm is initialised, and hipmm_finalize() says that it is
 * not before it looks for calls: one of the two sees the other. */
static inline struct caller_here *lifecycle_enter_here(void)
{
  struct caller_here *here = caller_self();
  caller_enter(here);
  bool is_ready =
      atomic_load(&lifecycle_now) == LIFECYCLE_READY && !atomic_load_explicit(&lifecycle_sinks, memory_order_relaxed);
  return __builtin_expect(is_ready, 1) || lifecycle_may_go_on(here) ? here : NULL;
}

static inline void lifecycle_leave_here(struct caller_here *here)
{
  caller_leave(here);
}

static inline enum hipmm_status lifecycle_enter(void)
{
  return lifecycle_enter_here() ? HIPMM_OK : HIPMM_E_STATE;
}

static inline void lifecycle_leave(void)
{
  lifecycle_leave_here(caller_self());
}

#endif
