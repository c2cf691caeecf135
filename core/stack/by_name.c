/* SPDX-License-Identifier: MIT */
/* by_name.c: the resources of a stack that the program asks for by name, in the table of devices and beside it. A resource
 * that no device's top needs is built at the first request. Called by applications. */
#include "../base/text.h"
#include "neighbours.h"
#include "resource_calls.h"

/* Not held while a stack is extended, which may call functions of the program. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t extension_over = PTHREAD_COND_INITIALIZER;

/* Waits until no other thread extends the stack; the lock is held. Refuses the thread that does, in a function of the
 * program. */
static enum hipmm_status by_name_await_builder(const struct stack *stack)
{
  while (stack->is_extending && !pthread_equal(stack->extender, pthread_self()))
    pthread_cond_wait(&extension_over, &lock);
  if (!stack->is_extending) return HIPMM_OK;
  return error_set(HIPMM_E_STATE, "this is called from within the building of a device's stack, which must end first");
}

struct by_name_building {
  struct stack *stack;
  int node;
};

static enum hipmm_status by_name_build_alone(void *building_)
{
  const struct by_name_building *building = building_;
  struct stack *stack = building->stack;
  int node = building->node;
  pthread_mutex_lock(&lock);
  enum hipmm_status status = by_name_await_builder(stack);
  if (!status && !stack->instances[node].created) {
    stack->is_extending = true;
    stack->extender = pthread_self();
    pthread_mutex_unlock(&lock);
    status = stack_extend(stack, node);
    pthread_mutex_lock(&lock);
    stack->is_extending = false;
    pthread_cond_broadcast(&extension_over);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

enum hipmm_status by_name_build(struct stack *stack, int node)
{
  return neighbours_build(by_name_build_alone, &(struct by_name_building){stack, node});
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
  if (!name && !lifecycle_is_barred()) return error_set(HIPMM_E_ARGUMENT, "name is NULL");
  enum hipmm_status status = resource_call_begin(resource, resource_out, "resource_out", &call);
  return status ? status : resource_call_end(&call, by_name_find(call.instance->stack, name, resource_out));
}
