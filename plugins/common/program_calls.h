/* SPDX-License-Identifier: MIT */
/* program_calls.h: the resources of one type for which the calling thread is in a function of the program. A resource whose
 * function calls the same resource could recurse without end, so it asks here first. */
#ifndef HIPMM_PLUGINS_COMMON_PROGRAM_CALLS_H
#define HIPMM_PLUGINS_COMMON_PROGRAM_CALLS_H

#include <stdbool.h>

struct program_call {
  const void *owner; /* the resource */
  const struct program_call *outer;
};

/* The innermost one, of the including file's type. */
static _Thread_local const struct program_call *program_calls;

/* Whether a function for the resource runs. */
static inline bool program_calls_forbid_reentry(const void *owner)
{
  const struct program_call *call = program_calls;
  while (call && call->owner != owner) call = call->outer;
  return call;
}

/* Before a function that nothing forbids. `call` lasts until leave. */
static inline void program_calls_enter(struct program_call *call, const void *owner)
{
  *call = (struct program_call){owner, program_calls};
  program_calls = call;
}

static inline void program_calls_leave(const struct program_call *call)
{
  program_calls = call->outer;
}

#endif
