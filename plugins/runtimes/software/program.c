/* SPDX-License-Identifier: MIT */
/* program.c: what is made of a graph in order to launch it: copies of the operations of its nodes, and which depends on
 * which. Called by graph_api.c for instances, by graph_launch.c, and by execute.c at the end of a launch. A program
 * lasts until its instance is destroyed and its last launch has finished, whatever becomes of the graph. */
#include "graph.h"
#include <stdlib.h>

void software_program_unreference(struct software_program *program)
{
  if (--program->references > 0) return;
  for (size_t i = 0; i < program->n_nodes; i++) {
    struct software_operation *operation = program->nodes[i].operation;
    if (operation && operation->kind == SOFTWARE_GRAPH_ALLOC) operation->allocation->graph->has_program = false;
    if (operation) software_graph_operation_free(operation);
  }
  software_marker_unreference(program->launched);
  free(program->nodes);
  free(program->dependents);
  free(program);
}

static struct software_program *program_new(const struct software_graph *graph)
{
  struct software_program *program = calloc(1, sizeof *program);
  if (!program) return NULL;
  size_t n_edges = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) n_edges += graph->nodes.nodes[i]->dependencies.count;
  program->references = 1;
  program->nodes = calloc(graph->nodes.count + 1, sizeof *program->nodes);
  program->dependents = calloc(n_edges + 1, sizeof *program->dependents);
  if (program->nodes && program->dependents) return program;
  free(program->nodes);
  free(program->dependents);
  free(program);
  return NULL;
}

/* Fills the list of dependents, sorted by the node that they depend on. */
static void program_link(struct software_program *program, const struct software_graph *graph)
{
  size_t n = graph->nodes.count;
  for (size_t i = 0; i < n; i++) {
    const struct software_node_set *set = &graph->nodes.nodes[i]->dependencies;
    program->nodes[i].n_dependencies = set->count;
    for (size_t k = 0; k < set->count; k++) program->nodes[set->nodes[k]->index + 1].first_dependent++;
  }
  for (size_t i = 0; i < n; i++) program->nodes[i + 1].first_dependent += program->nodes[i].first_dependent;
  /* Each start moves to its end while the list is filled, and back. */
  for (size_t i = 0; i < n; i++) {
    const struct software_node_set *set = &graph->nodes.nodes[i]->dependencies;
    for (size_t k = 0; k < set->count; k++)
      program->dependents[program->nodes[set->nodes[k]->index].first_dependent++] = i;
  }
  for (size_t i = n; i-- > 0;) program->nodes[i + 1].first_dependent = program->nodes[i].first_dependent;
  program->nodes[0].first_dependent = 0;
}

/* As in CUDA, a graph that allocates has one instance at a time, since its addresses are fixed. */
bool software_program_can_be_made(const struct software_graph *graph)
{
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const struct software_operation *operation = graph->nodes.nodes[i]->operation;
    if (operation->kind == SOFTWARE_GRAPH_ALLOC && operation->allocation->graph->has_program) return false;
  }
  return true;
}

struct software_program *software_program_make(const struct software_graph *graph)
{
  struct software_program *program = program_new(graph);
  if (!program) return NULL;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    struct software_operation *operation = software_graph_copy(graph->nodes.nodes[i]->operation);
    if (!operation) {
      software_program_unreference(program);
      return NULL;
    }
    program->nodes[program->n_nodes++].operation = operation;
    if (operation->kind != SOFTWARE_GRAPH_ALLOC) continue;
    operation->allocation->graph->has_program = true;
    software_graph_memory_use(operation->allocation);
  }
  program_link(program, graph);
  return program;
}
