/* SPDX-License-Identifier: MIT */
/* stack_frames.h: the frames in the text of a call stack, a line each, the innermost first:
 *
 *   "  #0 in NAME+0x12 from FILE (+0x34)"   of a native function; without a symbol its name is "?"
 *   "  #1 in NAME from FILE:LINE"           where the line of the source is known, as in Python
 *   "  #2 in NAME" */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_STACK_FRAMES_H
#define HIPMM_TOOLS_COMMAND_TRACE_STACK_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

struct stack_frame {
  const char *name, *name_end;
  const char *file, *file_end; /* equal: not known */
  unsigned long line;          /* 0: not known */
};

/* The frame that `*at` points to, which moves behind it. False: there is none left. */
bool stack_frames_next(const char **at, struct stack_frame *frame_out);

/* What a stack is called, for people: the frames that tell what the program does, joined by " ← ". In Python these are the
 * innermost frame and the innermost of the program's own, that is, of no installed package. */
void stack_frames_name(const char *text, char *name, size_t name_bytes);

#endif
