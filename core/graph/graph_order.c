/* SPDX-License-Identifier: MIT */
/* graph_order.c: the last step of reading a graph: cycles, the default node, the depth, and the final order, in which
 * every node comes after the nodes that it needs. Called by graph.c. Uses a list instead of recursion: the user decides
 * how deep a graph is. */
#include "../base/text.h"
#include "graph_build.h"

#include <stdio.h>
#include <stdlib.h>

/* A depth-first walk along the references. Indices are in the order of the file. */
struct graph_walk {
  struct graph_build *build;
  enum { NEW = 0, OPEN, DONE } state[GRAPH_MAX_NODES];
  bool is_in_cycle[GRAPH_MAX_NODES];
  int path[GRAPH_MAX_NODES];    /* the open nodes, outermost first */
  size_t next[GRAPH_MAX_NODES]; /* of each node on the path, the reference to follow next */
  size_t depth;
  int order[GRAPH_MAX_NODES]; /* the nodes done */
  size_t n_done;
  bool has_cycle;
};

/* ---- Cycles ---------------------------------------------------------------------------------------------------- */

/* Formats a cycle: "a → b → a"; of a long one the beginning and the end. */
static void graph_order_show_cycle(const struct graph_walk *walk, size_t from, char *text, size_t text_bytes)
{
  enum { SHOWN = 8 };
  const struct graph_node *nodes = walk->build->graph->nodes;
  *text = '\0';
  for (size_t i = from; i < walk->depth; i++) {
    bool is_left_out = i - from >= SHOWN && i + 1 < walk->depth;
    if (is_left_out && i - from > SHOWN) continue;
    text_append(text, text_bytes, "%s → ", is_left_out ? "…" : nodes[walk->path[i]].name);
  }
  text_append(text, text_bytes, "%s", nodes[walk->path[from]].name);
}

static void graph_order_report_cycle(struct graph_walk *walk, int first)
{
  size_t from = walk->depth;
  while (walk->path[--from] != first) continue;
  bool is_new = false;
  for (size_t i = from; i < walk->depth; i++) {
    is_new |= !walk->is_in_cycle[walk->path[i]];
    walk->is_in_cycle[walk->path[i]] = true;
  }
  walk->has_cycle = true;
  if (!is_new) return; /* its nodes are in cycles that were reported */
  char text[1536];
  graph_order_show_cycle(walk, from, text, sizeof text);
  const struct graph_node *node = &walk->build->graph->nodes[first];
  const struct diagnostic *before = walk->build->diagnostics->last;
  graph_build_refuse(walk->build, node->path, "cycle: %s", text);
  graph_build_set_resource(walk->build, before, node->name);
}

static void graph_order_enter(struct graph_walk *walk, int index)
{
  walk->state[index] = OPEN;
  walk->path[walk->depth] = index;
  walk->next[walk->depth++] = 0;
}

/* One step from the innermost open node: into the next node that it needs, or out. */
static void graph_order_step(struct graph_walk *walk)
{
  int index = walk->path[walk->depth - 1];
  const struct graph_node *node = &walk->build->graph->nodes[index];
  if (walk->next[walk->depth - 1] == node->n_references) {
    walk->state[index] = DONE;
    walk->order[walk->n_done++] = index;
    walk->depth--;
    return;
  }
  int needed = node->references[walk->next[walk->depth - 1]++];
  if (walk->state[needed] == OPEN) graph_order_report_cycle(walk, needed);
  if (walk->state[needed] == NEW) graph_order_enter(walk, needed);
}

static void graph_order_walk_all(struct graph_walk *walk)
{
  for (size_t i = 0; i < walk->build->graph->n_nodes; i++) {
    if (walk->state[i] == NEW) graph_order_enter(walk, (int)i);
    while (walk->depth > 0) graph_order_step(walk);
  }
}

/* ---- The default ----------------------------------------------------------------------------------------------- */

static void graph_order_mark_used(const struct graph *graph, bool *is_used)
{
  for (size_t i = 0; i < graph->n_nodes; i++)
    for (size_t r = 0; r < graph->nodes[i].n_references; r++) is_used[graph->nodes[i].references[r]] = true;
}

static void graph_order_refuse_tops(struct graph_build *build, const bool *is_used, size_t n_tops)
{
  enum { SHOWN = 10 };
  const struct graph *graph = build->graph;
  char text[1200] = "";
  const char *first = NULL;
  size_t n = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) {
    if (is_used[i] || n++ >= SHOWN) continue;
    text_append(text, sizeof text, "%s%s", first ? ", " : "", graph->nodes[i].name);
    if (!first) first = graph->nodes[i].name;
  }
  graph_build_refuse(build, "/resources",
                     "%zu resources could be the default: %s%s; choose with \"devices\": {\"default\": \"%s\"}", n_tops,
                     text, n_tops > SHOWN ? ", …" : "", first);
}

/* Without "devices" the default is the one resource that no other needs. */
static void graph_order_choose_top(struct graph_build *build)
{
  struct graph *graph = build->graph;
  bool is_used[GRAPH_MAX_NODES] = {false};
  size_t n_tops = 0;
  graph_order_mark_used(graph, is_used);
  for (size_t i = 0; i < graph->n_nodes; i++) {
    if (is_used[i]) continue;
    graph->default_node = (int)i;
    n_tops++;
  }
  if (n_tops > 1) graph_order_refuse_tops(build, is_used, n_tops);
}

/* Without a default in the file, devices get a plain source of device memory, under a name that is not in use. `device`
 * is the only type that the core knows by its name: a process without a graph file must have memory. */
static void graph_order_imply_device(struct graph_build *build, struct graph_walk *walk)
{
  char name[32] = "device";
  const struct plugin *plugin = graph_build_plugin(build, "device", "");
  for (int n = 2; json_object_get(build->index, name); n++) snprintf(name, sizeof name, "device.%d", n);
  int index = plugin ? graph_build_add_node(build, name, "", NULL) : -1;
  if (index < 0) return;
  build->graph->nodes[index].plugin = plugin;
  build->graph->default_node = index;
  walk->order[walk->n_done++] = index;
}

static void graph_order_choose_default(struct graph_build *build, struct graph_walk *walk)
{
  struct graph *graph = build->graph;
  if (json_object_get(graph->root, "stack"))
    graph->default_node = 0;
  else if (graph->n_nodes > 0 && !json_object_get(graph->root, "devices"))
    graph_order_choose_top(build);
  if (graph->default_node < 0) graph_order_imply_device(build, walk);
}

/* ---- Checks that need the order -------------------------------------------------------------------------------- */

static void graph_order_check_depth(const struct graph_walk *walk)
{
  const struct graph *graph = walk->build->graph;
  int depths[GRAPH_MAX_NODES] = {0};
  for (size_t i = 0; i < walk->n_done; i++) {
    const struct graph_node *node = &graph->nodes[walk->order[i]];
    int depth = 1;
    for (size_t r = 0; r < node->n_references; r++)
      if (depths[node->references[r]] >= depth) depth = depths[node->references[r]] + 1;
    depths[walk->order[i]] = depth;
    if (depth <= GRAPH_MAX_DEPTH) continue;
    graph_build_refuse(walk->build, node->path,
                       "depends on more than %d resources, one on the other; the most is %d deep", GRAPH_MAX_DEPTH - 1,
                       GRAPH_MAX_DEPTH);
    return;
  }
}

/* ---- The final order ------------------------------------------------------------------------------------------- */

static void graph_order_renumber(int *indices, size_t n, const int *places)
{
  for (size_t i = 0; i < n; i++) indices[i] = places[indices[i]];
}

static void graph_order_sort_nodes(struct graph_walk *walk)
{
  struct graph *graph = walk->build->graph;
  struct graph_node *sorted = graph_build_allocate(walk->build, graph->n_nodes, sizeof *sorted);
  int places[GRAPH_MAX_NODES];
  if (!sorted) return;
  for (size_t i = 0; i < walk->n_done; i++) places[walk->order[i]] = (int)i;
  for (size_t i = 0; i < graph->n_nodes; i++) {
    struct graph_node *node = &sorted[places[i]];
    *node = graph->nodes[i];
    graph_order_renumber(node->upstreams, node->n_upstreams, places);
    graph_order_renumber(node->references, node->n_references, places);
  }
  for (size_t i = 0; i < graph->n_devices; i++) graph_order_renumber(&graph->devices[i].node, 1, places);
  graph_order_renumber(&graph->default_node, 1, places);
  free(graph->nodes);
  graph->nodes = sorted;
}

static void graph_order_mark_by_name(struct graph *graph)
{
  bool is_needed[GRAPH_MAX_NODES] = {false};
  is_needed[graph->default_node] = true;
  for (size_t i = 0; i < graph->n_devices; i++) is_needed[graph->devices[i].node] = true;
  graph_mark_needed(graph, is_needed);
  for (size_t i = 0; i < graph->n_nodes; i++) graph->nodes[i].is_by_name = !is_needed[i];
}

void graph_order(struct graph_build *build)
{
  struct graph_walk *walk = graph_build_allocate(build, 1, sizeof *walk);
  if (!walk) return;
  walk->build = build;
  graph_order_walk_all(walk);
  if (!walk->has_cycle && !build->is_dangling) {
    graph_order_choose_default(build, walk);
    graph_order_check_depth(walk);
  }
  if (build->diagnostics->n_errors == 0) graph_order_sort_nodes(walk);
  if (build->diagnostics->n_errors == 0) graph_order_mark_by_name(build->graph);
  free(walk);
}
