/* SPDX-License-Identifier: MIT */
/* graph.h: reads a graph file into a checked graph of resources. Reading loads the plugins that the file names, and
 * touches no device. A graph is constant once it is returned, and any thread may read it. */
#ifndef HIPMM_CORE_GRAPH_GRAPH_H
#define HIPMM_CORE_GRAPH_GRAPH_H

#include "../base/diagnostics.h"
#include "../plugin/plugin.h"

/* A value of the file. Only graph, option and the code that writes JSON look into one; they include <jansson.h>. */
struct json_t;

/* The largest number of resources in a graph, the implied one included. */
enum { GRAPH_MAX_NODES = 1001 };

/* The error about HIPMM_PLUGIN_UNDIVIDED, for the types of the resource above and of the source. */
#define GRAPH_UNDIVIDED \
  "%s uses blocks again, or writes to them, once they are freed, which %s does not allow; use the source without it"

/* Whether the resource may not stand above such a source. */
static inline bool graph_uses_freed_blocks(const struct hipmm_plugin *plugin)
{
  return plugin->role == HIPMM_ROLE_SUB_ALLOCATOR || plugin->flags & HIPMM_PLUGIN_ACCESSES_MEMORY;
}

/* A resource of the graph. */
struct graph_node {
  const char *name; /* key in "resources"; in a "stack" the type, then "type.2", … */
  char *path;       /* JSON pointer of its object or string: "/resources/pool", "/stack/1" */
  const struct plugin *plugin;
  struct json_t *object; /* its options and "type", "upstream"; an empty object for a bare string */
  int *upstreams;        /* indices of nodes, in the order of the file */
  size_t n_upstreams;
  int *references; /* the nodes that it needs, each once: its upstreams, and the resources that its options name */
  size_t n_references;
  bool is_by_name; /* no device's stack needs it: it is built where the program asks for it by its name */
};

struct graph_device {
  int device; /* ordinal */
  int node;   /* index of the node at the top of its stack */
};

struct graph {
  unsigned references; /* atomic; each stack holds one */
  bool was_found;      /* its file was found, and nobody named it */
  char *source;        /* file name, or "<string>", "<built in>", "<options>" */
  struct json_t *root;
  const char *const *resource_keys; /* of a resource's object that are not options; NULL-terminated */
  const char *runtime;              /* "auto", "amd", … or a path */
  struct json_t *runtime_object;    /* its options; an empty object if none */
  struct plugin_path plugin_path;
  bool publishes;          /* the counters of its resources, for hipmm top */
  bool is_controlled;      /* by hipmm ctl */
  const char *report;      /* the pattern of the report's name (output_file.h); NULL: none */
  bool follows_local_rank; /* "current_device": "local_rank" */
  uint64_t limit_bytes;    /* "limit_physical"; 0: none, or */
  double limit_percent;    /* of the memory of a device that is free at its first use; 0: none */
  bool limit_is_of_total;  /* of all memory instead */
  bool limit_is_share;     /* of one rank's part of that */

  struct graph_node *nodes; /* every node after all nodes that it needs */
  size_t n_nodes;
  int default_node; /* for devices without one of their own; an implied plain `device` node if the file names none */
  struct graph_device *devices;
  size_t n_devices;
};

/* Reads, checks and orders a graph, from a file, from text, or the built-in one: a plain `device` for every device. All
 * errors go to the diagnostics, not only the first; a syntax error is the only one. `graph_out` NULL: only check. Returns
 * HIPMM_OK, or the status of the first error. The caller owns a reference to the graph. */
enum hipmm_status graph_from_file(const char *file, struct diagnostics *diagnostics, struct graph **graph_out);
enum hipmm_status graph_from_string(const char *json, const char *source, struct diagnostics *diagnostics,
                                    struct graph **graph_out);
enum hipmm_status graph_built_in(struct diagnostics *diagnostics, struct graph **graph_out);

/* The same from `file`, or from `json` if that is not NULL (`file` is its source then), for `hipmm check`: a runtime's path
 * that leads nowhere is an error too. */
enum hipmm_status graph_check(const char *file, const char *json, struct diagnostics *diagnostics,
                              struct graph **graph_out);

/* Reads a graph from `file`, or from `json`, or takes the built-in one if both are NULL. The thread's error has the
 * errors, and the log the warnings. The caller owns a reference. */
enum hipmm_status graph_load(const char *file, const char *json, struct graph **graph_out);

/* With HIPMM_FLIGHT in the environment, puts a resource that keeps the last events above each device's top, or says why not.
 * Before any other thread has the graph. */
void graph_add_flight(struct graph *graph);

/* Whether what stands where a graph's file is named is the graph itself: a JSON object. */
bool graph_is_text(const char *name);

/* Sets the graph that graph_load() takes as the built-in one from now on. `json` is kept. */
void graph_set_without_file(const char *json);

/* Whether two graphs say the same: the same JSON, read from places where its relative paths mean the same. */
bool graph_is_same(const struct graph *graph, const struct graph *other);

/* References; thread-safe. Releasing the last one frees the graph. */
void graph_retain(struct graph *graph);
void graph_release(struct graph *graph);

/* The index of the node at the top of a device's stack, and of the node called `name`, -1 if there is none. */
int graph_top(const struct graph *graph, int device);
int graph_find(const struct graph *graph, const char *name);

/* Marks all that the marked nodes need, in any order of the nodes. */
void graph_mark_needed(const struct graph *graph, bool *is_marked);

/* The forms of a runtime, for messages; and the word among them that is nearest to `word`, NULL if none is near. */
#define GRAPH_RUNTIME_FORMS "write \"auto\", \"amd\", \"nvidia\", \"software\" or a library's path"
const char *graph_near_runtime(const char *word);

/* The runtimes that "auto" tries, in this order. */
enum { GRAPH_AUTO_RUNTIMES = 3 };
extern const char *const graph_auto_runtimes[GRAPH_AUTO_RUNTIMES];

/* "limit_physical", as a plugin would have it among its options. */
extern const struct hipmm_option graph_limit_physical;

/* The keys at the top of the file; NULL-terminated. */
extern const char *const graph_top_keys[];

/* Keys of a resource's object that are not options of its plugin: "type", "upstream"; NULL-terminated. */
extern const char *const graph_resource_keys[];

/* ---- One resource made in code ---- */

/* A graph of one resource whose upstreams are outside the graph. Its source is "<options>", and paths begin at the
 * options. Retains `options`. NULL without host memory. */
struct graph *graph_single(const char *name, const struct plugin *plugin, struct json_t *options);

/* Renames the node of such a graph, before any other thread has the graph. */
enum hipmm_status graph_rename(struct graph *graph, const char *name);

/* Finds the plugin of a resource type along the plugin path of `graph`. */
enum hipmm_status graph_type(struct graph *graph, const char *type, struct diagnostics *diagnostics,
                             const struct plugin **plugin_out);

/* Parses options: a JSON object as text, NULL for {}. The caller owns the reference; NULL after an error. */
struct json_t *graph_parse_options(const char *text, struct diagnostics *diagnostics);

#endif
