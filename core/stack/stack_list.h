/* SPDX-License-Identifier: MIT */
/* stack_list.h: all live stacks of the process, and the references to them. */
#ifndef HIPMM_CORE_STACK_STACK_LIST_H
#define HIPMM_CORE_STACK_STACK_LIST_H

#include "../base/key_tree.h"

#include <hipmm/hipmm.h>
#include <stdatomic.h>
#include <stdbool.h>

struct stack;
struct instance;

/* The part of a stack that is stack_list.c's own. */
struct stack_entry {
  atomic_uint_least64_t holds;          /* references, and pins above them; 1: one reference */
  void (*destroy)(struct stack *stack); /* called without the last reference; calls stack_unlist() */
  char *name;                           /* of a stack made in code; NULL: the device's own, from the graph */
  struct key_tree_text by_name;
  bool is_numbered, is_listed, is_ready; /* is_ready: built, and may be visited */
  struct stack *next, *previous;
  struct key_tree_node by_number; /* of a name such as "pool.2", if is_numbered */
};

/* A reference may last for any time. The caller of retain has a reference or a pin. */
void stack_retain(struct stack *stack);
void stack_release(struct stack *stack);
unsigned stack_references(const struct stack *stack);

/* A pin keeps a stack for a part of a call of one thread. hipmm_finalize() waits for pins (stack_await_pins()), and a thread
 * that has one cannot finalize (lifecycle_begin_change()). No function runs meanwhile that may do so, or may wait for
 * hipmm_finalize(). pin: false when the last reference is gone. unpin destroys a stack that has lost its last reference
 * meanwhile. */
bool stack_pin(struct stack *stack);
void stack_unpin(struct stack *stack);

/* Waits until the pins of stacks without a reference are released; such stacks get no further pins. The calling thread has
 * none. */
void stack_await_pins(void);

/* Unless it is the last reference: then false, and nothing done. */
bool stack_try_release(struct stack *stack);

/* Lists a stack that is about to be built: visible to stack_next() once stack_show() was called. A stack made in code
 * needs a name of its own among them: `name`, or if that is taken and not `must_be_free` "name.2", "name.3", …
 * HIPMM_E_ARGUMENT if it is taken. NULL: the device's own stack. */
enum hipmm_status stack_list(struct stack *stack, const char *name, bool must_be_free);
void stack_show(struct stack *stack);

/* Nothing for a stack that is not listed. */
void stack_unlist(struct stack *stack);

/* The stack listed after `stack` (NULL: the first), pinned; `stack` is unpinned. NULL after the last. Stacks that are being
 * destroyed, or have lost their last reference, are passed over. */
struct stack *stack_next(struct stack *stack);

/* Whether `holds` is true of a stack that stack_next() would visit. It is called under the list's lock, which only looks. */
bool stack_any(bool (*holds)(const struct stack *stack, void *closure), void *closure);

/* The stacks of a device, or of all, pinned, in the order in which they were built: an array that the caller frees. NULL, and
 * *n_out is 0, without host memory. */
enum { STACK_ALL_DEVICES = -1 };
struct stack **stack_collect(int device, size_t *n_out);

/* The stack made in code that has this name, retained, or pinned; NULL if there is none, or it is not built yet. */
struct stack *stack_named(const char *name);
struct stack *stack_named_pinned(const char *name);

/* A loop over the resources that are there, from the top down. */
#define STACK_EACH(one, stack) for (struct instance *one = stack_lower(stack, NULL); one; one = stack_lower(stack, one))

/* The resource before `instance` in the order of the graph (NULL: the last) that is there; NULL if there is none. What
 * stack_extend() may be writing is not there. */
struct instance *stack_lower(const struct stack *stack, struct instance *instance);

/* What the sources of the stack hold from the runtime now: see instance_held_bytes(). */
int64_t stack_held_bytes(const struct stack *stack);

#endif
