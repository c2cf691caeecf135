/* SPDX-License-Identifier: MIT */
/* work.h: operations, from what they work on to their place in a queue: spans, order, markers, pools and graphs as far as
 * operations concern them, execution, schedulers, captures, submission, waits. Unless a comment says otherwise, functions
 * expect the lock held. */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_WORK_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_WORK_H

#include "tables.h"

/* ---- span.c ---------------------------------------------------------------------------------------------------- */

/* Checks at the call that [start, start + bytes) may be touched by `device`: hipErrorInvalidValue if not. The memory is
 * checked for the same device at execution. */
hipError_t software_span_open(const void *start, size_t bytes, bool is_write, int device,
                              struct software_span *span_out);
/* The bytes from the start of the first row to the end of the last; false if that is no number of bytes. */
bool software_rows_extent(size_t width, size_t more_rows, size_t pitch, size_t *bytes_out);
void software_span_close(struct software_span *span);
bool software_span_is_host(const struct software_span *span); /* memory of the application itself */
/* The device whose memory it is; -1 for memory that the host and all devices share. */
int software_span_device(const struct software_span *span);
/* Checks again at execution and pins: NULL, or why it is a fault. unpin only after a NULL. */
const char *software_span_pin(const struct software_span *span, uint64_t sequence);
void software_span_unpin(const struct software_span *span);

/* ---- order.c --------------------------------------------------------------------------------------------------- */

/* The operation was submitted to the queue: its marker gets its place there, or the queue waits for the marker. */
void software_order_submitted(struct software_queue *queue, struct software_operation *operation);
/* The operation was taken back; `before` is the operation before it, or NULL. */
void software_order_forget(struct software_queue *queue, const struct software_operation *before);
/* What the queue submits from here on runs after the marker. */
void software_order_learn(struct software_queue *queue, const struct software_marker *marker);
/* Whether the next operation of the queue runs after the marker, because of stream order, events, or the default
 * stream. False when that is not known. */
bool software_order_is_after(const struct software_queue *queue, const struct software_marker *marker);
void software_order_unreference(struct software_order *order); /* NULL is allowed */

/* ---- operation.c ----------------------------------------------------------------------------------------------- */

/* NULL when there is no memory. */
struct software_operation *software_operation_new(enum software_operation_kind kind, enum software_call call);
void software_operation_free(struct software_operation *operation);
struct software_marker *software_marker_new(void);
struct software_marker *software_marker_reference(struct software_marker *marker);
void software_marker_unreference(struct software_marker *marker); /* NULL is allowed */
void software_marker_finish(struct software_marker *marker);

/* ---- pool.c ---------------------------------------------------------------------------------------------------- */

/* What a stream-ordered free does when its queue comes to it. */
void software_pool_free_visible(struct software_operation *operation);
/* Frees what pools of the device hold in reserve above `keep` bytes (their own thresholds if NULL), as far as their
 * frees have executed. */
void software_pools_trim(int device, const size_t *keep);
void software_pools_reset(int device);

/* ---- graph_memory.c, program.c --------------------------------------------------------------------------------- */

/* Executes GRAPH_ALLOC or GRAPH_FREE. */
void software_graph_memory_execute(struct software_operation *operation);
/* Frees memory of a graph now, for a call that has waited for its work. */
void software_graph_memory_free(struct software_allocation *allocation);
void software_program_unreference(struct software_program *program);
void software_programs_reset(int device); /* graph_api.c; of all devices */
void software_graphs_reset(int device);   /* graph.c; of all devices */
bool software_graphs_exist(void);         /* graph.c */

/* ---- execute.c ------------------------------------------------------------------------------------------------- */

/* Does what the operation says. Releases the lock meanwhile. */
void software_operation_execute(struct software_operation *operation, int device);

/* ---- queue.c --------------------------------------------------------------------------------------------------- */

/* A queue without operations; NULL when there is no memory. */
struct software_queue *software_queue_acquire(int device, bool is_blocking);
/* Its stream is gone: the queue finishes its operations, and then serves another stream. */
void software_queue_abandon(struct software_queue *queue);
void software_queue_append(struct software_queue *queue, struct software_operation *operation);
/* Undoes append, at once: `before` is what was the last operation before it. */
void software_queue_remove_last(struct software_queue *queue, struct software_operation *before);
/* Executes the head of a runnable queue. Releases the lock meanwhile. */
void software_queue_run(struct software_queue *queue);
/* Whether all up to `sequence` is finished: on the queue, and for a default stream on all streams that order themselves
 * with it. */
bool software_queue_is_done(const struct software_queue *queue, uint64_t sequence);

/* ---- ready.c --------------------------------------------------------------------------------------------------- */

bool software_ready_is_runnable(const struct software_queue *queue);
/* Whether an operation of the queue with this number waits for an earlier one of the other side: of the default stream, or
 * of the blocking streams. */
bool software_ready_is_held(const struct software_queue *queue, uint64_t sequence);
/* A queue has got its first operation; it has none any more, and `last` was the last one; its first operation has
 * changed, or it has none any more. */
void software_ready_add(struct software_queue *queue);
void software_ready_remove(struct software_queue *queue, const struct software_operation *last);
void software_ready_advance(const struct software_queue *queue);
/* The marker is done. */
void software_ready_wake(struct software_marker *marker);
/* The runnable queue behind `queue`, which is one; NULL: the first one. NULL behind the last. */
struct software_queue *software_ready_next(const struct software_queue *queue);

/* ---- scheduler_threads.c, scheduler_stepped.c ------------------------------------------------------------------ */

/* Makes sure that a thread will run the queue; false if no thread can be had. */
bool software_threads_prepare(struct software_queue *queue);
/* software_queue_run, and wakes the threads of the queues that can go on now. */
void software_threads_run(struct software_queue *queue);

/* Runs one operation; false if none is runnable. */
bool software_stepped_step(void);
/* A random number below `limit`, of the sequence that the seed determines. */
uint64_t software_stepped_draw(uint64_t limit);
/* A query of an event or stream runs a few operations, so that a loop of queries comes to an end. */
void software_stepped_poll(void);
/* The program may watch for what a host function does, without any call: from now on a thread goes on where the program does
 * nothing for a while. */
void software_stepped_watch(void);

/* ---- copy.c, fill.c -------------------------------------------------------------------------------------------- */

/* Rows of bytes, `pitch` apart from start to start. */
struct software_rows {
  void *start;
  size_t pitch;
};

/* The operations of nodes of a graph, which access memory as the current device. At least one byte, or value. */
hipError_t software_copy_new_node(enum software_call call, const struct software_rows *to,
                                  const struct software_rows *from, size_t width, size_t rows, hipMemcpyKind kind,
                                  struct software_operation **operation_out);
hipError_t software_fill_new_node(enum software_call call, const struct software_rows *to, uint32_t value,
                                  uint32_t value_bytes, size_t count, size_t rows,
                                  struct software_operation **operation_out);

/* ---- capture.c ------------------------------------------------------------------------------------------------- */

/* The operation becomes a node. On failure it is freed. */
hipError_t software_capture_add(struct software_queue *queue, struct software_operation *operation);
/* hipMallocAsync and hipFreeAsync on a queue that captures. */
hipError_t software_capture_allocate(struct software_queue *queue, size_t bytes, enum software_call call,
                                     void **pointer_out);
hipError_t software_capture_free(struct software_queue *queue, struct software_allocation *allocation);
/* For a call that a capture forbids on its streams: hipErrorStreamCaptureUnsupported if the queue captures, and the
 * capture is invalid then. For work on a default stream: hipErrorStreamCaptureImplicit if a blocking stream of its device
 * captures. For a wait for the device: hipErrorStreamCaptureUnsupported if one of its streams captures. */
hipError_t software_capture_forbid(const struct software_queue *queue);
hipError_t software_capture_forbid_wait(const struct software_queue *queue); /* and for one that is not safe */
hipError_t software_capture_check(const struct software_queue *queue);
hipError_t software_capture_forbid_device(int device);
/* The stream of the queue is gone. */
void software_capture_leave(struct software_queue *queue);
void software_captures_reset(int device); /* stream_capture.c; of all devices */

/* ---- submit.c -------------------------------------------------------------------------------------------------- */

/* Hands the operation over. On failure it is freed. */
hipError_t software_submit(struct software_queue *queue, struct software_operation *operation);
/* Makes sure that no submission to the queue fails for want of a thread; false if there is none. */
bool software_submit_prepare(struct software_queue *queue);
/* The same for a copy that runs on `runner` in the order of both queues: after all earlier operations of both, and before
 * all later ones. */
hipError_t software_submit_to(struct software_queue *runner, struct software_operation *operation,
                              struct software_queue *queue);
/* Waits until what was submitted up to `sequence` is finished: on the queue (for a default stream, on all streams that
 * order themselves with it), or on a device, -1 for all. */
void software_wait_queue(const struct software_queue *queue, uint64_t sequence);
void software_wait_device(int device, uint64_t sequence);
void software_wait_marker(struct software_marker *marker);

/* ---- pool_order.c ---------------------------------------------------------------------------------------------- */

/* A free of a pooled allocation that takes effect now. */
void software_pool_free(struct software_allocation *allocation);
/* For memory opened through a pool, before it is destroyed other than by hipFreeAsync. */
void software_pool_forget(struct software_allocation *allocation);
/* Waits until all reserves of the device's pools can be freed, and frees them; false if there were none. */
bool software_pools_drain(int device);

#endif
