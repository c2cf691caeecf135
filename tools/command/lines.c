/* SPDX-License-Identifier: MIT */
/* lines.c: see lines.h. */
#include "lines.h"
#include "../../core/base/units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_LABEL = 18, LINES_FIGURE = 15 };

const char *lines_number(uint64_t number, char text[LINES_NUMBER_BYTES])
{
  char digits[24];
  int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  size_t at = 0;
  for (int i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) text[at++] = ',';
    text[at++] = digits[i];
  }
  text[at] = '\0';
  return text;
}

double lines_overhead(uint64_t held_bytes, uint64_t requested_bytes)
{
  return requested_bytes ? (double)held_bytes / (double)requested_bytes : 0;
}

void lines_print_label(const char *label)
{
  printf("  ");
  print_padded(STYLE_OFF, label, LINES_LABEL);
}

static void lines_print_line(const struct line *line, const json_t *value)
{
  char figure[64], number[LINES_NUMBER_BYTES], bytes[LINES_NUMBER_BYTES + sizeof " bytes"] = "";
  uint64_t count = (uint64_t)json_integer_value(value);
  enum style kind = line->kind != LINE_FAILURES ? STYLE_NAME : count ? STYLE_BAD : STYLE_GOOD;
  switch (line->kind) {
  case LINE_RATIO: snprintf(figure, sizeof figure, "%.3f", json_number_value(value)); break;
  case LINE_NS: snprintf(figure, sizeof figure, "%.1f ns", json_number_value(value)); break;
  case LINE_BYTES:
    units_format_bytes(count, figure, sizeof figure);
    snprintf(bytes, sizeof bytes, "%s bytes", lines_number(count, number));
    break;
  default: lines_number(count, figure);
  }
  lines_print_label(line->label);
  printf("%s%*s%s", style(kind), LINES_FIGURE, figure, style(STYLE_OFF));
  printf("%s%s", *bytes ? "  " : "", bytes);
  printf("%s%s\n", line->remark ? "  " : "", line->remark ? line->remark : "");
}

void lines_print(const json_t *result, const struct line *lines, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const json_t *value = json_object_get(result, lines[i].key);
    bool is_left_out = !json_is_number(value) || (lines[i].kind == LINE_ODDITY && !json_integer_value(value));
    if (!is_left_out) lines_print_line(&lines[i], value);
  }
}

json_t *lines_at(const json_t *object, const char *path)
{
  char key[64];
  while (object && *path) {
    size_t length = strcspn(path, ".");
    snprintf(key, sizeof key, "%.*s", (int)length, path);
    object = json_is_array(object) ? json_array_get(object, strtoul(key, NULL, 10)) : json_object_get(object, key);
    path += length + (path[length] == '.');
  }
  return (json_t *)object;
}

uint64_t lines_count(const json_t *object, const char *path)
{
  json_int_t number = json_integer_value(lines_at(object, path));
  return number > 0 ? (uint64_t)number : 0;
}

const char *lines_text(const json_t *object, const char *path)
{
  const char *text = json_string_value(lines_at(object, path));
  return text ? text : "";
}

/* ---- Sentences ------------------------------------------------------------------------------------------------- */

void lines_heading(const char *heading)
{
  print_padded(STYLE_NAME, heading, 0);
  putchar('\n');
}

static void lines_print_words(struct wrap wrap, enum style kind, const char *format, va_list arguments)
{
  char *text = NULL;
  if (vasprintf(&text, format, arguments) < 0) return;
  wrap_words(&wrap, kind, text);
  wrap_end(&wrap);
  free(text);
}

void lines_say(enum style kind, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  lines_print_words((struct wrap){.prefix = ""}, kind, format, arguments);
  va_end(arguments);
}

void lines_item(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  printf("- ");
  lines_print_words((struct wrap){.prefix = "  ", .column = 2}, STYLE_OFF, format, arguments);
  va_end(arguments);
}

void lines_items(const json_t *sentences)
{
  size_t i;
  json_t *sentence;
  json_array_foreach(sentences, i, sentence) lines_item("%s", json_string_value(sentence));
}
