/* SPDX-License-Identifier: MIT */
/* graph_link.c: turns the names in "upstream", in options and in "devices" into indices of nodes. Called by graph.c
 * once all nodes exist; graph_order.c finds the cycles. */
#include "../base/text.h"
#include "../option/option.h"
#include "graph_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Upstreams ------------------------------------------------------------------------------------------------- */

static void graph_link_refuse_missing(struct graph_build *build, const struct graph_node *node)
{
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  if (descriptor->min_upstreams == 1)
    graph_build_refuse(build, node->path, "%s needs an upstream; write \"upstream\": \"NAME\"", descriptor->type);
  else
    graph_build_refuse(build, node->path, "%s needs %u upstreams; write \"upstream\": [\"NAME\", …]", descriptor->type,
                       descriptor->min_upstreams);
}

static void graph_link_refuse_count(struct graph_build *build, const struct graph_node *node, const char *path,
                                    size_t n)
{
  const struct hipmm_plugin *descriptor = &node->plugin->descriptor;
  uint32_t min = descriptor->min_upstreams, max = descriptor->max_upstreams;
  if (max == 0)
    graph_build_refuse(build, path, "%s takes no upstream; leave it out", descriptor->type);
  else if (max == 1)
    graph_build_refuse(build, path, "%s takes one upstream; write its name, not a list", descriptor->type);
  else
    graph_build_refuse(build, path, "%s takes %u to %u upstreams, not %zu", descriptor->type, min, max, n);
}

static int graph_link_find_upstream(struct graph_build *build, const json_t *value, const char *path)
{
  if (json_is_string(value)) return graph_build_find(build, json_string_value(value), path);
  graph_build_refuse_value(build, path, value, "is not the name of a resource");
  return -1;
}

static void graph_link_add_upstream(struct graph_node *node, int upstream)
{
  if (upstream >= 0) node->upstreams[node->n_upstreams++] = upstream;
}

static void graph_link_read_upstreams(struct graph_build *build, struct graph_node *node, const json_t *value,
                                      const char *path)
{
  bool is_list = json_is_array(value);
  size_t n = is_list ? json_array_size(value) : 1;
  const struct hipmm_plugin *descriptor = node->plugin ? &node->plugin->descriptor : NULL;
  if (descriptor &&
      (n < descriptor->min_upstreams || n > descriptor->max_upstreams || (is_list && descriptor->max_upstreams == 1))) {
    graph_link_refuse_count(build, node, path, n);
    return;
  }
  node->upstreams = graph_build_allocate(build, n, sizeof *node->upstreams);
  if (!node->upstreams) return;
  if (!is_list) graph_link_add_upstream(node, graph_link_find_upstream(build, value, path));
  for (size_t i = 0; is_list && i < n; i++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    char *item_path = text_pointer(path, number);
    graph_link_add_upstream(node, graph_link_find_upstream(build, json_array_get(value, i), item_path));
    free(item_path);
  }
}

static void graph_link_resource(struct graph_build *build, struct graph_node *node)
{
  const json_t *value = json_object_get(node->object, "upstream");
  char *path = text_pointer(node->path, "upstream");
  if (value && !path)
    graph_build_lacks_memory(build, node->path);
  else if (value)
    graph_link_read_upstreams(build, node, value, path);
  else if (node->plugin && node->plugin->descriptor.min_upstreams > 0)
    graph_link_refuse_missing(build, node);
  free(path);
}

static void graph_link_element(struct graph_build *build, struct graph_node *node, int index)
{
  const struct hipmm_plugin *descriptor = node->plugin ? &node->plugin->descriptor : NULL;
  bool is_last = (size_t)index + 1 == build->graph->n_nodes;
  if (descriptor && is_last && descriptor->min_upstreams > 0)
    graph_build_refuse(build, node->path, "%s needs an upstream; end the stack with a source, such as \"device\"",
                       descriptor->type);
  if (descriptor && !is_last && descriptor->max_upstreams == 0)
    graph_build_refuse(build, node->path, "%s takes no upstream, so it can only be the last of the stack",
                       descriptor->type);
  if (descriptor && !is_last && descriptor->min_upstreams > 1)
    graph_build_refuse(build, node->path, "%s needs %u upstreams; write \"resources\" instead of \"stack\"",
                       descriptor->type, descriptor->min_upstreams);
  if (is_last) return;
  node->upstreams = graph_build_allocate(build, 1, sizeof *node->upstreams);
  if (node->upstreams) graph_link_add_upstream(node, index + 1);
}

/* ---- References ------------------------------------------------------------------------------------- */

/* The nodes that one node references, each once. */
struct references {
  struct graph_build *build;
  const struct graph_node *node;
  bool is_referenced[GRAPH_MAX_NODES];
  int items[GRAPH_MAX_NODES];
  size_t count;
};

static void graph_link_add_reference(struct references *references, int index)
{
  if (index < 0 || references->is_referenced[index]) return;
  references->is_referenced[index] = true;
  references->items[references->count++] = index;
}

static void graph_link_visit_reference(void *closure, const char *name, const char *relative_path)
{
  struct references *references = closure;
  char *path;
  if (asprintf(&path, "%s%s", references->node->path, relative_path) < 0) path = NULL;
  graph_link_add_reference(references, graph_build_find(references->build, name, path));
  free(path);
}

static void graph_link_references(struct graph_build *build, struct graph_node *node)
{
  struct references references = {.build = build, .node = node};
  for (size_t i = 0; i < node->n_upstreams; i++) graph_link_add_reference(&references, node->upstreams[i]);
  if (node->plugin)
    option_references(node->plugin->descriptor.options, node->plugin->descriptor.n_options, node->object,
                      graph_link_visit_reference, &references);
  node->references = graph_build_allocate(build, references.count, sizeof *node->references);
  if (!node->references) return;
  memcpy(node->references, references.items, references.count * sizeof *node->references);
  node->n_references = references.count;
}

/* ---- "devices" ------------------------------------------------------------------------------------------------- */

static void graph_link_read_device(struct graph_build *build, const char *key, const json_t *value)
{
  struct graph *graph = build->graph;
  char shown[TEXT_QUOTE_BYTES], *path = text_pointer("/devices", key);
  int device = 0, node = graph_link_find_upstream(build, value, path);
  if (!strcmp(key, "default"))
    graph->default_node = node;
  else if (text_parse_ordinal(key, &device))
    graph->devices[graph->n_devices++] = (struct graph_device){device, node};
  else
    graph_build_refuse(build, path, "%s is not a device; write \"default\" or the device's number, such as \"0\"",
                       text_quote(key, shown, sizeof shown));
  free(path);
}

static void graph_link_read_devices(struct graph_build *build)
{
  const char *key;
  json_t *value, *devices = json_object_get(build->graph->root, "devices");
  if (!devices) return;
  if (!json_is_object(devices)) {
    graph_build_refuse_value(build, "/devices", devices, "is not an object; write {\"default\": \"NAME\"}");
    return;
  }
  build->graph->devices = graph_build_allocate(build, json_object_size(devices), sizeof *build->graph->devices);
  if (!build->graph->devices) return;
  json_object_foreach(devices, key, value) graph_link_read_device(build, key, value);
  if (json_object_size(devices) && !json_object_get(devices, "default"))
    diagnostics_warn(build->diagnostics, "/devices",
                     "has no \"default\", so every other device gets plain device memory; write \"default\": \"NAME\"");
}

void graph_link(struct graph_build *build)
{
  bool is_stack = json_object_get(build->graph->root, "stack") != NULL;
  for (size_t i = 0; i < build->graph->n_nodes; i++) {
    struct graph_node *node = &build->graph->nodes[i];
    const struct diagnostic *before = build->diagnostics->last;
    size_t n_errors = build->diagnostics->n_errors;
    if (is_stack)
      graph_link_element(build, node, (int)i);
    else
      graph_link_resource(build, node);
    graph_link_references(build, node);
    graph_build_set_resource(build, before, node->name);
    build->is_dangling |= build->diagnostics->n_errors > n_errors || !node->plugin;
  }
  if (!is_stack && !(build->is_dangling && build->graph->n_nodes == 0)) graph_link_read_devices(build);
}
