/* SPDX-License-Identifier: MIT */
/* trim.c: trim of a device and of all devices, and new peaks. Called by applications between phases of their work. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../stack/attempt.h"
#include "resource_calls.h"

#include <stdlib.h>

/* From the top down. Not hipmm_resource_trim() of the top, which would also trim other stacks below. */
static enum hipmm_status trim_stack(const struct stack *stack, size_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  STACK_EACH(instance, stack) {
    const struct error_record before = error_mark();
    enum hipmm_status one =
        instance_finish_op(instance, instance->resource.ops->trim(instance->resource.self, keep_bytes), "trim");
    if (one == HIPMM_E_STATE && attempt_is_in_program()) /* a thread is in it, maybe this one */
      error_return_to_mark(&before);
    else
      error_keep_first(&first, one, &before); /* the other resources are trimmed all the same */
  }
  return first;
}

/* The stacks that were built last come first: they may depend on earlier ones, which get what they give back. */
static enum hipmm_status trim_device(int device, size_t keep_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  size_t n;
  struct stack **stacks = stack_collect(device, &n);
  if (!stacks) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = n; i-- > 0;) {
    const struct error_record before = error_mark();
    error_keep_first(&first, trim_stack(stacks[i], keep_bytes), &before);
    stack_unpin(stacks[i]);
  }
  free(stacks);
  return first;
}

enum hipmm_status hipmm_device_trim(int device, size_t keep_bytes)
{
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status) status = device_table_check(device);
  return status ? status : trim_device(device, keep_bytes);
}

enum hipmm_status hipmm_trim(size_t keep_bytes)
{
  enum hipmm_status status = lifecycle_check_runtime();
  return status ? status : trim_device(STACK_ALL_DEVICES, keep_bytes);
}

/* ---- Peaks ---- */

static enum hipmm_status trim_reset_peaks(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  uint32_t row = descriptor_row(plugin->actions, plugin->n_actions, "reset_peaks");
  return row < plugin->n_actions ? resource_perform_row(instance, row, NULL, 0) : HIPMM_OK;
}

enum hipmm_status hipmm_resource_reset_peaks(struct hipmm_resource *resource)
{
  struct resource_call call;
  enum hipmm_status first = HIPMM_OK, status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  CLOSURE_EACH(below, call.instance) {
    struct stack *stack = below->stack;
    const struct error_record before = error_mark();
    error_keep_first(&first, trim_reset_peaks(below), &before); /* the other peaks are reset all the same */
    atomic_store(&below->peak_held_bytes, atomic_load(&below->held_bytes));
    atomic_store(&stack->peak_held_bytes, atomic_load(&stack->held_bytes));
  }
  return resource_call_end(&call, first);
}
