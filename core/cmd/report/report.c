/* SPDX-License-Identifier: MIT */
/* report.c: `hipmm report`: shows what an allocation log tells, as a page for a browser or a terminal, or as JSON. */
#include "report.h"
#include "../../base/output_file.h"
#include "../cmd.h"
#include "summary.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Writes the page. False: the error was printed. */
static bool report_write(const char *name, const json_t *summary, const struct blocks *blocks)
{
  int descriptor = output_file_open(name, OUTPUT_FILE_RESULT);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
  bool good = file && report_html(file, summary, blocks);
  int code = errno;
  if (file && fclose(file) && good) {
    good = false;
    code = errno;
  }
  if (!file && descriptor >= 0) close(descriptor);
  if (!good) say("report: cannot write \"%s\": %s", name, output_file_reason(code));
  return good;
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

static int report_run(int argc, char **argv)
{
  struct blocks blocks;
  const char *output = NULL;
  char title[PATH_MAX + 32];
  bool as_text = false, as_json = false;
  int status;
  const struct argument rows[] = {
      {.name = "output", .letter = 'o', .value_name = "FILE", .doc = "write a page for browsers", .value = &output},
      {.name = "text", .doc = "print a page for terminals; so by default without --output", .flag = &as_text},
      {.name = "json", .doc = "print one JSON object", .flag = &as_json},
  };
  struct arguments arguments = {&report_command, rows, sizeof rows / sizeof *rows, 1, TRACE_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (as_text && as_json) {
    say("report: --text and --json are two answers; ask for one");
    return CMD_USAGE;
  }
  if (!blocks_read(&blocks, arguments.operands, arguments.n_operands)) return CMD_BAD;
  report_title(arguments.operands, arguments.n_operands, title, sizeof title);
  json_t *safe_title = output_json_string(title);
  json_t *summary = safe_title ? summary_make(&blocks, json_string_value(safe_title)) : NULL;
  json_decref(safe_title);
  status = CMD_GOOD;
  if (!summary) say("report: out of memory");
  if (!summary || (output && !report_write(output, summary, &blocks))) status = CMD_BAD;
  if (summary && as_json) status = output_json(json_incref(summary), status);
  if (summary && !as_json && (as_text || !output)) {
    report_text(summary, &blocks);
    status = output_finish(status);
  }
  json_decref(summary);
  blocks_clear(&blocks);
  return status;
}

const struct command report_command = {
    "report", "show what an allocation log tells: peak, holders, leaks, fragmentation", "LOG…",
    "Reads allocation logs, in any format that `hipmm convert` reads, and shows what the program did with memory: how "
    "much "
    "was live at each moment and where; the peak, and who held it; sizes, lifetimes, streams and threads; what was "
    "never "
    "freed; fragmentation; and call stacks where the log has them.\n"
    "\n"
    "The page for browsers is one file that needs nothing else. Of more than a million blocks it shows those that hold "
    "the "
    "most memory for the longest time.\n"
    "\n"
    "LOG: `-` is standard input; several become one, in order of time. Exit status 1 if a log is malformed or the page "
    "cannot be written.",
    report_run};
