/* SPDX-License-Identifier: MIT */
/* share.c: the functions of hipmm/share.h. The resource that offers ops->sharing does the work. */
#include <hipmm/share.h>

#include "../base/error.h"
#include "../base/lifecycle.h"
#include "stack.h"

#include <stdio.h>

/* The nearest resource, from this one down, that shares its memory. */
static enum hipmm_status share_find_owner(const struct hipmm_resource *resource, const struct instance **owner_out)
{
  const struct instance *top = instance_from(resource), *found = NULL;
  for (size_t i = 0; !found && i < top->n_closure; i++)
    if (top->closure[i]->resource.ops->sharing) found = top->closure[i];
  if (!found)
    return error_set(HIPMM_E_NOT_SUPPORTED,
                     "%s: neither it nor a resource below it shares memory with other processes; use async with "
                     "\"handle_type\": \"posix_fd\"",
                     hipmm_resource_name(resource));
  *owner_out = found;
  return HIPMM_OK;
}

enum hipmm_status hipmm_share_export_fd(struct hipmm_resource *resource, int *fd_out)
{
  const struct instance *owner = NULL;
  enum hipmm_status status = lifecycle_check_held(resource, fd_out, "fd_out");
  if (!status) status = share_find_owner(resource, &owner);
  return status ? status : owner->resource.ops->sharing->export_fd(owner->resource.self, fd_out);
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
static enum hipmm_status share_check_exportable(const struct hipmm_resource *resource, const struct instance *owner,
                                                const void *ptr)
{
  struct hipmm_block block;
  enum hipmm_status status = instance_find(instance_from(resource), ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED) status = HIPMM_OK; /* the owner can tell */
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (!status) status = share_check_not_cut_up(stack, owner, ptr);
  return status;
}

enum hipmm_status hipmm_share_export_pointer(struct hipmm_resource *resource, const void *ptr,
                                             struct hipmm_share_pointer *pointer_out)
{
  const struct instance *owner = NULL;
  enum hipmm_status status = lifecycle_check_held(resource, ptr, "ptr");
  if (!status) status = lifecycle_check_held(resource, pointer_out, "pointer_out");
  if (!status) status = share_find_owner(resource, &owner);
  if (!status) status = share_check_exportable(resource, owner, ptr);
  return status ? status : owner->resource.ops->sharing->export_pointer(owner->resource.self, ptr, pointer_out);
}

enum hipmm_status hipmm_share_import_pointer(struct hipmm_resource *resource, const struct hipmm_share_pointer *pointer,
                                             void **ptr_out)
{
  const struct instance *owner = NULL;
  enum hipmm_status status = lifecycle_check_held(resource, pointer, "pointer");
  if (!status) status = lifecycle_check_held(resource, ptr_out, "ptr_out");
  if (!status) status = share_find_owner(resource, &owner);
  return status ? status : owner->resource.ops->sharing->import_pointer(owner->resource.self, pointer, ptr_out);
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
