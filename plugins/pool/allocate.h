/* SPDX-License-Identifier: MIT */
/* allocate.h: the pool itself: what it is made of, and the ops that serve allocations. */
#ifndef HIPMM_PLUGINS_POOL_ALLOCATE_H
#define HIPMM_PLUGINS_POOL_ALLOCATE_H

#include "../common/biased_lock.h"
#include "backing.h"
#include "cache.h"

struct pool {
  const struct hipmm_services *services;
  struct caches caches;
  struct biased_lock lock; /* of heap and ground, and of which caches there are */
  struct heap heap;
  struct backing backing;
  struct thread_watch threads;
};

/* The ops of the same names (hipmm/plugin.h); `self` is a struct pool. */
enum hipmm_status pool_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out);
enum hipmm_status pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);
enum hipmm_status pool_find(void *self, const void *ptr, struct hipmm_block *block_out);
int pool_covers(void *self, const void *ptr);
enum hipmm_status pool_trim(void *self, size_t keep_bytes);
void pool_stream_retire(void *self, hipStream_t stream);
void pool_stream_retain(void *self, hipStream_t stream);

enum hipmm_status pool_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent), void *closure);

/* What the pool's thread_watch calls. Does not wait for a pool that is busy. */
void pool_thread_ended(struct thread_watch *watch, uint64_t thread);

/* Bytes held and not allocated; what caches keep counts as allocated. Granules that are partly in use count with the
 * part that is not. The pool's lock is held. */
uint64_t pool_free_bytes(const struct pool *pool);

/* explain.c: adds to the error record why a request failed with this status, after all that serve.c tries. Returns the
 * status for the caller. The pool's lock is held. */
enum hipmm_status explain_exhausted_records(const struct pool *pool, const struct request *request);
enum hipmm_status explain_failure(const struct pool *pool, enum hipmm_status status, const struct request *request);

#endif
