/* SPDX-License-Identifier: MIT */
/* ctl.c: `hipmm ctl`: reads and changes the resources of a running process that allows it. */
#include "ctl.h"
#include "../../../core/base/text.h"
#include "../cmd.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CTL_POLL_US = 50000 };

struct ctl_options {
  bool as_json;
  const char *output, *format;
  long timeout_s;
  uint64_t keep_bytes;
};

struct ctl_call {
  struct ctl *ctl;
  const char *verb, *first, *second; /* operands after the verb; NULL: not given */
  const struct ctl_options *options;
};

static const char *ctl_path(const struct ctl_call *call)
{
  return call->first ? call->first : "";
}

/* ---- list, get, set ---- */

static int ctl_print_rows(const json_t *rows)
{
  const json_t *row;
  size_t i;
  json_array_foreach((json_t *)(uintptr_t)rows, i, row)
  {
    char *value = json_dumps(json_object_get(row, "value"), JSON_ENCODE_ANY);
    const char *path = json_string_value(json_object_get(row, "path"));
    if (path && value) {
      output_text(stdout, path);
      printf(" = ");
      output_text(stdout, value);
      printf("%s\n", json_is_true(json_object_get(row, "reloadable")) ? "  (settable)" : "");
    }
    free(value);
  }
  return output_finish(CMD_GOOD);
}

static int ctl_list_one(const struct ctl_call *call)
{
  json_t *rows = ctl_do(call->ctl, CONTROL_LIST, call->first, "", 0) ? ctl_json(call->ctl) : NULL;
  if (!rows) return CMD_BAD;
  if (call->options->as_json) return output_json(rows, CMD_GOOD);
  int status = ctl_print_rows(rows);
  json_decref(rows);
  return status;
}

static int ctl_list(const struct ctl_call *call)
{
  struct processes processes;
  if (call->first) return ctl_list_one(call);
  if (!ctl_counters(call->ctl, "", &processes)) return CMD_BAD;
  const struct live_file *file = &processes.items[0].file;
  if (file->n_wanted > file->n_rows) note("ctl: %u more are left out", (unsigned)(file->n_wanted - file->n_rows));
  if (call->options->as_json) {
    json_t *all = processes_json(&processes), *rows = json_incref(json_object_get(json_array_get(all, 0), "resources"));
    json_decref(all);
    processes_clear(&processes);
    return output_json(rows, CMD_GOOD);
  }
  for (uint32_t i = 0; i < file->n_rows; i++) {
    output_text(stdout, file->rows[i].path);
    printf("%s%s\n", *file->rows[i].type ? "  " : "", file->rows[i].type);
  }
  processes_clear(&processes);
  return output_finish(CMD_GOOD);
}

static int ctl_get(const struct ctl_call *call)
{
  json_t *value = ctl_do(call->ctl, CONTROL_GET, call->first, "", 0) ? ctl_json(call->ctl) : NULL;
  char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
  json_decref(value);
  if (!text) return CMD_BAD;
  output_text(stdout, text);
  putchar('\n');
  free(text);
  return output_finish(CMD_GOOD);
}

static int ctl_set(const struct ctl_call *call)
{
  return ctl_do(call->ctl, CONTROL_SET, call->first, call->second, 0) ? CMD_GOOD : CMD_BAD;
}

/* ---- limit ---- */

/* Whether the row is an option that bounds what its resource may have. */
static bool ctl_is_bound(const json_t *row, const char *option)
{
  const char *path = json_string_value(json_object_get(row, "path")), *slash = path ? strrchr(path, '/') : NULL;
  return slash && !strcmp(slash + 1, option) && json_is_true(json_object_get(row, "reloadable"));
}

/* Whether the stack of the path has a resource with a "limit", which then bounds all below it. */
static bool ctl_stack_has_limit(const json_t *rows, const char *path)
{
  const json_t *row;
  size_t i;
  const size_t kind = strcspn(path, "/") + 1, length = kind + strcspn(path + kind, "/") + 1; /* "devices/0/" */
  json_array_foreach((json_t *)(uintptr_t)rows, i, row)
  {
    const char *other = json_string_value(json_object_get(row, "path"));
    if (ctl_is_bound(row, "limit") && !strncmp(other, path, length)) return true;
  }
  return false;
}

static int ctl_set_limits(const struct ctl_call *call, const json_t *rows, const char *size)
{
  const json_t *row;
  size_t i, n = 0;
  int status = CMD_GOOD;
  json_array_foreach((json_t *)(uintptr_t)rows, i, row)
  {
    const char *path = json_string_value(json_object_get(row, "path"));
    bool is_limit = ctl_is_bound(row, "limit");
    if (!is_limit && (!ctl_is_bound(row, "maximum_size") || ctl_stack_has_limit(rows, path))) continue;
    n++;
    if (!ctl_do(call->ctl, CONTROL_SET, path, size, 0)) status = CMD_BAD;
  }
  if (n) return status;
  say("ctl: process %d: no resource here has a limit that can be changed; put `limiting` on top of the stack, as in "
      "{\"stack\": [{\"type\": \"limiting\", \"limit\": \"8GiB\"}, \"pool\", \"device\"]}",
      call->ctl->process);
  return CMD_BAD;
}

static int ctl_limit(const struct ctl_call *call)
{
  const char *size = call->second ? call->second : call->first, *path = call->second ? call->first : "";
  json_t *rows = ctl_do(call->ctl, CONTROL_LIST, path, "", 0) ? ctl_json(call->ctl) : NULL;
  int status = rows ? ctl_set_limits(call, rows, size) : CMD_BAD;
  json_decref(rows);
  return status;
}

/* ---- trim, status, profile ---- */

static int ctl_trim(const struct ctl_call *call)
{
  bool is_done = ctl_do(call->ctl, CONTROL_TRIM, ctl_path(call), "", call->options->keep_bytes);
  return is_done ? CMD_GOOD : CMD_BAD;
}

static int ctl_status_json(const struct ctl_call *call, const struct processes *processes)
{
  json_t *state = ctl_do(call->ctl, CONTROL_SNAPSHOT, "", "", 0) ? ctl_json(call->ctl) : NULL;
  if (!state) return CMD_BAD;
  json_t *all = processes_json(processes);
  json_object_set(state, "process", json_array_get(all, 0));
  json_decref(all);
  return output_json(state, CMD_GOOD);
}

static int ctl_status(const struct ctl_call *call)
{
  struct processes processes;
  struct screen screen = {0};
  int status = CMD_GOOD;
  if (!ctl_counters(call->ctl, "", &processes)) return CMD_BAD;
  if (call->options->as_json)
    status = ctl_status_json(call, &processes);
  else
    screen_print(&screen, &processes, 0, terminal_is_output() ? terminal_width() : 512);
  screen_clear(&screen);
  processes_clear(&processes);
  return call->options->as_json ? status : output_finish(CMD_GOOD);
}

static int ctl_write_profile(const struct ctl_call *call)
{
  return ctl_profile(call->ctl, ctl_path(call), call->options->output, call->options->format);
}

/* ---- suspend, resume ---- */

/* The program replies when it comes to its safe point. */
static int ctl_ask_program(const struct ctl_call *call)
{
  struct ctl *ctl = call->ctl;
  if (!ctl_do(ctl, CONTROL_ASK, call->verb, "", 0)) return CMD_BAD;
  uint64_t number = ctl->answer.number;
  do {
    if (!ctl_do(ctl, CONTROL_REPLY, call->verb, "", number)) return CMD_BAD;
    if (ctl->answer.is_done) return CMD_GOOD;
    usleep(CTL_POLL_US);
  } while (cmd_now_ns() < ctl->end_ns);
  say("ctl: process %d was asked to %s, and has not replied within %ld second%s; the request stays until its next safe "
      "point (--timeout waits longer)",
      ctl->process, call->verb, call->options->timeout_s, call->options->timeout_s == 1 ? "" : "s");
  return CMD_BAD;
}

/* ---- The command ---- */

static const struct ctl_verb {
  const char *name;
  size_t least, most; /* operands */
  const char *operands;
  int (*run)(const struct ctl_call *call);
} ctl_verbs[] = {{"list", 0, 1, "[PATH]", ctl_list},
                 {"get", 1, 1, "PATH", ctl_get},
                 {"set", 2, 2, "PATH VALUE", ctl_set},
                 {"limit", 1, 2, "[PATH] SIZE", ctl_limit},
                 {"trim", 0, 1, "[PATH]", ctl_trim},
                 {"status", 0, 0, "", ctl_status},
                 {"profile", 0, 1, "[PATH]", ctl_write_profile},
                 {"suspend", 0, 0, "", ctl_ask_program},
                 {"resume", 0, 0, "", ctl_ask_program}};

enum { CTL_VERBS = sizeof ctl_verbs / sizeof *ctl_verbs };

static const struct ctl_verb *ctl_verb_of(const struct arguments *arguments)
{
  const char *name = arguments_operand(arguments, 1), *names[CTL_VERBS];
  const size_t n = arguments->n_operands - 2;
  for (size_t i = 0; i < CTL_VERBS; i++) {
    const struct ctl_verb *verb = &ctl_verbs[i];
    names[i] = verb->name;
    if (strcmp(verb->name, name) != 0) continue;
    if (n >= verb->least && n <= verb->most) return verb;
    say("ctl: usage: hipmm ctl PROCESS %s %s", name, verb->operands);
    return NULL;
  }
  const char *near = text_nearest(name, names, CTL_VERBS);
  if (near)
    say("ctl: unknown action \"%s\"; did you mean \"%s\"?", name, near);
  else
    say("ctl: unknown action \"%s\"; write list, get, set, limit, trim, status, profile, suspend or resume", name);
  return NULL;
}

static int ctl_run(int argc, char **argv)
{
  static const char *const formats[] = {"pprof", "csv", "record", "pytorch", "chrome", NULL};
  struct ctl_options options = {.output = "hipmm.pprof", .timeout_s = 30};
  struct ctl ctl;
  int status;
  const struct argument rows[] = {
      {"json", NULL, "print list and status as JSON", .flag = &options.as_json},
      {"keep", "SIZE", "what trim leaves to each resource; 0 by default", .bytes = &options.keep_bytes},
      {"output", "FILE", "where profile is written; hipmm.pprof by default", .letter = 'o', .value = &options.output},
      {"format", "NAME",
       "of profile, as `hipmm convert` has them: pprof, csv, record, pytorch or chrome; by default as "
       "the file's name says",
       .value = &options.format, .choices = formats},
      {"timeout", "SECONDS", "how long to wait for an answer, and suspend and resume for the program; 30 by default",
       .number = &options.timeout_s, .most = 86400},
  };
  struct arguments arguments = {&ctl_command, rows, sizeof rows / sizeof *rows, 2, 4, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  const struct ctl_verb *verb = ctl_verb_of(&arguments);
  if (!verb) return CMD_USAGE;
  if (!ctl_find(&ctl, arguments.operands[0])) return CMD_BAD;
  ctl.end_ns = cmd_now_ns() + options.timeout_s * INT64_C(1000000000);
  const struct ctl_call call = {&ctl, verb->name, arguments_operand(&arguments, 2), arguments_operand(&arguments, 3),
                                &options};
  status = verb->run(&call);
  ctl_close(&ctl);
  return status;
}

const struct command ctl_command = {
    "ctl", "steer a running program's memory", "PROCESS ACTION [ARGUMENT]…",
    "Reads and changes the resources of a running process of the same user. PROCESS is its number, or the name of its "
    "program or script. A process answers if its graph was named, not only found, and says \"control\": true, or with "
    "HIPMM_CONTROL=1 in its environment. "
    "Both sides need the same XDG_RUNTIME_DIR, a folder of the user with mode 0700.\n"
    "\n"
    "list [PATH]: the resources by device; with a path such as devices/0/pool, its values and options\n"
    "get PATH: a value or an option, such as devices/0/pool/maximum_size\n"
    "set PATH VALUE: an option that can change while it is in use (`hipmm describe TYPE` says which), if it is a "
    "number, a "
    "size, a time, a word, true or false\n"
    "limit [PATH] SIZE: the most memory, in bytes or as a percentage of what was free when the resource was created: "
    "sets the limit of `limiting` and `reserving`, and in a stack without them the maximum_size of pools, arenas and "
    "monotonic resources\n"
    "trim [PATH]: gives idle memory back\n"
    "status: what `hipmm top` shows, whether or not the process publishes it\n"
    "profile [PATH]: who has allocated the memory, from a `recording` or `tracking` resource, as `hipmm convert` "
    "writes "
    "it\n"
    "suspend, resume: asks the program, which does it at its next safe point and replies (hipmm/control.h)\n"
    "\n"
    "Nothing here creates resources, loads plugins or changes names of files. Exit status 1 if the process does not "
    "answer, or what was asked for failed.",
    ctl_run};
