/* SPDX-License-Identifier: MIT */
/* event.c: events. Called by applications. An event has the marker of its last record. A wait holds a reference to that
 * marker, so a new record, or the end of the event, does not disturb the wait. */
#include "graph.h"

#define EVENT_DISABLE_SYSTEM_FENCE 0x20000000U /* hipEventDisableSystemFence, of HIP 5.4 */

static struct software_handles events = {.object_bytes = sizeof(struct software_event)};

static hipError_t event_find(hipEvent_t event, struct software_event **event_out)
{
  if (!software_handle_is_live(&events, event)) return hipErrorInvalidHandle;
  *event_out = (struct software_event *)event;
  return hipSuccess;
}

static hipError_t event_create(int device, unsigned flags, hipEvent_t *event_out)
{
  const unsigned release = hipEventReleaseToDevice | hipEventReleaseToSystem | EVENT_DISABLE_SYSTEM_FENCE;
  const unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess | release;
  unsigned chosen = flags & release;
  if (!event_out || (flags & ~known) || (chosen & (chosen - 1))) return hipErrorInvalidValue;
  if ((flags & hipEventInterprocess) && !(flags & hipEventDisableTiming)) return hipErrorInvalidValue;
  struct software_event *event = software_handle_allocate(&events);
  if (!event) return hipErrorOutOfMemory;
  event->device = device;
  event->flags = flags;
  *event_out = (hipEvent_t)event;
  return hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t *event)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipEventCreate, &device);
  return software_end(error != hipSuccess ? error : event_create(device, hipEventDefault, event));
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipEventCreateWithFlags, &device);
  return software_end(error != hipSuccess ? error : event_create(device, flags, event));
}

static void event_destroy(struct software_event *event)
{
  software_nodes_clear(&event->tips);
  software_marker_unreference(event->marker);
  software_handle_free(&events, event);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
  struct software_event *object;
  hipError_t error = software_begin(SOFTWARE_hipEventDestroy);
  if (error == hipSuccess) error = event_find(event, &object);
  if (error == hipSuccess) {
    error = software.devices[object->device].fault;
    event_destroy(object);
  }
  return software_end(error);
}

void software_events_reset(int device)
{
  struct software_event *next = software_handle_next(&events, NULL);
  while (next) {
    struct software_event *event = next;
    next = software_handle_next(&events, event);
    if (device < 0 || event->device == device) event_destroy(event);
  }
}

/* ---- Record and wait ------------------------------------------------------------------------------------------- */

/* The record is no node: the event refers to the nodes that it stands after. */
static hipError_t event_capture(struct software_event *event, const struct software_queue *queue)
{
  if (queue->capture->is_invalid) return hipErrorStreamCaptureInvalidated;
  if (!software_nodes_assign(&event->tips, &queue->tips)) return hipErrorOutOfMemory;
  event->capture = queue->capture->id;
  return hipSuccess;
}

static hipError_t event_record(hipEvent_t handle, hipStream_t stream)
{
  struct software_event *event;
  struct software_queue *queue;
  hipError_t error = event_find(handle, &event);
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess && queue->device != event->device) error = hipErrorInvalidHandle;
  if (error == hipSuccess && queue->capture) return event_capture(event, queue);
  if (error != hipSuccess) return error;
  struct software_operation *operation = software_operation_new(SOFTWARE_RECORD, SOFTWARE_hipEventRecord);
  if (!operation) return hipErrorOutOfMemory;
  operation->marker = software_marker_new();
  if (!operation->marker) {
    software_operation_free(operation);
    return hipErrorOutOfMemory;
  }
  struct software_marker *marker = software_marker_reference(operation->marker);
  error = software_submit(queue, operation);
  struct software_marker *unused = error == hipSuccess ? event->marker : marker;
  if (error == hipSuccess) event->marker = marker;
  if (error == hipSuccess) event->capture = 0;
  software_marker_unreference(unused);
  return error;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
  hipError_t error = software_begin(SOFTWARE_hipEventRecord);
  return software_end(error != hipSuccess ? error : event_record(event, stream));
}

/* A wait for an event of a capture takes the stream into that capture. A stream that captures can wait for no other. */
static hipError_t event_join(struct software_queue *queue, const struct software_event *event)
{
  struct software_capture *capture = software_capture_find(event->capture);
  if (queue->is_legacy) return hipErrorStreamCaptureImplicit;
  if (queue->capture && capture != queue->capture) {
    queue->capture->is_invalid = true;
    return capture ? hipErrorStreamCaptureMerge : hipErrorStreamCaptureIsolation;
  }
  return capture ? software_capture_join(queue, capture, &event->tips) : hipErrorCapturedEvent;
}

static hipError_t event_stream_wait(hipStream_t stream, hipEvent_t handle)
{
  struct software_event *event;
  struct software_queue *queue;
  hipError_t error = event_find(handle, &event);
  if (error == hipSuccess) error = software_queue_find(stream, &queue);
  if (error == hipSuccess && (event->capture || queue->capture)) return event_join(queue, event);
  if (error != hipSuccess || !event->marker) return error;
  if (event->marker->done) {
    software_order_learn(queue, event->marker);
    software_watch_wait(queue, event->marker);
    return hipSuccess;
  }
  struct software_operation *operation = software_operation_new(SOFTWARE_WAIT, SOFTWARE_hipStreamWaitEvent);
  if (!operation) return hipErrorOutOfMemory;
  operation->marker = software_marker_reference(event->marker);
  return software_submit(queue, operation);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
  hipError_t error = software_begin(SOFTWARE_hipStreamWaitEvent);
  if (error == hipSuccess && flags != 0) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : event_stream_wait(stream, event));
}

static hipError_t event_synchronize(hipEvent_t handle)
{
  struct software_event *event;
  hipError_t error = event_find(handle, &event);
  if (error == hipSuccess && event->capture) error = hipErrorCapturedEvent;
  if (error == hipSuccess) error = software_check_captures();
  if (error != hipSuccess) return error;
  int device = event->device;
  error = software.devices[device].fault;
  if (error != hipSuccess || !event->marker) return error;
  struct software_marker *marker = software_marker_reference(event->marker);
  software_wait_marker(marker);
  software_marker_unreference(marker);
  software_pools_trim(device, NULL);
  return software.devices[device].fault;
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
  hipError_t error = software_begin(SOFTWARE_hipEventSynchronize);
  return software_end(error != hipSuccess ? error : event_synchronize(event));
}

static hipError_t event_query(hipEvent_t handle)
{
  struct software_event *event;
  hipError_t error = event_find(handle, &event);
  if (error == hipSuccess && event->capture) error = hipErrorCapturedEvent;
  if (error == hipSuccess) error = software_check_captures();
  if (error != hipSuccess) return error;
  if (event->marker && !event->marker->done) {
    struct software_marker *marker = software_marker_reference(event->marker);
    int device = event->device;
    software_stepped_poll(); /* releases the lock meanwhile */
    bool done = marker->done;
    if (done) software_watch_marker_over(marker);
    software_marker_unreference(marker);
    error = software.devices[device].fault;
    return error != hipSuccess ? error : done ? hipSuccess : hipErrorNotReady;
  }
  if (event->marker) software_watch_marker_over(event->marker);
  return software.devices[event->device].fault;
}

hipError_t hipEventQuery(hipEvent_t event)
{
  hipError_t error = software_begin(SOFTWARE_hipEventQuery);
  return software_end(error != hipSuccess ? error : event_query(event));
}

static hipError_t event_elapsed(hipEvent_t start, hipEvent_t stop, float *ms_out)
{
  struct software_event *from, *to;
  if (!ms_out) return hipErrorInvalidValue;
  hipError_t error = event_find(start, &from);
  if (error == hipSuccess) error = event_find(stop, &to);
  if (error == hipSuccess && (from->capture || to->capture)) error = hipErrorCapturedEvent;
  if (error != hipSuccess) return error;
  if (((from->flags | to->flags) & hipEventDisableTiming) || !from->marker || !to->marker || from->device != to->device)
    return hipErrorInvalidHandle;
  if (!from->marker->done || !to->marker->done) return hipErrorNotReady;
  software_watch_marker_over(from->marker);
  software_watch_marker_over(to->marker);
  *ms_out = (float)(to->marker->time_ms - from->marker->time_ms);
  return hipSuccess;
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
  hipError_t error = software_begin(SOFTWARE_hipEventElapsedTime);
  return software_end(error != hipSuccess ? error : event_elapsed(start, stop, ms));
}
