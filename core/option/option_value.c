/* SPDX-License-Identifier: MIT */
/* option_value.c: reads one JSON value into one field of a plugin's option struct, by its row of the option table.
 * Called by option.c for given values and for defaults alike, so that a default means the same as the same text in a
 * file. Never writes a field unless the value is valid. Numbers are in option_number.c. */
#include "option_value.h"
#include "../base/text.h"
#include "registry.h"

#include <stdlib.h>
#include <string.h>

static bool option_value_read_bool(const struct option_reading *reading, const json_t *value, uint32_t *field)
{
  if (!json_is_boolean(value)) return option_refuse_value(reading, value, "is neither true nor false");
  *field = json_is_true(value);
  return true;
}

static size_t option_value_count_words(const char *const *words)
{
  size_t n = 0;
  while (words && words[n]) n++;
  return n;
}

static bool option_value_refuse_word(const struct option_reading *reading, const json_t *value)
{
  char shown[TEXT_QUOTE_BYTES], allowed[512] = "";
  const char *const *words = reading->row->choices;
  size_t n = option_value_count_words(words);
  option_show(value, shown, sizeof shown);
  const char *near = json_is_string(value) ? text_nearest(json_string_value(value), words, n) : NULL;
  for (size_t i = 0; i < n; i++)
    text_append(allowed, sizeof allowed, "%s\"%s\"", !i ? "" : i + 1 < n ? ", " : " or ", words[i]);
  if (near) return option_refuse(reading, "%s is not allowed; did you mean \"%s\"? Write %s", shown, near, allowed);
  return option_refuse(reading, "%s is not allowed; write %s", shown, allowed);
}

static bool option_value_read_enum(const struct option_reading *reading, const json_t *value, uint32_t *field)
{
  size_t n = option_value_count_words(reading->row->choices);
  for (size_t i = 0; json_is_string(value) && i < n; i++) {
    if (strcmp(json_string_value(value), reading->row->choices[i])) continue;
    *field = (uint32_t)i;
    return true;
  }
  return option_value_refuse_word(reading, value);
}

static bool option_value_read_string(const struct option_reading *reading, const json_t *value, const char **field)
{
  if (!json_is_string(value)) return option_refuse_value(reading, value, "is not a string");
  *field = json_string_value(value);
  return true;
}

/* All strings in one piece behind their pointers: a default's JSON value does not outlive the reading of it. */
static const char *const *option_value_copy_strings(const json_t *array)
{
  size_t n = json_array_size(array), bytes = n * sizeof(char *);
  for (size_t i = 0; i < n; i++) bytes += json_string_length(json_array_get(array, i)) + 1;
  char **items = malloc(bytes ? bytes : 1), *end = (char *)(items + n);
  for (size_t i = 0; items && i < n; i++) {
    items[i] = end;
    end = stpcpy(end, json_string_value(json_array_get(array, i))) + 1;
  }
  return (const char *const *)items;
}

static bool option_value_read_strings(const struct option_reading *reading, const json_t *value,
                                      struct hipmm_strings *field)
{
  char shown[TEXT_QUOTE_BYTES];
  size_t n = json_array_size(value);
  if (!json_is_array(value)) {
    option_show(value, shown, sizeof shown);
    return option_refuse(
        reading, json_is_string(value) ? "%s is not a list; write [%s]" : "%s is not a list of strings", shown, shown);
  }
  for (size_t i = 0; i < n; i++)
    if (!json_is_string(json_array_get(value, i)))
      return option_refuse_value(reading, json_array_get(value, i), "in the list is not a string");
  const char *const *items = option_value_copy_strings(value);
  if (!items) return option_refuse_memory(reading);
  *field = (struct hipmm_strings){n, items};
  return true;
}

static bool option_value_read_resource(const struct option_reading *reading, const json_t *value,
                                       struct hipmm_resource **field)
{
  char shown[TEXT_QUOTE_BYTES];
  const struct option_context *context = reading->context;
  if (!json_is_string(value)) return option_refuse_value(reading, value, "is not the name of a resource");
  if (!context->resolve) return true;
  struct hipmm_resource *resource = context->resolve(context->closure, json_string_value(value));
  if (!resource) return option_refuse(reading, "no resource is called %s", option_show(value, shown, sizeof shown));
  *field = resource;
  return true;
}

static bool option_value_refuse_object(const struct option_reading *reading, const char *shown, const char *name)
{
  char nearest[TEXT_LONGEST_NAME + 1];
  const char *kind = reading->row->unit, *near = registry_nearest(kind, name, nearest, sizeof nearest);
  if (near) return option_refuse(reading, "no %s is registered as %s; did you mean \"%s\"?", kind, shown, near);
  return option_refuse(reading, "no %s is registered as %s; the program must call %s() before this is built", kind,
                       shown, registry_function(kind));
}

static bool option_value_read_object(const struct option_reading *reading, const json_t *value, const void **field)
{
  char shown[TEXT_QUOTE_BYTES];
  const char *name = json_string_value(value);
  option_show(value, shown, sizeof shown);
  if (!name) return option_refuse(reading, "%s is not the name of a registered %s", shown, reading->row->unit);
  if (*name != REGISTRY_PRIVATE && !text_is_name(name))
    return option_refuse(reading, "%s is not a name; " TEXT_NAME_RULE, shown, TEXT_LONGEST_NAME);
  if (!reading->context->takes_objects) return true;
  const void *object = registry_acquire(reading->row->unit, name);
  if (!object) return option_value_refuse_object(reading, shown, name);
  *field = object;
  return true;
}

bool option_read(const struct option_reading *reading, const json_t *value, void *field)
{
  switch (reading->row->type) {
  case HIPMM_OPTION_BOOL: return option_value_read_bool(reading, value, field);
  case HIPMM_OPTION_INTEGER:
  case HIPMM_OPTION_BYTES:
  case HIPMM_OPTION_RATIO:
  case HIPMM_OPTION_DURATION: return option_read_number(reading, value, field);
  case HIPMM_OPTION_ENUM: return option_value_read_enum(reading, value, field);
  case HIPMM_OPTION_STRING: return option_value_read_string(reading, value, field);
  case HIPMM_OPTION_STRINGS: return option_value_read_strings(reading, value, field);
  case HIPMM_OPTION_RESOURCE: return option_value_read_resource(reading, value, field);
  case HIPMM_OPTION_OBJECT: return option_value_read_object(reading, value, field);
  default: return option_refuse(reading, "hipmm does not know options of type %u", reading->row->type);
  }
}

const char *option_type_name(uint32_t type)
{
  static const char *const names[] = {
      [HIPMM_OPTION_BOOL] = "bool",         [HIPMM_OPTION_INTEGER] = "integer",   [HIPMM_OPTION_BYTES] = "bytes",
      [HIPMM_OPTION_RATIO] = "ratio",       [HIPMM_OPTION_DURATION] = "duration", [HIPMM_OPTION_ENUM] = "enum",
      [HIPMM_OPTION_STRING] = "string",     [HIPMM_OPTION_STRINGS] = "strings",   [HIPMM_OPTION_LIST] = "list",
      [HIPMM_OPTION_RESOURCE] = "resource", [HIPMM_OPTION_OBJECT] = "object"};
  const char *name = type < sizeof names / sizeof *names ? names[type] : NULL;
  return name ? name : "unknown";
}
