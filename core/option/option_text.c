/* SPDX-License-Identifier: MIT */
/* option_text.c: options as plain text instead of JSON: defaults of option tables, environment variables such as
 * HIPMM_SOFTWARE=devices=2,memory=16GiB, and values in messages. Never checks a value: option_fill() does. */
#include "../base/text.h"
#include "option_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values in messages ---- */

bool option_refuse(const struct option_reading *reading, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(reading->context->diagnostics, HIPMM_E_CONFIG, reading->path, format, arguments);
  va_end(arguments);
  return false;
}

bool option_refuse_value(const struct option_reading *reading, const json_t *value, const char *what)
{
  char shown[TEXT_QUOTE_BYTES];
  return option_refuse(reading, "%s %s", option_show(value, shown, sizeof shown), what);
}

bool option_refuse_memory(const struct option_reading *reading)
{
  diagnostics_add(reading->context->diagnostics, HIPMM_E_OUT_OF_MEMORY, reading->path, "no host memory for this value");
  return false;
}

const char *option_show(const json_t *value, char *buffer, size_t buffer_bytes)
{
  if (json_is_string(value)) return text_quote(json_string_value(value), buffer, buffer_bytes);
  const char *word = json_is_array(value) ? "a list" : json_is_object(value) ? "an object" : NULL;
  size_t length = word ? 0 : json_dumpb(value, buffer, buffer_bytes - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
  buffer[length < buffer_bytes ? length : 0] = '\0';
  if (word) snprintf(buffer, buffer_bytes, "%s", word);
  return buffer;
}

const char *option_show_plain(const json_t *value, char *buffer, size_t buffer_bytes)
{
  option_show(value, buffer, buffer_bytes);
  if (!json_is_string(value)) return buffer;
  buffer[strlen(buffer) - 1] = '\0';
  return buffer + 1;
}

const char *option_example(const struct hipmm_option *row, char *buffer, size_t buffer_bytes)
{
  static const char *const values[] = {
      [HIPMM_OPTION_BOOL] = "true",         [HIPMM_OPTION_INTEGER] = "1",          [HIPMM_OPTION_BYTES] = "\"512MiB\"",
      [HIPMM_OPTION_RATIO] = "0.5",         [HIPMM_OPTION_DURATION] = "\"10ms\"",  [HIPMM_OPTION_ENUM] = "\"WORD\"",
      [HIPMM_OPTION_STRING] = "\"TEXT\"",   [HIPMM_OPTION_STRINGS] = "[\"TEXT\"]", [HIPMM_OPTION_LIST] = "[{…}]",
      [HIPMM_OPTION_RESOURCE] = "\"NAME\"", [HIPMM_OPTION_OBJECT] = "\"NAME\""};
  const char *value = row->type < sizeof values / sizeof *values ? values[row->type] : NULL;
  bool is_word = row->type == HIPMM_OPTION_ENUM && row->choices && row->choices[0];
  snprintf(buffer, buffer_bytes, is_word ? "\"%s\": \"%s\"" : "\"%s\": %s", row->name,
           is_word ? row->choices[0]
           : value ? value
                   : "…");
  return buffer;
}

const char *option_example_item(const struct hipmm_option *row, char *buffer, size_t buffer_bytes)
{
  char field[TEXT_QUOTE_BYTES];
  size_t used = 0;
  if (row->n_fields) option_example(&row->fields[0], buffer, buffer_bytes);
  for (size_t i = 0; i < row->n_fields && used < buffer_bytes; i++)
    if (row->fields[i].flags & HIPMM_OPTION_REQUIRED)
      used += (size_t)snprintf(buffer + used, buffer_bytes - used, "%s%s", used ? ", " : "",
                               option_example(&row->fields[i], field, sizeof field));
  return row->n_fields ? buffer : "";
}

/* ---- Text to JSON ---- */

const struct hipmm_option *option_find(const struct hipmm_option *table, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}

/* Whether the row takes a JSON value of this kind, and not only a string. */
static bool option_text_fits(uint32_t type, const json_t *value)
{
  switch (type) {
  case HIPMM_OPTION_BOOL: return json_is_boolean(value);
  case HIPMM_OPTION_INTEGER:
  case HIPMM_OPTION_RATIO: return json_is_number(value);
  case HIPMM_OPTION_BYTES: return json_is_integer(value);
  case HIPMM_OPTION_STRINGS:
  case HIPMM_OPTION_LIST: return json_is_array(value);
  default: return false;
  }
}

json_t *option_parse_json(const char *text, size_t bytes, size_t flags, json_error_t *error_out, bool *lacks_memory_out)
{
  errno = 0;
  json_t *value = json_loadb(text, bytes, flags, error_out);
  *lacks_memory_out = errno == ENOMEM;
  if (!*lacks_memory_out) return value;
  json_decref(value);
  return NULL;
}

/* "a;b;c" as an array. */
static json_t *option_text_split_list(const char *text)
{
  json_t *array = json_array();
  while (array && *text) {
    size_t length = strcspn(text, ";");
    if (json_array_append_new(array, json_stringn(text, length))) {
      json_decref(array);
      return NULL;
    }
    text += length + (text[length] == ';');
  }
  return array;
}

json_t *option_from_text(const struct hipmm_option *row, const char *text)
{
  bool lacks_memory;
  json_t *value = option_parse_json(text, strlen(text), JSON_DECODE_ANY, NULL, &lacks_memory);
  if (lacks_memory || option_text_fits(row->type, value)) return value;
  json_decref(value);
  return row->type == HIPMM_OPTION_STRINGS ? option_text_split_list(text) : json_string(text);
}

/* The same for a value that a program sets: a string may also be in quotes, as in JSON. */
static json_t *option_from_setting(const struct hipmm_option *row, const char *text)
{
  bool lacks_memory = false;
  json_t *value = *text == '"' ? option_parse_json(text, strlen(text), JSON_DECODE_ANY, NULL, &lacks_memory) : NULL;
  return value || lacks_memory ? value : option_from_text(row, text);
}

/* Without host memory jansson leaves ENOMEM in errno; what it refuses else is not UTF-8. */
static enum hipmm_status option_text_put(json_t *object, const char *name, json_t *value)
{
  if (!json_object_set_new(object, name, value)) return HIPMM_OK;
  return errno == ENOMEM ? HIPMM_E_OUT_OF_MEMORY : HIPMM_E_ARGUMENT;
}

enum hipmm_status option_set_text(const struct hipmm_option *table, size_t n, const char *name, const char *text,
                                  json_t *object)
{
  const struct hipmm_option *row = option_find(table, n, name);
  errno = 0;
  json_t *value = row ? option_from_setting(row, text) : json_string(text);
  return option_text_put(object, name, value);
}

json_t *option_current(const struct hipmm_option *row, const json_t *object, bool *given_out)
{
  json_t *value = json_object_get(object, row->name);
  *given_out = value != NULL;
  if (value) return json_incref(value);
  value = row->initial ? option_from_text(row, row->initial) : NULL;
  return value ? value : json_null();
}

json_t *option_copy_current(const struct hipmm_option *row, const json_t *object, bool *given_out)
{
  json_t *value = json_object_get(object, row->name);
  if (!value) return option_current(row, NULL, given_out);
  *given_out = true;
  return json_deep_copy(value);
}

/* An unknown key is set too: option_fill() refuses it and names the nearest option. */
static bool option_text_overlay_piece(const struct hipmm_option *table, size_t n, const char *variable, char *piece,
                                      json_t *object, struct diagnostics *diagnostics)
{
  char shown[TEXT_QUOTE_BYTES];
  char *equals = strchr(piece, '=');
  if (!equals || equals == piece) {
    diagnostics_add(diagnostics, HIPMM_E_CONFIG, variable, "%s is not KEY=VALUE; separate several with commas",
                    text_quote(piece, shown, sizeof shown));
    return false;
  }
  *equals = '\0';
  const struct hipmm_option *row = option_find(table, n, piece);
  errno = 0;
  json_t *value = row ? option_from_text(row, equals + 1) : json_string(equals + 1);
  enum hipmm_status status = option_text_put(object, piece, value);
  *equals = '=';
  text_quote(piece, shown, sizeof shown);
  if (status == HIPMM_E_OUT_OF_MEMORY)
    diagnostics_add(diagnostics, status, variable, "no host memory for %s", shown);
  else if (status)
    diagnostics_add(diagnostics, HIPMM_E_CONFIG, variable, "%s is not valid UTF-8", shown);
  return !status;
}

bool option_overlay(const struct hipmm_option *table, size_t n, const char *variable, const char *text, json_t *object,
                    struct diagnostics *diagnostics)
{
  if (!*text) return true;
  char *copy = strdup(text), *rest = copy;
  if (!copy) {
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, variable, "no host memory");
    return false;
  }
  bool is_good = true;
  while (rest) is_good &= option_text_overlay_piece(table, n, variable, strsep(&rest, ","), object, diagnostics);
  free(copy);
  return is_good;
}

/* ---- JSON to text ---- */

/* Writes a string without its quotes, and the items of a list separated by semicolons. False if parsing the result
 * would give another value. */
static bool option_text_write_value(FILE *stream, const json_t *value)
{
  size_t i;
  json_t *item;
  bool is_good = true;
  if (json_is_string(value)) {
    fputs(json_string_value(value), stream);
    return !strpbrk(json_string_value(value), ",;");
  }
  if (!json_is_array(value)) return !json_is_object(value) && !json_dumpf(value, stream, JSON_ENCODE_ANY);
  json_array_foreach(value, i, item)
  {
    if (i) fputc(';', stream);
    is_good &= json_is_string(item) && option_text_write_value(stream, item);
  }
  return is_good;
}

char *option_overlay_text(json_t *object, const char *except)
{
  char *text = NULL;
  size_t bytes;
  const char *key, *comma = "";
  json_t *value;
  FILE *stream = open_memstream(&text, &bytes);
  bool is_good = stream != NULL;
  json_object_foreach(object, key, value)
  {
    if (!is_good || !strcmp(key, except)) continue;
    fprintf(stream, "%s%s=", comma, key);
    is_good = option_text_write_value(stream, value);
    comma = ",";
  }
  if (stream && fclose(stream)) is_good = false;
  if (is_good) return text;
  free(text);
  return NULL;
}
