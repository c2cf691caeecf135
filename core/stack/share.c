/* SPDX-License-Identifier: MIT */
/* share.c: the functions of hipmm/share.h. The resource that offers ops->sharing does the work. */
#include <hipmm/share.h>

#include "../base/error.h"
#include "resource_calls.h"

#include <stdio.h>

/* The nearest resource, from this one down, that shares its memory. */
static enum hipmm_status share_find_owner(const struct instance *top, const struct instance **owner_out)
{
  const struct instance *found = NULL;
  for (size_t i = 0; !found && i < top->n_closure; i++)
    if (top->closure[i]->resource.ops->sharing) found = top->closure[i];
  if (!found)
    return error_set(HIPMM_E_NOT_SUPPORTED,
                     "%s: neither it nor a resource below it shares memory with other processes; use async with "
                     "\"handle_type\": \"posix_fd\"",
                     top->node->name);
  *owner_out = found;
  return HIPMM_OK;
}

enum hipmm_status hipmm_share_export_fd(struct hipmm_resource *resource, int *fd_out)
{
  struct resource_call call;
  const struct instance *owner = NULL;
  enum hipmm_status status = resource_call_begin(resource, fd_out, "fd_out", &call);
  if (status) return status;
  status = share_find_owner(call.instance, &owner);
  if (!status) status = owner->resource.ops->sharing->export_fd(owner->resource.self, fd_out);
  return resource_call_end(&call, status);
}

/* Refuses memory of the owner that another resource of the stack has allocated. */
static enum hipmm_status share_check_not_cut_up(const struct stack *stack, const struct instance *owner,
                                                const void *ptr)
{
  for (size_t i = 0; i < stack->graph->n_nodes; i++) {
    const struct instance *instance = &stack->instances[i];
    if (!instance->created || !instance_stands_on(instance, owner)) continue;
    if (!instance->resource.ops->covers(instance->resource.self, ptr)) continue;
    return error_set(HIPMM_E_POINTER,
                     "%p is in a chunk that %s cuts up, which can only be exported as a whole; allocate what is to be "
                     "exported from %s",
                     ptr, instance->node->name, owner->node->name);
  }
  return HIPMM_OK;
}

/* Refuses a block of any resource that cuts up the owner's memory, in any stack. */
static enum hipmm_status share_check_exportable(const struct instance *top, const struct instance *owner,
                                                const void *ptr)
{
  struct hipmm_block block;
  enum hipmm_status status = instance_find(top, ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED) status = HIPMM_OK; /* the owner can tell */
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (!status) status = share_check_not_cut_up(stack, owner, ptr);
  return status;
}

enum hipmm_status hipmm_share_export_pointer(struct hipmm_resource *resource, const void *ptr,
                                             struct hipmm_share_pointer *pointer_out)
{
  struct resource_call call;
  const struct instance *owner = NULL;
  if (!ptr && !lifecycle_is_barred()) return error_set(HIPMM_E_ARGUMENT, "ptr is NULL");
  enum hipmm_status status = resource_call_begin(resource, pointer_out, "pointer_out", &call);
  if (status) return status;
  status = share_find_owner(call.instance, &owner);
  if (!status) status = share_check_exportable(call.instance, owner, ptr);
  if (!status) status = owner->resource.ops->sharing->export_pointer(owner->resource.self, ptr, pointer_out);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_share_import_pointer(struct hipmm_resource *resource, const struct hipmm_share_pointer *pointer,
                                             void **ptr_out)
{
  struct resource_call call;
  const struct instance *owner = NULL;
  if (!pointer && !lifecycle_is_barred()) return error_set(HIPMM_E_ARGUMENT, "pointer is NULL");
  enum hipmm_status status = resource_call_begin(resource, ptr_out, "ptr_out", &call);
  if (status) return status;
  status = share_find_owner(call.instance, &owner);
  if (!status) status = owner->resource.ops->sharing->import_pointer(owner->resource.self, pointer, ptr_out);
  return resource_call_end(&call, status);
}

enum hipmm_status hipmm_share_import_fd(int device, int fd, struct hipmm_resource **resource_out)
{
  char options[40];
  enum hipmm_status status = lifecycle_check_argument(resource_out, "resource_out");
  if (!status && fd < 0) status = error_set(HIPMM_E_ARGUMENT, "fd %d is no file descriptor", fd);
  if (status) return status;
  snprintf(options, sizeof options, "{\"fd\": %d}", fd);
  return hipmm_resource_create(device, "async_import", options, NULL, 0, resource_out);
}
