/* SPDX-License-Identifier: MIT */
/* path.c: from paths to live resources and back. Called by settings.c, values.c and snapshot.c; builds nothing. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"
#include "../call/device_table.h"
#include "../option/option.h"
#include "inspect.h"

#include <stdio.h>
#include <string.h>

const struct hipmm_feature path_device_values[] = {
    {"held_bytes", "bytes", "Held from the runtime by all sources of the device's stack"},
    {"peak_held_bytes", "bytes", "The most that they held at once"},
};

int64_t path_device_value(const struct stack *stack, size_t row)
{
  return row ? atomic_load(&stack->peak_held_bytes) : stack_held_bytes(stack);
}

/* Names the nearest thing that exists, if one is near. `what` is the kind of thing. */
static enum hipmm_status path_refuse(const char *path, const char *what, const char *name, const char *nearest)
{
  char shown[TEXT_QUOTE_BYTES], hint[TEXT_HINT_BYTES];
  return error_set(HIPMM_E_ARGUMENT, "%.300s: there is no %s %s%s", path, what, text_quote(name, shown, sizeof shown),
                   text_hint(nearest, hint, sizeof hint));
}

/* Copies the part before the next slash, and moves behind the slash. False at the last part of a path. */
static bool path_next_part(const char **rest, char *part, size_t bytes)
{
  size_t length = strcspn(*rest, "/");
  snprintf(part, bytes, "%.*s", (int)(length < bytes ? length : bytes - 1), *rest);
  if (!(*rest)[length]) return false;
  *rest += length + 1;
  return true;
}

/* On success the call is entered: what the resource calls may enter too, while hipmm_finalize() waits. */
static enum hipmm_status path_find_device(const char *path, const char *part, struct path *target)
{
  int device = 0;
  if (!text_parse_ordinal(part, &device)) return path_refuse(path, "device", part, NULL);
  enum hipmm_status status = device_table_check(device);
  if (status) return status;
  status = lifecycle_enter();
  if (status) return status;
  target->stack = device_table_stack_if_built(device);
  target->is_entered = target->stack && stack_pin(target->stack);
  if (target->is_entered) return HIPMM_OK;
  lifecycle_leave();
  return error_set(HIPMM_E_STATE,
                   "%.300s: the stack of device %d is not built yet; allocate from it, or get its resource", path,
                   device);
}

static enum hipmm_status path_refuse_resource(const char *path, const char *name, const struct stack *stack,
                                              const char *nearest)
{
  int node = graph_find(stack->graph, name);
  if (node < 0 || !stack->graph->nodes[node].is_by_name) return path_refuse(path, "resource", name, nearest);
  return error_set(HIPMM_E_STATE, "%.300s: %.100s is not built yet; get it with %s()", path, name,
                   stack->external.is_whole ? "hipmm_stack_get_by_name" : "hipmm_resource_get_by_name");
}

static enum hipmm_status path_refuse_form(const char *path)
{
  return error_set(HIPMM_E_ARGUMENT,
                   "\"%.300s\" is not a path; write \"devices/0/pool/reserved_bytes\" or "
                   "\"created/pool/reserved_bytes\"; hipmm_list() gives all paths",
                   path);
}

/* `shown` is the path in messages. */
static enum hipmm_status path_resolve(const char *path, const char *shown, struct path *target_out)
{
  char root[16], part[PATH_BYTES];
  struct path target = {0};
  const char *rest = path, *nearest = NULL;
  enum hipmm_status status = HIPMM_OK;
  bool is_path = path_next_part(&rest, root, sizeof root) && path_next_part(&rest, part, sizeof part);
  bool is_device = is_path && !strcmp(root, "devices");
  if (!is_device && (!is_path || strcmp(root, "created"))) return path_refuse_form(shown);
  if (is_device)
    status = path_find_device(shown, part, &target);
  else if (!(target.stack = stack_named_pinned(part)))
    status = path_refuse(shown, "created resource", part, NULL);
  if (status) return status;
  if (!is_device && !target.stack->external.is_whole)
    target.instance = &target.stack->instances[0];
  else if (path_next_part(&rest, part, sizeof part) && !(target.instance = stack_find(target.stack, part, &nearest)))
    status = path_refuse_resource(shown, part, target.stack, nearest);
  target.name = rest;
  if (!status && (!*rest || strchr(rest, '/'))) status = path_refuse_form(shown);
  if (status)
    path_release(&target);
  else
    *target_out = target;
  return status;
}

enum hipmm_status path_find(const char *path, struct path *target_out)
{
  return path_resolve(path, path, target_out);
}

enum hipmm_status path_find_resource(const char *path, struct path *target_out)
{
  char longer[2 * PATH_BYTES];
  int length = snprintf(longer, sizeof longer, "%s/-", path);
  return length >= 0 && (size_t)length < sizeof longer ? path_resolve(longer, path, target_out)
                                                       : path_refuse_form(path);
}

void path_release(const struct path *target)
{
  stack_unpin(target->stack);
  if (target->is_entered) lifecycle_leave();
}

const char *path_of(const struct instance *instance, char *buffer, size_t bytes)
{
  const struct stack *stack = instance->stack;
  buffer[0] = '\0';
  if (stack->entry.name && stack->external.is_whole)
    snprintf(buffer, bytes, "created/%s/%s", stack->entry.name, instance->node->name);
  else if (stack->entry.name)
    snprintf(buffer, bytes, "created/%s", stack->entry.name);
  else if (device_table_stack_if_built(stack->device) == stack)
    snprintf(buffer, bytes, "devices/%d/%s", stack->device, instance->node->name);
  return buffer;
}

/* ---- Values ---- */

/* `plugin`: NULL for a device as a whole. The caller may have meant an option. */
static enum hipmm_status path_refuse_value(const char *path, const char *name, const struct hipmm_feature *values,
                                           uint32_t n, const struct hipmm_plugin *plugin)
{
  char shown[TEXT_QUOTE_BYTES], hint[TEXT_HINT_BYTES];
  struct text_near near = text_near(name);
  if (plugin && option_find(plugin->options, plugin->n_options, name))
    return error_set(HIPMM_E_ARGUMENT, "%.300s: %s is an option, not a value; hipmm_get() reads it", path, name);
  for (uint32_t i = 0; i < n; i++) text_near_try(&near, values[i].name);
  for (uint32_t i = 0; plugin && i < plugin->n_options; i++) text_near_try(&near, plugin->options[i].name);
  return error_set(HIPMM_E_ARGUMENT, "%.300s: there is no value %s here%s", path, text_quote(name, shown, sizeof shown),
                   text_hint(near.name, hint, sizeof hint));
}

const struct hipmm_option *path_option(const struct path *target)
{
  const struct hipmm_plugin *plugin = target->instance ? &target->instance->node->plugin->descriptor : NULL;
  return plugin ? option_find(plugin->options, plugin->n_options, target->name) : NULL;
}

enum hipmm_status path_read(const struct path *target, const char *path, int64_t *value_out)
{
  const struct hipmm_plugin *plugin = target->instance ? &target->instance->node->plugin->descriptor : NULL;
  const struct hipmm_feature *values = plugin ? plugin->values : path_device_values;
  uint32_t n = plugin ? plugin->n_values : PATH_DEVICE_VALUES, row = descriptor_row(values, n, target->name);
  if (row == n) return path_refuse_value(path, target->name, values, n, plugin);
  if (plugin)
    return instance_finish_op(target->instance,
                              target->instance->resource.ops->query(target->instance->resource.self, row, value_out),
                              "query");
  *value_out = path_device_value(target->stack, row);
  return HIPMM_OK;
}

/* ---- Prefixes ---- */

static enum hipmm_status path_check_leaf(const char *prefix)
{
  struct path target;
  int64_t value;
  enum hipmm_status status = path_find(prefix, &target);
  if (status) return status;
  if (!path_option(&target)) status = path_read(&target, prefix, &value);
  path_release(&target);
  return status;
}

enum hipmm_status path_check_prefix(const char *prefix)
{
  struct path target;
  if (!*prefix || !strcmp(prefix, "devices") || !strcmp(prefix, "created")) return HIPMM_OK;
  enum hipmm_status status = path_find_resource(prefix, &target);
  if (!status) path_release(&target);
  if (status != HIPMM_E_ARGUMENT) return status;
  const struct error_record failure = error_mark();
  enum hipmm_status leaf = path_check_leaf(prefix);
  if (!leaf || strstr(hipmm_last_error_message(), "did you mean")) return leaf;
  error_return_to_mark(&failure);
  return status;
}
