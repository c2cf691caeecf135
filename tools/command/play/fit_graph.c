/* SPDX-License-Identifier: MIT */
/* fit_graph.c: the graph of a search for the least budget, with a maximum_size of its own for each resource that has one. Called by
 * fit.c. Never changes the file. */
#include "fit.h"

#include "../../../core/base/text.h"
#include "../../../core/graph/graph.h"
#include "../../../core/option/option_value.h"
#include <stdlib.h>
#include <string.h>

static const struct hipmm_option *fit_graph_option(const struct graph_node *node)
{
  const struct hipmm_plugin *plugin = &node->plugin->descriptor;
  const struct hipmm_option *row = option_find(plugin->options, plugin->n_options, "maximum_size");
  return row && row->type == HIPMM_OPTION_BYTES ? row : NULL;
}

bool fit_graph_open(const struct fit_request *request, struct fit_graph *fit_graph)
{
  bool is_needed[GRAPH_MAX_NODES] = {false};
  *fit_graph = (struct fit_graph){.graph = NULL};
  if (!source_read(request->source, &fit_graph->graph)) return false;
  const struct graph *graph = fit_graph->graph;
  is_needed[graph_top(graph, request->device)] = true;
  graph_mark_needed(graph, is_needed);
  fit_graph->pools = calloc(graph->n_nodes + 1, sizeof *fit_graph->pools);
  for (size_t i = graph->n_nodes; fit_graph->pools && i-- > 0;)
    if (is_needed[i] && fit_graph_option(&graph->nodes[i]))
      fit_graph->pools[fit_graph->n_pools++].node = &graph->nodes[i];
  if (fit_graph->n_pools) return true;
  if (fit_graph->pools)
    say("%s: %s: the stack of device %d has no resource with a \"maximum_size\", such as a pool: {\"stack\": "
        "[\"pool\", \"device\"]}",
        request->command, request->source->file ? request->source->file : "no graph file was found", request->device);
  else
    say("%s: out of memory", request->command);
  fit_graph_close(fit_graph);
  return false;
}

void fit_graph_close(struct fit_graph *fit_graph)
{
  if (fit_graph->graph) graph_release(fit_graph->graph);
  free(fit_graph->pools);
  *fit_graph = (struct fit_graph){.graph = NULL};
}

/* The object of a node in a copy of the graph. One that is a bare string becomes an object. The path has no escapes: it is of
 * names, numbers and keys of the graph. */
static json_t *fit_graph_object(json_t *root, const char *path)
{
  char part[TEXT_LONGEST_NAME + 32];
  json_t *value = root, *parent = NULL;
  while (value && *path == '/') {
    size_t length = strcspn(++path, "/");
    snprintf(part, sizeof part, "%.*s", (int)length, path);
    parent = value;
    value = json_is_array(parent) ? json_array_get(parent, strtoul(part, NULL, 10)) : json_object_get(parent, part);
    path += length;
  }
  if (!json_is_string(value)) return value;
  json_t *object = json_pack("{s:O}", "type", value);
  if (json_is_array(parent) ? json_array_set_new(parent, strtoul(part, NULL, 10), object)
                            : json_object_set_new(parent, part, object))
    return NULL;
  return object;
}

/* The option that the maximum may not be below (initial_size) is memory that is taken at once; its default is 0. */
static bool fit_graph_set(const struct fit_pool *pool, json_t *root)
{
  const struct hipmm_option *row = fit_graph_option(pool->node);
  json_t *object = fit_graph_object(root, pool->node->path);
  if (row->at_least) json_object_del(object, row->at_least);
  if (!pool->maximum_bytes) json_object_del(object, row->name);
  return object && (!pool->maximum_bytes ||
                    !json_object_set_new(object, row->name, json_integer((json_int_t)pool->maximum_bytes)));
}

/* The folders are relative to the file, which the text is not of. */
static bool fit_graph_set_folders(const struct plugin_path *path, json_t *root)
{
  json_t *folders = json_array();
  for (size_t i = 0; i < path->n_folders; i++) json_array_append_new(folders, json_string(path->folders[i]));
  if (path->n_folders) return !json_object_set_new(root, "plugin_path", folders);
  json_decref(folders);
  return true;
}

char *fit_graph_text(const struct fit_graph *fit_graph)
{
  json_t *root = json_deep_copy(fit_graph->graph->root);
  bool is_good = root && fit_graph_set_folders(&fit_graph->graph->plugin_path, root);
  for (size_t i = 0; is_good && i < fit_graph->n_pools; i++) is_good = fit_graph_set(&fit_graph->pools[i], root);
  char *text = is_good ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  return text;
}
