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

/* A program that is being made. */
struct program_edge {
  size_t from, to;
};

struct program_making {
  struct software_program *program;
  struct program_edge *edges;
  size_t n_edges;
};

/* Counts operations and, at most, edges. A child's operations stand between two that do nothing: the node's own, and one at
 * their end. */
static void program_measure(const struct software_graph *graph, size_t *nodes, size_t *edges)
{
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const struct software_graph_node *node = graph->nodes.nodes[i];
    *nodes += node->child ? 2 : 1;
    *edges += node->dependencies.count + 3;
    if (node->child) program_measure(node->child, nodes, edges);
  }
}

static bool program_start(struct program_making *making, const struct software_graph *graph)
{
  size_t nodes = 0, edges = 0;
  program_measure(graph, &nodes, &edges);
  struct software_program *program = calloc(1, sizeof *program);
  *making = (struct program_making){.program = program, .edges = calloc(edges + 1, sizeof *making->edges)};
  if (!program) return false;
  program->references = 1;
  program->nodes = calloc(nodes + 1, sizeof *program->nodes);
  program->dependents = calloc(edges + 1, sizeof *program->dependents);
  return making->edges && program->nodes && program->dependents;
}

static void program_add_edge(struct program_making *making, size_t from, size_t to)
{
  making->edges[making->n_edges++] = (struct program_edge){from, to};
}

/* False when there is no memory; `operation` is NULL then. */
static bool program_add_operation(struct program_making *making, struct software_operation *operation)
{
  struct software_program *program = making->program;
  if (!operation) return false;
  program->nodes[program->n_nodes++].operation = operation;
  if (operation->kind != SOFTWARE_GRAPH_ALLOC) return true;
  operation->allocation->graph->has_program = true;
  software_graph_memory_use(operation->allocation);
  return true;
}

/* Adds the operations of a graph. Those of a child that depend on none of its own depend on `entry`. */
static bool program_add_graph(struct program_making *making, const struct software_graph *graph, const size_t *entry)
{
  for (size_t i = 0; i < graph->nodes.count; i++) {
    struct software_graph_node *node = graph->nodes.nodes[i];
    size_t start = making->program->n_nodes;
    if (!program_add_operation(making, software_graph_copy(node->operation))) return false;
    for (size_t k = 0; k < node->dependencies.count; k++)
      program_add_edge(making, node->dependencies.nodes[k]->end, start);
    if (!node->dependencies.count && entry) program_add_edge(making, *entry, start);
    node->end = start;
    if (!node->child) continue;
    if (!program_add_graph(making, node->child, &start)) return false;
    node->end = making->program->n_nodes;
    if (!program_add_operation(making, software_operation_new(SOFTWARE_EMPTY, node->operation->call))) return false;
    program_add_edge(making, start, node->end);
    for (size_t k = 0; k < node->child->nodes.count; k++)
      program_add_edge(making, node->child->nodes.nodes[k]->end, node->end);
  }
  return true;
}

/* Fills the list of dependents, sorted by the node that they depend on. */
static void program_link(const struct program_making *making)
{
  struct software_program_node *nodes = making->program->nodes;
  size_t n = making->program->n_nodes;
  for (size_t i = 0; i < making->n_edges; i++) {
    nodes[making->edges[i].to].n_dependencies++;
    nodes[making->edges[i].from + 1].first_dependent++;
  }
  for (size_t i = 0; i < n; i++) nodes[i + 1].first_dependent += nodes[i].first_dependent;
  /* Each start moves to its end while the list is filled, and back. */
  for (size_t i = 0; i < making->n_edges; i++)
    making->program->dependents[nodes[making->edges[i].from].first_dependent++] = making->edges[i].to;
  for (size_t i = n; i-- > 0;) nodes[i + 1].first_dependent = nodes[i].first_dependent;
  nodes[0].first_dependent = 0;
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
  struct program_making making;
  bool is_good = program_start(&making, graph) && program_add_graph(&making, graph, NULL);
  if (is_good) program_link(&making);
  free(making.edges);
  if (is_good) return making.program;
  if (making.program) software_program_unreference(making.program);
  return NULL;
}
