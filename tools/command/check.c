/* SPDX-License-Identifier: MIT */
/* check.c: `hipmm check`: prints every error and warning of a graph file. Loads the plugins that the file names, and
 * creates no resource. */
#include "../../core/base/text.h"
#include "../../core/graph/graph.h"
#include "cmd.h"

#include <string.h>

struct check_run {
  struct source source;
  struct diagnostics diagnostics;
  struct graph *graph; /* NULL: it has errors */
  bool is_strict;      /* warnings are errors */
};

static int check_status(const struct check_run *check)
{
  return check->graph && !(check->is_strict && check->diagnostics.n_warnings) ? CMD_GOOD : CMD_BAD;
}

/* "; by name only: weights, activations": what the program must ask for, or forgot to use. */
static void check_print_by_name(const struct graph *graph)
{
  bool is_first = true;
  for (size_t i = 0; i < graph->n_nodes; i++) {
    if (!graph->nodes[i].is_by_name) continue;
    fputs(is_first ? "; by name only: " : ", ", stdout);
    output_text(stdout, graph->nodes[i].name);
    is_first = false;
  }
}

/* "ok, 3 resources", "2 errors, 1 warning"; with --strict "1 warning". */
static void check_print_verdict(const struct check_run *check)
{
  const struct diagnostics *diagnostics = &check->diagnostics;
  bool is_good = check_status(check) == CMD_GOOD;
  output_text(stdout, check->source.file);
  printf(": %s", style(is_good ? STYLE_GOOD : STYLE_BAD));
  if (is_good)
    printf("ok%s, %zu resource%s", style(STYLE_OFF), check->graph->n_nodes, text_plural(check->graph->n_nodes));
  else if (diagnostics->n_errors)
    printf("%zu error%s%s", diagnostics->n_errors, text_plural(diagnostics->n_errors), style(STYLE_OFF));
  if (diagnostics->n_warnings)
    printf("%s%zu warning%s%s", is_good || diagnostics->n_errors ? ", " : "", diagnostics->n_warnings,
           text_plural(diagnostics->n_warnings), style(STYLE_OFF));
  if (is_good) check_print_by_name(check->graph);
  putchar('\n');
}

static int check_print(const struct check_run *check)
{
  const struct diagnostics *diagnostics = &check->diagnostics;
  size_t n_kept = 0;
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next, n_kept++) {
    diagnostic_print(stdout, check->source.file, diagnostic);
    putchar('\n');
  }
  size_t n_found = diagnostics->n_errors + diagnostics->n_warnings;
  if (n_found > n_kept) printf("… and %zu more\n", n_found - n_kept);
  check_print_verdict(check);
  return output_finish(check_status(check));
}

/* null stands for a diagnostic without a place in the file. */
static json_t *check_json_place(int number)
{
  return number > 0 ? json_integer(number) : json_null();
}

static json_t *check_json_diagnostics(const struct diagnostics *diagnostics, bool warnings)
{
  json_t *list = json_array();
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) {
    if ((diagnostic->status == HIPMM_OK) != warnings) continue;
    json_array_append_new(
        list, json_pack("{s:o, s:o, s:o, s:o}", "path", output_json_string(diagnostic->path ? diagnostic->path : ""),
                        "line", check_json_place(diagnostic->line), "column", check_json_place(diagnostic->column),
                        "message", output_json_string(diagnostic->message)));
  }
  return list;
}

static int check_print_json(const struct check_run *check)
{
  int status = check_status(check);
  json_t *by_name = json_array();
  for (size_t i = 0; check->graph && i < check->graph->n_nodes; i++)
    if (check->graph->nodes[i].is_by_name) json_array_append_new(by_name, json_string(check->graph->nodes[i].name));
  json_t *result = json_pack("{s:o, s:b, s:o, s:o, s:o}", "file", output_json_string(check->source.file), "ok",
                             status == CMD_GOOD, "errors", check_json_diagnostics(&check->diagnostics, false),
                             "warnings", check_json_diagnostics(&check->diagnostics, true), "by_name", by_name);
  return output_json(result, status);
}

static int check_run(int argc, char **argv)
{
  struct check_run check = {.graph = NULL};
  bool json = false;
  int status;
  const struct argument rows[] = {
      {"json", NULL, "print one JSON object", .flag = &json},
      {"strict", NULL, "exit with 1 for warnings too", .flag = &check.is_strict},
  };
  struct arguments arguments = {&check_command, rows, 2, 0, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  if (!source_choose_operand(&check.source, arguments_operand(&arguments, 0))) return CMD_BAD;
  if (!check.source.file) {
    say("check: no graph file found; name one, set HIPMM_CONFIG, or write ./hipmm.json");
    return CMD_USAGE;
  }
  check.diagnostics.source = check.source.file;
  graph_check(check.source.file, check.source.text, &check.diagnostics, &check.graph);
  status = json ? check_print_json(&check) : check_print(&check);
  if (check.graph) graph_release(check.graph);
  diagnostics_clear(&check.diagnostics);
  source_close(&check.source);
  return status;
}

const struct command check_command = {
    "check", "find every error in a graph file", "[FILE]",
    "Reads a graph file and prints every error and warning in it with its place in the file. Of JSON syntax errors "
    "it prints the first. It loads the plugins that the file names, and lets them check their options. It uses no "
    "device, so it works on a machine without a GPU. Exits with 1 if there is an error.\n"
    "\n"
    "FILE: by default the file that hipmm_init() would read: the one that HIPMM_CONFIG names, ./hipmm.json, then the "
    "system's; \"-\" for standard input.",
    check_run};
