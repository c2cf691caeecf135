/* SPDX-License-Identifier: MIT */
/* value.c: the values of options as text, for `hipmm show`. */
#include "show.h"

#include "../../core/base/units.h"
#include <stdlib.h>
#include <string.h>

/* A number of bytes with a unit, if that is exact; else NULL. */
static char *value_bytes_text(json_int_t number)
{
  char words[64], compact[64];
  uint64_t back;
  size_t n = 0;
  units_format_bytes((uint64_t)number, words, sizeof words);
  for (const char *c = words; *c; c++)
    if (*c != ' ') compact[n++] = *c;
  compact[n] = '\0';
  return number >= 1024 && units_parse_bytes(compact, &back) && back == (uint64_t)number ? strdup(compact) : NULL;
}

void value_append(char **text, const char *more)
{
  char *longer = *text && more ? realloc(*text, strlen(*text) + strlen(more) + 1) : NULL;
  if (!longer) {
    free(*text);
    *text = NULL;
    return;
  }
  strcat(longer, more);
  *text = longer;
}

static const struct hipmm_option *value_field(const struct hipmm_option *row, const char *name)
{
  for (uint32_t i = 0; i < row->n_fields; i++)
    if (strcmp(row->fields[i].name, name) == 0) return &row->fields[i];
  return NULL;
}

/* A row of a list: "{size=64KiB, resource=small}". */
static char *value_object_text(const struct hipmm_option *row, json_t *object)
{
  char *text = strdup("{");
  const char *name;
  json_t *value;
  json_object_foreach(object, name, value)
  {
    char *inner = value_text(value_field(row, name), value);
    if (text && text[1]) value_append(&text, ", ");
    value_append(&text, name);
    value_append(&text, "=");
    value_append(&text, inner);
    free(inner);
  }
  value_append(&text, "}");
  return text;
}

static char *value_array_text(const struct hipmm_option *row, const json_t *array)
{
  char *text = strdup("[");
  for (size_t i = 0; i < json_array_size(array); i++) {
    json_t *item = json_array_get(array, i);
    char *inner = json_is_object(item) && row ? value_object_text(row, item) : value_text(row, item);
    if (i > 0) value_append(&text, ", ");
    value_append(&text, inner);
    free(inner);
  }
  value_append(&text, "]");
  return text;
}

static bool value_is_plain(const char *word)
{
  if (!*word) return false;
  for (; *word; word++)
    if ((unsigned char)*word <= ' ' || *word == '"' || *word == ',' || *word == 0x7f) return false;
  return true;
}

char *value_text(const struct hipmm_option *row, const json_t *value)
{
  if (json_is_null(value)) return strdup("not set");
  if (json_is_string(value) && value_is_plain(json_string_value(value))) return strdup(json_string_value(value));
  if (json_is_array(value)) return value_array_text(row, value);
  if (json_is_integer(value) && row && row->type == HIPMM_OPTION_BYTES) {
    char *words = value_bytes_text(json_integer_value(value));
    if (words) return words;
  }
  return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
}
