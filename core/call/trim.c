/* SPDX-License-Identifier: MIT */
/* trim.c: trim of a resource, of a device and of all devices, and new peaks. Called by applications between phases of their work. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../stack/attempt.h"
#include "resource_calls.h"

#include <stdlib.h>

/* What a trim of several resources has come to: after a failure the others are trimmed all the same. */
struct trim_result {
  enum hipmm_status first;
  struct error_record failure; /* if `first` is one */
};

/* A capture forbids waits: what needs none is given back all the same, and the failure stays. */
static enum hipmm_status trim_as_allowed(const struct instance *instance, size_t keep_bytes)
{
  enum hipmm_status status = instance->resource.ops->trim(instance->resource.self, keep_bytes);
  this_attempt.holds_back = false; /* what the trim itself allocated in vain is not tried again */
  if (status != HIPMM_E_STATE || this_attempt.reclaim_level) return status;
  const struct error_record failure = error_mark();
  this_attempt.reclaim_level = HIPMM_RECLAIM_IDLE;
  instance->resource.ops->trim(instance->resource.self, keep_bytes);
  this_attempt.reclaim_level = (enum hipmm_reclaim_level)0;
  error_return_to_mark(&failure);
  return status;
}

/* `may_pass`: passes over a resource that a thread is in, maybe this one. */
static void trim_one(const struct instance *instance, size_t keep_bytes, bool may_pass, struct trim_result *result)
{
  const struct error_record before = error_mark();
  enum hipmm_status one = instance_finish_op(instance, trim_as_allowed(instance, keep_bytes), "trim");
  if (may_pass && one == HIPMM_E_STATE && attempt_is_in_program())
    error_return_to_mark(&before);
  else
    error_keep_first(&result->first, &result->failure, one);
}

static enum hipmm_status trim_end(const struct trim_result *result)
{
  if (result->first) error_return_to_mark(&result->failure);
  return result->first;
}

/* The stacks that were built last come first: they may depend on earlier ones, which get what they give back. */
static enum hipmm_status trim_device(int device, size_t keep_bytes)
{
  struct trim_result result = {.first = HIPMM_OK};
  size_t n;
  struct stack **stacks = stack_collect(device, &n);
  if (!stacks) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = n; i-- > 0; stack_unpin(stacks[i])) /* not the closure of the top, which other stacks below are in */
    STACK_EACH(instance, stacks[i]) trim_one(instance, keep_bytes, true, &result);
  free(stacks);
  return trim_end(&result);
}

enum hipmm_status hipmm_resource_trim(struct hipmm_resource *resource, size_t keep_bytes)
{
  struct resource_call call;
  struct trim_result result = {.first = HIPMM_OK};
  enum hipmm_status status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  CLOSURE_EACH(below, call.instance) trim_one(below, keep_bytes, below != call.instance, &result);
  return resource_call_end(&call, trim_end(&result));
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
  struct error_record failure;
  enum hipmm_status first = HIPMM_OK, status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  CLOSURE_EACH(below, call.instance) {
    struct stack *stack = below->stack;
    error_keep_first(&first, &failure, trim_reset_peaks(below)); /* the other peaks are reset all the same */
    atomic_store(&below->peak_held_bytes, atomic_load(&below->held_bytes));
    atomic_store(&stack->peak_held_bytes, atomic_load(&stack->held_bytes));
  }
  if (first) error_return_to_mark(&failure);
  return resource_call_end(&call, first);
}
