/* SPDX-License-Identifier: MIT */
/* summary.h: a summary of a log's memory as one JSON object, which the page, the text and --json show. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_SUMMARY_H
#define HIPMM_TOOLS_COMMAND_REPORT_SUMMARY_H

#include "blocks.h"
#include <jansson.h>

/* Sizes are in bytes, times in nanoseconds since the first event (null: the log has none), events by number from 0. NULL:
 * out of memory. */
json_t *summary_make(const struct blocks *blocks, const char *title);

#endif
