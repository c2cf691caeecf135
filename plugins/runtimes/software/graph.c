/* SPDX-License-Identifier: MIT */
/* graph.c: a graph and its nodes. Called by captures, which add nodes, and by graph_api.c. A node depends on
 * nodes that were added before it, so a graph has no circle, and the order of its nodes is an order in which they can run.
 * Nothing here is submitted. */
#include "graph.h"
#include <stdlib.h>

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
  if (!software_handle_is_live(&graph_handles, handle)) return hipErrorInvalidValue;
  *graph_out = (struct software_graph *)handle;
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
  node->operation = operation;
  node->index = graph->nodes.count;
  graph->nodes.nodes[graph->nodes.count++] = node;
  if (operation->kind == SOFTWARE_GRAPH_ALLOC) software_graph_memory_use(operation->allocation);
  return node;
}

void software_graph_destroy(struct software_graph *graph)
{
  for (size_t i = 0; i < graph->nodes.count; i++) {
    struct software_graph_node *node = graph->nodes.nodes[i];
    software_graph_operation_free(node->operation);
    software_nodes_clear(&node->dependencies);
    software_handle_free(&graph_nodes, node);
  }
  software_nodes_clear(&graph->nodes);
  software_handle_free(&graph_handles, graph);
}

/* Of all devices, since a graph can concern several. */
void software_graphs_reset(int device)
{
  struct software_graph *graph;
  (void)device;
  while ((graph = software_handle_next(&graph_handles, NULL))) software_graph_destroy(graph);
}

bool software_graphs_exist(void)
{
  return software_handle_next(&graph_handles, NULL);
}
