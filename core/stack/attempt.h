/* SPDX-License-Identifier: MIT */
/* attempt.h: what the resources of a stack ask about the attempt that the calling thread makes: how far it may go, whether
 * it may wait, and what to ask the program. The attempt is made again where the call enters hipmm: for memory in
 * reclaim.h, for a question to the program by attempt_repeat(). */
#ifndef HIPMM_CORE_STACK_ATTEMPT_H
#define HIPMM_CORE_STACK_ATTEMPT_H

#include "instance.h"

/* Of which memory there is no more. */
struct oom_source {
  int device;
  const struct hipmm_plugin *source; /* its type; plugins stay loaded */
};

/* Whether the source that ran out gets from the device what `other`, a source of the same device, gives back. */
bool oom_source_is_same_memory(const struct oom_source *oom_source, const struct instance *other);

/* The first source in the closure of the instance that, on the same device, gives back what the source that ran out can get;
 * NULL if there is none. */
const struct instance *oom_source_find(const struct oom_source *oom_source, const struct instance *instance);

enum { MOST_REFUSALS = 128 }; /* of the program, in one call; then it is not asked again */

/* What a resource below asks the program. */
struct question {
  const struct instance *asker; /* NULL: none */
  const struct hipmm_question *functions;
  size_t bytes;
  enum hipmm_status status; /* of its upstream */
};

/* The questions of a call to which the program has answered no, in their order. The call that is made again comes to them
 * again, and then gets further. */
struct refusals {
  const struct instance *askers[MOST_REFUSALS];
  unsigned n;
  unsigned n_passed; /* by the call that is under way */
  unsigned n_inner;  /* of the call, so that calls within it do not take them for their own */
};

struct attempt {
  struct oom_source oom_source;           /* as of the last HIP call of a source that failed so */
  unsigned n_inner;                       /* calls in which the thread may hold locks: no other resource is asked */
  unsigned n_programs;                    /* attempt_enter_program() */
  enum hipmm_reclaim_level reclaim_level; /* of the attempt that is under way; 0: of the first, or there is none */
  bool is_building;                       /* within reclaim_build() */
  size_t most_bytes;                      /* that a HIP call asked for in vain since it began */
  bool holds_back;                        /* a resource was told to fail at once, */
  struct oom_source held_back_for;        /* for this; a later call of the same op may have failed for something else */
  struct question question;               /* the last one */
  struct refusals refusals;
};

extern _Thread_local struct attempt this_attempt;

/* Whether the failure that the thread's record tells is that of a runtime without memory. */
bool attempt_is_out_of_memory(enum hipmm_status status);

/* Whether the instance may hold idle memory of that kind, and can give it. */
bool attempt_is_donor(const struct instance *instance, const struct oom_source *oom_source);

/* Whether another resource than those that have failed can be asked. A resource has used what it holds itself. `failed` is NULL
 * if none of them is left. A resource that holds its lock may call this, so no reference to a stack is taken: the last one
 * destroys the stack. */
bool attempt_can_ask_others(const struct instance *failed, const struct oom_source *oom_source);

/* The memory of a source ran out: the last HIP call of `source` in this thread failed for want of memory, of `bytes`. */
void attempt_note_oom(const struct instance *source, size_t bytes);

/* services->reclaim_level. */
enum hipmm_reclaim_level attempt_reclaim_level(const struct hipmm_services *services, enum hipmm_status status);

/* ---- Functions of the program ---- */

/* services->ask_program. */
enum hipmm_status attempt_ask_program(const struct hipmm_services *services, enum hipmm_status status,
                                      const struct hipmm_question *question, size_t bytes);

/* Calls `call`, which leaves nothing behind where it fails, and calls it again each time that a resource below has asked the
 * program: HIPMM_CALL_AGAIN. The program is asked here. */
enum hipmm_status attempt_repeat(enum hipmm_status (*call)(void *closure), void *closure);

/* The same after a first call, which has returned `status`. It entered hipmm at `top`, which has no other way than what it asks;
 * NULL: not known. Such a call ends with a no: another try of the upstream would be one more than there was before the
 * question. */
enum hipmm_status attempt_repeat_after(enum hipmm_status status, const struct instance *top,
                                       enum hipmm_status (*call)(void *closure), void *closure);

/* services->enter_program and services->leave_program: this thread may hold locks of resources. */
void attempt_enter_program(const struct hipmm_services *services);
void attempt_leave_program(const struct hipmm_services *services);
bool attempt_is_in_program(void);

/* HIPMM_E_STATE, with the thread's error, if this thread must not wait for a lock of the instance, which is held around calls
 * of upstreams. A thread in a function of the program as above must not while such a function of a resource below the
 * instance runs, in any thread: that thread may hold the lock, or one that the lock's holder waits for. Other threads take
 * locks from the top of a stack down, so a circle of threads that wait for each other has threads in such functions, each
 * of which waits for the next one below; the last of these to ask sees the others, and is refused. */
enum hipmm_status attempt_check_wait(const struct instance *instance);

#endif
