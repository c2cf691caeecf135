/* SPDX-License-Identifier: MIT */
/* stream.c: streams. Called by applications. A handle is a handle of the driver, so streams of CUDA's runtime
 * and of frameworks work with every function here, and streams of this file with theirs. */
#include "nvidia.h"

#include <stdlib.h>

_Static_assert(hipStreamDefault == CU_STREAM_DEFAULT && hipStreamNonBlocking == CU_STREAM_NON_BLOCKING,
               "HIP and CUDA number these flags alike");

/* The default stream, the legacy stream and the stream of the thread are numbers, not objects. */
static bool stream_is_object(hipStream_t stream)
{
  return stream != NULL && stream != (hipStream_t)CU_STREAM_LEGACY && stream != (hipStream_t)CU_STREAM_PER_THREAD;
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!stream) return nvidia_fail(hipErrorInvalidValue);
  CUstream created = NULL;
  CUresult result = nvidia_call(nvidia_cuda.StreamCreate(&created, flags));
  if (result == CUDA_SUCCESS) *stream = (hipStream_t)created;
  return nvidia_end(result);
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
  return hipStreamCreateWithFlags(stream, hipStreamDefault);
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!stream) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamCreateWithPriority) return nvidia_fail(hipErrorNotSupported);
  CUstream created = NULL;
  CUresult result = nvidia_call(nvidia_cuda.StreamCreateWithPriority(&created, flags, priority));
  if (result == CUDA_SUCCESS) *stream = (hipStream_t)created;
  return nvidia_end(result);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!stream_is_object(stream)) return nvidia_fail(hipErrorInvalidHandle);
  return nvidia_end(nvidia_call(nvidia_cuda.StreamDestroy(nvidia_stream(stream))));
}

/* ---- Order ----------------------------------------------------------------------------------------------------- */

hipError_t hipStreamSynchronize(hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.StreamSynchronize(nvidia_stream(stream))));
}

hipError_t hipStreamQuery(hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.StreamQuery(nvidia_stream(stream))));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.StreamWaitEvent(nvidia_stream(stream), nvidia_event(event), flags)));
}

/* ---- Queries --------------------------------------------------------------------------------------------------- */

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!flags) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamGetFlags) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.StreamGetFlags(nvidia_stream(stream), flags)));
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *priority)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!priority) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamGetPriority) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.StreamGetPriority(nvidia_stream(stream), priority)));
}

/* Only the device of the current context can be queried, so the context of the stream becomes current for a moment.
 * cuStreamGetDevice(), which is newer, ends a capture of the stream. */
static CUresult stream_device_of(CUcontext context, CUdevice *device_out)
{
  CUresult result = nvidia_cuda.CtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = nvidia_cuda.CtxGetDevice(device_out);
  CUresult popped = nvidia_cuda.CtxPopCurrent(&context);
  return result != CUDA_SUCCESS ? result : popped;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!device) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamGetCtx || !nvidia_cuda.CtxPushCurrent || !nvidia_cuda.CtxPopCurrent)
    return nvidia_fail(hipErrorNotSupported);
  CUcontext context = NULL;
  CUdevice found = 0;
  CUresult result = nvidia_call(nvidia_cuda.StreamGetCtx(nvidia_stream(stream), &context));
  if (result == CUDA_SUCCESS) result = stream_device_of(context, &found);
  if (result == CUDA_SUCCESS) *device = found;
  return nvidia_end(result);
}

/* Unlike a handle, an id is never reused. */
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!id) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamGetId) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.StreamGetId(nvidia_stream(stream), id)));
}

_Static_assert((int)hipStreamCaptureStatusNone == CU_STREAM_CAPTURE_STATUS_NONE &&
                   (int)hipStreamCaptureStatusActive == CU_STREAM_CAPTURE_STATUS_ACTIVE &&
                   (int)hipStreamCaptureStatusInvalidated == CU_STREAM_CAPTURE_STATUS_INVALIDATED,
               "HIP and CUDA number the states of a capture alike");

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!status) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamIsCapturing) return nvidia_fail(hipErrorNotSupported);
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = nvidia_call(nvidia_cuda.StreamIsCapturing(nvidia_stream(stream), &found));
  if (result == CUDA_SUCCESS) *status = (hipStreamCaptureStatus)found;
  return nvidia_end(result);
}

_Static_assert((int)hipStreamCaptureModeGlobal == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                   (int)hipStreamCaptureModeThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                   (int)hipStreamCaptureModeRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED,
               "HIP and CUDA number the modes of a capture alike");

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!mode) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.ThreadExchangeStreamCaptureMode) return nvidia_fail(hipErrorNotSupported);
  CUstreamCaptureMode other = (CUstreamCaptureMode)*mode;
  CUresult result = nvidia_cuda.ThreadExchangeStreamCaptureMode(&other);
  if (result == CUDA_SUCCESS) *mode = (hipStreamCaptureMode)other;
  return nvidia_end(result);
}

/* ---- Host functions -------------------------------------------------------------------------------------------- */

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *argument)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!function) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.LaunchHostFunc) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.LaunchHostFunc(nvidia_stream(stream), function, argument)));
}

/* A callback gets HIP's error code, so a callback of this file is between the driver and the application's. */
struct stream_callback {
  hipStreamCallback_t callback;
  void *argument;
};

static void stream_call_back(CUstream stream, CUresult result, void *argument)
{
  struct stream_callback callback = *(struct stream_callback *)argument;
  free(argument);
  callback.callback((hipStream_t)stream, nvidia_translate(result), callback.argument);
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *argument, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!callback) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.StreamAddCallback) return nvidia_fail(hipErrorNotSupported);
  struct stream_callback *both = malloc(sizeof *both);
  if (!both) return nvidia_fail(hipErrorOutOfMemory);
  *both = (struct stream_callback){.callback = callback, .argument = argument};
  CUresult result = nvidia_call(nvidia_cuda.StreamAddCallback(nvidia_stream(stream), stream_call_back, both, flags));
  if (result != CUDA_SUCCESS) free(both);
  return nvidia_end(result);
}
