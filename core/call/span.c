/* SPDX-License-Identifier: MIT */
/* span.c: the functions of hipmm/span.h. The resource that offers ops->spans does the work. */
#include <hipmm/span.h>

#include "../base/error.h"
#include "../reclaim/reclaim.h"
#include "resource_calls.h"

enum hipmm_status hipmm_span_create(struct hipmm_resource *resource, size_t bytes, size_t *granule_out, void **ptr_out)
{
  struct resource_call call;
  if (!granule_out && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "granule_out is NULL");
  enum hipmm_status status = resource_call_begin(resource, ptr_out, "ptr_out", &call);
  if (status) return status;
  CLOSURE_EACH(one, call.instance) {
    const struct hipmm_ops *ops = one->resource.ops;
    if (!ops->spans) continue;
    status = ops->spans->create(one->resource.self, bytes, granule_out, ptr_out);
    return resource_call_end(&call, instance_finish_op(one, status, "create"));
  }
  status =
      error_set(HIPMM_E_NOT_SUPPORTED,
                "%s: neither it nor a resource below it serves spans; use a pool with \"growth\": \"mapped\" directly "
                "over device",
                call.instance->node->name);
  return resource_call_end(&call, status);
}

/* ---- Spans that there are ---- */

struct span_call {
  const struct instance *owner; /* with a reference to its stack */
  void *ptr;
  size_t offset, bytes;
};

/* Finds the resource of the span at call->ptr. No pin lasts for the call itself, in which other resources are asked. */
static enum hipmm_status span_call_begin(struct span_call *call)
{
  struct hipmm_block span;
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!call->ptr) return error_set(HIPMM_E_ARGUMENT, "ptr is NULL");
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) {
    STACK_EACH(instance, stack) {
      const struct hipmm_resource *resource = &instance->resource;
      if (!resource->ops->spans || !resource->ops->spans->find(resource->self, call->ptr, &span)) continue;
      if (span.ptr != call->ptr) continue;
      stack_retain(stack);
      stack_unpin(stack);
      call->owner = instance;
      return HIPMM_OK;
    }
  }
  return error_set(HIPMM_E_POINTER, "no span starts at %p: it is foreign, or the span was destroyed before", call->ptr);
}

static enum hipmm_status span_call_end(const struct span_call *call, enum hipmm_status status, const char *op)
{
  status = instance_finish_op(call->owner, status, op);
  stack_release(call->owner->stack);
  return status;
}

static enum hipmm_status span_commit(void *closure)
{
  const struct span_call *call = closure;
  const struct hipmm_resource *resource = &call->owner->resource;
  return resource->ops->spans->commit(resource->self, call->ptr, call->offset, call->bytes);
}

enum hipmm_status hipmm_span_commit(void *ptr, size_t offset, size_t bytes)
{
  struct span_call call = {.ptr = ptr, .offset = offset, .bytes = bytes};
  enum hipmm_status status = span_call_begin(&call);
  return status ? status : span_call_end(&call, reclaim_build(span_commit, &call), "commit");
}

enum hipmm_status hipmm_span_decommit(void *ptr, size_t offset, size_t bytes, hipmm_stream_t stream)
{
  struct span_call call = {.ptr = ptr};
  enum hipmm_status status = span_call_begin(&call);
  if (status) return status;
  const struct hipmm_resource *resource = &call.owner->resource;
  status = resource->ops->spans->decommit(resource->self, ptr, offset, bytes, stream);
  return span_call_end(&call, status, "decommit");
}

enum hipmm_status hipmm_span_destroy(void *ptr, hipmm_stream_t stream)
{
  struct span_call call = {.ptr = ptr};
  if (!ptr && !lifecycle_refuses_calls()) return HIPMM_OK;
  enum hipmm_status status = span_call_begin(&call);
  if (status) return status;
  const struct hipmm_resource *resource = &call.owner->resource;
  return span_call_end(&call, resource->ops->spans->destroy(resource->self, ptr, stream), "destroy");
}
