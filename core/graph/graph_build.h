/* SPDX-License-Identifier: MIT */
/* graph_build.h: a graph while it is being read, between the files of graph. Nobody else includes it.
 *
 * The steps, in order, each in a file of its own: graph_read (file to JSON), graph_settings (version, plugin_path,
 * runtime), graph_resources (nodes, their plugins and options), graph_link (names to indices, devices), graph_order
 * (cycles, order, default). Each reports all it finds and leaves what it could not understand out. */
#ifndef HIPMM_CORE_GRAPH_GRAPH_BUILD_H
#define HIPMM_CORE_GRAPH_GRAPH_BUILD_H

#include "graph.h"

#include <jansson.h>
#include <stdbool.h>

enum {
  GRAPH_MAX_BYTES = 16 << 20, /* of a file */
  GRAPH_MAX_RESOURCES = 1000, /* that a file may hold */
  GRAPH_MAX_DEPTH = 100       /* of a stack: each level is a call on the program's stack */
};

struct graph_build {
  struct graph *graph; /* nodes in the order of the file until graph_order; plugin NULL where the type is unknown */
  struct diagnostics *diagnostics;
  const char *folder;          /* of the file, for relative paths; NULL: the working directory */
  json_t *index;               /* name of a node → its index */
  const struct plugin **types; /* plugins of all that can stand in a stack; NULL until they are needed */
  size_t n_types;
  bool is_dangling; /* a name or an upstream could not be resolved: who uses what is not known for sure */
};

/* Reports a mistake at `path`, or at `key` of the object at `parent`. */
void build_refuse(struct graph_build *build, const char *path, const char *format, ...) HIPMM_PRINTF(3, 4);
void build_refuse_key(struct graph_build *build, const char *parent, const char *key, const char *format, ...)
    HIPMM_PRINTF(4, 5);

/* Marks the mistakes after `before` (NULL: all) as those of resource `name`. */
void build_set_resource(struct graph_build *build, const struct diagnostic *before, const char *name);

/* Memory that is NULL has been reported. */
void *build_allocate(struct graph_build *build, size_t n, size_t bytes);

/* The plugin of a resource type that stands at `path`; NULL once it has been reported as unknown or refused. */
const struct plugin *build_plugin(struct graph_build *build, const char *type, const char *path);

/* The index of the node called `name`, or -1 once that has been reported at `path`. */
int build_find(struct graph_build *build, const char *name, const char *path);

/* Adds a node at the end and to the index, taking over none of its arguments; its index, or -1 when there is no
 * memory. */
int build_add_node(struct graph_build *build, const char *name, const char *path, json_t *object);

/* Reads and parses. NULL once reported. */
json_t *graph_file_file(const char *file, struct diagnostics *diagnostics);
json_t *graph_file_text(const char *text, size_t bytes, struct diagnostics *diagnostics);

void graph_read_settings(struct graph_build *build);
void graph_read_resources(struct graph_build *build);
void graph_link(struct graph_build *build);
void graph_order(struct graph_build *build);

/* Keys at the top of the file, NULL-terminated. */
extern const char *const graph_top_keys[];

#endif
