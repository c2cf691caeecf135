/* SPDX-License-Identifier: MIT */
/* visits.c: live resources, and their values, options and blocks as C structs. Called by applications. Reads only. */
#include <hipmm/inspect.h>

#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../call/resource_calls.h"
#include "../option/option_value.h"
#include "../stack/instance_options.h"
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

/* Of a stack that the caller has pinned. A visitor may wait for a lock of a thread that finalizes: hipmm_finalize() must not
 * wait for it. So a reference keeps the stack meanwhile, and no pin. */
static void visits_show_stack(struct stack *stack, void (*visitor)(void *arg, struct hipmm_resource *resource),
                              void *arg)
{
  stack_retain(stack);
  stack_unpin(stack);
  STACK_EACH(instance, stack) visitor(arg, &instance->resource);
  stack_pin(stack);
  stack_release(stack);
}

enum hipmm_status hipmm_resource_visit(int device, void (*visitor)(void *arg, struct hipmm_resource *resource),
                                       void *arg)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!visitor) return error_set(HIPMM_E_ARGUMENT, "visitor is NULL");
  enum hipmm_status status = lifecycle_check_runtime();
  if (!status && device >= 0) status = device_table_check(device);
  if (status) return status;
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (device < 0 || stack->device == device) visits_show_stack(stack, visitor, arg);
  return HIPMM_OK;
}

/* Finds a resource whose stack the caller releases: for visitors of its values and options, which may do all that visitors of
 * resources may. */
static enum hipmm_status visits_begin(struct hipmm_resource *resource, struct instance **instance_out)
{
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, instance_out, "", &call);
  if (status) return status;
  *instance_out = call.instance;
  stack_retain(call.instance->stack);
  return resource_call_end(&call, HIPMM_OK);
}

/* ---- Values ---- */

static void visits_show_value(const struct instance *instance, uint32_t row,
                              void (*visitor)(void *arg, const struct hipmm_value *value), void *arg)
{
  const struct hipmm_feature *feature = &instance->node->plugin->descriptor.values[row];
  struct hipmm_value value = {
      .struct_size = sizeof value, .name = feature->name, .unit = feature->unit, .doc = feature->doc};
  const struct error_record before = error_mark();
  value.is_known = !instance->resource.ops->query(instance->resource.self, row, &value.value);
  if (!value.is_known) error_return_to_mark(&before);
  if (!value.is_known) value.value = 0;
  visitor(arg, &value);
}

enum hipmm_status hipmm_resource_visit_values(struct hipmm_resource *resource,
                                              void (*visitor)(void *arg, const struct hipmm_value *value), void *arg)
{
  struct instance *instance = NULL;
  if (!visitor && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "visitor is NULL");
  enum hipmm_status status = visits_begin(resource, &instance);
  if (status) return status;
  uint32_t n = instance->node->plugin->descriptor.n_values;
  for (uint32_t row = 0; row < n; row++) visits_show_value(instance, row, visitor, arg);
  stack_release(instance->stack);
  return HIPMM_OK;
}

/* ---- Options ---- */

/* From the plugin's own struct, in which the option is current. */
static void visits_read_number(const struct hipmm_option *row, const void *options, struct hipmm_option_state *state)
{
  const void *field = (const char *)options + row->offset;
  switch (row->type) {
  case HIPMM_OPTION_BOOL:
  case HIPMM_OPTION_ENUM: state->integer = *(const uint32_t *)field; break;
  case HIPMM_OPTION_INTEGER:
  case HIPMM_OPTION_DURATION: state->integer = *(const int64_t *)field; break;
  case HIPMM_OPTION_BYTES: {
    uint64_t bytes = *(const uint64_t *)field;
    state->integer = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    break;
  }
  case HIPMM_OPTION_RATIO: state->ratio = *(const double *)field; break;
  default: break;
  }
}

/* A string without its quotes, any other value as JSON; NULL for null. The caller frees it. */
static char *visits_text(json_t *value)
{
  if (json_is_null(value)) return NULL;
  return json_is_string(value) ? strdup(json_string_value(value))
                               : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
}

static void visits_show_option(const struct instance *instance, const struct hipmm_option *row,
                               void (*visitor)(void *arg, const struct hipmm_option_state *option), void *arg)
{
  bool given;
  const struct instance_options *set = atomic_load(&instance->options);
  json_t *value = option_copy_current(row, set->object, &given);
  char *text = visits_text(value);
  struct hipmm_option_state state = {.struct_size = sizeof state,
                                     .name = row->name,
                                     .type = option_type_name(row->type),
                                     .unit = row->unit,
                                     .doc = row->doc,
                                     .text = text,
                                     .is_default = !given,
                                     .is_reloadable = (row->flags & HIPMM_OPTION_RELOADABLE) != 0};
  visits_read_number(row, set->options, &state);
  visitor(arg, &state);
  free(text);
  json_decref(value);
}

enum hipmm_status hipmm_resource_visit_options(struct hipmm_resource *resource,
                                               void (*visitor)(void *arg, const struct hipmm_option_state *option),
                                               void *arg)
{
  struct instance *instance = NULL;
  if (!visitor && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "visitor is NULL");
  enum hipmm_status status = visits_begin(resource, &instance);
  if (status) return status;
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  for (uint32_t i = 0; i < plugin->n_options; i++) visits_show_option(instance, &plugin->options[i], visitor, arg);
  stack_release(instance->stack);
  return HIPMM_OK;
}

/* ---- Blocks ---- */

struct visits_blocks {
  void (*visitor)(void *arg, const struct hipmm_extent *extent);
  void *arg;
};

static void visits_show_block(void *closure, const struct hipmm_block *block)
{
  const struct visits_blocks *blocks = closure;
  const struct hipmm_extent extent = {
      .ptr = block->ptr, .bytes = block->bytes, .state = HIPMM_EXTENT_LIVE, .flags = HIPMM_EXTENT_BARRIER};
  blocks->visitor(blocks->arg, &extent);
}

/* What the resource shows by itself; of a source that shows nothing, its block map. */
enum hipmm_status hipmm_resource_visit_blocks(struct hipmm_resource *resource,
                                              void (*visitor)(void *arg, const struct hipmm_extent *extent), void *arg)
{
  struct resource_call call;
  struct visits_blocks blocks = {visitor, arg};
  if (!visitor && !lifecycle_refuses_calls()) return error_set(HIPMM_E_ARGUMENT, "visitor is NULL");
  enum hipmm_status status = resource_call_begin(resource, "", NULL, &call);
  if (status) return status;
  const char *outer = lifecycle_forbid_reentry("a visitor of blocks"); /* under locks of the resource */
  status = instance_finish_op(call.instance,
                              call.instance->resource.ops->visit(call.instance->resource.self, visitor, arg), "visit");
  if (!status) block_map_visit(&call.instance->block_map, visits_show_block, &blocks);
  lifecycle_allow_reentry(outer);
  return resource_call_end(&call, status);
}
