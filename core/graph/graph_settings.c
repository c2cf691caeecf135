/* SPDX-License-Identifier: MIT */
/* graph_settings.c: the top of a graph except its resources: unknown keys, version, plugin_path, runtime, publish,
 * control, what is for jobs of many ranks, and limit_physical. Called by graph.c before the resources are read, since
 * their plugins are searched on the plugin_path. */
#include "../base/environment.h"
#include "../base/output_file.h"
#include "../base/text.h"
#include "../option/option_value.h"
#include "graph_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const graph_top_keys[] = {"$schema",        "version",        "runtime",   "plugin_path", "publish",
                                      "control",        "report",         "resources", "devices",     "stack",
                                      "current_device", "limit_physical", NULL};

static void graph_settings_refuse_unknown_keys(struct graph_build *build)
{
  const char *key;
  json_t *value;
  char shown[TEXT_QUOTE_BYTES];
  json_object_foreach(build->graph->root, key, value)
  {
    if (text_is_listed(graph_top_keys, key)) continue;
    const char *nearest = text_nearest(key, graph_top_keys, sizeof graph_top_keys / sizeof *graph_top_keys - 1);
    text_quote(key, shown, sizeof shown);
    if (nearest)
      graph_build_refuse_key(build, "", key, "unknown key %s; did you mean \"%s\"?", shown, nearest);
    else
      graph_build_refuse_key(build, "", key,
                             "unknown key %s; a graph has \"version\", \"runtime\", \"plugin_path\", \"publish\", "
                             "\"control\", \"report\", \"current_device\", \"limit_physical\", and \"stack\" or "
                             "\"resources\" and \"devices\"",
                             shown);
  }
}

static void graph_settings_check_version(struct graph_build *build)
{
  char shown[TEXT_QUOTE_BYTES];
  json_t *schema = json_object_get(build->graph->root, "$schema");
  json_t *version = json_object_get(build->graph->root, "version");
  if (schema && !json_is_string(schema))
    graph_build_refuse_value(build, "/$schema", schema, "is not the address of a schema");
  if (version && !(json_is_number(version) && json_number_value(version) == 1))
    graph_build_refuse(build, "/version", "version %s is not known; this hipmm reads version 1",
                       option_show(version, shown, sizeof shown));
}

/* ---- plugin_path ----------------------------------------------------------------------------------------------- */

static void graph_settings_add_folder(struct graph_build *build, const json_t *value, const char *path,
                                      const char **folder_out)
{
  char shown[TEXT_QUOTE_BYTES], *folder = NULL;
  const char *text = json_string_value(value);
  if (!text || !*text) {
    graph_build_refuse_value(build, path, value, "is not a folder's name");
    return;
  }
  bool is_relative = text[0] != '/' && build->folder;
  if (asprintf(&folder, "%s%s%s", is_relative ? build->folder : "", is_relative ? "/" : "", text) < 0)
    diagnostics_add(build->diagnostics, HIPMM_E_OUT_OF_MEMORY, path, "no host memory for the graph");
  else
    *folder_out = folder;
  if (folder && access(folder, F_OK))
    diagnostics_warn(build->diagnostics, path, "the folder %s is not there", text_quote(text, shown, sizeof shown));
}

/* A string is a list of one folder. */
static void graph_settings_read_plugin_path(struct graph_build *build)
{
  char path[48] = "/plugin_path";
  struct plugin_path *plugin_path = &build->graph->plugin_path;
  json_t *value = json_object_get(build->graph->root, "plugin_path");
  bool is_list = json_is_array(value);
  if (!value) return;
  if (!is_list && !json_is_string(value)) {
    graph_build_refuse_value(build, path, value, "is not a folder's name, nor a list of them");
    return;
  }
  size_t n = is_list ? json_array_size(value) : 1;
  const char **folders = graph_build_allocate(build, n, sizeof *folders);
  if (!folders) return;
  plugin_path->folders = folders;
  for (size_t i = 0; i < n; i++) {
    const char *folder = NULL;
    if (is_list) snprintf(path, sizeof path, "/plugin_path/%zu", i);
    graph_settings_add_folder(build, is_list ? json_array_get(value, i) : value, path, &folder);
    if (folder) folders[plugin_path->n_folders++] = folder;
  }
}

/* ---- runtime --------------------------------------------------------------------------------------------------- */

static bool graph_settings_is_builtin_runtime(const char *runtime)
{
  return !strcmp(runtime, "auto") || !strcmp(runtime, "amd");
}

const char *const graph_auto_runtimes[GRAPH_AUTO_RUNTIMES] = {"amd", "nvidia", "software"};

const char *graph_near_runtime(const char *word)
{
  struct text_near near = text_near(word);
  text_near_try(&near, "auto");
  for (size_t i = 0; i < GRAPH_AUTO_RUNTIMES; i++) text_near_try(&near, graph_auto_runtimes[i]);
  return near.name;
}

/* The runtime's plugin, if it can be loaded now. */
static const struct plugin *graph_settings_refuse_runtime(struct graph_build *build, const char *runtime,
                                                          const char *path)
{
  char shown[TEXT_QUOTE_BYTES];
  const char *nearest = graph_near_runtime(runtime);
  const struct plugin *plugin;
  text_quote(runtime, shown, sizeof shown);
  if ((nearest && !strcmp(nearest, runtime)) || plugin_exists(&build->graph->plugin_path, runtime)) {
    if (!plugin_get(&build->graph->plugin_path, runtime, &plugin)) return plugin;
    diagnostics_add_last_error(build->diagnostics, path);
  } else if (nearest) {
    graph_build_refuse(build, path, "unknown runtime %s; did you mean \"%s\"?", shown, nearest);
  } else {
    graph_build_refuse(build, path, "unknown runtime %s; " GRAPH_RUNTIME_FORMS, shown);
  }
  return NULL;
}

/* A program would not open a library that HIPMM_RUNTIME replaces. */
static void graph_settings_check_library(struct graph_build *build, const char *file, const char *path)
{
  char shown[TEXT_QUOTE_BYTES];
  const char *variable = environment_get("HIPMM_RUNTIME");
  if (!access(file, F_OK)) return;
  text_quote(file, shown, sizeof shown);
  if (variable && *variable)
    diagnostics_warn(build->diagnostics, path, "the library %s is not there; HIPMM_RUNTIME replaces it", shown);
  else
    graph_build_refuse(build, path, "the library %s is not there", shown);
}

/* The plugin of the runtime; NULL for a runtime without a plugin, and after an error was reported. */
static const struct plugin *graph_settings_find_runtime(struct graph_build *build, const char *runtime,
                                                        const char *path)
{
  const struct plugin *plugin;
  if (strchr(runtime, '/') && build->is_check) graph_settings_check_library(build, runtime, path);
  if (strchr(runtime, '/') || graph_settings_is_builtin_runtime(runtime)) return NULL;
  if (plugin_get(&build->graph->plugin_path, runtime, &plugin))
    plugin = graph_settings_refuse_runtime(build, runtime, path);
  if (!plugin) return NULL;
  if (plugin->descriptor.role == HIPMM_ROLE_RUNTIME) return plugin;
  graph_build_refuse(build, path, "%s is a resource type, not a runtime; " GRAPH_RUNTIME_FORMS, runtime);
  return NULL;
}

static void graph_settings_check_runtime_options(struct graph_build *build, const struct plugin *plugin)
{
  static const char *const keys[] = {"type", NULL};
  struct graph *graph = build->graph;
  struct option_context context = {
      .diagnostics = build->diagnostics, .path = "/runtime", .keys = keys, .owner = graph->runtime};
  const struct hipmm_plugin none = {0}, *descriptor = plugin ? &plugin->descriptor : &none;
  void *options = graph_build_allocate(build, 1, descriptor->options_bytes + 1);
  if (options && option_fill_valid(descriptor, graph->runtime_object, &context, NULL, options))
    option_free(descriptor->options, descriptor->n_options, options);
  free(options);
}

static void graph_settings_read_runtime(struct graph_build *build)
{
  struct graph *graph = build->graph;
  json_t *value = json_object_get(graph->root, "runtime");
  if (!value) return;
  bool is_object = json_is_object(value);
  const char *path = is_object ? "/runtime/type" : "/runtime";
  json_t *type = is_object ? json_object_get(value, "type") : value;
  if (!type) {
    graph_build_refuse(build, "/runtime", "the runtime needs a \"type\"; " GRAPH_RUNTIME_FORMS);
    return;
  }
  if (!json_is_string(type)) {
    graph_build_refuse_value(build, path, type, "is not a runtime; " GRAPH_RUNTIME_FORMS);
    return;
  }
  size_t n_errors = build->diagnostics->n_errors;
  graph->runtime = json_string_value(type);
  const struct plugin *plugin = graph_settings_find_runtime(build, graph->runtime, path);
  if (!is_object || build->diagnostics->n_errors > n_errors) return;
  json_decref(graph->runtime_object);
  graph->runtime_object = json_incref(value);
  graph_settings_check_runtime_options(build, plugin);
}

static bool graph_settings_read_switch(struct graph_build *build, const char *path)
{
  json_t *value = json_object_get(build->graph->root, path + 1);
  if (value && !json_is_boolean(value)) graph_build_refuse_value(build, path, value, "is not true or false");
  return json_is_true(value);
}

/* ---- report, current_device ------------------------------------------------------------------------------------ */

static void graph_settings_read_report(struct graph_build *build)
{
  char name[OUTPUT_FILE_NAME_BYTES];
  const json_t *value = json_object_get(build->graph->root, "report");
  const char *pattern = json_string_value(value);
  if (!value) return;
  if (!pattern || !*pattern)
    graph_build_refuse_value(build, "/report", value, "is not a file's name; write one such as \"report.%r.json\"");
  else if (!output_file_expand(pattern, -1, name))
    graph_build_refuse(build, "/report", "%s", name);
  else
    build->graph->report = pattern;
  if (build->graph->report && output_file_lacks_folder(name))
    diagnostics_warn(build->diagnostics, "/report", OUTPUT_FILE_LACKS_FOLDER, name);
}

static void graph_settings_read_current_device(struct graph_build *build)
{
  const json_t *value = json_object_get(build->graph->root, "current_device");
  const char *word = json_string_value(value);
  if (!value) return;
  build->graph->follows_local_rank = word && !strcmp(word, "local_rank");
  if (!build->graph->follows_local_rank)
    graph_build_refuse_value(
        build, "/current_device", value,
        "is not known; write \"local_rank\", or leave it out: the program chooses its device then");
}

/* ---- limit_physical --------------------------------------------------------------------------------------------- */

const struct hipmm_option graph_limit_physical = {
    .name = "limit_physical",
    .type = HIPMM_OPTION_BYTES,
    .flags = HIPMM_OPTION_PERCENT,
    .minimum = "1",
    .doc = "The most physical memory of a device that the process may hold, by hipmm and, under `hipmm run`, by "
           "hipMemCreate and cuMemCreate together"};

static void graph_settings_read_limit(struct graph_build *build)
{
  const struct option_context context = {.diagnostics = build->diagnostics, .path = ""};
  const struct option_reading reading = {&graph_limit_physical, &context, "/limit_physical"};
  const json_t *value = json_object_get(build->graph->root, graph_limit_physical.name);
  struct option_number number;
  uint64_t bytes;
  if (!value || !option_read(&reading, value, &bytes)) return;
  bool is_percent = option_number(&graph_limit_physical, value, &number) && number.is_percent;
  if (is_percent && !(number.value > 0))
    graph_build_refuse_value(build, reading.path, value, "is too little; leave the key out for no limit");
  else if (!is_percent)
    build->graph->limit_bytes = bytes;
  if (!is_percent) return;
  build->graph->limit_percent = (double)number.value;
  build->graph->limit_is_of_total = number.is_of_total;
  build->graph->limit_is_share = number.is_share;
}

void graph_read_settings(struct graph_build *build)
{
  graph_settings_refuse_unknown_keys(build);
  graph_settings_check_version(build);
  graph_settings_read_plugin_path(build);
  graph_settings_read_runtime(build);
  build->graph->publishes = graph_settings_read_switch(build, "/publish");
  build->graph->is_controlled = graph_settings_read_switch(build, "/control");
  graph_settings_read_report(build);
  graph_settings_read_current_device(build);
  graph_settings_read_limit(build);
}
