/* SPDX-License-Identifier: MIT */
/* next_symbol.h: the functions that the program would have called without us. */
#ifndef HIPMM_PRELOAD_NEXT_SYMBOL_H
#define HIPMM_PRELOAD_NEXT_SYMBOL_H

#include "hooks.h"
#include <hipmm/plugin.h>

/* Any function; to be called as what it is. */
typedef void (*next_function)(void);

/* The real function, NULL where the process has none; real_find looks for it afresh if it was not found before. */
next_function next_find(enum hook hook);

/* The same, or else a function that takes any arguments and returns the family's "not supported"; a line says so. */
next_function next_function_of(enum hook hook);

/* The real functions by what they take. */
int next_memory(enum hook hook, void **ptr, size_t bytes);
int next_memory_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags);
int next_memory_stream(enum hook hook, void **ptr, size_t bytes, hipStream_t stream);
int next_memory_pool(enum hook hook, void **ptr, size_t bytes, hipMemPool_t pool, hipStream_t stream);
int next_pointer(enum hook hook, void *ptr);
int next_pointer_stream(enum hook hook, void *ptr, hipStream_t stream);
int next_two_pointers(enum hook hook, void *first, const void *second);
int next_three_pointers(enum hook hook, void *first, void *second, const void *third);
int next_int(enum hook hook, int number);
int next_int_flags(enum hook hook, int number, unsigned flags);
int next_void(enum hook hook);

/* Whether the runtime calls the function from within itself without end: the call that we passed on reaches us again
 * and again. */
bool next_recurses(enum hook hook);

/* The current device as the family's own runtime sees it; 0 when it cannot tell. */
int next_current_device(enum family family);

/* Whether work on `stream` is being recorded into a graph. False with *code_out when the runtime refuses to say. */
bool next_is_capturing(enum family family, hipStream_t stream, int *code_out);

#endif
