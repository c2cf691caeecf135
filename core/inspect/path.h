/* SPDX-License-Identifier: MIT */
/* path.h: the paths by which programs name what lives: "devices/0/pool/reserved_bytes", "created/pool.2/limit",
 * "devices/0/held_bytes". */
#ifndef HIPMM_CORE_INSPECT_PATH_H
#define HIPMM_CORE_INSPECT_PATH_H

#include "../stack/stack.h"

/* Where a path leads. */
struct place {
  struct stack *stack;       /* retained */
  struct instance *instance; /* NULL: the device as a whole */
  const char *name;          /* of the value or option: what follows the last slash of the path */
};

/* Finds all but the name, which need not exist. Only stacks that are built are looked at. */
enum hipmm_status place_find(const char *path, struct place *place_out);
void place_release(const struct place *place);

/* Reads the value that the place names; `path` is what it was found by, for messages. */
enum hipmm_status place_read(const struct place *place, const char *path, int64_t *value_out);

/* The path of an instance, without a slash at its end: "devices/0/pool". Empty for one that no path leads to: built
 * before hipmm_finalize(). Returns `buffer`. */
const char *place_path(const struct instance *instance, char *buffer, size_t bytes);
enum { PLACE_BYTES = 160 };

/* What a device has as a whole: "held_bytes" and "peak_held_bytes", as rows like a plugin's. */
extern const struct hipmm_feature place_device_values[];
enum { PLACE_DEVICE_VALUES = 2 };
int64_t place_device_value(const struct stack *stack, size_t row);

#endif
