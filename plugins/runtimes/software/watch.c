/* SPDX-License-Identifier: MIT */
/* watch.c: tells the race detector (plugins/race/race_detector.h) of operations, waits and memory. Unless
 * "check_streams" is on, the detector takes no note of it. Called by submit.c, event.c, stream.c and the tables of memory. An
 * operation is reported to the detector when it is submitted, so the result does not depend on when the scheduler runs it. */
#include "watch.h"

struct race_stream software_watch_stream(const struct software_queue *queue)
{
  return (struct race_stream){.key = queue,
                              .handle = queue->stream,
                              .device = queue->device,
                              .kind = queue->is_legacy     ? RACE_STREAM_LEGACY
                                      : queue->is_blocking ? RACE_STREAM_BLOCKING
                                                           : RACE_STREAM_APART,
                              .is_captured = queue->capture != NULL};
}

void software_watch_configure(const struct software_config *config)
{
  if (config->check_streams) races_start(config->no_host_access);
}

/* ---- Work ------------------------------------------------------------------------------------------------------ */

static struct race_access watch_access(const struct software_operation *operation, const struct software_span *span,
                                       size_t pitch)
{
  return (struct race_access){.start = span->start,
                              .bytes = span->bytes,
                              .width = operation->width,
                              .pitch = operation->rows > 1 ? pitch : 0,
                              .is_hint = operation->kind == SOFTWARE_PREFETCH};
}

/* Between the rows of a copy are bytes that it does not touch: so what it reads and what it writes is told apart,
 * since a copy as a whole tells which bytes were written. */
static void watch_memory(const struct race_stream *stream, const struct software_operation *operation)
{
  const char *call = software_call_name(operation->call);
  const struct race_access none = {.start = NULL}, to = watch_access(operation, &operation->to, operation->to_pitch),
                           from = watch_access(operation, &operation->from, operation->from_pitch);
  if (operation->rows > 1 && from.bytes) {
    races_work(stream, call, none, from);
    races_work(stream, call, to, none);
  } else {
    races_work(stream, call, to, from);
  }
}

void software_watch_submitted(const struct software_queue *queue, const struct software_operation *operation)
{
  const struct race_stream stream = software_watch_stream(queue);
  switch (operation->kind) {
  case SOFTWARE_COPY:
  case SOFTWARE_FILL:
  case SOFTWARE_PREFETCH: watch_memory(&stream, operation); break;
  case SOFTWARE_HOST: races_record(&stream, operation); break;
  case SOFTWARE_WAIT: races_wait(&stream, operation->marker); return;
  default: break;
  }
  if (operation->marker) races_record(&stream, operation->marker);
}

void software_watch_wait(const struct software_queue *queue, const struct software_marker *marker)
{
  const struct race_stream stream = software_watch_stream(queue);
  races_wait(&stream, marker);
}

void software_watch_marker_over(const struct software_marker *marker)
{
  races_host_after_event(marker);
}

void software_watch_host_runs(const struct software_operation *operation)
{
  races_host_after_event(operation);
}

void software_watch_host_end(const struct software_operation *operation)
{
  races_end_event(operation);
}

void software_watch_marker_end(const struct software_marker *marker)
{
  races_end_event(marker);
}

void software_watch_queue_over(const struct software_queue *queue)
{
  const struct race_stream stream = software_watch_stream(queue);
  races_host_after_stream(&stream);
}

void software_watch_queue_end(const struct software_queue *queue)
{
  races_end_stream(queue);
}

void software_watch_device_over(int device)
{
  races_host_after_device(device);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

/* Of the device itself: what a program or another process has is not. */
static bool watch_is_own(const struct software_allocation *allocation)
{
  return allocation->kind != SOFTWARE_REGISTERED && allocation->kind != SOFTWARE_OPENED;
}

void software_watch_gave(const struct software_allocation *allocation)
{
  if (watch_is_own(allocation)) races_driver_gave((void *)allocation->by_address.major, allocation->by_address.minor);
}

void software_watch_took(const struct software_allocation *allocation)
{
  if (watch_is_own(allocation)) races_driver_took((void *)allocation->by_address.major, allocation->by_address.minor);
}

void software_watch_shared(const struct software_allocation *allocation)
{
  if (watch_is_own(allocation)) races_share((void *)allocation->by_address.major, allocation->by_address.minor);
}

void software_watch_mapped(uintptr_t start, size_t bytes, bool is_mapped)
{
  if (is_mapped)
    races_driver_gave((void *)start, bytes);
  else
    races_driver_took((void *)start, bytes);
}
