/* SPDX-License-Identifier: MIT */
/* graph_syntax.c: parses the JSON of a graph, or of options. Called by graph.c and for resources made in code. The parser
 * stops at the first syntax error. For `hipmm check`, which lists all errors of a file, the error is removed in a copy
 * of the text, as its message advises, and the copy is parsed again. */
#include "../base/text.h"
#include "../option/option.h"
#include "graph_recover.h"

#include <stdlib.h>
#include <string.h>

/* A recovered text may be parsed so many times: a file may have 16 MiB. */
enum { GRAPH_SYNTAX_MOST_RECOVERED = 40 };

/* ---- Syntax errors --------------------------------------------------------------------------------------------- */

static void graph_syntax_report(const struct graph_recover_error *error, const struct graph_text *text,
                                struct diagnostics *diagnostics)
{
  int line, column;
  graph_position_at(text->given, graph_text_given_offset(text, error->at), &line, &column);
  diagnostics_add_at(diagnostics, HIPMM_E_SYNTAX, line, column, "%s%s",
                     error->recovery == RECOVER_ZERO ? "\\u0000 is not allowed" : error->report.text, error->hint);
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
  for (const char *at = text->recovered; *at; at++) {
    if (*at == '{' || *at == '[') json_array_append_new(open, *at == '{' ? json_object() : json_null());
    if (*at == '}' || *at == ']') json_array_remove(open, json_array_size(open) - 1);
    if (*at != '"') continue;
    const char *start = at;
    for (at++; *at != '"'; at++) at += *at == '\\';
    if (at[1 + strspn(at + 1, " \t\r\n")] != ':') continue;
    json_t *name = json_loadb(start, (size_t)(at + 1 - start), JSON_DECODE_ANY, NULL);
    json_t *names = json_array_get(open, json_array_size(open) - 1);
    if (name && json_object_get(names, json_string_value(name)))
      graph_syntax_report_duplicate(text, (size_t)(start - text->recovered), json_string_value(name), diagnostics);
    else if (name)
      json_object_set_new(names, json_string_value(name), json_null());
    json_decref(name);
  }
  json_decref(open);
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

/* Without host memory that is the only error, and `report_out` has no text. */
static json_t *graph_syntax_parse(const char *text, size_t bytes, size_t flags, json_error_t *report_out,
                                  struct diagnostics *diagnostics)
{
  bool lacks_memory;
  json_t *value = option_parse_json(text, bytes, flags, report_out, &lacks_memory);
  if (!lacks_memory) return value;
  report_out->text[0] = '\0';
  diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
  return NULL;
}

static bool graph_syntax_has_report(const json_error_t *report)
{
  return report->text[0] != '\0';
}

/* Parses a text in which the parser has found an error: reports the first syntax error, or for a check all, and names that
 * stand twice. NULL unless it is for a check, and what is left says enough of what was meant. */
static json_t *graph_syntax_read_recovered(struct graph_text *text, struct diagnostics *diagnostics)
{
  json_t *value = NULL;
  size_t reported = SIZE_MAX;
  bool is_guess = !text->is_check, is_recovered = true, is_cut_off = false;
  int most = text->is_check ? GRAPH_SYNTAX_MOST_RECOVERED : 1;
  text->recovered = malloc(text->bytes + GRAPH_TEXT_MOST_INSERTED + 1);
  if (!text->recovered) {
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
    return NULL;
  }
  memcpy(text->recovered, text->given, text->bytes);
  text->recovered[text->bytes] = '\0';
  for (int i = 0; i < most && is_recovered && !value; i++) {
    struct graph_recover_error error = {.near = NULL};
    value = graph_syntax_parse(text->recovered, text->bytes, 0, &error.report, diagnostics);
    if (value) continue;
    if (!graph_syntax_has_report(&error.report)) return NULL;
    graph_recover_classify(&error, text->recovered);
    size_t place = graph_text_given_offset(text, error.at);
    if (place != reported && !is_cut_off) graph_syntax_report(&error, text, diagnostics);
    reported = place;
    is_cut_off |= error.recovery == RECOVER_END; /* what comes then is about the brackets that close it */
    is_guess |= error.recovery >= RECOVER_GUESS;
    is_recovered = graph_recover_apply(&error, text);
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
  json_error_t report;
  json_t *value = graph_syntax_parse(text->given, text->bytes, JSON_REJECT_DUPLICATES, &report, diagnostics);
  if (!value && graph_syntax_has_report(&report)) value = graph_syntax_read_recovered(text, diagnostics);
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
  free(text.recovered);
  return options;
}
