/* SPDX-License-Identifier: MIT */
/* current.c: the public functions over the table of devices: the current resource, and facts of devices. Called by
 * applications. Each call is counted (lifecycle.h), so that hipmm_finalize() waits for it. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "device_table.h"

static enum hipmm_status current_leave(enum hipmm_status status)
{
  lifecycle_leave();
  return status;
}

/* The resource of a device, or of the current one for NULL. The caller owns a reference to it. */
static enum hipmm_status current_get(const int *device, struct hipmm_resource **resource_out)
{
  struct hipmm_resource *resource = NULL;
  enum hipmm_status status = lifecycle_check_argument(resource_out, "resource_out");
  if (!status) status = lifecycle_enter();
  if (status) return status;
  status = device ? device_table_resource(*device, &resource) : device_table_current_resource(&resource);
  if (!status) hipmm_resource_retain(resource);
  if (!status) *resource_out = resource;
  return current_leave(status);
}

enum hipmm_status hipmm_resource_get_for_device(int device, struct hipmm_resource **resource_out)
{
  return current_get(&device, resource_out);
}

enum hipmm_status hipmm_resource_get_current(struct hipmm_resource **resource_out)
{
  return current_get(NULL, resource_out);
}

enum hipmm_status hipmm_resource_set_for_device(int device, struct hipmm_resource *resource,
                                                struct hipmm_resource **previous_out)
{
  enum hipmm_status status = lifecycle_enter();
  return status ? status : current_leave(device_table_set_resource(device, resource, previous_out));
}

enum hipmm_status hipmm_resource_set_current(struct hipmm_resource *resource, struct hipmm_resource **previous_out)
{
  int device = 0;
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_current(&device);
  return current_leave(status ? status : device_table_set_resource(device, resource, previous_out));
}

enum hipmm_status hipmm_resource_reset_for_device(int device)
{
  return hipmm_resource_set_for_device(device, NULL, NULL);
}

enum hipmm_status hipmm_resource_reset_current(void)
{
  return hipmm_resource_set_current(NULL, NULL);
}

enum hipmm_status hipmm_device_count(int *count_out)
{
  enum hipmm_status status = lifecycle_check_use(count_out, "count_out");
  if (!status) *count_out = device_table_count();
  return status;
}

enum hipmm_status hipmm_device_current(int *device_out)
{
  enum hipmm_status status = lifecycle_check_use(device_out, "device_out");
  return status ? status : device_table_current(device_out);
}

enum hipmm_status hipmm_device_held_bytes(int device, size_t *now_out, size_t *peak_out)
{
  struct stack *stack;
  enum hipmm_status status = lifecycle_enter();
  if (status) return status;
  status = device_table_stack(device, &stack);
  if (!status && now_out) *now_out = (size_t)stack_held_bytes(stack);
  if (!status && peak_out) *peak_out = (size_t)atomic_load(&stack->peak_held_bytes);
  return current_leave(status);
}
