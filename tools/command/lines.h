/* SPDX-License-Identifier: MIT */
/* lines.h: a command makes its result as JSON first, and prints what is in it as lines for people: a label, a figure and a
 * remark. */
#ifndef HIPMM_TOOLS_COMMAND_LINES_H
#define HIPMM_TOOLS_COMMAND_LINES_H

#include "cmd.h"
#include <stdint.h>

enum line_kind {
  LINE_COUNT,    /* 31,145 */
  LINE_ODDITY,   /* a count; 0 has no line */
  LINE_FAILURES, /* a count that is to be 0 */
  LINE_BYTES,    /* 3.79 GiB  4,069,464,592 bytes */
  LINE_RATIO,    /* 1.010 */
  LINE_NS        /* 100.8 ns */
};

/* What is null or not in the result has no line. */
struct line {
  const char *key, *label;
  enum line_kind kind;
  const char *remark; /* or NULL */
};

void lines_print(const json_t *result, const struct line *lines, size_t n);

/* A label as those of lines. */
void lines_print_label(const char *label);

/* What is at a path in a result, such as "memory.live.bytes" or "blocks.0.address". NULL: nothing. */
json_t *lines_at(const json_t *object, const char *path);

/* A count there, 0 where it is none or below 0; a text, "" where it is none. */
uint64_t lines_count(const json_t *object, const char *path);
const char *lines_text(const json_t *object, const char *path);

/* A line with this name alone. */
void lines_heading(const char *heading);

/* A paragraph, broken into lines. */
void lines_say(enum style kind, const char *format, ...) HIPMM_PRINTF(2, 3);

/* An item of a list, "- …"; and each sentence of an array as one. */
void lines_item(const char *format, ...) HIPMM_PRINTF(1, 2);
void lines_items(const json_t *sentences);

/* How many times the bytes requested are held; 0 if none are requested. */
double lines_overhead(uint64_t held_bytes, uint64_t requested_bytes);

enum { LINES_NUMBER_BYTES = 32 };

/* 1234567 as 1,234,567. Returns `text`. */
const char *lines_number(uint64_t number, char text[LINES_NUMBER_BYTES]);

#endif
