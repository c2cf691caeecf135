/* SPDX-License-Identifier: MIT */
/* stack.h: the live resources of one device, built from a graph. */
#ifndef HIPMM_CORE_STACK_STACK_H
#define HIPMM_CORE_STACK_STACK_H

#include "instance.h"
#include "stack_list.h"

/* What a stack that is not the table's has besides a graph. Made in code: the resources of other stacks that it depends
 * on, the upstreams of its top first, then what its options name. Built from a whole graph: nothing but a name. */
struct external {
  struct hipmm_resource *const *resources;
  size_t n, n_upstreams;
  const char *name; /* for stack_list(); constant only while the stack is built */
  bool is_named;    /* the program gave the name: a name that is taken is refused, not numbered */
  bool is_whole;    /* from a whole graph (stack_from_graph.c): its resources have names of their own */
};

/* The user that a stack is built for: its resources may rely on what the user does. Of most programs nothing is known. */
enum stack_user {
  STACK_FOR_ANY,
  STACK_FOR_PYTORCH,          /* orders copies between devices with events */
  STACK_FOR_PYTORCH_WITH_INIT /* also allocates all memory from hipmm, on a device before it works there */
};

/* The most devices that hipmm serves; further devices of a runtime do not exist for it. */
enum { STACK_MOST_DEVICES = 64 };

/* Something that one thread at a time builds: device_table.c, under its lock. */
struct building {
  bool is_under_way;
  pthread_t builder;
};

struct stack {
  int device;
  enum stack_user user;
  int top;
  struct graph *graph;
  atomic_int_fast64_t held_bytes, peak_held_bytes;
  uint64_t device_bytes;      /* all memory that the device has */
  struct instance *instances; /* one per node of the graph; those that this stack does not reach are not created */
  struct external external;   /* with a reference to each */
  struct stack_entry entry;   /* in the list of all stacks */
  bool is_granted;            /* the device has access to the memory of the other stacks */
  struct building extension;
};

/* Builds the stack of a device with node `top` of the graph at the top; with `external` one that is not the table's, and
 * that has a name: made in code from a graph of one node (graph_single()), which gets the name too, or from a whole
 * graph. The caller owns a reference. */
enum hipmm_status stack_build(struct graph *graph, int device, int top, const struct external *external,
                              enum stack_user user, struct stack **stack_out);

/* Creates the resource of node `node` and the resources that it needs, unless they exist. One caller at a time for a stack;
 * calls on its resources go on meanwhile. A failure leaves the stack as it was. */
enum hipmm_status stack_extend(struct stack *stack, int node);

/* The resource called `name`; NULL if there is none, and then the name nearest to that, NULL if none is near. A resource
 * that is built by name is near before it is built. */
struct instance *stack_find(const struct stack *stack, const char *name, const char **nearest_out);

/* Tells every resource of the stack about a stream. */
enum stream_event { STREAM_RETAINED, STREAM_RETIRED };
void stack_notify(const struct stack *stack, hipmm_stream_t stream, enum stream_event event);

/* ---- resource.c ---- */

/* Logs a warning for each stack that is there: which of its resources the program holds. For hipmm_finalize(), once the
 * core has released its own references. */
void resource_warn_of_held(void);

/* HIPMM_E_ARGUMENT if it is not a live resource. */
enum hipmm_status resource_check(const struct hipmm_resource *resource);

#endif
