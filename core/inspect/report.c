/* SPDX-License-Identifier: MIT */
/* report.c: the report that the graph's key "report" asks for: one line of JSON with the process's place in its job, the
 * memory of each stack and the allocations that failed. Written at the last hipmm_finalize(), or when the process exits
 * without one; then other threads may still run, and some may be stopped for ever, so only values are read that no lock
 * protects. The preload object writes a report of its own (tools/preload/report.c), which has the same keys, and "functions". */
#include "report.h"

#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../base/output_file.h"
#include "../base/rank.h"
#include "../call/device_table.h"
#include "../runtime/hip.h"
#include "inspect.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_bool is_forbidden;
static char folder[PATH_MAX]; /* where hipmm was initialised: a relative name starts there. Written within a change */

void report_forbid(void)
{
  atomic_store(&is_forbidden, true);
}

/* ---- The text ---- */

static json_t *report_number(int number)
{
  return number < 0 ? json_null() : json_integer(number);
}

/* Adds the counters of the nearest `statistics` at or below the top, whose reading takes no lock. */
static void report_add_counters(json_t *entry, const struct instance *top)
{
  static const char *const names[][2] = {
      {"peak_requested_bytes", "peak_bytes"}, {"live_bytes", "current_bytes"}, {"live_blocks", "current_count"}};
  size_t row;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const struct instance *owner = instance_with_value(top, names[i][1], &row);
    if (owner && !strcmp(owner->node->plugin->descriptor.type, "statistics"))
      json_object_set_new(entry, names[i][0], values_value(owner, row));
  }
}

/* An entry for each stack that has held memory of its own, or counts. */
static json_t *report_memory(void)
{
  json_t *list = json_array();
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) {
    json_int_t peak = path_device_value(stack, 1);
    json_t *entry =
        json_pack("{s:i, s:s, s:o, s:I}", "device", stack->device, "kind", "device", "stack",
                  stack->entry.name ? values_string(stack->entry.name) : json_null(), "peak_reserved_bytes", peak);
    report_add_counters(entry, &stack->instances[stack->top]);
    if (peak || json_object_size(entry) > 4)
      json_array_append_new(list, entry);
    else
      json_decref(entry);
  }
  return list;
}

static json_t *report_make(const struct graph *graph)
{
  char host[RANK_HOST_BYTES];
  const char *first;
  json_int_t failed = (json_int_t)error_failed_allocations(&first);
  return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:s, s:n, s:o, s:o, s:I, s:o, s:o}", "program",
                   values_string(program_invocation_short_name), "process", (json_int_t)getpid(), "host",
                   values_string(rank_host(host)), "rank", report_number(rank_in_job()), "local_rank",
                   report_number(rank_on_host()), "ranks", report_number(rank_count()), "moment", "exit", "signal",
                   "runtime", values_string(hip_name()), "graph", values_string(graph->source), "failed_allocations",
                   failed, "first_failure", first ? values_string(first) : json_null(), "memory", report_memory());
}

/* ---- The file ---- */

/* A file of this process or rank has reports of earlier runs; one that several processes share is appended to. */
static bool report_is_own(const char *pattern)
{
  static atomic_bool was_written;
  return output_file_has_letter(pattern, "pr") && !atomic_exchange(&was_written, true);
}

enum { REPORT_NAME_BYTES = OUTPUT_FILE_NAME_BYTES + PATH_MAX };

/* Writes the file's name, or what is wrong with the pattern (false), into `name`. */
static bool report_name(const char *pattern, char name[REPORT_NAME_BYTES])
{
  char expanded[OUTPUT_FILE_NAME_BYTES];
  bool is_good = output_file_expand(strcmp(pattern, "-") ? pattern : "/dev/stderr", -1, expanded);
  bool is_relative = is_good && *expanded != '/' && *folder;
  snprintf(name, REPORT_NAME_BYTES, "%s%s%s", is_relative ? folder : "", is_relative ? "/" : "", expanded);
  return is_good;
}

static void report_put(const char *pattern, const char *text)
{
  char name[REPORT_NAME_BYTES];
  bool is_name = report_name(pattern, name);
  int file = is_name ? output_file_open(name, report_is_own(pattern) ? OUTPUT_FILE_EMPTY : OUTPUT_FILE_APPEND) : -1;
  int code = file < 0 ? errno : output_file_write(file, text, strlen(text), NULL);
  if (file >= 0) close(file);
  if (code || file < 0)
    log_line(HIPMM_LOG_ERROR, "report", "cannot be written: %s%s%s", name, is_name ? ": " : "",
             is_name ? output_file_reason(code) : "");
}

void report_write(const struct graph *graph)
{
  json_t *report = graph->report && !atomic_load(&is_forbidden) ? report_make(graph) : NULL;
  char *text = report ? json_dumps(report, JSON_COMPACT) : NULL;
  size_t length = text ? strlen(text) : 0;
  char *line = text ? realloc(text, length + 2) : NULL;
  if (line) {
    memcpy(line + length, "\n", 2);
    report_put(graph->report, line);
  }
  free(line ? line : text);
  json_decref(report);
}

/* ---- The process's exit ---- */

static void report_at_exit(void)
{
  if (lifecycle_refuses_calls() || lifecycle_enter()) return;
  report_write(device_table_graph_in_use());
  lifecycle_leave();
}

void report_watch_exit(const struct graph *graph)
{
  static atomic_bool is_watched;
  if (!getcwd(folder, sizeof folder)) *folder = '\0';
  if (graph->report && !atomic_exchange(&is_watched, true)) atexit(report_at_exit);
}
