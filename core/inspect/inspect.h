/* SPDX-License-Identifier: MIT */
/* inspect.h: what the files that show live resources share: paths, values as JSON, and maps of memory. */
#ifndef HIPMM_CORE_INSPECT_INSPECT_H
#define HIPMM_CORE_INSPECT_INSPECT_H

#include "../stack/stack.h"

#include <jansson.h>

/* ---- path.c: the paths by which programs name live resources, their values and options: "devices/0/pool/reserved_bytes",
 * "created/pool.2/limit", "devices/0/held_bytes" ---- */

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

/* ---- values.c: values and options as JSON ---- */

/* A text of ours from a JSON value, which is taken over; NULL is out of memory. The caller frees it with
 * hipmm_string_free(). */
enum hipmm_status values_text(json_t *value, char **text_out);

/* A value of an instance: a number, or null where it could not be had. */
json_t *values_value(const struct instance *instance, size_t row);

/* An option in force: {"value", "default", "reloadable"}. */
json_t *values_option(const struct instance *instance, const struct hipmm_option *row);

/* A string that is certainly valid UTF-8. */
json_t *values_string(const char *text);

/* ---- memory_map.c: what a resource shows of its memory (ops->visit), gathered and summed up ---- */

/* Sums of extents; `states` by enum hipmm_extent_state. */
struct memory_map_sum {
  uint64_t bytes, blocks;
};

enum { EXTENT_STATES = HIPMM_EXTENT_CACHED + 1 };

struct memory_map {
  struct hipmm_extent *items;
  size_t n, capacity;
  bool is_short;          /* there was no memory for all */
  uint64_t movable_bytes; /* of what is free: serves a request as if it were in one piece */
};

/* Gathers the extents of an instance, sorted by address; free ones that touch are one. Free with memory_map_free, whatever
 * came of it. */
enum hipmm_status memory_map_gather(const struct instance *instance, struct memory_map *extents_out);
void memory_map_free(struct memory_map *extents);

/* Sorts them by stream, for sums per stream. */
void memory_map_sort_by_stream(struct memory_map *extents);

void memory_map_sum(const struct memory_map *extents, struct memory_map_sum states_out[EXTENT_STATES]);
uint64_t memory_map_largest_free(const struct memory_map *extents);

/* A hole that would be there if blocks between two free ones were freed: the free extents before and after, the extents
 * between them from number `first` on, and the bytes that would be in one piece. */
struct memory_map_blocker {
  size_t first, n;
  uint64_t below_bytes, above_bytes, joined_bytes;
};

/* The holes that would be the largest, largest first; returns how many. The extents are sorted by address. */
size_t memory_map_blockers(const struct memory_map *extents, struct memory_map_blocker *pins_out, size_t most);

#endif
