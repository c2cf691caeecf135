/* SPDX-License-Identifier: MIT */
/* lines.h: a command makes its result as JSON first, and prints what is in it as lines for people: a label, a figure and a
 * remark. */
#ifndef HIPMM_TOOLS_COMMAND_LINES_H
#define HIPMM_TOOLS_COMMAND_LINES_H

#include <jansson.h>
#include <stddef.h>
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

enum { LINES_NUMBER_BYTES = 32 };

/* 1234567 as 1,234,567. Returns `text`. */
const char *lines_number(uint64_t number, char text[LINES_NUMBER_BYTES]);

#endif
