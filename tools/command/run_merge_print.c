/* SPDX-License-Identifier: MIT */
/* run_merge_print.c: the table of `hipmm run --merge`, for people. */
#include "lines.h"
#include "run.h"
#include "table.h"

#include "../../core/base/units.h"

static const struct table_column merge_columns[] = {{"rank", "rank"},
                                                    {"host", "host"},
                                                    {"process", "process"},
                                                    {"program", "program"},
                                                    {"device", "device"},
                                                    {"memory", "kind"},
                                                    {"peak requested*", "peak_requested_bytes"},
                                                    {"peak reserved*", "peak_reserved_bytes"},
                                                    {"left at exit*", "live_bytes"},
                                                    {NULL, NULL}};

static void run_merge_print_table(const json_t *rows, const json_t *totals)
{
  struct table_width widths[TABLE_MOST_COLUMNS];
  json_t *table = table_make("", merge_columns), *row;
  size_t i;
  json_array_foreach(rows, i, row)
  {
    const char *stack = lines_text(row, "stack");
    json_t *shown = json_copy(row);
    if (*stack) json_object_set_new(shown, "kind", json_pack("s++", lines_text(row, "kind"), ", ", stack));
    table_add(table, merge_columns, NULL, shown);
    json_decref(shown);
  }
  json_array_foreach(totals, i, row)
  {
    json_object_set_new(row, "rank", json_string("sum"));
    json_object_set_new(row, "host", json_string("of the peaks"));
    table_add(table, merge_columns, NULL, row);
  }
  table_measure(table, widths);
  table_print(table, widths, "");
  json_decref(table);
}

/* "rank 3 on node2 (train.py, process 4711)". */
static void run_merge_print_place(const json_t *row)
{
  const json_t *rank = json_object_get(row, "rank");
  const char *host = lines_text(row, "host"), *program = lines_text(row, "program");
  if (json_is_integer(rank)) printf("rank %lld on ", (long long)json_integer_value(rank));
  output_text(stdout, *host ? host : "an unknown host");
  printf(" (");
  output_text(stdout, *program ? program : "a program");
  printf(", process %lld)", (long long)json_integer_value(json_object_get(row, "process")));
}

static void run_merge_print_most(const json_t *most)
{
  bool is_reserved = json_is_integer(json_object_get(most, "peak_reserved_bytes"));
  const char *key = is_reserved ? "peak_reserved_bytes" : "peak_requested_bytes";
  if (!json_is_integer(json_object_get(most, key))) return;
  printf("most %s: ", is_reserved ? "reserved" : "requested");
  run_merge_print_place(most);
  printf(", %s on device %lld\n", UNITS_BYTES(lines_count(most, key)),
         (long long)json_integer_value(json_object_get(most, "device")));
}

static void run_merge_print_failure(const json_t *failure)
{
  const char *first = lines_text(failure, "first_failure"), *signal = lines_text(failure, "signal");
  unsigned long long failed = lines_count(failure, "failed");
  printf("  ");
  run_merge_print_place(failure);
  printf(":");
  if (*signal) {
    printf(" ended by ");
    output_text(stdout, signal);
    printf("%s", failed ? ";" : "");
  }
  if (failed) printf(" %llu failed%s", failed, *first ? ", first " : "");
  if (failed) output_text(stdout, first);
  putchar('\n');
}

/* Ranks of which there is no report, the first few. */
static void run_merge_print_missing(const json_t *result)
{
  enum { SHOWN = 16 };
  const json_t *missing = json_object_get(result, "missing_ranks");
  size_t n = json_array_size(missing);
  if (!n) return;
  printf("no report of %zu of %llu ranks:", n, (unsigned long long)lines_count(result, "ranks"));
  for (size_t i = 0; i < n && i < SHOWN; i++)
    printf("%s %lld", i ? "," : "", (long long)json_integer_value(json_array_get(missing, i)));
  printf("%s\n", n > SHOWN ? ", …" : "");
}

void run_merge_print(const json_t *result)
{
  size_t i;
  json_t *failure, *failures = json_object_get(result, "failures");
  if (!lines_count(result, "reports")) printf("no process used GPU memory\n");
  if (json_array_size(json_object_get(result, "memory")))
    run_merge_print_table(json_object_get(result, "memory"), json_object_get(result, "totals"));
  run_merge_print_most(json_object_get(result, "most"));
  run_merge_print_missing(result);
  if (json_array_size(failures)) printf("failures:\n");
  json_array_foreach(failures, i, failure) run_merge_print_failure(failure);
}
