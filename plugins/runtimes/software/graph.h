/* SPDX-License-Identifier: MIT */
/* graph.h: graphs of operations, shared by node_set.c and graph.c (nodes), graph_memory.c (memory that nodes allocate and
 * free), program.c (instances), capture.c (streams whose operations become nodes), graph_launch.c, and the HIP API:
 * stream_capture.c, graph_nodes.c and graph_api.c. call.c reads the captures. The lock is held throughout. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_GRAPH_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_GRAPH_H

#include "internal.h"

struct software_graph_node {
  struct software_handle handle;
  struct software_graph *graph;
  struct software_operation *operation;  /* what is submitted at each launch */
  struct software_graph *child;          /* runs behind the operation, which is SOFTWARE_EMPTY then; mostly NULL */
  struct software_node_set dependencies; /* nodes before it in the graph */
  size_t index;                          /* in the graph */
  bool is_reached;                       /* of the last search */
  size_t end;                            /* in the program being made: its last operation */
};

struct software_graph {
  struct software_handle handle;
  bool is_captured;               /* a capture is adding to it */
  bool is_child;                  /* of a node, which owns it */
  struct software_node_set nodes; /* in an order in which they can run */
  size_t capacity;
};

/* What an allocation has that a node made (see graph_memory.c). */
struct software_graph_memory {
  struct graph_memory_block *memory;
  const struct software_graph *owner; /* compared only, as it may be gone */
  unsigned n_uses;                    /* by nodes, by programs, and by frees that have not executed */
  bool is_live;                       /* as of the last call: launched, and not freed since */
  bool is_freed_in_graph;             /* by a node of the same graph */
  bool is_reused;                     /* another allocation of that graph has the memory after that node */
  bool has_program;                   /* an instance of the graph, of which there can be only one */
};

/* An instance of a graph. */
struct software_program_node {
  struct software_operation *operation;
  size_t n_dependencies;
  size_t first_dependent; /* in the list of dependents, up to that of the next node */
};

struct software_program {
  unsigned references; /* by the instance, and by launches that have not finished */
  bool frees_on_launch;
  size_t n_nodes;
  struct software_program_node *nodes; /* one more than n_nodes */
  size_t *dependents;
  struct software_marker *launched; /* the end of the last launch; NULL before */
};

/* Streams whose operations become nodes of one graph. */
struct software_capture {
  struct software_capture *next;
  uint64_t id; /* never used again */
  struct software_graph *graph;
  hipStreamCaptureMode mode;
  pthread_t thread;              /* that began it */
  struct software_queue *origin; /* on which it began */
  struct software_queue *queues; /* all that take part */
  bool is_invalid;
};

/* ---- node_set.c ------------------------------------------------------------------------------------------------ */

/* Both false when there is no memory; the set is as before then. */
bool software_nodes_assign(struct software_node_set *set, const struct software_node_set *from);
bool software_nodes_add(struct software_node_set *set, const struct software_node_set *more);
void software_nodes_clear(struct software_node_set *set);
/* Marks the nodes of the set and all that they depend on. */
void software_graph_reach(struct software_graph *graph, const struct software_node_set *from);

/* ---- graph.c --------------------------------------------------------------------------------------------------- */

struct software_graph *software_graph_create(void); /* NULL when there is no memory */
void software_graph_destroy(struct software_graph *graph);
hipError_t software_graph_find(hipGraph_t handle, struct software_graph **graph_out);
/* The graph owns the operation from here on. NULL, with the operation freed, when there is no memory. */
struct software_graph_node *software_graph_add(struct software_graph *graph, struct software_operation *operation,
                                               const struct software_node_set *dependencies);
hipError_t software_graph_find_node(const struct software_graph *graph, hipGraphNode_t handle,
                                    struct software_graph_node **node_out);
/* Makes a node depend on another one as well; hipErrorInvalidValue if that one depends on it. */
hipError_t software_graph_add_dependency(struct software_graph *graph, struct software_graph_node *from,
                                         struct software_graph_node *to);
/* Copies a graph, to be a node's child. As in CUDA, one that allocates or frees memory cannot be: hipErrorNotSupported. */
hipError_t software_graph_copy_child(const struct software_graph *graph, struct software_graph **copy_out);
/* A copy of a node's operation, which is not submitted; NULL when there is no memory. */
struct software_operation *software_graph_copy(const struct software_operation *operation);
void software_graph_operation_free(struct software_operation *operation); /* of a node, or of such a copy */

/* ---- graph_memory.c -------------------------------------------------------------------------------------------- */

/* The operation of a node that depends on the nodes `after` and allocates. The caller uses the allocation. */
hipError_t software_graph_new_allocation(struct software_graph *owner, int device,
                                         const struct software_node_set *after, size_t bytes, enum software_call call,
                                         struct software_operation **operation_out);
/* The operation of a node that frees; freed_by is called once the node is in its graph. */
hipError_t software_graph_new_free(struct software_allocation *allocation, enum software_call call,
                                   struct software_operation **operation_out);
void software_graph_memory_freed_by(const struct software_graph *graph, struct software_allocation *allocation);
/* Nodes and programs use the allocations of their operations. Without use, and not live, an allocation ends. */
void software_graph_memory_use(struct software_allocation *allocation);
void software_graph_memory_unuse(struct software_allocation *allocation);
/* An operation that frees, which uses the allocation until it has executed; NULL when there is no memory. */
struct software_operation *software_graph_memory_new_free(struct software_allocation *allocation,
                                                          enum software_call call);
/* The pool of the memory of a device's graphs; NULL when there is no memory. */
struct software_pool *software_graph_pool(int device);

/* ---- program.c ------------------------------------------------------------------------------------------------- */

/* A graph that allocates has one instance at a time. */
bool software_program_can_be_made(const struct software_graph *graph);
struct software_program *software_program_make(const struct software_graph *graph); /* NULL when there is no memory */

/* ---- graph_launch.c -------------------------------------------------------------------------------------------- */

hipError_t software_program_launch(struct software_program *program, hipStream_t stream);

/* ---- capture.c ------------------------------------------------------------------------------------------------- */

/* A capture that begins on the queue; NULL when there is no memory. */
struct software_capture *software_capture_begin(struct software_queue *queue, hipStreamCaptureMode mode);
/* The queues take part no longer. The graph is destroyed if `keeps_graph` is false. */
void software_capture_end(struct software_capture *capture, bool keeps_graph);
struct software_capture *software_capture_find(uint64_t id); /* NULL for one that has ended */
/* The queue waits for the nodes: it takes part in the capture from here on. */
hipError_t software_capture_join(struct software_queue *queue, struct software_capture *capture,
                                 const struct software_node_set *nodes);
/* Whether the queue is a default stream that blocking streams which capture would have to wait for. */
bool software_capture_is_implied(const struct software_queue *queue, bool invalidates);

#endif
