/* SPDX-License-Identifier: MIT */
/* info.c: `hipmm info`: what hipmm finds here: versions, the graph in force, runtimes with their devices, and folders with
 * plugins. All of it is one JSON object, which print.c prints for people. */
#include "info.h"
#include "config.h"

#include "../../../core/base/environment.h"
#include "../../../core/graph/graph.h"
#include <hipmm/plugin.h>
#include <string.h>
#include <unistd.h>

enum { INFO_TIMEOUT_S = 30, INFO_MOST_TIMEOUT_S = 3600 };

/* ---- The graph ------------------------------------------------------------------------------------------------- */

static const char *info_graph_from(const char *given, const struct source *source)
{
  const char *named = environment_get("HIPMM_CONFIG");
  if (given) return "--config";
  if (!source->file) return "none found";
  if (named && *named) return "HIPMM_CONFIG";
  return strchr(source->file, '/') ? "the system's file" : "this folder";
}

static json_t *info_graph(const struct source *source, const char *from, const struct graph *graph)
{
  return json_pack("{s:o, s:s, s:b, s:o, s:i}", "file", output_json_string(source->file), "from", from, "ok",
                   graph != NULL, "runtime", output_json_string(graph ? graph->runtime : NULL), "resources",
                   graph ? (int)graph->n_nodes : 0);
}

/* ---- Runtimes -------------------------------------------------------------------------------------------------- */

struct info_search {
  const struct source *source; /* NULL: none, or it is not valid */
  const struct plugin_path *path;
  unsigned timeout_s;
};

/* Why there is no nvidia runtime here; NULL if there is one, or configure did not leave it out. */
static const char *info_nvidia_missing(const struct plugin_path *path)
{
  static const char no[] = "no: ";
  bool was_left_out = strncmp(HIPMM_NVIDIA, no, sizeof no - 1) == 0;
  return was_left_out && !plugin_exists(path, "nvidia") ? &HIPMM_NVIDIA[sizeof no - 1] : NULL;
}

static json_t *info_runtime(const struct info_search *search, const char *name, bool may_be_current)
{
  bool is_left_out = !strcmp(name, "nvidia") && info_nvidia_missing(search->path);
  json_t *runtime = is_left_out ? json_pack("{s:s}", "reason", "hipmm was built without it")
                                : info_probe(search->source, name, search->timeout_s);
  bool is_good = json_is_null(json_object_get(runtime, "reason"));
  json_object_set_new(runtime, "name", output_json_string(name));
  json_object_set_new(runtime, "in_force", json_boolean(is_good && may_be_current));
  return runtime;
}

/* The runtimes that "auto" tries, in its order, and `wanted` if that is another one. */
static json_t *info_runtimes(const struct info_search *search, const char *wanted)
{
  bool is_auto = strcmp(wanted, "auto") == 0, is_listed = is_auto, any = false;
  json_t *runtimes = json_array();
  for (size_t i = 0; i < GRAPH_AUTO_RUNTIMES; i++) {
    const char *name = graph_auto_runtimes[i];
    bool is_wanted = strcmp(wanted, name) == 0;
    json_t *runtime = info_runtime(search, name, is_auto ? !any : is_wanted);
    any = any || json_is_true(json_object_get(runtime, "in_force"));
    is_listed = is_listed || is_wanted;
    json_array_append_new(runtimes, runtime);
  }
  if (!is_listed) json_array_append_new(runtimes, info_runtime(search, wanted, true));
  return runtimes;
}

/* ---- Plugins --------------------------------------------------------------------------------------------------- */

struct info_folders {
  const struct plugin_path *path;
  json_t *list;
};

static bool info_is_in_environment(const char *folder)
{
  size_t length = strlen(folder);
  for (const char *text = environment_get("HIPMM_PLUGIN_PATH"); text && *text;) {
    size_t part = strcspn(text, ":");
    if (part == length && strncmp(text, folder, length) == 0) return true;
    text += part + (text[part] == ':');
  }
  return false;
}

static const char *info_folder_from(const struct plugin_path *path, const char *folder)
{
  if (info_is_in_environment(folder)) return "HIPMM_PLUGIN_PATH";
  for (size_t i = 0; i < path->n_folders; i++)
    if (strcmp(path->folders[i], folder) == 0) return "plugin_path of the graph";
  return "hipmm's own";
}

static void info_add_folder(void *closure, const char *folder)
{
  struct info_folders *folders = closure;
  json_array_append_new(folders->list, json_pack("{s:o, s:s, s:b, s:i, s:i}", "folder", output_json_string(folder),
                                                 "from", info_folder_from(folders->path, folder), "exists",
                                                 access(folder, F_OK) == 0, "plugins", 0, "refused", 0));
}

/* Counts the plugin in its folder: the last one whose name its file begins with. */
static void info_count_plugin(void *closure, const struct plugin_candidate *candidate)
{
  struct info_folders *folders = closure;
  json_t *found = NULL;
  for (size_t i = 0; i < json_array_size(folders->list); i++) {
    json_t *folder = json_array_get(folders->list, i);
    const char *name = json_string_value(json_object_get(folder, "folder"));
    size_t length = name ? strlen(name) : 0;
    if (!found && length && strncmp(candidate->file, name, length) == 0 && candidate->file[length] == '/')
      found = folder;
  }
  json_t *count = json_object_get(found, candidate->plugin ? "plugins" : "refused");
  if (count) json_integer_set(count, json_integer_value(count) + 1);
}

static json_t *info_folders(const struct plugin_path *path)
{
  struct info_folders folders = {path, json_array()};
  plugin_visit_folders(path, info_add_folder, &folders);
  plugin_scan(path, info_count_plugin, &folders);
  return folders.list;
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

/* null: no python3, no package of hipmm's in it, or no PyTorch. */
static json_t *info_pytorch(unsigned timeout_s)
{
  json_t *found = info_probe(NULL, NULL, timeout_s);
  if (json_is_string(json_object_get(found, "version"))) return found;
  json_decref(found);
  return json_null();
}

static json_t *info_make(const struct source *source, const char *from, const struct graph *graph, unsigned timeout_s)
{
  const struct plugin_path none = {0}, *path = graph ? &graph->plugin_path : &none;
  const char *wanted = environment_get("HIPMM_RUNTIME");
  const struct info_search search = {graph ? source : NULL, path, timeout_s};
  if (!wanted || !*wanted) wanted = graph ? graph->runtime : "auto";
  return json_pack("{s:s, s:i, s:o, s:s, s:o, s:s?, s:o, s:o}", "version", hipmm_version(), "plugin_abi",
                   HIPMM_PLUGIN_ABI, "graph", info_graph(source, from, graph), "runtime", wanted, "runtimes",
                   info_runtimes(&search, wanted), "nvidia_missing", info_nvidia_missing(path), "plugin_folders",
                   info_folders(path), "pytorch", info_pytorch(timeout_s));
}

/* 1 if a program would not get far: the graph is not valid, or no runtime can be used. */
static int info_status(const json_t *info)
{
  const json_t *runtimes = json_object_get(info, "runtimes");
  bool any = false;
  for (size_t i = 0; i < json_array_size(runtimes); i++)
    any |= json_is_true(json_object_get(json_array_get(runtimes, i), "in_force"));
  return any && json_is_true(json_object_get(json_object_get(info, "graph"), "ok")) ? CMD_GOOD : CMD_BAD;
}

static int info_run(int argc, char **argv)
{
  bool json = false;
  const char *config = NULL;
  long timeout_s = INFO_TIMEOUT_S;
  int status;
  const struct argument rows[] = {
      CONFIG_ARGUMENT(&config),
      {"timeout", "N", "the most seconds that a runtime may take to answer; 30 by default", .number = &timeout_s,
       .least = 1, .most = INFO_MOST_TIMEOUT_S},
      {"json", NULL, "print one JSON object", .flag = &json},
  };
  struct arguments arguments = {&info_command, rows, sizeof rows / sizeof *rows, 0, 0, NULL, 0};
  if (!arguments_read(&arguments, argc, argv, &status)) return status;
  struct source source;
  struct graph *graph = NULL;
  source_choose(&source, config);
  (void)!source_read(&source, &graph); /* the errors were printed */
  json_t *info = info_make(&source, info_graph_from(config, &source), graph, (unsigned)timeout_s);
  if (graph) graph_release(graph);
  status = info ? info_status(info) : CMD_BAD;
  if (json || !info) return output_json(info, status);
  info_print(info);
  json_decref(info);
  return output_finish(status);
}

const struct command info_command = {
    "info", "print the graph, runtimes and devices that hipmm finds here", "",
    "Prints the versions; the graph file in use and where it comes from; each runtime, whether it can be used here, "
    "and if not, why; the memory of the devices of the runtime in use, and what they support; the folders that are "
    "searched for plugins; what to install if hipmm was built without the nvidia runtime; and which allocator the "
    "PyTorch of `python3` gets, and why. Each runtime, and Python, is asked in a process of its own, which is ended if "
    "it does not answer in time.\n"
    "\n"
    "Exit status 1 if the graph is not valid or no runtime can be used.",
    info_run};
