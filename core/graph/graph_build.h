/* SPDX-License-Identifier: MIT */
/* graph_build.h: a graph that is being read. Included by the files of graph, and by the command for the schema.
 *
 * The steps, in their order, one per file: graph_file and graph_syntax (file to JSON), graph_settings (keys that are
 * not about resources), graph_resources (nodes and their plugins), graph_link (names to indices, devices),
 * graph_options (options of all nodes), graph_order (cycles, order, default). Each step reports all errors that it
 * finds, and leaves out the values that it could not read; a syntax error ends the reading. At the end graph_position
 * gives the errors their places. */
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

#define GRAPH_TOO_LARGE "is larger than %d MiB, too large for a graph"

struct graph_build {
  struct graph *graph; /* until graph_order, nodes in the order of the file; plugin NULL where the type is unknown */
  struct diagnostics *diagnostics;
  const char *folder;          /* of the file, for relative paths; NULL: the working directory */
  json_t *index;               /* name of a node → its index */
  const struct plugin **types; /* plugins of all resource types; NULL until they are needed */
  size_t n_types;
  bool is_check;    /* for `hipmm check`: files of the runtime must be there */
  bool is_dangling; /* a name or an upstream could not be resolved, so that the references are incomplete */
};

/* Reports an error at `path`, or at `key` of the object at `parent`. */
void graph_build_refuse(struct graph_build *build, const char *path, const char *format, ...) HIPMM_PRINTF(3, 4);
void graph_build_refuse_key(struct graph_build *build, const char *parent, const char *key, const char *format, ...)
    HIPMM_PRINTF(4, 5);

/* The same, of what the value "is …". */
void graph_build_refuse_value(struct graph_build *build, const char *path, const json_t *value, const char *what);

/* Sets the resource of the diagnostics after `before` (NULL: of all). */
void graph_build_set_resource(struct graph_build *build, const struct diagnostic *before, const char *name);

/* Reports that there is no host memory for what is at `path`. */
void graph_build_lacks_memory(struct graph_build *build, const char *path);

/* Zeroed host memory; NULL after the error was reported. */
void *graph_build_allocate(struct graph_build *build, size_t n, size_t bytes);

/* The plugin of the resource type at `path`. After an error about the type was reported: the plugin of the nearest type,
 * so that the rest of the resource can be checked; NULL if none is near. */
const struct plugin *graph_build_plugin(struct graph_build *build, const char *type, const char *path);

/* The index of the node called `name`; -1 after the error was reported at `path`. */
int graph_build_find(struct graph_build *build, const char *name, const char *path);

/* Adds a node at the end and to the index, with copies of the arguments. Returns its index; -1 without host memory. */
int graph_build_add_node(struct graph_build *build, const char *name, const char *path, json_t *object);

/* Reads a file (NULL: standard input) into `text_out`, which the caller frees. False after an error was reported. */
bool graph_file_read(const char *file, struct diagnostics *diagnostics, char **text_out, size_t *bytes_out);

/* Parses the text of a graph: an object. NULL after an error was reported. Names may stand twice in an object: the last
 * counts, and graph_position_all() reports them. */
json_t *graph_parse(const char *text, size_t bytes, struct diagnostics *diagnostics);

/* Reports names that stand twice in an object. Gives each diagnostic the line, and the column in characters, of its offset,
 * or of its path in the text, or of the innermost object or list around that which is in the text; and sorts the
 * diagnostics by their places. Those without a place come first. `is_object`: the text was parsed as an object; false:
 * it has a syntax error. */
void graph_position_all(const char *text, bool is_object, struct diagnostics *diagnostics);

void graph_read_settings(struct graph_build *build);
void graph_read_resources(struct graph_build *build);
void graph_link(struct graph_build *build);
void graph_check_options(struct graph_build *build);
void graph_order(struct graph_build *build);

#endif
