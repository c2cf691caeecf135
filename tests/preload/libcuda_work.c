/* SPDX-License-Identifier: MIT */
/* libcuda_work.c: copies, fills, streams and events of the stand-in for NVIDIA's driver. */
#include "libcuda_own.h"

/* ---- Work ---- */

enum { COPY_DEFAULT = 4 };

FUNCTION(cuMemcpy)(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  READY();
  return SOFTWARE("hipMemcpy", (CUdeviceptr, CUdeviceptr, size_t, int))(to, from, bytes, COPY_DEFAULT);
}

FUNCTION(cuMemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
  READY();
  return SOFTWARE("hipMemcpyAsync", (CUdeviceptr, CUdeviceptr, size_t, int, CUstream))(to, from, bytes, COPY_DEFAULT,
                                                                                       stream);
}

PASS(cuMemcpyDtoH_v2, hipMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
PASS(cuMemsetD8_v2, hipMemset, (CUdeviceptr address, unsigned char value, size_t count), (address, value, count))
PASS(cuMemsetD8Async, hipMemsetAsync, (CUdeviceptr address, unsigned char value, size_t count, CUstream stream),
     (address, value, count, stream))

PASS(cuMemsetD32Async, hipMemsetD32Async, (CUdeviceptr address, unsigned value, size_t count, CUstream stream),
     (address, value, count, stream))

/* ---- Streams and events ---- */

/* The streams that were created, each with its context; NULL once that has ended. */
static struct {
  CUstream stream;
  CUcontext context;
  atomic_bool was_waited_for;
} streams[64];
static int stream_count;

void fake_end_streams(CUcontext context)
{
  for (int i = 0; i < stream_count; i++)
    if (streams[i].context == context) streams[i].context = NULL;
}

static CUstream captured;

void fake_capture(CUstream stream)
{
  captured = stream;
}

FUNCTION(cuStreamCreate)(CUstream *stream, unsigned flags)
{
  READY();
  int code = SOFTWARE("hipStreamCreateWithFlags", (CUstream *, unsigned))(stream, flags);
  if (!code && stream_count < 64) {
    streams[stream_count].stream = *stream;
    streams[stream_count++].context = fake_current;
  }
  return code;
}

PASS(cuStreamDestroy_v2, hipStreamDestroy, (CUstream stream), (stream))

bool fake_waited_for(CUstream stream)
{
  for (int i = 0; i < stream_count; i++)
    if (streams[i].stream == stream && streams[i].was_waited_for) return true;
  return false;
}

FUNCTION(cuStreamSynchronize)(CUstream stream)
{
  READY();
  for (int i = 0; i < stream_count; i++)
    if (streams[i].stream == stream) streams[i].was_waited_for = true;
  return SOFTWARE("hipStreamSynchronize", (CUstream))(stream);
}

PASS(cuStreamWaitEvent, hipStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags))

FUNCTION(cuStreamGetCtx)(CUstream stream, CUcontext *context)
{
  READY();
  *context = NULL;
  for (int i = 0; i < stream_count; i++)
    if (streams[i].stream == stream) *context = streams[i].context;
  return *context ? 0 : NO_STREAM;
}

FUNCTION(cuStreamQuery)(CUstream stream)
{
  CUcontext context = fake_current;
  READY();
  if ((uintptr_t)stream > 2 && own_cuStreamGetCtx(stream, &context)) return NO_STREAM;
  return SOFTWARE("hipStreamQuery", (CUstream))(stream);
}

FUNCTION(cuStreamIsCapturing)(CUstream stream, int *state)
{
  READY();
  *state = captured && stream == captured;
  return *state ? 0 : SOFTWARE("hipStreamIsCapturing", (CUstream, int *))(stream, state);
}

PASS(cuStreamBeginCapture_v2, hipStreamBeginCapture, (CUstream stream, int mode), (stream, mode))
PASS(cuStreamEndCapture, hipStreamEndCapture, (CUstream stream, void **graph), (stream, graph))
PASS(cuThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode, (int *mode), (mode))
PASS(cuGraphDestroy, hipGraphDestroy, (void *graph), (graph))

PASS(cuEventCreate, hipEventCreateWithFlags, (CUevent * event, unsigned flags), (event, flags))
PASS(cuEventDestroy_v2, hipEventDestroy, (CUevent event), (event))
PASS(cuEventRecord, hipEventRecord, (CUevent event, CUstream stream), (event, stream))
PASS(cuEventQuery, hipEventQuery, (CUevent event), (event))
PASS(cuEventSynchronize, hipEventSynchronize, (CUevent event), (event))
