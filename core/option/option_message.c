/* SPDX-License-Identifier: MIT */
/* option_message.c: what is said of an option's value, and how the value reads in it. Called by whoever reads
 * options. */
#include "../base/text.h"
#include "option_value.h"

#include <stdio.h>
#include <string.h>

bool option_refuse(const struct option_reading *reading, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  diagnostics_add_arguments(reading->context->report, HIPMM_E_CONFIG, reading->path, format, arguments);
  va_end(arguments);
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
