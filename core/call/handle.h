/* SPDX-License-Identifier: MIT */
/* handle.h: the opaque objects that programs hold: stream pools, events and containers. Handle memory is never unmapped,
 * so a stale handle, or one of another kind, can always be inspected safely. The object of a container also retains its
 * stack; threads that create and destroy containers do not share a counter for that. */
#ifndef HIPMM_CORE_CALL_HANDLE_H
#define HIPMM_CORE_CALL_HANDLE_H

#include "../base/error.h"

#include <stdatomic.h>

struct stack;

enum handle_kind {
  HANDLE_STREAM_POOL = 1,
  HANDLE_BUFFER,
  HANDLE_HOST_BUFFER,
  HANDLE_STREAM_EVENT,
  HANDLE_MOVABLE,
  HANDLE_KINDS
};

/* Most bytes of an object, its handle included, which comes first. */
enum { HANDLE_OBJECT_BYTES = 128 };

struct handle {
  atomic_uint kind; /* 0: destroyed */
  unsigned short shard;
  unsigned short stack_index; /* of its stack, in the shard */
  struct handle *next;        /* of those that are free */
  struct stack *stack;        /* NULL: none */
};

/* An object whose bytes after the handle are 0, or NULL when there is no host memory. It retains `stack`, if that is not
 * NULL, until it is freed, and has no kind until handle_open(). The second takes one that was freed before, or NULL where
 * there is none: it calls no function of the program, and waits for none. */
void *handle_new(struct stack *stack);
void *handle_try_new(struct stack *stack);
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

/* The same, unless that would release the last reference to the stack, and so destroy it: then false, and nothing done. */
bool handle_try_free(void *object);

/* For calls on an object: HIPMM_E_STATE in the child of a fork, HIPMM_E_ARGUMENT for NULL, HIPMM_E_POINTER for what is
 * not a live object of the kind. */
enum hipmm_status handle_check(const void *object, enum handle_kind kind);
enum hipmm_status handle_refuse(enum handle_kind kind);

/* The same for an argument with another name than its kind has ("buffer", "pool", …). */
enum hipmm_status handle_check_argument(const void *object, enum handle_kind kind, const char *name);

/* Releases the stacks that are retained for the next object alone. For hipmm_finalize(), once the table of devices is
 * closed: from then on no stack is retained for a next object. */
void handle_release_idle(void);

/* Objects that were made and not freed, of all kinds. For tests. */
size_t handle_count(void);

#endif
