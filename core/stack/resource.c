/* SPDX-License-Identifier: MIT */
/* resource.c: the public functions on a resource that the caller holds: references, names, values, actions, trim. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/log.h"
#include "../base/text.h"
#include "../base/units.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hipmm_resource_retain(struct hipmm_resource *resource)
{
  if (!resource) return;
  atomic_fetch_add_explicit(&instance_from(resource)->references, 1, memory_order_relaxed);
  stack_retain(instance_from(resource)->stack);
}

/* In a fork's child the stack must not be destroyed: its threads and its driver are the parent's. */
void hipmm_resource_release(struct hipmm_resource *resource)
{
  if (!resource || lifecycle_is_forked()) return;
  atomic_fetch_sub_explicit(&instance_from(resource)->references, 1, memory_order_relaxed);
  stack_release(instance_from(resource)->stack);
}

/* "pool (2 references), device (1 reference)". Some of the `all` references may be those of containers and of resources
 * above. */
static void resource_list_held(const struct stack *stack, unsigned all, char *text, size_t bytes)
{
  size_t used = 0;
  for (size_t i = stack->graph->n_nodes; i-- > 0;) {
    unsigned held = atomic_load_explicit(&stack->instances[i].references, memory_order_relaxed);
    if (!held || used >= bytes) continue;
    used += (size_t)snprintf(text + used, bytes - used, "%s%s (%u reference%s)", used ? ", " : "",
                             stack->graph->nodes[i].name, held, held == 1 ? "" : "s");
    all -= held < all ? held : all;
  }
  if (all && used < bytes)
    snprintf(text + used, bytes - used, "%s%s (by containers or by resources above it)", used ? ", " : "",
             stack->graph->nodes[stack->top].name);
}

void resource_warn_of_held(void)
{
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) {
    char list[1024] = "", bytes[32];
    resource_list_held(stack, atomic_load(&stack->references) - 1 /* our own */, list, sizeof list);
    log_line(HIPMM_LOG_WARNING, "finalize",
             "device %d: still held: %s; %s of device memory stay with it until the last "
             "reference is released",
             stack->device, list, units_format_bytes((uint64_t)atomic_load(&stack->held_bytes), bytes, sizeof bytes));
  }
}

const char *hipmm_resource_name(const struct hipmm_resource *resource)
{
  return resource ? instance_from(resource)->node->name : NULL;
}

const char *hipmm_resource_type(const struct hipmm_resource *resource)
{
  return resource ? instance_from(resource)->node->plugin->descriptor.type : NULL;
}

int hipmm_resource_device(const struct hipmm_resource *resource)
{
  return resource ? instance_from(resource)->stack->device : -1;
}

/* Features are `values` or actions. */
static enum hipmm_status resource_refuse_feature(const struct hipmm_resource *resource, const char *name, bool values)
{
  char hint[TEXT_HINT_BYTES];
  struct text_near near = text_near(name);
  const struct instance *top = instance_from(resource);
  for (size_t i = 0; i < top->n_closure; i++) {
    const struct hipmm_plugin *plugin = &top->closure[i]->node->plugin->descriptor;
    const struct hipmm_feature *features = values ? plugin->values : plugin->actions;
    uint32_t n = values ? plugin->n_values : plugin->n_actions;
    for (uint32_t row = 0; row < n; row++) text_near_try(&near, features[row].name);
  }
  return error_set(HIPMM_E_ARGUMENT, "%s: neither it nor a resource below it offers %s called \"%.100s\"%s",
                   hipmm_resource_name(resource), values ? "a value" : "an action", name,
                   text_hint(near.name, hint, sizeof hint));
}

enum hipmm_status hipmm_resource_query(struct hipmm_resource *resource, const char *name, int64_t *value_out)
{
  size_t row;
  enum hipmm_status status = lifecycle_check_held(resource, value_out, "value_out");
  if (!status) status = lifecycle_check_held(resource, name, "name");
  if (status) return status;
  const struct instance *owner = instance_with_value(instance_from(resource), name, &row);
  if (!owner) return resource_refuse_feature(resource, name, true);
  return instance_finish_op(owner, owner->resource.ops->query(owner->resource.self, row, value_out), "query");
}

enum hipmm_status resource_perform(struct hipmm_resource *resource, const char *action, int64_t *values_out,
                                   uint32_t n_values)
{
  size_t row;
  const struct instance *owner = instance_with_action(instance_from(resource), action, &row);
  if (!owner) return resource_refuse_feature(resource, action, false);
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
  enum hipmm_status status = lifecycle_check_held(resource, action, "action");
  return status ? status : resource_perform(resource, action, NULL, 0);
}

enum hipmm_status hipmm_resource_trim(struct hipmm_resource *resource, size_t keep_bytes)
{
  enum hipmm_status status = lifecycle_check_held(resource, resource, "resource");
  const struct instance *top = status ? NULL : instance_from(resource);
  for (size_t i = 0; top && i < top->n_closure; i++) {
    const struct hipmm_resource *below = &top->closure[i]->resource;
    enum hipmm_status one = instance_finish_op(top->closure[i], below->ops->trim(below->self, keep_bytes), "trim");
    if (!status) status = one; /* the first failure; the other resources are trimmed all the same */
  }
  return status;
}
