/* SPDX-License-Identifier: MIT */
/* state.h: a report of what hipmm itself wrote of a process's memory: snapshots, and the reports of `hipmm run
 * --json`. They are sums of one moment or of a whole run, so that the report is sentences and tables. Called by
 * report.c. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_STATE_H
#define HIPMM_TOOLS_COMMAND_REPORT_STATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Makes an object of an array of snapshots and reports (trace_rows_state()), whose values are not trusted:
 *
 *   {"title": …, "findings": [sentence…], "missing": [sentence…],
 *    "tables": [{"heading": …, "columns": [{"name": …, "unit": "bytes" or null}…], "rows": [[value…]…]}…]}
 *
 * "missing" tells what such files do not have. NULL: out of memory. */
json_t *state_summary(const json_t *states, const char *title);

/* A page for terminals, on standard output; and one for browsers. False: a write failed, with errno. */
void state_text(const json_t *summary);
bool state_html(FILE *file, const json_t *summary);

#endif
