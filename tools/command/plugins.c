/* SPDX-License-Identifier: MIT */
/* plugins.c: `hipmm plugins`: the plugins found, their files, and why others were refused. */
#include "../../core/graph/graph.h"
#include "cmd.h"

#include <string.h>

struct plugins_table {
  json_t *list; /* of objects; NULL when printing text */
  size_t type_width, version_width;
  size_t n_loaded, n_refused;
};

static size_t plugins_larger(size_t a, size_t b)
{
  return a > b ? a : b;
}

static void plugins_measure(void *closure, const struct plugin_candidate *candidate)
{
  struct plugins_table *plugins = closure;
  plugins->type_width = plugins_larger(plugins->type_width, text_width(candidate->type));
  if (candidate->plugin)
    plugins->version_width = plugins_larger(plugins->version_width, text_width(candidate->plugin->descriptor.version));
}

static void plugins_print_refusal(const char *refusal)
{
  struct wrap wrap = {.prefix = "    "};
  printf("    ");
  wrap.column = 4;
  wrap_words(&wrap, STYLE_OFF, refusal);
  wrap_end(&wrap);
}

static void plugins_print(void *closure, const struct plugin_candidate *candidate)
{
  struct plugins_table *plugins = closure;
  const struct hipmm_plugin *descriptor = candidate->plugin ? &candidate->plugin->descriptor : NULL;
  plugins->n_loaded += descriptor && !candidate->shadowed;
  plugins->n_refused += candidate->refusal != NULL;
  print_padded(descriptor ? STYLE_NAME : STYLE_BAD, candidate->type, plugins->type_width + 2);
  print_padded(STYLE_OFF, descriptor ? descriptor->version : "", plugins->version_width + 2);
  print_padded(descriptor ? STYLE_TYPE : STYLE_BAD, descriptor ? role_name(descriptor->role) : "refused", 15);
  print_padded(STYLE_FAINT, candidate->file, 0);
  if (candidate->shadowed) {
    printf("  %s(not used: another ", style(STYLE_WARNING));
    output_text(stdout, candidate->type);
    printf(" comes first)%s", style(STYLE_OFF));
  }
  putchar('\n');
  if (candidate->refusal) plugins_print_refusal(candidate->refusal);
}

static void plugins_add_json(void *closure, const struct plugin_candidate *candidate)
{
  struct plugins_table *plugins = closure;
  const struct hipmm_plugin *descriptor = candidate->plugin ? &candidate->plugin->descriptor : NULL;
  plugins->n_loaded += descriptor != NULL;
  json_array_append_new(
      plugins->list,
      json_pack("{s:o, s:o, s:s?, s:s?, s:o, s:b, s:b}", "type", output_json_string(candidate->type), "file",
                output_json_string(candidate->file), "version", descriptor ? descriptor->version : NULL, "role",
                descriptor ? role_name(descriptor->role) : NULL, "refusal", output_json_string(candidate->refusal),
                "loaded", descriptor != NULL, "shadowed", candidate->shadowed));
}

static int plugins_list(const struct plugin_path *path)
{
  struct plugins_table plugins = {0};
  plugin_scan(path, plugins_measure, &plugins);
  plugin_scan(path, plugins_print, &plugins);
  if (plugins.n_loaded + plugins.n_refused == 0) {
    say("no plugin was found; set HIPMM_PLUGIN_PATH, or write \"plugin_path\" in the graph file");
    return output_finish(CMD_BAD);
  }
  printf("\n%zu found", plugins.n_loaded);
  if (plugins.n_refused) printf(", %zu refused", plugins.n_refused);
  printf("; `hipmm describe TYPE` explains one\n");
  return output_finish(CMD_GOOD);
}

static int plugins_list_json(const struct plugin_path *path)
{
  struct plugins_table plugins = {.list = json_array()};
  plugin_scan(path, plugins_add_json, &plugins);
  return output_json(json_pack("{s:o}", "plugins", plugins.list), CMD_GOOD);
}

static int plugins_run(int argc, char **argv)
{
  bool json = false;
  const char *config = NULL;
  int status;
  const struct argument rows[] = {PLUGIN_PATH_ARGUMENT(&config),
                                  {"json", NULL, "print one JSON object", .flag = &json}};
  struct arguments arguments = {&plugins_command, rows, 2, 0, 0, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;

  struct graph *graph;
  struct plugin_path path;
  if (!source_plugin_path(config, &graph, &path)) return CMD_BAD;
  status = json ? plugins_list_json(&path) : plugins_list(&path);
  if (graph) graph_release(graph);
  return status;
}

const struct command plugins_command = {
    "plugins", "list the plugins found, and those refused", "",
    "Lists every plugin file on the search path: its type, version, role and file, or why it was refused. The path, in "
    "order: HIPMM_PLUGIN_PATH, \"plugin_path\" of the graph file, the folder of hipmm's own plugins.",
    plugins_run};
