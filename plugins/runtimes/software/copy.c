/* SPDX-License-Identifier: MIT */
/* copy.c: copies, from the call to their place in a queue. Called by applications. Arguments are checked here, at the
 * call; execute.c checks the memory again when the operation runs. fill.c has the fills.
 *
 * As in HIP, a copy from pageable host memory has read the data when the call returns, and a copy to pageable memory is
 * finished when the call returns. Copies of pinned, registered and managed memory are asynchronous. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>

struct copy_request {
  enum software_call call;
  void *to;
  const void *from;
  size_t bytes; /* of each row */
  hipMemcpyKind kind;
  bool waits;
  size_t more_rows, to_pitch, from_pitch; /* of copies in two dimensions: rows after the first */
};

#define COPY_WITHOUT_KERNEL 1024 /* hipMemcpyDeviceToDeviceNoCU, of HIP 6; no copy here uses a kernel */

static bool copy_kind_is_valid(int kind)
{
  return (kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault) || kind == COPY_WITHOUT_KERNEL;
}

/* A side that the copy kind calls the device's must be memory that devices reach. As in HIP, the other side may be any
 * memory. */
static hipError_t copy_check_kind(const struct software_operation *operation, hipMemcpyKind kind)
{
  if (software.config.pageable_memory_access) return hipSuccess;
  bool in_device = kind == hipMemcpyDeviceToDevice || (int)kind == COPY_WITHOUT_KERNEL;
  bool to_device = kind == hipMemcpyHostToDevice || in_device;
  bool from_device = kind == hipMemcpyDeviceToHost || in_device;
  if (to_device && software_span_is_host(&operation->to)) return hipErrorInvalidValue;
  if (from_device && software_span_is_host(&operation->from)) return hipErrorInvalidValue;
  return hipSuccess;
}

static hipError_t copy_stage(struct software_operation *operation)
{
  operation->staged = malloc(operation->width * operation->rows);
  if (!operation->staged) return hipErrorOutOfMemory;
  for (size_t row = 0; row < operation->rows; row++)
    memcpy((char *)operation->staged + row * operation->width, operation->from.start + row * operation->from_pitch,
           operation->width);
  return hipSuccess;
}

/* A node of a graph copies nothing yet: the copy reads its source at each launch. */
static hipError_t copy_prepare(struct software_operation *operation, const struct copy_request *request, bool is_node,
                               int to_device, int from_device)
{
  size_t to_bytes, from_bytes;
  if (!software_rows_extent(request->bytes, request->more_rows, request->to_pitch, &to_bytes) ||
      !software_rows_extent(request->bytes, request->more_rows, request->from_pitch, &from_bytes))
    return hipErrorInvalidValue;
  operation->width = request->bytes;
  operation->rows = request->more_rows + 1;
  operation->to_pitch = request->to_pitch;
  operation->from_pitch = request->from_pitch;
  hipError_t error = software_span_open(request->to, to_bytes, true, to_device, &operation->to);
  if (error == hipSuccess) error = software_span_open(request->from, from_bytes, false, from_device, &operation->from);
  if (error == hipSuccess) error = copy_check_kind(operation, request->kind);
  bool waits = request->waits || software_span_is_host(&operation->to) || is_node;
  if (error == hipSuccess && !waits && software_span_is_host(&operation->from)) error = copy_stage(operation);
  return error;
}

/* The other device whose default stream the copy keeps its order with, because of this side; -1 for none. Memory of
 * hipMalloc has that order. Mapped memory and memory of pools have it in hipMemcpyPeer alone. NVIDIA's driver (580)
 * does the same. */
static int copy_other_device(const struct software_span *span, bool is_peer_copy, const struct software_queue *queue)
{
  const struct software_allocation *allocation = span->allocation;
  bool is_ordered = allocation && (allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_OPENED) &&
                    !allocation->pool;
  int device = is_ordered || is_peer_copy ? software_span_device(span) : -1;
  return device == queue->device ? -1 : device;
}

/* As in HIP, a copy with memory of one device alone runs on that device, in its default stream, and one on a default
 * stream between two devices keeps its order with the default stream of the other. */
static hipError_t copy_choose_queue(const struct software_operation *operation, bool is_peer_copy,
                                    struct software_queue *queue, struct software_queue **runner_out)
{
  int to = software_span_device(&operation->to), from = software_span_device(&operation->from);
  bool is_between = to >= 0 && from >= 0 && to != from;
  int other = copy_other_device(&operation->from, is_peer_copy, queue);
  if (other < 0) other = copy_other_device(&operation->to, is_peer_copy, queue);
  *runner_out = queue;
  if (queue->capture || other < 0 || (is_between && !queue->is_legacy)) return hipSuccess;
  hipError_t error = software_default_queue(other, runner_out);
  return error == hipSuccess ? software.devices[other].fault : error;
}

/* HIP does not promise to wait for a copy within a device, and other runtimes do not wait. The stepped scheduler does not
 * wait either. */
static bool copy_waits(const struct software_operation *operation, const struct copy_request *request,
                       const struct software_queue *queue)
{
  if (queue->capture) return false;
  if (software_span_is_host(&operation->to)) return true;
  int to = software_span_device(&operation->to), from = software_span_device(&operation->from);
  bool is_within_device = to >= 0 && to == from;
  return request->waits && !(is_within_device && software.config.scheduler == SOFTWARE_STEPPED);
}

hipError_t software_submit_and_wait(struct software_queue *queue, struct software_queue *runner,
                                    struct software_operation *operation, bool waits)
{
  int device = queue->device, running_device = runner->device;
  hipError_t error = runner == queue ? software_submit(queue, operation) : software_submit_to(runner, operation, queue);
  if (error != hipSuccess || !waits) return error;
  software_wait_queue(queue, software.sequence);
  error = software.devices[running_device].fault;
  return error == hipSuccess ? software.devices[device].fault : error;
}

enum { DEVICE_OF_QUEUE = -1 };

/* Each side is accessed by the device that is named for it, or by the device of the queue. */
static hipError_t copy_start(const struct copy_request *request, int to_device, int from_device, hipStream_t stream)
{
  struct software_queue *queue;
  hipError_t error = software_queue_find(stream, &queue);
  if (error == hipSuccess && request->waits) error = software_capture_forbid_wait(queue);
  if (error != hipSuccess) return error;
  if (!copy_kind_is_valid((int)request->kind)) return hipErrorInvalidMemcpyDirection;
  if (request->bytes == 0) return hipSuccess;
  struct software_operation *operation = software_operation_new(SOFTWARE_COPY, request->call);
  if (!operation) return hipErrorOutOfMemory;
  struct software_queue *runner;
  error = copy_prepare(operation, request, queue->capture, to_device == DEVICE_OF_QUEUE ? queue->device : to_device,
                       from_device == DEVICE_OF_QUEUE ? queue->device : from_device);
  if (error == hipSuccess)
    error = copy_choose_queue(operation, request->call == SOFTWARE_hipMemcpyPeer, queue, &runner);
  if (error == hipSuccess)
    return software_submit_and_wait(queue, runner, operation, copy_waits(operation, request, queue));
  software_operation_free(operation);
  return error;
}

static hipError_t copy_call(struct copy_request request, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  return software_end(error != hipSuccess ? error : copy_start(&request, DEVICE_OF_QUEUE, DEVICE_OF_QUEUE, stream));
}

hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpy, to, from, bytes, kind, true, 0, 0, 0}, NULL);
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpyAsync, to, from, bytes, kind, false, 0, 0, 0}, stream);
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpyWithStream, to, from, bytes, kind, true, 0, 0, 0}, stream);
}

hipError_t software_copy_new_node(enum software_call call, const struct software_rows *to,
                                  const struct software_rows *from, size_t width, size_t rows, hipMemcpyKind kind,
                                  struct software_operation **operation_out)
{
  int device = software_current_device();
  const struct copy_request request = {call,  to->start, from->start, width,      kind,
                                       false, rows - 1,  to->pitch,   from->pitch};
  if (!copy_kind_is_valid((int)kind)) return hipErrorInvalidMemcpyDirection;
  if (rows == 0 || width == 0 || (rows > 1 && (to->pitch < width || from->pitch < width))) return hipErrorInvalidValue;
  struct software_operation *operation = software_operation_new(SOFTWARE_COPY, call);
  if (!operation) return hipErrorOutOfMemory;
  hipError_t error = copy_prepare(operation, &request, true, device, device);
  if (error == hipSuccess)
    *operation_out = operation;
  else
    software_operation_free(operation);
  return error;
}

hipError_t software_copy_rows(enum software_call call, const struct software_rows *to, const struct software_rows *from,
                              size_t width, size_t rows, hipMemcpyKind kind, bool waits, hipStream_t stream)
{
  const struct copy_request request = {call,  to->start, from->start, width,      kind,
                                       waits, rows - 1,  to->pitch,   from->pitch};
  return copy_start(&request, DEVICE_OF_QUEUE, DEVICE_OF_QUEUE, stream);
}

/* ---- In two dimensions ----------------------------------------------------------------------------------------- */

static hipError_t copy_rows(struct copy_request request, size_t rows, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  if (error == hipSuccess && (!request.to || !request.from)) error = hipErrorInvalidValue;
  if (error == hipSuccess && (request.to_pitch < request.bytes || request.from_pitch < request.bytes))
    error = hipErrorInvalidPitchValue;
  request.more_rows = rows - 1;
  if (rows == 0) request.bytes = request.more_rows = 0; /* checked, and done */
  return software_end(error != hipSuccess ? error : copy_start(&request, DEVICE_OF_QUEUE, DEVICE_OF_QUEUE, stream));
}

hipError_t hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                       hipMemcpyKind kind)
{
  struct copy_request request = {SOFTWARE_hipMemcpy2D, to, from, width, kind, true, 0, to_pitch, from_pitch};
  return copy_rows(request, height, NULL);
}

hipError_t hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream)
{
  struct copy_request request = {SOFTWARE_hipMemcpy2DAsync, to, from, width, kind, false, 0, to_pitch, from_pitch};
  return copy_rows(request, height, stream);
}

/* ---- With the direction in the name ---------------------------------------------------------------------------- */

/* HIP 7 made the source const. */
#if HIP_VERSION_MAJOR >= 7
typedef const void *copy_source;
#else
typedef void *copy_source;
#endif

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, copy_source from, size_t bytes)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpyHtoD, to, from, bytes, hipMemcpyHostToDevice, true, 0, 0, 0},
                   NULL);
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, copy_source from, size_t bytes, hipStream_t stream)
{
  return copy_call(
      (struct copy_request){SOFTWARE_hipMemcpyHtoDAsync, to, from, bytes, hipMemcpyHostToDevice, false, 0, 0, 0},
      stream);
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes)
{
  return copy_call((struct copy_request){SOFTWARE_hipMemcpyDtoH, to, from, bytes, hipMemcpyDeviceToHost, true, 0, 0, 0},
                   NULL);
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
  return copy_call(
      (struct copy_request){SOFTWARE_hipMemcpyDtoHAsync, to, from, bytes, hipMemcpyDeviceToHost, false, 0, 0, 0},
      stream);
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes)
{
  return copy_call(
      (struct copy_request){SOFTWARE_hipMemcpyDtoD, to, from, bytes, hipMemcpyDeviceToDevice, true, 0, 0, 0}, NULL);
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
  return copy_call(
      (struct copy_request){SOFTWARE_hipMemcpyDtoDAsync, to, from, bytes, hipMemcpyDeviceToDevice, false, 0, 0, 0},
      stream);
}

/* ---- Between devices ------------------------------------------------------------------------------------------- */

static hipError_t copy_check_peer(const void *pointer, int device)
{
  if (!software_device_exists(device)) return hipErrorInvalidDevice;
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  bool is_bound = allocation && (allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_POOLED);
  return is_bound && allocation->device != device ? hipErrorInvalidValue : hipSuccess;
}

/* As on NVIDIA's driver, mapped memory needs access for its own device only, whichever device is current. */
static hipError_t copy_peer_call(struct copy_request request, int to_device, int from_device, hipStream_t stream)
{
  hipError_t error = software_begin(request.call);
  if (error == hipSuccess) error = copy_check_peer(request.to, to_device);
  if (error == hipSuccess) error = copy_check_peer(request.from, from_device);
  return software_end(error != hipSuccess ? error : copy_start(&request, to_device, from_device, stream));
}

hipError_t hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
  struct copy_request request = {SOFTWARE_hipMemcpyPeer, to, from, bytes, hipMemcpyDeviceToDevice, true, 0, 0, 0};
  return copy_peer_call(request, to_device, from_device, NULL);
}

hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                              hipStream_t stream)
{
  struct copy_request request = {SOFTWARE_hipMemcpyPeerAsync, to, from, bytes, hipMemcpyDeviceToDevice, false, 0, 0, 0};
  return copy_peer_call(request, to_device, from_device, stream);
}
