/* SPDX-License-Identifier: MIT */
/* copy.c: copies and fills, from the call to their place in a queue. Called by applications. Arguments are checked
 * here, at the call; execute.c checks the memory again when the operation runs.
 *
 * As HIP says of pageable host memory: a copy from it has taken the data when the call returns, and a copy to it is
 * finished when the call returns. Pinned, registered and managed memory are truly asynchronous. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

struct copy_request {
  enum software_call call;
  void *to;
  const void *from;
  size_t bytes;
  hipMemcpyKind kind;
  bool waits;
};

static bool copy_kind_is_valid(int kind)
{
  return kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault;
}

/* A side that the caller calls the device's must be memory that devices reach. As in HIP, the other side may be any. */
static hipError_t copy_check_kind(const struct software_operation *operation, hipMemcpyKind kind)
{
  if (software.config.pageable_memory_access) return hipSuccess;
  bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  if (to_device && software_span_is_host(&operation->to)) return hipErrorInvalidValue;
  if (from_device && software_span_is_host(&operation->from)) return hipErrorInvalidValue;
  return hipSuccess;
}

static hipError_t copy_stage(struct software_operation *operation)
{
  operation->staged = malloc(operation->from.bytes);
  if (!operation->staged) return hipErrorOutOfMemory;
  memcpy(operation->staged, operation->from.start, operation->from.bytes);
  return hipSuccess;
}

static hipError_t copy_prepare(struct software_operation *operation, const struct copy_request *request, int to_device,
                               int from_device)
{
  hipError_t error = software_span_open(request->to, request->bytes, true, to_device, &operation->to);
  if (error == hipSuccess)
    error = software_span_open(request->from, request->bytes, false, from_device, &operation->from);
  if (error == hipSuccess) error = copy_check_kind(operation, request->kind);
  bool waits = request->waits || software_span_is_host(&operation->to);
  if (error == hipSuccess && !waits && software_span_is_host(&operation->from)) error = copy_stage(operation);
  return error;
}

/* Submits; if the caller or the kind of memory asks for it, waits until it has run. */
static hipError_t copy_submit(struct software_queue *queue, struct software_operation *operation, bool waits)
{
  int device = queue->device;
  hipError_t error = software_submit(queue, operation);
  if (error != hipSuccess || !waits) return error;
  software_wait_queue(queue, software.sequence);
  return software.devices[device].fault;
}

enum { DEVICE_OF_QUEUE = -1 };

/* Each side is reached by the device that is named for it, or by the queue's. */
static hipError_t copy_start(const struct copy_request *request, int to_device, int from_device, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error != hipSuccess) return error;
  if (!copy_kind_is_valid((int)request->kind)) return hipErrorInvalidMemcpyDirection;
  if (request->bytes == 0) return hipSuccess;
  struct software_operation *operation = software_operation_new(SOFTWARE_COPY, request->call);
  if (!operation) return hipErrorOutOfMemory;
  error = copy_prepare(operation, request, to_device == DEVICE_OF_QUEUE ? queue->device : to_device,
                       from_device == DEVICE_OF_QUEUE ? queue->device : from_device);
  if (error != hipSuccess) {
    software_operation_free(operation);
    return error;
  }
  return copy_submit(queue, operation, request->waits || software_span_is_host(&operation->to));
}

static hipError_t copy_call(struct copy_request request, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  return software_end(error != hipSuccess ? error : copy_start(&request, DEVICE_OF_QUEUE, DEVICE_OF_QUEUE, stream));
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpy, to, from, bytes, kind, true}, NULL);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpyAsync, to, from, bytes, kind, false}, stream);
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpyWithStream, to, from, bytes, kind, true}, stream);
}

/* ---- Between devices ------------------------------------------------------------------------------------------- */

static hipError_t copy_check_peer(const void *pointer, int device)
{
  if (!software_device_exists(device)) return hipErrorInvalidDevice;
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  bool is_bound = allocation && (allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_POOLED);
  return is_bound && allocation->device != device ? hipErrorInvalidValue : hipSuccess;
}

/* As on NVIDIA's driver, mapped memory needs access for its own device only, whichever is current. */
static hipError_t copy_peer_call(struct copy_request request, int to_device, int from_device, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  if (error == hipSuccess) error = copy_check_peer(request.to, to_device);
  if (error == hipSuccess) error = copy_check_peer(request.from, from_device);
  return software_end(error != hipSuccess ? error : copy_start(&request, to_device, from_device, stream));
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
  struct copy_request request = {SOFTWARE_hipMemcpyPeer, to, from, bytes, hipMemcpyDeviceToDevice, true};
  return copy_peer_call(request, to_device, from_device, NULL);
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream)
{
  struct copy_request request = {SOFTWARE_hipMemcpyPeerAsync, to, from, bytes, hipMemcpyDeviceToDevice, false};
  return copy_peer_call(request, to_device, from_device, stream);
}

/* ---- Fills ----------------------------------------------------------------------------------------------------- */

struct fill_request {
  enum software_call call;
  void *to;
  uint32_t value, value_bytes;
  size_t count;
  bool waits;
};

/* A fill is the device's own work, which reaches another device's memory only where that was allowed. (Copies go all
 * the same, by staging; mappings have their access checked with the span.) */
static bool fill_reaches(const struct software_span *span, int device)
{
  const struct software_allocation *allocation = span->allocation;
  if (!allocation || allocation->device == device) return true;
  if (allocation->kind == SOFTWARE_DEVICE_MEMORY) return software.devices[device].peers[allocation->device];
  return !allocation->pool || software_pool_allows(allocation->pool, device);
}

static hipError_t fill_start(const struct fill_request *request, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error != hipSuccess) return error;
  if (request->count > SIZE_MAX / request->value_bytes) return hipErrorInvalidValue;
  if (request->count == 0) return hipSuccess;
  struct software_operation *operation = software_operation_new(SOFTWARE_FILL, request->call);
  if (!operation) return hipErrorOutOfMemory;
  operation->value = request->value;
  operation->value_bytes = request->value_bytes;
  error = software_span_open(request->to, request->count * request->value_bytes, true, queue->device, &operation->to);
  if (error == hipSuccess && software_span_is_host(&operation->to) && !software.config.pageable_memory_access)
    error = hipErrorInvalidValue;
  if (error == hipSuccess && !fill_reaches(&operation->to, queue->device)) error = hipErrorInvalidValue;
  if (error != hipSuccess) {
    software_operation_free(operation);
    return error;
  }
  return copy_submit(queue, operation, request->waits);
}

static hipError_t fill_call(struct fill_request request, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  return software_end(error != hipSuccess ? error : fill_start(&request, stream));
}

hipError_t hipMemset(void *to, int value, size_t bytes)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemset, to, (uint8_t)value, 1, bytes, true}, NULL);
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetAsync, to, (uint8_t)value, 1, bytes, false}, stream);
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD8, to, value, 1, count, true}, NULL);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD8Async, to, value, 1, count, false}, stream);
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD32, to, (uint32_t)value, 4, count, true}, NULL);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD32Async, to, (uint32_t)value, 4, count, false}, stream);
}
