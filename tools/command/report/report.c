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
  bool as_text, as_json, compares;
  struct trace_choice choice;
  char *const *files;
  char title[PATH_MAX + 32];
};

/* Writes the page; without blocks that of snapshots and reports of processes. False: the error was printed. */
static bool report_write(const struct report *report, const json_t *summaries, const json_t *job,
                         const struct blocks_list *list)
{
  FILE *file = output_open_result(report->output);
  bool good = file && (list ? report_html(file, report->title, summaries, job, list)
                            : state_html(file, json_array_get(summaries, 0)));
  return output_close_result("report", report->output, file, good);
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

/* One summary as it is; several as an object that has them. */
static json_t *report_json(const struct report *report, json_t *summaries, json_t *job)
{
  if (json_array_size(summaries) == 1) return json_incref(json_array_get(summaries, 0));
  size_t i;
  json_t *member;
  json_array_foreach(json_object_get(job, "members"), i, member)
  { /* the memories have them */
    json_object_del(member, "most");
    json_object_del(member, "held");
  }
  return json_pack("{s:o, s:O, s:O}", "title", output_json_string(report->title), "job", job, "memories", summaries);
}

/* Shows the summaries, which are fewer than the blocks without memory, in the forms that are asked for. Without a list they
 * are of states, or of a comparison. */
static int report_show(const struct report *report, json_t *summaries, const struct blocks_list *list)
{
  size_t i, n = list ? list->n : 1;
  json_t *summary;
  int status = json_array_size(summaries) == n ? CMD_GOOD : CMD_BAD;
  if (status != CMD_GOOD) {
    say("report: out of memory");
    return status;
  }
  json_t *job = list ? job_make(summaries) : NULL;
  if (report->output && !report_write(report, summaries, job, list)) status = CMD_BAD;
  bool shows_text = report->as_text || (!report->output && !report->as_json);
  if (report->as_json) status = output_json(report_json(report, summaries, job), status);
  if (shows_text) job_text(job);
  json_decref(job);
  json_array_foreach(summaries, i, summary)
  {
    if (shows_text && i) putchar('\n');
    if (shows_text && list) report_text(summary);
    if (shows_text && !list) state_text(summary);
  }
  return report->as_json ? status : output_finish(status);
}

/* Of files that are no logs. */
static int report_states(const struct report *report, const struct trace_logs *logs)
{
  json_t *all = json_array(), *summaries = json_array();
  for (size_t i = 0; i < logs->n; i++) {
    json_array_extend(all, (json_t *)trace_logs_state(logs, i));
    trace_logs_tell_state(logs, i);
  }
  json_array_append_new(summaries, state_summary(all, report->title));
  int status = report_show(report, summaries, NULL);
  json_decref(summaries);
  json_decref(all);
  return status;
}

/* What a space is called, for programs. */
static void report_add_space(json_t *summary, const struct trace_space *space, const char *file, const char *name)
{
  static const char *const memories[] = {"device", "managed", "host"};
  json_object_set_new(summary, "name", output_json_string(name));
  json_object_set_new(summary, "log", output_json_string(file));
  json_object_set_new(summary, "process", space->process ? json_integer((json_int_t)space->process) : json_null());
  json_object_set_new(summary, "device",
                      space->memory == TRACE_DEVICE_MEMORY ? json_integer(space->device) : json_null());
  json_object_set_new(summary, "memory", json_string(memories[space->memory]));
}

/* NULL: out of memory. */
static json_t *report_summary(const struct report *report, const struct blocks_list *list, size_t index)
{
  char name[TRACE_SPACE_NAME_BYTES], title[sizeof report->title + TRACE_SPACE_NAME_BYTES + 4];
  trace_space_name(&list->spaces, index, report->files, name, sizeof name);
  snprintf(title, sizeof title, "%s%s%s", report->title, *name ? ": " : "", name);
  json_t *text = output_json_string(title);
  json_t *summary = text ? summary_make(&list->items[index], json_string_value(text)) : NULL;
  json_decref(text);
  const struct trace_space *space = &list->spaces.items[index];
  if (summary && list->n > 1) report_add_space(summary, space, report->files[space->log], name);
  return summary;
}

/* The blocks of each of two logs have to be of one memory. False: the error was printed. */
static bool report_can_compare(const struct report *report, const struct blocks_list *list)
{
  size_t n[2] = {0, 0};
  for (size_t i = 0; i < list->spaces.n; i++) n[list->spaces.items[i].log ? 1 : 0]++;
  for (int log = 0; log < 2; log++) {
    if (n[log] == 1) continue;
    if (n[log])
      say("report: --compare: %s has the memory of %zu processes, devices or kinds; choose one with --device or "
          "--process",
          report->files[log], n[log]);
    else
      say("report: --compare: %s has no rows of that memory", report->files[log]);
    return false;
  }
  return true;
}

static int report_comparison(const struct report *report, const struct blocks_list *list)
{
  const char *names[2];
  if (!report_can_compare(report, list)) return CMD_BAD;
  for (int log = 0; log < 2; log++) {
    const char *slash = strrchr(report->files[log], '/');
    names[log] = slash ? slash + 1 : report->files[log];
  }
  if (strcmp(names[0], names[1]) == 0) memcpy(names, report->files, sizeof names);
  json_t *summaries = json_array();
  json_array_append_new(summaries, compare_summary(&list->items[0], &list->items[1], names));
  int status = report_show(report, summaries, NULL);
  json_decref(summaries);
  return status;
}

/* Shows the logs in the order in which they are named, and not in that of their clocks. */
static void report_sort(struct blocks_list *list)
{
  for (size_t i = 1; i < list->n; i++)
    for (size_t at = i; at && list->spaces.items[at].log < list->spaces.items[at - 1].log; at--) {
      const struct trace_space space = list->spaces.items[at];
      const struct blocks blocks = list->items[at];
      list->spaces.items[at] = list->spaces.items[at - 1];
      list->items[at] = list->items[at - 1];
      list->spaces.items[at - 1] = space;
      list->items[at - 1] = blocks;
    }
}

static int report_logs(const struct report *report, struct trace_logs *logs)
{
  struct blocks_list list;
  json_t *summaries = json_array();
  logs->choice = &report->choice;
  trace_logs_want_all(logs);
  int status = CMD_BAD;
  if (blocks_read(&list, logs)) {
    report_sort(&list);
    for (size_t i = 0; i < list.n && !report->compares; i++)
      json_array_append_new(summaries, report_summary(report, &list, i));
    status = report->compares ? report_comparison(report, &list) : report_show(report, summaries, &list);
    blocks_list_clear(&list);
  }
  json_decref(summaries);
  return status;
}

static int report_files(const struct report *report, char *const *files, size_t n)
{
  struct trace_logs logs;
  size_t states = 0, first = 0;
  if (!trace_logs_open(&logs, files, n)) return CMD_BAD;
  for (size_t i = n; i-- > 0;) {
    if (!trace_logs_state(&logs, i)) continue;
    states++;
    first = i;
  }
  if (states && (report->choice.has_device || report->choice.has_process)) {
    say("report: --device and --process choose from logs; %s is the state of a process", files[first]);
    trace_logs_close(&logs);
    return CMD_USAGE;
  }
  if (states && report->compares) {
    say("report: --compare is for logs; %s is the state of a process", files[first]);
    trace_logs_close(&logs);
    return CMD_USAGE;
  }
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

/* Checks what depends on the files. */
static int report_checked(struct report *report, char *const *files, size_t n)
{
  const struct inputs inputs = {"report", files, n};
  const char *other = report->as_text ? "--text" : report->as_json ? "--json" : NULL;
  if (report->compares && n != 2) {
    say("report: --compare takes two logs, the one before and the one after, and not %zu", n);
    return CMD_USAGE;
  }
  if (!output_check_result("report", report->output, other)) return CMD_USAGE;
  if (report->output && !inputs_check_output(&inputs, strcmp(report->output, "-") ? report->output : NULL))
    return CMD_USAGE;
  report->files = files;
  report_title(files, n, report->title, sizeof report->title);
  return report_files(report, files, n);
}

static int report_run(int argc, char **argv)
{
  struct report report = {.choice.command = "report"};
  int status;
  const struct argument rows[] = {
      {"output", "FILE", "write a page for browsers; - is standard output", .letter = 'o', .value = &report.output},
      {"text", NULL, "print a page for terminals: the default without --output", .flag = &report.as_text},
      {"json", NULL, "print one JSON object", .flag = &report.as_json},
      {"compare", NULL, "show what is different in the second of two logs, such as those of two versions of a program",
       .flag = &report.compares},
      TRACE_CHOICE_ARGUMENTS(report.choice, "", TRACE_CHOICE_OF_ALL),
  };
  struct arguments arguments = {&report_command, rows, sizeof rows / sizeof *rows, 1, TRACE_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (report.as_text && report.as_json) {
    say("report: --text and --json are two answers; ask for one");
    return CMD_USAGE;
  }
  if (!trace_choice_read(&report.choice)) return CMD_USAGE;
  struct folder_files files;
  if (!folder_expand(&files, arguments.operands, arguments.n_operands)) return CMD_BAD;
  status = report_checked(&report, files.items, files.n);
  folder_clear(&files);
  return status;
}

const struct command report_command = {
    "report", "show the peak, holders, leaks and fragmentation of an allocation log", "LOG…",
    "Reads allocation logs, in any format that `hipmm convert` reads, and shows how the program used memory: how "
    "much was live at each moment and where; the peak, and who held it; sizes, lifetimes, streams and threads; "
    "leaks; fragmentation; and tags and call stacks if the log has them. Records of hipmm and snapshots of PyTorch "
    "also tell what the allocator held from the device: how much of that was idle, and which blocks pin it.\n"
    "\n"
    "A snapshot (hipmm_snapshot(), hipmm.snapshot()) and the report of a process (`hipmm run --report=FILE --json`, "
    "\"report\" of the graph) have no events. It shows who holds how much in them, and says what they cannot tell.\n"
    "\n"
    "The page for browsers is one file that needs nothing else. If there are more than a million blocks, it shows "
    "those that hold the most memory for the longest time.\n"
    "\n"
    "LOG: `-` is standard input; a folder stands for the files in it. Each process, device and kind of memory of the "
    "logs is shown by itself: they are address spaces of their own. Before them all are shown beside each other, each "
    "from its first event on. Several logs are of several processes, such as the ranks of a job; a log and its rotated "
    "files (log.csv, log.csv.1, …) become one, in order of time. Exit status 1 if a log is malformed or the page "
    "cannot be written.",
    report_run};
