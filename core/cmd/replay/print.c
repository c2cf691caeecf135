/* SPDX-License-Identifier: MIT */
/* print.c: what `hipmm replay` found, as lines and as JSON. Called by replay.c; fit.c uses its lines. */
#include "replay.h"

#include "../../base/text.h"
#include "../../base/units.h"
#include <string.h>

static double replay_overhead(const struct replay_result *result)
{
  return result->peak_requested_bytes ? (double)result->peak_reserved_bytes / (double)result->peak_requested_bytes : 0;
}

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

static int replay_print_json(const struct replay *replay, const struct replay_result *result, int status)
{
  const struct trace *trace = &replay->trace;
  json_t *object =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "events", (json_int_t)trace->rows,
                "allocations", (json_int_t)trace->allocations, "frees", (json_int_t)trace->frees, "failures",
                (json_int_t)result->failures, "unmatched_frees", (json_int_t)trace->unmatched_frees, "live_at_end",
                (json_int_t)result->live_at_end, "peak_requested_bytes", (json_int_t)result->peak_requested_bytes,
                "peak_reserved_bytes", (json_int_t)result->peak_reserved_bytes, "overhead",
                replay_json_real(replay_overhead(result)), "ns_per_op", replay_json_real(result->first_ns),
                "ns_per_op_warm", replay_json_real(result->warm_ns), "first_failure", replay_json_failure(result),
                "runtime", output_json_string(hipmm_runtime()));
  return output_json(object, status);
}

static void replay_print_label(const char *label)
{
  printf("  ");
  print_padded(STYLE_OFF, label, 18);
}

/* 1234567 as 1,234,567. */
static const char *replay_number(uint64_t number, char *buffer, size_t bytes)
{
  char digits[24];
  int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  size_t at = 0;
  for (int i = 0; i < n && at + 2 < bytes; i++) {
    if (i > 0 && (n - i) % 3 == 0) buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = '\0';
  return buffer;
}

void replay_print_count(const char *label, uint64_t count, const char *remark)
{
  char number[32];
  replay_print_label(label);
  printf("%s%15s%s%s%s\n", style(STYLE_NAME), replay_number(count, number, sizeof number), style(STYLE_OFF),
         *remark ? "  " : "", remark);
}

void replay_print_bytes(const char *label, uint64_t bytes)
{
  char words[64], number[32];
  replay_print_label(label);
  printf("%s%15s%s  %s bytes\n", style(STYLE_NAME), units_format_bytes(bytes, words, sizeof words), style(STYLE_OFF),
         replay_number(bytes, number, sizeof number));
}

void replay_print_ratio(const char *label, double ratio, const char *remark)
{
  replay_print_label(label);
  printf("%s%15.3f%s  %s\n", style(STYLE_NAME), ratio, style(STYLE_OFF), remark);
}

static void replay_print_time(const char *label, double ns, const char *remark)
{
  if (ns <= 0) return;
  replay_print_label(label);
  printf("%s%12.1f ns%s  %s\n", style(STYLE_NAME), ns, style(STYLE_OFF), remark);
}

/* Counts of rows that a complete log does not have. */
static void replay_print_oddities(const struct trace *trace)
{
  if (trace->unmatched_frees)
    replay_print_count("unmatched frees", trace->unmatched_frees, "of unknown pointers: skipped");
  if (trace->failed_rows)
    replay_print_count("failed in the log", trace->failed_rows,
                       "rows \"allocate failure\" and \"free failure\": skipped");
  if (trace->overlaid) replay_print_count("address used twice", trace->overlaid, "the older block stays live");
  if (trace->other_sizes) replay_print_count("freed, other size", trace->other_sizes, "the allocation's size is used");
}

static void replay_print_failures(const struct replay_result *result)
{
  replay_print_label("failures");
  printf("%s%15llu%s\n", style(result->failures ? STYLE_BAD : STYLE_GOOD), (unsigned long long)result->failures,
         style(STYLE_OFF));
  if (!result->failure_reason) return;
  printf("\nFirst failure, line %u of the log: ", result->failure_line);
  output_text(stdout, result->failure_reason);
  putchar('\n');
}

void replay_print_head(const struct replay *replay, const char *runtime)
{
  const struct trace *trace = &replay->trace;
  char number[32];
  print_padded(STYLE_NAME, strcmp(replay->trace_file, "-") == 0 ? "standard input" : replay->trace_file, 0);
  printf(": %s events on %zu stream%s\n", replay_number(trace->rows, number, sizeof number), trace->n_streams,
         text_plural(trace->n_streams));
  printf("through ");
  print_padded(STYLE_NAME,
               replay->source.file ? replay->source.file : "a plain `device` resource (no graph file found)", 0);
  printf(" on device %ld of the runtime ", replay->device);
  output_text(stdout, runtime);
  printf("\n\n");
}

static int replay_print_lines(const struct replay *replay, const struct replay_result *result, int status)
{
  const struct trace *trace = &replay->trace;
  replay_print_head(replay, hipmm_runtime());
  replay_print_count("allocations", trace->allocations, "");
  replay_print_count("frees", trace->frees, "");
  replay_print_count("live at end", result->live_at_end, "");
  replay_print_oddities(trace);
  replay_print_bytes("peak requested", result->peak_requested_bytes);
  replay_print_bytes("peak reserved", result->peak_reserved_bytes);
  if (result->peak_requested_bytes) replay_print_ratio("overhead", replay_overhead(result), "reserved over requested");
  replay_print_time("first pass", result->first_ns, "an operation");
  replay_print_time("best later pass", result->warm_ns, "an operation");
  replay_print_failures(result);
  return output_finish(status);
}

int replay_print(const struct replay *replay, const struct replay_result *result, int status)
{
  return replay->json ? replay_print_json(replay, result, status) : replay_print_lines(replay, result, status);
}
