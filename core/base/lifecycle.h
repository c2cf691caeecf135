/* SPDX-License-Identifier: MIT */
/* lifecycle.h: whether hipmm is initialised, and whether the calling thread may use it. */
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

/* Of this library alone, so that the path of allocations finds it without the table of addresses. */
extern __attribute__((visibility("hidden"))) atomic_int lifecycle_now;

/* The number of threads inside functions of the program that may run under any lock of hipmm: the log's sink, the
 * function of `hooks`, the host allocator, visitors. Each call of such a thread is refused. The count spares other calls the
 * thread-local variable, whose access is a call where the library was opened with dlopen(). */
extern atomic_uint lifecycle_n_forbidding;
const char *lifecycle_forbidden_by(void); /* the function that the calling thread is inside, for messages; or NULL */

/* Around such a function. The first returns what the second needs; pairs may be nested. */
const char *lifecycle_forbid_reentry(const char *function);
void lifecycle_allow_reentry(const char *outer);

/* Whether this process is the child of a fork that may not use hipmm. For calls on a resource that the caller holds,
 * which may outlive hipmm_finalize(). One load. */
static inline bool lifecycle_is_forked(void)
{
  return atomic_load_explicit(&lifecycle_now, memory_order_relaxed) == LIFECYCLE_FORKED;
}

/* Whether every call is refused: in a fork's child, and inside a function as above. lifecycle_check() then sets the
 * error. */
static inline bool lifecycle_refuses_calls(void)
{
  return lifecycle_is_forked() ||
         (atomic_load_explicit(&lifecycle_n_forbidding, memory_order_relaxed) && lifecycle_forbidden_by());
}

/* HIPMM_E_STATE unless hipmm is initialised and the calling thread may use it. Another thread may finalize at any time
 * after the check. */
enum hipmm_status lifecycle_check(void);

/* For calls that use the graph and the table of devices: as lifecycle_check(), and until lifecycle_leave() the table
 * stays. hipmm_finalize() waits for such calls of other threads (callers.h). Pairs may be nested. */
static inline enum hipmm_status lifecycle_enter(void);
static inline void lifecycle_leave(void);

/* For calls that need only the runtime, which stays in the process: hipmm was initialised at least once. */
enum hipmm_status lifecycle_check_runtime(void);

/* For calls that need no table of devices: hipmm is initialised, or a stack lives beside the table. Then HIPMM_E_ARGUMENT
 * if `argument`, a required pointer, is NULL. */
enum hipmm_status lifecycle_check_use(const void *argument, const char *name);

/* As lifecycle_check(), then HIPMM_E_ARGUMENT if `argument`, a required pointer, is NULL. */
enum hipmm_status lifecycle_check_argument(const void *argument, const char *name);

/* Initialisation and finalisation run between these two, one at a time. begin is HIPMM_E_STATE in a fork's child, in a
 * function of the program that a resource calls, and within an entered call, a pin of a stack or another change. */
enum hipmm_status lifecycle_begin_change(void);
void lifecycle_end_change(enum lifecycle now);

/* Around a lock that is held when a change begins: a child that is forked meanwhile refuses every call, as one that is forked
 * within a change does. */
void lifecycle_begin_opening(void);
void lifecycle_end_opening(void);

/* Within a change: the initialisations that hipmm_finalize() has not undone. */
extern unsigned lifecycle_users;

/* Undoes one initialisation, unless it is the only one. For a part of hipmm that initialised hipmm itself, and then finds
 * that another user has done so meanwhile. */
void lifecycle_drop_surplus(void);

/* The stacks that live beside the table of devices (hipmm_stack_build_from_file()): they use the runtime whether or not
 * hipmm is initialised. While there is one, the runtime is not configured again. */
extern atomic_uint lifecycle_own_stacks;

/* Within a change: the runtime is open, and stays in the process. */
void lifecycle_mark_runtime(void);

/* Within a change: refuses new calls that use the table, and waits for those under way. What was given to
 * lifecycle_watch_end() is called then: it may use the table. There is one, for the frameworks. */
void lifecycle_await_calls(void);
void lifecycle_watch_end(void (*function)(void));

/* ---- Entering ---- */

/* For a call that found hipmm not initialised, or a thread in a function as above: whether it may go on, being within
 * another call or not in the function itself. If not, it is over. */
bool lifecycle_may_go_on(struct caller_thread *this_thread);

/* The same two for calls on the path of allocations, which find the thread's struct once. NULL: refused, with the
 * thread's error. The call is told of before it looks whether hipmm is initialised, and hipmm_finalize() says that it is
 * not before it looks for calls: one of the two sees the other. */
static inline struct caller_thread *lifecycle_enter_thread(void)
{
  struct caller_thread *this_thread = caller_self();
  caller_enter(this_thread);
  bool is_ready = atomic_load(&lifecycle_now) == LIFECYCLE_READY &&
                  !atomic_load_explicit(&lifecycle_n_forbidding, memory_order_relaxed);
  return __builtin_expect(is_ready, 1) || lifecycle_may_go_on(this_thread) ? this_thread : NULL;
}

static inline void lifecycle_leave_thread(struct caller_thread *this_thread)
{
  caller_leave(this_thread);
}

static inline enum hipmm_status lifecycle_enter(void)
{
  return lifecycle_enter_thread() ? HIPMM_OK : HIPMM_E_STATE;
}

static inline void lifecycle_leave(void)
{
  lifecycle_leave_thread(caller_self());
}

#endif
