/* SPDX-License-Identifier: MIT */
/* allocate_ex.c: the functions of hipmm/memory.h, made of allocations, frees and work on the stream. Called by
 * applications. A failure undoes what the call has allocated. */
#include <hipmm/memory.h>
#include <hipmm/stream.h>

#include "../base/error.h"
#include "../base/log.h"
#include "../reclaim/reclaim.h"
#include "../runtime/hip.h"
#include "resource_calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- One block ---- */

/* Whether a free of the block on `stream` would wait for the stream, which a graph capture of the stream forbids. The
 * resource that gave the block decides; adaptors pass frees on. */
static bool allocate_ex_cannot_free(const struct instance *instance, const void *ptr, hipmm_stream_t stream)
{
  if (!hip_is_captured(instance->stack->device, stream)) return false;
  const struct error_record before = error_mark();
  const struct instance *owner = instance_owner_of(instance, ptr);
  error_return_to_mark(&before); /* a resource that does not know the block is no failure */
  return owner && owner->node->plugin->descriptor.flags & HIPMM_PLUGIN_FREE_WAITS;
}

/* Frees a new block after a failure, which stays the caller's error. No work uses the block, so that where its stream cannot
 * be waited for, another can. */
static void allocate_ex_undo(const struct instance *instance, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  const struct error_record failure = error_mark();
  if (allocate_ex_cannot_free(instance, ptr, stream)) stream = HIPMM_PER_THREAD_STREAM;
  if (instance_deallocate(&instance->resource, ptr, bytes, HIPMM_ALIGNMENT, stream))
    log_line(HIPMM_LOG_WARNING, instance->node->name, "a block of %zu bytes is lost until its stack is destroyed: %s",
             bytes, hipmm_last_error_message());
  error_return_to_mark(&failure);
}

static enum hipmm_status allocate_ex_wait(hipmm_stream_t stream)
{
  int code = hip_table()->StreamSynchronize(stream);
  return code ? hip_refuse(NULL, "hipStreamSynchronize", code, 0) : HIPMM_OK;
}

/* The device cannot write memory of the host alone; work of the stream may still copy to or from it. */
static enum hipmm_status allocate_ex_fill_on_host(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  enum hipmm_status status = allocate_ex_wait(stream);
  if (!status) memset(ptr, 0, bytes);
  return status;
}

static bool allocate_ex_fills_on_host(const struct instance *instance, const struct hipmm_request *request)
{
  return request->flags & HIPMM_ALLOCATE_ZEROED && !(instance_access(instance) & HIPMM_ACCESS_DEVICE);
}

/* The device is current. */
static enum hipmm_status allocate_ex_finish(const struct instance *instance, const struct hipmm_request *request,
                                            void *ptr)
{
  enum hipmm_status status = HIPMM_OK;
  if (allocate_ex_fills_on_host(instance, request)) {
    status = allocate_ex_fill_on_host(ptr, request->bytes, request->stream);
  } else if (request->flags & HIPMM_ALLOCATE_ZEROED) {
    int code = hip_table()->MemsetAsync(ptr, 0, request->bytes, request->stream);
    if (code) status = hip_refuse(instance->node->name, "hipMemsetAsync", code, request->bytes);
  }
  if (!status && request->flags & HIPMM_ALLOCATE_SYNCHRONOUS) status = allocate_ex_wait(request->stream);
  return status;
}

static enum hipmm_status allocate_ex_exportable(const struct instance *instance, const struct hipmm_request *request,
                                                size_t alignment, void **ptr_out)
{
  const struct hipmm_sharing *sharing = instance->resource.ops->sharing;
  if (!sharing || sharing->struct_size <= offsetof(struct hipmm_sharing, allocate) || !sharing->allocate)
    return error_set(
        HIPMM_E_NOT_SUPPORTED,
        "%s has no blocks that may be exported; allocate from a pool with \"growth\": \"mapped\" over device",
        instance->node->name);
  return instance_finish_op(
      instance, sharing->allocate(instance->resource.self, request->bytes, alignment, request->stream, ptr_out),
      "allocate");
}

static enum hipmm_status allocate_ex_one(const struct instance *instance, const struct hipmm_request *request,
                                         void **ptr_out)
{
  void *ptr = NULL;
  const struct hipmm_resource *resource = &instance->resource;
  size_t alignment = request->alignment > HIPMM_ALIGNMENT ? request->alignment : HIPMM_ALIGNMENT;
  bool waits = request->flags & HIPMM_ALLOCATE_SYNCHRONOUS || allocate_ex_fills_on_host(instance, request);
  if (waits && hip_is_captured(instance->stack->device, request->stream))
    return error_set(HIPMM_E_STATE, "the stream is being captured and cannot be waited for");
  enum hipmm_status status =
      request->flags & HIPMM_ALLOCATE_EXPORTABLE
          ? allocate_ex_exportable(instance, request, alignment, &ptr)
          : reclaim_allocate_and_count(resource, request->bytes, alignment, request->stream, &ptr);
  if (!status && ptr && request->flags) {
    int previous = hip_enter_device(instance->stack->device);
    status = allocate_ex_finish(instance, request, ptr);
    hip_leave_device(instance->stack->device, previous);
    if (status) allocate_ex_undo(instance, ptr, request->bytes, request->stream);
  }
  if (!status) *ptr_out = ptr;
  return status;
}

static enum hipmm_status allocate_ex_check(const struct hipmm_request *request)
{
  const uint32_t known = HIPMM_ALLOCATE_ZEROED | HIPMM_ALLOCATE_SYNCHRONOUS | HIPMM_ALLOCATE_EXPORTABLE;
  size_t least = offsetof(struct hipmm_request, unused) + sizeof request->unused;
  if (request->struct_size < least)
    return error_set(HIPMM_E_ARGUMENT, "struct_size of the request is %zu; set it to sizeof(struct hipmm_request), %zu",
                     request->struct_size, sizeof *request);
  if (request->alignment & (request->alignment - 1))
    return error_set(HIPMM_E_ARGUMENT, "alignment %zu is not a power of two", request->alignment);
  if (request->flags & ~known || request->unused)
    return error_set(HIPMM_E_ARGUMENT, "flags 0x%x of the request have an unknown bit, or `unused` is not 0",
                     request->flags);
  return HIPMM_OK;
}

enum hipmm_status hipmm_allocate_ex(const struct hipmm_request *request, void **ptr_out)
{
  struct resource_call call;
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!request) return error_set(HIPMM_E_ARGUMENT, "request is NULL");
  enum hipmm_status status = allocate_ex_check(request);
  if (!status) status = resource_call_begin(request->resource, ptr_out, "ptr_out", &call);
  return status ? status : resource_call_end(&call, allocate_ex_one(call.instance, request, ptr_out));
}

enum hipmm_status hipmm_allocate_zeroed(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                        void **ptr_out)
{
  const struct hipmm_request request = {.struct_size = sizeof request,
                                        .resource = resource,
                                        .bytes = bytes,
                                        .stream = stream,
                                        .flags = HIPMM_ALLOCATE_ZEROED};
  return hipmm_allocate_ex(&request, ptr_out);
}

enum hipmm_status hipmm_allocate_sync(struct hipmm_resource *resource, size_t bytes, void **ptr_out)
{
  const struct hipmm_request request = {
      .struct_size = sizeof request, .resource = resource, .bytes = bytes, .flags = HIPMM_ALLOCATE_SYNCHRONOUS};
  return hipmm_allocate_ex(&request, ptr_out);
}

enum hipmm_status hipmm_deallocate_sync(struct hipmm_resource *resource, void *ptr, size_t bytes)
{
  return hipmm_deallocate(resource, ptr, bytes, NULL);
}

/* ---- Another size ---- */

/* The size of the block, which must be live: nothing is copied from another address. A resource that cannot tell takes the
 * caller's word. */
static enum hipmm_status allocate_ex_find_size(const struct instance *instance, const void *ptr, size_t *bytes)
{
  struct hipmm_block block = {NULL, 0};
  const struct error_record before = error_mark();
  enum hipmm_status status = instance_find(instance, ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED && *bytes) {
    error_return_to_mark(&before);
    return HIPMM_OK;
  }
  if (status == HIPMM_E_NOT_SUPPORTED)
    return error_set(status, "%s: no resource knows the size of %p; pass it", instance->node->name, ptr);
  if (!status && *bytes && *bytes != block.bytes)
    return error_set(HIPMM_E_SIZE, "%s: %p was allocated with %zu bytes, not %zu", instance->node->name, ptr,
                     block.bytes, *bytes);
  if (!status) *bytes = block.bytes;
  return status;
}

static enum hipmm_status allocate_ex_copy(const struct instance *instance, void *to, const void *from, size_t bytes,
                                          hipmm_stream_t stream)
{
  int previous = hip_enter_device(instance->stack->device);
  int code = hip_table()->MemcpyAsync(to, from, bytes, HIPMM_HIP_MEMCPY_DEFAULT, stream);
  enum hipmm_status status = code ? hip_refuse(instance->node->name, "hipMemcpyAsync", code, bytes) : HIPMM_OK;
  hip_leave_device(instance->stack->device, previous);
  return status;
}

static enum hipmm_status allocate_ex_move(const struct instance *instance, void *ptr, size_t bytes, size_t new_bytes,
                                          hipmm_stream_t stream, void **ptr_out)
{
  void *moved = NULL;
  const struct hipmm_resource *resource = &instance->resource;
  enum hipmm_status status = allocate_ex_find_size(instance, ptr, &bytes);
  if (status) return status;
  if (bytes == new_bytes) {
    *ptr_out = ptr;
    return HIPMM_OK;
  }
  if (allocate_ex_cannot_free(instance, ptr, stream))
    return error_set(HIPMM_E_STATE,
                     "%s: the stream is being captured, and until that ends %p cannot be freed on it; reallocate "
                     "before or after the capture",
                     instance->node->name, ptr);
  if (new_bytes) status = reclaim_allocate_and_count(resource, new_bytes, HIPMM_ALIGNMENT, stream, &moved);
  if (status) return status;
  if (new_bytes) status = allocate_ex_copy(instance, moved, ptr, bytes < new_bytes ? bytes : new_bytes, stream);
  if (!status) status = instance_deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream);
  if (status && moved) allocate_ex_undo(instance, moved, new_bytes, stream);
  if (!status) *ptr_out = moved;
  return status;
}

enum hipmm_status hipmm_reallocate(struct hipmm_resource *resource, void *ptr, size_t bytes, size_t new_bytes,
                                   hipmm_stream_t stream, void **ptr_out)
{
  struct resource_call call;
  if (!ptr) return hipmm_allocate(resource, new_bytes, stream, ptr_out);
  enum hipmm_status status = resource_call_begin_as(resource, ptr_out, "ptr_out", true, &call);
  if (status) return status;
  status = allocate_ex_move(call.instance, ptr, bytes, new_bytes, stream, ptr_out);
  return resource_call_end(&call, status);
}

/* ---- Several blocks ---- */

static enum hipmm_status allocate_ex_all(const struct instance *instance, size_t n, const size_t *bytes,
                                         hipmm_stream_t stream, void **ptrs)
{
  const struct hipmm_resource *resource = &instance->resource;
  enum hipmm_status status = HIPMM_OK;
  size_t done = 0;
  while (done < n && !status) {
    status = reclaim_allocate_and_count(resource, bytes[done], HIPMM_ALIGNMENT, stream, &ptrs[done]);
    if (!status) done++;
  }
  while (status && done-- > 0)
    if (ptrs[done]) allocate_ex_undo(instance, ptrs[done], bytes[done], stream);
  return status;
}

enum hipmm_status hipmm_allocate_batch(struct hipmm_resource *resource, size_t n, const size_t *bytes,
                                       hipmm_stream_t stream, void **ptrs_out)
{
  struct resource_call call;
  if (n && !bytes && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "bytes is NULL");
  enum hipmm_status status = resource_call_begin(resource, n ? (void *)ptrs_out : "", "ptrs_out", &call);
  if (status) return status;
  void **ptrs = calloc(n + !n, sizeof *ptrs);
  status = ptrs ? allocate_ex_all(call.instance, n, bytes, stream, ptrs)
                : error_set(HIPMM_E_OUT_OF_MEMORY, "no host memory for a batch of %zu blocks", n);
  if (!status && n) memcpy(ptrs_out, ptrs, n * sizeof *ptrs);
  free(ptrs);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_deallocate_batch(struct hipmm_resource *resource, size_t n, void *const *ptrs,
                                         const size_t *bytes, hipmm_stream_t stream)
{
  struct resource_call call;
  struct error_record mark;
  enum hipmm_status first = HIPMM_OK;
  enum hipmm_status status = resource_call_begin_as(resource, n ? (const void *)ptrs : "", "ptrs", true, &call);
  if (status == HIPMM_E_POINTER && !n) return HIPMM_OK; /* there is no stack, and nothing to free */
  for (size_t i = 0; !status && i < n; i++) {
    enum hipmm_status one =
        instance_deallocate(&call.instance->resource, ptrs[i], bytes ? bytes[i] : 0, HIPMM_ALIGNMENT, stream);
    error_keep_first(&first, &mark, one);
  }
  if (status) return status;
  if (first) error_return_to_mark(&mark);
  return resource_call_end(&call, first);
}
