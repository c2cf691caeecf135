/* SPDX-License-Identifier: MIT */
/* graph_api.c: the calls on graphs, on their instances, and on the memory of graphs. Called by applications. graph_nodes.c
 * has the calls that add nodes, graph_launch.c has the launch. */
#include "graph.h"
#include "pool.h"

struct graph_api_instance {
  struct software_handle handle;
  struct software_program *program;
};

static struct software_handles instances = {.object_bytes = sizeof(struct graph_api_instance)};

/* ---- Instances ------------------------------------------------------------------------------------------------- */

static hipError_t graph_api_instantiate(hipGraphExec_t *instance_out, hipGraph_t handle, unsigned long long flags)
{
  struct software_graph *graph;
  if (!instance_out || (flags & ~15ULL)) return hipErrorInvalidValue;
  hipError_t error = software_graph_find(handle, &graph);
  if (error != hipSuccess) return error;
  if (graph->is_captured) return hipErrorIllegalState;
  if (!software_program_can_be_made(graph)) return hipErrorNotSupported;
  struct graph_api_instance *instance = software_handle_allocate(&instances);
  struct software_program *program = instance ? software_program_make(graph) : NULL;
  if (instance && !program) software_handle_free(&instances, instance);
  if (!program) return hipErrorOutOfMemory;
  program->frees_on_launch = flags & hipGraphInstantiateFlagAutoFreeOnLaunch;
  instance->program = program;
  *instance_out = (hipGraphExec_t)instance;
  return hipSuccess;
}

hipError_t hipGraphInstantiate(hipGraphExec_t *instance, hipGraph_t graph, hipGraphNode_t *wrong_node, char *log,
                               size_t log_bytes)
{
  hipError_t error = software_begin(SOFTWARE_hipGraphInstantiate);
  if (error == hipSuccess) error = graph_api_instantiate(instance, graph, 0);
  if (wrong_node) *wrong_node = NULL;
  if (log && log_bytes > 0) *log = '\0';
  return software_end(error);
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *instance, hipGraph_t graph, unsigned long long flags)
{
  hipError_t error = software_begin(SOFTWARE_hipGraphInstantiateWithFlags);
  return software_end(error != hipSuccess ? error : graph_api_instantiate(instance, graph, flags));
}

static void graph_api_destroy_instance(struct graph_api_instance *instance)
{
  software_program_unreference(instance->program);
  software_handle_free(&instances, instance);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t instance)
{
  hipError_t error = software_begin(SOFTWARE_hipGraphExecDestroy);
  if (error == hipSuccess && !software_handle_is_live(&instances, instance)) error = hipErrorInvalidValue;
  if (error == hipSuccess) graph_api_destroy_instance((struct graph_api_instance *)instance);
  return software_end(error);
}

/* Of all devices, since a graph can concern several. */
void software_programs_reset(int device)
{
  struct graph_api_instance *instance;
  (void)device;
  while ((instance = software_handle_next(&instances, NULL))) graph_api_destroy_instance(instance);
}

hipError_t hipGraphCreate(hipGraph_t *handle, unsigned int flags)
{
  hipError_t error = software_begin(SOFTWARE_hipGraphCreate);
  if (error == hipSuccess && (!handle || flags != 0)) error = hipErrorInvalidValue;
  struct software_graph *graph = error == hipSuccess ? software_graph_create() : NULL;
  if (error == hipSuccess && !graph) error = hipErrorOutOfMemory;
  if (graph) *handle = (hipGraph_t)graph;
  return software_end(error);
}

hipError_t hipGraphDestroy(hipGraph_t handle)
{
  struct software_graph *graph;
  hipError_t error = software_begin(SOFTWARE_hipGraphDestroy);
  if (error == hipSuccess) error = software_graph_find(handle, &graph);
  if (error == hipSuccess && graph->is_captured) error = hipErrorIllegalState;
  if (error == hipSuccess) software_graph_destroy(graph);
  return software_end(error);
}

/* With NULL for `nodes`, the number of nodes; else as many as the caller has room for, and NULL for the rest. */
static hipError_t graph_api_list(enum software_call call, hipGraph_t handle, bool is_root_wanted, hipGraphNode_t *nodes,
                                 size_t *count)
{
  struct software_graph *graph;
  size_t n = 0;
  hipError_t error = software_begin(call);
  if (error == hipSuccess) error = software_graph_find(handle, &graph);
  if (error == hipSuccess && !count) error = hipErrorInvalidValue;
  if (error != hipSuccess) return software_end(error);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    struct software_graph_node *node = graph->nodes.nodes[i];
    if (is_root_wanted && node->dependencies.count > 0) continue;
    if (nodes && n < *count) nodes[n] = (hipGraphNode_t)node;
    n++;
  }
  for (size_t i = n; nodes && i < *count; i++) nodes[i] = NULL;
  if (!nodes || *count > n) *count = n;
  return software_end(hipSuccess);
}

hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count)
{
  return graph_api_list(SOFTWARE_hipGraphGetNodes, graph, false, nodes, count);
}

hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t *nodes, size_t *count)
{
  return graph_api_list(SOFTWARE_hipGraphGetRootNodes, graph, true, nodes, count);
}

hipError_t hipGraphLaunch(hipGraphExec_t instance, hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipGraphLaunch);
  if (error == hipSuccess && !software_handle_is_live(&instances, instance)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = software_program_launch(((struct graph_api_instance *)instance)->program, stream);
  return software_end(error);
}

/* ---- Memory of graphs ------------------------------------------------------------------------------------------ */

hipError_t hipDeviceGraphMemTrim(int device)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceGraphMemTrim);
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess && software.devices[device].graph_pool)
    software_pool_trim(software.devices[device].graph_pool, 0);
  return software_end(error);
}

static uint64_t *graph_api_amount(struct software_pool *pool, int attribute)
{
  switch (attribute) {
  case 0: return &pool->used_bytes;
  case 1: return &pool->used_high;
  case 2: return &pool->reserved_bytes;
  case 3: return &pool->reserved_high;
  default: return NULL;
  }
}

static hipError_t graph_api_find_amount(int device, int attribute, const void *value, uint64_t **amount_out)
{
  if (!software_device_exists(device)) return hipErrorInvalidDevice;
  struct software_pool *pool = software_graph_pool(device);
  if (!pool) return hipErrorOutOfMemory;
  *amount_out = graph_api_amount(pool, attribute);
  return *amount_out && value ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipDeviceGetGraphMemAttribute(int device, hipGraphMemAttributeType attribute, void *value)
{
  uint64_t *amount;
  hipError_t error = software_begin(SOFTWARE_hipDeviceGetGraphMemAttribute);
  if (error == hipSuccess) error = graph_api_find_amount(device, (int)attribute, value, &amount);
  if (error == hipSuccess) *(uint64_t *)value = *amount;
  return software_end(error);
}

/* The marks can only be taken back, to what is in force now. */
hipError_t hipDeviceSetGraphMemAttribute(int device, hipGraphMemAttributeType attribute, void *value)
{
  uint64_t *amount, *current;
  hipError_t error = software_begin(SOFTWARE_hipDeviceSetGraphMemAttribute);
  if (error == hipSuccess) error = graph_api_find_amount(device, (int)attribute, value, &amount);
  bool is_mark = (int)attribute == 1 || (int)attribute == 3;
  if (error == hipSuccess && (!is_mark || *(const uint64_t *)value != 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess) error = graph_api_find_amount(device, (int)attribute - 1, value, &current);
  if (error == hipSuccess) *amount = *current;
  return software_end(error);
}
