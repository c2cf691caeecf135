/* SPDX-License-Identifier: MIT */
/* graph.c: graphs from their reading to their end. Called by api, the stacks and the command. The steps of reading are
 * in the other graph_ files (see graph_build.h). Never changes a graph that was returned. */
#include "graph.h"
#include "graph_build.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void graph_free_node(struct graph_node *node)
{
  free((char *)node->name);
  free(node->path);
  free(node->upstreams);
  free(node->references);
  json_decref(node->object);
}

static void graph_free(struct graph *graph)
{
  for (size_t i = 0; i < graph->n_nodes; i++) graph_free_node(&graph->nodes[i]);
  for (size_t i = 0; i < graph->plugin_path.n_folders; i++) free((char *)graph->plugin_path.folders[i]);
  free((void *)graph->plugin_path.folders);
  free(graph->nodes);
  free(graph->devices);
  free(graph->source);
  json_decref(graph->runtime_object);
  json_decref(graph->root);
  free(graph);
}

void graph_retain(struct graph *graph)
{
  __atomic_fetch_add(&graph->references, 1, __ATOMIC_RELAXED);
}

void graph_release(struct graph *graph)
{
  if (__atomic_fetch_sub(&graph->references, 1, __ATOMIC_ACQ_REL) == 1) graph_free(graph);
}

/* An empty graph with memory for all nodes. Takes the reference to `root`. */
static struct graph *graph_new(json_t *root, const char *source, size_t n_nodes)
{
  struct graph *graph = calloc(1, sizeof *graph);
  if (!graph) {
    json_decref(root);
    return NULL;
  }
  *graph = (struct graph){
      .references = 1, .root = root, .runtime = "auto", .default_node = -1, .resource_keys = graph_resource_keys};
  graph->source = strdup(source);
  graph->runtime_object = json_object();
  graph->nodes = calloc(n_nodes, sizeof *graph->nodes);
  if (graph->source && graph->runtime_object && graph->nodes) return graph;
  graph_free(graph);
  return NULL;
}

/* What a graph is read from. */
struct origin {
  const char *text;
  size_t bytes;
  const char *source;
  const char *folder; /* where relative paths begin; NULL: the working directory */
  bool is_check;
};

static void graph_read_origin(struct graph *graph, const struct origin *origin, struct diagnostics *diagnostics)
{
  struct graph_build build = {.graph = graph,
                              .diagnostics = diagnostics,
                              .folder = origin->folder,
                              .index = json_object(),
                              .is_check = origin->is_check};
  graph_read_settings(&build);
  graph_read_resources(&build);
  graph_link(&build);
  graph_check_options(&build);
  graph_order(&build);
  json_decref(build.index);
  free(build.types);
}

static enum hipmm_status graph_from_origin(const struct origin *origin, struct diagnostics *diagnostics,
                                           struct graph **graph_out)
{
  json_t *root = graph_parse(origin->text, origin->bytes, diagnostics);
  struct graph *graph = root ? graph_new(root, origin->source, GRAPH_MAX_NODES) : NULL;
  if (root && !graph) diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory for the graph");
  if (graph) graph_read_origin(graph, origin, diagnostics);
  graph_position_all(origin->text, root != NULL, diagnostics);
  if (!graph && !diagnostics->n_errors) /* not even for what is wrong */
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
  bool is_good = graph && diagnostics->n_errors == 0;
  if (is_good && graph_out)
    *graph_out = graph;
  else if (graph)
    graph_release(graph);
  return is_good ? HIPMM_OK : diagnostics_status(diagnostics);
}

/* The folder of a file, absolute, since the working directory may change. The caller frees it. */
static char *graph_folder_of(const char *file)
{
  const char *slash = strrchr(file, '/');
  char *folder = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
  char *absolute = folder ? realpath(folder, NULL) : NULL;
  if (!absolute) return folder;
  free(folder);
  return absolute;
}

static enum hipmm_status graph_read_file(const char *file, bool is_check, struct diagnostics *diagnostics,
                                         struct graph **graph_out)
{
  char *text = NULL;
  size_t bytes = 0;
  if (!graph_file_read(file, diagnostics, &text, &bytes)) return diagnostics_status(diagnostics);
  char *folder = graph_folder_of(file);
  const struct origin origin = {text, bytes, file, folder, is_check};
  enum hipmm_status status = graph_from_origin(&origin, diagnostics, graph_out);
  free(folder);
  free(text);
  return status;
}

enum hipmm_status graph_from_file(const char *file, struct diagnostics *diagnostics, struct graph **graph_out)
{
  return graph_read_file(file, false, diagnostics, graph_out);
}

enum hipmm_status graph_from_string(const char *json, const char *source, struct diagnostics *diagnostics,
                                    struct graph **graph_out)
{
  const struct origin origin = {.text = json, .bytes = strlen(json), .source = source};
  return graph_from_origin(&origin, diagnostics, graph_out);
}

enum hipmm_status graph_check(const char *file, const char *json, struct diagnostics *diagnostics,
                              struct graph **graph_out)
{
  if (!json) return graph_read_file(file, true, diagnostics, graph_out);
  const struct origin origin = {.text = json, .bytes = strlen(json), .source = file, .is_check = true};
  return graph_from_origin(&origin, diagnostics, graph_out);
}

enum hipmm_status graph_built_in(struct diagnostics *diagnostics, struct graph **graph_out)
{
  return graph_from_string("{}", "<built in>", diagnostics, graph_out);
}

bool graph_is_text(const char *name)
{
  return name[strspn(name, " \t\r\n")] == '{';
}

/* What graph_load() takes where there is no file. */
static const char *_Atomic graph_without_file = "{}";

void graph_set_without_file(const char *json)
{
  atomic_store(&graph_without_file, json);
}

enum hipmm_status graph_load(const char *file, const char *json, struct graph **graph_out)
{
  struct diagnostics diagnostics = {.source = file   ? file
                                              : json ? "<string>"
                                                     : "<built in>",
                                    .is_graph_file = file != NULL};
  struct graph *graph = NULL;
  if (file)
    graph_from_file(file, &diagnostics, &graph);
  else
    graph_from_string(json ? json : atomic_load(&graph_without_file), diagnostics.source, &diagnostics, &graph);
  enum hipmm_status status = diagnostics_raise(&diagnostics); /* and logs the warnings */
  diagnostics_clear(&diagnostics);
  if (!status) *graph_out = graph;
  return status;
}

bool graph_is_same(const struct graph *graph, const struct graph *other)
{
  const struct plugin_path *path = &graph->plugin_path, *other_path = &other->plugin_path;
  bool is_same = !strcmp(graph->runtime, other->runtime) && path->n_folders == other_path->n_folders &&
                 json_equal(graph->root, other->root);
  for (size_t i = 0; is_same && i < path->n_folders; i++) is_same = !strcmp(path->folders[i], other_path->folders[i]);
  return is_same;
}

int graph_top(const struct graph *graph, int device)
{
  for (size_t i = 0; i < graph->n_devices; i++)
    if (graph->devices[i].device == device) return graph->devices[i].node;
  return graph->default_node;
}

int graph_find(const struct graph *graph, const char *name)
{
  for (size_t i = 0; i < graph->n_nodes; i++)
    if (!strcmp(graph->nodes[i].name, name)) return (int)i;
  return -1;
}

/* ---- Resources made in code ------------------------------------------------------------------------------------ */

enum hipmm_status graph_type(struct graph *graph, const char *type, struct diagnostics *diagnostics,
                             const struct plugin **plugin_out)
{
  struct graph_build build = {.graph = graph, .diagnostics = diagnostics};
  const struct plugin *plugin = graph_build_plugin(&build, type, "");
  free(build.types);
  if (!plugin || diagnostics->n_errors) return diagnostics_status(diagnostics);
  *plugin_out = plugin;
  return HIPMM_OK;
}

struct graph *graph_single(const char *name, const struct plugin *plugin, json_t *options)
{
  static const char *const none[] = {NULL};
  struct graph *graph = graph_new(json_object(), "<options>", 1);
  if (!graph) return NULL;
  struct graph_node node = {.name = strdup(name), .path = strdup(""), .plugin = plugin, .object = json_incref(options)};
  graph->nodes[graph->n_nodes++] = node;
  graph->default_node = 0;
  graph->resource_keys = none;
  if (node.name && node.path) return graph;
  graph_release(graph);
  return NULL;
}

enum hipmm_status graph_rename(struct graph *graph, const char *name)
{
  char *copy = strdup(name);
  if (!copy) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  free((char *)graph->nodes[0].name);
  graph->nodes[0].name = copy;
  return HIPMM_OK;
}
