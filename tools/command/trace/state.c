/* SPDX-License-Identifier: MIT */
/* state.c: recognises hipmm's own descriptions of a process's memory: hipmm_snapshot(), and the reports of `hipmm run
 * --json` and of a graph's "report", of which a file may have several. They have no events: `hipmm report` shows their
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
  if (!bytes || *start != '{' || !state_has(start, bytes, "\"runtime\"")) return false;
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

/* Adds the objects of the text to the array. False: `message` has the reason. */
static bool state_parse(json_t *states, const char *text, size_t bytes, char *message, size_t message_bytes)
{
  json_error_t error;
  unsigned line = 1;
  for (const char *end = text + bytes;;) {
    for (; text < end && strchr(" \t\r\n", *text); text++) line += *text == '\n';
    if (text == end) return true;
    json_t *state = json_loadb(text, (size_t)(end - text), JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    if (!state) {
      snprintf(message, message_bytes, "is no valid JSON: line %u: %s", line + (unsigned)error.line - 1, error.text);
      return false;
    }
    bool is_known = state_is_snapshot(state) || state_is_report(state);
    if (!is_known || json_array_append(states, state))
      snprintf(message, message_bytes,
               is_known ? "out of memory" : "line %u is neither a snapshot of hipmm nor a report of a process", line);
    bool is_taken = is_known && json_array_get(states, json_array_size(states) - 1) == state;
    json_decref(state);
    if (!is_taken) return false;
    for (const char *next = text + error.position; text < next; text++) line += *text == '\n';
  }
}

static void state_close(void *reader)
{
  json_decref(reader);
}

static void *state_open(struct trace_lines *lines, char *message, size_t message_bytes)
{
  char *text;
  size_t bytes;
  if (!trace_lines_load(lines, &text, &bytes)) {
    snprintf(message, message_bytes, "%s", strerror(errno));
    return NULL;
  }
  json_t *states = json_array();
  bool good = states && state_parse(states, text, bytes, message, message_bytes);
  if (!states) snprintf(message, message_bytes, "out of memory");
  free(text);
  if (good) return states;
  json_decref(states);
  return NULL;
}

static enum trace_line state_next(void *reader, struct trace_row *row_out, char *message, size_t message_bytes)
{
  (void)row_out;
  snprintf(message, message_bytes, "is %s, which has no events: `hipmm report` alone shows it",
           state_is_snapshot(json_array_get(reader, 0)) ? "a snapshot of hipmm" : "the report of a process");
  return TRACE_LINE_ERROR;
}

static const json_t *state_state(const void *reader)
{
  return reader;
}

const struct trace_format trace_format_state = {
    .is = state_is, .open = state_open, .close = state_close, .next = state_next, .state = state_state};
