/* SPDX-License-Identifier: MIT */
/* stack_texts.h: the texts of call stacks, each once, by numbers from 1. Used by readers of logs that lack numbers,
 * and by what reads several logs, in which equal stacks have numbers of their own.
 *
 * Stacks share most of their frames, and a damaged log can make long texts of few bytes. So a frame's line is kept once, in
 * parts (before its name, the name, the file, the line's number) that are kept once too. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_STACK_TEXTS_H
#define HIPMM_TOOLS_COMMAND_TRACE_STACK_TEXTS_H

#include "../../../core/base/key_map.h"

enum { STACK_LINE_PARTS = 4 };

/* All zero is empty. */
struct stack_texts {
  size_t *ends; /* by number: where its lines end in `frames`; those of a number begin where the number before ends */
  size_t n, capacity;
  struct key_map by_hash;

  uint32_t *frames; /* numbers of lines */
  size_t n_frames, frames_capacity;

  struct stack_line {
    uint32_t parts[STACK_LINE_PARTS], length;
  } * lines;
  size_t n_lines, lines_capacity;
  struct key_map lines_by_hash;

  struct stack_part {
    size_t start;
    uint32_t length;
  } * parts;
  size_t n_parts, parts_capacity;
  struct key_map parts_by_hash;
  char *bytes; /* of the parts */
  size_t n_bytes, bytes_capacity;

  char *text; /* that was asked for last */
  size_t text_bytes;
};

/* The number of a text, which is copied if it is new. False: out of memory, or more texts than can be counted. */
bool stack_texts_add(struct stack_texts *texts, const char *text, uint32_t *number_out);

/* The same in steps: the number of a line, which ends with its newline; and that of the stack with those lines. */
bool stack_texts_add_line(struct stack_texts *texts, const char *line, size_t bytes, uint32_t *line_out);
bool stack_texts_add_lines(struct stack_texts *texts, const uint32_t *lines, size_t n, uint32_t *number_out);

/* Adds a stack of other texts. `lines` has the numbers, plus 1, of lines that were added before by those there. */
bool stack_texts_copy(struct stack_texts *texts, const struct stack_texts *from, uint32_t number, struct key_map *lines,
                      uint32_t *number_out);

/* NULL: there is none with that number. Valid until the next call. */
const char *stack_texts_get(const struct stack_texts *texts, uint32_t number);

void stack_texts_clear(struct stack_texts *texts);

#endif
