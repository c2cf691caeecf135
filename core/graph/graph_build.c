/* SPDX-License-Identifier: MIT */
/* graph_build.c: what the steps of reading a graph share: reporting errors, finding plugins and nodes by name, adding
 * nodes, following references. */
#include "graph_build.h"
#include "../base/text.h"
#include "../option/option.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void graph_build_refuse(struct graph_build *build, const char *path, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(build->diagnostics, HIPMM_E_CONFIG, path, format, arguments);
  va_end(arguments);
}

void graph_build_refuse_key(struct graph_build *build, const char *parent, const char *key, const char *format, ...)
{
  va_list arguments;
  char *path = text_pointer(parent, key);
  va_start(arguments, format);
  diagnostics_add_arguments(build->diagnostics, HIPMM_E_CONFIG, path, format, arguments);
  va_end(arguments);
  free(path);
}

void graph_build_refuse_value(struct graph_build *build, const char *path, const json_t *value, const char *what)
{
  char shown[TEXT_QUOTE_BYTES];
  graph_build_refuse(build, path, "%s %s", option_show(value, shown, sizeof shown), what);
}

void graph_build_set_resource(struct graph_build *build, const struct diagnostic *before, const char *name)
{
  for (struct diagnostic *diagnostic = before ? before->next : build->diagnostics->first; diagnostic;
       diagnostic = diagnostic->next) {
    char *copy = diagnostic->resource[0] ? NULL : strdup(name);
    if (!copy) continue;
    free(diagnostic->resource);
    diagnostic->resource = copy;
  }
}

void graph_build_lacks_memory(struct graph_build *build, const char *path)
{
  diagnostics_add(build->diagnostics, HIPMM_E_OUT_OF_MEMORY, path, "no host memory for the graph");
}

void *graph_build_allocate(struct graph_build *build, size_t n, size_t bytes)
{
  void *memory = calloc(n ? n : 1, bytes);
  if (!memory) graph_build_lacks_memory(build, "");
  return memory;
}

/* ---- Plugins --------------------------------------------------------------------------------------------------- */

/* Loads the plugins of all resource types, to find the nearest name for an unknown one. */
static void graph_build_find_types(struct graph_build *build)
{
  if (build->types) return;
  size_t n;
  build->types = plugin_all(&build->graph->plugin_path, &n);
  for (size_t i = 0; i < n; i++)
    if (build->types[i]->descriptor.role != HIPMM_ROLE_RUNTIME) build->types[build->n_types++] = build->types[i];
}

/* The first folder of the graph's plugin_path that does not exist; NULL if all exist. */
static const char *graph_build_missing_folder(const struct graph_build *build)
{
  const struct plugin_path *path = &build->graph->plugin_path;
  for (size_t i = 0; i < path->n_folders; i++)
    if (access(path->folders[i], F_OK)) return path->folders[i];
  return NULL;
}

/* Returns the plugin of the nearest type; NULL if none is near. */
static const struct plugin *graph_build_refuse_unknown_type(struct graph_build *build, const char *type,
                                                            const char *path)
{
  char shown[TEXT_QUOTE_BYTES], known[1024] = "";
  const struct plugin *nearest = NULL;
  struct text_near near = text_near(type);
  for (size_t i = 0; i < build->n_types; i++) {
    const char *found = build->types[i]->descriptor.type;
    text_near_try(&near, found);
    if (near.name == found) nearest = build->types[i];
    text_append(known, sizeof known, "%s%s", *known ? ", " : "", found);
  }
  text_quote(type, shown, sizeof shown);
  const char *missing = graph_build_missing_folder(build);
  if (nearest)
    graph_build_refuse(build, path, "unknown type %s; did you mean \"%s\"?", shown, near.name);
  else if (missing)
    graph_build_refuse(build, path, "unknown type %s; the types are %s (%s, which \"plugin_path\" names, is not there)",
                       shown, known, missing);
  else
    graph_build_refuse(build, path,
                       "unknown type %s; the types are %s (more are found through HIPMM_PLUGIN_PATH and "
                       "\"plugin_path\")",
                       shown, known);
  return nearest;
}

/* If the plugin exists, the error is the loader's; if no file has this name, the graph is wrong. */
static const struct plugin *graph_build_refuse_type(struct graph_build *build, const char *type, const char *path)
{
  const struct plugin *plugin;
  graph_build_find_types(build);
  if (build->n_types && !plugin_exists(&build->graph->plugin_path, type))
    return graph_build_refuse_unknown_type(build, type, path);
  enum hipmm_status status = plugin_get(&build->graph->plugin_path, type, &plugin); /* for its error record */
  if (status == HIPMM_OK) return plugin;
  diagnostics_add_last_error(build->diagnostics, path);
  return NULL;
}

const struct plugin *graph_build_plugin(struct graph_build *build, const char *type, const char *path)
{
  const struct plugin *plugin = NULL;
  if (plugin_get(&build->graph->plugin_path, type, &plugin)) plugin = graph_build_refuse_type(build, type, path);
  if (!plugin || plugin->descriptor.role != HIPMM_ROLE_RUNTIME) return plugin;
  graph_build_refuse(build, path, "%s is a runtime, not a resource; write it as the graph's \"runtime\"", type);
  return NULL;
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

int graph_build_find(struct graph_build *build, const char *name, const char *path)
{
  json_t *found = json_object_get(build->index, name);
  if (found) return (int)json_integer_value(found);
  char shown[TEXT_QUOTE_BYTES], hint[TEXT_HINT_BYTES];
  size_t n = build->diagnostics->n_errors < DIAGNOSTICS_MOST_KEPT ? build->graph->n_nodes : 0;
  struct text_near near = text_near(name);
  for (size_t i = 0; i < n; i++) text_near_try(&near, build->graph->nodes[i].name);
  graph_build_refuse(build, path, "no resource is called %s%s", text_quote(name, shown, sizeof shown),
                     text_hint(near.name, hint, sizeof hint));
  build->is_dangling = true;
  return -1;
}

int graph_build_add_node(struct graph_build *build, const char *name, const char *path, json_t *object)
{
  int index = (int)build->graph->n_nodes;
  struct graph_node node = {.name = strdup(name), .path = strdup(path)};
  node.object = object ? json_incref(object) : json_object();
  if (node.name && node.path && node.object && !json_object_set_new(build->index, name, json_integer(index))) {
    build->graph->nodes[build->graph->n_nodes++] = node;
    return index;
  }
  free((char *)node.name);
  free(node.path);
  json_decref(node.object);
  graph_build_lacks_memory(build, path);
  return -1;
}

void graph_mark_needed(const struct graph *graph, bool *is_marked)
{
  int waiting[GRAPH_MAX_NODES];
  size_t n_waiting = 0;
  for (size_t i = 0; i < graph->n_nodes; i++)
    if (is_marked[i]) waiting[n_waiting++] = (int)i;
  while (n_waiting) {
    const struct graph_node *node = &graph->nodes[waiting[--n_waiting]];
    for (size_t r = 0; r < node->n_references; r++) {
      if (is_marked[node->references[r]]) continue;
      is_marked[node->references[r]] = true;
      waiting[n_waiting++] = node->references[r];
    }
  }
}
