/* SPDX-License-Identifier: MIT */
/* graph_syntax.c: parses the JSON of a graph, or of options. Called by graph.c and for resources made in code. The parser
 * stops at the first syntax error, and nothing is read of a text that has one. */
#include "../base/text.h"
#include "../option/option.h"
#include "graph_build.h"

#include <string.h>

/* ---- Syntax errors --------------------------------------------------------------------------------------------- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define BLANKS  " \t\r\n"

/* What a syntax error often means. The first row that fits gives the hint. */
static const struct graph_syntax_hint {
  const char *report; /* how the parser's message begins */
  const char *token;  /* how the token where it stopped can begin; NULL: as it likes */
  const char *before; /* what can stand before the token, blanks aside: the error begins there then; NULL: anything */
  const char *hint;
} graph_syntax_hints[] = {
    {"", "'", NULL, "; JSON has double quotes only"},
    {"", "/#", NULL, "; JSON has no comments"},
    {"':'", LETTERS, NULL, "; is a quote missing before it?"},
    {"':'", NULL, NULL, "; is a colon missing before it?"},
    {"", "]}", ",", "; the comma before it is one too many"},
    {"", "]}", NULL, ""},
    {"string or", NULL, NULL, "; names stand in double quotes"},
    {"invalid token", LETTERS, NULL, "; a word is true, false or null, in lower case, or text in double quotes"},
    {"'[' or '{'", NULL, NULL, "; write a JSON object, in braces"},
    {"'", LETTERS "%", "0123456789.+-", "; a number with a unit stands in double quotes"},
    {"'}'", NULL, NULL, "; is a comma or \"},\" missing before it?"},
    {"']'", NULL, NULL, "; is a comma or \"],\" missing before it?"},
};

/* Moves `at`, the place of the token, to what stands before it if the hint is about that. */
static bool graph_syntax_fits(const struct graph_syntax_hint *row, const char *report, const char *token,
                              const char *text, size_t *at)
{
  if (strncmp(report, row->report, strlen(row->report)) != 0 || (row->token && !strchr(row->token, *token)))
    return false;
  if (!row->before) return true;
  size_t end = *at;
  while (end && strchr(BLANKS, text[end - 1])) end--;
  size_t begin = end;
  while (begin && strchr(row->before, text[begin - 1])) begin--;
  if (begin < end) *at = begin;
  return begin < end;
}

/* The parser stopped behind a token, and names it if it is short; or behind a byte or character that cannot be. */
static void graph_syntax_report(const json_error_t *error, const char *text, struct diagnostics *diagnostics)
{
  static const char near[] = " near '";
  enum json_error_code code = json_error_code(error);
  bool is_zero = code == json_error_null_character || code == json_error_null_byte_in_key;
  size_t end = error->position > 0 ? (size_t)error->position : 0, at = end - (end > 0);
  const char *token = strstr(error->text, near), *hint = "";
  if (token && !is_zero && code != json_error_invalid_utf8) {
    token += strlen(near);
    size_t length = strlen(token) - 1;
    at = end - (length < end ? length : end);
    for (size_t i = 0; i < sizeof graph_syntax_hints / sizeof *graph_syntax_hints; i++) {
      if (!graph_syntax_fits(&graph_syntax_hints[i], error->text, token, text, &at)) continue;
      hint = graph_syntax_hints[i].hint;
      break;
    }
  }
  diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, at, "%s%s", is_zero ? "\\u0000 is not allowed" : error->text, hint);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static bool graph_syntax_is_blank(const char *text, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    if (!memchr(BLANKS, text[i], strlen(BLANKS))) return false;
  return true;
}

/* Whether the text can be given to the parser, which stops at a zero byte as at the end of the file. `is_empty`: the
 * message for an empty text. */
static bool graph_syntax_is_text(const char *text, size_t bytes, const char *is_empty, struct diagnostics *diagnostics)
{
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
  if (wrong) diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, zero ? (size_t)(zero - text) : 0, "%s", wrong);
  return !wrong;
}

/* Parses a JSON object in UTF-8. `is_empty` and `is_other` are the messages for an empty
 * text and for JSON that is no object. */
static json_t *graph_syntax_read(const char *text, size_t bytes, const char *is_empty, const char *is_other,
                                 struct diagnostics *diagnostics)
{
  json_error_t error;
  bool lacks_memory;
  if (!graph_syntax_is_text(text, bytes, is_empty, diagnostics)) return NULL;
  json_t *value = option_parse_json(text, bytes, 0, &error, &lacks_memory);
  if (lacks_memory)
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
  else if (!value)
    graph_syntax_report(&error, text, diagnostics);
  if (!value || json_is_object(value)) return value;
  diagnostics_add(diagnostics, HIPMM_E_CONFIG, "", "%s", is_other);
  json_decref(value);
  return NULL;
}

json_t *graph_parse(const char *text, size_t bytes, struct diagnostics *diagnostics)
{
  return graph_syntax_read(text, bytes, "is empty; the smallest graph is {\"stack\": [\"device\"]}",
                           "a graph is an object, not a list; write {\"stack\": […]}", diagnostics);
}

json_t *graph_parse_options(const char *json, struct diagnostics *diagnostics)
{
  if (!json) return json_object();
  size_t bytes = strlen(json);
  json_t *options =
      graph_syntax_read(json, bytes, "is empty; write {} for no options",
                        "options are an object, not a list; write {\"initial_size\": \"1GiB\"}", diagnostics);
  graph_position_all(json, options != NULL, diagnostics);
  if (!diagnostics->n_errors) return options;
  json_decref(options);
  return NULL;
}
