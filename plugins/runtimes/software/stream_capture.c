/* SPDX-License-Identifier: MIT */
/* stream_capture.c: the calls that begin and end a capture, and that ask for one. Called by applications. capture.c has what
 * happens between. */
#include "graph.h"

static hipError_t stream_capture_begin(hipStream_t stream, hipStreamCaptureMode mode)
{
  struct software_queue *queue;
  if ((unsigned)mode > hipStreamCaptureModeRelaxed) return hipErrorInvalidValue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error != hipSuccess) return error;
  if (queue->is_legacy) return hipErrorStreamCaptureUnsupported;
  if (queue->capture) return hipErrorIllegalState;
  return software_capture_begin(queue, mode) ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamBeginCapture);
  return software_end(error != hipSuccess ? error : stream_capture_begin(stream, mode));
}

/* Whether the origin waits for all nodes of the other streams. */
static bool stream_capture_is_joined(struct software_capture *capture)
{
  software_graph_reach(capture->graph, &capture->origin->tips);
  for (size_t i = 0; i < capture->graph->nodes.count; i++)
    if (!capture->graph->nodes.nodes[i]->is_reached) return false;
  return true;
}

/* Also after an error that the capture had, or that shows here, the streams capture no longer. */
static hipError_t stream_capture_end(hipStream_t stream, hipGraph_t *graph_out)
{
  struct software_queue *queue;
  if (!graph_out) return hipErrorInvalidValue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error != hipSuccess) return error;
  struct software_capture *capture = queue->capture;
  if (!capture) return hipErrorIllegalState;
  if (capture->origin != queue) return hipErrorStreamCaptureUnmatched;
  if (capture->mode != hipStreamCaptureModeRelaxed && !pthread_equal(capture->thread, pthread_self()))
    return hipErrorStreamCaptureWrongThread;
  if (capture->is_invalid)
    error = hipErrorStreamCaptureInvalidated;
  else if (!stream_capture_is_joined(capture))
    error = hipErrorStreamCaptureUnjoined;
  *graph_out = error == hipSuccess ? (hipGraph_t)capture->graph : NULL;
  software_capture_end(capture, error == hipSuccess);
  return error;
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamEndCapture);
  return software_end(error != hipSuccess ? error : stream_capture_end(stream, graph));
}

/* ---- Queries --------------------------------------------------------------------------------------------------- */

static hipError_t stream_capture_status(hipStream_t stream, hipStreamCaptureStatus *status_out,
                                        struct software_queue **queue_out)
{
  if (!status_out) return hipErrorInvalidValue;
  hipError_t error = software_queue_find(stream, queue_out);
  if (error != hipSuccess) return error;
  if (software_capture_is_implied(*queue_out, false)) return hipErrorStreamCaptureImplicit;
  const struct software_capture *capture = (*queue_out)->capture;
  *status_out = !capture              ? hipStreamCaptureStatusNone
                : capture->is_invalid ? hipStreamCaptureStatusInvalidated
                                      : hipStreamCaptureStatusActive;
  return hipSuccess;
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
  struct software_queue *queue;
  hipError_t error = software_begin(SOFTWARE_hipStreamIsCapturing);
  return software_end(error != hipSuccess ? error : stream_capture_status(stream, status, &queue));
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id)
{
  struct software_queue *queue;
  hipError_t error = software_begin(SOFTWARE_hipStreamGetCaptureInfo);
  if (error == hipSuccess) error = stream_capture_status(stream, status, &queue);
  if (error == hipSuccess && id && *status == hipStreamCaptureStatusActive) *id = queue->capture->id;
  return software_end(error);
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id,
                                      hipGraph_t *graph, const hipGraphNode_t **dependencies, size_t *n_dependencies)
{
  struct software_queue *queue;
  hipError_t error = software_begin(SOFTWARE_hipStreamGetCaptureInfo_v2);
  if (error == hipSuccess) error = stream_capture_status(stream, status, &queue);
  if (error != hipSuccess || *status != hipStreamCaptureStatusActive) return software_end(error);
  if (id) *id = queue->capture->id;
  if (graph) *graph = (hipGraph_t)queue->capture->graph;
  if (dependencies) *dependencies = (const hipGraphNode_t *)(const void *)queue->tips.nodes;
  if (n_dependencies) *n_dependencies = queue->tips.count;
  return software_end(hipSuccess);
}

/* ---- The thread's mode ----------------------------------------------------------------------------------------- */

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
  software_prepare();
  hipError_t error = software_enter(SOFTWARE_hipThreadExchangeStreamCaptureMode);
  if (error == hipSuccess && (!mode || (unsigned)*mode > hipStreamCaptureModeRelaxed)) error = hipErrorInvalidValue;
  if (error == hipSuccess) *mode = software_exchange_capture_mode(*mode);
  return software_leave(error);
}

/* Of all devices, since a graph can concern several. */
void software_captures_reset(int device)
{
  (void)device;
  while (software.captures) software_capture_end(software.captures, false);
}
