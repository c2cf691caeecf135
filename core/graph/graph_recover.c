/* SPDX-License-Identifier: MIT */
/* graph_recover.c: what a syntax error of a graph's JSON is, and how the text would be without it. Called by
 * graph_syntax.c. Never inserts more than GRAPH_TEXT_MOST_INSERTED characters into a text, and never removes one. */
#include "graph_recover.h"

#include "../base/text.h"
#include "../base/units.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- The text -------------------------------------------------------------------------------------------------- */

size_t graph_text_given_offset(const struct graph_text *text, size_t offset)
{
  size_t n = 0;
  while (n < text->n_inserted && text->inserted[n] < offset) n++;
  return offset - n;
}

/* Insertions come in the order of the text. */
static bool graph_recover_insert(struct graph_text *text, size_t at, char character)
{
  if (text->n_inserted == GRAPH_TEXT_MOST_INSERTED) return false;
  memmove(text->recovered + at + 1, text->recovered + at, text->bytes - at + 1);
  text->recovered[at] = character;
  text->bytes++;
  text->inserted[text->n_inserted++] = at;
  return true;
}

/* ---- What is wrong --------------------------------------------------------------------------------------------- */

static void graph_recover_advise(struct graph_recover_error *error, const char *hint, enum graph_recovery recovery)
{
  error->hint = hint;
  error->recovery = recovery;
}

/* A number of Python's that JSON does not have. */
static bool graph_recover_is_no_number(const char *near)
{
  return !strcmp(near, "NaN'") || !strcmp(near, "Infinity'") || !strcmp(near, "inf'") || !strcmp(near, "nan'");
}

/* Whether a blank and the token behind a number are its unit: `16 GB`. */
static bool graph_recover_is_unit(const char *blank, const char *near)
{
  char size[16];
  uint64_t bytes;
  snprintf(size, sizeof size, "1%.*s", (int)strcspn(near, "'"), near);
  return blank[strspn(blank, " \t")] == *near && units_parse_bytes(size, &bytes);
}

/* How far the parser gets in the text with this inserted. */
static size_t graph_recover_try(const char *text, size_t at, const char *inserted)
{
  json_error_t error = {.position = 0};
  size_t bytes = strlen(text), more = strlen(inserted);
  char *recovered = malloc(bytes + more + 1);
  if (!recovered) return 0;
  memcpy(recovered, text, at);
  memcpy(recovered + at, inserted, more);
  memcpy(recovered + at + more, text + at, bytes - at + 1);
  json_t *value = json_loadb(recovered, bytes + more, 0, &error);
  size_t reached = value ? bytes + 1 : (size_t)error.position - more;
  json_decref(value);
  free(recovered);
  return reached;
}

/* In a list or an object the next part comes without a comma. The end of the list or object lacks too if the rest then makes
 * more sense: a forgotten "}," is one mistake. */
static void graph_recover_classify_next(struct graph_recover_error *error, const char *text, char bracket)
{
  const char both[] = {bracket, ',', '\0'};
  bool is_open = graph_recover_try(text, error->at, both) > graph_recover_try(text, error->at, ",");
  if (is_open)
    graph_recover_advise(error, bracket == '}' ? "; is \"},\" missing before it?" : "; is \"],\" missing before it?",
                         RECOVER_CLOSE);
  else
    graph_recover_advise(error, "; is a comma missing before it?", RECOVER_COMMA);
}

/* Where the parser expects something else than the token. */
static void graph_recover_classify_token(struct graph_recover_error *error, const char *text)
{
  const char *near = error->near, *expected = error->report.text;
  bool is_end = *near == ']' || *near == '}', wants_end = expected[0] == '\'' && strchr("]}", expected[1]);
  bool is_word = isalpha((unsigned char)*near), wants_name = !strncmp(expected, "string or", 9);
  bool is_unit = is_word || *near == '%';
  size_t before = error->at;
  while (before && strchr(" \t\r\n", text[before - 1])) before--;
  if (*near == '\'') {
    graph_recover_advise(error, "; JSON has double quotes only", RECOVER_QUOTES);
  } else if (*near == '/' || *near == '#') {
    graph_recover_advise(error, "; JSON has no comments", RECOVER_COMMENT);
  } else if (is_end && before && text[before - 1] == ',') {
    error->at = before - 1;
    graph_recover_advise(error, "; the comma before it is one too many", RECOVER_BLANK);
  } else if (!is_end && wants_name) {
    graph_recover_advise(error, "; names stand in double quotes", RECOVER_WORD);
  } else if (!strncmp(expected, "':'", 3)) {
    graph_recover_advise(error, is_word ? "; is a quote missing before it?" : "; is a colon missing before it?",
                         is_word ? RECOVER_NONE : RECOVER_COLON);
  } else if (is_word && !strncmp(expected, "invalid token", 13)) {
    graph_recover_advise(error, "; a word is true, false or null, in lower case, or text in double quotes",
                         graph_recover_is_no_number(near) ? RECOVER_NUMBER : RECOVER_WORD);
  } else if (wants_end && is_unit && before && isdigit((unsigned char)text[before - 1]) &&
             (before == error->at || graph_recover_is_unit(text + before, near))) {
    error->at = before;
    while (error->at && strchr("0123456789.+-", text[error->at - 1])) error->at--;
    graph_recover_advise(error, "; a number with a unit stands in double quotes", RECOVER_WORD);
  } else if (wants_end && is_end) {
    error->recovery = RECOVER_BRACKET;
  } else if (wants_end) {
    graph_recover_classify_next(error, text, expected[1]);
  } else if (!strncmp(expected, "'[' or '{'", 10)) {
    graph_recover_advise(error, "; write a JSON object, in braces", RECOVER_NONE);
  } else if (error->code == json_error_numeric_overflow) {
    error->recovery = RECOVER_NUMBER;
  }
}

/* The token ends where the parser stopped. */
void graph_recover_classify(struct graph_recover_error *error, const char *text)
{
  size_t end = error->report.position > 0 ? (size_t)error->report.position : 0;
  const char *near = strstr(error->report.text, " near '");
  error->code = json_error_code(&error->report);
  error->at = end - (end > 0);
  graph_recover_advise(error, "", RECOVER_NONE);
  if (error->code == json_error_null_character || error->code == json_error_null_byte_in_key) {
    error->recovery = RECOVER_ZERO;
  } else if (error->code == json_error_invalid_utf8) {
    error->recovery = RECOVER_BYTES;
  } else if (near) {
    error->near = near + strlen(" near '");
    size_t length = strlen(error->near) - 1;
    error->at = end - (length < end ? length : end);
    graph_recover_classify_token(error, text);
  } else if (strstr(error->report.text, " near end of file")) {
    error->recovery = RECOVER_END;
  }
}

/* ---- Mending --------------------------------------------------------------------------------------------------- */

static bool graph_recover_blank_comment(char *at)
{
  const char *close = *at == '/' && at[1] == '*' ? strstr(at + 2, "*/") : NULL;
  size_t length = close ? (size_t)(close - at) + 2 : strcspn(at, "\n");
  if (*at == '/' && at[1] != '/' && !close) return false;
  for (size_t i = 0; i < length; i++)
    if (at[i] != '\n') at[i] = ' ';
  return true;
}

static bool graph_recover_double_quotes(char *at)
{
  size_t length = strcspn(at + 1, "'\"\\\n");
  if (at[length + 1] != '\'') return false;
  at[0] = at[length + 1] = '"';
  return true;
}

static bool graph_recover_quote_word(struct graph_text *text, size_t at)
{
  static const struct {
    const char *word, *meaning;
  } meanings[] = {{"true", "true"}, {"false", "false"}, {"null", "null"}, {"none", "null"}};
  char *word = text->recovered + at;
  size_t length = 0;
  while (isalnum((unsigned char)word[length]) || (word[length] && strchr("_.-+%", word[length]))) length++;
  size_t unit = length + strspn(word + length, " \t");
  if (isdigit((unsigned char)word[0]) && isalpha((unsigned char)word[unit]))
    for (length = unit; isalpha((unsigned char)word[length]);) length++;
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
    if (strlen(meanings[i].word) != length || strncasecmp(meanings[i].word, word, length) != 0) continue;
    memcpy(word, meanings[i].meaning, length);
    return true;
  }
  return length && graph_recover_insert(text, at, '"') && graph_recover_insert(text, at + 1 + length, '"');
}

/* Closes all brackets that are open at the end. */
static bool graph_recover_close(struct graph_text *text)
{
  char open[GRAPH_TEXT_MOST_INSERTED];
  size_t depth = 0;
  bool is_string = false;
  for (const char *at = text->recovered; *at; at++) {
    if (is_string && *at == '\\' && at[1]) {
      at++;
    } else if (*at == '"') {
      is_string = !is_string;
    } else if (!is_string && (*at == '{' || *at == '[')) {
      if (depth == sizeof open) return false;
      open[depth++] = *at == '{' ? '}' : ']';
    } else if (!is_string && (*at == '}' || *at == ']')) {
      if (!depth || open[--depth] != *at) return false;
    }
  }
  bool is_good = depth > 0 && !is_string;
  while (is_good && depth) is_good = graph_recover_insert(text, text->bytes, open[--depth]);
  return is_good;
}

static bool graph_recover_replace_zero(char *text)
{
  char *zero = strstr(text, "\\u0000");
  if (zero) memcpy(zero, "\\u003f", 6);
  return zero != NULL;
}

static bool graph_recover_replace_bytes(char *text)
{
  bool is_control, is_replaced = false;
  for (size_t n; *text; text += n) {
    n = text_character(text, &is_control);
    bool is_outside = n == 1 && *text & 0x80;
    if (is_outside) *text = '?';
    if (is_replaced && !is_outside) return true;
    is_replaced |= is_outside;
  }
  return is_replaced;
}

bool graph_recover_apply(const struct graph_recover_error *error, struct graph_text *text)
{
  char *at = text->recovered + error->at;
  switch (error->recovery) {
  case RECOVER_NONE: break;
  case RECOVER_COMMENT: return graph_recover_blank_comment(at);
  case RECOVER_BLANK: *at = ' '; return true;
  case RECOVER_COMMA: return graph_recover_insert(text, error->at, ',');
  case RECOVER_COLON: return graph_recover_insert(text, error->at, ':');
  case RECOVER_QUOTES: return graph_recover_double_quotes(at);
  case RECOVER_WORD: return graph_recover_quote_word(text, error->at);
  case RECOVER_CLOSE:
    return graph_recover_insert(text, error->at, error->report.text[1]) &&
           graph_recover_insert(text, error->at + 1, ',');
  case RECOVER_BRACKET: return graph_recover_insert(text, error->at, error->report.text[1]);
  case RECOVER_END: return graph_recover_close(text);
  case RECOVER_NUMBER: *(char *)memset(at, ' ', strlen(error->near) - 1) = '1'; return true;
  case RECOVER_ZERO: return graph_recover_replace_zero(text->recovered);
  case RECOVER_BYTES: return graph_recover_replace_bytes(text->recovered);
  }
  return false;
}
