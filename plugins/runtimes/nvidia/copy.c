/* SPDX-License-Identifier: MIT */
/* copy.c: copies and fills. Called by applications. All memory has one address space, so the driver finds the kind
 * of memory of each side. The direction is only checked for being valid. */
#include "nvidia.h"

static bool copy_kind_is_valid(hipMemcpyKind kind)
{
  const int without_kernel = 1024; /* hipMemcpyDeviceToDeviceNoCU, of HIP 6 */
  return ((int)kind >= hipMemcpyHostToHost && (int)kind <= hipMemcpyDefault) || (int)kind == without_kernel;
}

static CUresult copy_now(void *to, const void *from, size_t bytes)
{
  if (bytes == 0) return CUDA_SUCCESS;
  return nvidia_call(nvidia_cuda.Memcpy(nvidia_address(to), nvidia_address(from), bytes));
}

/* The driver looks up both sides of a copy in the current context, and what it does not find there is an invalid value. In
 * HIP the stream decides: it may be of another device, and a thread needs no context to use it. So a refused copy is tried
 * once more in the context of the stream. */
static CUresult copy_where_stream_is(void *to, const void *from, size_t bytes, CUstream stream)
{
  CUcontext context = NULL, current = NULL;
  if (!nvidia_cuda.StreamGetCtx || !nvidia_cuda.CtxPushCurrent || !nvidia_cuda.CtxPopCurrent)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = nvidia_cuda.CtxGetCurrent(&current);
  if (result == CUDA_SUCCESS) result = nvidia_cuda.StreamGetCtx(stream, &context);
  if (result != CUDA_SUCCESS || context == current) return CUDA_ERROR_INVALID_VALUE;
  result = nvidia_cuda.CtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = nvidia_cuda.MemcpyAsync(nvidia_address(to), nvidia_address(from), bytes, stream);
  nvidia_cuda.CtxPopCurrent(&context);
  return result;
}

static CUresult copy_later(void *to, const void *from, size_t bytes, hipStream_t stream)
{
  if (bytes == 0) return CUDA_SUCCESS;
  CUresult result =
      nvidia_call(nvidia_cuda.MemcpyAsync(nvidia_address(to), nvidia_address(from), bytes, nvidia_stream(stream)));
  if (result == CUDA_ERROR_INVALID_VALUE) result = copy_where_stream_is(to, from, bytes, nvidia_stream(stream));
  return result;
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!copy_kind_is_valid(kind)) return nvidia_fail(hipErrorInvalidMemcpyDirection);
  return nvidia_end(copy_now(to, from, bytes));
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!copy_kind_is_valid(kind)) return nvidia_fail(hipErrorInvalidMemcpyDirection);
  return nvidia_end(copy_later(to, from, bytes, stream));
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
  hipError_t error = hipMemcpyAsync(to, from, bytes, kind, stream);
  return error == hipSuccess ? hipStreamSynchronize(stream) : error;
}

/* ---- With the direction in the name ---------------------------------------------------------------------------- */

/* HIP 7 made the source const. */
#if HIP_VERSION >= 70000000
typedef const void *copy_source;
#else
typedef void *copy_source;
#endif

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, copy_source from, size_t bytes)
{
  return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, copy_source from, size_t bytes, hipStream_t stream)
{
  return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream);
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes)
{
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes)
{
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
}

/* ---- Between devices ------------------------------------------------------------------------------------------- */

/* A plain copy goes by address, and accepts memory of the host, too. But it fails on mapped memory and on memory of pools
 * to which the current device has no access. The driver's copy between contexts needs no access. */
struct copy_between {
  CUdeviceptr to, from;
  CUcontext to_context, from_context;
};

static CUresult copy_find_contexts(struct copy_between *between, int to_device, int from_device)
{
  CUresult result = nvidia_primary_context(to_device, &between->to_context);
  return result == CUDA_SUCCESS ? nvidia_primary_context(from_device, &between->from_context) : result;
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
  struct copy_between between = {.to = nvidia_address(to), .from = nvidia_address(from)};
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_device_exists(to_device) || !nvidia_device_exists(from_device)) return nvidia_fail(hipErrorInvalidDevice);
  CUresult result = copy_now(to, from, bytes);
  if (result != CUDA_ERROR_INVALID_VALUE || !nvidia_cuda.MemcpyPeer) return nvidia_end(result);
  result = copy_find_contexts(&between, to_device, from_device);
  if (result == CUDA_SUCCESS)
    result = nvidia_cuda.MemcpyPeer(between.to, between.to_context, between.from, between.from_context, bytes);
  return nvidia_end(result);
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream)
{
  struct copy_between between = {.to = nvidia_address(to), .from = nvidia_address(from)};
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_device_exists(to_device) || !nvidia_device_exists(from_device)) return nvidia_fail(hipErrorInvalidDevice);
  CUresult result = copy_later(to, from, bytes, stream);
  if (result != CUDA_ERROR_INVALID_VALUE || !nvidia_cuda.MemcpyPeerAsync) return nvidia_end(result);
  result = copy_find_contexts(&between, to_device, from_device);
  if (result == CUDA_SUCCESS)
    result = nvidia_cuda.MemcpyPeerAsync(between.to, between.to_context, between.from, between.from_context, bytes,
                                         nvidia_stream(stream));
  return nvidia_end(result);
}

/* ---- Fills ----------------------------------------------------------------------------------------------------- */

hipError_t hipMemsetD8(hipDeviceptr_t pointer, unsigned char value, size_t count)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (count == 0) return hipSuccess;
  return nvidia_end(nvidia_call(nvidia_cuda.MemsetD8(nvidia_address(pointer), value, count)));
}

hipError_t hipMemset(void *pointer, int value, size_t bytes)
{
  return hipMemsetD8(pointer, (unsigned char)value, bytes);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t pointer, unsigned char value, size_t count, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (count == 0) return hipSuccess;
  return nvidia_end(
      nvidia_call(nvidia_cuda.MemsetD8Async(nvidia_address(pointer), value, count, nvidia_stream(stream))));
}

hipError_t hipMemsetAsync(void *pointer, int value, size_t bytes, hipStream_t stream)
{
  return hipMemsetD8Async(pointer, (unsigned char)value, bytes, stream);
}

hipError_t hipMemsetD16(hipDeviceptr_t pointer, unsigned short value, size_t count)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemsetD16) return nvidia_fail(hipErrorNotSupported);
  if (count == 0) return hipSuccess;
  return nvidia_end(nvidia_call(nvidia_cuda.MemsetD16(nvidia_address(pointer), value, count)));
}

hipError_t hipMemsetD16Async(hipDeviceptr_t pointer, unsigned short value, size_t count, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemsetD16Async) return nvidia_fail(hipErrorNotSupported);
  if (count == 0) return hipSuccess;
  return nvidia_end(
      nvidia_call(nvidia_cuda.MemsetD16Async(nvidia_address(pointer), value, count, nvidia_stream(stream))));
}

hipError_t hipMemsetD32(hipDeviceptr_t pointer, int value, size_t count)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemsetD32) return nvidia_fail(hipErrorNotSupported);
  if (count == 0) return hipSuccess;
  return nvidia_end(nvidia_call(nvidia_cuda.MemsetD32(nvidia_address(pointer), (unsigned)value, count)));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t pointer, int value, size_t count, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemsetD32Async) return nvidia_fail(hipErrorNotSupported);
  if (count == 0) return hipSuccess;
  return nvidia_end(
      nvidia_call(nvidia_cuda.MemsetD32Async(nvidia_address(pointer), (unsigned)value, count, nvidia_stream(stream))));
}
