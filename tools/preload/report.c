/* SPDX-License-Identifier: MIT */
/* report.c: the text of a report; see report.h. report_ends.c says when it is made. Never calls malloc(). */
#include "report.h"

#include "../../core/base/environment.h"
#include "../../core/base/rank.h"
#include "../../core/base/text.h"
#include "../../core/base/units.h"
#include "../../core/runtime/hip.h"
#include "checks.h"
#include "devices.h"
#include "failure.h"
#include "frameworks.h"
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Text in memory of its own ---- */

static bool report_grow(struct report_buffer *text, size_t bytes)
{
  enum { PAGE = 4096 };
  size_t room = (2 * text->room + bytes + PAGE) / PAGE * PAGE;
  void *start = text->start ? mremap(text->start, text->room, room, MREMAP_MAYMOVE)
                            : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return false;
  text->start = start;
  text->room = room;
  return true;
}

void report_text_free(struct report_buffer *text)
{
  if (text->start) munmap(text->start, text->room);
}

static HIPMM_PRINTF(2, 3) void report_add(struct report_buffer *text, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || (text->used + (size_t)length + 1 > text->room && !report_grow(text, (size_t)length + 1))) return;
  va_start(arguments, format);
  vsnprintf(text->start + text->used, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->used += (size_t)length;
}

/* A JSON string; "null" for NULL. Bytes that are no characters become "?". */
static void report_add_string(struct report_buffer *text, const char *string)
{
  bool is_control;
  char escaped[TEXT_ESCAPE_BYTES];
  if (!string) {
    report_add(text, "null");
    return;
  }
  report_add(text, "\"");
  for (size_t length; *string; string += length) {
    length = text_character(string, &is_control);
    if (length == 1 && (unsigned char)*string >= 0x80) {
      report_add(text, "?");
    } else if (is_control) {
      text_escape(string, escaped);
      report_add(text, "%s", escaped);
    } else {
      report_add(text, "%s%.*s", *string == '"' || *string == '\\' ? "\\" : "", (int)length, string);
    }
  }
  report_add(text, "\"");
}

/* ---- What is reported ---- */

/* A row of the table of functions: the hooks, and then what frameworks call. False if the report does not have it. */
static bool report_get_row(int row, const char **name_out, struct hook_counts *counts_out)
{
  bool is_hook = row < HOOK_COUNT;
  enum frameworks_row framework = is_hook ? FRAMEWORK_TORCH_MALLOC : (enum frameworks_row)(row - HOOK_COUNT);
  *name_out = is_hook ? hook_name((enum hook)row) : frameworks_name(framework);
  *counts_out = is_hook ? hook_counts((enum hook)row) : frameworks_counts(framework);
  return counts_out->calls && (!is_hook || hook_is_reported((enum hook)row));
}

enum { REPORT_ROWS = HOOK_COUNT + FRAMEWORK_ROWS };

bool report_has_calls(void)
{
  const char *name;
  struct hook_counts counts;
  for (int row = 0; row < REPORT_ROWS; row++)
    if (report_get_row(row, &name, &counts)) return true;
  return false;
}

/* Memory of one kind on one device; -1 for a number that there is not. */
struct report_memory {
  int64_t peak, reserved, driver, bytes, count;
  bool is_with_device; /* held by the stack of device memory, and counted there */
};

/* False if the program had no memory of this kind. */
static bool report_get_memory(struct served_device *served, enum kind kind, struct report_memory *memory_out)
{
  struct usage *usage = &served->usage[kind];
  struct report_memory memory = {.peak = atomic_load(&usage->peak_bytes),
                                 .reserved = -1,
                                 .driver = kind == KIND_DEVICE ? atomic_load(&usage->driver_peak_bytes) : -1,
                                 .bytes = atomic_load(&usage->bytes),
                                 .count = atomic_load(&usage->count)};
  if (!devices_peak_reserved(served, kind, &memory.reserved)) memory.is_with_device = served->resources[kind] != NULL;
  *memory_out = memory;
  return memory.peak != 0;
}

/* The lines of a resource's report, of which so many are told. */
enum { LINES_MOST = 1000 };

struct report_lines {
  struct report_buffer *text;
  bool is_json;
  size_t resources, lines;
};

static void report_add_line(void *closure, const char *line)
{
  struct report_lines *lines = closure;
  if (lines->lines++ >= LINES_MOST) return;
  if (lines->is_json) {
    if (lines->lines > 1) report_add(lines->text, ",");
    report_add_string(lines->text, line);
  } else {
    report_add(lines->text, "    %s\n", line);
  }
}

static void report_add_resource(void *closure, int device, struct instance *instance)
{
  struct report_lines *lines = closure;
  if (!instance->node->plugin->descriptor.ops->report) return;
  lines->lines = 0;
  if (lines->is_json) {
    report_add(lines->text, "%s{\"device\":%d,\"name\":", lines->resources++ ? "," : "", device);
    report_add_string(lines->text, instance->node->name);
    report_add(lines->text, ",\"report\":[");
  } else {
    report_add(lines->text, "  device %d, %s\n", device, instance->node->name);
  }
  if (instance->resource.ops->report(instance->resource.self, report_add_line, lines))
    report_add_line(lines, hipmm_last_error_message());
  if (lines->is_json)
    report_add(lines->text, "]}");
  else if (lines->lines > LINES_MOST)
    report_add(lines->text, "    and %zu more lines\n", lines->lines - LINES_MOST);
}

/* ---- For people ---- */

static void report_print_bytes(struct report_buffer *out, const char *label, int64_t bytes, const char *more)
{
  char words[40], exact[40] = "";
  if (bytes >= 1024) snprintf(exact, sizeof exact, " (%lld bytes)", (long long)bytes);
  report_add(out, "    %-16s %s%s%s\n", label, units_format_bytes((uint64_t)bytes, words, sizeof words), exact, more);
}

static void report_print_calls(struct report_buffer *out)
{
  if (report_has_calls()) report_add(out, "  %-28s %12s %12s %12s\n", "function", "calls", "passed on", "failed");
  for (int row = 0; row < REPORT_ROWS; row++) {
    const char *name;
    struct hook_counts counts;
    if (report_get_row(row, &name, &counts))
      report_add(out, "  %-28s %12llu %12llu %12llu\n", name, (unsigned long long)counts.calls,
                 (unsigned long long)counts.passed, (unsigned long long)counts.failed);
  }
}

static void report_print_memory(struct report_buffer *out, struct served_device *served, enum kind kind,
                                bool is_running)
{
  struct report_memory memory;
  char more[64] = "";
  if (!report_get_memory(served, kind, &memory)) return;
  report_add(out, "  device %d, %s memory\n", served->device, kind_name(kind));
  report_print_bytes(out, "peak requested", memory.peak, "");
  if (memory.reserved >= 0) report_print_bytes(out, "peak reserved", memory.reserved, "");
  if (memory.is_with_device) report_add(out, "    %-16s counted with device memory\n", "peak reserved");
  if (memory.driver >= 0) report_print_bytes(out, "driver alone", memory.driver, "");
  if (memory.count)
    snprintf(more, sizeof more, " in %lld block%s", (long long)memory.count, text_plural((uint64_t)memory.count));
  report_print_bytes(out, is_running ? "now" : "left at exit", memory.bytes, more);
}

/* What the figures above mean. `has_device`: there is memory of a device, which has an estimate for the driver. */
static void report_print_legend(struct report_buffer *out, bool has_memory, bool has_device, bool is_running)
{
  if (!report_has_calls()) return;
  report_add(out, "  in these figures\n");
  report_add(out, "    passed on        calls that hipmm left to the runtime\n");
  report_add(out, "    failed           calls that hipmm answered with an error\n");
  if (!has_memory) return;
  report_add(out, "    peak requested   the most that the program had allocated at one time\n");
  report_add(out, "    peak reserved    the most that hipmm held from the runtime at one time, to serve the program\n");
  if (has_device)
    report_add(out, "    driver alone     an estimate of the most that the driver would have taken without hipmm, if a "
                    "block of 1 MiB\n"
                    "                     or more takes units of 2 MiB of its own, and smaller ones multiples of 512 "
                    "bytes out of\n"
                    "                     units that they share\n");
  report_add(out, "    %-16s what the program has not freed\n", is_running ? "now" : "left at exit");
}

static void report_print(const struct report_request *request, const char *program, struct report_buffer *out)
{
  bool has_memory = false, has_device = false, is_served = !init_is_forked();
  char runtime[PATH_MAX], graph[PATH_MAX], host[RANK_HOST_BYTES], place[RANK_HOST_BYTES + 32] = "";
  if (rank_in_job() >= 0) snprintf(place, sizeof place, " rank %d on %s,", rank_in_job(), rank_host(host));
  text_make_plain(place);
  snprintf(runtime, sizeof runtime, "%s", init_was_ready() ? hip_name() : "none");
  snprintf(graph, sizeof graph, "%s", init_graph());
  text_make_plain(runtime);
  text_make_plain(graph);
  report_add(out, "hipmm: report of %s,%s process %ld, runtime %s%s%s\n", program, place, (long)getpid(), runtime,
             request->moment == REPORT_RUNNING  ? ", while it runs"
             : request->moment == REPORT_SIGNAL ? ", ended by "
                                                : "",
             request->moment == REPORT_SIGNAL ? request->signal : "");
  if (*graph) report_add(out, "  graph %s\n", graph);
  report_print_calls(out);
  if (!report_has_calls())
    report_add(
        out,
        "  no call came through hipmm: the program makes none, or only calls hipmm itself, or its runtime is linked "
        "into it (HIP's; CUDA's with --no-driver)\n");
  for (int i = 0; i < DEVICES_MOST * KIND_COUNT && is_served; i++) {
    struct served_device *served = devices_if_served(i / KIND_COUNT);
    if (!served) continue;
    report_print_memory(out, served, (enum kind)(i % KIND_COUNT), request->moment == REPORT_RUNNING);
    has_memory |= atomic_load(&served->usage[i % KIND_COUNT].peak_bytes) != 0;
    has_device |= atomic_load(&served->usage[KIND_DEVICE].peak_bytes) != 0;
  }
  if (request->has_resources && is_served) devices_visit(report_add_resource, &(struct report_lines){.text = out});
  if (failure_first()) report_add(out, "  first failure: %s\n", failure_first());
  report_print_legend(out, has_memory, has_device, request->moment == REPORT_RUNNING);
}

/* ---- For programs: one line, so that the reports of several processes can share a file ---- */

static void report_print_json_memory(struct report_buffer *out, bool *any)
{
  for (int i = 0; i < DEVICES_MOST * KIND_COUNT && !init_is_forked(); i++) {
    enum kind kind = (enum kind)(i % KIND_COUNT);
    struct served_device *served = devices_if_served(i / KIND_COUNT);
    struct report_memory memory;
    if (!served || !report_get_memory(served, kind, &memory)) continue;
    report_add(
        out, "%s{\"device\":%d,\"kind\":\"%s\",\"peak_requested_bytes\":%lld,\"live_bytes\":%lld,\"live_blocks\":%lld",
        *any ? "," : "", served->device, kind_name(kind), (long long)memory.peak, (long long)memory.bytes,
        (long long)memory.count);
    if (memory.reserved >= 0) report_add(out, ",\"peak_reserved_bytes\":%lld", (long long)memory.reserved);
    if (memory.driver >= 0) report_add(out, ",\"driver_alone_bytes\":%lld", (long long)memory.driver);
    report_add(out, "}");
    *any = true;
  }
}

/* A number with its key; null for -1. */
static void report_add_number(struct report_buffer *out, const char *key, int number)
{
  char text[16] = "null";
  if (number >= 0) snprintf(text, sizeof text, "%d", number);
  report_add(out, ",\"%s\":%s", key, text);
}

/* Where the process is in its job; and the time when `hipmm run` began, which tells reports of an earlier run apart in a
 * file to which several processes append. */
static void report_print_json_place(struct report_buffer *out)
{
  char host[RANK_HOST_BYTES];
  const char *run = environment_get("HIPMM_RUN_TIME");
  report_add(out, ",\"process\":%ld,\"host\":", (long)getpid());
  report_add_string(out, rank_host(host));
  report_add_number(out, "rank", rank_in_job());
  report_add_number(out, "local_rank", rank_on_host());
  report_add_number(out, "ranks", rank_count());
  report_add(out, ",\"run_time\":%lld", run ? strtoll(run, NULL, 10) : 0);
}

/* What `hipmm run --check-streams` has found. */
static void report_print_json_races(struct report_buffer *out)
{
  const char *kind = NULL, *text;
  for (size_t i = 0; (text = checks_report(i, &kind)); i++) {
    report_add(out, "%s{\"kind\":\"%s\",\"text\":", i ? "," : "", kind);
    report_add_string(out, text);
    report_add(out, "}");
  }
}

static void report_print_json(const struct report_request *request, const char *program, struct report_buffer *out)
{
  static const char *const moments[] = {"running", "exit", "signal"};
  bool any = false;
  report_add(out, "{\"program\":");
  report_add_string(out, program);
  report_print_json_place(out);
  report_add(out, ",\"moment\":\"%s\",\"signal\":", moments[request->moment]);
  report_add_string(out, request->moment == REPORT_SIGNAL ? request->signal : NULL);
  report_add(out, ",\"runtime\":");
  report_add_string(out, init_was_ready() ? hip_name() : NULL);
  report_add(out, ",\"graph\":");
  report_add_string(out, *init_graph() ? init_graph() : NULL);
  report_add(out, ",\"functions\":{");
  for (int row = 0; row < REPORT_ROWS; row++) {
    const char *name;
    struct hook_counts counts;
    if (!report_get_row(row, &name, &counts)) continue;
    report_add(out, "%s\"%s\":{\"calls\":%llu,\"passed\":%llu,\"failed\":%llu}", any ? "," : "", name,
               (unsigned long long)counts.calls, (unsigned long long)counts.passed, (unsigned long long)counts.failed);
    any = true;
  }
  any = false;
  report_add(out, "},\"memory\":[");
  report_print_json_memory(out, &any);
  report_add(out, "],\"resources\":[");
  if (request->has_resources && !init_is_forked())
    devices_visit(report_add_resource, &(struct report_lines){.text = out, .is_json = true});
  report_add(out, "],\"races\":[");
  report_print_json_races(out);
  report_add(out, "],\"first_failure\":");
  report_add_string(out, failure_first());
  report_add(out, "}\n");
}

void report_make(const struct report_request *request, struct report_buffer *text)
{
  char program[256];
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  if (request->is_json) {
    report_print_json(request, program, text);
    return;
  }
  text_make_plain(program);
  report_print(request, program, text);
}
