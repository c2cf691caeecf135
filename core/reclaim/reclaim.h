/* SPDX-License-Identifier: MIT */
/* reclaim.h: an allocation for which the runtime has no memory left asks other resources of the process for their
 * idle memory on that device, and is tried again.
 *
 * The resources are asked where a call enters hipmm, when no resource is in a call of this thread: there the thread
 * holds no lock that an asked resource may need. So threads that ask at the same time cannot deadlock. A resource on
 * the way up learns from services->reclaim_level() that the call will be tried again, and fails at once. */
#ifndef HIPMM_CORE_RECLAIM_RECLAIM_H
#define HIPMM_CORE_RECLAIM_RECLAIM_H

#include "../stack/attempt.h"

/* A call of the ops' allocate, but for the alignment. */
struct reclaim_call {
  const struct hipmm_resource *resource;
  size_t bytes;
  hipmm_stream_t stream;
  void **ptr_out;
};

/* An allocation has failed with `status`. If a resource below wants the program asked, asks it and tries again. If the
 * runtime had no memory for it, tries again with what other resources give (HIPMM_RECLAIM_IDLE), then waiting for work
 * (HIPMM_RECLAIM_WAIT), then by every way that the graph has (HIPMM_RECLAIM_ALL). If that fails, the message says who
 * holds the memory. The status is that of instance_finish_op(). The second also does what error_count_allocation()
 * does. */
enum hipmm_status reclaim_retry(const struct reclaim_call *call, size_t alignment, enum hipmm_status status);
enum hipmm_status reclaim_retry_and_count(const struct reclaim_call *call, size_t alignment, enum hipmm_status status);

/* The ops' allocate, and one of these two after a failure, for the functions with which a call enters hipmm. The
 * call is written to memory, which costs less than to keep it in registers for a failure. */
#define RECLAIM_ALLOCATE(after_failure)                                                        \
  const struct reclaim_call call = {resource, bytes, stream, ptr_out};                         \
  const struct hipmm_ops *ops = resource->ops;                                                 \
  __asm__("" : "+r"(ops) : "m"(call));                                                         \
  enum hipmm_status status = ops->allocate(resource->self, bytes, alignment, stream, ptr_out); \
  return __builtin_expect(!status, 1) ? status : after_failure(&call, alignment, status)

static inline enum hipmm_status reclaim_allocate(const struct hipmm_resource *resource, size_t bytes, size_t alignment,
                                                 hipmm_stream_t stream, void **ptr_out)
{
  RECLAIM_ALLOCATE(reclaim_retry);
}

static inline enum hipmm_status reclaim_allocate_and_count(const struct hipmm_resource *resource, size_t bytes,
                                                           size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  RECLAIM_ALLOCATE(reclaim_retry_and_count);
}

/* Calls `build`, which builds resources or commits memory, or leaves nothing behind. What it allocates is an
 * allocation like another: if the runtime has no memory left for it, other resources are asked as above, and `build`
 * is called again. The caller holds no lock, and no other thread waits for it to build. Within an op of a resource no
 * other resource is asked. */
enum hipmm_status reclaim_build(enum hipmm_status (*build)(void *closure), void *closure);

/* ---- memory_users.c ---- */

/* Appends to the thread's error who holds how much of that memory, and what would have been enough for `bytes`. `is_captured`:
 * the stream of the allocation was, so nothing was waited for. */
void memory_users_explain(const struct oom_source *oom_source, size_t bytes, bool is_captured);

#endif
