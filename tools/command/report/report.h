/* SPDX-License-Identifier: MIT */
/* report.h: the forms of a report. Each prints a summary (summary.h). */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_REPORT_H
#define HIPMM_TOOLS_COMMAND_REPORT_REPORT_H

#include "../trace/blocks.h"
#include <jansson.h>
#include <stdio.h>

/* A page for terminals, on standard output. */
void report_text(const json_t *summary);

/* A page for browsers that needs nothing else. False: a write failed, with errno. */
bool report_html(FILE *file, const json_t *summary, const struct blocks *blocks);

#endif
