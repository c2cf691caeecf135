/* SPDX-License-Identifier: MIT */
/* graph_position.c: the lines and columns of diagnostics, found in the text of the graph, since the parser keeps no
 * positions. Called by graph.c once the graph was read, with the text that was parsed. The place of a member of an object
 * is where its name begins. */
#include "../base/text.h"
#include "graph_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scan over text that is known to be valid JSON. `wanted`: from path to offset in the text, -1 until found; a wanted
 * path comes with the paths of all values around it. */
struct position_scan {
  const char *text, *at, *end;
  char *path; /* JSON pointer of the value that is scanned */
  size_t length, capacity;
  json_t *wanted;
};

/* ---- Scanning -------------------------------------------------------------------------------------------------- */

static void graph_position_skip_blanks(struct position_scan *scan)
{
  while (scan->at < scan->end && strchr(" \t\r\n", *scan->at)) scan->at++;
}

static void graph_position_skip_string(struct position_scan *scan)
{
  for (scan->at++; scan->at < scan->end && *scan->at != '"'; scan->at++) scan->at += *scan->at == '\\';
  scan->at++;
}

/* A value of any kind, however deep. */
static void graph_position_skip_value(struct position_scan *scan)
{
  size_t depth = 0;
  do {
    if (*scan->at == '"') {
      graph_position_skip_string(scan);
      continue;
    }
    depth += *scan->at == '{' || *scan->at == '[';
    depth -= *scan->at == '}' || *scan->at == ']';
    scan->at++;
  } while (scan->at < scan->end && (depth || !strchr(",}] \t\r\n", *scan->at)));
}

/* The name at `at`, decoded: a new string; NULL without host memory. */
static json_t *graph_position_read_name(struct position_scan *scan)
{
  const char *start = scan->at;
  graph_position_skip_string(scan);
  return json_loadb(start, (size_t)(scan->at - start), JSON_DECODE_ANY, NULL);
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

static void graph_position_scan_items(struct position_scan *scan);

/* One member of an object, or item of a list. */
static bool graph_position_scan_item(struct position_scan *scan, bool is_object, size_t index)
{
  char number[24];
  size_t length = scan->length, start = (size_t)(scan->at - scan->text);
  json_t *name = is_object ? graph_position_read_name(scan) : NULL;
  snprintf(number, sizeof number, "%zu", index);
  const char *part = is_object ? json_string_value(name) : number;
  bool is_good = part && graph_position_enter(scan, part);
  json_decref(name);
  if (!is_good) return false;
  graph_position_skip_blanks(scan);
  if (is_object) scan->at++; /* the colon */
  graph_position_skip_blanks(scan);
  json_t *offset = json_object_get(scan->wanted, scan->path);
  if (offset) json_integer_set(offset, (json_int_t)start);
  if (offset && (*scan->at == '{' || *scan->at == '['))
    graph_position_scan_items(scan);
  else
    graph_position_skip_value(scan);
  scan->length = length;
  scan->path[length] = '\0';
  return true;
}

/* An object or a list that holds wanted values. Recursive, as deep as the path of a diagnostic, which is not deep. */
static void graph_position_scan_items(struct position_scan *scan)
{
  bool is_object = *scan->at == '{';
  scan->at++;
  for (size_t index = 0;; index++) {
    graph_position_skip_blanks(scan);
    if (scan->at >= scan->end || *scan->at == '}' || *scan->at == ']') break;
    if (!graph_position_scan_item(scan, is_object, index)) {
      scan->at = scan->end;
      return;
    }
    graph_position_skip_blanks(scan);
    if (scan->at < scan->end && *scan->at == ',') scan->at++;
  }
  scan->at++;
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

void graph_position_at(const char *text, size_t offset, int *line_out, int *column_out)
{
  *line_out = *column_out = 1;
  graph_position_advance(text, 0, offset, line_out, column_out);
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

/* The offset of a diagnostic's place in the given text; -1: it has none. */
static json_int_t graph_position_offset(const struct graph_text *text, const json_t *wanted,
                                        const struct diagnostic *diagnostic)
{
  int line = 1, column = 1;
  json_int_t found = graph_position_found(wanted, diagnostic);
  if (found >= 0) return (json_int_t)graph_text_given_offset(text, (size_t)found);
  if (!diagnostic->line) return -1;
  size_t at = 0;
  for (; line < diagnostic->line || column < diagnostic->column; at++)
    graph_position_advance(text->given, at, at + 1, &line, &column);
  return (json_int_t)at;
}

static void graph_position_sort(const struct graph_text *text, const json_t *wanted, struct placed *placed,
                                struct diagnostics *diagnostics)
{
  size_t n = 0, from = 0;
  int line = 1, column = 1;
  for (struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next, n++)
    placed[n] = (struct placed){graph_position_offset(text, wanted, diagnostic), n, diagnostic};
  qsort(placed, n, sizeof *placed, graph_position_compare);
  for (size_t i = 0; i < n; i++) {
    struct diagnostic *diagnostic = placed[i].diagnostic;
    diagnostic->next = i + 1 < n ? placed[i + 1].diagnostic : NULL;
    if (placed[i].offset < 0) continue;
    graph_position_advance(text->given, from, (size_t)placed[i].offset, &line, &column);
    from = (size_t)placed[i].offset;
    diagnostic->line = line;
    diagnostic->column = column;
  }
  diagnostics->first = placed[0].diagnostic;
  diagnostics->last = placed[n - 1].diagnostic;
}

void graph_position_all(const struct graph_text *text, struct diagnostics *diagnostics)
{
  size_t n = 0;
  const char *parsed = text->recovered ? text->recovered : text->given;
  struct position_scan scan = {.text = parsed, .at = parsed, .end = parsed + text->bytes, .wanted = json_object()};
  for (const struct diagnostic *diagnostic = diagnostics->first; diagnostic; diagnostic = diagnostic->next, n++)
    graph_position_want(scan.wanted, diagnostic);
  struct placed *placed = n && scan.wanted ? calloc(n, sizeof *placed) : NULL;
  if (placed && json_object_size(scan.wanted) > 0) {
    graph_position_skip_blanks(&scan);
    graph_position_scan_items(&scan);
  }
  if (placed) graph_position_sort(text, scan.wanted, placed, diagnostics);
  free(placed);
  free(scan.path);
  json_decref(scan.wanted);
}
