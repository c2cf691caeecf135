/* SPDX-License-Identifier: MIT */
/* resource_calls.c: the beginning and the end of a call on a resource. */
#include "resource_calls.h"
#include "../base/error.h"

enum hipmm_status resource_call_begin(struct hipmm_resource *resource, const void *argument, const char *name,
                                      struct resource_call *call_out)
{
  struct resource_call call = {instance_from(resource), NULL};
  if (lifecycle_is_barred()) return lifecycle_check();
  if (!argument) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  if (!resource) {
    call.thread = lifecycle_enter_here();
    if (!call.thread) return HIPMM_E_STATE;
    enum hipmm_status status = device_table_current_resource(&resource);
    if (status) return resource_call_end(&call, status);
    call.instance = instance_from(resource);
  }
  *call_out = call;
  return HIPMM_OK;
}

enum hipmm_status resource_call_end(const struct resource_call *call, enum hipmm_status status)
{
  if (call->thread) lifecycle_leave_here(call->thread);
  return status;
}
