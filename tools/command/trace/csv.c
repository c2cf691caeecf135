/* SPDX-License-Identifier: MIT */
/* csv.c: see csv.h. */
#include "csv.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CSV_QUOTED = 40 };

static struct csv_field csv_trim(const char *start, const char *end)
{
  while (start < end && (*start == ' ' || *start == '\t')) start++;
  while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  if (end - start > 1 && *start == '"' && end[-1] == '"') start++, end--;
  return (struct csv_field){start, end};
}

int csv_split(const char *line, const char *end, struct csv_field *fields)
{
  int n = 0;
  bool is_quoted = false;
  for (const char *start = line, *at = line;; at++) {
    if (at < end && *at == '"' && (is_quoted || csv_trim(start, at).start == at)) is_quoted = !is_quoted;
    if (at < end && (*at != ',' || is_quoted)) continue;
    if (n < CSV_MOST_COLUMNS) fields[n] = csv_trim(start, at);
    n++;
    if (at == end) return n;
    start = at + 1;
  }
}

bool csv_field_is(struct csv_field field, const char *word)
{
  size_t length = strlen(word);
  return (size_t)(field.end - field.start) == length && strncasecmp(field.start, word, length) == 0;
}

bool csv_refuse(char *message, size_t message_bytes, struct csv_field field, const char *what)
{
  int length = (int)(field.end - field.start);
  snprintf(message, message_bytes, "\"%.*s%s\" %s", length < CSV_QUOTED ? length : CSV_QUOTED, field.start,
           length < CSV_QUOTED ? "" : "…", what);
  return false;
}

bool csv_read_decimal(const char *at, const char *end, uint64_t *number_out)
{
  uint64_t number = 0;
  if (at == end) return false;
  for (; at < end; at++) {
    unsigned digit = (unsigned)*at - '0';
    if (digit > 9 || __builtin_mul_overflow(number, 10u, &number) || __builtin_add_overflow(number, digit, &number))
      return false;
  }
  *number_out = number;
  return true;
}

static int csv_digit_of(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static bool csv_read_hexadecimal(const char *at, const char *end, uint64_t *number_out)
{
  uint64_t number = 0;
  if (at == end) return false;
  for (; at < end; at++) {
    int digit = csv_digit_of(*at);
    if (digit < 0 || number >> 60) return false;
    number = number << 4 | (unsigned)digit;
  }
  *number_out = number;
  return true;
}

bool csv_read_address(struct csv_field field, uint64_t *number_out)
{
  const char *at = field.start;
  if (field.end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
    return csv_read_hexadecimal(at + 2, field.end, number_out);
  if (!csv_field_is(field, "(nil)")) return csv_read_decimal(at, field.end, number_out);
  *number_out = 0;
  return true;
}

bool csv_read_seconds(struct csv_field field, int64_t *nanoseconds_out)
{
  char text[32], *end;
  size_t length = (size_t)(field.end - field.start);
  if (length >= sizeof text) return false;
  memcpy(text, field.start, length);
  text[length] = '\0';
  double seconds = strtod(text, &end);
  *nanoseconds_out = seconds >= 0 && seconds < 9e9 ? (int64_t)(seconds * 1e9) : TRACE_NO_TIME;
  return end > text && !*end;
}

int csv_find_column(const struct csv_field *fields, int n, const char *name)
{
  for (int i = 0; i < n && i < CSV_MOST_COLUMNS; i++)
    if (csv_field_is(fields[i], name)) return i;
  return -1;
}
