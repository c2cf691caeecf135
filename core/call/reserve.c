/* SPDX-License-Identifier: MIT */
/* reserve.c: the functions of hipmm/reserve.h. A reservation is a resource made in code over the one that has the budget, whose
 * plugin does the rest (ops->reserving). */
#include <hipmm/reserve.h>

#include "../base/error.h"
#include "../base/lifecycle.h"
#include "resource_calls.h"

/* The nearest resource, from this one down, that makes reservations; with a reference. */
static enum hipmm_status reserve_find(const struct hipmm_reserve_request *request, struct hipmm_resource **found_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(request->resource, request, "request", &call);
  if (status) return status;
  CLOSURE_EACH(one, call.instance) {
    if (!one->resource.ops->reserving) continue;
    *found_out = (struct hipmm_resource *)(uintptr_t)&one->resource;
    hipmm_resource_retain(*found_out);
    return resource_call_end(&call, HIPMM_OK);
  }
  status =
      error_set(HIPMM_E_ARGUMENT,
                "%s: neither it nor a resource below it is a reserving resource, from which memory is reserved; put "
                "one on top of it, as in {\"stack\": [\"reserving\", \"pool\", \"device\"]}",
                call.instance->node->name);
  return resource_call_end(&call, status);
}

/* In no call that hipmm_finalize() waits for. */
static enum hipmm_status reserve_wait(const struct hipmm_reserve_request *request, struct hipmm_resource *made)
{
  const struct error_record before = error_mark();
  const struct hipmm_reserving *reserving = made->ops->reserving;
  enum hipmm_status status = instance_finish_op(
      instance_from(made), reserving->reserve(made->self, request->bytes, request->timeout_ns, request->priority),
      "reserve");
  if (!status) error_return_to_mark(&before);
  return status;
}

enum hipmm_status hipmm_reserve(const struct hipmm_reserve_request *request, struct hipmm_resource **reservation_out)
{
  struct hipmm_resource *below = NULL, *made = NULL;
  enum hipmm_status status = lifecycle_check_use(reservation_out, "reservation_out");
  if (!status) status = lifecycle_check_use(request, "request");
  if (status) return status;
  if (request->struct_size < sizeof *request)
    return error_set(HIPMM_E_ARGUMENT,
                     "struct_size of the request is %zu; set it to sizeof(struct hipmm_reserve_request), %zu",
                     request->struct_size, sizeof *request);
  status = reserve_find(request, &below);
  if (status) return status;
  const struct hipmm_setting setting = {"reservation", "true"};
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = hipmm_resource_type(below),
                                      .name = request->name,
                                      .settings = &setting,
                                      .n_settings = 1,
                                      .upstreams = &below,
                                      .n_upstreams = 1};
  status = hipmm_resource_create_from(hipmm_resource_device(below), &recipe, &made);
  if (!status) status = reserve_wait(request, made);
  if (!status) *reservation_out = made;
  if (status && made) hipmm_resource_release(made);
  hipmm_resource_release(below);
  return status;
}

/* Begins a call on a reservation. */
static enum hipmm_status reserve_begin(struct hipmm_resource *reservation, struct resource_call *call)
{
  enum hipmm_status status = lifecycle_check_use(reservation, "reservation");
  if (!status) status = resource_call_begin(reservation, reservation, "reservation", call);
  if (status || reservation->ops->reserving) return status;
  status = error_set(HIPMM_E_ARGUMENT, "%s is no reservation; hipmm_reserve() makes one", call->instance->node->name);
  return resource_call_end(call, status);
}

enum hipmm_status hipmm_reservation_resize(struct hipmm_resource *reservation, size_t bytes)
{
  struct resource_call call;
  enum hipmm_status status = reserve_begin(reservation, &call);
  if (status) return status;
  status = reservation->ops->reserving->resize(reservation->self, bytes);
  return resource_call_end(&call, instance_finish_op(call.instance, status, "resize"));
}

enum hipmm_status hipmm_reservation_release(struct hipmm_resource *reservation)
{
  struct resource_call call;
  enum hipmm_status status = reserve_begin(reservation, &call);
  if (status) return status;
  status = reservation->ops->reserving->release(reservation->self);
  status = resource_call_end(&call, instance_finish_op(call.instance, status, "release"));
  if (!status) hipmm_resource_release(reservation);
  return status;
}
