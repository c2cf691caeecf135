/* SPDX-License-Identifier: MIT */
/* report.h: the report of `hipmm run --report`: the calls of the program, and the memory that they took. */
#ifndef HIPMM_TOOLS_PRELOAD_REPORT_H
#define HIPMM_TOOLS_PRELOAD_REPORT_H

#include "../../core/inspect/report.h"

#include <stdbool.h>

/* When a report is made: while the program runs, at its exit, or when a signal ends it. */
enum report_moment { REPORT_RUNNING, REPORT_EXIT, REPORT_SIGNAL };

struct report_request {
  enum report_moment moment;
  const char *signal; /* its name; NULL at the other moments */
  bool is_json;       /* one line; else lines for people */
  bool has_resources; /* with what resources report of themselves, for which locks are taken */
};

void report_make(const struct report_request *request, struct report_draft *draft);

/* Whether the program called a function that the report counts. */
bool report_has_calls(void);

#endif
