/* SPDX-License-Identifier: MIT */
/* report.c: the report of a process, one line of JSON: its place in its job, the memory that it had and what failed. What is
 * written for whoever makes one is above; below is the report that the graph's key "report" asks for. That is written at the
 * last hipmm_finalize(), or when the process exits without one; then other threads may still run, and some may be stopped for
 * ever, so only values are read that no lock protects. The preload object makes another (tools/preload/report.c), which also
 * has "functions". */
#include "report.h"

#include "../base/environment.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../base/output_file.h"
#include "../base/rank.h"
#include "../base/text.h"
#include "../call/device_table.h"
#include "../runtime/hip.h"
#include "inspect.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char folder[PATH_MAX]; /* where hipmm was initialised: a relative name starts there. Written within a change */

/* ---- A draft ---- */

static bool report_grow(struct report_draft *draft, size_t bytes)
{
  enum { PAGE = 4096 };
  size_t room = (2 * draft->room + bytes + PAGE) / PAGE * PAGE;
  void *start = draft->start ? mremap(draft->start, draft->room, room, MREMAP_MAYMOVE)
                             : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return false;
  draft->start = start;
  draft->room = room;
  return true;
}

void report_free(struct report_draft *draft)
{
  if (draft->start) munmap(draft->start, draft->room);
}

void report_add(struct report_draft *draft, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || (draft->used + (size_t)length + 1 > draft->room && !report_grow(draft, (size_t)length + 1))) return;
  va_start(arguments, format);
  vsnprintf(draft->start + draft->used, (size_t)length + 1, format, arguments);
  va_end(arguments);
  draft->used += (size_t)length;
}

void report_begin_item(struct report_draft *draft)
{
  if (draft->used && !strchr("[{", draft->start[draft->used - 1])) report_add(draft, ",");
}

void report_add_string(struct report_draft *draft, const char *string)
{
  bool is_control;
  char escaped[TEXT_ESCAPE_BYTES];
  if (!string) {
    report_add(draft, "null");
    return;
  }
  report_add(draft, "\"");
  for (size_t length; *string; string += length) {
    length = text_character(string, &is_control);
    if (length == 1 && (unsigned char)*string >= 0x80) {
      report_add(draft, "?");
    } else if (is_control) {
      text_escape(string, escaped);
      report_add(draft, "%s", escaped);
    } else {
      report_add(draft, "%s%.*s", *string == '"' || *string == '\\' ? "\\" : "", (int)length, string);
    }
  }
  report_add(draft, "\"");
}

/* ---- What every report has ---- */

static void report_add_rank(struct report_draft *draft, const char *key, int rank)
{
  char number[16] = "null";
  if (rank >= 0) snprintf(number, sizeof number, "%d", rank);
  report_add(draft, ",\"%s\":%s", key, number);
}

void report_begin(struct report_draft *draft, const char *moment, const char *signal, const char *runtime,
                  const char *graph)
{
  char host[RANK_HOST_BYTES];
  const char *run_time = environment_get("HIPMM_RUN_TIME"); /* tells the reports of an earlier run apart in a file */
  report_add(draft, "{\"program\":");
  report_add_string(draft, program_invocation_short_name);
  report_add(draft, ",\"process\":%ld,\"host\":", (long)getpid());
  report_add_string(draft, rank_host(host));
  report_add_rank(draft, "rank", rank_in_job());
  report_add_rank(draft, "local_rank", rank_on_host());
  report_add_rank(draft, "ranks", rank_count());
  if (run_time) report_add(draft, ",\"run_time\":%lld", strtoll(run_time, NULL, 10));
  report_add(draft, ",\"moment\":\"%s\",\"signal\":", moment);
  report_add_string(draft, signal);
  report_add(draft, ",\"runtime\":");
  report_add_string(draft, runtime);
  report_add(draft, ",\"graph\":");
  report_add_string(draft, graph);
}

static void report_add_figure(struct report_draft *draft, const char *key, int64_t figure)
{
  if (figure != REPORT_UNKNOWN) report_add(draft, ",\"%s\":%lld", key, (long long)figure);
}

void report_add_memory(struct report_draft *draft, const struct report_memory *memory)
{
  report_begin_item(draft);
  report_add(draft, "{\"device\":%d,\"kind\":\"%s\",\"stack\":", memory->device, memory->kind);
  report_add_string(draft, memory->stack);
  report_add_figure(draft, "peak_requested_bytes", memory->peak_requested_bytes);
  report_add_figure(draft, "live_bytes", memory->live_bytes);
  report_add_figure(draft, "live_blocks", memory->live_blocks);
  report_add_figure(draft, "peak_reserved_bytes", memory->peak_reserved_bytes);
  report_add_figure(draft, "driver_alone_bytes", memory->driver_alone_bytes);
  report_add(draft, "}");
}

bool report_put(const struct report_draft *draft, const char *pattern, const char *own, char why[REPORT_WHY_BYTES])
{
  static atomic_bool was_written;
  char expanded[OUTPUT_FILE_NAME_BYTES], name[OUTPUT_FILE_NAME_BYTES + PATH_MAX];
  if (!draft->used) {
    snprintf(why, REPORT_WHY_BYTES, "out of host memory");
    return false;
  }
  if (!strcmp(pattern, "-")) {
    output_file_write(STDERR_FILENO, draft->start, draft->used, NULL); /* there is no other place for a message */
    return true;
  }
  bool is_name = output_file_expand(pattern, -1, expanded), is_relative = *expanded != '/' && *folder;
  snprintf(name, sizeof name, "%s%s%s", is_relative ? folder : "", is_relative ? "/" : "", expanded);
  bool is_own = output_file_has_letter(pattern, own) && !atomic_exchange(&was_written, true);
  int file = is_name ? output_file_open(name, is_own ? OUTPUT_FILE_EMPTY : OUTPUT_FILE_APPEND) : -1;
  int code = file < 0 ? errno : output_file_write(file, draft->start, draft->used, NULL);
  if (file >= 0) close(file);
  if (!is_name)
    snprintf(why, REPORT_WHY_BYTES, "%s", expanded);
  else if (code)
    snprintf(why, REPORT_WHY_BYTES, "%s: %s", name, output_file_reason(code));
  return is_name && !code;
}

/* ---- The report that the graph asks for ---- */

static atomic_bool is_forbidden;

void report_forbid(void)
{
  atomic_store(&is_forbidden, true);
}

/* A counter of the nearest resource at or below the top that has it, if no lock protects it. */
static int64_t report_counter(const struct instance *top, const char *name)
{
  int64_t value;
  size_t row;
  const struct instance *owner = instance_with_value(top, name, &row);
  if (!owner || !statistics_need_no_lock(owner)) return REPORT_UNKNOWN;
  return values_read(owner, row, &value) ? REPORT_UNKNOWN : value;
}

/* A stack that has held memory of its own, or counts. */
static void report_add_stack(struct report_draft *draft, const struct stack *stack)
{
  const struct instance *top = &stack->instances[stack->top];
  const struct report_memory memory = {.device = stack->device,
                                       .kind = "device",
                                       .stack = stack->entry.name,
                                       .peak_requested_bytes = report_counter(top, "peak_bytes"),
                                       .live_bytes = report_counter(top, "current_bytes"),
                                       .live_blocks = report_counter(top, "current_count"),
                                       .peak_reserved_bytes = path_device_value(stack, 1),
                                       .driver_alone_bytes = REPORT_UNKNOWN};
  if (memory.peak_reserved_bytes || memory.peak_requested_bytes != REPORT_UNKNOWN) report_add_memory(draft, &memory);
}

static void report_make(struct report_draft *draft, const struct graph *graph)
{
  const char *first;
  uint64_t failed = error_failed_allocations(&first);
  report_begin(draft, "exit", NULL, hip_name(), graph->source);
  report_add(draft, ",\"failed_allocations\":%llu,\"first_failure\":", (unsigned long long)failed);
  report_add_string(draft, first);
  report_add(draft, ",\"memory\":[");
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) report_add_stack(draft, stack);
  report_add(draft, "]}\n");
}

void report_write(const struct graph *graph)
{
  struct report_draft draft = {0};
  char why[REPORT_WHY_BYTES];
  if (!graph->report || atomic_load(&is_forbidden)) return;
  report_make(&draft, graph);
  if (!report_put(&draft, graph->report, "pr", why)) log_line(HIPMM_LOG_ERROR, "report", "cannot be written: %s", why);
  report_free(&draft);
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
