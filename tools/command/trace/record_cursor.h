/* SPDX-License-Identifier: MIT */
/* record_cursor.h: decodes the events of one block of a binary record (base/record_format.h). Nothing in the block is
 * trusted. Called by record.c. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_RECORD_CURSOR_H
#define HIPMM_TOOLS_COMMAND_TRACE_RECORD_CURSOR_H

#include "../../../core/base/record_format.h"
#include "stack_texts.h"

#include <stdbool.h>
#include <stddef.h>

/* A place in a block. A copy of it reads on by itself. */
struct record_cursor {
  struct record_event event; /* that was decoded last */
  uint32_t thread, tags;     /* the number of their text; 0: none */
  uint32_t holder;           /* of RECORD_PLACE: the number of a text as of a tag; 0: none */
  struct record_context context;
  const char *at, *end;
};

/* The texts of stack traces by number; NULL: not read. And those of tags, by numbers of the reader. */
struct record_stacks {
  char **items;
  size_t n;
  struct stack_texts tags;
};

enum record_step { RECORD_STEP_END, RECORD_STEP_EVENT, RECORD_STEP_DAMAGED };

/* Decodes the next event; texts on the way go into `stacks`, where the first of a number stays. RECORD_STEP_DAMAGED:
 * the event is not whole, or there is no memory for a text. */
enum record_step record_cursor_next(struct record_cursor *cursor, struct record_stacks *stacks);

void record_stacks_clear(struct record_stacks *stacks);

#endif
