/* SPDX-License-Identifier: MIT */
/* graph_options.c: checks the options of all resources, by their option tables and by their plugins. Called by graph.c
 * once all names are linked, since a plugin may ask about the resources around. Nodes are in the order of the file, may
 * form cycles, and may lack a plugin. */
#include "../option/option.h"
#include "graph_build.h"

#include <stdlib.h>

/* A node whose options are checked. */
struct surroundings {
  const struct graph_build *build;
  const struct graph_node *node;
};

static const char *graph_options_upstream(void *closure, size_t index)
{
  const struct surroundings *around = closure;
  const struct graph_node *node = around->node;
  return index < node->n_upstreams ? around->build->graph->nodes[node->upstreams[index]].name : NULL;
}

static bool graph_options_find(void *closure, const char *name, const struct hipmm_plugin **plugin_out,
                               const json_t **object_out)
{
  const struct surroundings *around = closure;
  const json_t *index = json_object_get(around->build->index, name);
  const struct graph_node *node = index ? &around->build->graph->nodes[json_integer_value(index)] : NULL;
  if (!node || !node->plugin) return false;
  *plugin_out = &node->plugin->descriptor;
  *object_out = node->object;
  return true;
}

static bool graph_options_is_device_memory(void *closure)
{
  const struct surroundings *around = closure;
  const struct graph *graph = around->build->graph;
  bool is_below[GRAPH_MAX_NODES] = {false}, has_source = false;
  is_below[around->node - graph->nodes] = true;
  graph_mark_needed(graph, is_below);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const struct plugin *plugin = graph->nodes[i].plugin;
    if (!is_below[i] || graph->nodes[i].n_references) continue;
    if (!plugin || !(plugin->descriptor.flags & HIPMM_PLUGIN_DEVICE_MEMORY)) return false;
    has_source = true;
  }
  return has_source;
}

static bool graph_options_has_device_memory(void *closure, const char *name)
{
  const struct surroundings *around = closure;
  const struct graph *graph = around->build->graph;
  const json_t *index = json_object_get(around->build->index, name);
  bool is_below[GRAPH_MAX_NODES] = {false};
  if (!index) return false;
  is_below[json_integer_value(index)] = true;
  graph_mark_needed(graph, is_below);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const struct plugin *plugin = graph->nodes[i].plugin;
    if (is_below[i] && plugin && plugin->descriptor.flags & HIPMM_PLUGIN_DEVICE_MEMORY) return true;
  }
  return false;
}

/* Marks the nodes that can be in one stack with `node`: those that depend on it, and all that these depend on. */
static void graph_options_mark_stacks(const struct graph *graph, size_t node, bool *is_marked)
{
  bool has_changed = true;
  is_marked[node] = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 0; i < graph->n_nodes; i++)
      for (size_t r = 0; !is_marked[i] && r < graph->nodes[i].n_references; r++)
        has_changed |= is_marked[i] = is_marked[graph->nodes[i].references[r]];
  }
  graph_mark_needed(graph, is_marked);
}

static const char *graph_options_same_as(void *closure, const char *option)
{
  const struct surroundings *around = closure;
  const struct graph *graph = around->build->graph;
  const struct graph_node *node = around->node;
  const json_t *value = json_object_get(node->object, option);
  bool is_in_stack[GRAPH_MAX_NODES] = {false}, is_marked = false;
  for (const struct graph_node *other = graph->nodes; other < node; other++) {
    const json_t *its = json_object_get(other->object, option);
    if (other->plugin != node->plugin || (value ? !its || !json_equal(value, its) : its != NULL)) continue;
    if (!is_marked) graph_options_mark_stacks(graph, (size_t)(node - graph->nodes), is_in_stack);
    is_marked = true;
    if (is_in_stack[other - graph->nodes]) return other->name;
  }
  return NULL;
}

/* A sub-allocator keeps freed blocks and divides them, and a guard fills them: the source could not take them back. */
static void graph_options_check_undivided(struct graph_build *build, const struct graph_node *node)
{
  const struct graph *graph = build->graph;
  bool is_below[GRAPH_MAX_NODES] = {false};
  if (!graph_uses_freed_blocks(&node->plugin->descriptor)) return;
  is_below[node - graph->nodes] = true;
  graph_mark_needed(graph, is_below);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const struct plugin *plugin = graph->nodes[i].plugin;
    if (is_below[i] && plugin && plugin->descriptor.flags & HIPMM_PLUGIN_UNDIVIDED)
      diagnostics_add(build->diagnostics, HIPMM_E_CONFIG, node->path, GRAPH_UNDIVIDED, node->plugin->descriptor.type,
                      plugin->descriptor.type);
  }
}

static void graph_options_check_node(struct graph_build *build, const struct graph_node *node)
{
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  const struct diagnostic *before = build->diagnostics->last;
  struct option_context context = {.diagnostics = build->diagnostics,
                                   .path = node->path,
                                   .keys = graph_resource_keys,
                                   .top = graph_top_keys,
                                   .owner = descriptor->type};
  struct surroundings around = {build, node};
  const struct option_surroundings surroundings = {.closure = &around,
                                                   .upstream = graph_options_upstream,
                                                   .is_device_memory = graph_options_is_device_memory,
                                                   .same_as = graph_options_same_as,
                                                   .has_device_memory = graph_options_has_device_memory,
                                                   .find = graph_options_find};
  void *options = graph_build_allocate(build, 1, descriptor->options_bytes + 1);
  if (options && option_fill_valid(descriptor, node->object, &context, &surroundings, options))
    option_free(descriptor->options, descriptor->n_options, options);
  free(options);
  graph_options_check_undivided(build, node);
  graph_build_set_resource(build, before, node->name);
}

void graph_check_options(struct graph_build *build)
{
  for (size_t i = 0; i < build->graph->n_nodes; i++)
    if (build->graph->nodes[i].plugin) graph_options_check_node(build, &build->graph->nodes[i]);
}
