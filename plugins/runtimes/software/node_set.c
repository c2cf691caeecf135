/* SPDX-License-Identifier: MIT */
/* node_set.c: sets of nodes of a graph: the dependencies of a node, the tips of a stream that captures, what an event stands
 * after. Called by graphs, captures and events. */
#include "graph.h"
#include <stdlib.h>

static bool node_set_contains(const struct software_node_set *set, const struct software_graph_node *node)
{
  for (size_t i = 0; i < set->count; i++)
    if (set->nodes[i] == node) return true;
  return false;
}

bool software_nodes_add(struct software_node_set *set, const struct software_node_set *more)
{
  if (more->count == 0) return true;
  size_t bytes = (set->count + more->count) * sizeof(struct software_graph_node *);
  struct software_graph_node **nodes = realloc(set->nodes, bytes);
  if (!nodes) return false;
  set->nodes = nodes;
  for (size_t i = 0; i < more->count; i++)
    if (!node_set_contains(set, more->nodes[i])) set->nodes[set->count++] = more->nodes[i];
  return true;
}

void software_nodes_clear(struct software_node_set *set)
{
  free(set->nodes);
  *set = (struct software_node_set){0};
}

bool software_nodes_assign(struct software_node_set *set, const struct software_node_set *from)
{
  struct software_node_set copy = {0};
  if (!software_nodes_add(&copy, from)) return false;
  software_nodes_clear(set);
  *set = copy;
  return true;
}

void software_graph_reach(struct software_graph *graph, const struct software_node_set *from)
{
  for (size_t i = 0; i < graph->nodes.count; i++) graph->nodes.nodes[i]->is_reached = false;
  for (size_t i = 0; i < from->count; i++) from->nodes[i]->is_reached = true;
  for (size_t i = graph->nodes.count; i-- > 0;) {
    const struct software_graph_node *node = graph->nodes.nodes[i];
    for (size_t k = 0; node->is_reached && k < node->dependencies.count; k++)
      node->dependencies.nodes[k]->is_reached = true;
  }
}
