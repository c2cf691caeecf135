/* SPDX-License-Identifier: MIT */
/* copy.c: the HIP calls that move data. Called by storage.c, which has checked pointers and sizes. */
#include "../base/error.h"
#include "../call/device_table.h"
#include "../runtime/hip.h"
#include "../stream/stream.h"
#include "storage.h"

#include <stdlib.h>
#include <string.h>

enum { STAGE_BYTES = 4 << 20 };

enum hipmm_status copy_bytes(int device, void *to, const void *from, size_t bytes, hipmm_stream_t stream, bool waits)
{
  int previous = 0;
  enum hipmm_status status = bytes ? device_table_enter(device, &previous) : HIPMM_OK;
  if (status || !bytes) return status;
  int code = hip_table()->MemcpyAsync(to, from, bytes, HIPMM_HIP_MEMCPY_DEFAULT, stream_for_hip(stream));
  if (code)
    status = hip_refuse(NULL, "hipMemcpyAsync", code, bytes);
  else if (waits)
    status = stream_wait_here(stream);
  hip_leave_device(device, previous);
  return status;
}

enum hipmm_status copy_fill(int device, void *to, int value, size_t bytes, hipmm_stream_t stream)
{
  int previous = 0;
  enum hipmm_status status = bytes ? device_table_enter(device, &previous) : HIPMM_OK;
  if (status || !bytes) return status;
  int code = hip_table()->MemsetAsync(to, value, bytes, stream_for_hip(stream));
  if (code) status = hip_refuse(NULL, "hipMemsetAsync", code, bytes);
  hip_leave_device(device, previous);
  return status;
}

enum hipmm_status copy_fill_on_host(int device, void *to, int value, size_t bytes, hipmm_stream_t stream)
{
  if (hip_is_captured(device, stream))
    return error_set(HIPMM_E_STATE, "the stream is being captured and cannot be waited for");
  enum hipmm_status status = hipmm_stream_synchronize(device, stream);
  if (!status) memset(to, value, bytes);
  return status;
}

/* ---- Between devices ---- */

/* Copies between host and device, and waits. `device` has the memory that is not the host's. */
static enum hipmm_status copy_synchronously(int device, void *to, const void *from, size_t bytes)
{
  int previous = 0;
  enum hipmm_status status = device_table_enter(device, &previous);
  if (status) return status;
  int code = hip_table()->Memcpy(to, from, bytes, HIPMM_HIP_MEMCPY_DEFAULT);
  if (code) status = hip_refuse(NULL, "hipMemcpy", code, bytes);
  hip_leave_device(device, previous);
  return status;
}

static enum hipmm_status copy_staged(int to_device, char *to, int from_device, const char *from, size_t bytes,
                                     hipmm_stream_t stream)
{
  size_t stage_bytes = bytes < STAGE_BYTES ? bytes : STAGE_BYTES;
  char *stage = malloc(stage_bytes);
  if (!stage) return error_set(HIPMM_E_OUT_OF_MEMORY, "no host memory to copy through from device to device");
  enum hipmm_status status =
      hipmm_stream_synchronize(to_device, stream); /* the work before the copy in the order of the stream is complete */
  for (size_t at = 0; !status && at < bytes; at += stage_bytes) {
    size_t part = bytes - at < stage_bytes ? bytes - at : stage_bytes;
    status = copy_synchronously(from_device, stage, from + at, part);
    if (!status) status = copy_bytes(to_device, to + at, stage, part, stream, true);
  }
  free(stage);
  return status;
}

/* The codes of a runtime that cannot copy between these devices, or where one memory is the host's. */
static bool copy_is_no_peer(int code)
{
  return code == HIPMM_HIP_ERROR_NOT_SUPPORTED || code == HIPMM_HIP_ERROR_INVALID_VALUE ||
         code == HIPMM_HIP_ERROR_INVALID_DEVICE;
}

enum hipmm_status copy_between_devices(int to_device, void *to, int from_device, const void *from, size_t bytes,
                                       hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = hip_table();
  int previous = 0;
  if (!bytes) return HIPMM_OK;
  if (!hip->MemcpyPeerAsync) return copy_staged(to_device, to, from_device, from, bytes, stream);
  enum hipmm_status status = device_table_enter(to_device, &previous);
  if (status) return status;
  int code = hip->MemcpyPeerAsync(to, to_device, from, from_device, bytes, stream_for_hip(stream));
  hip_leave_device(to_device, previous);
  if (copy_is_no_peer(code)) {
    hip->GetLastError();
    return copy_staged(to_device, to, from_device, from, bytes, stream);
  }
  return code ? hip_refuse(NULL, "hipMemcpyPeerAsync", code, bytes) : HIPMM_OK;
}
