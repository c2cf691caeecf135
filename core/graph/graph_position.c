/* SPDX-License-Identifier: MIT */
/* graph_position.c: finds the lines and columns of diagnostics, which the parser does not give, and names that stand
 * twice in an object. One scan of the text finds both. Called once a graph or options were read. The place of a member
 * of an object is the beginning of its name. */
#include "../base/text.h"
#include "graph_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scan over text that the parser has accepted: it ends behind the last bracket, and looks for no end before. `wanted`: from
 * path to offset in the text, -1 until found; a wanted path comes with the paths of all values around it. */
struct position_scan {
  const char *text, *at;
  char *path; /* JSON pointer of the wanted value that is scanned */
  size_t length, capacity;
  json_t *wanted;
  struct diagnostics *diagnostics;
};

/* ---- Scanning -------------------------------------------------------------------------------------------------- */

static void graph_position_skip_blanks(struct position_scan *scan)
{
  scan->at += strspn(scan->at, " \t\r\n");
}

static void graph_position_skip_string(struct position_scan *scan)
{
  for (scan->at++; *scan->at != '"'; scan->at++) scan->at += *scan->at == '\\';
  scan->at++;
}

/* The name at `at`, decoded: a new string, which is added to `names`; NULL without host memory. */
static json_t *graph_position_read_name(struct position_scan *scan, json_t *names)
{
  char shown[TEXT_QUOTE_BYTES];
  const char *start = scan->at;
  graph_position_skip_string(scan);
  json_t *name = json_loadb(start, (size_t)(scan->at - start), JSON_DECODE_ANY, NULL);
  const char *text = json_string_value(name);
  if (name && json_object_get(names, text)) {
    diagnostics_add_at(scan->diagnostics, HIPMM_E_SYNTAX, (size_t)(start - scan->text),
                       "duplicate object key near '%s'; a name can stand once in an object, so remove one",
                       text_quote(text, shown, sizeof shown));
  } else if (name && json_object_set_new(names, text, json_null())) {
    json_decref(name);
    return NULL;
  }
  return name;
}

/* Appends a name or the number of an item. False without host memory. */
static bool graph_position_enter(struct position_scan *scan, const char *name)
{
  size_t most = scan->length + 2 * strlen(name) + 2;
  char *larger = most > scan->capacity ? realloc(scan->path, 2 * most) : scan->path;
  if (!larger) return false;
  if (larger != scan->path) scan->capacity = 2 * most;
  scan->path = larger;
  scan->length = (size_t)(text_add_key(scan->path + scan->length, name) - scan->path);
  return true;
}

static bool graph_position_scan_items(struct position_scan *scan, bool is_wanted);

/* One member of an object, or item of a list (`names` NULL). `is_wanted`: what is around it is. */
static bool graph_position_scan_item(struct position_scan *scan, json_t *names, size_t index, bool is_wanted)
{
  char number[24];
  bool is_good = true;
  size_t length = scan->length, start = (size_t)(scan->at - scan->text);
  json_t *name = names ? graph_position_read_name(scan, names) : NULL;
  snprintf(number, sizeof number, "%zu", index);
  if (is_wanted) is_good = graph_position_enter(scan, name ? json_string_value(name) : number);
  is_good &= name || !names;
  json_decref(name);
  if (!is_good) return false;
  json_t *offset = is_wanted ? json_object_get(scan->wanted, scan->path) : NULL;
  if (offset) json_integer_set(offset, (json_int_t)start);
  graph_position_skip_blanks(scan);
  if (names) scan->at++; /* the colon */
  graph_position_skip_blanks(scan);
  if (*scan->at == '{' || *scan->at == '[')
    is_good = graph_position_scan_items(scan, offset != NULL);
  else if (*scan->at == '"')
    graph_position_skip_string(scan);
  else
    scan->at += strcspn(scan->at, ",}] \t\r\n");
  scan->length = length;
  if (scan->path) scan->path[length] = '\0';
  return is_good;
}

/* An object or a list. Recursive, as the parser is, and no deeper. False without host memory. */
static bool graph_position_scan_items(struct position_scan *scan, bool is_wanted)
{
  json_t *names = *scan->at == '{' ? json_object() : NULL;
  bool is_good = names || *scan->at == '[';
  for (size_t index = 0; is_good && *scan->at != '}' && *scan->at != ']'; index++) {
    scan->at++; /* the bracket or a comma */
    graph_position_skip_blanks(scan);
    if (*scan->at == '}' || *scan->at == ']') break;
    is_good = graph_position_scan_item(scan, names, index, is_wanted);
    graph_position_skip_blanks(scan);
  }
  scan->at++;
  json_decref(names);
  return is_good;
}

/* ---- Diagnostics ----------------------------------------------------------------------------------------------- */

/* The path without its last part; NULL for the whole text. */
static char *graph_position_leave(char *path)
{
  char *slash = strrchr(path, '/');
  if (!slash) return NULL;
  *slash = '\0';
  return *path ? path : NULL;
}

static void graph_position_want(json_t *wanted, const struct diagnostic *diagnostic)
{
  char *path = strdup(diagnostic->path);
  for (char *part = path && *path ? path : NULL; part; part = graph_position_leave(part))
    if (!json_object_get(wanted, part)) json_object_set_new(wanted, part, json_integer(-1));
  free(path);
}

static json_int_t graph_position_found(const json_t *wanted, const struct diagnostic *diagnostic)
{
  json_int_t offset = -1;
  char *path = strdup(diagnostic->path);
  for (char *part = path && *path ? path : NULL; part && offset < 0; part = graph_position_leave(part)) {
    const json_t *found = json_object_get(wanted, part);
    if (found) offset = json_integer_value(found);
  }
  free(path);
  return offset;
}

/* Moves the line and the column from one offset to a later one. */
static void graph_position_advance(const char *text, size_t from, size_t to, int *line, int *column)
{
  for (; from < to; from++) {
    bool is_end = text[from] == '\n', is_inside = ((unsigned char)text[from] & 0xc0) == 0x80;
    *line += is_end;
    *column = is_end ? 1 : *column + !is_inside;
  }
}

/* A diagnostic, its offset (-1: none), and its number in the order of finding. */
struct placed {
  json_int_t offset;
  size_t number;
  struct diagnostic *diagnostic;
};

static int graph_position_compare(const void *left, const void *right)
{
  const struct placed *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a->number < b->number ? -1 : 1;
}

static void graph_position_sort(const char *text, const json_t *wanted, struct placed *placed,
                                struct diagnostics *diagnostics)
{
  size_t n = 0, from = 0;
  int line = 1, column = 1;
  for (struct diagnostic *one = diagnostics->first; one; one = one->next, n++)
    placed[n] = (struct placed){one->path[0] ? graph_position_found(wanted, one) : one->offset, n, one};
  qsort(placed, n, sizeof *placed, graph_position_compare);
  for (size_t i = 0; i < n; i++) {
    struct diagnostic *diagnostic = placed[i].diagnostic;
    diagnostic->next = i + 1 < n ? placed[i + 1].diagnostic : NULL;
    if (placed[i].offset < 0) continue;
    graph_position_advance(text, from, (size_t)placed[i].offset, &line, &column);
    from = (size_t)placed[i].offset;
    diagnostic->line = line;
    diagnostic->column = column;
  }
  diagnostics->first = placed[0].diagnostic;
  diagnostics->last = placed[n - 1].diagnostic;
}

void graph_position_all(const char *text, bool is_object, struct diagnostics *diagnostics)
{
  size_t n = 0;
  struct position_scan scan = {.text = text, .at = text, .wanted = json_object(), .diagnostics = diagnostics};
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next)
    graph_position_want(scan.wanted, diagnostic);
  if (is_object) graph_position_skip_blanks(&scan);
  if (is_object && !graph_position_scan_items(&scan, true) && !diagnostics->n_errors) /* a name may stand twice */
    diagnostics_add(diagnostics, HIPMM_E_OUT_OF_MEMORY, "", "no host memory to read it");
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next) n++;
  struct placed *placed = n ? calloc(n, sizeof *placed) : NULL;
  if (placed) graph_position_sort(text, scan.wanted, placed, diagnostics);
  free(placed);
  free(scan.path);
  json_decref(scan.wanted);
}
