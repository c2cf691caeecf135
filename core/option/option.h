/* SPDX-License-Identifier: MIT */
/* option.h: reads the options of a plugin from JSON by its option table: defaults, checks, messages. Thread-safe as far
 * as the arguments of concurrent calls differ. */
#ifndef HIPMM_CORE_OPTION_OPTION_H
#define HIPMM_CORE_OPTION_OPTION_H

#include "../base/diagnostics.h"
#include <hipmm/plugin.h>
#include <jansson.h>

/* Parses JSON, as json_loadb() does. Without host memory it is NULL, and `lacks_memory_out` says so: jansson reports a syntax
 * error then, or nothing, or cuts long strings. */
json_t *option_parse_json(const char *text, size_t bytes, size_t flags, json_error_t *error_out,
                          bool *lacks_memory_out);

/* What option_fill() needs besides the object. */
struct option_context {
  struct diagnostics *diagnostics;
  const char *path;        /* JSON pointer of the object */
  uint64_t free_bytes;     /* a percentage is of these; 0: not known yet, percentages are only checked, and become 0 */
  uint64_t total_bytes;    /* what "of total" and "share" are of; known if free_bytes is */
  int n_devices;           /* that the ranks of this host share */
  const char *const *keys; /* keys of the object that are not options ("type", "upstream"); NULL-terminated */
  const char *const *top;  /* keys that stand at the top of the graph, for messages; NULL-terminated, NULL: none */
  const char *owner;       /* the name of the resource or runtime, for messages; NULL: the object's "type" */

  /* Finds the instance that a RESOURCE option names. NULL: the names are not resolved (the graph checks them). */
  struct hipmm_resource *(*resolve)(void *closure, const char *name);
  void *closure;

  /* Whether OBJECT options acquire the registered objects that they name; false: only the names are checked. */
  bool takes_objects;
};

/* Fills every field of the table in `options_out` from `object` (NULL means {}), then from the defaults; the only
 * default of a LIST is "[]". Reports every error, errors of values in the order of the file: an unknown key, with a
 * near name; a wrong type or unit; a value out of range, missing, or below its at_least (if both are bytes, both are
 * percentages, or free_bytes is known). True without errors: option_free() then releases what the fields hold. Strings
 * point into `object`. On false nothing is held. */
bool option_fill(const struct hipmm_option *table, size_t n, json_t *object, const struct option_context *context,
                 void *options_out);
void option_free(const struct hipmm_option *table, size_t n, void *options);

/* The bytes of a field in an option struct. */
size_t option_field_bytes(uint32_t type);

/* Whether the option, or one in its list's objects, is of this type. */
bool option_has_type(const struct hipmm_option *row, uint32_t type);

/* What is known of the resources around the one whose options are checked. A function may be NULL: nothing is known. */
struct option_surroundings {
  void *closure;
  const char *(*upstream)(void *closure, size_t index); /* its name; NULL past the last */
  bool (*is_device_memory)(void *closure);
  const char *(*same_as)(void *closure, const char *option);
  bool (*has_device_memory)(void *closure, const char *name); /* the resource called `name` */

  /* The plugin and the object of the resource called `name`; false if there is none. */
  bool (*find)(void *closure, const char *name, const struct hipmm_plugin **plugin_out, const json_t **object_out);
};

/* As option_fill() with the table of `plugin`; then the plugin validates the options, its errors and warnings included
 * in the diagnostics. `surroundings` may be NULL. */
bool option_fill_valid(const struct hipmm_plugin *plugin, json_t *object, const struct option_context *context,
                       const struct option_surroundings *surroundings, void *options_out);

/* The row of the option called `name`; NULL if there is none. */
const struct hipmm_option *option_find(const struct hipmm_option *table, size_t n, const char *name);

/* Visits each resource name in the RESOURCE options of `object`, nested lists included, with the JSON pointer of the
 * name, relative to the object: "/bins/0/resource". Skips values of the wrong type. */
void option_references(const struct hipmm_option *table, size_t n, const json_t *object,
                       void (*visit)(void *closure, const char *name, const char *relative_path), void *closure);

/* Sets the keys that `text` gives in `object`: "key=value,key=value", lists as a;b;c, as in an environment variable.
 * option_fill() checks the keys and values later. False, with an error at path `variable`, if a part is not
 * key=value. */
bool option_overlay(const struct hipmm_option *table, size_t n, const char *variable, const char *text, json_t *object,
                    struct diagnostics *diagnostics);

/* The text from which option_overlay() reads the options in `object`, without the key `except`. NULL without host
 * memory, and for a value that it cannot read (an object, text with a comma). The caller frees it. */
char *option_overlay_text(json_t *object, const char *except);

/* Sets the option called `name` in `object` to `text`: JSON, or plain text where JSON would have a string.
 * option_fill() checks the name and the value later. HIPMM_E_ARGUMENT if the text is not valid UTF-8,
 * HIPMM_E_OUT_OF_MEMORY; the caller reports either. */
enum hipmm_status option_set_text(const struct hipmm_option *table, size_t n, const char *name, const char *text,
                                  json_t *object);

/* The current value, as a user would write it in JSON: the one in `object` (`given_out` true), or the default (false),
 * null without one. The caller owns the reference. */
json_t *option_current(const struct hipmm_option *row, const json_t *object, bool *given_out);

/* The same as a copy, without changing a reference count in `object`, which other threads may read meanwhile. */
json_t *option_copy_current(const struct hipmm_option *row, const json_t *object, bool *given_out);

/* Shows a value in a message: a string in quotes, a list as "a list". Returns `buffer`. */
const char *option_show(const json_t *value, char *buffer, size_t buffer_bytes);

/* The name of an option type, as `hipmm describe` prints it: "bytes", "list", … */
const char *option_type_name(uint32_t type);

#endif
