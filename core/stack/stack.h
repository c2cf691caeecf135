/* SPDX-License-Identifier: MIT */
/* stack.h: the live resources of one device, built from a graph; and the list of all live stacks. */
#ifndef HIPMM_CORE_STACK_STACK_H
#define HIPMM_CORE_STACK_STACK_H

#include "../base/block_map.h"
#include "../graph/graph.h"

#include <stdatomic.h>

/* A live resource: what callers and plugins see, and what the core knows about it. */
struct instance {
  struct hipmm_resource resource; /* first: the public handle is the instance's address */
  struct hipmm_services services;
  const struct graph_node *node;
  struct stack *stack;
  atomic_uint references;                   /* of the stack's, those that the program holds by this resource */
  struct block_map block_map;               /* of a source */
  struct instance_options *_Atomic options; /* instance_options.h: in force */
  struct instance_options *all_options;     /* that were ever in force, the newest first */
  void *options_by_text;                    /* instance_options.c: the same in a search tree */
  uint64_t free_bytes;                      /* what percentages in its options are of */
  void *self;                               /* the plugin's, as create gave it */
  bool created;                             /* create succeeded, destroy is owed */
  pthread_mutex_t setting;                  /* control.c: an option is being set */
  pthread_mutex_t lock;                     /* serial.h: for a plugin that is not thread-safe */
  int cancel;                               /* serial.h: what cancel_allow() needs of the thread that has the lock */
  struct hipmm_resource **upstreams;
  size_t n_upstreams;

  uint64_t number;         /* in the order of creation, among all stacks: an instance comes after all that it needs */
  unsigned depth;          /* longest way down to a source, itself included */
  struct instance **needs; /* its upstreams, then the resources that its options name */
  size_t n_needs;
  struct instance **reach; /* itself and all below it, each once, every one before those that it needs */
  size_t n_reach;
  struct instance **finders; /* what is asked for a block that is not known here: instances of `reach`, in its order */
  size_t n_finders;
};

/* Resources of other stacks that a stack stands on: those in `resources` are its top's upstreams first, then what its
 * options name. */
struct outside {
  struct hipmm_resource *const *resources;
  size_t n, n_upstreams;
};

struct stack {
  atomic_uint references;
  int device;
  int top;
  struct graph *graph;
  atomic_int_fast64_t held_bytes, peak_held_bytes;
  struct instance *instances; /* one per node of the graph; those that this stack does not reach are not created */
  struct outside outside;     /* with a reference to each */
  char *name;                 /* of a stack made in code: stack_list.c; NULL: the device's own, from the graph */
  bool is_listed, is_ready;   /* stack_list.c: is_ready: built, and may be visited */
  struct stack *next, *previous;
  unsigned long number;         /* stack_list.c: of a name such as "pool.2"; 0: none */
  struct stack *lower, *higher; /* the stacks whose names differ only in the number, in its order */
};

/* Builds the stack of a device; or one made in code, from a graph of one node (graph_single), over `outside`. The
 * node's name must be free (`is_named`), or else gets a number. The caller owns a reference. */
enum hipmm_status stack_build(struct graph *graph, int device, struct stack **stack_out);
enum hipmm_status stack_build_over(struct graph *graph, int device, const struct outside *outside, bool is_named,
                                   struct stack **stack_out);

/* The same with another node of the graph at the top. */
enum hipmm_status stack_build_from(struct graph *graph, int device, int top, struct stack **stack_out);
void stack_retain(struct stack *stack);
void stack_release(struct stack *stack);

/* The resource called `name`; NULL if there is none, and then the name nearest to that, NULL if none is near. */
struct instance *stack_find(const struct stack *stack, const char *name, const char **nearest_out);

/* ---- The list of all stacks (stack_list.c) ---- */

/* Lists a stack that is about to be built: visible to stack_next once stack_show was called. A stack made in code needs
 * a name of its own among them: `name`, or with `is_wish` that or "name.2", "name.3", … HIPMM_E_ARGUMENT if it is
 * taken; the name in force is stack->name. NULL: the device's own stack. */
enum hipmm_status stack_list(struct stack *stack, const char *name, bool is_wish);
void stack_show(struct stack *stack);
void stack_unlist(struct stack *stack);

/* The stack listed after `stack` (NULL: the first), retained; `stack` is released. NULL after the last. Such as are
 * being destroyed are passed over. */
struct stack *stack_next(struct stack *stack);

/* The stack made in code that has this name, retained; NULL if there is none, or it is not built yet. */
struct stack *stack_named(const char *name);

/* ---- Instances (instance.c) ---- */

/* The instance behind a public handle. */
static inline struct instance *instance_from(const struct hipmm_resource *resource)
{
  return (struct instance *)(uintptr_t)resource;
}

/* Fills needs, depth, reach and finders of an instance whose upstreams are known, all of which exist. */
enum hipmm_status instance_link(struct instance *instance);

/* The live block at `ptr`, asked of this instance and those below it, each once, and of an instance before those that
 * it stands on; HIPMM_E_NOT_SUPPORTED when none can tell. */
enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out);

/* See services->is_kept_below, and services->may_cut_up. */
bool instance_is_kept_below(const struct instance *instance);
bool instance_may_cut_up(const struct instance *other, const struct instance *instance);

/* The nearest instance, from this one down, whose table of values (or actions) has `name`, and its row; NULL if
 * none. */
const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out);
const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out);

/* resource.c: a warning in the log for each stack that is there: which of its resources the program holds. For
 * hipmm_finalize(), when all else has let go of them. */
void resource_warn_of_held(void);

/* What is said of a stream to every resource of a stack. */
enum stream_news { STREAM_RETAINED, STREAM_RETIRED };
void stack_tell_stream(const struct stack *stack, hipStream_t stream, enum stream_news news);

#endif
