/* SPDX-License-Identifier: MIT */
/* stack_texts.h: the texts of call stacks, each once, by numbers from 1. Used by readers of logs that lack numbers,
 * and by what reads several logs, in which equal stacks have numbers of their own. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_STACK_TEXTS_H
#define HIPMM_TOOLS_COMMAND_TRACE_STACK_TEXTS_H

#include "../../../core/base/key_map.h"

/* All zero is empty. */
struct stack_texts {
  char **items; /* by number; [0] is NULL, which stands for no stack */
  size_t n, capacity;
  struct key_map by_hash;
};

/* The number of a text, which is copied if it is new. False: out of memory, or more texts than can be counted. */
bool stack_texts_add(struct stack_texts *texts, const char *text, uint32_t *number_out);

/* NULL: there is none with that number. */
const char *stack_texts_get(const struct stack_texts *texts, uint32_t number);

void stack_texts_clear(struct stack_texts *texts);

#endif
