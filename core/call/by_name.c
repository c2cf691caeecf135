/* SPDX-License-Identifier: MIT */
/* by_name.c: the resources of a stack that the program asks for by name, in the table of devices and beside it. A resource
 * that no device's top needs is built at the first request. Called by applications. */
#include "../base/text.h"
#include "../reclaim/reclaim.h"
#include "resource_calls.h"

struct by_name_building {
  struct stack *stack;
  int node;
};

static enum hipmm_status by_name_extend(void *building_)
{
  const struct by_name_building *building = building_;
  return building->stack->instances[building->node].created ? HIPMM_OK : stack_extend(building->stack, building->node);
}

static enum hipmm_status by_name_build_alone(void *building)
{
  struct stack *stack = ((const struct by_name_building *)building)->stack;
  return device_table_build_alone(&stack->extension, by_name_extend, building);
}

enum hipmm_status by_name_build(struct stack *stack, int node)
{
  return reclaim_build(by_name_build_alone, &(struct by_name_building){stack, node});
}

static enum hipmm_status by_name_find(struct stack *stack, const char *name, struct hipmm_resource **resource_out)
{
  const char *nearest = NULL;
  char hint[TEXT_HINT_BYTES];
  enum hipmm_status status = HIPMM_OK;
  struct instance *instance = stack_find(stack, name, &nearest);
  int node = instance ? -1 : graph_find(stack->graph, name);
  if (node >= 0 && stack->graph->nodes[node].is_by_name) {
    status = by_name_build(stack, node);
    instance = &stack->instances[node];
  }
  if (status) return status;
  if (!instance)
    return error_set(HIPMM_E_ARGUMENT, "%s: the stack of device %d has no resource called \"%.100s\"%s",
                     stack->graph->source, stack->device, name, text_hint(nearest, hint, sizeof hint));
  hipmm_resource_retain(&instance->resource);
  *resource_out = &instance->resource;
  return HIPMM_OK;
}

enum hipmm_status hipmm_resource_get_by_name(int device, const char *name, struct hipmm_resource **resource_out)
{
  struct stack *stack;
  enum hipmm_status status = lifecycle_check_argument(resource_out, "resource_out");
  if (!status) status = lifecycle_check_argument(name, "name");
  if (!status) status = lifecycle_enter();
  if (status) return status;
  status = device_table_stack(device, &stack);
  if (!status) status = by_name_find(stack, name, resource_out);
  lifecycle_leave();
  return status;
}

enum hipmm_status hipmm_stack_get_by_name(struct hipmm_resource *resource, const char *name,
                                          struct hipmm_resource **resource_out)
{
  struct resource_call call;
  if (!name && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "name is NULL");
  enum hipmm_status status = resource_call_begin(resource, resource_out, "resource_out", &call);
  return status ? status : resource_call_end(&call, by_name_find(call.instance->stack, name, resource_out));
}
