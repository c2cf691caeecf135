/* SPDX-License-Identifier: MIT */
/* graph_nodes.c: graphs that a program builds node by node. Called by applications. A node is what a capture makes of a call:
 * a copy, a fill, a host function, memory that is allocated or freed; or a graph. The memory of copies and fills is checked
 * here, as that of a call, and again when the node runs. */
#include "graph.h"
#include <stdlib.h>

/* Where a node is being added. */
struct graph_nodes_place {
  struct software_graph *graph;
  struct software_node_set after;
};

/* Finds the graph, and the nodes that the new one depends on. */
static hipError_t graph_nodes_begin(enum software_call call, hipGraphNode_t *node_out, hipGraph_t handle,
                                    const hipGraphNode_t *after, size_t n_after, struct graph_nodes_place *place)
{
  struct software_graph_node *node;
  *place = (struct graph_nodes_place){.graph = NULL};
  hipError_t error = software_begin(call);
  if (error == hipSuccess) error = software_graph_find(handle, &place->graph);
  if (error == hipSuccess && (!node_out || (n_after && !after))) error = hipErrorInvalidValue;
  for (size_t i = 0; error == hipSuccess && i < n_after; i++) {
    error = software_graph_find_node(place->graph, after[i], &node);
    struct software_node_set alone = {.nodes = &node, .count = 1};
    if (error == hipSuccess && !software_nodes_add(&place->after, &alone)) error = hipErrorOutOfMemory;
  }
  return error;
}

/* Adds the operation (NULL: there was no memory for it), unless there was an error before. */
static hipError_t graph_nodes_add(struct graph_nodes_place *place, hipError_t error,
                                  struct software_operation *operation, hipGraphNode_t *node_out)
{
  struct software_graph_node *node = NULL;
  if (error == hipSuccess && operation) node = software_graph_add(place->graph, operation, &place->after);
  if (error == hipSuccess && !node) error = hipErrorOutOfMemory;
  if (error == hipSuccess) *node_out = (hipGraphNode_t)node;
  software_nodes_clear(&place->after);
  return error;
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after)
{
  const enum software_call call = SOFTWARE_hipGraphAddEmptyNode;
  struct graph_nodes_place place;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  struct software_operation *operation = error == hipSuccess ? software_operation_new(SOFTWARE_EMPTY, call) : NULL;
  return software_end(graph_nodes_add(&place, error, operation, node));
}

/* ---- Copies and fills ------------------------------------------------------------------------------------------ */

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                   void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
  const enum software_call call = SOFTWARE_hipGraphAddMemcpyNode1D;
  const struct software_rows to_rows = {to, bytes}, from_rows = {(void *)from, bytes};
  struct graph_nodes_place place;
  struct software_operation *operation = NULL;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  if (error == hipSuccess) error = software_copy_new_node(call, &to_rows, &from_rows, bytes, 1, kind, &operation);
  return software_end(graph_nodes_add(&place, error, operation, node));
}

/* The rows of one side of a copy. In three dimensions each slice must follow the one before it as its rows do. */
static hipError_t graph_nodes_rows(const hipPitchedPtr *side, const struct hipPos *position,
                                   const struct hipExtent *extent, struct software_rows *rows_out)
{
  size_t offset;
  if (!side->ptr || position->x > side->pitch || extent->width > side->pitch - position->x) return hipErrorInvalidValue;
  if (extent->depth > 1 && side->ysize != extent->height) return hipErrorNotSupported;
  if (__builtin_mul_overflow(position->z, side->ysize, &offset) ||
      __builtin_add_overflow(offset, position->y, &offset) || __builtin_mul_overflow(offset, side->pitch, &offset))
    return hipErrorInvalidValue;
  *rows_out = (struct software_rows){(char *)side->ptr + offset + position->x, side->pitch};
  return hipSuccess;
}

/* There are no arrays here. */
static hipError_t graph_nodes_new_copy(const hipMemcpy3DParms *params, struct software_operation **operation_out)
{
  struct software_rows to, from;
  size_t rows;
  if (!params || params->srcArray || params->dstArray) return hipErrorInvalidValue;
  const struct hipExtent *extent = &params->extent;
  if (__builtin_mul_overflow(extent->height, extent->depth, &rows)) return hipErrorInvalidValue;
  hipError_t error = graph_nodes_rows(&params->dstPtr, &params->dstPos, extent, &to);
  if (error == hipSuccess) error = graph_nodes_rows(&params->srcPtr, &params->srcPos, extent, &from);
  if (error != hipSuccess) return error;
  return software_copy_new_node(SOFTWARE_hipGraphAddMemcpyNode, &to, &from, extent->width, rows, params->kind,
                                operation_out);
}

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                 const hipMemcpy3DParms *params)
{
  struct graph_nodes_place place;
  struct software_operation *operation = NULL;
  hipError_t error = graph_nodes_begin(SOFTWARE_hipGraphAddMemcpyNode, node, graph, after, n_after, &place);
  if (error == hipSuccess) error = graph_nodes_new_copy(params, &operation);
  return software_end(graph_nodes_add(&place, error, operation, node));
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                 const hipMemsetParams *params)
{
  const enum software_call call = SOFTWARE_hipGraphAddMemsetNode;
  struct graph_nodes_place place;
  struct software_operation *operation = NULL;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  if (error == hipSuccess && (!params || !params->dst)) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    const struct software_rows rows = {params->dst, params->pitch};
    error = software_fill_new_node(call, &rows, params->value, params->elementSize, params->width, params->height,
                                   &operation);
  }
  return software_end(graph_nodes_add(&place, error, operation, node));
}

hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                               const hipHostNodeParams *params)
{
  const enum software_call call = SOFTWARE_hipGraphAddHostNode;
  struct graph_nodes_place place;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  if (error == hipSuccess && (!params || !params->fn)) error = hipErrorInvalidValue;
  struct software_operation *operation = error == hipSuccess ? software_operation_new(SOFTWARE_HOST, call) : NULL;
  if (operation) {
    operation->function = params->fn;
    operation->argument = params->userData;
  }
  return software_end(graph_nodes_add(&place, error, operation, node));
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

/* It is described as a pool is. */
static hipError_t graph_nodes_check_memory(const hipMemAllocNodeParams *params)
{
  if (!software.config.memory_pools) return hipErrorNotSupported;
  bool is_good = params && params->poolProps.allocType == hipMemAllocationTypePinned &&
                 params->poolProps.location.type == hipMemLocationTypeDevice && params->bytesize > 0;
  if (!is_good) return hipErrorInvalidValue;
  return software_device_exists(params->poolProps.location.id) ? hipSuccess : hipErrorInvalidDevice;
}

hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                   hipMemAllocNodeParams *params)
{
  const enum software_call call = SOFTWARE_hipGraphAddMemAllocNode;
  struct graph_nodes_place place;
  struct software_operation *operation = NULL;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  if (error == hipSuccess) error = graph_nodes_check_memory(params);
  if (error == hipSuccess)
    error = software_graph_new_allocation(place.graph, params->poolProps.location.id, &place.after, params->bytesize,
                                          call, &operation);
  struct software_allocation *allocation = operation ? operation->allocation : NULL;
  void *start = allocation ? (void *)allocation->by_address.major : NULL;
  error = graph_nodes_add(&place, error, operation, node);
  if (error == hipSuccess) params->dptr = start;
  if (allocation) software_graph_memory_unuse(allocation);
  return software_end(error);
}

hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t n_after,
                                  void *pointer)
{
  const enum software_call call = SOFTWARE_hipGraphAddMemFreeNode;
  struct graph_nodes_place place;
  struct software_operation *operation = NULL;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  struct software_allocation *allocation = error == hipSuccess ? software_allocation_at(pointer) : NULL;
  if (error == hipSuccess && !allocation) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_graph_new_free(allocation, call, &operation);
  error = graph_nodes_add(&place, error, operation, node);
  if (error == hipSuccess) software_graph_memory_freed_by(place.graph, allocation);
  return software_end(error);
}

/* ---- Structure ------------------------------------------------------------------------------------------------- */

/* The child is copied: what becomes of the graph later has no effect. */
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after,
                                     size_t n_after, hipGraph_t child_handle)
{
  const enum software_call call = SOFTWARE_hipGraphAddChildGraphNode;
  struct graph_nodes_place place;
  struct software_graph *given, *child = NULL;
  hipError_t error = graph_nodes_begin(call, node, graph, after, n_after, &place);
  if (error == hipSuccess) error = software_graph_find(child_handle, &given);
  if (error == hipSuccess && (given == place.graph || given->is_captured)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_graph_copy_child(given, &child);
  struct software_operation *operation = error == hipSuccess ? software_operation_new(SOFTWARE_EMPTY, call) : NULL;
  error = graph_nodes_add(&place, error, operation, node);
  if (error == hipSuccess)
    ((struct software_graph_node *)*node)->child = child;
  else if (child)
    software_graph_destroy(child);
  return software_end(error);
}

/* All handles are checked before a pair is added. The pairs before one that would close a circle stay. */
hipError_t hipGraphAddDependencies(hipGraph_t handle, const hipGraphNode_t *from, const hipGraphNode_t *to, size_t n)
{
  struct software_graph *graph;
  struct software_graph_node *node;
  hipError_t error = software_begin(SOFTWARE_hipGraphAddDependencies);
  if (error == hipSuccess) error = software_graph_find(handle, &graph);
  if (error == hipSuccess && n && (!from || !to)) error = hipErrorInvalidValue;
  for (size_t i = 0; error == hipSuccess && i < n; i++) {
    error = software_graph_find_node(graph, from[i], &node);
    if (error == hipSuccess) error = software_graph_find_node(graph, to[i], &node);
  }
  for (size_t i = 0; error == hipSuccess && i < n; i++)
    error = software_graph_add_dependency(graph, (struct software_graph_node *)from[i],
                                          (struct software_graph_node *)to[i]);
  return software_end(error);
}
