/* SPDX-License-Identifier: MIT */
/* stream.c: the public functions on streams of hipmm/stream.h and hipmm.h. Every stack of the device of a stream is told
 * when the stream is retained, and before it is destroyed. Never uses a handle after that. */
#include "stream.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../call/device_table.h"
#include "../runtime/hip.h"

/* ---- Events ---- */

enum { MOST_WATCHERS = 2 };

static stream_end_watcher *_Atomic watchers[MOST_WATCHERS];

void stream_watch_ends(stream_end_watcher *watcher)
{
  for (int i = 0; i < MOST_WATCHERS; i++) {
    stream_end_watcher *there = NULL;
    if (atomic_compare_exchange_strong(&watchers[i], &there, watcher) || there == watcher) return;
  }
}

/* Every stack of the device: also stacks that the program holds past hipmm_finalize(), or has made in code. */
static void stream_notify_all(int device, hipmm_stream_t stream, enum stream_event event)
{
  for (int i = 0; event == STREAM_RETIRED && i < MOST_WATCHERS; i++) {
    stream_end_watcher *watcher = atomic_load(&watchers[i]);
    if (watcher) watcher(device, stream);
  }
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (stack->device == device) stack_notify(stack, stream, event);
}

/* Stacks that exist are told of a stream, so the device's own comes first. */
static enum hipmm_status stream_build_device(int device)
{
  struct hipmm_resource *resource;
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_resource(device, &resource);
  lifecycle_leave();
  return status;
}

enum hipmm_status hipmm_stream_retain(int device, hipmm_stream_t stream)
{
  bool is_ready = atomic_load(&lifecycle_now) == LIFECYCLE_READY;
  enum hipmm_status status = is_ready ? stream_build_device(device) : lifecycle_check_use("", "");
  if (!status) status = device_table_check(device);
  if (status) return status;
  if (!stream_is_by_name(stream)) stream_registry_retain(stream, device);
  stream_notify_all(device, stream, STREAM_RETAINED);
  return HIPMM_OK;
}

enum hipmm_status hipmm_stream_retire(int device, hipmm_stream_t stream)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  if (status) return status;
  stream_notify_all(device, stream, STREAM_RETIRED);
  stream_registry_retire(stream);
  return HIPMM_OK;
}

/* ---- Which stream ---- */

int hipmm_stream_is_default(hipmm_stream_t stream)
{
  return stream == HIPMM_DEFAULT_STREAM || stream == HIPMM_LEGACY_STREAM;
}

int hipmm_stream_is_per_thread_default(hipmm_stream_t stream)
{
  return stream == HIPMM_PER_THREAD_STREAM;
}

static enum hipmm_status stream_refuse_handle(hipmm_stream_t stream)
{
  hip_table()->GetLastError();
  return error_refuse(HIPMM_E_ARGUMENT, NULL, "{0:hex} is not a live stream", (uintptr_t)stream, 0, 0);
}

/* The device of a stream that hipmm did not create. HIPMM_E_NOT_SUPPORTED: the runtime cannot tell; no error is set. */
static enum hipmm_status stream_ask_device(hipmm_stream_t stream, int *device_out)
{
  const struct hipmm_hip *hip = hip_table();
  int code = hip->StreamGetDevice ? hip->StreamGetDevice(stream, device_out) : HIPMM_HIP_ERROR_NOT_SUPPORTED;
  if (code == HIPMM_HIP_ERROR_INVALID_HANDLE) return stream_refuse_handle(stream);
  if (code != HIPMM_HIP_ERROR_NOT_SUPPORTED) return code ? hip_refuse(NULL, "hipStreamGetDevice", code, 0) : HIPMM_OK;
  hip->GetLastError();
  return HIPMM_E_NOT_SUPPORTED;
}

enum hipmm_status stream_check(int device, hipmm_stream_t stream)
{
  int owner_device = device;
  if (stream_is_by_name(stream)) return HIPMM_OK;
  if (!stream_registry_find(stream, &owner_device)) {
    enum hipmm_status status = stream_ask_device(stream, &owner_device);
    if (status && status != HIPMM_E_NOT_SUPPORTED) return status;
    if (status) return HIPMM_OK; /* the runtime cannot tell */
  }
  if (owner_device == device) return HIPMM_OK;
  return error_refuse(HIPMM_E_ARGUMENT, NULL, "stream {0:hex} is of device {1}, not of device {2}", (uintptr_t)stream,
                      (uint64_t)owner_device, (uint64_t)device);
}

enum hipmm_status hipmm_stream_device(hipmm_stream_t stream, int *device_out)
{
  int device = 0;
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status && !device_out) status = error_set(HIPMM_E_ARGUMENT, "device_out is NULL");
  if (status) return status;
  if (stream_is_by_name(stream))
    status = device_table_current(&device);
  else if (!stream_registry_find(stream, &device))
    status = stream_ask_device(stream, &device);
  if (status == HIPMM_E_NOT_SUPPORTED)
    error_set(status, "runtime %s cannot tell the device of a stream that hipmm did not make", hip_name());
  if (!status) *device_out = device;
  return status;
}

/* ---- Life ---- */

enum hipmm_status stream_check_flags(unsigned flags)
{
  if (flags <= HIPMM_STREAM_NON_BLOCKING) return HIPMM_OK;
  return error_set(HIPMM_E_ARGUMENT, "flags %u are neither HIPMM_STREAM_SYNC_DEFAULT nor HIPMM_STREAM_NON_BLOCKING",
                   flags);
}

enum hipmm_status stream_create(int device, unsigned flags, const int *priority, enum stream_owner owner,
                                hipmm_stream_t *stream_out)
{
  const struct hipmm_hip *hip = hip_table();
  hipmm_stream_t stream = NULL;
  int previous = 0;
  enum hipmm_status status = device_table_enter(device, &previous);
  if (status) return status;
  int code =
      priority ? hip->StreamCreateWithPriority(&stream, flags, *priority) : hip->StreamCreateWithFlags(&stream, flags);
  hip_leave_device(device, previous);
  if (code) return hip_refuse(NULL, priority ? "hipStreamCreateWithPriority" : "hipStreamCreateWithFlags", code, 0);
  if (!stream_registry_add(stream, device, owner)) {
    hip->StreamDestroy(stream);
    return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  }
  stream_notify_all(device, stream, STREAM_RETAINED);
  *stream_out = stream;
  return HIPMM_OK;
}

/* A runtime that was restarted has destroyed the stream already. */
static int stream_destroy_checked(hipmm_stream_t stream)
{
  int code = hip_table()->StreamDestroy(stream);
  if (code != HIPMM_HIP_ERROR_INVALID_HANDLE) return code;
  hip_table()->GetLastError();
  return HIPMM_HIP_SUCCESS;
}

/* The registry has the stream no longer. */
static enum hipmm_status stream_end(hipmm_stream_t stream, int device, enum stream_owner owner)
{
  stream_notify_all(device, stream, STREAM_RETIRED);
  int code = stream_destroy_checked(stream);
  if (!code) return HIPMM_OK;
  enum hipmm_status status = hip_refuse(NULL, "hipStreamDestroy", code, 0);
  /* The stream lives on. Its entry is unused now, so that the registry needs no memory for it. */
  stream_registry_add(stream, device, owner);
  stream_notify_all(device, stream, STREAM_RETAINED);
  return status;
}

/* In a thread that builds a stack, for another that has destroyed the stream meanwhile. */
static void stream_end_for_another(hipmm_stream_t stream, int device, enum stream_owner owner)
{
  const struct error_record before = error_mark();
  if (stream_end(stream, device, owner))
    log_line(HIPMM_LOG_ERROR, NULL, "a stream that the program destroyed lives on: %s", hipmm_last_error_message());
  error_return_to_mark(&before);
}

enum hipmm_status stream_destroy(hipmm_stream_t stream, int device, enum stream_owner owner)
{
  switch (stream_registry_remove(stream, owner, stream_end_for_another)) {
  case STREAM_REMOVED: return stream_end(stream, device, owner);
  case STREAM_LEFT_TO_VISITOR: return HIPMM_OK;
  default:
    return error_refuse(HIPMM_E_POINTER, NULL, "stream {0:hex} is not one that hipmm made and has not destroyed yet",
                        (uintptr_t)stream, 0, 0);
  }
}

enum hipmm_status hipmm_stream_create(int device, unsigned flags, hipmm_stream_t *stream_out)
{
  enum hipmm_status status = lifecycle_check_use(stream_out, "stream_out");
  if (!status) status = device_table_check(device);
  if (!status) status = stream_check_flags(flags);
  return status ? status : stream_create(device, flags, NULL, STREAM_OF_PROGRAM, stream_out);
}

static enum hipmm_status stream_find_priorities(int device, int *least_out, int *greatest_out)
{
  const struct hipmm_hip *hip = hip_table();
  int previous = 0;
  if (!hip->DeviceGetStreamPriorityRange || !hip->StreamCreateWithPriority)
    return error_set(HIPMM_E_NOT_SUPPORTED, "runtime %s has no priorities of streams", hip_name());
  enum hipmm_status status = device_table_enter(device, &previous);
  if (status) return status;
  int code = hip->DeviceGetStreamPriorityRange(least_out, greatest_out);
  hip_leave_device(device, previous);
  return code ? hip_refuse(NULL, "hipDeviceGetStreamPriorityRange", code, 0) : HIPMM_OK;
}

enum hipmm_status hipmm_stream_priority_range(int device, int *least_out, int *greatest_out)
{
  int least = 0, greatest = 0;
  enum hipmm_status status = lifecycle_check_use(least_out, "least_out");
  if (!status) status = lifecycle_check_use(greatest_out, "greatest_out");
  if (!status) status = device_table_check(device);
  if (!status) status = stream_find_priorities(device, &least, &greatest);
  if (status) return status;
  *least_out = least;
  *greatest_out = greatest;
  return HIPMM_OK;
}

enum hipmm_status hipmm_stream_create_with_priority(int device, unsigned flags, int priority,
                                                    hipmm_stream_t *stream_out)
{
  int least = 0, greatest = 0;
  enum hipmm_status status = lifecycle_check_use(stream_out, "stream_out");
  if (!status) status = stream_check_flags(flags);
  if (!status) status = hipmm_stream_priority_range(device, &least, &greatest);
  if (status) return status;
  if (priority > least || priority < greatest)
    return error_set(HIPMM_E_ARGUMENT, "priority %d is not one of device %d: it has %d (least) to %d (greatest)",
                     priority, device, least, greatest);
  return stream_create(device, flags, &priority, STREAM_OF_PROGRAM, stream_out);
}

enum hipmm_status hipmm_stream_destroy(hipmm_stream_t stream)
{
  int device = 0;
  enum hipmm_status status = lifecycle_check_runtime();
  if (status) return status;
  if (stream_is_by_name(stream)) return error_set(HIPMM_E_ARGUMENT, "a default stream cannot be destroyed");
  if (stream_registry_find(stream, &device) == STREAM_OF_POOL)
    return error_set(HIPMM_E_ARGUMENT, "the stream belongs to a pool; hipmm_stream_pool_destroy() destroys it");
  return stream_destroy(stream, device, STREAM_OF_PROGRAM);
}

/* ---- Order ---- */

/* Checks a device and a stream of it, and makes the device current. */
static enum hipmm_status stream_enter(int device, hipmm_stream_t stream, int *previous_out)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  if (!status) status = stream_check(device, stream);
  return status ? status : device_table_enter(device, previous_out);
}

enum hipmm_status stream_wait_here(hipmm_stream_t stream)
{
  int code = hip_table()->StreamSynchronize(stream_for_hip(stream));
  return code ? hip_refuse(NULL, "hipStreamSynchronize", code, 0) : HIPMM_OK;
}

enum hipmm_status hipmm_stream_synchronize(int device, hipmm_stream_t stream)
{
  int previous = 0;
  enum hipmm_status status = stream_enter(device, stream, &previous);
  if (status) return status;
  status = stream_wait_here(stream);
  hip_leave_device(device, previous);
  return status;
}

enum hipmm_status stream_answer(int code, const char *function, int *done_out)
{
  if (code && code != HIPMM_HIP_ERROR_NOT_READY) return hip_refuse(NULL, function, code, 0);
  if (code) hip_table()->GetLastError(); /* HIP stores even this code */
  *done_out = !code;
  return HIPMM_OK;
}

enum hipmm_status hipmm_stream_query(int device, hipmm_stream_t stream, int *done_out)
{
  int previous = 0;
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status && !done_out) status = error_set(HIPMM_E_ARGUMENT, "done_out is NULL");
  if (!status) status = stream_enter(device, stream, &previous);
  if (status) return status;
  int code = hip_table()->StreamQuery(stream_for_hip(stream));
  hip_leave_device(device, previous);
  return stream_answer(code, "hipStreamQuery", done_out);
}
