/* SPDX-License-Identifier: MIT */
/* option.c: reads a JSON object into a plugin's option struct, by its option table. Called by graph to check and by
 * stack to build. Reports every error, and never leaves anything allocated after one. Single values are in
 * option_value.c. */
#include "option.h"
#include "../base/text.h"
#include "option_value.h"
#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An object being read. */
struct filling {
  const struct hipmm_option *table;
  size_t n;
  json_t *object; /* NULL: {} */
  const struct option_context *context;
  const char *owner;
  void *options;
};

static void *option_field(void *options, const struct hipmm_option *row)
{
  return (char *)options + row->offset;
}

size_t option_field_bytes(uint32_t type)
{
  switch (type) {
  case HIPMM_OPTION_BOOL:
  case HIPMM_OPTION_ENUM: return sizeof(uint32_t);
  case HIPMM_OPTION_STRINGS: return sizeof(struct hipmm_strings);
  case HIPMM_OPTION_LIST: return sizeof(struct hipmm_list);
  default: return sizeof(uint64_t);
  }
}

bool option_has_type(const struct hipmm_option *row, uint32_t type)
{
  bool has = row->type == type;
  for (uint32_t i = 0; row->type == HIPMM_OPTION_LIST && i < row->n_fields; i++)
    has |= option_has_type(&row->fields[i], type);
  return has;
}

static void option_clear_field(const struct hipmm_option *row, void *options)
{
  memset(option_field(options, row), 0, option_field_bytes(row->type));
}

static void option_free_list(const struct hipmm_option *row, struct hipmm_list *list)
{
  for (size_t i = 0; i < list->count; i++)
    option_free(row->fields, row->n_fields, (char *)list->items + i * row->field_bytes);
  free(list->items);
}

void option_free(const struct hipmm_option *table, size_t n, void *options)
{
  for (size_t i = 0; i < n; i++) {
    void *field = option_field(options, &table[i]);
    if (table[i].type == HIPMM_OPTION_STRINGS) free((void *)((struct hipmm_strings *)field)->items);
    if (table[i].type == HIPMM_OPTION_LIST) option_free_list(&table[i], field);
    if (table[i].type == HIPMM_OPTION_OBJECT) registry_release(*(const void **)field);
    option_clear_field(&table[i], options);
  }
}

/* ---- Unknown keys ---------------------------------------------------------------------------------------------- */

/* The name that a user meant by an unknown key; NULL if none is near. */
static const char *option_nearest(const struct filling *filling, const char *key)
{
  struct text_near near = text_near(key);
  for (size_t i = 0; i < filling->n; i++) text_near_try(&near, filling->table[i].name);
  for (const char *const *other = filling->context->keys; other && *other; other++) text_near_try(&near, *other);
  return near.name;
}

static bool option_refuse_key(const struct filling *filling, const struct option_reading *reading, const char *key)
{
  char shown[TEXT_QUOTE_BYTES], options[1024] = "";
  const char *near = option_nearest(filling, key);
  text_quote(key, shown, sizeof shown);
  if (near) return option_refuse(reading, "unknown option %s of %s; did you mean \"%s\"?", shown, filling->owner, near);
  for (size_t i = 0; i < filling->n; i++)
    text_append(options, sizeof options, "%s%s", i ? ", " : "it has ", filling->table[i].name);
  bool is_of_top = filling->context->top && text_is_listed(filling->context->top, key);
  return option_refuse(reading, "unknown option %s of %s; %s%s%s%s", shown, filling->owner,
                       *options ? options : "it has none", is_of_top ? "; " : "", is_of_top ? shown : "",
                       is_of_top ? " stands at the top of the graph" : "");
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static bool option_read_item(const struct option_reading *reading, json_t *value, size_t index, void *item)
{
  char shown[TEXT_QUOTE_BYTES], example[TEXT_QUOTE_BYTES], number[24];
  struct option_context context = *reading->context;
  struct option_reading inner = {reading->row, &context, NULL};
  snprintf(number, sizeof number, "%zu", index);
  char *path = text_pointer(reading->path, number);
  inner.path = context.path = path ? path : "";
  context.keys = NULL;
  context.owner = reading->row->name;
  bool is_good = json_is_object(value)
                     ? option_fill(reading->row->fields, reading->row->n_fields, value, &context, item)
                     : option_refuse(&inner, "%s is not an object; write {%s}", option_show(value, shown, sizeof shown),
                                     option_example_item(reading->row, example, sizeof example));
  free(path);
  return is_good;
}

static bool option_read_list(const struct option_reading *reading, json_t *value, struct hipmm_list *field)
{
  const struct hipmm_option *row = reading->row;
  if (!json_is_array(value)) return option_refuse_value(reading, value, "is not a list of objects");
  struct hipmm_list list = {json_array_size(value), NULL};
  list.items = calloc(list.count ? list.count : 1, row->field_bytes ? row->field_bytes : 1);
  if (!list.items) return option_refuse_memory(reading);
  bool is_good = true;
  for (size_t i = 0; i < list.count; i++)
    is_good &= option_read_item(reading, json_array_get(value, i), i, (char *)list.items + i * row->field_bytes);
  if (is_good)
    *field = list;
  else
    option_free_list(row, &list);
  return is_good;
}

static bool option_read_value(const struct option_reading *reading, json_t *value, void *field)
{
  return reading->row->type == HIPMM_OPTION_LIST ? option_read_list(reading, value, field)
                                                 : option_read(reading, value, field);
}

/* Reads one key of the object. */
static bool option_read_key(const struct filling *filling, const char *key, json_t *value)
{
  const struct hipmm_option *row = option_find(filling->table, filling->n, key);
  if (!row && text_is_listed(filling->context->keys, key)) return true;
  char *path = text_pointer(filling->context->path, key);
  struct option_reading reading = {row, filling->context, path};
  bool is_good = row ? option_read_value(&reading, value, option_field(filling->options, row))
                     : option_refuse_key(filling, &reading, key);
  free(path);
  return is_good;
}

static bool option_read_default(const struct filling *filling, const struct hipmm_option *row)
{
  void *field = option_field(filling->options, row);
  char *path = text_pointer(filling->context->path, row->name);
  struct option_reading reading = {row, filling->context, path};
  json_t *value = option_from_text(row, row->initial);
  bool is_good = !value ? option_refuse_memory(&reading)
                 : row->type == HIPMM_OPTION_LIST && json_array_size(value)
                     ? option_refuse(&reading, "the default of a list can only be []")
                     : option_read_value(&reading, value, field);
  if (is_good && row->type == HIPMM_OPTION_STRING) *(const char **)field = row->initial; /* outlives `value` */
  json_decref(value);
  free(path);
  return is_good;
}

/* Whether an unknown key, which was reported, is a near name of this option, which is missing. */
static bool option_is_misspelt(const struct filling *filling, const struct hipmm_option *row)
{
  const char *key;
  json_t *value;
  json_object_foreach(filling->object, key, value)
  {
    const char *near = option_nearest(filling, key); /* of a known key: itself */
    if (near && !strcmp(near, row->name)) return true;
  }
  return false;
}

static bool option_read_missing(const struct filling *filling, const struct hipmm_option *row)
{
  struct option_reading reading = {row, filling->context, filling->context->path};
  char example[TEXT_QUOTE_BYTES];
  if (row->flags & HIPMM_OPTION_REQUIRED && option_is_misspelt(filling, row)) return false;
  if (row->flags & HIPMM_OPTION_REQUIRED)
    return option_refuse(&reading, "%s needs \"%s\"; write %s", filling->owner, row->name,
                         option_example(row, example, sizeof example));
  if (row->initial) return option_read_default(filling, row);
  if (row->type == HIPMM_OPTION_BYTES) *(uint64_t *)option_field(filling->options, row) = HIPMM_UNLIMITED;
  return true;
}

/* ---- at_least -------------------------------------------------------------------------------------------------- */

/* A current size, with its conversion. */
struct option_size {
  const struct hipmm_option *row;
  json_t *value;
  bool is_given, is_number;
  struct option_number number;
};

static struct option_size option_find_size(const struct filling *filling, const struct hipmm_option *row)
{
  struct option_size size = {.row = row};
  size.value = option_current(row, filling->object, &size.is_given);
  bool is_number = option_current_number(row, filling->object, &size.number);
  size.is_number = is_number && !(size.number.is_percent && size.number.value > 100); /* refused elsewhere */
  return size;
}

/* Reports the error at the option that the user wrote. */
static bool option_refuse_below(const struct filling *filling, const struct option_size *small,
                                const struct option_size *large)
{
  char small_text[TEXT_QUOTE_BYTES], large_text[TEXT_QUOTE_BYTES];
  bool blames_large = !small->is_given && large->is_given;
  const char *small_shown = option_show_plain(small->value, small_text, sizeof small_text);
  const char *large_shown = option_show_plain(large->value, large_text, sizeof large_text);
  char *path = text_pointer(filling->context->path, blames_large ? large->row->name : small->row->name);
  struct option_reading reading = {small->row, filling->context, path};
  if (blames_large)
    option_refuse(&reading, "%s is above %s (%s by default)", large_shown, small->row->name, small_shown);
  else
    option_refuse(&reading, "%s is below %s (%s%s)", small_shown, large->row->name, large_shown,
                  large->is_given ? "" : " by default");
  free(path);
  return false;
}

static bool option_check_at_least(const struct filling *filling, const struct hipmm_option *row)
{
  const struct hipmm_option *other = row->at_least ? option_find(filling->table, filling->n, row->at_least) : NULL;
  if (!other) return true;
  struct option_size size = option_find_size(filling, row), least = option_find_size(filling, other);
  bool is_good = !size.is_number || !least.is_number ||
                 option_compare_numbers(size.number, least.number, filling->context) >= 0 ||
                 option_refuse_below(filling, &size, &least);
  json_decref(size.value);
  json_decref(least.value);
  return is_good;
}

bool option_fill(const struct hipmm_option *table, size_t n, json_t *object, const struct option_context *context,
                 void *options_out)
{
  const char *key, *type = json_string_value(json_object_get(object, "type"));
  json_t *value;
  const char *owner = context->owner ? context->owner : type ? type : "this object";
  struct filling filling = {table, n, object, context, owner, options_out};
  bool is_good = true;
  for (size_t i = 0; i < n; i++) option_clear_field(&table[i], options_out);
  json_object_foreach(object, key, value) is_good &= option_read_key(&filling, key, value);
  for (size_t i = 0; i < n; i++)
    if (!json_object_get(object, table[i].name)) is_good &= option_read_missing(&filling, &table[i]);
  for (size_t i = 0; i < n; i++) is_good &= option_check_at_least(&filling, &table[i]);
  if (!is_good) option_free(table, n, options_out);
  return is_good;
}

/* ---- Names of resources in options ----------------------------------------------------------------------------- */

struct visit {
  void (*function)(void *closure, const char *name, const char *relative_path);
  void *closure;
};

static void option_visit_object(const struct hipmm_option *table, size_t n, const json_t *object, const char *path,
                                const struct visit *visit);

static void option_visit_list(const struct hipmm_option *row, const json_t *list, const char *path,
                              const struct visit *visit)
{
  char number[24];
  for (size_t i = 0; i < json_array_size(list); i++) {
    snprintf(number, sizeof number, "%zu", i);
    char *item_path = text_pointer(path, number);
    option_visit_object(row->fields, row->n_fields, json_array_get(list, i), item_path ? item_path : "", visit);
    free(item_path);
  }
}

static void option_visit_object(const struct hipmm_option *table, size_t n, const json_t *object, const char *path,
                                const struct visit *visit)
{
  for (size_t i = 0; i < n; i++) {
    const json_t *value = json_object_get(object, table[i].name);
    if (!value || (table[i].type != HIPMM_OPTION_RESOURCE && table[i].type != HIPMM_OPTION_LIST)) continue;
    char *value_path = text_pointer(path, table[i].name);
    const char *shown = value_path ? value_path : ""; /* without memory the path is lost, but never the name */
    if (table[i].type == HIPMM_OPTION_LIST)
      option_visit_list(&table[i], value, shown, visit);
    else if (json_is_string(value))
      visit->function(visit->closure, json_string_value(value), shown);
    free(value_path);
  }
}

void option_references(const struct hipmm_option *table, size_t n, const json_t *object,
                       void (*visit)(void *closure, const char *name, const char *relative_path), void *closure)
{
  option_visit_object(table, n, object, "", &(struct visit){visit, closure});
}
