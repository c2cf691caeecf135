/* SPDX-License-Identifier: MIT */
/* stack.h: the live resources of one device, built from a graph. */
#ifndef HIPMM_CORE_STACK_H
#define HIPMM_CORE_STACK_H

#include "graph.h"
#include "ledger.h"

#include <stdatomic.h>

/* A live resource: what callers and plugins see, and what the core knows about it. */
struct instance {
  struct hipmm_resource resource; /* first: the public handle is the instance's address */
  struct hipmm_services services;
  const struct graph_node *node;
  struct stack *stack;
  struct ledger ledger; /* of a source */
  void *options;        /* the plugin's option struct */
  void *self;           /* the plugin's, as create gave it */
  bool created;         /* create succeeded, destroy is owed */
  pthread_mutex_t lock; /* serial.h: for a plugin that is not thread-safe */
  struct hipmm_resource **upstreams;
};

struct stack {
  atomic_uint references;
  int device;
  int top;
  struct graph *graph;
  atomic_int_fast64_t held_bytes, peak_held_bytes;
  struct instance *instances; /* one per node of the graph; those that this stack does not reach are not created */
};

/* Builds the stack of a device. The caller owns a reference. */
enum hipmm_status stack_build(struct graph *graph, int device, struct stack **stack_out);
void stack_retain(struct stack *stack);
void stack_release(struct stack *stack);

void stack_count_held(struct stack *stack, int64_t bytes);

/* The instance behind a public handle, and back. */
static inline struct instance *instance_from(const struct hipmm_resource *resource)
{
  return (struct instance *)(uintptr_t)resource;
}

/* The live block at `ptr`, asked of this instance and those below it; HIPMM_E_NOT_SUPPORTED when none can tell. */
enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out);

/* The nearest instance, from this one down, whose table of values (or actions) has `name`, and its row; NULL if none. */
const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out);
const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out);

/* Calls visit for this instance and all below it, each once, every one before its upstreams. */
void instance_visit_down(const struct instance *instance, void (*visit)(void *closure, const struct instance *instance),
                         void *closure);

#endif
