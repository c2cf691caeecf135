/* SPDX-License-Identifier: MIT */
/* upkeep.c: trim of a device and of all devices, and new peaks. Called by applications between phases of their work. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "attempt.h"
#include "resource_calls.h"

#include <stdlib.h>
#include <string.h>

/* From the top down. Not hipmm_resource_trim() of the top, which would also trim other stacks below. */
static enum hipmm_status upkeep_trim_stack(const struct stack *stack, size_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  for (size_t i = stack->graph->n_nodes; i-- > 0;) {
    const struct instance *instance = &stack->instances[i];
    if (!instance->created) continue;
    enum hipmm_status one =
        instance_finish_op(instance, instance->resource.ops->trim(instance->resource.self, keep_bytes), "trim");
    if (one == HIPMM_E_STATE && attempt_is_in_program()) continue; /* a thread is in it, maybe this one */
    if (!first) first = one;                                       /* the other resources are trimmed all the same */
  }
  return first;
}

/* The stacks that were built last come first: they may stand on earlier ones, which get what they give back. */
static enum hipmm_status upkeep_trim(int device, size_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  size_t n;
  struct stack **stacks = stack_collect(device, &n);
  if (!stacks) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = n; i-- > 0;) {
    enum hipmm_status one = upkeep_trim_stack(stacks[i], keep_bytes);
    if (!first) first = one;
    stack_unpin(stacks[i]);
  }
  free(stacks);
  return first;
}

enum hipmm_status hipmm_device_trim(int device, size_t keep_bytes)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  return status ? status : upkeep_trim(device, keep_bytes);
}

enum hipmm_status hipmm_trim(size_t keep_bytes)
{
  enum hipmm_status status = lifecycle_check_runtime();
  return status ? status : upkeep_trim(STACK_ALL_DEVICES, keep_bytes);
}

/* ---- Peaks ---- */

static enum hipmm_status upkeep_reset_peaks(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  for (uint32_t row = 0; row < plugin->n_actions; row++) {
    if (strcmp(plugin->actions[row].name, "reset_peaks")) continue;
    int64_t *values = calloc(plugin->n_values + 1, sizeof *values);
    if (!values) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
    enum hipmm_status status =
        instance_finish_op(instance, instance->resource.ops->perform(instance->resource.self, row, values), "perform");
    free(values);
    return status;
  }
  return HIPMM_OK;
}

enum hipmm_status hipmm_resource_reset_peaks(struct hipmm_resource *resource)
{
  struct resource_call call;
  enum hipmm_status first = HIPMM_OK, status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  const struct instance_links *links = links_of(call.instance);
  for (size_t i = 0; i < links->n_closure; i++) {
    struct instance *below = links->closure[i];
    struct stack *stack = below->stack;
    enum hipmm_status one = upkeep_reset_peaks(below);
    if (!first) first = one; /* the other peaks are reset all the same */
    atomic_store(&below->peak_held_bytes, atomic_load(&below->held_bytes));
    atomic_store(&stack->peak_held_bytes, atomic_load(&stack->held_bytes));
  }
  return resource_call_end(&call, first);
}
