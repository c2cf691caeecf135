/* SPDX-License-Identifier: MIT */
/* allocate.h: the pool itself, and the ops that serve allocations. */
#ifndef HIPMM_PLUGINS_POOL_ALLOCATE_H
#define HIPMM_PLUGINS_POOL_ALLOCATE_H

#include "../heap/backing.h"
#include "cache.h"

/* The ops of the same names (hipmm/plugin.h); `self` is a struct pool. */
enum hipmm_status pool_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
int pool_try_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
int pool_try_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status pool_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                             void *closure);
enum hipmm_status pool_visit_chunks(void *self, const void *ptr,
                                    int (*visitor)(void *closure, const struct hipmm_chunk *chunk), void *closure);
enum hipmm_status pool_suspend(void *self, enum hipmm_content content);
enum hipmm_status pool_resume(void *self);

/* ---- For its files ---- */

/* `arena` is the pool's. */
enum hipmm_status pool_refuse_pointer(struct arena *arena, const void *ptr);

/* A block that share.c can make a handle of, whatever the options. */
enum hipmm_status pool_allocate_exportable(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out);

/* share.c: handles of blocks for other processes. */
extern const struct hipmm_sharing pool_sharing;
void share_close(struct pool *pool);

/* span.c: addresses of which a program commits parts. `holds` is called without the lock: whether `ptr` lies in a span. The others
 * with it. spans_next() finds the span behind another one, or the first for NULL; NULL at the end. next_run finds the committed
 * addresses from *end on, which is 0 at first. */
extern const struct hipmm_spans pool_spans;
bool span_holds(struct pool *pool, const void *ptr, struct hipmm_block *span_out);
struct key_tree_node *spans_next(const struct spans *spans, const struct key_tree_node *span);
bool span_next_run(const struct pool *pool, const struct key_tree_node *span, uint64_t *start, uint64_t *end);
void spans_close(struct pool *pool);

/* ---- The content of a suspended pool, in host memory or a file (swapped_out.c). suspend.c calls with the pool's lock ---- */

/* Copies the content of all allocated blocks there. After a failure nothing is saved; what is copied is still in
 * the pool. */
enum hipmm_status swapped_out_open(struct pool *pool);

/* Copies it back, except for what was freed since, and keeps it. */
enum hipmm_status swapped_out_restore(struct pool *pool);

/* Frees what is saved, but not memory that is kept for the next time; and frees all. */
void swapped_out_close(struct pool *pool);
void swapped_out_release(struct pool *pool);

#endif
