/* SPDX-License-Identifier: MIT */
/* program_calls.h: the resources of one type for which the calling thread is in a function of the program. A resource whose
 * function calls the same resource could recurse without end, so it asks here first.
 *
 * A function of the program may leave by longjmp() or an exception, against the contract. The list is therefore in
 * thread-local storage, never in the frames of calls, and knows resources by numbers that are never used again. Such a
 * function counts as running until an enclosing one returns. */
#ifndef HIPMM_PLUGINS_COMMON_PROGRAM_CALLS_H
#define HIPMM_PLUGINS_COMMON_PROGRAM_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROGRAM_CALLS_MOST = 64 };

struct program_calls {
  uint64_t owners[PROGRAM_CALLS_MOST]; /* the outermost first */
  unsigned count;
};

/* Of the including file's type. */
static _Thread_local struct program_calls program_calls;

/* A number for a new resource. */
static inline uint64_t program_calls_new_owner(void)
{
  static atomic_uint_fast64_t last;
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* Whether a function for the resource runs, or the list is full. */
static inline bool program_calls_forbid_reentry(uint64_t owner)
{
  const struct program_calls *calls = &program_calls;
  unsigned i = 0;
  while (i < calls->count && calls->owners[i] != owner) i++;
  return i < calls->count || calls->count == PROGRAM_CALLS_MOST;
}

/* Before a function that nothing forbids. Returns what leave needs. */
static inline unsigned program_calls_enter(uint64_t owner)
{
  unsigned before = program_calls.count;
  program_calls.owners[program_calls.count++] = owner;
  return before;
}

static inline void program_calls_leave(unsigned before)
{
  program_calls.count = before;
}

#endif
