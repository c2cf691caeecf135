/* SPDX-License-Identifier: MIT */
/* resource_facts.c: what a program may ask of a live resource besides its values: upstreams, access, the driver's pool,
 * and the program's own pointer. Called by applications. */
#include <hipmm/inspect.h>

#include "../base/error.h"
#include "resource_calls.h"

/* ---- Upstreams ---- */

enum hipmm_status hipmm_resource_upstream_count(struct hipmm_resource *resource, size_t *count_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, count_out, "count_out", &call);
  if (status) return status;
  *count_out = dependencies_of(call.instance)->n_direct;
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_resource_upstream(struct hipmm_resource *resource, size_t index,
                                          struct hipmm_resource **upstream_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, upstream_out, "upstream_out", &call);
  if (status) return status;
  const struct instance_dependencies *dependencies = dependencies_of(call.instance);
  if (index >= dependencies->n_direct)
    return resource_call_end(&call, error_set(HIPMM_E_ARGUMENT, "index %zu: %s has %zu upstreams, numbered from 0",
                                              index, call.instance->node->name, dependencies->n_direct));
  struct hipmm_resource *upstream = &dependencies->direct[index]->resource;
  hipmm_resource_retain(upstream);
  *upstream_out = upstream;
  return resource_call_end(&call, status);
}

int hipmm_resource_is_equal(const struct hipmm_resource *resource, const struct hipmm_resource *other)
{
  return resource && resource == other;
}

/* ---- Memory ---- */

enum hipmm_status hipmm_resource_access(struct hipmm_resource *resource, unsigned *access_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, access_out, "access_out", &call);
  if (status) return status;
  *access_out = instance_access(call.instance);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_resource_pool_handle(struct hipmm_resource *resource, void **handle_out)
{
  size_t row;
  int64_t handle = 0;
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, handle_out, "handle_out", &call);
  if (status) return status;
  const struct instance *owner = instance_with_value(call.instance, "pool_handle", &row);
  if (!owner)
    status = error_set(HIPMM_E_NOT_SUPPORTED,
                       "%s: neither it nor a resource below it allocates from a pool of the driver; async does",
                       call.instance->node->name);
  else
    status = owner->resource.ops->query(owner->resource.self, row, &handle);
  if (!status) *handle_out = (void *)(intptr_t)handle;
  return resource_call_end(&call, status);
}

/* ---- The program's own pointer ---- */

enum hipmm_status hipmm_resource_set_user_data(struct hipmm_resource *resource, void *data, void (*release)(void *data))
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  instance_set_user_data(call.instance, (struct instance_user_data){data, release});
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_resource_get_user_data(struct hipmm_resource *resource, void **data_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, data_out, "data_out", &call);
  if (status) return status;
  *data_out = instance_get_user_data(call.instance);
  return resource_call_end(&call, status);
}
