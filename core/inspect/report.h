/* SPDX-License-Identifier: MIT */
/* report.h: the report of a process: what every report has, for those who make one, and the report that a graph asks for. */
#ifndef HIPMM_CORE_INSPECT_REPORT_H
#define HIPMM_CORE_INSPECT_REPORT_H

#include <hipmm/plugin.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;

/* A report as it is written, in memory of its own: the program may have spoiled its heap, or have stopped a thread in it. Starts
 * as {0}. Without host memory it ends early. */
struct report_draft {
  char *start;
  size_t used, room;
};

void report_free(struct report_draft *draft);
void report_add(struct report_draft *draft, const char *format, ...) HIPMM_PRINTF(2, 3);

/* Adds the comma before an item, unless its array or object has just begun. */
void report_begin_item(struct report_draft *draft);

/* A JSON string; null for NULL. Bytes that are no characters become "?". */
void report_add_string(struct report_draft *draft, const char *string);

/* Begins the object with the program, its place in its job, and these; NULL is null. */
void report_begin(struct report_draft *draft, const char *moment, const char *signal, const char *runtime,
                  const char *graph);

/* Adds an item to the array of memory: what the process has had of one kind on one device. REPORT_UNKNOWN has no key. */
#define REPORT_UNKNOWN INT64_MIN
struct report_memory {
  int device;
  const char *kind, *stack; /* stack: a name, or NULL */
  int64_t peak_requested_bytes, live_bytes, live_blocks, peak_reserved_bytes, driver_alone_bytes;
};
void report_add_memory(struct report_draft *draft, const struct report_memory *memory);

/* Writes the draft with one write(), so that the reports of several processes do not mix: into the file of a pattern
 * (output_file.h), or to standard error for "-". The first report empties a file whose pattern has one of the letters `own`, since
 * what is in it is of another run; others are appended. False: `why` has the reason. */
enum { REPORT_WHY_BYTES = 8448 };
bool report_put(const struct report_draft *draft, const char *pattern, const char *own, char why[REPORT_WHY_BYTES]);

/* Writes the report, while the table of devices is open; nothing if the graph asks for none. What goes wrong is logged. */
void report_write(const struct graph *graph);

/* No report is written by this copy of hipmm, which is not the program's own: the command's, the preload object's. */
void report_forbid(void);

/* Within a change: from now on the report is written when the process exits, if hipmm is initialised then. */
void report_watch_exit(const struct graph *graph);

#endif
