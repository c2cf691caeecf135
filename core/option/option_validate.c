/* SPDX-License-Identifier: MIT */
/* option_validate.c: lets a plugin validate its options, where its option table says too little. Called by graph to check,
 * by stack and runtime to build, so that the two never differ. Paths of values are JSON pointers without the first
 * slash, as plugins write them. */
#include "../base/text.h"
#include "option_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The validation that a plugin sees, and what its functions need. */
struct validating {
  struct hipmm_validation validation; /* first: plugins pass its address back */
  const struct hipmm_plugin *plugin;
  const json_t *object;
  const struct option_context *context;
  const struct option_surroundings *surroundings;
};

static const struct validating *option_validate_of(const struct hipmm_validation *validation)
{
  return (const struct validating *)validation;
}

/* ---- Saying ---- */

static void option_validate_say(const struct validating *validating, enum hipmm_status status, const char *option,
                                const char *format, va_list arguments)
{
  const struct option_context *context = validating->context;
  char *path = NULL;
  if (asprintf(&path, "%s%s%s", context->path, option ? "/" : "", option ? option : "") < 0) path = NULL;
  diagnostics_add_arguments(context->diagnostics, status, path ? path : context->path, format, arguments);
  free(path);
}

static void option_validate_error(const struct hipmm_validation *validation, const char *option, const char *format,
                                  ...)
{
  va_list arguments;
  va_start(arguments, format);
  option_validate_say(option_validate_of(validation), HIPMM_E_CONFIG, option, format, arguments);
  va_end(arguments);
}

static void option_validate_warn(const struct hipmm_validation *validation, const char *option, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  option_validate_say(option_validate_of(validation), HIPMM_OK, option, format, arguments);
  va_end(arguments);
}

/* ---- Asking ---- */

/* The value at a path in the object; NULL if there is none. Names of options hold no slash. */
static const json_t *option_validate_at(const json_t *object, const char *path)
{
  char part[128];
  while (object && *path) {
    size_t length = strcspn(path, "/");
    if (length >= sizeof part) return NULL;
    memcpy(part, path, length);
    part[length] = '\0';
    object = json_is_array(object) ? json_array_get(object, strtoul(part, NULL, 10)) : json_object_get(object, part);
    path += length + (path[length] == '/');
  }
  return object;
}

static int option_validate_is_unknown(const struct hipmm_validation *validation, const char *option)
{
  const struct validating *validating = option_validate_of(validation);
  const struct hipmm_plugin *plugin = validating->plugin;
  const struct hipmm_option *row = option_find(plugin->options, plugin->n_options, option);
  struct option_number number;
  if (validating->context->free_bytes || !row) return 0;
  return option_current_number(row, validating->object, &number) && number.is_percent;
}

static const char *option_validate_upstream(const struct hipmm_validation *validation, size_t index)
{
  const struct option_surroundings *around = option_validate_of(validation)->surroundings;
  return around && around->upstream ? around->upstream(around->closure, index) : NULL;
}

static int option_validate_is_device_memory(const struct hipmm_validation *validation)
{
  const struct option_surroundings *around = option_validate_of(validation)->surroundings;
  return around && around->is_device_memory && around->is_device_memory(around->closure);
}

static int option_validate_bytes_of(const struct hipmm_validation *validation, const char *option,
                                    const char *other_option, uint64_t *bytes_out)
{
  const struct validating *validating = option_validate_of(validation);
  const struct option_surroundings *around = validating->surroundings;
  const char *name = json_string_value(option_validate_at(validating->object, option));
  const struct hipmm_plugin *plugin;
  const json_t *object;
  if (!name || !around || !around->find || !around->find(around->closure, name, &plugin, &object)) return 0;
  const struct hipmm_option *row = option_find(plugin->options, plugin->n_options, other_option);
  if (!row || row->type != HIPMM_OPTION_BYTES) return 0;
  struct option_number number;
  bool is_known = option_current_number(row, object, &number) && !number.is_percent;
  if (is_known) *bytes_out = (uint64_t)number.value;
  return is_known;
}

static const char *option_validate_same_as(const struct hipmm_validation *validation, const char *option)
{
  const struct option_surroundings *around = option_validate_of(validation)->surroundings;
  return around && around->same_as ? around->same_as(around->closure, option) : NULL;
}

static int option_validate_has_device_memory(const struct hipmm_validation *validation, const char *option)
{
  const struct validating *validating = option_validate_of(validation);
  const struct option_surroundings *around = validating->surroundings;
  const char *name = json_string_value(option_validate_at(validating->object, option));
  return name && around && around->has_device_memory && around->has_device_memory(around->closure, name);
}

bool option_fill_valid(const struct hipmm_plugin *plugin, json_t *object, const struct option_context *context,
                       const struct option_surroundings *surroundings, void *options_out)
{
  if (!option_fill(plugin->options, plugin->n_options, object, context, options_out)) return false;
  const struct validating validating = {.validation = {.struct_size = sizeof validating.validation,
                                                       .error = option_validate_error,
                                                       .warn = option_validate_warn,
                                                       .is_unknown = option_validate_is_unknown,
                                                       .upstream = option_validate_upstream,
                                                       .is_device_memory = option_validate_is_device_memory,
                                                       .bytes_of = option_validate_bytes_of,
                                                       .same_as = option_validate_same_as,
                                                       .has_device_memory = option_validate_has_device_memory},
                                        .plugin = plugin,
                                        .object = object,
                                        .context = context,
                                        .surroundings = surroundings};
  size_t n_errors = context->diagnostics->n_errors;
  if (plugin->validate) plugin->validate(&validating.validation, options_out);
  if (context->diagnostics->n_errors == n_errors) return true;
  option_free(plugin->options, plugin->n_options, options_out);
  return false;
}
