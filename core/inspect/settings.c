/* SPDX-License-Identifier: MIT */
/* settings.c: reads values and sets options by path while resources are in use. An option is read in the same way as in a
 * graph, so that nothing can be set that a file could not say. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"
#include "../stack/attempt.h"
#include "../stack/instance_options.h"
#include "inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Values ---- */

enum hipmm_status hipmm_query(const char *path, int64_t *value_out)
{
  struct path target;
  enum hipmm_status status = lifecycle_check_use(path, "path");
  if (!status) status = lifecycle_check_use(value_out, "value_out");
  if (!status) status = path_find(path, &target);
  if (status) return status;
  status = path_read(&target, path, value_out);
  path_release(&target);
  return status;
}

/* ---- Options ---- */

static void settings_list_settable(const struct hipmm_plugin *plugin, char *buffer, size_t bytes)
{
  buffer[0] = '\0';
  for (uint32_t i = 0; i < plugin->n_options; i++)
    if (plugin->options[i].flags & HIPMM_OPTION_RELOADABLE)
      text_append(buffer, bytes, "%s%s", *buffer ? ", " : "", plugin->options[i].name);
  if (!*buffer) text_append(buffer, bytes, "nothing");
}

static const char settings_of_value[] = "; it is a figure, which hipmm_query() reads and nothing sets";

static enum hipmm_status settings_refuse_option(const struct hipmm_plugin *plugin, const char *path, const char *name)
{
  char shown[TEXT_QUOTE_BYTES], hint[TEXT_HINT_BYTES];
  struct text_near near = text_near(name);
  for (uint32_t i = 0; i < plugin->n_options; i++) text_near_try(&near, plugin->options[i].name);
  bool is_value = descriptor_row(plugin->values, plugin->n_values, name) < plugin->n_values;
  return error_set(HIPMM_E_ARGUMENT, "%.300s: %s has no option %s%s", path, plugin->type,
                   text_quote(name, shown, sizeof shown),
                   is_value ? settings_of_value : text_hint(near.name, hint, sizeof hint));
}

/* The row of an option that may be set. */
static enum hipmm_status settings_find_option(const struct path *target, const char *path,
                                              const struct hipmm_option **row_out)
{
  char settable[400];
  if (!target->instance) {
    bool is_value = descriptor_row(path_device_values, PATH_DEVICE_VALUES, target->name) < PATH_DEVICE_VALUES;
    return error_set(HIPMM_E_ARGUMENT, "%.300s: a device as a whole has no options%s", path,
                     is_value ? settings_of_value : "");
  }
  const struct hipmm_plugin *plugin = &target->instance->node->plugin->descriptor;
  const struct hipmm_option *row = path_option(target);
  if (!row) return settings_refuse_option(plugin, path, target->name);
  if (row->flags & HIPMM_OPTION_RELOADABLE) {
    *row_out = row;
    return HIPMM_OK;
  }
  settings_list_settable(plugin, settable, sizeof settable);
  return error_set(HIPMM_E_NOT_SUPPORTED, "%.300s: %s cannot be set while it is in use; of %s can be: %s", path,
                   target->name, plugin->type, settable);
}

/* Asks the plugin, and makes the options current once it agrees. `is_known`: they were current before. */
static enum hipmm_status settings_apply(struct instance *instance, const struct hipmm_option *row,
                                        struct instance_options *set, bool is_known, const char *source)
{
  const struct error_record before = error_mark();
  size_t n_dependencies = dependencies_of(instance)->n_direct;
  enum hipmm_status status = instance_options_link(instance, set);
  if (status) {
    dependencies_truncate(instance, n_dependencies);
    if (!is_known) instance_options_free(&instance->node->plugin->descriptor, set);
    return status;
  }
  error_set(HIPMM_OK, "%s", "");
  status = instance->resource.ops->reconfigure(instance->resource.self, row->name, set->options);
  if (status && !*hipmm_last_error_message())
    error_set(status, "%s: its plugin refused the new %s and gave no reason (%s)", instance->node->name, row->name,
              hipmm_status_string(status));
  if (status && status != HIPMM_CALL_AGAIN)
    status = error_locate(instance_finish_op(instance, status, "reconfigure"), instance->node->name, source, "");
  if (!status) error_return_to_mark(&before);
  if (status) dependencies_truncate(instance, n_dependencies);
  if (status && !is_known) instance_options_free(&instance->node->plugin->descriptor, set);
  if (status) return status;
  if (!is_known) instance_options_add(instance, set);
  atomic_store(&instance->options, set);
  return HIPMM_OK;
}

/* `source` is the resource's path, for messages. */
static enum hipmm_status settings_change(struct instance *instance, const struct hipmm_option *row, const char *text,
                                         const char *source)
{
  struct diagnostics report = {.source = source};
  struct instance_options *set = NULL;
  bool is_known = false;
  bool is_valid = instance_options_changed(instance, row, text, &report, &set, &is_known);
  enum hipmm_status status = is_valid ? HIPMM_OK : diagnostics_raise(&report);
  diagnostics_clear(&report); /* what is valid may have warnings */
  if (status) return status;
  if (set == atomic_load(&instance->options)) return HIPMM_OK;
  return settings_apply(instance, row, set, is_known, source);
}

/* One setting at a time, as ops->reconfigure is promised. The options of other resources may be set meanwhile: a call of
 * this resource may wait for a function of the program that sets them. */
static enum hipmm_status settings_begin(struct instance *instance, const char *path)
{
  if (!pthread_mutex_trylock(&instance->setting)) return HIPMM_OK;
  enum hipmm_status status = attempt_check_wait(instance);
  if (status) return status;
  if (pthread_mutex_lock(&instance->setting) != EDEADLK) return HIPMM_OK;
  return error_set(HIPMM_E_STATE, "%.300s: this is called from within a setting of an option, which must end first",
                   path);
}

struct settings_request {
  struct instance *instance;
  const struct hipmm_option *row;
  const char *path, *text;
};

static enum hipmm_status settings_change_alone(void *request_)
{
  const struct settings_request *request = request_;
  char source[PATH_BYTES];
  enum hipmm_status status = settings_begin(request->instance, request->path);
  if (status) return status;
  status = settings_change(request->instance, request->row, request->text,
                           path_of(request->instance, source, sizeof source));
  pthread_mutex_unlock(&request->instance->setting);
  return status;
}

/* What is set may take memory from an upstream. */
static enum hipmm_status settings_set(const struct path *target, const char *path, const char *text)
{
  struct settings_request request = {.instance = target->instance, .path = path, .text = text};
  enum hipmm_status status = settings_find_option(target, path, &request.row);
  if (!status) status = attempt_repeat(settings_change_alone, &request);
  return status == HIPMM_CALL_AGAIN ? instance_finish_op(target->instance, status, "reconfigure") : status;
}

enum hipmm_status hipmm_set(const char *path, const char *value)
{
  struct path target;
  enum hipmm_status status = lifecycle_check_use(path, "path");
  if (!status) status = path_find(path, &target);
  if (status) return status;
  status = settings_set(&target, path, value);
  path_release(&target);
  return status;
}

/* ---- Bounds ---- */

/* The option's value when the resource was created. */
static uint64_t settings_created_with(const struct instance *instance, const struct hipmm_option *row)
{
  const struct instance_options *set = instance->all_options;
  uint64_t bytes;
  while (set->older) set = set->older;
  memcpy(&bytes, (const char *)set->options + row->offset, sizeof bytes);
  return bytes;
}

static enum hipmm_status settings_bound_instance(struct instance *instance, const struct hipmm_option *row,
                                                 uint64_t most_bytes)
{
  char path[PATH_BYTES], text[24];
  uint64_t created_with = settings_created_with(instance, row);
  bool is_unlimited = created_with == HIPMM_UNLIMITED && most_bytes == HIPMM_UNLIMITED;
  snprintf(text, sizeof text, "%llu", (unsigned long long)(created_with < most_bytes ? created_with : most_bytes));
  struct settings_request request = {.instance = instance,
                                     .row = row,
                                     .path = path_of(instance, path, sizeof path),
                                     .text = is_unlimited ? row->choices[0] : text};
  enum hipmm_status status = attempt_repeat(settings_change_alone, &request);
  return status == HIPMM_CALL_AGAIN ? instance_finish_op(instance, status, "reconfigure") : status;
}

enum hipmm_status settings_bound(const struct stack *stack, const char *option, uint64_t most_bytes)
{
  enum hipmm_status first = HIPMM_OK;
  for (size_t i = 0; i < stack->graph->n_nodes; i++) {
    struct instance *instance = &stack->instances[i];
    if (!instance->created) continue;
    const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
    const struct hipmm_option *row = option_find(plugin->options, plugin->n_options, option);
    bool is_settable = row && row->type == HIPMM_OPTION_BYTES && row->flags & HIPMM_OPTION_RELOADABLE;
    enum hipmm_status status = is_settable ? settings_bound_instance(instance, row, most_bytes) : HIPMM_OK;
    if (!first) first = status;
  }
  return first;
}
