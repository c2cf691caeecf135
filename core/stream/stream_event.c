/* SPDX-License-Identifier: MIT */
/* stream_event.c: events, and the order between streams that they make. Called by applications, and for streams that wait
 * for each other. Never waits for work, but in hipmm_stream_event_synchronize(). */
#include "../base/lifecycle.h"
#include "../call/device_table.h"
#include "../call/handle.h"
#include "../runtime/hip.h"
#include "stream.h"

struct hipmm_stream_event {
  struct handle handle;
  int device;
  hipmm_hip_event_t event;
};

_Static_assert(sizeof(struct hipmm_stream_event) <= HANDLE_OBJECT_BYTES, "struct hipmm_stream_event");

/* ---- HIP's events ---- */

/* Makes an event of the current device. */
static enum hipmm_status stream_event_make(hipmm_hip_event_t *event_out)
{
  int code = hip_table()->EventCreateWithFlags(event_out, HIPMM_HIP_EVENT_DISABLE_TIMING);
  return code ? hip_refuse(NULL, "hipEventCreateWithFlags", code, 0) : HIPMM_OK;
}

/* Records it on a stream of the current device. */
static enum hipmm_status stream_event_mark(hipmm_hip_event_t event, hipmm_stream_t stream)
{
  int code = hip_table()->EventRecord(event, stream_for_hip(stream));
  return code ? hip_refuse(NULL, "hipEventRecord", code, 0) : HIPMM_OK;
}

enum hipmm_status stream_event_take(int device, hipmm_stream_t stream, hipmm_hip_event_t *event_out)
{
  int previous = 0;
  *event_out = NULL;
  enum hipmm_status status = device_table_enter(device, &previous);
  if (status) return status;
  status = stream_event_make(event_out);
  if (!status) status = stream_event_mark(*event_out, stream);
  hip_leave_device(device, previous);
  if (status) stream_event_drop(*event_out);
  if (status) *event_out = NULL;
  return status;
}

enum hipmm_status stream_event_wait_on(int device, hipmm_stream_t stream, hipmm_hip_event_t event)
{
  int previous = 0;
  enum hipmm_status status = device_table_enter(device, &previous);
  if (status) return status;
  int code = hip_table()->StreamWaitEvent(stream_for_hip(stream), event, 0);
  hip_leave_device(device, previous);
  return code ? hip_refuse(NULL, "hipStreamWaitEvent", code, 0) : HIPMM_OK;
}

bool stream_event_is_over(hipmm_hip_event_t event)
{
  if (!hip_table()->EventQuery(event)) return true;
  hip_table()->GetLastError(); /* HIP keeps even "not ready" as the thread's last error */
  return false;
}

/* A second try: no later code could destroy the event. */
void stream_event_drop(hipmm_hip_event_t event)
{
  if (event && hip_table()->EventDestroy(event) && hip_table()->EventDestroy(event)) hip_table()->GetLastError();
}

/* Streams that wait for an event go on waiting when it is destroyed. */
enum hipmm_status stream_order(int device, hipmm_stream_t stream, int other_device, hipmm_stream_t other)
{
  hipmm_hip_event_t event;
  enum hipmm_status status = stream_event_take(other_device, other, &event);
  if (!status) status = stream_event_wait_on(device, stream, event);
  stream_event_drop(event);
  return status;
}

enum hipmm_status hipmm_stream_wait(int device, hipmm_stream_t stream, int other_device, hipmm_stream_t other)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  if (!status) status = stream_check(device, stream);
  if (!status) status = device_table_check(other_device);
  if (!status) status = stream_check(other_device, other);
  return status ? status : stream_order(device, stream, other_device, other);
}

/* ---- Events of the program ---- */

enum hipmm_status hipmm_stream_event_create(int device, struct hipmm_stream_event **event_out)
{
  int previous = 0;
  enum hipmm_status status = lifecycle_check_use(event_out, "event_out");
  if (!status) status = device_table_check(device);
  if (status) return status;
  struct hipmm_stream_event *event = handle_new(NULL);
  if (!event) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  event->device = device;
  status = device_table_enter(device, &previous);
  if (!status) {
    status = stream_event_make(&event->event);
    hip_leave_device(device, previous);
  }
  if (status) {
    handle_free(event);
    return status;
  }
  handle_open(event, HANDLE_STREAM_EVENT);
  *event_out = event;
  return HIPMM_OK;
}

enum hipmm_status hipmm_stream_event_destroy(struct hipmm_stream_event *event)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!event) return HIPMM_OK;
  if (!handle_close(event, HANDLE_STREAM_EVENT)) return handle_refuse(HANDLE_STREAM_EVENT);
  int code = hip_table()->EventDestroy(event->event);
  if (code == HIPMM_HIP_ERROR_INVALID_HANDLE) { /* a runtime that was restarted has destroyed it already */
    hip_table()->GetLastError();
  } else if (code) {
    handle_open(event, HANDLE_STREAM_EVENT);
    return hip_refuse(NULL, "hipEventDestroy", code, 0);
  }
  handle_free(event);
  return HIPMM_OK;
}

enum hipmm_status hipmm_stream_event_record(struct hipmm_stream_event *event, hipmm_stream_t stream)
{
  int previous = 0;
  enum hipmm_status status = handle_check(event, HANDLE_STREAM_EVENT);
  if (!status) status = stream_check(event->device, stream);
  if (!status) status = device_table_enter(event->device, &previous);
  if (status) return status;
  status = stream_event_mark(event->event, stream);
  hip_leave_device(event->device, previous);
  return status;
}

enum hipmm_status hipmm_stream_event_query(struct hipmm_stream_event *event, int *done_out)
{
  enum hipmm_status status = handle_check(event, HANDLE_STREAM_EVENT);
  if (!status && !done_out) status = error_set(HIPMM_E_ARGUMENT, "done_out is NULL");
  if (status) return status;
  return stream_answer(hip_table()->EventQuery(event->event), "hipEventQuery", done_out);
}

enum hipmm_status hipmm_stream_event_synchronize(struct hipmm_stream_event *event)
{
  enum hipmm_status status = handle_check(event, HANDLE_STREAM_EVENT);
  if (status) return status;
  int code = hip_table()->EventSynchronize(event->event);
  return code ? hip_refuse(NULL, "hipEventSynchronize", code, 0) : HIPMM_OK;
}

enum hipmm_status hipmm_stream_event_wait(struct hipmm_stream_event *event, int device, hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(event, HANDLE_STREAM_EVENT);
  if (!status) status = device_table_check(device);
  if (!status) status = stream_check(device, stream);
  return status ? status : stream_event_wait_on(device, stream, event->event);
}
