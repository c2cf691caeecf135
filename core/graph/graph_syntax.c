/* SPDX-License-Identifier: MIT */
/* graph_syntax.c: parses the JSON of a graph, or of options. Called by graph.c and for resources made in code. The parser
 * stops at the first syntax error. For `hipmm check`, which lists all errors of a file, the error is mended in a copy of
 * the text, as its message advises, and the copy is parsed again. */
#include "../base/text.h"
#include "graph_build.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A mended text may be parsed so many times: a file may have 16 MiB. */
enum { GRAPH_SYNTAX_MOST_MENDED = 40 };

/* How a syntax error is mended. After those from MEND_GUESS on, only the syntax of the rest can be trusted. */
enum mend {
  MEND_NONE,    /* the meaning of the rest is not known */
  MEND_COMMENT, /* blank it */
  MEND_BLANK,   /* blank one character */
  MEND_COMMA,   /* insert one */
  MEND_COLON,
  MEND_QUOTES, /* make single quotes double */
  MEND_WORD,   /* put a word, or a number with a unit, in quotes; true, false and null in lower case */
  MEND_GUESS,
  MEND_BRACKET = MEND_GUESS, /* insert the one that is expected */
  MEND_END,                  /* close all that is open */
  MEND_NUMBER,               /* put one in its place */
  MEND_ZERO,                 /* the same for \u0000 */
  MEND_BYTES                 /* the same for bytes outside of any character */
};

/* A syntax error as the parser reports it, and what is made of it. */
struct syntax_error {
  json_error_t report;
  enum json_error_code code;
  const char *near; /* the token at which the parser stopped, within the report; NULL: none */
  size_t at;        /* the place in the mended text */
  const char *hint; /* the end of the message */
  enum mend mend;
};

/* ---- The text -------------------------------------------------------------------------------------------------- */

size_t graph_text_given_offset(const struct graph_text *text, size_t offset)
{
  size_t n = 0;
  while (n < text->n_inserted && text->inserted[n] < offset) n++;
  return offset - n;
}

/* Insertions come in the order of the text. */
static bool graph_syntax_insert(struct graph_text *text, size_t at, char character)
{
  if (text->n_inserted == GRAPH_TEXT_MOST_INSERTED) return false;
  memmove(text->mended + at + 1, text->mended + at, text->bytes - at + 1);
  text->mended[at] = character;
  text->bytes++;
  text->inserted[text->n_inserted++] = at;
  return true;
}

/* ---- What is wrong --------------------------------------------------------------------------------------------- */

static void graph_syntax_advise(struct syntax_error *error, const char *hint, enum mend mend)
{
  error->hint = hint;
  error->mend = mend;
}

/* A number of Python's that JSON does not have. */
static bool graph_syntax_is_no_number(const char *near)
{
  return !strcmp(near, "NaN'") || !strcmp(near, "Infinity'") || !strcmp(near, "inf'") || !strcmp(near, "nan'");
}

/* Where the parser expects something else than the token. */
static void graph_syntax_judge_token(struct syntax_error *error, const char *text)
{
  const char *near = error->near, *expected = error->report.text;
  bool is_end = *near == ']' || *near == '}', wants_end = expected[0] == '\'' && strchr("]}", expected[1]);
  bool is_word = isalpha((unsigned char)*near), wants_name = !strncmp(expected, "string or", 9);
  size_t before = error->at;
  while (before && strchr(" \t\r\n", text[before - 1])) before--;
  if (*near == '\'') {
    graph_syntax_advise(error, "; JSON has double quotes only", MEND_QUOTES);
  } else if (*near == '/' || *near == '#') {
    graph_syntax_advise(error, "; JSON has no comments", MEND_COMMENT);
  } else if (is_end && before && text[before - 1] == ',') {
    error->at = before - 1;
    graph_syntax_advise(error, "; the comma before it is one too many", MEND_BLANK);
  } else if (!is_end && wants_name) {
    graph_syntax_advise(error, "; names stand in double quotes", MEND_WORD);
  } else if (!strncmp(expected, "':'", 3)) {
    graph_syntax_advise(error, is_word ? "; is a quote missing before it?" : "; is a colon missing before it?",
                        is_word ? MEND_NONE : MEND_COLON);
  } else if (is_word && !strncmp(expected, "invalid token", 13)) {
    graph_syntax_advise(error, "; a word is true, false or null, in lower case, or text in double quotes",
                        graph_syntax_is_no_number(near) ? MEND_NUMBER : MEND_WORD);
  } else if (wants_end && is_word && error->at && isdigit((unsigned char)text[error->at - 1])) {
    while (error->at && strchr("0123456789.+-", text[error->at - 1])) error->at--;
    graph_syntax_advise(error, "; a number with a unit stands in double quotes", MEND_WORD);
  } else if (wants_end) {
    graph_syntax_advise(error, is_end ? "" : "; is a comma missing before it?", is_end ? MEND_BRACKET : MEND_COMMA);
  } else if (error->code == json_error_numeric_overflow) {
    error->mend = MEND_NUMBER;
  }
}

/* The token ends where the parser stopped. */
static void graph_syntax_judge(struct syntax_error *error, const char *text)
{
  size_t end = error->report.position > 0 ? (size_t)error->report.position : 0;
  const char *near = strstr(error->report.text, " near '");
  error->code = json_error_code(&error->report);
  error->at = end - (end > 0);
  graph_syntax_advise(error, "", MEND_NONE);
  if (error->code == json_error_null_character || error->code == json_error_null_byte_in_key) {
    error->mend = MEND_ZERO;
  } else if (error->code == json_error_invalid_utf8) {
    error->mend = MEND_BYTES;
  } else if (near) {
    error->near = near + strlen(" near '");
    size_t length = strlen(error->near) - 1;
    error->at = end - (length < end ? length : end);
    graph_syntax_judge_token(error, text);
  } else if (strstr(error->report.text, " near end of file")) {
    error->mend = MEND_END;
  }
}

static void graph_syntax_report(const struct syntax_error *error, const struct graph_text *text,
                                struct diagnostics *diagnostics)
{
  int line, column;
  graph_position_at(text->given, graph_text_given_offset(text, error->at), &line, &column);
  diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column, "%s%s",
                     error->mend == MEND_ZERO ? "\\u0000 is not allowed" : error->report.text, error->hint);
}

/* ---- Mending --------------------------------------------------------------------------------------------------- */

static bool graph_syntax_blank_comment(char *at)
{
  const char *close = *at == '/' && at[1] == '*' ? strstr(at + 2, "*/") : NULL;
  size_t length = close ? (size_t)(close - at) + 2 : strcspn(at, "\n");
  if (*at == '/' && at[1] != '/' && !close) return false;
  for (size_t i = 0; i < length; i++)
    if (at[i] != '\n') at[i] = ' ';
  return true;
}

static bool graph_syntax_double_quotes(char *at)
{
  size_t length = strcspn(at + 1, "'\"\\\n");
  if (at[length + 1] != '\'') return false;
  at[0] = at[length + 1] = '"';
  return true;
}

static bool graph_syntax_quote_word(struct graph_text *text, size_t at)
{
  static const struct {
    const char *word, *meaning;
  } meanings[] = {{"true", "true"}, {"false", "false"}, {"null", "null"}, {"none", "null"}};
  char *word = text->mended + at;
  size_t length = 0;
  while (isalnum((unsigned char)word[length]) || (word[length] && strchr("_.-+%", word[length]))) length++;
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
    if (strlen(meanings[i].word) != length || strncasecmp(meanings[i].word, word, length) != 0) continue;
    memcpy(word, meanings[i].meaning, length);
    return true;
  }
  return length && graph_syntax_insert(text, at, '"') && graph_syntax_insert(text, at + 1 + length, '"');
}

/* Closes all brackets that are open at the end. */
static bool graph_syntax_close(struct graph_text *text)
{
  char open[GRAPH_TEXT_MOST_INSERTED];
  size_t depth = 0;
  bool is_string = false;
  for (const char *at = text->mended; *at; at++) {
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
  while (is_good && depth) is_good = graph_syntax_insert(text, text->bytes, open[--depth]);
  return is_good;
}

static bool graph_syntax_replace_zero(char *text)
{
  char *zero = strstr(text, "\\u0000");
  if (zero) memcpy(zero, "\\u003f", 6);
  return zero != NULL;
}

static bool graph_syntax_replace_bytes(char *text)
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

static bool graph_syntax_mend(const struct syntax_error *error, struct graph_text *text)
{
  char *at = text->mended + error->at;
  switch (error->mend) {
  case MEND_NONE: break;
  case MEND_COMMENT: return graph_syntax_blank_comment(at);
  case MEND_BLANK: *at = ' '; return true;
  case MEND_COMMA: return graph_syntax_insert(text, error->at, ',');
  case MEND_COLON: return graph_syntax_insert(text, error->at, ':');
  case MEND_QUOTES: return graph_syntax_double_quotes(at);
  case MEND_WORD: return graph_syntax_quote_word(text, error->at);
  case MEND_BRACKET: return graph_syntax_insert(text, error->at, error->report.text[1]);
  case MEND_END: return graph_syntax_close(text);
  case MEND_NUMBER: *(char *)memset(at, ' ', strlen(error->near) - 1) = '1'; return true;
  case MEND_ZERO: return graph_syntax_replace_zero(text->mended);
  case MEND_BYTES: return graph_syntax_replace_bytes(text->mended);
  }
  return false;
}

/* ---- Names that stand twice ------------------------------------------------------------------------------------ */

static void graph_syntax_report_duplicate(const struct graph_text *text, size_t at, const char *name,
                                          struct diagnostics *diagnostics)
{
  char shown[TEXT_QUOTE_BYTES];
  int line, column;
  graph_position_at(text->given, graph_text_given_offset(text, at), &line, &column);
  diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column,
                     "duplicate object key near '%s'; a name can stand once in an object, so remove one",
                     text_quote(name, shown, sizeof shown));
}

/* The text is valid JSON but for names that stand twice. A string before a colon is a name. */
static void graph_syntax_find_duplicates(const struct graph_text *text, struct diagnostics *diagnostics)
{
  json_t *open = json_array(); /* the names of each open object; null for a list */
  for (const char *at = text->mended; *at; at++) {
    if (*at == '{' || *at == '[') json_array_append_new(open, *at == '{' ? json_object() : json_null());
    if (*at == '}' || *at == ']') json_array_remove(open, json_array_size(open) - 1);
    if (*at != '"') continue;
    const char *start = at;
    for (at++; *at != '"'; at++) at += *at == '\\';
    if (at[1 + strspn(at + 1, " \t\r\n")] != ':') continue;
    json_t *name = json_loadb(start, (size_t)(at + 1 - start), JSON_DECODE_ANY, NULL);
    json_t *names = json_array_get(open, json_array_size(open) - 1);
    if (name && json_object_get(names, json_string_value(name)))
      graph_syntax_report_duplicate(text, (size_t)(start - text->mended), json_string_value(name), diagnostics);
    else if (name)
      json_object_set_new(names, json_string_value(name), json_null());
    json_decref(name);
  }
  json_decref(open);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* Parses a text in which the parser has found an error: reports the first syntax error, or for a check all, and names that
 * stand twice. NULL unless it is for a check, and what is left says enough of what was meant. */
static json_t *graph_syntax_read_mended(struct graph_text *text, struct diagnostics *diagnostics)
{
  json_t *value = NULL;
  size_t reported = SIZE_MAX;
  bool is_guess = !text->is_check, is_mended = true;
  int most = text->is_check ? GRAPH_SYNTAX_MOST_MENDED : 1;
  text->mended = malloc(text->bytes + GRAPH_TEXT_MOST_INSERTED + 1);
  if (!text->mended) {
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
    return NULL;
  }
  memcpy(text->mended, text->given, text->bytes);
  text->mended[text->bytes] = '\0';
  for (int i = 0; i < most && is_mended && !value; i++) {
    struct syntax_error error = {.near = NULL};
    value = json_loadb(text->mended, text->bytes, 0, &error.report);
    if (value) continue;
    graph_syntax_judge(&error, text->mended);
    size_t place = graph_text_given_offset(text, error.at);
    if (place != reported) graph_syntax_report(&error, text, diagnostics);
    reported = place;
    is_guess |= error.mend >= MEND_GUESS;
    is_mended = graph_syntax_mend(&error, text);
  }
  if (value) graph_syntax_find_duplicates(text, diagnostics);
  if (!is_guess) return value;
  json_decref(value);
  return NULL;
}

static bool graph_syntax_is_blank(const char *text, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    if (!memchr(" \t\r\n", text[i], 4)) return false;
  return true;
}

/* Whether the text can be given to the parser, which stops at a zero byte as at the end of the file. `is_empty`: the
 * message for an empty text. */
static bool graph_syntax_is_text(const char *text, size_t bytes, const char *is_empty, struct diagnostics *diagnostics)
{
  int line = 1, column = 1;
  const char *zero = memchr(text, '\0', bytes), *wrong = NULL;
  if (bytes > GRAPH_MAX_BYTES) {
    diagnostics_add(diagnostics, HIPMM_E_CONFIG, "", GRAPH_TOO_LARGE, GRAPH_MAX_BYTES >> 20);
    return false;
  }
  if (graph_syntax_is_blank(text, bytes))
    wrong = is_empty;
  else if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
    wrong = "begins with a byte order mark; save it as UTF-8 without one";
  else if (zero)
    wrong = "a zero byte; a graph is UTF-8 text";
  if (zero && wrong) graph_position_at(text, (size_t)(zero - text), &line, &column);
  if (wrong) diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column, "%s", wrong);
  return !wrong;
}

/* Parses a JSON object in UTF-8. `is_empty` and `is_other` are the messages for an empty text and for JSON that is no
 * object. */
static json_t *graph_syntax_read(struct graph_text *text, const char *is_empty, const char *is_other,
                                 struct diagnostics *diagnostics)
{
  text->bytes = text->given_bytes;
  if (!graph_syntax_is_text(text->given, text->bytes, is_empty, diagnostics)) return NULL;
  json_t *value = json_loadb(text->given, text->bytes, JSON_REJECT_DUPLICATES, NULL);
  if (!value) value = graph_syntax_read_mended(text, diagnostics);
  if (!value || json_is_object(value)) return value;
  diagnostics_add(diagnostics, HIPMM_E_CONFIG, "", "%s", is_other);
  json_decref(value);
  return NULL;
}

json_t *graph_parse(struct graph_text *text, struct diagnostics *diagnostics)
{
  return graph_syntax_read(text, "is empty; the smallest graph is {\"stack\": [\"device\"]}",
                           "a graph is an object, not a list; write {\"stack\": […]}", diagnostics);
}

json_t *graph_parse_options(const char *json, struct diagnostics *diagnostics)
{
  if (!json) return json_object();
  struct graph_text text = {.given = json, .given_bytes = strlen(json)};
  json_t *options =
      graph_syntax_read(&text, "is empty; write {} for no options",
                        "options are an object, not a list; write {\"initial_size\": \"1GiB\"}", diagnostics);
  free(text.mended);
  return options;
}
