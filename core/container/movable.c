/* SPDX-License-Identifier: MIT */
/* movable.c: the functions of hipmm/spill.h. The handle has room for what the plugin knows of a movable buffer, and the plugin does
 * the rest (ops->moving). */
#include <hipmm/spill.h>

#include "../base/lifecycle.h"
#include "../call/handle.h"
#include "../call/resource_calls.h"
#include "../reclaim/reclaim.h"
#include "../stream/stream.h"

#include <string.h>

struct hipmm_movable {
  struct handle handle;
  const struct hipmm_resource *resource; /* of the stack that the handle retains */
  _Alignas(8) char data[HIPMM_MOVABLE_BYTES];
};

_Static_assert(sizeof(struct hipmm_movable) <= HANDLE_OBJECT_BYTES, "a movable buffer is a handle's object");

static enum hipmm_status movable_finish(const struct hipmm_movable *movable, enum hipmm_status status, const char *op)
{
  return instance_finish_op(instance_from(movable->resource), status, op);
}

static enum hipmm_status movable_new(const struct instance *instance, size_t bytes, struct hipmm_movable **movable_out)
{
  struct hipmm_movable *movable = handle_new(instance->stack);
  if (!movable) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  movable->resource = &instance->resource;
  memcpy(movable->data, &movable, sizeof movable); /* hipmm/plugin.h: the handle comes first */
  enum hipmm_status status = instance->resource.ops->moving->create(instance->resource.self, bytes, movable->data);
  status = movable_finish(movable, status, "create");
  if (status) {
    handle_free(movable);
    return status;
  }
  handle_open(movable, HANDLE_MOVABLE);
  *movable_out = movable;
  return HIPMM_OK;
}

enum hipmm_status hipmm_movable_create(struct hipmm_resource *resource, size_t bytes,
                                       struct hipmm_movable **movable_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, movable_out, "movable_out", &call);
  if (status) return status;
  CLOSURE_EACH(one, call.instance)
    if (one->resource.ops->moving) return resource_call_end(&call, movable_new(one, bytes, movable_out));
  status =
      error_set(HIPMM_E_ARGUMENT,
                "%s: neither it nor a resource below it is a spilling resource, which has movable buffers; put one "
                "on top of it, as in {\"stack\": [{\"type\": \"spilling\", \"folder\": \"/tmp\"}, \"pool\", "
                "\"device\"]}",
                call.instance->node->name);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_movable_destroy(struct hipmm_movable *movable)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!movable) return HIPMM_OK;
  if (!handle_close(movable, HANDLE_MOVABLE)) return handle_refuse(HANDLE_MOVABLE);
  const struct hipmm_resource *resource = movable->resource;
  enum hipmm_status status = resource->ops->moving->destroy(resource->self, movable->data);
  if (!status)
    handle_free(movable);
  else
    handle_open(movable, HANDLE_MOVABLE);
  return status ? movable_finish(movable, status, "destroy") : HIPMM_OK;
}

/* What reclaim_build() tries. */
struct movable_pin {
  struct hipmm_movable *movable;
  hipmm_stream_t stream;
  void **ptr_out;
};

static enum hipmm_status movable_pin_once(void *pin_)
{
  const struct movable_pin *pin = pin_;
  const struct hipmm_resource *resource = pin->movable->resource;
  return resource->ops->moving->pin(resource->self, pin->movable->data, pin->stream, pin->ptr_out);
}

static enum hipmm_status movable_try_pin(void *pin)
{
  return attempt_repeat(movable_pin_once, pin);
}

static enum hipmm_status movable_check(const struct hipmm_movable *movable, hipmm_stream_t stream)
{
  enum hipmm_status status = handle_check(movable, HANDLE_MOVABLE);
  return status ? status : stream_check(instance_from(movable->resource)->stack->device, stream);
}

enum hipmm_status hipmm_movable_pin(struct hipmm_movable *movable, hipmm_stream_t stream, void **ptr_out)
{
  struct movable_pin pin = {movable, stream, ptr_out};
  enum hipmm_status status = movable_check(movable, stream);
  if (!status && !ptr_out) status = error_set(HIPMM_E_ARGUMENT, "ptr_out is NULL");
  return status ? status : movable_finish(movable, reclaim_build(movable_try_pin, &pin), "pin");
}

enum hipmm_status hipmm_movable_unpin(struct hipmm_movable *movable, hipmm_stream_t stream)
{
  enum hipmm_status status = movable_check(movable, stream);
  if (status) return status;
  const struct hipmm_resource *resource = movable->resource;
  return movable_finish(movable, resource->ops->moving->unpin(resource->self, movable->data, stream), "unpin");
}
