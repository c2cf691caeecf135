/* SPDX-License-Identifier: MIT */
/* print.c: what `hipmm replay` found, as JSON and as lines. Called by replay.c. */
#include "../lines.h"
#include "replay.h"

#include "../../../core/base/text.h"
#include <string.h>

static json_t *replay_json_real(double value)
{
  return value > 0 ? json_real(value) : json_null();
}

static json_t *replay_json_failure(const struct replay_result *result)
{
  if (!result->failure_reason) return json_null();
  return json_pack("{s:I, s:o}", "line", (json_int_t)result->failure_line, "reason",
                   output_json_string(result->failure_reason));
}

static json_t *replay_json(const struct trace *trace, const struct replay_result *result)
{
  double overhead = lines_overhead(result->peak_reserved_bytes, result->peak_requested_bytes);
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "events",
                   (json_int_t)trace->rows, "allocations", (json_int_t)trace->allocations, "frees",
                   (json_int_t)trace->frees, "failures", (json_int_t)result->failures, "unmatched_frees",
                   (json_int_t)trace->unmatched_frees, "failed_rows", (json_int_t)trace->failed_rows, "overlaid",
                   (json_int_t)trace->overlaid, "other_sizes", (json_int_t)trace->other_sizes, "live_at_end",
                   (json_int_t)result->live_at_end, "peak_requested_bytes", (json_int_t)result->peak_requested_bytes,
                   "peak_reserved_bytes", (json_int_t)result->peak_reserved_bytes, "overhead",
                   replay_json_real(overhead), "ns_per_op", replay_json_real(result->first_ns), "ns_per_op_warm",
                   replay_json_real(result->warm_ns), "first_failure", replay_json_failure(result), "runtime",
                   output_json_string(hipmm_runtime()));
}

void replay_print_head(const struct replay *replay, const char *runtime)
{
  const struct trace *trace = &replay->trace;
  char number[LINES_NUMBER_BYTES];
  print_padded(STYLE_NAME, strcmp(replay->trace_file, "-") == 0 ? "standard input" : replay->trace_file, 0);
  printf(": %s events on %zu stream%s\n", lines_number(trace->rows, number), trace->n_streams,
         text_plural(trace->n_streams));
  printf("through ");
  print_padded(STYLE_NAME,
               replay->source.file ? replay->source.file : "a plain `device` resource (no graph file found)", 0);
  printf(" on device %ld of the runtime ", replay->device);
  output_text(stdout, runtime);
  printf("\n\n");
}

static const struct line replay_lines[] = {
    {"allocations", "allocations", LINE_COUNT, NULL},
    {"frees", "frees", LINE_COUNT, NULL},
    {"live_at_end", "live at end", LINE_COUNT, NULL},
    {"unmatched_frees", "unmatched frees", LINE_ODDITY, "of unknown pointers: skipped"},
    {"failed_rows", "failed in the log", LINE_ODDITY, "rows \"allocate failure\" and \"free failure\": skipped"},
    {"overlaid", "address used twice", LINE_ODDITY, "the older block stays live"},
    {"other_sizes", "freed, other size", LINE_ODDITY, "the allocation's size is used"},
    {"peak_requested_bytes", "peak requested", LINE_BYTES, NULL},
    {"peak_reserved_bytes", "peak reserved", LINE_BYTES, NULL},
    {"overhead", "overhead", LINE_RATIO, "reserved over requested"},
    {"ns_per_op", "first pass", LINE_NS, "an operation"},
    {"ns_per_op_warm", "best later pass", LINE_NS, "an operation"},
    {"failures", "failures", LINE_FAILURES, NULL},
};

int replay_print(const struct replay *replay, const struct replay_result *result, int status)
{
  json_t *json = replay_json(&replay->trace, result);
  if (replay->json || !json) return output_json(json, status);
  replay_print_head(replay, hipmm_runtime());
  lines_print(json, replay_lines, sizeof replay_lines / sizeof *replay_lines);
  if (result->failure_reason) {
    printf("\nFirst failure, line %u of the log: ", result->failure_line);
    output_text(stdout, result->failure_reason);
    putchar('\n');
  }
  json_decref(json);
  return output_finish(status);
}
