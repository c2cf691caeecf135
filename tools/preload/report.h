/* SPDX-License-Identifier: MIT */
/* report.h: the report of `hipmm run --report`: what the program called, and how much memory that took. */
#ifndef HIPMM_TOOLS_PRELOAD_REPORT_H
#define HIPMM_TOOLS_PRELOAD_REPORT_H

#include <stdbool.h>
#include <stddef.h>

/* A text in memory of its own: the program may have spoiled its heap. Starts as {0}. */
struct report_buffer {
  char *start;
  size_t used, room;
};

/* When a report is made: while the program runs, at its exit, or when a signal ends it. */
enum report_moment { REPORT_RUNNING, REPORT_EXIT, REPORT_SIGNAL };

struct report_request {
  enum report_moment moment;
  const char *signal; /* its name */
  bool is_json;       /* one line; else lines for people */
  bool has_resources; /* with what resources report of themselves, for which locks are taken */
};

/* Appends the report to `text`. Without host memory the text ends early. */
void report_make(const struct report_request *request, struct report_buffer *text);
void report_text_free(struct report_buffer *text);

/* Whether the program called a function that the report counts. */
bool report_has_calls(void);

#endif
