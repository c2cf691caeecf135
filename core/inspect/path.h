/* SPDX-License-Identifier: MIT */
/* path.h: the paths by which programs name what lives: "devices/0/pool/reserved_bytes", "created/pool.2/limit",
 * "devices/0/held_bytes". */
#ifndef HIPMM_CORE_INSPECT_PATH_H
#define HIPMM_CORE_INSPECT_PATH_H

#include "../stack/stack.h"

/* Where a path leads. */
struct path {
  struct stack *stack;       /* retained */
  struct instance *instance; /* NULL: the device as a whole */
  const char *name;          /* of the value or option: what follows the last slash of the path */
};

/* Finds all but the name, which need not exist. Only stacks that are built are looked at. */
enum hipmm_status path_find(const char *path, struct path *place_out);
void path_release(const struct path *place);

/* Reads the value that the place names; `path` is what it was found by, for messages. */
enum hipmm_status path_read(const struct path *place, const char *path, int64_t *value_out);

/* The path of an instance, without a slash at its end: "devices/0/pool". Empty for one that no path leads to: built
 * before hipmm_finalize(). Returns `buffer`. */
const char *path_path(const struct instance *instance, char *buffer, size_t bytes);
enum { PATH_BYTES = 160 };

/* What a device has as a whole: "held_bytes" and "peak_held_bytes", as rows like a plugin's. */
extern const struct hipmm_feature path_device_values[];
enum { PATH_DEVICE_VALUES = 2 };
int64_t path_device_value(const struct stack *stack, size_t row);

#endif
