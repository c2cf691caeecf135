/* SPDX-License-Identifier: MIT */
/* inspect.h: what the files that show live resources share: paths, and values as JSON. */
#ifndef HIPMM_CORE_INSPECT_INSPECT_H
#define HIPMM_CORE_INSPECT_INSPECT_H

#include "../stack/stack.h"

#include <jansson.h>

/* ---- path.c: the paths by which programs name live resources, their values and options: "devices/0/pool/reserved_bytes",
 * "created/pool.2/limit", "created/mine/pool/reserved_bytes" of a stack that is not the table's, "devices/0/held_bytes"
 * ---- */

/* The target of a path. */
struct path {
  struct stack *stack;       /* pinned */
  struct instance *instance; /* NULL: the stack as a whole */
  const char *name;          /* of the value or option: what follows the last slash of the path */
  bool is_entered;           /* the call uses the table of devices (lifecycle_enter()) */
};

/* Finds all but the name, which need not exist. Only stacks that are built are found. */
enum hipmm_status path_find(const char *path, struct path *target_out);
void path_release(const struct path *target);

/* The same for the path of a resource, a device or a stack as such; the target's name stands for none. */
enum hipmm_status path_find_resource(const char *path, struct path *target_out);

/* HIPMM_OK for a prefix of paths: "", "devices", "created", the path of a device, stack or resource, and a whole path.
 * Otherwise as path_find() and path_read(). */
enum hipmm_status path_check_prefix(const char *prefix);

/* The option that the target names; NULL: none. */
const struct hipmm_option *path_option(const struct path *target);

/* Reads the value that the target names; `path`, by which it was found, is for messages. */
enum hipmm_status path_read(const struct path *target, const char *path, int64_t *value_out);

/* The path of an instance, without a slash at its end: "devices/0/pool". Empty for an instance that has no path: one that
 * was built before hipmm_finalize(). Returns `buffer`. */
const char *path_of(const struct instance *instance, char *buffer, size_t bytes);
enum { PATH_BYTES = 256 };

/* The values of a device as a whole, "held_bytes" and "peak_held_bytes", as rows like a plugin's. */
extern const struct hipmm_feature path_device_values[];
enum { PATH_DEVICE_VALUES = 2 };
int64_t path_device_value(const struct stack *stack, size_t row);

/* ---- settings.c ---- */

/* Sets an option in bytes of all resources of the stack that have it, and that can change it while in use: to `most_bytes`, or
 * to what the resource was created with if that is less. Goes on after a failure; returns the first. */
enum hipmm_status settings_bound(const struct stack *stack, const char *option, uint64_t most_bytes);

/* ---- statistics.c ---- */

/* Whether the instance has all values of struct hipmm_statistics: then no lock protects them (plugin.h, query). */
bool statistics_need_no_lock(const struct instance *instance);

/* ---- values.c: values and options as JSON ---- */

/* Writes a JSON value, which is taken over, as text; NULL stands for out of memory. The caller frees the text with
 * hipmm_string_free(). */
enum hipmm_status values_text(json_t *value, char **text_out);

/* Reads a value of an instance; a failure leaves the thread's error as it was. */
enum hipmm_status values_read(const struct instance *instance, size_t row, int64_t *value_out);

/* The same as JSON: a number, or null where the query failed. */
json_t *values_value(const struct instance *instance, size_t row);

/* A current option: {"value", "default", "reloadable"}. */
json_t *values_option(const struct instance *instance, const struct hipmm_option *row);

/* A JSON string; "?" for text that is not valid UTF-8. */
json_t *values_string(const char *text);

#endif
