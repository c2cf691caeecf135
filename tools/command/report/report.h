/* SPDX-License-Identifier: MIT */
/* report.h: what the files of `hipmm report` share. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_REPORT_H
#define HIPMM_TOOLS_COMMAND_REPORT_REPORT_H

#include "../trace/blocks.h"
#include <jansson.h>
#include <stdio.h>

/* ---- summary.c -------------------------------------------------------------------------------------------------- */

/* What a log tells about the memory of its program, as one JSON object, which the page, the text and --json show. */

/* Sizes are in bytes, times in nanoseconds since the first event (null: the log has none), events by number from 0. NULL:
 * out of memory. */
json_t *summary_make(const struct blocks *blocks, const char *title);

/* ---- pages.c ---------------------------------------------------------------------------------------------------- */

/* How a log's live blocks are spread over pages of 2 MiB, the granularity of GPU memory: a page that holds any live
 * block cannot be used by the device for anything else, whatever the allocator. Called by summary.c. */

enum { PAGES_SHIFT = 21 };

struct pages_result {
  uint64_t peak_bytes;                    /* of the pages with live blocks */
  uint64_t worst_bytes, worst_live_bytes; /* when the difference of these two was greatest */
  uint32_t worst_event;
};

/* Counts the bytes of pages after each event; `notify` may be NULL. False: out of memory. */
bool pages_count(const struct blocks *blocks, void (*notify)(void *closure, uint32_t event, uint64_t bytes),
                 void *closure, struct pages_result *out);

/* ---- findings.c ------------------------------------------------------------------------------------------------- */

/* Sentences with the main findings of a log: where the peak is, and why. Called by summary.c. */

/* An array of sentences. `live` has the live bytes after each event, of which there is at least one. */
json_t *findings_tell(const struct blocks *blocks, const uint64_t *live, uint32_t peak,
                      const struct pages_result *pages);

/* ---- held.c ----------------------------------------------------------------------------------------------------- */

/* What the allocator held from the device, if the log tells it: how much of it was idle, and what pinned that. Called by
 * summary.c. */

/* An object with figures and, if the log names segments, "tables" as those of state_summary(); adds to the sentences. Null:
 * the log does not tell it. */
json_t *held_summary(const struct blocks *blocks, const uint64_t *live, uint32_t live_peak, json_t *sentences);

/* The most, or the least, in each of equal parts of the events. There is a level. */
json_t *held_timeline(const struct block_levels *levels, size_t n_events, size_t bins, bool is_least);

/* ---- pins.c ----------------------------------------------------------------------------------------------------- */

/* Which blocks keep memory that is mostly idle. Called by held.c. */

/* A table of the segments that are less than half live, after the event at which they have most idle memory; of a log that never
 * has any, after `idle_event`. Adds to the sentences. */
json_t *pins_table(const struct blocks *blocks, uint32_t idle_event, json_t *sentences);

/* ---- page.c ----------------------------------------------------------------------------------------------------- */

/* Pages for browsers, which need no other file. Called by html.c and state_print.c. */

/* Writes the embedded page `part` with the title; `put` writes what is in the place of the lines "@text@" and "@data@", by
 * name. False: a function failed, with errno. */
bool page_write(FILE *file, const char *part, const char *title,
                bool (*put)(FILE *file, const char *name, const void *closure), const void *closure);

/* Writes sentences as a section with a list; and tables (state_summary()), each as a section. */
void page_sentences(FILE *file, const char *heading, const json_t *sentences);
void page_tables(FILE *file, const json_t *tables);

/* Writes text so that none of it is HTML. */
void page_put_text(FILE *file, const char *text);

/* ---- text.c, html.c: the summary of a log ----------------------------------------------------------------------- */

/* A page for terminals, on standard output. */
void report_text(const json_t *summary);

/* The most of the parts of a timeline that a column of a plot stands for. */
uint64_t text_column(const json_t *most, size_t column, size_t columns);

/* The parts of a timeline as bars of at most `columns` characters, the highest of which stands for `peak`. `line` has 4 bytes
 * for each. Returns `line`. */
const char *text_spark(const json_t *most, uint64_t peak, size_t columns, char *line);

/* A page for browsers that needs nothing else: it shows one of the summaries, of the blocks in the same place of the list, and has
 * a choice if there are several. False: a write failed, with errno. */
bool report_html(FILE *file, const char *title, const json_t *summaries, const json_t *job,
                 const struct blocks_list *list);

/* ---- folder.c --------------------------------------------------------------------------------------------------- */

/* The logs that a command names: a folder stands for the files in it. */
struct folder_files {
  char **items;
  size_t n;
};

/* False: the error was printed, and nothing is allocated. */
bool folder_expand(struct folder_files *files, char *const *operands, size_t n);
void folder_clear(struct folder_files *files);

/* ---- job.c ------------------------------------------------------------------------------------------------------ */

/* Several memories beside each other, such as those of the ranks of a job: the peak of each, their imbalance, and which fails
 * first. */

/* Of an array of summaries: {"findings": [sentence…], "peak_bytes": …, "imbalance": …, "first_failure": index or null,
 * "members": [{"name": …, "peak_bytes": …, "held_peak_bytes": …, "most": [bytes…], "held": [bytes…]}…]}. NULL: there is one
 * memory. */
json_t *job_make(const json_t *summaries);

/* In a terminal, and in a page. NULL: nothing. */
void job_text(const json_t *job);
void job_html(FILE *file, const json_t *job);

/* ---- state.c ---------------------------------------------------------------------------------------------------- */

/* A report of what hipmm itself wrote of a process's memory: snapshots, and the reports of `hipmm run --json`. They
 * are sums of one moment or of a whole run, so that the report is sentences and tables. Called by report.c. */

/* Makes an object of an array of snapshots and reports (trace_rows_state()), whose values are not trusted:
 *
 *   {"title": …, "findings": [sentence…], "missing": [sentence…],
 *    "tables": [{"heading": …, "columns": [{"name": …, "unit": "bytes" or null}…], "rows": [[value…]…]}…]}
 *
 * "missing" tells what such files do not have. NULL: out of memory. */
json_t *state_summary(const json_t *states, const char *title);

/* A page for terminals, on standard output; and one for browsers. False: a write failed, with errno. */
void state_text(const json_t *summary);
void state_text_tables(const json_t *tables);
bool state_html(FILE *file, const json_t *summary);

/* ---- compare.c ------------------------------------------------------------------------------------------------- */

/* Two logs beside each other, by the names of their files: an object as that of state_summary(). NULL: out of memory. */
json_t *compare_summary(const struct blocks *before, const struct blocks *after, const char *const names[2]);

#endif
