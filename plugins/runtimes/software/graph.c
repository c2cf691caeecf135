/* SPDX-License-Identifier: MIT */
/* graph.c: a graph and its nodes. Called by captures and graph_nodes.c, which add nodes, and by graph_api.c. A node depends
 * on nodes before it, so a graph has no circle, and the order of its nodes is an order in which they can run. Nothing here is
 * submitted. */
#include "graph.h"
#include <stdlib.h>
#include <string.h>

static struct software_handles graph_handles = {.object_bytes = sizeof(struct software_graph)};
static struct software_handles graph_nodes = {.object_bytes = sizeof(struct software_graph_node)};

/* ---- Operations of nodes --------------------------------------------------------------------------------------- */

struct software_operation *software_graph_copy(const struct software_operation *operation)
{
  struct software_operation *copy = software_operation_new(operation->kind, operation->call);
  if (!copy) return NULL;
  *copy = *operation;
  copy->next = NULL;
  if (copy->to.allocation) copy->to.allocation->references++;
  if (copy->from.allocation) copy->from.allocation->references++;
  if (copy->allocation) copy->allocation->references++;
  return copy;
}

void software_graph_operation_free(struct software_operation *operation)
{
  struct software_allocation *allocation = operation->kind == SOFTWARE_GRAPH_ALLOC ? operation->allocation : NULL;
  if (allocation) allocation->references++;
  software_operation_free(operation);
  if (!allocation) return;
  software_graph_memory_unuse(allocation);
  software_allocation_unreference(allocation);
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

struct software_graph *software_graph_create(void)
{
  return software_handle_allocate(&graph_handles);
}

hipError_t software_graph_find(hipGraph_t handle, struct software_graph **graph_out)
{
  struct software_graph *graph = (struct software_graph *)handle;
  if (!software_handle_is_live(&graph_handles, handle) || graph->is_child) return hipErrorInvalidValue;
  *graph_out = graph;
  return hipSuccess;
}

static bool graph_grow(struct software_graph *graph)
{
  if (graph->nodes.count < graph->capacity) return true;
  size_t capacity = graph->capacity ? 2 * graph->capacity : 16;
  struct software_graph_node **nodes = realloc(graph->nodes.nodes, capacity * sizeof *nodes);
  if (!nodes) return false;
  graph->nodes.nodes = nodes;
  graph->capacity = capacity;
  return true;
}

struct software_graph_node *software_graph_add(struct software_graph *graph, struct software_operation *operation,
                                               const struct software_node_set *dependencies)
{
  struct software_graph_node *node = graph_grow(graph) ? software_handle_allocate(&graph_nodes) : NULL;
  if (!node || !software_nodes_assign(&node->dependencies, dependencies)) {
    if (node) software_handle_free(&graph_nodes, node);
    software_operation_free(operation);
    return NULL;
  }
  node->graph = graph;
  node->operation = operation;
  node->index = graph->nodes.count;
  graph->nodes.nodes[graph->nodes.count++] = node;
  if (operation->kind == SOFTWARE_GRAPH_ALLOC) software_graph_memory_use(operation->allocation);
  return node;
}

hipError_t software_graph_find_node(const struct software_graph *graph, hipGraphNode_t handle,
                                    struct software_graph_node **node_out)
{
  struct software_graph_node *node = (struct software_graph_node *)handle;
  if (!software_handle_is_live(&graph_nodes, handle) || node->graph != graph) return hipErrorInvalidValue;
  *node_out = node;
  return hipSuccess;
}

/* Moves `from`, which does not depend on `to`, before it, with all that `from` depends on. */
static void graph_move_before(struct software_graph *graph, struct software_graph_node *from,
                              const struct software_graph_node *to)
{
  struct software_node_set alone = {.nodes = &from, .count = 1};
  struct software_graph_node **nodes = graph->nodes.nodes;
  software_graph_reach(graph, &alone);
  size_t first = to->index, last = from->index, end = first;
  for (size_t i = first; i <= last; i++) {
    struct software_graph_node *node = nodes[i];
    if (!node->is_reached) continue;
    memmove(&nodes[end + 1], &nodes[end], (i - end) * sizeof *nodes);
    nodes[end++] = node;
  }
  for (size_t i = first; i <= last; i++) nodes[i]->index = i;
}

hipError_t software_graph_add_dependency(struct software_graph *graph, struct software_graph_node *from,
                                         struct software_graph_node *to)
{
  struct software_node_set alone = {.nodes = &from, .count = 1};
  software_graph_reach(graph, &alone);
  if (to->is_reached) return hipErrorInvalidValue;
  if (!software_nodes_add(&to->dependencies, &alone)) return hipErrorOutOfMemory;
  if (from->index > to->index) graph_move_before(graph, from, to);
  return hipSuccess;
}

/* The dependencies of a node in a copy of its graph. */
static bool graph_copy_dependencies(const struct software_graph_node *node, const struct software_graph *copy,
                                    struct software_node_set *dependencies_out)
{
  for (size_t i = 0; i < node->dependencies.count; i++) {
    struct software_graph_node *one = copy->nodes.nodes[node->dependencies.nodes[i]->index];
    if (!software_nodes_add(dependencies_out, &(struct software_node_set){.nodes = &one, .count = 1})) return false;
  }
  return true;
}

static hipError_t graph_copy_node(const struct software_graph_node *node, struct software_graph *copy)
{
  enum software_operation_kind kind = node->operation->kind;
  struct software_node_set dependencies = {0};
  struct software_graph *child = NULL;
  if (kind == SOFTWARE_GRAPH_ALLOC || kind == SOFTWARE_GRAPH_FREE) return hipErrorNotSupported;
  hipError_t error = node->child ? software_graph_copy_child(node->child, &child) : hipSuccess;
  if (error != hipSuccess) return error;
  struct software_operation *operation =
      graph_copy_dependencies(node, copy, &dependencies) ? software_graph_copy(node->operation) : NULL;
  struct software_graph_node *added = operation ? software_graph_add(copy, operation, &dependencies) : NULL;
  software_nodes_clear(&dependencies);
  if (added) added->child = child;
  if (!added && child) software_graph_destroy(child);
  return added ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t software_graph_copy_child(const struct software_graph *graph, struct software_graph **copy_out)
{
  struct software_graph *copy = software_graph_create();
  hipError_t error = copy ? hipSuccess : hipErrorOutOfMemory;
  for (size_t i = 0; error == hipSuccess && i < graph->nodes.count; i++)
    error = graph_copy_node(graph->nodes.nodes[i], copy);
  if (error != hipSuccess) {
    if (copy) software_graph_destroy(copy);
    return error;
  }
  copy->is_child = true;
  *copy_out = copy;
  return hipSuccess;
}

void software_graph_destroy(struct software_graph *graph)
{
  for (size_t i = 0; i < graph->nodes.count; i++) {
    struct software_graph_node *node = graph->nodes.nodes[i];
    software_graph_operation_free(node->operation);
    if (node->child) software_graph_destroy(node->child);
    software_nodes_clear(&node->dependencies);
    software_handle_free(&graph_nodes, node);
  }
  software_nodes_clear(&graph->nodes);
  software_handle_free(&graph_handles, graph);
}

/* Of all devices, since a graph can concern several. */
void software_graphs_reset(int device)
{
  struct software_graph *graph = NULL;
  (void)device;
  while ((graph = software_handle_next(&graph_handles, graph))) {
    if (graph->is_child) continue;
    software_graph_destroy(graph);
    graph = NULL;
  }
}

bool software_graphs_exist(void)
{
  return software_handle_next(&graph_handles, NULL);
}
