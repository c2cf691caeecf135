/* SPDX-License-Identifier: MIT */
/* report.c: `hipmm report`: shows the contents of an allocation log, as a page for a browser or a terminal, or as
 * JSON. */
#include "report.h"
#include "../cmd.h"
#include "../inputs.h"

#include <string.h>

/* What is reported, and how. */
struct report {
  const char *output; /* NULL: no page */
  bool as_text, as_json;
  char title[PATH_MAX + 32];
};

/* Writes the page; without blocks that of snapshots and reports of processes. False: the error was printed. */
static bool report_write(const char *name, const json_t *summary, const struct blocks *blocks)
{
  FILE *file = output_open_result(name);
  bool good = file && (blocks ? report_html(file, summary, blocks) : state_html(file, summary));
  return output_close_result("report", name, file, good);
}

/* "report.html" beside "log.csv" would be a surprise; the name says what it is of. */
static void report_title(char *const *files, size_t n, char *title, size_t title_bytes)
{
  const char *slash = strrchr(files[0], '/'), *name = slash ? slash + 1 : files[0];
  if (strcmp(name, "-") == 0) name = "standard input";
  if (n > 1)
    snprintf(title, title_bytes, "%s and %zu more", name, n - 1);
  else
    snprintf(title, title_bytes, "%s", name);
}

/* Shows a summary, which is NULL without memory, in the forms that are asked for. */
static int report_show(const struct report *report, json_t *summary, const struct blocks *blocks)
{
  int status = summary ? CMD_GOOD : CMD_BAD;
  if (!summary) say("report: out of memory");
  if (summary && report->output && !report_write(report->output, summary, blocks)) status = CMD_BAD;
  if (summary && report->as_json) status = output_json(json_incref(summary), status);
  if (summary && !report->as_json) {
    bool shows_text = report->as_text || !report->output;
    if (shows_text && blocks) report_text(summary);
    if (shows_text && !blocks) state_text(summary);
    status = output_finish(status);
  }
  json_decref(summary);
  return status;
}

/* Of files that are no logs. */
static int report_states(const struct report *report, const struct trace_logs *logs)
{
  json_t *all = json_array();
  for (size_t i = 0; i < logs->n; i++) json_array_extend(all, (json_t *)trace_logs_state(logs, i));
  int status = report_show(report, state_summary(all, report->title), NULL);
  json_decref(all);
  return status;
}

static int report_logs(const struct report *report, struct trace_logs *logs)
{
  struct blocks blocks;
  if (!blocks_read(&blocks, logs)) return CMD_BAD;
  json_t *title = output_json_string(report->title);
  int status = report_show(report, title ? summary_make(&blocks, json_string_value(title)) : NULL, &blocks);
  json_decref(title);
  blocks_clear(&blocks);
  return status;
}

static int report_files(const struct report *report, char *const *files, size_t n)
{
  struct trace_logs logs;
  size_t states = 0;
  if (!trace_logs_open(&logs, files, n)) return CMD_BAD;
  for (size_t i = 0; i < n; i++) states += trace_logs_state(&logs, i) != NULL;
  if (!states) return report_logs(report, &logs);
  int status = CMD_BAD;
  if (states == n)
    status = report_states(report, &logs);
  else
    say("report: of the %zu files %zu %s no log but a snapshot or the report of a process; report these apart", n,
        states, states == 1 ? "is" : "are");
  trace_logs_close(&logs);
  return status;
}

static int report_run(int argc, char **argv)
{
  struct report report = {0};
  int status;
  const struct argument rows[] = {
      {"output", "FILE", "write a page for browsers; - is standard output", .letter = 'o', .value = &report.output},
      {"text", NULL, "print a page for terminals: the default without --output", .flag = &report.as_text},
      {"json", NULL, "print one JSON object", .flag = &report.as_json},
  };
  struct arguments arguments = {&report_command, rows, sizeof rows / sizeof *rows, 1, TRACE_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (report.as_text && report.as_json) {
    say("report: --text and --json are two answers; ask for one");
    return CMD_USAGE;
  }
  const struct inputs inputs = {"report", arguments.operands, arguments.n_operands};
  const char *other = report.as_text ? "--text" : report.as_json ? "--json" : NULL;
  if (!output_check_result("report", report.output, other)) return CMD_USAGE;
  if (report.output && !inputs_check_output(&inputs, strcmp(report.output, "-") ? report.output : NULL))
    return CMD_USAGE;
  report_title(arguments.operands, arguments.n_operands, report.title, sizeof report.title);
  return report_files(&report, arguments.operands, arguments.n_operands);
}

const struct command report_command = {
    "report", "show the peak, holders, leaks and fragmentation of an allocation log", "LOG…",
    "Reads allocation logs, in any format that `hipmm convert` reads, and shows how the program used memory: how "
    "much was live at each moment and where; the peak, and who held it; sizes, lifetimes, streams and threads; "
    "leaks; fragmentation; and call stacks if the log has them.\n"
    "\n"
    "A snapshot (hipmm_snapshot(), hipmm.snapshot()) and the report of a process (`hipmm run --report=FILE --json`, "
    "\"report\" of the graph) have no events. It shows who holds how much in them, and says what they cannot tell.\n"
    "\n"
    "The page for browsers is one file that needs nothing else. If there are more than a million blocks, it shows "
    "those that hold the most memory for the longest time.\n"
    "\n"
    "LOG: `-` is standard input; several become one, in order of time. Exit status 1 if a log is malformed or the page "
    "cannot be written.",
    report_run};
