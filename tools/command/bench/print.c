/* SPDX-License-Identifier: MIT */
/* print.c: what `hipmm bench` found, as lines, as a table of several, and as JSON. */
#include "../lines.h"
#include "bench.h"

#include "../../../core/base/text.h"
#include "../../../core/base/units.h"
#include <string.h>

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* The functions that were called, by name. */
static json_t *bench_print_json_calls(const struct bench_result *result, const struct call_counts *calls)
{
  if (!result->calls_are_known) return json_null();
  json_t *object = json_object();
  const char *name;
  for (size_t row = 0; (name = call_counts_name(row)); row++)
    if (calls->counts[row] > 0) json_object_set_new(object, name, json_integer((json_int_t)calls->counts[row]));
  return object;
}

static json_t *bench_print_json_result(const struct bench_plan *plan, const struct bench_result *result)
{
  json_t *object = json_pack(
      "{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:I, s:o}", "workload", bench_workload_name(plan->workload),
      "threads", (json_int_t)plan->threads, "ops", (json_int_t)result->ops, "ns_per_op", result->ns_per_op, "p50_ns",
      bench_times_ns(&result->times, 0.5), "p99_ns", bench_times_ns(&result->times, 0.99), "max_ns",
      bench_times_ns(&result->times, 1), "peak_requested_bytes", (json_int_t)result->peak_requested_bytes,
      "peak_reserved_bytes", (json_int_t)result->peak_reserved_bytes, "overhead",
      lines_overhead(result->peak_reserved_bytes, result->peak_requested_bytes), "failures",
      (json_int_t)result->failures, "runtime_calls", bench_print_json_calls(result, &result->calls));
  if (plan->workload != BENCH_REPLAY || !object) return object;
  json_object_set_new(object, "ns_per_op_cold", json_real(result->cold_ns_per_op));
  json_object_set_new(object, "runtime_calls_cold", bench_print_json_calls(result, &result->cold_calls));
  return object;
}

static double bench_print_ratio(const struct bench_result *result, const struct bench_result *first)
{
  return first->ns_per_op > 0 ? result->ns_per_op / first->ns_per_op : 0;
}

static int bench_print_json_comparison(const struct bench_plan *plan, char *const *files, size_t n,
                                       const struct bench_result *results, int status)
{
  json_t *array = json_array();
  for (size_t i = 0; i < n; i++) {
    json_t *object = bench_print_json_result(plan, &results[i]);
    json_object_set_new(object, "config", output_json_string(files[i]));
    json_object_set_new(object, "ratio", json_real(bench_print_ratio(&results[i], results)));
    json_array_append_new(array, object);
  }
  return output_json(json_pack("{s:s, s:I, s:I, s:o}", "workload", bench_workload_name(plan->workload), "threads",
                               (json_int_t)plan->threads, "rounds", (json_int_t)BENCH_ROUNDS, "configurations", array),
                     status);
}

/* ---- Lines ----------------------------------------------------------------------------------------------------- */

static const struct line bench_lines[] = {
    {"ops", "operations", LINE_COUNT, NULL},
    {"ns_per_op", "mean", LINE_NS, "an operation"},
    {"ns_per_op_cold", "mean, first pass", LINE_NS, "an operation"},
    {"p50_ns", "half take at most", LINE_NS, "of those timed singly"},
    {"p99_ns", "99% take at most", LINE_NS, NULL},
    {"max_ns", "longest", LINE_NS, NULL},
    {"peak_requested_bytes", "peak requested", LINE_BYTES, NULL},
    {"peak_reserved_bytes", "peak reserved", LINE_BYTES, NULL},
    {"overhead", "overhead", LINE_RATIO, "reserved over requested"},
    {"failures", "failures", LINE_FAILURES, NULL},
};

static void bench_print_calls(const char *label, const struct bench_result *result, const struct call_counts *calls)
{
  const char *name;
  lines_print_label(label);
  if (!result->calls_are_known) {
    printf("%15s  this runtime does not count them\n", "unknown");
    return;
  }
  printf("%s%15llu%s\n", style(STYLE_NAME), (unsigned long long)call_counts_total(calls), style(STYLE_OFF));
  for (size_t row = 0; (name = call_counts_name(row)); row++)
    if (calls->counts[row] > 0) printf("    %-40s %llu\n", name, (unsigned long long)calls->counts[row]);
}

static void bench_print_failures(const char *file, const struct bench_result *result)
{
  if (result->failures == 0) return;
  printf("\nFirst failure");
  if (file) {
    printf(" of ");
    output_text(stdout, file);
  }
  printf(": ");
  output_text(stdout, result->failure_reason ? result->failure_reason : "out of memory");
  putchar('\n');
}

static void bench_print_head(const struct bench_plan *plan)
{
  printf("%s%s%s", style(STYLE_NAME), bench_workload_name(plan->workload), style(STYLE_OFF));
  if (plan->workload == BENCH_REPLAY) {
    printf(" of ");
    output_text(stdout, plan->trace_file);
  }
  printf(", %zu thread%s", plan->threads, text_plural(plan->threads));
}

int bench_print(const struct bench_plan *plan, const struct source *source, const struct bench_result *result,
                int status)
{
  json_t *json = bench_print_json_result(plan, result);
  if (plan->json || !json) return output_json(json, status);
  bench_print_head(plan);
  printf(", through ");
  output_text(stdout, source->file ? source->file : "a plain `device` resource (no graph file found)");
  printf(" on the runtime ");
  output_text(stdout, hipmm_runtime());
  printf("\n\n");
  lines_print(json, bench_lines, sizeof bench_lines / sizeof *bench_lines);
  bench_print_calls("HIP calls", result, &result->calls);
  if (plan->workload == BENCH_REPLAY) bench_print_calls("HIP calls, first", result, &result->cold_calls);
  bench_print_failures(NULL, result);
  json_decref(json);
  return output_finish(status);
}

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

/* The heads of the figures, as wide as the figures. */
static const char print_times_heads[] = "      mean  ratio       50%       99%     longest failures";
static const char print_memory_heads[] = "   requested     reserved res/req  calls/op";

enum { PRINT_LEAST_NAME = 13, PRINT_FIGURES = sizeof print_times_heads + 2 };

static void bench_print_times_row(const struct bench_result *result, const struct bench_result *first)
{
  printf(" %9.1f %6.2f %9.1f %9.1f %11.1f %s%8llu%s\n", result->ns_per_op, bench_print_ratio(result, first),
         bench_times_ns(&result->times, 0.5), bench_times_ns(&result->times, 0.99), bench_times_ns(&result->times, 1),
         style(result->failures ? STYLE_BAD : STYLE_GOOD), (unsigned long long)result->failures, style(STYLE_OFF));
}

static void bench_print_memory_row(const struct bench_result *result, const struct bench_result *first)
{
  char calls[32] = "unknown";
  (void)first;
  if (result->calls_are_known && result->ops > 0)
    snprintf(calls, sizeof calls, "%.4f", (double)call_counts_total(&result->calls) / (double)result->ops);
  printf(" %12s %12s %7.3f %9s\n", UNITS_BYTES(result->peak_requested_bytes), UNITS_BYTES(result->peak_reserved_bytes),
         lines_overhead(result->peak_reserved_bytes, result->peak_requested_bytes), calls);
}

/* One row for each configuration. A name that leaves no room for the figures has a line of its own. */
static void bench_print_table(const char *heads, char *const *files, size_t n, const struct bench_result *results,
                              void (*print_row)(const struct bench_result *result, const struct bench_result *first))
{
  size_t width = PRINT_LEAST_NAME, room = terminal_width() > PRINT_FIGURES ? terminal_width() - PRINT_FIGURES : 0;
  for (size_t i = 0; i < n; i++)
    if (text_width(files[i]) > width && text_width(files[i]) <= room) width = text_width(files[i]);
  printf("\n  ");
  print_padded(STYLE_FAINT, "configuration", width);
  printf("%s%s%s\n", style(STYLE_FAINT), heads, style(STYLE_OFF));
  for (size_t i = 0; i < n; i++) {
    bool is_long = text_width(files[i]) > width;
    printf("  ");
    print_padded(STYLE_NAME, files[i], width);
    if (is_long) printf("\n  %*s", (int)width, "");
    print_row(&results[i], results);
  }
}

int bench_print_comparison(const struct bench_plan *plan, char *const *files, size_t n,
                           const struct bench_result *results, int status)
{
  if (plan->json) return bench_print_json_comparison(plan, files, n, results, status);
  bench_print_head(plan);
  printf(", %d rounds in turns on the runtime ", BENCH_ROUNDS);
  output_text(stdout, hipmm_runtime());
  printf("; ns an operation,\nthe median of the rounds\n");
  bench_print_table(print_times_heads, files, n, results, bench_print_times_row);
  bench_print_table(print_memory_heads, files, n, results, bench_print_memory_row);
  for (size_t i = 0; i < n; i++) bench_print_failures(files[i], &results[i]);
  return output_finish(status);
}
