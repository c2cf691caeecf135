/* SPDX-License-Identifier: MIT */
/* fill.c: fills, from the call to their place in a queue. Called by applications. Arguments are checked here, at the
 * call; execute.c checks the memory again when the operation runs. */
#include "internal.h"

struct fill_request {
  enum software_call call;
  void *to;
  uint32_t value, value_bytes;
  size_t count; /* of values in each row */
  bool waits;
  size_t more_rows, pitch; /* of fills in two dimensions: rows after the first */
};

/* A fill is work of the device itself, which accesses memory of another device only where that was allowed. Copies need
 * no access, since they can be staged. Access to mappings is checked with the span. */
static bool fill_reaches(const struct software_span *span, int device)
{
  const struct software_allocation *allocation = span->allocation;
  if (!allocation || allocation->device == device) return true;
  if (allocation->kind == SOFTWARE_DEVICE_MEMORY) return software.devices[device].peers[allocation->device];
  return !allocation->pool || software_pool_allows(allocation->pool, device);
}

/* HIP does not promise to wait for a fill of device memory, and other runtimes do not wait. The stepped scheduler does not
 * wait either. */
static bool fill_waits(const struct software_span *span, const struct fill_request *request)
{
  bool is_asynchronous = software.config.scheduler == SOFTWARE_STEPPED && software_span_device(span) >= 0;
  return request->waits && !is_asynchronous;
}

/* The operation of a fill of at least one value. */
static hipError_t fill_prepare(const struct fill_request *request, int device,
                               struct software_operation **operation_out)
{
  size_t bytes;
  if (request->count > SIZE_MAX / request->value_bytes) return hipErrorInvalidValue;
  struct software_operation *operation = software_operation_new(SOFTWARE_FILL, request->call);
  if (!operation) return hipErrorOutOfMemory;
  operation->value = request->value;
  operation->value_bytes = request->value_bytes;
  operation->width = request->count * request->value_bytes;
  operation->rows = request->more_rows + 1;
  operation->to_pitch = request->pitch;
  bool fits = software_rows_extent(operation->width, request->more_rows, request->pitch, &bytes);
  hipError_t error = fits ? software_span_open(request->to, bytes, true, device, &operation->to) : hipErrorInvalidValue;
  if (error == hipSuccess && software_span_is_host(&operation->to) && !software.config.pageable_memory_access)
    error = hipErrorInvalidValue;
  if (error == hipSuccess && !fill_reaches(&operation->to, device)) error = hipErrorInvalidValue;
  if (error == hipSuccess)
    *operation_out = operation;
  else
    software_operation_free(operation);
  return error;
}

static hipError_t fill_start(const struct fill_request *request, hipStream_t stream)
{
  struct software_queue *queue;
  struct software_operation *operation;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess && request->waits) error = software_capture_forbid_wait(queue);
  if (error != hipSuccess || request->count == 0) return error;
  error = fill_prepare(request, queue->device, &operation);
  return error != hipSuccess ? error
                             : software_submit_and_wait(queue, queue, operation, fill_waits(&operation->to, request));
}

hipError_t software_fill_new_node(enum software_call call, const struct software_rows *to, uint32_t value,
                                  uint32_t value_bytes, size_t count, size_t rows,
                                  struct software_operation **operation_out)
{
  const struct fill_request request = {call, to->start, value, value_bytes, count, false, rows - 1, to->pitch};
  bool has_size = value_bytes == 1 || value_bytes == 2 || value_bytes == 4;
  if (!has_size || rows == 0 || count == 0 || (rows > 1 && to->pitch / value_bytes < count))
    return hipErrorInvalidValue;
  return fill_prepare(&request, software_current_device(), operation_out);
}

hipError_t software_fill_rows(enum software_call call, const struct software_rows *to, uint8_t value, size_t width,
                              size_t rows, bool waits, hipStream_t stream)
{
  return fill_start(&(struct fill_request){call, to->start, value, 1, width, waits, rows - 1, to->pitch}, stream);
}

static hipError_t fill_call(struct fill_request request, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  return software_end(error != hipSuccess ? error : fill_start(&request, stream));
}

hipError_t hipMemset(void *to, int value, size_t bytes)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemset, to, (uint8_t)value, 1, bytes, true, 0, 0}, NULL);
}

hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetAsync, to, (uint8_t)value, 1, bytes, false, 0, 0}, stream);
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD8, to, value, 1, count, true, 0, 0}, NULL);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD8Async, to, value, 1, count, false, 0, 0}, stream);
}

hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD16, to, value, 2, count, true, 0, 0}, NULL);
}

hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, size_t count, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD16Async, to, value, 2, count, false, 0, 0}, stream);
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD32, to, (uint32_t)value, 4, count, true, 0, 0}, NULL);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream)
{
  return fill_call((struct fill_request){SOFTWARE_hipMemsetD32Async, to, (uint32_t)value, 4, count, false, 0, 0},
                   stream);
}

/* ---- In two dimensions ----------------------------------------------------------------------------------------- */

static hipError_t fill_rows(struct fill_request request, size_t rows, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  if (error == hipSuccess && (!request.to || request.pitch / request.value_bytes < request.count))
    error = hipErrorInvalidValue;
  request.more_rows = rows - 1;
  if (rows == 0) request.count = request.more_rows = 0; /* checked, and done */
  return software_end(error != hipSuccess ? error : fill_start(&request, stream));
}

hipError_t hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
  return fill_rows((struct fill_request){SOFTWARE_hipMemset2D, to, (uint8_t)value, 1, width, true, 0, pitch}, height,
                   NULL);
}

hipError_t hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream)
{
  return fill_rows((struct fill_request){SOFTWARE_hipMemset2DAsync, to, (uint8_t)value, 1, width, false, 0, pitch},
                   height, stream);
}

#define FILL_ROWS(bits, type)                                                                                        \
  hipError_t hipMemsetD2D##bits(hipDeviceptr_t to, size_t pitch, type value, size_t width, size_t height)            \
  {                                                                                                                  \
    struct fill_request request = {SOFTWARE_hipMemsetD2D##bits, to, value, bits / 8, width, true, 0, pitch};         \
    return fill_rows(request, height, NULL);                                                                         \
  }                                                                                                                  \
  hipError_t hipMemsetD2D##bits##Async(hipDeviceptr_t to, size_t pitch, type value, size_t width, size_t height,     \
                                       hipStream_t stream)                                                           \
  {                                                                                                                  \
    struct fill_request request = {SOFTWARE_hipMemsetD2D##bits##Async, to, value, bits / 8, width, false, 0, pitch}; \
    return fill_rows(request, height, stream);                                                                       \
  }
FILL_ROWS(8, unsigned char)
FILL_ROWS(16, unsigned short)
FILL_ROWS(32, unsigned int)
