/* SPDX-License-Identifier: MIT */
/* snapshot.c: the state of all stacks as one JSON text: every resource with its values, its options and a map of its
 * memory. Programs and tools call it at any time; no thread is stopped for it. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../runtime/hip.h"
#include "inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A map of memory: what a resource shows of it (ops->visit), gathered and summed up ---- */

/* Sums of extents; `states` by enum hipmm_extent_state. */
struct memory_map_sum {
  uint64_t bytes, blocks;
};

enum { EXTENT_STATES = HIPMM_EXTENT_CACHED + 1, MOST_BLOCKERS = 8, MOST_BLOCKER_EXTENTS = 16 };

struct memory_map {
  struct hipmm_extent *items;
  size_t n, capacity;
  bool is_truncated;      /* there was no host memory for all */
  uint64_t movable_bytes; /* free bytes that serve a request as if they were contiguous */
};

static void memory_map_add(void *closure, const struct hipmm_extent *extent)
{
  struct memory_map *map = closure;
  if (extent->state < HIPMM_EXTENT_LIVE || extent->state >= EXTENT_STATES) return;
  if (map->n == map->capacity && !map->is_truncated) {
    size_t capacity = map->capacity ? 2 * map->capacity : 64;
    void *items = reallocarray(map->items, capacity, sizeof *map->items);
    map->is_truncated = !items;
    if (items) map->items = items;
    if (items) map->capacity = capacity;
  }
  if (map->n < map->capacity) map->items[map->n++] = *extent;
}

static int memory_map_by_address(const void *left, const void *right)
{
  const struct hipmm_extent *a = left, *b = right;
  return (a->ptr > b->ptr) - (a->ptr < b->ptr);
}

static int memory_map_by_stream(const void *left, const void *right)
{
  const struct hipmm_extent *a = left, *b = right;
  return a->stream == b->stream                        ? memory_map_by_address(left, right)
         : (uintptr_t)a->stream > (uintptr_t)b->stream ? 1
                                                       : -1;
}

static bool memory_map_is_one_hole(const struct hipmm_extent *a, const struct hipmm_extent *b)
{
  return a->state == HIPMM_EXTENT_FREE && b->state == HIPMM_EXTENT_FREE && !(b->flags & HIPMM_EXTENT_BARRIER) &&
         (uintptr_t)a->ptr + a->bytes == (uintptr_t)b->ptr;
}

/* A resource shows a hole as several extents where only a part of it can be moved. */
static void memory_map_join_holes(struct memory_map *map)
{
  struct hipmm_extent *items = map->items;
  size_t n = 0;
  for (size_t i = 0; i < map->n; i++) {
    bool is_movable = items[i].state == HIPMM_EXTENT_FREE && items[i].flags & HIPMM_EXTENT_MOVABLE;
    if (is_movable) map->movable_bytes += items[i].bytes;
    if (n && memory_map_is_one_hole(&items[n - 1], &items[i]))
      items[n - 1].bytes += items[i].bytes;
    else
      items[n++] = items[i];
  }
  map->n = n;
}

/* Gathers the extents of an instance, sorted by address; free extents that touch are one. The caller frees the items, also
 * after a failure. */
static enum hipmm_status memory_map_gather(const struct instance *instance, struct memory_map *map_out)
{
  *map_out = (struct memory_map){0};
  enum hipmm_status status = instance_finish_op(
      instance, instance->resource.ops->visit(instance->resource.self, memory_map_add, map_out), "visit");
  if (!status && map_out->is_truncated) status = error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (map_out->n) qsort(map_out->items, map_out->n, sizeof *map_out->items, memory_map_by_address);
  memory_map_join_holes(map_out);
  return status;
}

static void memory_map_sum(const struct memory_map *map, struct memory_map_sum states_out[EXTENT_STATES])
{
  memset(states_out, 0, EXTENT_STATES * sizeof *states_out);
  for (size_t i = 0; i < map->n; i++) {
    states_out[map->items[i].state].bytes += map->items[i].bytes;
    states_out[map->items[i].state].blocks++;
  }
}

static uint64_t memory_map_largest_free(const struct memory_map *map)
{
  uint64_t largest = map->movable_bytes;
  for (size_t i = 0; i < map->n; i++)
    if (map->items[i].state == HIPMM_EXTENT_FREE && map->items[i].bytes > largest) largest = map->items[i].bytes;
  return largest;
}

/* Blocks that keep two free extents apart: the extents from number `first` on. If they were freed, `joined_bytes` would be
 * contiguous. */
struct memory_map_blocker {
  size_t first, n;
  uint64_t below_bytes, above_bytes, joined_bytes;
};

/* Whether two extents are of one range, as their flags say, and at most the rounding of the first lies between them. */
static bool memory_map_are_adjacent(const struct hipmm_extent *a, const struct hipmm_extent *b)
{
  uintptr_t end = (uintptr_t)a->ptr + a->bytes, start = (uintptr_t)b->ptr;
  uintptr_t rounding = a->state == HIPMM_EXTENT_LIVE && a->bytes > HIPMM_ALIGNMENT ? a->bytes : HIPMM_ALIGNMENT;
  return !(b->flags & HIPMM_EXTENT_BARRIER) && start >= end && start - end <= rounding;
}

/* Retains the largest, in order. */
static size_t memory_map_insert_blocker(struct memory_map_blocker *blockers, size_t n, size_t most,
                                        const struct memory_map_blocker *blocker)
{
  size_t at = n;
  while (at > 0 && blockers[at - 1].joined_bytes < blocker->joined_bytes) at--;
  if (at == most) return n;
  if (n < most) n++;
  memmove(&blockers[at + 1], &blockers[at], (n - at - 1) * sizeof *blockers);
  blockers[at] = *blocker;
  return n;
}

/* The blockers of the largest joined extents, the largest first; returns how many. The extents are sorted by address. */
static size_t memory_map_blockers(const struct memory_map *map, struct memory_map_blocker *blockers_out, size_t most)
{
  const struct hipmm_extent *items = map->items;
  size_t n = 0, hole = SIZE_MAX; /* the free extent below, SIZE_MAX: none that reaches here */
  for (size_t i = 0; i < map->n; i++) {
    if (i && !memory_map_are_adjacent(&items[i - 1], &items[i])) hole = SIZE_MAX;
    if (items[i].state != HIPMM_EXTENT_FREE) continue;
    if (hole != SIZE_MAX && i > hole + 1) {
      uintptr_t end = (uintptr_t)items[i].ptr + items[i].bytes;
      struct memory_map_blocker blocker = {.first = hole + 1,
                                           .n = i - hole - 1,
                                           .below_bytes = items[hole].bytes,
                                           .above_bytes = items[i].bytes,
                                           .joined_bytes = end - (uintptr_t)items[hole].ptr};
      n = memory_map_insert_blocker(blockers_out, n, most, &blocker);
    }
    hole = i;
  }
  return n;
}

/* ---- Memory ---- */

static const char *const state_names[EXTENT_STATES] = {[HIPMM_EXTENT_LIVE] = "live",
                                                       [HIPMM_EXTENT_FREE] = "free",
                                                       [HIPMM_EXTENT_PENDING] = "pending",
                                                       [HIPMM_EXTENT_CACHED] = "cached"};

static json_t *snapshot_address(const void *ptr)
{
  char text[24];
  snprintf(text, sizeof text, "0x%llx", (unsigned long long)(uintptr_t)ptr);
  return json_string(text);
}

static void snapshot_add_sums(json_t *object, const struct memory_map *map)
{
  struct memory_map_sum sums[EXTENT_STATES];
  memory_map_sum(map, sums);
  for (size_t state = HIPMM_EXTENT_LIVE; state < EXTENT_STATES; state++)
    json_object_set_new(
        object, state_names[state],
        json_pack("{s:I, s:I}", "bytes", (json_int_t)sums[state].bytes, "blocks", (json_int_t)sums[state].blocks));
}

/* Sums per stream. Extents that are free on all streams have no stream. The extents are sorted by stream. */
static json_t *snapshot_streams(const struct memory_map *map)
{
  json_t *list = json_array();
  for (size_t first = 0, next; first < map->n; first = next) {
    struct memory_map of_one = {.items = &map->items[first]};
    struct memory_map_sum sums[EXTENT_STATES];
    for (next = first; next < map->n && map->items[next].stream == map->items[first].stream; next++) of_one.n++;
    memory_map_sum(&of_one, sums);
    if (of_one.n == sums[HIPMM_EXTENT_FREE].blocks) continue;
    json_t *entry = json_pack("{s:o}", "stream", snapshot_address(map->items[first].stream));
    snapshot_add_sums(entry, &of_one);
    json_object_del(entry, state_names[HIPMM_EXTENT_FREE]);
    json_array_append_new(list, entry);
  }
  return list;
}

static json_t *snapshot_blocker_extents(const struct memory_map *map, const struct memory_map_blocker *blocker)
{
  json_t *blocks = json_array();
  for (size_t i = 0; i < blocker->n && i < MOST_BLOCKER_EXTENTS; i++) {
    const struct hipmm_extent *extent = &map->items[blocker->first + i];
    json_array_append_new(blocks, json_pack("{s:o, s:I, s:s, s:o}", "address", snapshot_address(extent->ptr), "bytes",
                                            (json_int_t)extent->bytes, "state", state_names[extent->state], "stream",
                                            snapshot_address(extent->stream)));
  }
  return blocks;
}

static json_t *snapshot_blockers(const struct memory_map *map)
{
  struct memory_map_blocker found[MOST_BLOCKERS];
  size_t n = memory_map_blockers(map, found, MOST_BLOCKERS);
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(
        list, json_pack("{s:I, s:I, s:I, s:I, s:o}", "joined_bytes", (json_int_t)found[i].joined_bytes, "below_bytes",
                        (json_int_t)found[i].below_bytes, "above_bytes", (json_int_t)found[i].above_bytes, "n_blocks",
                        (json_int_t)found[i].n, "blocks", snapshot_blocker_extents(map, &found[i])));
  return list;
}

static json_t *snapshot_memory(struct memory_map *map)
{
  struct memory_map_sum sums[EXTENT_STATES];
  json_t *object = json_object();
  uint64_t largest = memory_map_largest_free(map);
  memory_map_sum(map, sums);
  uint64_t total = sums[HIPMM_EXTENT_FREE].bytes;
  snapshot_add_sums(object, map);
  json_object_set_new(object, "largest_free_bytes", json_integer((json_int_t)largest));
  json_object_set_new(object, "fragmentation", json_real(total ? 1 - (double)largest / (double)total : 0));
  json_object_set_new(object, "blockers", snapshot_blockers(map));
  if (map->n) qsort(map->items, map->n, sizeof *map->items, memory_map_by_stream);
  json_object_set_new(object, "streams", snapshot_streams(map));
  return object;
}

/* Adds nothing for a resource that shows no memory, or whose visit failed. */
static void snapshot_add_memory(json_t *object, const struct instance *instance)
{
  struct memory_map map;
  const struct error_record before = error_mark();
  enum hipmm_status status = memory_map_gather(instance, &map);
  if (status) error_return_to_mark(&before);
  if (!status && map.n) json_object_set_new(object, "memory", snapshot_memory(&map));
  free(map.items);
}

/* ---- Resources ---- */

static json_t *snapshot_values(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  json_t *object = json_object();
  for (uint32_t i = 0; i < plugin->n_values; i++)
    json_object_set_new(object, plugin->values[i].name, values_value(instance, i));
  return object;
}

static json_t *snapshot_options(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  json_t *object = json_object();
  for (uint32_t i = 0; i < plugin->n_options; i++)
    json_object_set_new(object, plugin->options[i].name, values_option(instance, &plugin->options[i]));
  return object;
}

/* By path where there is one, else by name. */
static json_t *snapshot_reference(const struct instance *instance)
{
  char path[PATH_BYTES];
  return values_string(*path_of(instance, path, sizeof path) ? path : instance->node->name);
}

static json_t *snapshot_references(const struct instance *instance)
{
  json_t *list = json_array();
  const struct instance_dependencies *dependencies = dependencies_of(instance);
  for (size_t i = 0; i < dependencies->n_direct; i++)
    json_array_append_new(list, snapshot_reference(dependencies->direct[i]));
  return list;
}

static json_t *snapshot_resource(struct instance *instance)
{
  char path[PATH_BYTES];
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  path_of(instance, path, sizeof path);
  json_t *object =
      json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "name", values_string(instance->node->name), "type", plugin->type,
                "path", *path ? values_string(path) : json_null(), "below", snapshot_references(instance), "values",
                snapshot_values(instance), "options", snapshot_options(instance));
  if (plugin->role == HIPMM_ROLE_SOURCE) {
    size_t blocks, bytes;
    block_map_sum(&instance->block_map, &blocks, &bytes);
    json_object_set_new(object, "held",
                        json_pack("{s:I, s:I}", "bytes", (json_int_t)bytes, "blocks", (json_int_t)blocks));
  }
  if (atomic_load(&instance->is_suspended)) json_object_set_new(object, "suspended", json_true());
  snapshot_add_memory(object, instance);
  return object;
}

static json_t *snapshot_stack_state(const struct stack *stack)
{
  json_t *resources = json_array();
  STACK_EACH(instance, stack) json_array_append_new(resources, snapshot_resource(instance));
  return json_pack("{s:i, s:o, s:o, s:I, s:I, s:o}", "device", stack->device, "source",
                   values_string(stack->graph->source), "top", snapshot_reference(&stack->instances[stack->top]),
                   "held_bytes", (json_int_t)path_device_value(stack, 0), "peak_held_bytes",
                   (json_int_t)path_device_value(stack, 1), "resources", resources);
}

enum hipmm_status hipmm_snapshot(char **json_out)
{
  enum hipmm_status status = lifecycle_check_use(json_out, "json_out");
  if (status) return status;
  json_t *stacks = json_array();
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    json_array_append_new(stacks, snapshot_stack_state(stack));
  return values_text(
      json_pack("{s:s, s:o, s:o}", "version", hipmm_version(), "runtime", values_string(hip_name()), "stacks", stacks),
      json_out);
}
