/* SPDX-License-Identifier: MIT */
/* schema.c: `hipmm schema`: the JSON Schema of a graph file, for editors. */
#include "schema.h"

#include "../cmd.h"

static int schema_run(int argc, char **argv)
{
  int status;
  struct arguments arguments = {&schema_command, NULL, 0, 0, 1, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;

  struct graph *graph;
  struct plugin_path path;
  if (!source_plugin_path(arguments_operand(&arguments, 0), &graph, &path)) return CMD_BAD;
  status = output_json(graph_schema(&path), CMD_GOOD);
  if (graph) graph_release(graph);
  return status;
}

const struct command schema_command = {
    "schema", "print the JSON Schema of graph files, for editors", "[FILE]",
    "Prints the JSON Schema of a graph file, made from the option tables of all plugins found. Save it, and write "
    "its name under \"$schema\" in hipmm.json: editors then complete and check your input. doc/editors.md says how "
    "to set the schema in Visual Studio Code and Neovim instead.\n"
    "\n"
    "FILE: a graph file whose \"plugin_path\" is searched too; by default the one that hipmm_init() would read.",
    schema_run};
