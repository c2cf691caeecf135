/* SPDX-License-Identifier: MIT */
/* values.c: values and options of live resources as JSON, all of them by path or one, and the report of a resource. Reads
 * only. A value that cannot be read is null and does not affect the others. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../call/resource_calls.h"
#include "../stack/instance_options.h"
#include "inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

struct buffer {
  char *text;
  size_t used, capacity;
  bool is_truncated; /* there was no host memory for all */
};

static int values_append(const char *text, size_t bytes, void *closure)
{
  struct buffer *buffer = closure;
  if (buffer->capacity - buffer->used <= bytes) {
    size_t capacity = 2 * buffer->capacity + bytes + 1;
    char *larger = realloc(buffer->text, capacity);
    if (!larger) buffer->is_truncated = true;
    if (!larger) return -1;
    buffer->text = larger;
    buffer->capacity = capacity;
  }
  memcpy(buffer->text + buffer->used, text, bytes);
  buffer->used += bytes;
  buffer->text[buffer->used] = '\0';
  return 0;
}

/* `status`, or what it came to that the text is not whole. */
static enum hipmm_status values_finish(enum hipmm_status status, struct buffer *buffer, char **text_out)
{
  if (!status && (buffer->is_truncated || !buffer->text))
    status = error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (status)
    free(buffer->text);
  else
    *text_out = buffer->text;
  return status;
}

enum hipmm_status values_text(json_t *value, char **text_out)
{
  struct buffer buffer = {0};
  const size_t flags = JSON_ENCODE_ANY | JSON_INDENT(1) | JSON_REAL_PRECISION(9);
  if (!value || json_dump_callback(value, values_append, &buffer, flags)) buffer.is_truncated = true;
  json_decref(value);
  return values_finish(HIPMM_OK, &buffer, text_out);
}

static void values_add_line(void *buffer, const char *line)
{
  (void)(values_append(line, strlen(line), buffer) || values_append("\n", 1, buffer));
}

/* The nearest resource that has a report. */
static const struct instance *values_reporter(const struct instance *top)
{
  CLOSURE_EACH(one, top)
    if (one->node->plugin->descriptor.ops->report) return one;
  return NULL;
}

enum hipmm_status hipmm_resource_report(struct hipmm_resource *resource, char **text_out)
{
  struct buffer text = {0};
  struct resource_call call;
  enum hipmm_status status = resource_call_begin(resource, text_out, "text_out", &call);
  if (status) return status;
  const struct instance *owner = values_reporter(call.instance);
  status = owner ? instance_finish_op(owner, owner->resource.ops->report(owner->resource.self, values_add_line, &text),
                                      "report")
                 : error_set(HIPMM_E_NOT_SUPPORTED, "%s: neither it nor a resource below it has a text about its state",
                             call.instance->node->name);
  resource_call_end(&call, status);
  values_append("", 0, &text); /* a report may be empty */
  return values_finish(status, &text, text_out);
}

void hipmm_string_free(char *text)
{
  free(text);
}

json_t *values_string(const char *text)
{
  json_t *string = json_string(text);
  return string ? string : json_string("?");
}

/* ---- Values and options ---- */

enum hipmm_status values_read(const struct instance *instance, size_t row, int64_t *value_out)
{
  const struct error_record before = error_mark();
  enum hipmm_status status = instance->resource.ops->query(instance->resource.self, row, value_out);
  if (status) error_return_to_mark(&before); /* the status tells the caller */
  return status;
}

json_t *values_value(const struct instance *instance, size_t row)
{
  int64_t value;
  return values_read(instance, row, &value) ? json_null() : json_integer(value);
}

json_t *values_option(const struct instance *instance, const struct hipmm_option *row)
{
  bool given;
  json_t *value = option_copy_current(row, atomic_load(&instance->options)->object, &given);
  return json_pack("{s:o, s:b, s:b}", "value", value, "default", !given, "reloadable",
                   (row->flags & HIPMM_OPTION_RELOADABLE) != 0);
}

/* ---- The list ---- */

enum { VALUE_PATH_BYTES = PATH_BYTES + 300 };

struct values_list {
  const char *prefix;
  json_t *entries;
};

/* Whether `path` is the prefix, or below it. */
static bool values_is_wanted(const struct values_list *list, const char *path)
{
  size_t length = strlen(list->prefix);
  return !length || (!strncmp(path, list->prefix, length) && (!path[length] || path[length] == '/'));
}

/* Whether the value or option `name` of a resource is wanted; then writes its path. What is not wanted is not asked for:
 * a value may come from the driver, which may not know a pool of the program any more. */
static bool values_begin(const struct values_list *list, const char *resource, const char *name, char *path,
                         size_t bytes)
{
  snprintf(path, bytes, "%s/%s", resource, name);
  return values_is_wanted(list, path);
}

static void values_add(struct values_list *list, const char *path, const char *kind, const char *unit, const char *doc,
                       json_t *rest)
{
  json_t *entry =
      json_pack("{s:o, s:s, s:s?, s:s?}", "path", values_string(path), "kind", kind, "unit", unit, "doc", doc);
  json_object_update(entry, rest);
  json_array_append_new(list->entries, entry);
  json_decref(rest);
}

static void values_add_instance(struct values_list *list, const struct instance *instance)
{
  char resource[PATH_BYTES], path[VALUE_PATH_BYTES];
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  if (!*path_of(instance, resource, sizeof resource)) return;
  for (uint32_t i = 0; i < plugin->n_values; i++) {
    const struct hipmm_feature *row = &plugin->values[i];
    if (values_begin(list, resource, row->name, path, sizeof path))
      values_add(list, path, "value", row->unit, row->doc, json_pack("{s:o}", "value", values_value(instance, i)));
  }
  for (uint32_t i = 0; i < plugin->n_options; i++) {
    const struct hipmm_option *row = &plugin->options[i];
    if (!values_begin(list, resource, row->name, path, sizeof path)) continue;
    json_t *option = values_option(instance, row);
    json_object_set_new(option, "type", json_string(option_type_name(row->type)));
    values_add(list, path, "option", row->unit, row->doc, option);
  }
}

/* The values of a stack as a whole. A resource made in code has none. */
static void values_add_stack(struct values_list *list, const struct stack *stack)
{
  char device[PATH_BYTES], path[VALUE_PATH_BYTES];
  const struct instance *top = &stack->instances[stack->top];
  bool is_created = stack->entry.name != NULL;
  if (is_created != stack->external.is_whole || !*path_of(top, device, sizeof device)) return;
  *strrchr(device, '/') = '\0';
  for (size_t i = 0; i < PATH_DEVICE_VALUES; i++)
    if (values_begin(list, device, path_device_values[i].name, path, sizeof path))
      values_add(list, path, "value", path_device_values[i].unit, path_device_values[i].doc,
                 json_pack("{s:I}", "value", (json_int_t)path_device_value(stack, i)));
}

enum hipmm_status hipmm_list(const char *prefix, char **json_out)
{
  struct values_list list = {.prefix = prefix ? prefix : ""};
  enum hipmm_status status = lifecycle_check_use(json_out, "json_out");
  if (!status) status = path_check_prefix(list.prefix);
  if (status) return status;
  list.entries = json_array();
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack)) {
    values_add_stack(&list, stack);
    STACK_EACH(instance, stack) values_add_instance(&list, instance);
  }
  return values_text(list.entries, json_out);
}

/* ---- One value or option ---- */

enum hipmm_status hipmm_get(const char *path, char **json_out)
{
  struct path target;
  bool given;
  int64_t value;
  enum hipmm_status status = lifecycle_check_use(path, "path");
  if (!status) status = lifecycle_check_use(json_out, "json_out");
  if (!status) status = path_find(path, &target);
  if (status) return status;
  const struct hipmm_option *row = path_option(&target);
  if (!row) status = path_read(&target, path, &value);
  if (!status)
    status = values_text(row ? option_copy_current(row, atomic_load(&target.instance->options)->object, &given)
                             : json_integer(value),
                         json_out);
  path_release(&target);
  return status;
}
