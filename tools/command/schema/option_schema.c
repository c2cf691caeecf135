/* SPDX-License-Identifier: MIT */
/* option_schema.c: the JSON Schema of one row of an option table. option_fill() refuses whatever the schema refuses.
 * Bounds of sizes and durations that are texts (but 0), and bounds between two options, cannot be written in a schema; only
 * option_fill() checks them. */
#include "../../../core/base/text.h"
#include "../../../core/option/option_value.h"
#include "../../../core/option/registry.h"
#include "schema.h"

#include <stdio.h>
#include <string.h>

/* Whether the bound is a number of bytes or nanoseconds, not a share. */
static bool option_schema_bound(const struct hipmm_option *row, const char *text, json_int_t *bound_out)
{
  struct option_number number;
  json_t *value = text ? option_from_text(row, text) : NULL;
  bool is_number = value && option_number(row, value, &number) && !number.is_percent;
  json_decref(value);
  if (is_number) *bound_out = (json_int_t)number.value;
  return is_number;
}

/* A text with a unit. Above 0 it has a digit that is not 0. */
static json_t *option_schema_measure(const struct hipmm_option *row, const char *pattern)
{
  json_int_t minimum = 0;
  json_t *schema = json_pack("{s:s, s:s}", "type", "string", "pattern", pattern);
  if (option_schema_bound(row, row->minimum, &minimum) && minimum > 0)
    json_object_set_new(schema, "not", json_pack("{s:s}", "pattern", "^[0.]*[^0-9.]*$"));
  return schema;
}

static json_t *option_schema_bytes_forms(const struct hipmm_option *row)
{
  static const char size[] = "^[0-9]+(\\.[0-9]*)?[ \\t]*([kKmMgGtTpP]?[iI]?[bB])?$";
  static const char percent[] = "^0*(100(\\.0*)?|[0-9]{1,2}(\\.[0-9]*)?)[ \\t]*%( of total)?$";
  json_int_t minimum = 0, maximum = INT64_MAX;
  json_t *forms = json_array();
  option_schema_bound(row, row->minimum, &minimum);
  option_schema_bound(row, row->maximum, &maximum);
  json_array_append_new(forms, json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", minimum, "maximum", maximum));
  json_array_append_new(forms, option_schema_measure(row, size));
  if (row->flags & HIPMM_OPTION_PERCENT)
    json_array_append_new(forms, json_pack("{s:s, s:s}", "type", "string", "pattern", percent));
  if (row->flags & HIPMM_OPTION_PERCENT) json_array_append_new(forms, json_pack("{s:s}", "const", OPTION_SHARE));
  if (row->choices) json_array_append_new(forms, json_pack("{s:s}", "const", row->choices[0]));
  return json_pack("{s:o}", "anyOf", forms);
}

static void option_schema_add_bound(json_t *schema, const struct hipmm_option *row, const char *key, const char *bound)
{
  if (bound) json_object_set_new(schema, key, option_from_text(row, bound));
}

static json_t *option_schema_number(const struct hipmm_option *row, const char *type)
{
  json_t *schema = json_pack("{s:s}", "type", type);
  option_schema_add_bound(schema, row, "minimum", row->minimum);
  option_schema_add_bound(schema, row, "maximum", row->maximum);
  return schema;
}

static json_t *option_schema_words(const struct hipmm_option *row)
{
  json_t *list = json_array();
  for (const char *const *word = row->choices; word && *word; word++) json_array_append_new(list, json_string(*word));
  return json_pack("{s:o}", "enum", list);
}

static json_t *option_schema_list_of_objects(const struct hipmm_option *row)
{
  json_t *properties = json_object(), *required = json_array();
  for (size_t i = 0; i < row->n_fields; i++) {
    json_object_set_new(properties, row->fields[i].name, option_schema(&row->fields[i]));
    if (row->fields[i].flags & HIPMM_OPTION_REQUIRED) json_array_append_new(required, json_string(row->fields[i].name));
  }
  json_t *item = json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                           "additionalProperties", 0);
  return json_pack("{s:s, s:o}", "type", "array", "items", item);
}

static json_t *option_schema_plain(const struct hipmm_option *row)
{
  switch (row->type) {
  case HIPMM_OPTION_BOOL: return json_pack("{s:s}", "type", "boolean");
  case HIPMM_OPTION_INTEGER: return option_schema_number(row, "integer");
  case HIPMM_OPTION_BYTES: return option_schema_bytes_forms(row);
  case HIPMM_OPTION_RATIO: return option_schema_number(row, "number");
  case HIPMM_OPTION_DURATION: return option_schema_measure(row, "^[0-9]+(\\.[0-9]*)?[ \\t]*(ns|us|ms|s|min|h)$");
  case HIPMM_OPTION_ENUM: return option_schema_words(row);
  case HIPMM_OPTION_STRINGS: return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
  case HIPMM_OPTION_LIST: return option_schema_list_of_objects(row);
  case HIPMM_OPTION_OBJECT:
    return json_pack("{s:s, s:s, s:i}", "type", "string", "pattern", TEXT_NAME_PATTERN, "maxLength", TEXT_LONGEST_NAME);
  default: return json_pack("{s:s}", "type", "string");
  }
}

/* The doc line, followed by the bounds that the schema cannot express. */
static void option_schema_describe(json_t *schema, const struct hipmm_option *row)
{
  char text[1024];
  bool is_number = row->type == HIPMM_OPTION_INTEGER || row->type == HIPMM_OPTION_RATIO;
  size_t used = (size_t)snprintf(text, sizeof text, "%s", row->doc ? row->doc : "");
  if (row->unit && is_number && used < sizeof text)
    used += (size_t)snprintf(text + used, sizeof text - used, " (in %s)", row->unit);
  if (row->minimum && !is_number && used < sizeof text)
    used += (size_t)snprintf(text + used, sizeof text - used, "; at least %s", row->minimum);
  if (row->maximum && !is_number && used < sizeof text)
    used += (size_t)snprintf(text + used, sizeof text - used, "; at most %s", row->maximum);
  if (row->at_least && used < sizeof text)
    used += (size_t)snprintf(text + used, sizeof text - used, "; not less than %s", row->at_least);
  if (row->type == HIPMM_OPTION_OBJECT && used < sizeof text)
    used += (size_t)snprintf(text + used, sizeof text - used, "; a name given to %s()", registry_function(row->unit));
  if (row->flags & HIPMM_OPTION_RELOADABLE && used < sizeof text)
    snprintf(text + used, sizeof text - used, "; may be set while in use");
  if (text[0]) json_object_set_new(schema, "description", json_string(text));
}

/* "initial_size" as words: "Initial size". */
static json_t *option_schema_title(const char *name)
{
  char title[TEXT_QUOTE_BYTES];
  snprintf(title, sizeof title, "%s", name);
  if (*title >= 'a' && *title <= 'z') *title = (char)(*title - 'a' + 'A');
  for (char *at = title; *at; at++)
    if (*at == '_') *at = ' ';
  return json_string(title);
}

json_t *option_schema(const struct hipmm_option *row)
{
  json_t *schema = option_schema_plain(row), *examples = option_examples(row);
  json_object_set_new(schema, "title", option_schema_title(row->name));
  option_schema_describe(schema, row);
  if (json_array_size(examples)) json_object_set(schema, "examples", examples);
  json_decref(examples);
  if (row->initial) json_object_set_new(schema, "default", option_from_text(row, row->initial));
  return schema;
}
