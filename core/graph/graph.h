/* SPDX-License-Identifier: MIT */
/* graph.h: reads hipmm.json into a checked graph of resources. Loads the plugins that it names, touches no device. */
#ifndef HIPMM_CORE_GRAPH_GRAPH_H
#define HIPMM_CORE_GRAPH_GRAPH_H

#include "../base/error.h"
#include "../plugin/plugin.h"
#include <jansson.h>

/* Most resources that a graph may have, the implied one included. */
enum { GRAPH_MAX_NODES = 1001 };

/* A resource of the graph. */
struct graph_node {
  const char *name; /* key in "resources"; in a "stack" the type, then "type.2", … */
  char *path;       /* JSON pointer of its object or string: "/resources/pool", "/stack/1" */
  const struct plugin *plugin;
  json_t *object; /* its options and "type", "upstream"; an empty object for a bare string */
  int *upstreams; /* indices of nodes, in the order of the file */
  size_t n_upstreams;
  int *references; /* all nodes that it needs, once each: its upstreams, and the resources that its options name */
  size_t n_references;
};

struct graph_device {
  int device;
  int node;
};

struct graph {
  unsigned references; /* atomic: stacks keep their graph */
  char *source;        /* file name, or "<string>", "<built in>" */
  json_t *root;
  const char *const *resource_keys; /* of a resource's object that are not options; NULL-terminated */
  const char *runtime;              /* "auto", "amd", … or a path */
  json_t *runtime_object;           /* its options; an empty object if none */
  struct plugin_path plugin_path;

  struct graph_node *nodes; /* every node after all its upstreams and the resources that its options name */
  size_t n_nodes;
  int default_node; /* for devices without one of their own; where the file names none, an implied plain `device` node */
  struct graph_device *devices;
  size_t n_devices;
};

/* Reads, checks and orders a graph. Every mistake goes to the report, not only the first. NULL graph_out: only check.
 * Returns HIPMM_OK, or the status of the first mistake. */
enum hipmm_status graph_from_file(const char *file, struct diagnostics *report, struct graph **graph_out);
enum hipmm_status graph_from_string(const char *json, const char *source, struct diagnostics *report,
                                    struct graph **graph_out);

/* The graph that holds when there is no file: a plain `device` for every device. */
enum hipmm_status graph_built_in(struct diagnostics *report, struct graph **graph_out);

void graph_retain(struct graph *graph);
void graph_release(struct graph *graph);

/* The node at the top of a device's stack. */
int graph_top(const struct graph *graph, int device);

/* The node called `name`; -1 if there is none. */
int graph_find(const struct graph *graph, const char *name);

/* What may be written as a runtime, for messages; and the word among them that is nearest, NULL if none is near. */
#define GRAPH_RUNTIME_FORMS "write \"auto\", \"amd\", \"nvidia\", \"software\" or a library's path"
const char *graph_near_runtime(const char *word);

/* Keys of a resource's object that are not options of its plugin: "type", "upstream"; NULL-terminated. */
extern const char *const graph_resource_keys[];

/* A graph of one resource that stands on resources outside it: one made in code. Nothing but the options is checked.
 * The graph's source is "<options>", and paths begin at the options. NULL when there is no memory. */
struct graph *graph_single(const char *name, const struct plugin *plugin, json_t *options);

/* Renames the node of a single graph, before anybody else has it. */
enum hipmm_status graph_rename(struct graph *graph, const char *name);

/* The plugin of a resource type, as a graph's "type" would find it along the plugin path of `graph`. Reports what is
 * wrong with the type. */
enum hipmm_status graph_type(struct graph *graph, const char *type, struct diagnostics *report,
                             const struct plugin **plugin_out);

/* Reads the options of a resource: a JSON object as text, NULL for {}. NULL once reported. */
json_t *graph_file_options(const char *text, struct diagnostics *report);

#endif
