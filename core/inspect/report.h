/* SPDX-License-Identifier: MIT */
/* report.h: the report that a graph asks for. */
#ifndef HIPMM_CORE_INSPECT_REPORT_H
#define HIPMM_CORE_INSPECT_REPORT_H

#include "../graph/graph.h"

/* Writes the report, while the table of devices is open; nothing if the graph asks for none. What goes wrong is logged. */
void report_write(const struct graph *graph);

/* No report is written by this copy of hipmm, which is not the program's own: the command's, the preload object's. */
void report_forbid(void);

/* Within a change: from now on the report is written when the process exits, if hipmm is initialised then. */
void report_watch_exit(const struct graph *graph);

#endif
