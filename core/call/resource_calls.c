/* SPDX-License-Identifier: MIT */
/* resource_calls.c: the public functions of resources of any type: values, actions, trim. A NULL resource is the
 * current device's current resource. */
#include "resource_calls.h"
#include "../base/error.h"
#include "../base/text.h"
#include "../stack/attempt.h"

#include <stdlib.h>
#include <string.h>

static enum hipmm_status resource_call_begin_with(struct hipmm_resource *resource, const void *argument,
                                                  const char *name, bool is_free, struct resource_call *call_out)
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
  return resource_call_begin_with(resource, argument, name, false, call_out);
}

enum hipmm_status resource_call_begin_free(struct hipmm_resource *resource, const void *argument, const char *name,
                                           struct resource_call *call_out)
{
  return resource_call_begin_with(resource, argument, name, true, call_out);
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

enum hipmm_status resource_perform(const struct instance *instance, const char *action, int64_t *values_out,
                                   uint32_t n_values)
{
  size_t row;
  const struct instance *owner = instance_with_action(instance, action, &row);
  if (!owner) return resource_calls_refuse_feature(instance, action, false);
  uint32_t n = owner->node->plugin->descriptor.n_values;
  int64_t *values = calloc(n + 1, sizeof *values);
  if (!values) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  enum hipmm_status status =
      instance_finish_op(owner, owner->resource.ops->perform(owner->resource.self, row, values), "perform");
  if (!status && values_out) memcpy(values_out, values, (n < n_values ? n : n_values) * sizeof *values);
  free(values);
  return status;
}

enum hipmm_status hipmm_resource_perform(struct hipmm_resource *resource, const char *action)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, action, "action", &call);
  return status ? status : resource_call_end(&call, resource_perform(call.instance, action, NULL, 0));
}

enum hipmm_status hipmm_resource_trim(struct hipmm_resource *resource, size_t keep_bytes)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, &call, "", &call);
  if (status) return status;
  CLOSURE_EACH(below, call.instance) {
    enum hipmm_status one =
        instance_finish_op(below, below->resource.ops->trim(below->resource.self, keep_bytes), "trim");
    if (below != call.instance && one == HIPMM_E_STATE && attempt_is_in_program())
      continue;                /* as hipmm_trim() passes it over */
    if (!status) status = one; /* the first failure; the other resources are trimmed all the same */
  }
  return resource_call_end(&call, status);
}
