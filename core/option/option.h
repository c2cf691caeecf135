/* SPDX-License-Identifier: MIT */
/* option.h: reads a plugin's options from JSON by its option table: defaults, checks, messages. With graph.c the only
 * code that touches JSON. */
#ifndef HIPMM_CORE_OPTION_OPTION_H
#define HIPMM_CORE_OPTION_OPTION_H

#include "../base/error.h"
#include <hipmm/plugin.h>
#include <jansson.h>

/* What option_fill needs to know of the world around it. */
struct option_context {
  struct diagnostics *report;
  const char *path;        /* JSON pointer of the object */
  uint64_t free_bytes;     /* what a percentage is of; 0: not known yet, percentages become 0 and are only checked */
  const char *const *keys; /* keys of the object that are not options ("type", "upstream"); NULL-terminated */
  const char *owner;       /* what has the options, for messages; NULL: the object's "type" */

  /* The instance that a RESOURCE option names; may be NULL when only checking (the graph checks the names). */
  struct hipmm_resource *(*resolve)(void *closure, const char *name);
  void *closure;

  /* The objects that OBJECT options name are taken, as registered now; false: only their names are checked. */
  bool takes_objects;
};

/* Fills every field of the table in `options_out` from `object` (NULL means {}): values given, then defaults (of a LIST
 * only "[]"; nothing else would last). Reports every mistake, those of values in the order of the file:
 * unknown key with a near name, wrong type or unit, out of range, missing, below its at_least (when both are bytes or
 * both percentages, or free_bytes is known). True if there was none; then option_free releases it. Strings point into
 * `object`. On false nothing is left behind. */
bool option_fill(const struct hipmm_option *table, size_t n, json_t *object, const struct option_context *context,
                 void *options_out);
void option_free(const struct hipmm_option *table, size_t n, void *options);

/* The row of the option called `name`; NULL if there is none. */
const struct hipmm_option *option_find(const struct hipmm_option *table, size_t n, const char *name);

/* Calls visit for each resource name that the RESOURCE options of `object` hold, nested lists included, with the JSON
 * pointer of the name (relative to the object: "/bins/0/resource"). Values of the wrong type are skipped. */
void option_references(const struct hipmm_option *table, size_t n, const json_t *object,
                       void (*visit)(void *closure, const char *name, const char *relative_path), void *closure);

/* Lays `text`, as "key=value,key=value" (lists: a;b;c), over `object`, as the environment gives it. Keys and values are
 * checked later by option_fill. False on a piece that is no key=value: mistake reported at path `variable`. */
bool option_overlay(const struct hipmm_option *table, size_t n, const char *variable, const char *text, json_t *object,
                    struct diagnostics *report);

/* What option_overlay() reads for the options in `object`, without the key `except`. NULL without memory, or for a value
 * that it cannot read (an object, text with a comma). The caller frees it. */
char *option_overlay_text(json_t *object, const char *except);

/* Puts the option called `name` into `object`, as `text` gives it: JSON, or plain text for what would be a string.
 * Whether there is such an option and the value is good is checked later by option_fill. False if it is not valid
 * UTF-8. */
bool option_set_text(const struct hipmm_option *table, size_t n, const char *name, const char *text, json_t *object);

/* The value in force as a user would write it in JSON: the one in `object`, or the default ("null" when it has none). A
 * new reference. `given_out` tells which. */
json_t *option_in_force(const struct hipmm_option *row, const json_t *object, bool *given_out);

/* The same without touching what `object` holds, which other threads may read meanwhile. */
json_t *option_copy_in_force(const struct hipmm_option *row, const json_t *object, bool *given_out);

/* How a value reads in a message: a string in quotes, a list as "a list". Returns `buffer`. */
const char *option_show(const json_t *value, char *buffer, size_t buffer_bytes);

/* The name of an option type, as `hipmm describe` prints it: "bytes", "list", … */
const char *option_type_name(uint32_t type);

#endif
