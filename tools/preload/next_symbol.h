/* SPDX-License-Identifier: MIT */
/* next_symbol.h: the runtime's own functions, which the program would call without hipmm. */
#ifndef HIPMM_TOOLS_PRELOAD_NEXT_SYMBOL_H
#define HIPMM_TOOLS_PRELOAD_NEXT_SYMBOL_H

#include "hooks.h"
#include <hipmm/plugin.h>

#include <stdatomic.h>

/* Any function; to be cast to its own type before a call. */
typedef void (*next_function)(void);

/* The runtime's function; NULL if the process has none. Looked up again at each call until it is found. */
next_function next_find(enum hook hook);

/* The same; instead of NULL, after a message, a function that takes any arguments and returns "not supported". */
next_function next_function_of(enum hook hook);

/* The function of the hook's name that the code at the address `caller` has of its own: of its object, or of another that is no
 * runtime, but may be made of HIP's functions, which hipmm serves in turn. NULL: it has none, or the runtime's. */
next_function next_own(enum hook hook, const void *caller);

/* What a call of the hook from `caller` must go to, without any part of hipmm's: next_own(); or, where the process has no such
 * function at all, one that refuses the call, which is counted as failed, after a message. NULL: the hook serves the call, or
 * passes it on. */
next_function next_apart(enum hook hook, const void *caller);

/* What the thread found for a place in the code that calls a hook. It holds until the program closes an object, whose addresses
 * another one may get. */
struct next_memo {
  const void *caller;
  next_function function; /* the runtime's, or one that is_apart */
  next_function straight; /* where a call goes without any check; NULL: checks are needed */
  unsigned closings;
  enum hook hook;
  bool is_apart;
};

enum { NEXT_MEMOS = 64 };

extern _Thread_local struct next_memo next_memos[NEXT_MEMOS] HOOK_STATIC_TLS;

/* How often the program has closed an object. */
extern atomic_uint next_closings;

static inline struct next_memo *next_memo_of(const void *caller)
{
  return &next_memos[((uintptr_t)caller >> 2) % NEXT_MEMOS];
}

static inline bool next_memo_is(const struct next_memo *memo, enum hook hook, const void *caller)
{
  return memo->caller == caller && memo->hook == hook &&
         memo->closings == atomic_load_explicit(&next_closings, memory_order_acquire);
}

/* The runtime's function, where an earlier call from the same place showed that hipmm has nothing to do in such a call; else
 * NULL. */
static inline next_function next_straight(enum hook hook, const void *caller)
{
  const struct next_memo *memo = next_memo_of(caller);
  return next_memo_is(memo, hook, caller) ? memo->straight : NULL;
}

/* From now on next_straight() gives the function, which is the runtime's. */
void next_go_straight(enum hook hook, const void *caller, next_function function);

/* What dlsym() gives for HIP's function `name` where the library has `given` (NULL for none). A program that opens AMD's library gets
 * the runtime that is in front of that library for programs which are linked to it: the software device. */
void *next_in_order(const char *name, void *given);

/* The loader's own dlsym(): the preload object hooks that function too. */
typedef void *next_lookup(void *library, const char *name);
next_lookup *next_dlsym(void);

/* Call the runtime's function, by the types of its arguments. */
int next_memory(enum hook hook, void **ptr, size_t bytes);
int next_pointer(enum hook hook, void *ptr);
int next_two_pointers(enum hook hook, void *first, const void *second);
int next_int(enum hook hook, int number);
int next_int_flags(enum hook hook, int number, unsigned flags);
int next_void(enum hook hook);

/* Whether the function of the runtime, when a call is passed on to it, calls itself through the hook without end. */
bool next_recurses(enum hook hook);

/* Whether `stream` is being captured. False, with an error code in *code_out, if the runtime returns an error. */
bool next_is_capturing(enum family family, hipmm_stream_t stream, int *code_out);

#endif
