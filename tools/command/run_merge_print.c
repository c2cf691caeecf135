/* SPDX-License-Identifier: MIT */
/* run_merge_print.c: the table of `hipmm run --merge`, for people. */
#include "run.h"

#include "../../core/base/units.h"
#include <stdlib.h>
#include <string.h>

/* The columns; `is_right`: numbers. */
static const struct {
  const char *title, *key;
  bool is_right, is_size;
} merge_columns[] = {{"rank", "rank", true, false},
                     {"host", "host", false, false},
                     {"process", "process", true, false},
                     {"program", "program", false, false},
                     {"device", "device", true, false},
                     {"memory", "kind", false, false},
                     {"peak requested", "peak_requested_bytes", true, true},
                     {"peak reserved", "peak_reserved_bytes", true, true},
                     {"left at exit", "live_bytes", true, true}};

enum { COLUMNS = sizeof merge_columns / sizeof *merge_columns, CELL_BYTES = 160 };

/* The text of a value; "-" for one that is not known. Control characters become "?". */
static const char *run_merge_print_cell(const json_t *row, int column, char *cell)
{
  const json_t *value = json_object_get(row, merge_columns[column].key);
  const char *stack = json_string_value(json_object_get(row, "stack"));
  if (json_is_string(value) && *json_string_value(value))
    snprintf(cell, CELL_BYTES, stack && !strcmp(merge_columns[column].key, "kind") ? "%s, %s" : "%s",
             json_string_value(value), stack);
  else if (!json_is_integer(value))
    snprintf(cell, CELL_BYTES, "-");
  else if (merge_columns[column].is_size && json_integer_value(value) >= 0)
    units_format_bytes((uint64_t)json_integer_value(value), cell, CELL_BYTES);
  else
    snprintf(cell, CELL_BYTES, "%lld", (long long)json_integer_value(value));
  return cell;
}

static void run_merge_print_padded(const char *text, int column, size_t width)
{
  size_t used = text_width(text), left = width > used ? width - used : 0;
  if (column) printf("  ");
  if (merge_columns[column].is_right) printf("%*s", (int)left, "");
  output_text(stdout, text);
  if (!merge_columns[column].is_right && column + 1 < COLUMNS) printf("%*s", (int)left, "");
}

static void run_merge_print_row(const json_t *row, const size_t *widths)
{
  char cell[CELL_BYTES];
  for (int column = 0; column < COLUMNS; column++)
    run_merge_print_padded(run_merge_print_cell(row, column, cell), column, widths[column]);
  putchar('\n');
}

static void run_merge_print_table(const json_t *rows, json_t *totals)
{
  size_t widths[COLUMNS], i;
  char cell[CELL_BYTES];
  json_t *row;
  json_array_foreach(totals, i, row)
  {
    json_object_set_new(row, "rank", json_string("sum"));
    json_object_set_new(row, "host", json_string("of the peaks"));
  }
  for (int column = 0; column < COLUMNS; column++) {
    widths[column] = text_width(merge_columns[column].title);
    for (i = 0; i < json_array_size(rows) + json_array_size(totals); i++) {
      bool is_total = i >= json_array_size(rows);
      row = is_total ? json_array_get(totals, i - json_array_size(rows)) : json_array_get(rows, i);
      size_t width = text_width(run_merge_print_cell(row, column, cell));
      if (width > widths[column]) widths[column] = width;
    }
  }
  for (int column = 0; column < COLUMNS; column++)
    run_merge_print_padded(merge_columns[column].title, column, widths[column]);
  putchar('\n');
  json_array_foreach(rows, i, row) run_merge_print_row(row, widths);
  json_array_foreach(totals, i, row) run_merge_print_row(row, widths);
}

/* "rank 3 on node2 (train.py, process 4711)". */
static void run_merge_print_place(const json_t *row)
{
  const json_t *rank = json_object_get(row, "rank");
  const char *host = json_string_value(json_object_get(row, "host"));
  const char *program = json_string_value(json_object_get(row, "program"));
  if (json_is_integer(rank)) printf("rank %lld on ", (long long)json_integer_value(rank));
  output_text(stdout, host ? host : "an unknown host");
  printf(" (");
  output_text(stdout, program && *program ? program : "a program");
  printf(", process %lld)", (long long)json_integer_value(json_object_get(row, "process")));
}

static void run_merge_print_most(const json_t *most)
{
  char size[CELL_BYTES];
  bool is_reserved = json_is_integer(json_object_get(most, "peak_reserved_bytes"));
  const json_t *peak = json_object_get(most, is_reserved ? "peak_reserved_bytes" : "peak_requested_bytes");
  if (!json_is_integer(peak)) return;
  printf("most %s: ", is_reserved ? "reserved" : "requested");
  run_merge_print_place(most);
  printf(", %s on device %lld\n", units_format_bytes((uint64_t)json_integer_value(peak), size, sizeof size),
         (long long)json_integer_value(json_object_get(most, "device")));
}

static void run_merge_print_failure(const json_t *failure)
{
  const char *first = json_string_value(json_object_get(failure, "first_failure"));
  const char *signal = json_string_value(json_object_get(failure, "signal"));
  long long failed = (long long)json_integer_value(json_object_get(failure, "failed"));
  printf("  ");
  run_merge_print_place(failure);
  printf(":");
  if (signal) {
    printf(" ended by ");
    output_text(stdout, signal);
    printf("%s", failed ? ";" : "");
  }
  if (failed) printf(" %lld failed%s", failed, first ? ", first " : "");
  if (failed && first) output_text(stdout, first);
  putchar('\n');
}

/* Ranks of which there is no report, the first few. */
static void run_merge_print_missing(const json_t *result)
{
  enum { SHOWN = 16 };
  const json_t *missing = json_object_get(result, "missing_ranks");
  size_t n = json_array_size(missing);
  if (!n) return;
  printf("no report of %zu of %lld ranks:", n, (long long)json_integer_value(json_object_get(result, "ranks")));
  for (size_t i = 0; i < n && i < SHOWN; i++)
    printf("%s %lld", i ? "," : "", (long long)json_integer_value(json_array_get(missing, i)));
  printf("%s\n", n > SHOWN ? ", …" : "");
}

void run_merge_print(const json_t *result)
{
  size_t i;
  json_t *failure, *failures = json_object_get(result, "failures");
  if (!json_integer_value(json_object_get(result, "reports"))) printf("no process used GPU memory\n");
  if (json_array_size(json_object_get(result, "memory")))
    run_merge_print_table(json_object_get(result, "memory"), json_object_get(result, "totals"));
  run_merge_print_most(json_object_get(result, "most"));
  run_merge_print_missing(result);
  if (json_array_size(failures)) printf("failures:\n");
  json_array_foreach(failures, i, failure) run_merge_print_failure(failure);
}
