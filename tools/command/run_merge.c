/* SPDX-License-Identifier: MIT */
/* run_merge.c: `hipmm run --merge`: reads the JSON reports of many processes and makes one object of them, which
 * run_merge_print.c prints. A file may have the reports of several processes, several of one process (SIGUSR1 asks for one
 * at any time, and the last counts), and those of an earlier run. */
#include "run.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The reports of the files so far, as a JSON array; and what went wrong. */
struct run_merge {
  json_t *reports;
  size_t n_earlier; /* reports of earlier runs, which are left out */
  bool is_bad;
};

/* ---- Reading ---- */

/* NULL after a message. */
static json_t *run_merge_parse(const char *file, size_t line, const char *text)
{
  json_error_t error;
  json_t *report = json_loads(text, 0, &error);
  if (json_is_integer(json_object_get(report, "process")) && json_is_array(json_object_get(report, "memory")))
    return report;
  say("run: --merge: %s:%zu: %s%s", file, line, report ? "is JSON, but not a report of hipmm" : error.text,
      strncmp(text, "hipmm: report of", 16) ? "" : "; this is a report for people: write reports with --json");
  json_decref(report);
  return NULL;
}

/* Whether one process wrote both, about the same: its calls (hipmm run), or its own use of hipmm ("report" of the graph). */
static bool run_merge_is_same_process(const json_t *one, const json_t *other)
{
  return json_equal(json_object_get(one, "process"), json_object_get(other, "process")) &&
         json_equal(json_object_get(one, "host"), json_object_get(other, "host")) &&
         !json_object_get(one, "functions") == !json_object_get(other, "functions");
}

static json_int_t run_merge_time(const json_t *report)
{
  return json_integer_value(json_object_get(report, "run_time"));
}

/* Adds the reports of one file that are of its last run, the last one of each process. */
static void run_merge_add_file(struct run_merge *merge, const json_t *of_file)
{
  json_int_t last_run = 0;
  size_t i, n = json_array_size(of_file);
  for (i = 0; i < n; i++)
    if (run_merge_time(json_array_get(of_file, i)) > last_run) last_run = run_merge_time(json_array_get(of_file, i));
  for (i = 0; i < n; i++) {
    json_t *report = json_array_get(of_file, i);
    bool is_earlier = run_merge_time(report) && run_merge_time(report) < last_run, is_last = true;
    for (size_t later = i + 1; later < n && is_last; later++)
      is_last = !run_merge_is_same_process(report, json_array_get(of_file, later));
    merge->n_earlier += is_earlier;
    if (!is_earlier && is_last) json_array_append(merge->reports, report);
  }
}

static void run_merge_read(struct run_merge *merge, const char *file)
{
  FILE *stream = fopen(file, "re");
  char *line = NULL;
  size_t room = 0, number = 0;
  json_t *of_file = json_array(), *report;
  errno = stream ? 0 : errno;
  while (stream && getline(&line, &room, stream) > 0) {
    number++;
    if (line[strspn(line, " \t\r\n")] == '\0') continue;
    report = run_merge_parse(file, number, line);
    if (report) json_array_append_new(of_file, report);
    merge->is_bad |= !report;
    errno = 0;
  }
  if (!stream || ferror(stream)) {
    say("run: --merge: %s: %s", file, strerror(errno ? errno : EIO));
    merge->is_bad = true;
  }
  run_merge_add_file(merge, of_file);
  if (stream) fclose(stream);
  free(line);
  json_decref(of_file);
}

/* A file's name, which may look like a pattern, or a pattern for names that the shell was kept from expanding. */
static void run_merge_read_all(struct run_merge *merge, const char *pattern)
{
  glob_t found;
  if (access(pattern, F_OK) == 0) {
    run_merge_read(merge, pattern);
    return;
  }
  int code = glob(pattern, 0, NULL, &found);
  if (code == GLOB_NOMATCH) {
    say("run: --merge: %s: no such file", pattern);
  } else if (code) {
    say("run: --merge: %s: the folder cannot be read", pattern);
  }
  merge->is_bad |= code != 0;
  for (size_t i = 0; !code && i < found.gl_pathc; i++) run_merge_read(merge, found.gl_pathv[i]);
  if (!code) globfree(&found);
}

/* ---- Rows ---- */

static const char *const run_merge_place[] = {"rank", "host", "process", "program"};
static const char *const run_merge_sizes[] = {"peak_requested_bytes", "peak_reserved_bytes", "live_bytes",
                                              "live_blocks"};

enum {
  PLACES = sizeof run_merge_place / sizeof *run_merge_place,
  SIZES = sizeof run_merge_sizes / sizeof *run_merge_sizes
};

static void run_merge_copy(json_t *to, const json_t *from, const char *key)
{
  json_t *value = json_object_get(from, key);
  json_object_set_new(to, key, value ? json_incref(value) : json_null());
}

static json_t *run_merge_row(const json_t *report, const json_t *memory)
{
  static const char *const keys[] = {"device", "kind", "stack"};
  json_t *row = json_object();
  for (size_t i = 0; i < PLACES; i++) run_merge_copy(row, report, run_merge_place[i]);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) run_merge_copy(row, memory, keys[i]);
  for (size_t i = 0; i < SIZES; i++) run_merge_copy(row, memory, run_merge_sizes[i]);
  return row;
}

/* Orders reports: by rank, those without one last, then by host and process. */
static int run_merge_compare(const void *one, const void *other)
{
  const json_t *const *a = one, *const *b = other;
  const json_t *first = json_object_get(*a, "rank"), *second = json_object_get(*b, "rank");
  if (json_is_integer(first) != json_is_integer(second)) return json_is_integer(first) ? -1 : 1;
  json_int_t number = json_integer_value(first), other_number = json_integer_value(second);
  if (number != other_number) return number < other_number ? -1 : 1;
  const char *host = json_string_value(json_object_get(*a, "host"));
  const char *other_host = json_string_value(json_object_get(*b, "host"));
  int order = strcmp(host ? host : "", other_host ? other_host : "");
  if (order) return order;
  number = json_integer_value(json_object_get(*a, "process"));
  other_number = json_integer_value(json_object_get(*b, "process"));
  return number < other_number ? -1 : number > other_number;
}

/* ---- What the reports say together ---- */

/* Numbers of a file can be any: a sum that is too large is the largest. */
static json_int_t run_merge_add(json_int_t sum, const json_t *number)
{
  return __builtin_add_overflow(sum, json_integer_value(number), &sum) ? INT64_MAX : sum;
}

/* Calls, or allocations, that failed. */
static json_int_t run_merge_failed(const json_t *report)
{
  const char *name;
  json_t *function;
  json_int_t failed = json_integer_value(json_object_get(report, "failed_allocations"));
  json_object_foreach(json_object_get(report, "functions"), name, function)
  {
    failed = run_merge_add(failed, json_object_get(function, "failed"));
  }
  return failed;
}

static bool run_merge_is_idle(const json_t *report)
{
  return !json_array_size(json_object_get(report, "memory")) &&
         !json_object_size(json_object_get(report, "functions")) && !run_merge_failed(report);
}

/* Whether the report is of a process that only started others, such as torchrun, or the shell of a rank. */
static bool run_merge_is_launcher(const json_t *report, const json_t *all)
{
  const json_t *rank = json_object_get(report, "rank");
  if (!run_merge_is_idle(report)) return false;
  bool is_launcher = !json_is_integer(rank);
  for (size_t i = 0; i < json_array_size(all) && !is_launcher; i++)
    is_launcher =
        json_equal(rank, json_object_get(json_array_get(all, i), "rank")) && !run_merge_is_idle(json_array_get(all, i));
  return is_launcher;
}

static void run_merge_add_failure(json_t *failures, const json_t *report)
{
  json_int_t failed = run_merge_failed(report);
  if (!failed && !json_is_string(json_object_get(report, "signal"))) return;
  json_t *failure = json_object();
  for (size_t i = 0; i < PLACES; i++) run_merge_copy(failure, report, run_merge_place[i]);
  json_object_set_new(failure, "failed", json_integer(failed));
  run_merge_copy(failure, report, "first_failure");
  run_merge_copy(failure, report, "signal");
  json_array_append_new(failures, failure);
}

/* Adds a row to the total of its kind of memory. A size that the row lacks is left out. */
static void run_merge_add_total(json_t *totals, const json_t *row)
{
  json_t *kind = json_object_get(row, "kind"), *total = NULL;
  for (size_t i = 0; i < json_array_size(totals) && !total; i++)
    if (json_equal(kind, json_object_get(json_array_get(totals, i), "kind"))) total = json_array_get(totals, i);
  if (!total) {
    total = json_pack("{s:O}", "kind", kind);
    for (size_t i = 0; i < SIZES; i++) json_object_set_new(total, run_merge_sizes[i], json_null());
    json_array_append_new(totals, total);
  }
  for (size_t i = 0; i < SIZES; i++) {
    json_t *size = json_object_get(row, run_merge_sizes[i]), *sum = json_object_get(total, run_merge_sizes[i]);
    if (json_is_integer(size))
      json_object_set_new(total, run_merge_sizes[i], json_integer(run_merge_add(json_integer_value(sum), size)));
  }
}

/* What a row holds at most: of the device, or where that is not known, for the program. */
static json_int_t run_merge_held(const json_t *row)
{
  const json_t *reserved = json_object_get(row, "peak_reserved_bytes");
  return json_integer_value(json_is_integer(reserved) ? reserved : json_object_get(row, "peak_requested_bytes"));
}

/* The ranks of the job that no report is of. The largest job that any report tells of counts. */
static void run_merge_add_ranks(json_t *result, json_t *const *reports, size_t n)
{
  enum { RANKS_MOST = 1 << 20 };
  json_int_t ranks = 0;
  for (size_t i = 0; i < n; i++) {
    json_int_t told = json_integer_value(json_object_get(reports[i], "ranks"));
    if (told > ranks) ranks = told;
  }
  json_t *missing = json_array();
  size_t at = 0;
  for (json_int_t rank = 0; rank < ranks && ranks <= RANKS_MOST; rank++) { /* the reports are in the order of ranks */
    while (at < n && json_integer_value(json_object_get(reports[at], "rank")) < rank) at++;
    const json_t *found = at < n ? json_object_get(reports[at], "rank") : NULL;
    if (!json_is_integer(found) || json_integer_value(found) != rank)
      json_array_append_new(missing, json_integer(rank));
  }
  json_object_set_new(result, "ranks", ranks ? json_integer(ranks) : json_null());
  json_object_set_new(result, "missing_ranks", missing);
}

/* NULL without host memory. */
static json_t *run_merge_make(const json_t *all)
{
  size_t n = 0, count = json_array_size(all), entries;
  json_t **reports = calloc(count + 1, sizeof *reports);
  json_t *rows = json_array(), *totals = json_array(), *failures = json_array(), *most = NULL;
  for (size_t i = 0; reports && i < count; i++)
    if (!run_merge_is_launcher(json_array_get(all, i), all)) reports[n++] = json_array_get(all, i);
  if (n) qsort(reports, n, sizeof *reports, run_merge_compare);
  for (size_t i = 0; i < n; i++) {
    const json_t *memory = json_object_get(reports[i], "memory");
    entries = json_array_size(memory);
    for (size_t k = 0; k < entries || k == 0; k++) {
      json_t *row = run_merge_row(reports[i], json_array_get(memory, k)); /* of a rank without memory too */
      json_array_append_new(rows, row);
      if (k < entries) run_merge_add_total(totals, row);
      if (k < entries && (!most || run_merge_held(row) > run_merge_held(most))) most = row;
    }
    run_merge_add_failure(failures, reports[i]);
  }
  json_t *result = json_pack("{s:I, s:o, s:o, s:O, s:o}", "reports", (json_int_t)n, "memory", rows, "totals", totals,
                             "most", most ? most : json_null(), "failures", failures);
  if (result) run_merge_add_ranks(result, reports, n);
  bool is_good = reports != NULL;
  free(reports);
  if (is_good) return result;
  json_decref(result);
  return NULL;
}

int run_merge(char **patterns, size_t n_patterns, bool is_json)
{
  struct run_merge merge = {.reports = json_array()};
  for (size_t i = 0; i < n_patterns; i++) run_merge_read_all(&merge, patterns[i]);
  if (merge.n_earlier)
    note("run: --merge: %zu report%s of earlier runs in the same files left out", merge.n_earlier,
         merge.n_earlier == 1 ? "" : "s");
  int status = merge.is_bad ? CMD_BAD : CMD_GOOD;
  json_t *result = json_array_size(merge.reports) || !merge.is_bad ? run_merge_make(merge.reports) : NULL;
  bool has_nothing = !json_array_size(merge.reports) && merge.is_bad;
  json_decref(merge.reports);
  if (has_nothing) return status;
  if (is_json || !result) return output_json(result, status);
  run_merge_print(result);
  json_decref(result);
  return output_finish(status);
}
