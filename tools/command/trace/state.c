/* SPDX-License-Identifier: MIT */
/* state.c: recognises hipmm's own descriptions of a process's memory: hipmm_snapshot(), and the reports of `hipmm run
 * --json` and of a graph's "report", of which a file may have several, one after the other or as a list. They have no events: `hipmm report` shows their
 * contents, and other commands say so. */
#include "format.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool state_has(const char *start, size_t bytes, const char *key)
{
  return memmem(start, bytes, key, strlen(key)) != NULL;
}

static bool state_is(const char *start, size_t bytes)
{
  while (bytes && strchr(" \t\r\n", *start)) start++, bytes--;
  if (!bytes || (*start != '{' && *start != '[') || !state_has(start, bytes, "\"runtime\"")) return false;
  return state_has(start, bytes, "\"stacks\"") ||
         (state_has(start, bytes, "\"process\"") && state_has(start, bytes, "\"memory\""));
}

static bool state_is_snapshot(const json_t *state)
{
  return json_is_array(json_object_get(state, "stacks"));
}

static bool state_is_report(const json_t *state)
{
  return json_is_integer(json_object_get(state, "process")) && json_is_array(json_object_get(state, "memory"));
}

struct state {
  json_t *states;
  bool is_cut; /* the last one is not whole, and was left out */
};

/* Adds a description, or those of a list. False: `message` has the reason. */
static bool state_add(struct state *state, json_t *value, unsigned line, char *message, size_t message_bytes)
{
  size_t i;
  json_t *item;
  bool good = json_is_array(value) || state_is_snapshot(value) || state_is_report(value);
  if (!good) snprintf(message, message_bytes, "line %u is neither a snapshot of hipmm nor a report of a process", line);
  if (json_is_object(value) && good && json_array_append(state->states, value)) {
    snprintf(message, message_bytes, "out of memory");
    return false;
  }
  json_array_foreach(value, i, item) good =
      good &&
      (json_is_object(item) ||
       (snprintf(message, message_bytes, "line %u has a list of something else", line), false)) &&
      state_add(state, item, line, message, message_bytes);
  return good;
}

/* Adds what the text has. False: `message` has the reason. */
static bool state_parse(struct state *state, const char *text, size_t bytes, char *message, size_t message_bytes)
{
  json_error_t error;
  unsigned line = 1;
  for (const char *end = text + bytes;;) {
    for (; text < end && strchr(" \t\r\n", *text); text++) line += *text == '\n';
    if (text == end) return true;
    json_t *value = json_loadb(text, (size_t)(end - text), JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    bool is_at_end = !value && error.position >= 0 && text + error.position >= end;
    state->is_cut = is_at_end && json_array_size(state->states); /* the program was killed while it wrote */
    if (state->is_cut) return true;
    if (!value) {
      snprintf(message, message_bytes, "is no valid JSON: line %u: %s", line + (unsigned)error.line - 1, error.text);
      return false;
    }
    bool is_taken = state_add(state, value, line, message, message_bytes);
    json_decref(value);
    if (!is_taken) return false;
    for (const char *next = text + error.position; text < next; text++) line += *text == '\n';
  }
}

static void state_close(void *reader)
{
  struct state *state = reader;
  json_decref(state->states);
  free(state);
}

static void *state_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  char *text;
  size_t bytes;
  if (!trace_lines_load(lines, &text, &bytes)) {
    snprintf(message, message_bytes, "%s", strerror(errno));
    return NULL;
  }
  struct state *state = calloc(1, sizeof *state);
  if (state) state->states = json_array();
  bool good = state && state->states;
  if (!good) snprintf(message, message_bytes, "out of memory");
  good = good && state_parse(state, text, bytes, message, message_bytes);
  free(text);
  if (good) return state;
  if (state) state_close(state);
  return NULL;
}

static enum trace_line state_next(void *reader, struct trace_row *row_out, char *message, size_t message_bytes)
{
  const struct state *state = reader;
  (void)row_out;
  snprintf(message, message_bytes, "is %s, which has no events: `hipmm report` alone shows it",
           state_is_snapshot(json_array_get(state->states, 0)) ? "a snapshot of hipmm" : "the report of a process");
  return TRACE_LINE_ERROR;
}

static const json_t *state_state(const void *reader)
{
  return ((const struct state *)reader)->states;
}

static void state_remark(const void *reader, char *text, size_t text_bytes)
{
  snprintf(text, text_bytes, "%s",
           ((const struct state *)reader)->is_cut ? "the file is cut off: the last of its reports is not whole" : "");
}

const struct trace_format trace_format_state = {.is = state_is,
                                                .open = state_open,
                                                .close = state_close,
                                                .next = state_next,
                                                .state = state_state,
                                                .remark = state_remark};
