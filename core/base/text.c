/* SPDX-License-Identifier: MIT */
/* text.c: near names, quotations and JSON pointers for messages. Called by every message that quotes a user's text:
 * such a text must never control the terminal or fill it. Sizes are in units.c. */
#include "text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longer words are never near. */
enum { LONGEST_WORD = 100 };

static size_t text_smaller(size_t a, size_t b)
{
  return a < b ? a : b;
}

static bool text_same_letter(char a, char b)
{
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Damerau's distance in its restricted form: insertions, deletions, substitutions, and transpositions of neighbours.
 * Both words are at most LONGEST_WORD long. */
static size_t text_distance(const char *a, const char *b)
{
  size_t rows[3][LONGEST_WORD + 1];
  size_t *before = rows[0], *above = rows[1], *row = rows[2], width = strlen(b);
  for (size_t j = 0; j <= width; j++) above[j] = before[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    row[0] = i;
    for (size_t j = 1; j <= width; j++) {
      size_t change = above[j - 1] + !text_same_letter(a[i - 1], b[j - 1]);
      row[j] = text_smaller(change, text_smaller(above[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && text_same_letter(a[i - 1], b[j - 2]) && text_same_letter(a[i - 2], b[j - 1]))
        row[j] = text_smaller(row[j], before[j - 2] + 1);
    }
    size_t *oldest = before;
    before = above;
    above = row;
    row = oldest;
  }
  return above[width];
}

/* Whether one word abbreviates the other part by part, each with three letters or more: max_size and maximum_size. */
static bool text_is_abbreviation(const char *word, const char *other)
{
  for (;;) {
    size_t length = strcspn(word, "_-"), other_length = strcspn(other, "_-"),
           common = text_smaller(length, other_length);
    if (strncasecmp(word, other, common) != 0 || (common < 3 && length != other_length)) return false;
    word += length;
    other += other_length;
    if (!*word || !*other) return !*word && !*other;
    word++;
    other++;
  }
}

struct text_near text_near(const char *word)
{
  size_t length = strlen(word), too_far = length / 3 > 1 ? length / 3 + 1 : text_smaller(2, length);
  return (struct text_near){word, length > LONGEST_WORD ? 0 : too_far, NULL};
}

void text_near_try(struct text_near *near, const char *candidate)
{
  if (!near->too_far || strlen(candidate) > LONGEST_WORD) return;
  size_t far = text_distance(near->word, candidate);
  if (far > 1 && text_is_abbreviation(near->word, candidate)) far = 1;
  if (far >= near->too_far) return;
  near->name = candidate;
  near->too_far = far;
}

const char *text_nearest(const char *word, const char *const *candidates, size_t n)
{
  struct text_near near = text_near(word);
  for (size_t i = 0; i < n; i++) text_near_try(&near, candidates[i]);
  return near.name;
}

bool text_is_listed(const char *const *words, const char *word)
{
  while (words && *words && strcmp(*words, word) != 0) words++;
  return words && *words;
}

const char *text_hint(const char *name, char *buffer, size_t buffer_bytes)
{
  if (name)
    snprintf(buffer, buffer_bytes, "; did you mean \"%.160s\"?", name);
  else
    buffer[0] = 0;
  return buffer;
}

/* The code of the UTF-8 character of `n` bytes; TEXT_NO_CODE if they are none: not in the shortest form, or a surrogate. */
enum { TEXT_NO_CODE = 0x110000 };

static uint32_t text_code(const unsigned char *bytes, size_t n)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t code = n == 1 ? bytes[0] : bytes[0] & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((bytes[i] & 0xc0) != 0x80) return TEXT_NO_CODE;
    code = code << 6 | (bytes[i] & 0x3fu);
  }
  return code >= least[n] && !(code >= 0xd800 && code < 0xe000) && code < TEXT_NO_CODE ? code : TEXT_NO_CODE;
}

/* Characters that a terminal interprets, and characters without a shape that reorder, hide or break the text around
 * them: marks of the direction of writing (U+202E shows "exe.txt" for "txt.exe"), invisible marks, line separators. */
static bool text_is_control(uint32_t code)
{
  static const struct {
    uint32_t first, last;
  } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
                {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
                {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (code >= ranges[i].first && code <= ranges[i].last) return true;
  return false;
}

size_t text_character(const char *text, bool *is_control_out)
{
  const unsigned char *bytes = (const unsigned char *)text;
  size_t n = bytes[0] >= 0xf8 ? 1 : bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : bytes[0] >= 0xc0 ? 2 : 1;
  if (n > 1 && text_code(bytes, n) == TEXT_NO_CODE) n = 1;
  *is_control_out = n == 1 ? bytes[0] < 0xa0 && text_is_control(bytes[0]) : text_is_control(text_code(bytes, n));
  return n;
}

bool text_is_utf8(const char *text)
{
  bool is_control;
  for (size_t n; *text; text += n) {
    n = text_character(text, &is_control);
    if (n == 1 && *text & 0x80) return false;
  }
  return true;
}

bool text_is_plain(const char *text)
{
  bool is_control = false;
  for (const char *at = text; *at && !is_control;) at += text_character(at, &is_control);
  return !is_control && text_is_utf8(text);
}

size_t text_escape(const char *text, char escaped[TEXT_ESCAPE_BYTES])
{
  bool is_control;
  size_t n = text_character(text, &is_control);
  uint32_t code = text_code((const unsigned char *)text, n), above = code - 0x10000;
  if (code < 0x10000)
    snprintf(escaped, TEXT_ESCAPE_BYTES, "\\u%04x", code);
  else
    snprintf(escaped, TEXT_ESCAPE_BYTES, "\\u%04x\\u%04x", 0xd800 | (above >> 10 & 0x3ff), 0xdc00 | (above & 0x3ff));
  return n;
}

size_t text_make_plain(char *text)
{
  char *end = text;
  for (const char *at = text; *at;) {
    bool is_control;
    size_t n = text_character(at, &is_control);
    if (is_control)
      *end++ = '?';
    else
      end = (char *)memmove(end, at, n) + n;
    at += n;
  }
  *end = '\0';
  return (size_t)(end - text);
}

void text_append(char *text, size_t bytes, const char *format, ...)
{
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, bytes - used, format, arguments);
  va_end(arguments);
}

/* Writes one character as a quotation shows it; returns its length in `text`. */
static size_t text_quote_character(const char *text, char shown[TEXT_ESCAPE_BYTES])
{
  bool is_control;
  size_t n = text_character(text, &is_control);
  unsigned char first = (unsigned char)text[0];
  if (first == '"' || first == '\\')
    snprintf(shown, TEXT_ESCAPE_BYTES, "\\%c", first);
  else if (first == '\n')
    snprintf(shown, TEXT_ESCAPE_BYTES, "\\n");
  else if (is_control && first >= 0x80 && n == 1)
    snprintf(shown, TEXT_ESCAPE_BYTES, "\\x%02x", first);
  else if (is_control)
    text_escape(text, shown);
  else
    snprintf(shown, TEXT_ESCAPE_BYTES, "%.*s", (int)n, text);
  return n;
}

const char *text_quote(const char *text, char *buffer, size_t buffer_bytes)
{
  static const char end[] = "…\"";
  size_t used = 0;
  if (buffer_bytes < sizeof end + 1) return "\"…\"";
  buffer[used++] = '"';
  while (*text) {
    char shown[TEXT_ESCAPE_BYTES];
    size_t taken = text_quote_character(text, shown), length = strlen(shown);
    if (used + length + sizeof end > buffer_bytes) {
      memcpy(buffer + used, end, sizeof end);
      return buffer;
    }
    memcpy(buffer + used, shown, length);
    used += length;
    text += taken;
  }
  buffer[used++] = '"';
  buffer[used] = '\0';
  return buffer;
}

char *text_add_key(char *end, const char *key)
{
  *end++ = '/';
  for (; *key; key++) {
    if (*key == '~' || *key == '/') *end++ = '~';
    *end++ = *key == '~' ? '0' : *key == '/' ? '1' : *key;
  }
  *end = '\0';
  return end;
}

char *text_pointer(const char *parent, const char *key)
{
  if (!parent) return NULL;
  size_t length = strlen(parent);
  char *pointer = malloc(length + 2 * strlen(key) + 2);
  if (!pointer) return NULL;
  memcpy(pointer, parent, length);
  text_add_key(pointer + length, key);
  return pointer;
}

bool text_is_name(const char *name)
{
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  size_t length = strlen(name);
  return length > 0 && length <= TEXT_LONGEST_NAME && strspn(name, allowed) == length &&
         !(name[0] >= '0' && name[0] <= '9');
}
