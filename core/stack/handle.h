/* SPDX-License-Identifier: MIT */
/* handle.h: the opaque objects that programs hold: stream pools and containers. Their memory stays objects' for ever,
 * so that one which was destroyed already, or is of another kind, can be told by looking at it. A container's object
 * also keeps its stack alive, and threads that make and destroy containers do not share a count for that. */
#ifndef HIPMM_CORE_STACK_HANDLE_H
#define HIPMM_CORE_STACK_HANDLE_H

#include "../base/error.h"

#include <stdatomic.h>

struct stack;

enum handle_kind {
  HANDLE_STREAM_POOL = 1,
  HANDLE_BUFFER,
  HANDLE_VECTOR,
  HANDLE_SCALAR,
  HANDLE_HOST_BUFFER,
  HANDLE_KINDS
};

/* Most bytes of an object, its handle included, which comes first. */
enum { HANDLE_OBJECT_BYTES = 128 };

struct handle {
  atomic_uint kind; /* 0: destroyed */
  unsigned short shelf;
  unsigned short hold; /* of its shelf: what it holds its stack by */
  struct handle *next; /* of those that wait to be used again */
  struct stack *stack; /* NULL: none */
};

/* An object whose bytes after the handle are 0, or NULL when there is no host memory. It holds `stack`, if that is not
 * NULL, until it is freed, and is none of any kind until handle_open(). */
void *handle_new(struct stack *stack);
void handle_open(void *object, enum handle_kind kind);

/* Whether it is a live object of this kind. */
static inline bool handle_is(const void *object, enum handle_kind kind)
{
  const struct handle *handle = object;
  return handle && atomic_load_explicit(&handle->kind, memory_order_relaxed) == (unsigned)kind;
}

/* Ends the object's life; of two threads that try, one succeeds. It may be opened again, or else must be freed. */
bool handle_close(void *object, enum handle_kind kind);
void handle_free(void *object);

/* For calls on an object: HIPMM_E_STATE in the child of a fork, HIPMM_E_ARGUMENT for NULL, HIPMM_E_POINTER for what is
 * not a live object of the kind. */
enum hipmm_status handle_check(const void *object, enum handle_kind kind);
enum hipmm_status handle_refuse(enum handle_kind kind);

/* Lets go of the stacks that are held for the next object alone. For hipmm_finalize(), once the table of devices is
 * closed, so that an object that goes from then on holds its stack for no other. */
void handle_let_go(void);

/* Objects that are open now, of all kinds. For tests. */
size_t handle_count(void);

#endif
