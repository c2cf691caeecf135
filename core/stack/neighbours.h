/* SPDX-License-Identifier: MIT */
/* neighbours.h: an allocation for which the runtime has no memory left asks other resources of the process for their
 * idle memory on that device, and is tried again.
 *
 * The resources are asked where a call enters hipmm, when no resource is in a call of this thread: there the thread
 * holds no lock that an asked resource may need. So threads that ask at the same time cannot deadlock. A resource on
 * the way up learns from services->effort() that the call will be tried again, and fails at once. */
#ifndef HIPMM_CORE_STACK_NEIGHBOURS_H
#define HIPMM_CORE_STACK_NEIGHBOURS_H

#include "instance.h"

/* A call of the ops' allocate, but for the alignment. */
struct neighbours_call {
  const struct hipmm_resource *resource;
  size_t bytes;
  hipmm_stream_t stream;
  void **ptr_out;
};

/* An allocation has failed with `status`. If a resource below wants the program asked, asks it and tries again. If the
 * runtime had no memory for it, tries again with what the neighbours give (HIPMM_EFFORT_IDLE), then waiting for work
 * (HIPMM_EFFORT_WAIT), then by every way that the graph has (HIPMM_EFFORT_ALL). If that fails, the message says who
 * holds the memory. The status is that of instance_finish_op(). The second also does what error_count_allocation()
 * does. */
enum hipmm_status neighbours_allocate(const struct neighbours_call *call, size_t alignment, enum hipmm_status status);
enum hipmm_status neighbours_allocate_and_count(const struct neighbours_call *call, size_t alignment,
                                                enum hipmm_status status);

/* The ops' allocate, and one of these two after a failure, for the functions with which a call enters hipmm. The
 * call is written to memory, which costs less than to keep it in registers for a failure. */
#define NEIGHBOURS_FIRST_ALLOCATE(after_failure)                                               \
  const struct neighbours_call call = {resource, bytes, stream, ptr_out};                      \
  const struct hipmm_ops *ops = resource->ops;                                                 \
  __asm__("" : "+r"(ops) : "m"(call));                                                         \
  enum hipmm_status status = ops->allocate(resource->self, bytes, alignment, stream, ptr_out); \
  return __builtin_expect(!status, 1) ? status : after_failure(&call, alignment, status)

static inline enum hipmm_status neighbours_first_allocate(const struct hipmm_resource *resource, size_t bytes,
                                                          size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  NEIGHBOURS_FIRST_ALLOCATE(neighbours_allocate);
}

static inline enum hipmm_status neighbours_first_allocate_and_count(const struct hipmm_resource *resource, size_t bytes,
                                                                    size_t alignment, hipmm_stream_t stream,
                                                                    void **ptr_out)
{
  NEIGHBOURS_FIRST_ALLOCATE(neighbours_allocate_and_count);
}

/* Calls `build`, which builds resources, or leaves nothing behind. What it allocates is an allocation like another: if the
 * runtime has no memory left for it, neighbours are asked as above, and `build` is called again. The caller holds no lock, and
 * no other thread waits for it to build. Within an op of a resource no neighbour is asked. */
enum hipmm_status neighbours_build(enum hipmm_status (*build)(void *closure), void *closure);
bool neighbours_are_building(void);

/* The memory of a source ran out: the last HIP call of `source` in this thread failed for want of memory, of `bytes`. */
void neighbours_note_exhausted(const struct instance *source, size_t bytes);

/* See services->effort. */
enum hipmm_effort neighbours_effort(const struct instance *instance, enum hipmm_status status);

/* Around a call in which this thread may hold locks of resources: no neighbour is asked until it is left. */
void neighbours_enter_inner(void);
void neighbours_leave_inner(void);

/* ---- Functions of the program ---- */

/* See services->ask_program. */
enum hipmm_status neighbours_ask_program(const struct instance *asker, enum hipmm_status status,
                                         const struct hipmm_question *question, size_t bytes);

/* Calls `call`, which leaves nothing behind where it fails, and calls it again each time that a resource below has asked the
 * program: HIPMM_CALL_AGAIN. The program is asked here. */
enum hipmm_status neighbours_repeat(enum hipmm_status (*call)(void *closure), void *closure);

/* Around a function of the program that `source` calls within an op: this thread may hold locks of resources. */
void neighbours_enter_program(struct instance *source);
void neighbours_leave_program(struct instance *source);
bool neighbours_are_in_program(void);

/* HIPMM_E_STATE, with the thread's error, if this thread must not wait for a lock of the instance, which is held around calls
 * of upstreams. A thread in a function of the program as above must not while such a function of a resource below the
 * instance runs, in any thread: that thread may hold the lock, or one that the lock's holder waits for. Other threads take
 * locks from the top of a stack down, so a circle of threads that wait for each other has threads in such functions, each
 * of which waits for the next one below; the last of these to ask sees the others, and is refused. */
enum hipmm_status neighbours_check_wait(const struct instance *instance);

/* ---- holders.c ---- */

/* Of which memory there is no more. */
struct exhausted {
  int device;
  const struct hipmm_plugin *source; /* its type; plugins stay loaded */
};

/* The first source in the closure of the instance that, on the same device, gives back what the source that ran out can get;
 * NULL if there is none. */
const struct instance *exhausted_source_of(const struct exhausted *exhausted, const struct instance *instance);

/* Appends to the thread's error who holds how much of that memory, and what would have been enough for `bytes`. */
void holders_explain(const struct exhausted *exhausted, size_t bytes);

#endif
