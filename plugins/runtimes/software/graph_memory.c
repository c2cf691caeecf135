/* SPDX-License-Identifier: MIT */
/* graph_memory.c: memory that a node of a graph allocates. Called by hipMallocAsync and hipFreeAsync on a stream that
 * captures, by graph_nodes.c, by graphs for their nodes, and by execute.c.
 *
 * The address is known when the node is made, and stays the same in each launch. The memory comes from a pool that each
 * device has for its graphs, and is held from then on until nothing uses the node any more. Within a graph, memory that a
 * node freed is used again by nodes that depend on that node. The memory can be accessed from the time that the
 * allocating node executes until the free executes. The free is a node of this or another graph, or a call. */
#include "graph.h"
#include "pool.h"
#include <stdlib.h>

/* The memory of one or several allocations, of which no two are there at the same time. */
struct graph_memory_block {
  unsigned references; /* of allocations */
  struct software_pool *pool;
  struct software_pool_block *block;
};

struct software_pool *software_graph_pool(int device)
{
  struct software_device *owner = &software.devices[device];
  if (owner->graph_pool) return owner->graph_pool;
  owner->graph_pool = software_pool_create(device, hipMemHandleTypeNone);
  if (owner->graph_pool) owner->graph_pool->release_threshold = UINT64_MAX; /* kept until hipDeviceGraphMemTrim */
  return owner->graph_pool;
}

/* ---- The end of an allocation ---------------------------------------------------------------------------------- */

static void graph_memory_release(struct graph_memory_block *memory)
{
  if (--memory->references > 0) return;
  memory->pool->n_allocations--;
  memory->pool->used_bytes -= memory->block->by_size.major;
  memory->block->queue = NULL;
  memory->block->freed = NULL; /* all that used it has executed */
  software_pool_add_idle(memory->pool, memory->block);
  software_pool_destroy_if_unused(memory->pool);
  free(memory);
}

static void graph_memory_end_if_unused(struct software_allocation *allocation)
{
  struct software_graph_memory *graph = allocation->graph;
  if (graph->n_uses > 0 || graph->is_live) return;
  if (!allocation->closing) software_allocation_remove(allocation);
  allocation->graph = NULL;
  software_allocation_invalidate(allocation);
  graph_memory_release(graph->memory);
  free(graph);
}

void software_graph_memory_use(struct software_allocation *allocation)
{
  allocation->graph->n_uses++;
}

void software_graph_memory_unuse(struct software_allocation *allocation)
{
  allocation->graph->n_uses--;
  graph_memory_end_if_unused(allocation);
}

/* ---- Frees ----------------------------------------------------------------------------------------------------- */

void software_graph_memory_free(struct software_allocation *allocation)
{
  allocation->graph->is_live = false;
  allocation->is_visible = false;
  graph_memory_end_if_unused(allocation);
}

void software_graph_memory_execute(struct software_operation *operation)
{
  struct software_allocation *allocation = operation->allocation;
  bool is_free = operation->kind == SOFTWARE_GRAPH_FREE;
  if (is_free) allocation->is_visible = false;
  while (is_free && allocation->busy > 0) pthread_cond_wait(&software.progress, &software.lock);
  if (is_free)
    software_graph_memory_unuse(allocation);
  else
    allocation->is_visible = true;
}

struct software_operation *software_graph_memory_new_free(struct software_allocation *allocation,
                                                          enum software_call call)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_GRAPH_FREE, call);
  if (!operation) return NULL;
  operation->allocation = allocation;
  allocation->references++;
  software_graph_memory_use(allocation);
  return operation;
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

/* Memory that one of the nodes `after`, or a node that they depend on, has freed in the graph. The memory is not cut: it
 * serves a request that is at most an eighth smaller. */
static struct graph_memory_block *graph_memory_find_freed(struct software_graph *graph, int device,
                                                          const struct software_node_set *after, size_t bytes)
{
  bool is_searched = false;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const struct software_graph_node *node = graph->nodes.nodes[i];
    if (node->operation->kind != SOFTWARE_GRAPH_FREE) continue;
    struct software_graph_memory *freed = node->operation->allocation->graph;
    if (!freed || freed->owner != graph || freed->is_reused || freed->memory->pool->device != device) continue;
    size_t block_bytes = freed->memory->block->by_size.major;
    if (block_bytes < bytes || block_bytes > bytes + bytes / 8) continue;
    if (!is_searched) software_graph_reach(graph, after);
    is_searched = true;
    if (!node->is_reached) continue;
    freed->is_reused = true;
    return freed->memory;
  }
  return NULL;
}

static hipError_t graph_memory_new_block(int device, size_t bytes, struct graph_memory_block **memory_out)
{
  hipError_t error = hipSuccess;
  struct software_pool *pool = software_graph_pool(device);
  struct graph_memory_block *memory = pool ? calloc(1, sizeof *memory) : NULL;
  if (!memory) return hipErrorOutOfMemory;
  memory->pool = pool;
  memory->block = software_pool_next_idle(pool, bytes, NULL); /* all that used it has executed */
  if (memory->block)
    software_pool_cut(pool, memory->block, bytes);
  else
    error = software_pool_reserve(pool, bytes, &memory->block);
  if (error != hipSuccess) {
    free(memory);
    return error;
  }
  pool->n_allocations++;
  pool->used_bytes += memory->block->by_size.major;
  if (pool->used_bytes > pool->used_high) pool->used_high = pool->used_bytes;
  *memory_out = memory;
  return hipSuccess;
}

static hipError_t graph_memory_allocate(struct software_graph *owner, int device, const struct software_node_set *after,
                                        size_t bytes, struct software_allocation **allocation_out)
{
  struct software_allocation *allocation;
  size_t rounded = software_align_up(bytes, SOFTWARE_PAGE_BYTES);
  struct software_graph_memory *graph = rounded > 0 ? calloc(1, sizeof *graph) : NULL;
  struct graph_memory_block *memory = graph ? graph_memory_find_freed(owner, device, after, rounded) : NULL;
  hipError_t error = graph ? hipSuccess : hipErrorOutOfMemory;
  if (graph && !memory) error = graph_memory_new_block(device, rounded, &memory);
  if (error != hipSuccess) {
    free(graph);
    return error;
  }
  memory->references++;
  void *start = (void *)memory->block->by_size.minor;
  error = software_allocation_add(SOFTWARE_POOLED, device, start, bytes, &allocation);
  if (error != hipSuccess) {
    graph_memory_release(memory);
    free(graph);
    return error;
  }
  *graph = (struct software_graph_memory){.memory = memory, .owner = owner, .n_uses = 1};
  allocation->graph = graph;
  allocation->pool = memory->pool;
  allocation->is_visible = false;
  *allocation_out = allocation;
  return hipSuccess;
}

hipError_t software_graph_new_allocation(struct software_graph *owner, int device,
                                         const struct software_node_set *after, size_t bytes, enum software_call call,
                                         struct software_operation **operation_out)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_GRAPH_ALLOC, call);
  if (!operation) return hipErrorOutOfMemory;
  hipError_t error = graph_memory_allocate(owner, device, after, bytes, &operation->allocation);
  if (error != hipSuccess) {
    software_operation_free(operation);
    return error;
  }
  operation->allocation->references++;
  *operation_out = operation;
  return hipSuccess;
}

/* As in HIP, a node frees memory of graphs only. */
hipError_t software_graph_new_free(struct software_allocation *allocation, enum software_call call,
                                   struct software_operation **operation_out)
{
  if (!allocation->graph) return hipErrorInvalidValue;
  struct software_operation *operation = software_operation_new(SOFTWARE_GRAPH_FREE, call);
  if (!operation) return hipErrorOutOfMemory;
  operation->allocation = allocation;
  allocation->references++;
  *operation_out = operation;
  return hipSuccess;
}

/* Memory of the same graph cannot be named any more. */
void software_graph_memory_freed_by(const struct software_graph *graph, struct software_allocation *allocation)
{
  if (allocation->graph->owner != graph) return;
  allocation->graph->is_freed_in_graph = true;
  software_allocation_remove(allocation);
}
