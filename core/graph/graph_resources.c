/* SPDX-License-Identifier: MIT */
/* graph_resources.c: the objects under "resources" and the elements of "stack": their names and types. Called by
 * graph.c. Never looks at upstreams, nor at options: graph_link.c and graph_options.c do. */
#include "../base/text.h"
#include "../option/option.h"
#include "graph_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const graph_resource_keys[] = {"type", "upstream", NULL};

/* A common error is to write the options of a type below its name: {"pool": {…}}. */
static void graph_resources_refuse_no_type(struct graph_build *build, const json_t *object, const char *path)
{
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, key, value)
  {
    if (!plugin_exists(&build->graph->plugin_path, key)) continue;
    graph_build_refuse(build, path, "has no \"type\"; write {\"type\": \"%s\", …} with its options beside it", key);
    return;
  }
  graph_build_refuse(build, path, "has no \"type\"; write \"type\": \"pool\" or another (`hipmm plugins` lists them)");
}

/* The type in the node's object or string; NULL after an error was reported. The caller frees `path_out`. */
static const char *graph_resources_type_of(struct graph_build *build, const json_t *value, const char *path,
                                           char **path_out)
{
  bool is_object = json_is_object(value);
  json_t *type = is_object ? json_object_get(value, "type") : NULL;
  if (is_object && !type) {
    graph_resources_refuse_no_type(build, value, path);
    return NULL;
  }
  const json_t *word = is_object ? type : value;
  char *word_path = is_object ? text_pointer(path, "type") : strdup(path);
  if (!word_path) {
    graph_build_lacks_memory(build, path);
    return NULL;
  }
  if (json_is_string(word)) {
    *path_out = word_path;
    return json_string_value(word);
  }
  graph_build_refuse_value(build, word_path, word,
                           "is not a type; write \"pool\" or another (`hipmm plugins` lists them)");
  free(word_path);
  return NULL;
}

/* The plugin of an earlier node of this type, so that the folders are searched once for a type. */
static const struct plugin *graph_resources_known_plugin(const struct graph_build *build, const char *type)
{
  for (size_t i = 0; i < build->graph->n_nodes; i++) {
    const struct plugin *plugin = build->graph->nodes[i].plugin;
    if (plugin && !strcmp(plugin->descriptor.type, type)) return plugin;
  }
  return NULL;
}

/* Adds a node. graph_options.c checks its options. */
static void graph_resources_add_resource(struct graph_build *build, const char *name, const char *path,
                                         const char *type, const char *type_path, json_t *object)
{
  const struct diagnostic *before = build->diagnostics->last;
  const struct plugin *plugin = type ? graph_resources_known_plugin(build, type) : NULL;
  if (type && !plugin) plugin = graph_build_plugin(build, type, type_path);
  int index = graph_build_add_node(build, name, path, object);
  if (index < 0) return;
  build->graph->nodes[index].plugin = plugin;
  graph_build_set_resource(build, before, name);
}

/* ---- "resources" ----------------------------------------------------------------------------------------------- */

static void graph_resources_read_resource(struct graph_build *build, const char *name, json_t *value)
{
  char shown[TEXT_QUOTE_BYTES], *type_path = NULL, *path = text_pointer("/resources", name);
  if (!path) {
    graph_build_lacks_memory(build, "/resources");
    return;
  }
  if (!text_is_name(name))
    graph_build_refuse(build, path, "%s is not a name; " TEXT_NAME_RULE, text_quote(name, shown, sizeof shown),
                       TEXT_LONGEST_NAME);
  if (json_is_object(value)) {
    const char *type = graph_resources_type_of(build, value, path, &type_path);
    graph_resources_add_resource(build, name, path, type, type_path, value);
  } else {
    option_show(value, shown, sizeof shown);
    graph_build_refuse(build, path, "%s is not a resource; write {\"type\": %s}", shown,
                       json_is_string(value) ? shown : "…");
    graph_build_add_node(build, name, path, NULL);
  }
  free(type_path);
  free(path);
}

static void graph_resources_read(struct graph_build *build, json_t *resources)
{
  const char *name;
  json_t *value;
  size_t n = json_object_size(resources);
  build->is_dangling = !json_is_object(resources) || n > GRAPH_MAX_RESOURCES;
  if (!json_is_object(resources))
    graph_build_refuse_value(build, "/resources", resources, "is not an object; write {\"NAME\": {\"type\": …}, …}");
  else if (n > GRAPH_MAX_RESOURCES)
    graph_build_refuse(build, "/resources", "%zu resources are too many; the most is %d", n, GRAPH_MAX_RESOURCES);
  if (!build->is_dangling)
    json_object_foreach(resources, name, value) graph_resources_read_resource(build, name, value);
}

/* ---- "stack" --------------------------------------------------------------------------------------------------- */

/* "pool", and for further elements of that type "pool.2", "pool.3", … */
static void graph_resources_name_element(const struct graph_build *build, const char *type, char *name,
                                         size_t name_bytes)
{
  char shown[TEXT_LONGEST_NAME];
  snprintf(shown, sizeof shown, "%s", type ? type : "element");
  snprintf(name, name_bytes, "%s", shown);
  for (int n = 2; json_object_get(build->index, name); n++) snprintf(name, name_bytes, "%s.%d", shown, n);
}

static void graph_resources_read_element(struct graph_build *build, size_t index, json_t *value)
{
  char name[TEXT_LONGEST_NAME + 16], path[32], *type_path = NULL;
  const char *type = NULL;
  bool is_object = json_is_object(value);
  snprintf(path, sizeof path, "/stack/%zu", index);
  if (is_object || json_is_string(value))
    type = graph_resources_type_of(build, value, path, &type_path);
  else
    graph_build_refuse_value(build, path, value, "is not a resource; write a type, or {\"type\": …}");
  if (is_object && json_object_get(value, "upstream"))
    graph_build_refuse_key(build, path, "upstream",
                           "in a stack the next element is the upstream; leave \"upstream\" out");
  graph_resources_name_element(build, type, name, sizeof name);
  graph_resources_add_resource(build, name, path, type, type_path, is_object ? value : NULL);
  free(type_path);
}

static void graph_resources_read_stack(struct graph_build *build, json_t *stack)
{
  size_t n = json_array_size(stack);
  if (!json_is_array(stack))
    graph_build_refuse_value(build, "/stack", stack,
                             "is not a list; write resources from the top down, such as [\"pool\", \"device\"]");
  else if (n == 0)
    graph_build_refuse(build, "/stack", "is empty; write at least a source, such as [\"device\"]");
  else if (n > GRAPH_MAX_DEPTH)
    graph_build_refuse(build, "/stack", "%zu resources are too deep a stack; the most is %d", n, GRAPH_MAX_DEPTH);
  else
    for (size_t i = 0; i < n; i++) graph_resources_read_element(build, i, json_array_get(stack, i));
}

void graph_read_resources(struct graph_build *build)
{
  json_t *root = build->graph->root;
  json_t *resources = json_object_get(root, "resources"), *stack = json_object_get(root, "stack");
  bool has_devices = json_object_get(root, "devices") != NULL;
  if (stack && (resources || has_devices))
    graph_build_refuse(build, "/stack", "\"stack\" and \"%s\" exclude each other; write one of them",
                       resources ? "resources" : "devices");
  if (stack)
    graph_resources_read_stack(build, stack);
  else if (resources)
    graph_resources_read(build, resources);
}
