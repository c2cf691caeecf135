/* SPDX-License-Identifier: MIT */
/* capture.c: captures: streams whose operations become nodes of a graph and do not run. Called by submit.c with each
 * operation of such a stream, and by the HIP functions that a capture concerns.
 *
 * A stream that takes part has "tips", the nodes that its next node depends on. An event that was recorded in a capture has
 * the tips of its stream at that time; a stream that waits for the event adds them to its own, and so takes part. What a
 * capture forbids makes it invalid: the call fails, and so does everything up to the end of the capture. */
#include "graph.h"
#include <stdlib.h>

static uint64_t capture_last_id;

struct software_capture *software_capture_begin(struct software_queue *queue, hipStreamCaptureMode mode)
{
  struct software_capture *capture = calloc(1, sizeof *capture);
  if (!capture) return NULL;
  capture->graph = software_graph_create();
  if (!capture->graph) {
    free(capture);
    return NULL;
  }
  capture->graph->is_captured = true;
  capture->id = ++capture_last_id;
  capture->mode = mode;
  capture->thread = pthread_self();
  capture->origin = queue;
  capture->queues = queue;
  queue->capture = capture;
  queue->next_captured = NULL;
  capture->next = software.captures;
  software.captures = capture;
  return capture;
}

void software_capture_end(struct software_capture *capture, bool keeps_graph)
{
  struct software_capture **link = &software.captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  for (struct software_queue *queue = capture->queues; queue; queue = queue->next_captured) {
    queue->capture = NULL;
    software_nodes_clear(&queue->tips);
  }
  capture->graph->is_captured = false;
  if (!keeps_graph) software_graph_destroy(capture->graph);
  free(capture);
}

struct software_capture *software_capture_find(uint64_t id)
{
  struct software_capture *capture = software.captures;
  while (capture && capture->id != id) capture = capture->next;
  return capture;
}

hipError_t software_capture_join(struct software_queue *queue, struct software_capture *capture,
                                 const struct software_node_set *nodes)
{
  if (capture->is_invalid) return hipErrorStreamCaptureInvalidated;
  if (!software_nodes_add(&queue->tips, nodes)) return hipErrorOutOfMemory;
  if (queue->capture) return hipSuccess;
  queue->capture = capture;
  queue->next_captured = capture->queues;
  capture->queues = queue;
  return hipSuccess;
}

/* The stream is gone. The capture of which it was the origin cannot be ended any more. Any other goes on: what the stream
 * captured is in the graph, and the origin must wait for it. */
void software_capture_leave(struct software_queue *queue)
{
  struct software_capture *capture = queue->capture;
  if (!capture) return;
  if (capture->origin == queue) {
    software_capture_end(capture, false);
    return;
  }
  struct software_queue **link = &capture->queues;
  while (*link != queue) link = &(*link)->next_captured;
  *link = queue->next_captured;
  queue->capture = NULL;
  software_nodes_clear(&queue->tips);
}

/* ---- What captures forbid -------------------------------------------------------------------------------------- */

hipError_t software_capture_forbid(const struct software_queue *queue)
{
  if (queue->capture) {
    bool was_invalid = queue->capture->is_invalid;
    queue->capture->is_invalid = true;
    return was_invalid ? hipErrorStreamCaptureInvalidated : hipErrorStreamCaptureUnsupported;
  }
  return software_capture_check(queue);
}

hipError_t software_capture_forbid_wait(const struct software_queue *queue)
{
  hipError_t error = software_capture_forbid(queue);
  return error == hipSuccess ? software_check_captures() : error;
}

/* The default stream would wait for the blocking streams that capture. */
bool software_capture_is_implied(const struct software_queue *queue, bool invalidates)
{
  bool is_implied = false;
  for (struct software_capture *capture = software.captures; capture && queue->is_legacy; capture = capture->next) {
    for (const struct software_queue *other = capture->queues; other; other = other->next_captured) {
      if (!other->is_blocking || other->device != queue->device) continue;
      is_implied = true;
      capture->is_invalid |= invalidates;
    }
  }
  return is_implied;
}

hipError_t software_capture_check(const struct software_queue *queue)
{
  return software_capture_is_implied(queue, true) ? hipErrorStreamCaptureImplicit : hipSuccess;
}

hipError_t software_capture_forbid_device(int device)
{
  hipError_t error = hipSuccess;
  for (struct software_capture *capture = software.captures; capture; capture = capture->next) {
    for (const struct software_queue *queue = capture->queues; queue; queue = queue->next_captured) {
      if (queue->device != device) continue;
      capture->is_invalid = true;
      error = hipErrorStreamCaptureUnsupported;
    }
  }
  return error;
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

hipError_t software_capture_add(struct software_queue *queue, struct software_operation *operation)
{
  struct software_capture *capture = queue->capture;
  if (capture->is_invalid) {
    software_operation_free(operation);
    return hipErrorStreamCaptureInvalidated;
  }
  struct software_graph_node *node = software_graph_add(capture->graph, operation, &queue->tips);
  struct software_node_set tip = {.nodes = &node, .count = 1};
  if (node && software_nodes_assign(&queue->tips, &tip)) return hipSuccess;
  capture->is_invalid = true;
  return hipErrorOutOfMemory;
}

hipError_t software_capture_allocate(struct software_queue *queue, size_t bytes, enum software_call call,
                                     void **pointer_out)
{
  struct software_operation *operation;
  if (queue->capture->is_invalid) return hipErrorStreamCaptureInvalidated;
  hipError_t error =
      software_graph_new_allocation(queue->capture->graph, queue->device, &queue->tips, bytes, call, &operation);
  if (error != hipSuccess) return error;
  struct software_allocation *allocation = operation->allocation;
  void *start = (void *)allocation->by_address.major;
  error = software_capture_add(queue, operation);
  software_graph_memory_unuse(allocation);
  if (error == hipSuccess) *pointer_out = start;
  return error;
}

hipError_t software_capture_free(struct software_queue *queue, struct software_allocation *allocation)
{
  struct software_operation *operation;
  if (queue->capture->is_invalid) return hipErrorStreamCaptureInvalidated;
  hipError_t error = software_graph_new_free(allocation, SOFTWARE_hipFreeAsync, &operation);
  if (error == hipSuccess) error = software_capture_add(queue, operation);
  if (error == hipSuccess) software_graph_memory_freed_by(queue->capture->graph, allocation);
  return error;
}
