/* SPDX-License-Identifier: MIT */
/* next_symbol.h: the functions that the program would have called without us. */
#ifndef HIPMM_PRELOAD_NEXT_SYMBOL_H
#define HIPMM_PRELOAD_NEXT_SYMBOL_H

#include "hooks.h"
#include <hipmm/plugin.h>

/* Any function; to be called as what it is. */
typedef void (*real_function)(void);

/* The real function, NULL where the process has none; real_find looks for it afresh if it was not found before. */
real_function real_find(enum hook hook);

/* The same, or else a function that takes any arguments and returns the family's "not supported"; a line says so. */
real_function real_function_of(enum hook hook);

/* The real functions by what they take. */
int real_memory(enum hook hook, void **ptr, size_t bytes);
int real_memory_flags(enum hook hook, void **ptr, size_t bytes, unsigned flags);
int real_memory_stream(enum hook hook, void **ptr, size_t bytes, hipStream_t stream);
int real_memory_pool(enum hook hook, void **ptr, size_t bytes, hipMemPool_t pool, hipStream_t stream);
int real_pointer(enum hook hook, void *ptr);
int real_pointer_stream(enum hook hook, void *ptr, hipStream_t stream);
int real_two(enum hook hook, void *first, const void *second);
int real_three(enum hook hook, void *first, void *second, const void *third);
int real_number(enum hook hook, int number);
int real_number_flags(enum hook hook, int number, unsigned flags);
int real_nothing(enum hook hook);

/* The current device as the family's own runtime sees it; 0 when it cannot tell. */
int real_current_device(enum family family);

/* Whether work on `stream` is being recorded into a graph. False with *code_out when the runtime refuses to say. */
bool real_is_capturing(enum family family, hipStream_t stream, int *code_out);

#endif
