/* SPDX-License-Identifier: MIT */
/* resource_calls.c: the public functions that a resource of any type has: values, actions, upstreams, access, the
 * driver's pool, and the program's own pointer. A NULL resource is the current device's current resource. */
#include <hipmm/inspect.h>

#include "../base/error.h"
#include "../base/text.h"
#include "resource_calls.h"

#include <stdlib.h>
#include <string.h>

enum hipmm_status resource_call_begin_as(struct hipmm_resource *resource, const void *argument, const char *name,
                                         bool is_free, struct resource_call *call_out)
{
  struct resource_call call = {.instance = NULL};
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!argument) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  enum hipmm_status status = resource  ? resource_check(resource)
                             : is_free ? device_table_enter_free(&resource, &call.thread)
                                       : device_table_enter_call(&resource, &call.thread);
  if (status) return status;
  call.instance = instance_from(resource);
  *call_out = call;
  return HIPMM_OK;
}

enum hipmm_status resource_call_begin(struct hipmm_resource *resource, const void *argument, const char *name,
                                      struct resource_call *call_out)
{
  return resource_call_begin_as(resource, argument, name, false, call_out);
}

enum hipmm_status resource_call_end(const struct resource_call *call, enum hipmm_status status)
{
  if (call->thread) lifecycle_leave_thread(call->thread);
  return status;
}

/* Features are `values` or actions. */
static enum hipmm_status resource_calls_refuse_feature(const struct instance *top, const char *name, bool values)
{
  char hint[TEXT_HINT_BYTES];
  struct text_near near = text_near(name);
  CLOSURE_EACH(one, top) {
    const struct hipmm_plugin *plugin = &one->node->plugin->descriptor;
    const struct hipmm_feature *features = values ? plugin->values : plugin->actions;
    uint32_t n = values ? plugin->n_values : plugin->n_actions;
    for (uint32_t row = 0; row < n; row++) text_near_try(&near, features[row].name);
  }
  return error_set(HIPMM_E_ARGUMENT, "%s: neither it nor a resource below it offers %s called \"%.100s\"%s",
                   top->node->name, values ? "a value" : "an action", name, text_hint(near.name, hint, sizeof hint));
}

enum hipmm_status hipmm_resource_query(struct hipmm_resource *resource, const char *name, int64_t *value_out)
{
  size_t row;
  struct resource_call call;
  if (!name && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "name is NULL");
  enum hipmm_status status = resource_call_begin(resource, value_out, "value_out", &call);
  if (status) return status;
  const struct instance *owner = instance_with_value(call.instance, name, &row);
  status = owner ? instance_finish_op(owner, owner->resource.ops->query(owner->resource.self, row, value_out), "query")
                 : resource_calls_refuse_feature(call.instance, name, true);
  return resource_call_end(&call, status);
}

enum hipmm_status resource_perform_row(const struct instance *owner, size_t row, int64_t *values_out, uint32_t n_values)
{
  uint32_t n = owner->node->plugin->descriptor.n_values;
  int64_t *values = calloc(n + 1, sizeof *values);
  if (!values) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  enum hipmm_status status =
      instance_finish_op(owner, owner->resource.ops->perform(owner->resource.self, row, values), "perform");
  if (!status && values_out) memcpy(values_out, values, (n < n_values ? n : n_values) * sizeof *values);
  free(values);
  return status;
}

enum hipmm_status resource_perform(const struct instance *instance, const char *action, int64_t *values_out,
                                   uint32_t n_values)
{
  size_t row;
  const struct instance *owner = instance_with_action(instance, action, &row);
  return owner ? resource_perform_row(owner, row, values_out, n_values)
               : resource_calls_refuse_feature(instance, action, false);
}

enum hipmm_status hipmm_resource_perform(struct hipmm_resource *resource, const char *action)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, action, "action", &call);
  return status ? status : resource_call_end(&call, resource_perform(call.instance, action, NULL, 0));
}

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
    status = instance_finish_op(owner, owner->resource.ops->query(owner->resource.self, row, &handle), "query");
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
