/* SPDX-License-Identifier: MIT */
/* report.c: the text of a report; see report.h. report_ends.c says when it is made. Never calls malloc(). */
#include "report.h"

#include "../../core/base/rank.h"
#include "../../core/base/text.h"
#include "../../core/base/units.h"
#include "../../core/runtime/hip.h"
#include "../../core/stack/physical.h"
#include "checks.h"
#include "devices.h"
#include "failure.h"
#include "frameworks.h"
#include "init.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

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

/* False if the program had no memory of this kind. */
static bool report_get_memory(const struct served_device *served, enum kind kind, struct report_memory *memory_out)
{
  const struct usage *usage = &served->usage[kind];
  *memory_out = (struct report_memory){
      .device = served->device,
      .kind = kind_name(kind),
      .peak_requested_bytes = atomic_load(&usage->peak_bytes),
      .live_bytes = atomic_load(&usage->bytes),
      .live_blocks = atomic_load(&usage->count),
      .peak_reserved_bytes = REPORT_UNKNOWN,
      .driver_alone_bytes = kind == KIND_DEVICE ? atomic_load(&usage->driver_peak_bytes) : REPORT_UNKNOWN};
  devices_peak_reserved(served, kind, &memory_out->peak_reserved_bytes);
  return memory_out->peak_requested_bytes != 0;
}

/* The same for what the program created past hipmm. */
static bool report_get_past(int device, struct report_memory *memory_out)
{
  const struct physical_past past = physical_past(device);
  *memory_out = (struct report_memory){.device = device,
                                       .kind = "past_hipmm",
                                       .peak_requested_bytes = (int64_t)past.peak_bytes,
                                       .live_bytes = (int64_t)past.bytes,
                                       .live_blocks = (int64_t)past.count,
                                       .peak_reserved_bytes = (int64_t)past.peak_bytes,
                                       .driver_alone_bytes = REPORT_UNKNOWN};
  return past.peak_bytes != 0;
}

/* The lines of a resource's report, of which so many are told. */
enum { LINES_MOST = 1000 };

struct report_lines {
  struct report_draft *text;
  bool is_json;
  size_t lines;
};

static void report_add_line(void *closure, const char *line)
{
  struct report_lines *lines = closure;
  if (lines->lines++ >= LINES_MOST) return;
  if (lines->is_json) {
    report_begin_item(lines->text);
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
    report_begin_item(lines->text);
    report_add(lines->text, "{\"device\":%d,\"name\":", device);
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

static void report_print_bytes(struct report_draft *out, const char *label, int64_t bytes, const char *more)
{
  char exact[40] = "";
  if (bytes >= 1024) snprintf(exact, sizeof exact, " (%lld bytes)", (long long)bytes);
  report_add(out, "    %-16s %s%s%s\n", label, UNITS_BYTES((uint64_t)bytes), exact, more);
}

static void report_print_calls(struct report_draft *out)
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

static void report_print_live(struct report_draft *out, const struct report_memory *memory, bool is_running)
{
  char more[64] = "";
  if (memory->live_blocks)
    snprintf(more, sizeof more, " in %lld block%s", (long long)memory->live_blocks,
             text_plural((uint64_t)memory->live_blocks));
  report_print_bytes(out, is_running ? "now" : "left at exit", memory->live_bytes, more);
}

static void report_print_past(struct report_draft *out, int device, bool is_running)
{
  struct report_memory memory;
  if (!report_get_past(device, &memory)) return;
  report_add(out, "  device %d, created past hipmm (hipMemCreate, cuMemCreate)\n", memory.device);
  report_print_bytes(out, "peak requested", memory.peak_requested_bytes, "");
  report_print_live(out, &memory, is_running);
}

static void report_print_memory(struct report_draft *out, const struct served_device *served, enum kind kind,
                                bool is_running)
{
  struct report_memory memory;
  if (!report_get_memory(served, kind, &memory)) return;
  report_add(out, "  device %d, %s memory\n", memory.device, memory.kind);
  report_print_bytes(out, "peak requested", memory.peak_requested_bytes, "");
  if (memory.peak_reserved_bytes != REPORT_UNKNOWN)
    report_print_bytes(out, "peak reserved", memory.peak_reserved_bytes, "");
  else if (served->resources[kind]) /* it is held by the stack of device memory */
    report_add(out, "    %-16s counted with device memory\n", "peak reserved");
  if (memory.driver_alone_bytes != REPORT_UNKNOWN)
    report_print_bytes(out, "driver alone", memory.driver_alone_bytes, "");
  report_print_live(out, &memory, is_running);
}

/* What the figures above mean. `has_device`: there is memory of a device, which has an estimate for the driver. */
static void report_print_legend(struct report_draft *out, bool has_memory, bool has_device, bool is_running)
{
  if (!report_has_calls()) return;
  report_add(out, "  in these figures\n");
  report_add(out, "    passed on        calls that hipmm left to the runtime\n");
  report_add(out, "    failed           calls that hipmm answered with an error\n");
  if (!has_memory) return;
  report_add(out, "    peak requested   the most that the program had allocated at one time\n");
  report_add(out, "    peak reserved    the most that hipmm held from the runtime at one time, to serve the program\n");
  if (has_device)
    report_add(
        out,
        "    driver alone     an estimate of the most that the driver would have taken without hipmm, if a block of 1 "
        "MiB\n"
        "                     or more takes units of 2 MiB of its own, and smaller ones multiples of 512 bytes out of\n"
        "                     units that they share\n");
  report_add(out, "    %-16s what the program has not freed\n", is_running ? "now" : "left at exit");
}

static void report_print(const struct report_request *request, struct report_draft *out)
{
  bool has_memory = false, has_device = false, is_served = !init_is_forked();
  char program[256], runtime[PATH_MAX], graph[PATH_MAX], host[RANK_HOST_BYTES], place[RANK_HOST_BYTES + 32] = "";
  if (rank_in_job() >= 0) snprintf(place, sizeof place, " rank %d on %s,", rank_in_job(), rank_host(host));
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  text_make_plain(program);
  text_make_plain(place);
  snprintf(runtime, sizeof runtime, "%s", init_was_ready() ? hip_name() : "none");
  snprintf(graph, sizeof graph, "%s", init_graph());
  text_make_plain(runtime);
  text_make_plain(graph);
  report_add(out, "hipmm: report of %s,%s process %ld, runtime %s%s%s\n", program, place, (long)getpid(), runtime,
             request->moment == REPORT_RUNNING ? ", while it runs"
             : request->signal                 ? ", ended by "
                                               : "",
             request->signal ? request->signal : "");
  if (*graph) report_add(out, "  graph %s\n", graph);
  report_print_calls(out);
  if (!report_has_calls())
    report_add(out, "  no call came through hipmm: the program makes none, or only calls hipmm itself, or its runtime "
                    "is linked into it (HIP's; CUDA's with --no-driver)\n");
  for (int i = 0; i < DEVICES_MOST * KIND_COUNT && is_served; i++) {
    struct served_device *served = devices_if_served(i / KIND_COUNT);
    if (!served) continue;
    report_print_memory(out, served, (enum kind)(i % KIND_COUNT), request->moment == REPORT_RUNNING);
    has_memory |= atomic_load(&served->usage[i % KIND_COUNT].peak_bytes) != 0;
    has_device |= atomic_load(&served->usage[KIND_DEVICE].peak_bytes) != 0;
  }
  for (int device = 0; device < DEVICES_MOST && is_served; device++)
    report_print_past(out, device, request->moment == REPORT_RUNNING);
  if (request->has_resources && is_served) devices_visit(report_add_resource, &(struct report_lines){.text = out});
  if (failure_first()) report_add(out, "  first failure: %s\n", failure_first());
  report_print_legend(out, has_memory, has_device, request->moment == REPORT_RUNNING);
}

/* ---- For programs: one line, so that the reports of several processes can share a file ---- */

static void report_print_json_functions(struct report_draft *out)
{
  for (int row = 0; row < REPORT_ROWS; row++) {
    const char *name;
    struct hook_counts counts;
    if (!report_get_row(row, &name, &counts)) continue;
    report_begin_item(out);
    report_add(out, "\"%s\":{\"calls\":%llu,\"passed\":%llu,\"failed\":%llu}", name, (unsigned long long)counts.calls,
               (unsigned long long)counts.passed, (unsigned long long)counts.failed);
  }
}

static void report_print_json_memory(struct report_draft *out)
{
  struct report_memory memory;
  for (int i = 0; i < DEVICES_MOST * KIND_COUNT && !init_is_forked(); i++) {
    const struct served_device *served = devices_if_served(i / KIND_COUNT);
    if (served && report_get_memory(served, (enum kind)(i % KIND_COUNT), &memory)) report_add_memory(out, &memory);
  }
  for (int device = 0; device < DEVICES_MOST && !init_is_forked(); device++)
    if (report_get_past(device, &memory)) report_add_memory(out, &memory);
}

/* What `hipmm run --check-streams` has found. */
static void report_print_json_races(struct report_draft *out)
{
  const char *kind = NULL, *text;
  for (size_t i = 0; (text = checks_report(i, &kind)); i++) {
    report_begin_item(out);
    report_add(out, "{\"kind\":\"%s\",\"text\":", kind);
    report_add_string(out, text);
    report_add(out, "}");
  }
}

static void report_print_json(const struct report_request *request, struct report_draft *out)
{
  static const char *const moments[] = {"running", "exit", "signal"};
  report_begin(out, moments[request->moment], request->signal, init_was_ready() ? hip_name() : NULL,
               *init_graph() ? init_graph() : NULL);
  report_add(out, ",\"functions\":{");
  report_print_json_functions(out);
  report_add(out, "},\"memory\":[");
  report_print_json_memory(out);
  report_add(out, "],\"resources\":[");
  if (request->has_resources && !init_is_forked())
    devices_visit(report_add_resource, &(struct report_lines){.text = out, .is_json = true});
  report_add(out, "],\"races\":[");
  report_print_json_races(out);
  report_add(out, "],\"first_failure\":");
  report_add_string(out, failure_first());
  report_add(out, "}\n");
}

void report_make(const struct report_request *request, struct report_draft *out)
{
  if (request->is_json)
    report_print_json(request, out);
  else
    report_print(request, out);
}
