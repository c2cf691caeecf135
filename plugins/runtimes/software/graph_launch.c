/* SPDX-License-Identifier: MIT */
/* graph_launch.c: a launch of a program. Called by graph_api.c. The copies of all operations go to one stream, in an
 * order that the dependencies allow: that of the capture, or with the stepped scheduler one that is drawn anew for each
 * launch, so that a missing dependency shows. */
#include "graph.h"
#include <stdlib.h>

/* A list of operations that are all submitted, or all freed. */
struct graph_launch_list {
  struct software_operation *first, **end;
};

static bool graph_launch_append(struct graph_launch_list *launch, struct software_operation *operation)
{
  if (!operation) return false;
  *launch->end = operation;
  launch->end = &operation->next;
  return true;
}

static void graph_launch_discard(struct software_operation *operation)
{
  struct software_program *program = operation->program;
  struct software_allocation *freed = operation->kind == SOFTWARE_GRAPH_FREE ? operation->allocation : NULL;
  if (freed) software_graph_memory_unuse(freed);
  software_operation_free(operation);
  if (program) software_program_unreference(program);
}

/* Memory that a node allocates must have been freed since the last launch, and memory that a node frees must be there. */
static bool graph_launch_is_allowed(const struct software_program *program)
{
  for (size_t i = 0; i < program->n_nodes; i++) {
    const struct software_operation *operation = program->nodes[i].operation;
    const struct software_graph_memory *graph = operation->allocation ? operation->allocation->graph : NULL;
    if (operation->kind == SOFTWARE_GRAPH_ALLOC && graph->is_live && !program->frees_on_launch) return false;
    if (operation->kind != SOFTWARE_GRAPH_FREE) continue;
    if (!graph || (!graph->is_freed_in_graph && !graph->is_live)) return false;
  }
  return true;
}

static struct software_operation *graph_launch_copy(const struct software_operation *operation)
{
  if (operation->kind == SOFTWARE_GRAPH_FREE)
    return software_graph_memory_new_free(operation->allocation, operation->call);
  return software_graph_copy(operation);
}

/* The copies of all operations, in an order that the dependencies allow. */
static bool graph_launch_append_nodes(struct graph_launch_list *launch, const struct software_program *program)
{
  size_t n = program->n_nodes, n_ready = 0;
  size_t *ready = malloc((n + 1) * sizeof *ready), *waiting = malloc((n + 1) * sizeof *waiting);
  bool is_complete = ready && waiting;
  for (size_t i = 0; is_complete && i < n; i++) {
    waiting[i] = program->nodes[i].n_dependencies;
    if (waiting[i] == 0) ready[n_ready++] = i;
  }
  bool is_random = software.config.scheduler == SOFTWARE_STEPPED;
  for (size_t next = 0; is_complete && next < n_ready; next++) {
    size_t drawn = is_random ? next + (size_t)software_stepped_draw(n_ready - next) : next, node = ready[drawn];
    ready[drawn] = ready[next];
    is_complete = graph_launch_append(launch, graph_launch_copy(program->nodes[node].operation));
    for (size_t k = program->nodes[node].first_dependent; k < program->nodes[node + 1].first_dependent; k++)
      if (--waiting[program->dependents[k]] == 0) ready[n_ready++] = program->dependents[k];
  }
  free(ready);
  free(waiting);
  return is_complete;
}

/* Two launches of an instance never overlap. */
static bool graph_launch_append_wait(struct graph_launch_list *launch, const struct software_program *program)
{
  if (!program->launched || program->launched->done) return true;
  struct software_operation *operation = software_operation_new(SOFTWARE_WAIT, SOFTWARE_hipGraphLaunch);
  if (operation) operation->marker = software_marker_reference(program->launched);
  return graph_launch_append(launch, operation);
}

static bool graph_launch_append_frees(struct graph_launch_list *launch, const struct software_program *program)
{
  for (size_t i = 0; i < program->n_nodes; i++) {
    const struct software_operation *operation = program->nodes[i].operation;
    if (operation->kind != SOFTWARE_GRAPH_ALLOC || !operation->allocation->graph->is_live) continue;
    if (!graph_launch_append(launch, software_graph_memory_new_free(operation->allocation, SOFTWARE_hipGraphLaunch)))
      return false;
  }
  return true;
}

static bool graph_launch_append_end(struct graph_launch_list *launch, struct software_program *program)
{
  struct software_operation *operation = software_operation_new(SOFTWARE_GRAPH_END, SOFTWARE_hipGraphLaunch);
  struct software_marker *marker = operation ? software_marker_new() : NULL;
  if (operation && !marker) software_operation_free(operation);
  if (!marker) return false;
  operation->marker = marker;
  operation->program = program;
  program->references++;
  return graph_launch_append(launch, operation);
}

static void graph_launch_set_live(const struct software_program *program)
{
  for (size_t i = 0; i < program->n_nodes; i++) {
    const struct software_operation *operation = program->nodes[i].operation;
    struct software_graph_memory *graph = operation->allocation ? operation->allocation->graph : NULL;
    if (!graph) continue;
    graph->is_live = operation->kind == SOFTWARE_GRAPH_ALLOC && !graph->is_freed_in_graph;
  }
}

static bool graph_launch_append_all(struct graph_launch_list *launch, struct software_program *program)
{
  return graph_launch_append_wait(launch, program) && graph_launch_append_frees(launch, program) &&
         graph_launch_append_nodes(launch, program) && graph_launch_append_end(launch, program);
}

/* Memory is live, or freed, from the call on. No submission fails, since the queue is prepared and in no capture. */
static void graph_launch_submit(struct graph_launch_list *launch, struct software_program *program,
                                struct software_queue *queue)
{
  graph_launch_set_live(program);
  struct software_operation *next = launch->first;
  while (next) {
    struct software_operation *operation = next;
    next = operation->next;
    operation->next = NULL;
    if (operation->kind == SOFTWARE_GRAPH_END) {
      software_marker_unreference(program->launched);
      program->launched = software_marker_reference(operation->marker);
    }
    (void)!software_submit(queue, operation);
  }
}

hipError_t software_program_launch(struct software_program *program, hipStream_t stream)
{
  struct software_queue *queue;
  struct graph_launch_list launch = {.end = &launch.first};
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess) error = software_capture_forbid(queue); /* a launch is no node */
  if (error != hipSuccess) return error;
  if (!graph_launch_is_allowed(program)) return hipErrorInvalidValue;
  if (graph_launch_append_all(&launch, program) && software_submit_prepare(queue)) {
    program->references++; /* the launch may finish, and another thread destroy the instance, meanwhile */
    graph_launch_submit(&launch, program, queue);
    software_program_unreference(program);
    return hipSuccess;
  }
  while (launch.first) {
    struct software_operation *operation = launch.first;
    launch.first = operation->next;
    graph_launch_discard(operation);
  }
  return hipErrorOutOfMemory;
}
