/* SPDX-License-Identifier: MIT */
/* plan.c: `hipmm plan`: whether the programs of some logs fit on a device together, and what to shrink if they do not. The
 * need of each is its least budget (play/fit.h); savings.c says what would lower it. */
#include "plan.h"
#include "../inputs.h"
#include "../lines.h"
#include "../play/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So that the sums of all logs are numbers of JSON. */
#define PLAN_MOST_BYTES (INT64_MAX / TRACE_MOST_LOGS)

/* What a program gets that says nothing. */
static const char plan_default_graph[] = "{ \"stack\": [\"pool\", \"device\"] }";

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* A log is read twice, a pipe only once: it is copied into a file without a name, which becomes the standard input. An
 * errno; 0: done. */
static int plan_keep_input(void)
{
  char buffer[1 << 16];
  ssize_t got = 0;
  int code = 0;
  if (lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0) return 0;
  FILE *copy = tmpfile();
  if (!copy) return errno;
  while (!code && ((got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)))
    if (got > 0 && fwrite(buffer, 1, (size_t)got, copy) < (size_t)got) code = errno;
  if (!code && got < 0) code = errno;
  if (!code && (fflush(copy) || dup2(fileno(copy), STDIN_FILENO) < 0)) code = errno;
  fclose(copy);
  return code;
}

/* To the start, for a log that is the standard input. False: the error was printed. */
static bool plan_rewind(const char *file)
{
  if (strcmp(file, "-") != 0) return true;
  int code = plan_keep_input();
  if (!code && lseek(STDIN_FILENO, 0, SEEK_SET) < 0) code = errno;
  if (code) say("plan: standard input cannot be kept to be read again: %s", strerror(code));
  return !code;
}

/* The second reading. False: the error was printed. */
static bool plan_read_blocks(const struct plan *plan, const char *file, struct blocks_list *list)
{
  char *files[] = {(char *)file};
  struct trace_logs logs;
  if (!plan_rewind(file) || !trace_logs_open(&logs, files, 1)) return false;
  logs.is_quiet = true;
  logs.choice = &plan->choice;
  return blocks_read(list, &logs);
}

/* The blocks of a process, as JSON. NULL: the error was printed. */
static json_t *plan_find_blocks(const struct blocks_list *list, const char *name, const struct trace_space *space)
{
  struct savings savings;
  size_t i = 0;
  while (i < list->n && !trace_space_is(&list->spaces.items[i], space)) i++;
  if (i == list->n) {
    say("plan: %s: the log has changed since it was read first", name);
    return NULL;
  }
  json_t *log = savings_find(&list->items[i], &savings) ? plan_log_json(name, &list->items[i], &savings) : NULL;
  if (!log) say("plan: out of memory");
  return log;
}

/* ---- Needs ----------------------------------------------------------------------------------------------------- */

/* What one process needs; 0: the error was printed. */
static uint64_t plan_fit(struct plan *plan, const char *name, const struct trace *trace, uint64_t *peak_out)
{
  char command[PATH_MAX + TRACE_SPACE_NAME_BYTES + 16];
  struct fit fit;
  snprintf(command, sizeof command, "plan: %s", name);
  const struct fit_request request = {command, trace, &plan->source, 0, 1};
  if (!fit_find(&fit, &request)) return 0;
  uint64_t needs_bytes = fit.held_bytes + plan->process_bytes;
  *peak_out = fit.peak_requested_bytes;
  snprintf(plan->runtime, sizeof plan->runtime, "%s", fit.runtime);
  fit_clear(&fit);
  if (!needs_bytes) say("%s: the log needs no memory: all its allocations have zero bytes", command);
  return needs_bytes;
}

/* Adds a process. */
static bool plan_add(struct plan *plan, const struct blocks_list *list, const char *name, const struct trace *trace,
                     const struct trace_space *space)
{
  uint64_t peak_bytes;
  uint64_t needs_bytes = plan_fit(plan, name, trace, &peak_bytes);
  json_t *log = needs_bytes ? plan_find_blocks(list, name, space) : NULL;
  if (!log) return false;
  json_object_set_new(log, "needs_bytes", json_integer((json_int_t)needs_bytes));
  json_object_set_new(log, "peak_requested_bytes", json_integer((json_int_t)peak_bytes));
  json_array_append_new(plan->logs, log);
  plan->needs_bytes += needs_bytes;
  return true;
}

/* Whether a process has memory on several devices: it fits on no one device. */
static bool plan_has_several_devices(const struct trace_spaces *spaces)
{
  for (size_t i = 0; i < spaces->n; i++)
    for (size_t k = 0; k < i; k++)
      if (spaces->items[i].process == spaces->items[k].process) return true;
  return false;
}

static bool plan_add_log(struct plan *plan, const char *file)
{
  char *files[] = {(char *)file};
  char space[TRACE_SPACE_NAME_BYTES], name[PATH_MAX + TRACE_SPACE_NAME_BYTES];
  struct blocks_list list = {0};
  struct traces traces;
  if (!plan_rewind(file) || !trace_load_each(file, &plan->choice, &traces)) return false;
  bool good = !plan_has_several_devices(&traces.spaces);
  if (!good) trace_choice_refuse(&plan->choice, &traces.spaces, files, ", and a plan is for one device");
  good = good && plan_read_blocks(plan, file, &list);
  for (size_t i = 0; good && i < traces.n; i++) {
    trace_space_name(&traces.spaces, i, files, space, sizeof space);
    snprintf(name, sizeof name, "%s%s%s", strcmp(file, "-") ? file : "standard input", *space ? ", " : "", space);
    good = plan_add(plan, &list, name, &traces.items[i], &traces.spaces.items[i]);
  }
  blocks_list_clear(&list);
  traces_clear(&traces);
  return good;
}

static int plan_make(struct plan *plan, const struct arguments *arguments, bool as_json)
{
  size_t i;
  json_t *log;
  plan->logs = json_array();
  for (i = 0; i < arguments->n_operands; i++)
    if (!plan_add_log(plan, arguments->operands[i])) return CMD_BAD;
  if (!plan->device_bytes) plan->device_bytes = fit_smallest_card(plan->needs_bytes);
  json_array_foreach(plan->logs, i, log) json_object_set_new(
      log, "copies", json_integer((json_int_t)(plan->device_bytes / lines_count(log, "needs_bytes"))));
  int status = plan->device_bytes >= plan->needs_bytes ? CMD_GOOD : CMD_BAD;
  json_t *answer = plan_json(plan);
  if (as_json || !answer) return output_json(answer, status);
  plan_print(answer);
  json_decref(answer);
  return output_finish(status);
}

static void plan_clear(struct plan *plan)
{
  json_decref(plan->logs);
  source_close(&plan->source);
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

/* False: the error was printed. */
static bool plan_choose_graph(struct plan *plan, const char *config)
{
  source_choose(&plan->source, config);
  if (plan->source.file) return true;
  plan->source.file = "the default stack";
  plan->source.text = plan_default_graph;
  return true;
}

static int plan_run(int argc, char **argv)
{
  struct plan plan = {.choice.command = "plan"};
  const char *config = NULL;
  bool as_json = false;
  int status;
  const struct argument rows[] = {
      {"device-memory", "SIZE",
       "the memory of the device, such as 16GiB; by default that of the smallest card that has enough",
       .bytes = &plan.device_bytes, .least = 1, .most = PLAN_MOST_BYTES},
      {"process-memory", "SIZE",
       "the memory of each process besides its stack: the driver's context, code, other libraries; 0 by default",
       .bytes = &plan.process_bytes, .most = PLAN_MOST_BYTES},
      CONFIG_ARGUMENT(&config),
      TRACE_CHOICE_ARGUMENTS(plan.choice, "", TRACE_CHOICE_OF_EACH),
      {"json", NULL, "print one JSON object", .flag = &as_json},
  };
  struct arguments arguments = {&plan_command, rows, sizeof rows / sizeof *rows, 1, TRACE_MOST_LOGS, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (!trace_choice_read(&plan.choice)) return CMD_USAGE;
  if (!plan_choose_graph(&plan, config)) return CMD_BAD;
  setenv("HIPMM_RUNTIME", "software", 0);
  const struct inputs inputs = {"plan", arguments.operands, arguments.n_operands};
  status = inputs_check_graph(&inputs, &plan.source, 0) ? plan_make(&plan, &arguments, as_json) : CMD_BAD;
  plan_clear(&plan);
  return status;
}

const struct command plan_command = {
    "plan", "say whether programs fit on a device, and what to shrink", "LOG…",
    "Prints the memory that the programs of some allocation logs need, whether they fit on a device together, how "
    "much is then left, and how many processes of each fit. Reads any format that `hipmm convert` reads.\n"
    "\n"
    "A program needs the least memory with which its whole log runs through the stack of device 0. `hipmm replay "
    "--fit` finds the same figure. The runtime is the software device unless HIPMM_RUNTIME names another. Without a "
    "graph file the stack is { \"stack\": [\"pool\", \"device\"] }. Memory of the driver and of the program's code "
    "is not in the log: see --process-memory.\n"
    "\n"
    "Then come the blocks to shrink first, by size, and by tag and call stack if the log has them. \"held at peak\" "
    "is the sum of the row's blocks at the moment when the program has requested most. \"saved if halved\" is the "
    "fall of that peak if every block of that size (or with that tag, or from that call stack) has half its size, "
    "\"saved if removed\" its fall if none of them is allocated. Both are less than the sum of the blocks if another "
    "moment of the log is nearly as high. The memory that the program needs falls by about as much.\n"
    "\n"
    "LOG: `-` is standard input; each log is a process of its own, and so is each process of a log. A process with the "
    "memory of several devices needs --device. Managed memory and memory of the host are left out unless --device "
    "chooses them. Exit status 1 if they do not fit, or a log is "
    "malformed.",
    plan_run};
