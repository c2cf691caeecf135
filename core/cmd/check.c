/* SPDX-License-Identifier: MIT */
/* check.c: `hipmm check`: prints every error and warning of a graph file. Loads the plugins that the file names, and
 * creates no resource. */
#include "../api.h"
#include "../base/text.h"
#include "cmd.h"

#include <string.h>

static void check_print_verdict(const char *file, const struct diagnostics *diagnostics, const struct graph *graph)
{
  output_text(stdout, file);
  if (graph)
    printf(": %sok%s, %zu resource%s", style(STYLE_GOOD), style(STYLE_OFF), graph->n_nodes,
           text_plural(graph->n_nodes));
  else
    printf(": %s%zu error%s%s", style(STYLE_BAD), diagnostics->n_errors, text_plural(diagnostics->n_errors),
           style(STYLE_OFF));
  if (diagnostics->n_warnings > 0)
    printf(", %zu warning%s", diagnostics->n_warnings, text_plural(diagnostics->n_warnings));
  putchar('\n');
}

static int check_print(const char *file, const struct diagnostics *diagnostics, const struct graph *graph)
{
  size_t n_kept = 0;
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next, n_kept++) {
    diagnostic_print(stdout, file, diagnostic);
    putchar('\n');
  }
  size_t n_found = diagnostics->n_errors + diagnostics->n_warnings;
  if (n_found > n_kept) printf("… and %zu more\n", n_found - n_kept);
  check_print_verdict(file, diagnostics, graph);
  return output_finish(graph ? CMD_GOOD : CMD_BAD);
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

static int check_print_json(const char *file, const struct diagnostics *diagnostics, const struct graph *graph)
{
  json_t *result =
      json_pack("{s:o, s:b, s:o, s:o}", "file", output_json_string(file), "ok", graph != NULL, "errors",
                check_json_diagnostics(diagnostics, false), "warnings", check_json_diagnostics(diagnostics, true));
  return output_json(result, graph ? CMD_GOOD : CMD_BAD);
}

static int check_file(const char *file, bool json)
{
  struct diagnostics diagnostics = {.source = file};
  struct graph *graph = NULL;
  if (!graph_from_file(file, &diagnostics, &graph)) graph_warn_unused(graph, api_named_resources, &diagnostics);
  int status = json ? check_print_json(file, &diagnostics, graph) : check_print(file, &diagnostics, graph);
  if (graph) graph_release(graph);
  diagnostics_clear(&diagnostics);
  return status;
}

static int check_run(int argc, char **argv)
{
  bool json = false;
  int status;
  const struct argument rows[] = {{.name = "json", .doc = "print one JSON object", .flag = &json}};
  struct arguments arguments = {&check_command, rows, 1, 0, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;

  struct source source;
  source_choose(&source, arguments_operand(&arguments, 0));
  if (source.file) return check_file(source.file, json);
  say("check: no graph file found; name one, set HIPMM_CONFIG, or write ./hipmm.json");
  return CMD_USAGE;
}

const struct command check_command = {
    "check", "find every error in a graph file", "[FILE]",
    "Reads a graph file and prints every error and warning in it, each with its place in the file. Loads the plugins "
    "that the file names, but uses no device, so it works on a machine without a GPU.\n"
    "\n"
    "FILE: by default the file that hipmm_init() would read: the one that HIPMM_CONFIG names, "
    "./hipmm.json, then the system's.",
    check_run};
