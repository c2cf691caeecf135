/* SPDX-License-Identifier: MIT */
/* handle.h: host memory for the opaque objects that programs hold: stream pools and containers. An object's memory
 * stays an object's for ever, so that one which was destroyed already, or is of another kind, can be told by looking at
 * it. */
#ifndef HIPMM_CORE_HANDLE_H
#define HIPMM_CORE_HANDLE_H

#include "error.h"

#include <stdatomic.h>

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
  unsigned shelf;
  struct handle *next; /* of those that wait to be used again */
};

/* An object whose bytes after the handle are 0, or NULL when there is no host memory. It is none of any kind until
 * handle_open(). */
void *handle_new(void);
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

/* Objects that are open now, of all kinds. For tests. */
size_t handle_count(void);

#endif
