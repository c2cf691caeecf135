/* SPDX-License-Identifier: MIT */
/* snapshot.c: the state of all stacks as one JSON text: every resource with its values and options, and what it shows
 * of its memory. Programs and tools call it at any time; nothing is stopped for it. */
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../runtime/hip.h"
#include "memory_map.h"
#include "path.h"
#include "values.h"

#include <stdio.h>

enum { MOST_PINS = 8, MOST_PIN_BLOCKS = 16 };

static const char *const state_names[EXTENT_STATES] = {[HIPMM_EXTENT_LIVE] = "live",
                                                       [HIPMM_EXTENT_FREE] = "free",
                                                       [HIPMM_EXTENT_PENDING] = "pending",
                                                       [HIPMM_EXTENT_CACHED] = "cached"};

static json_t *address(const void *ptr)
{
  char text[24];
  snprintf(text, sizeof text, "0x%llx", (unsigned long long)(uintptr_t)ptr);
  return json_string(text);
}

/* ---- Memory ---- */

static void add_sums(json_t *object, const struct extents *extents)
{
  struct extent_sum sums[EXTENT_STATES];
  extents_sum(extents, sums);
  for (size_t state = HIPMM_EXTENT_LIVE; state < EXTENT_STATES; state++)
    json_object_set_new(
        object, state_names[state],
        json_pack("{s:I, s:I}", "bytes", (json_int_t)sums[state].bytes, "blocks", (json_int_t)sums[state].blocks));
}

/* Sums per stream; what is free on all streams has none. The extents are sorted by stream. */
static json_t *streams(const struct extents *extents)
{
  json_t *list = json_array();
  for (size_t first = 0, next; first < extents->n; first = next) {
    struct extents of_one = {.items = &extents->items[first]};
    struct extent_sum sums[EXTENT_STATES];
    for (next = first; next < extents->n && extents->items[next].stream == extents->items[first].stream; next++)
      of_one.n++;
    extents_sum(&of_one, sums);
    if (of_one.n == sums[HIPMM_EXTENT_FREE].blocks) continue;
    json_t *entry = json_pack("{s:o}", "stream", address(extents->items[first].stream));
    add_sums(entry, &of_one);
    json_object_del(entry, state_names[HIPMM_EXTENT_FREE]);
    json_array_append_new(list, entry);
  }
  return list;
}

static json_t *pin_blocks(const struct extents *extents, const struct extent_pin *pin)
{
  json_t *blocks = json_array();
  for (size_t i = 0; i < pin->n && i < MOST_PIN_BLOCKS; i++) {
    const struct hipmm_extent *extent = &extents->items[pin->first + i];
    json_array_append_new(blocks, json_pack("{s:o, s:I, s:s, s:o}", "address", address(extent->ptr), "bytes",
                                            (json_int_t)extent->bytes, "state", state_names[extent->state], "stream",
                                            address(extent->stream)));
  }
  return blocks;
}

static json_t *pins(const struct extents *extents)
{
  struct extent_pin found[MOST_PINS];
  size_t n = extents_pins(extents, found, MOST_PINS);
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(
        list, json_pack("{s:I, s:I, s:I, s:I, s:o}", "joined_bytes", (json_int_t)found[i].joined_bytes, "below_bytes",
                        (json_int_t)found[i].below_bytes, "above_bytes", (json_int_t)found[i].above_bytes, "n_blocks",
                        (json_int_t)found[i].n, "blocks", pin_blocks(extents, &found[i])));
  return list;
}

static json_t *memory(struct extents *extents)
{
  struct extent_sum sums[EXTENT_STATES];
  json_t *object = json_object();
  uint64_t largest = extents_largest_free(extents);
  extents_sum(extents, sums);
  uint64_t total = sums[HIPMM_EXTENT_FREE].bytes;
  add_sums(object, extents);
  json_object_set_new(object, "largest_free_bytes", json_integer((json_int_t)largest));
  json_object_set_new(object, "fragmentation", json_real(total ? 1 - (double)largest / (double)total : 0));
  json_object_set_new(object, "pins", pins(extents));
  extents_sort_by_stream(extents);
  json_object_set_new(object, "streams", streams(extents));
  return object;
}

/* Nothing of a resource that shows none, or that could not be asked. */
static void add_memory(json_t *object, const struct instance *instance)
{
  struct extents extents;
  struct hipmm_error before = {.struct_size = sizeof before};
  hipmm_last_error(&before);
  enum hipmm_status status = extents_gather(instance, &extents);
  if (status) error_set_located(&before);
  if (!status && extents.n) json_object_set_new(object, "memory", memory(&extents));
  extents_free(&extents);
}

/* ---- Resources ---- */

static json_t *values(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  json_t *object = json_object();
  for (uint32_t i = 0; i < plugin->n_values; i++)
    json_object_set_new(object, plugin->values[i].name, state_value(instance, i));
  return object;
}

static json_t *options(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  json_t *object = json_object();
  for (uint32_t i = 0; i < plugin->n_options; i++)
    json_object_set_new(object, plugin->options[i].name, state_option(instance, &plugin->options[i]));
  return object;
}

/* By path where there is one, else by name. */
static json_t *reference(const struct instance *instance)
{
  char path[PLACE_BYTES];
  return state_string(*place_path(instance, path, sizeof path) ? path : instance->node->name);
}

static json_t *references(const struct instance *instance)
{
  json_t *list = json_array();
  for (size_t i = 0; i < instance->n_needs; i++) json_array_append_new(list, reference(instance->needs[i]));
  return list;
}

static json_t *resource(struct instance *instance)
{
  char path[PLACE_BYTES];
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  place_path(instance, path, sizeof path);
  json_t *object = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "name", state_string(instance->node->name), "type",
                             plugin->type, "path", *path ? state_string(path) : json_null(), "below",
                             references(instance), "values", values(instance), "options", options(instance));
  if (plugin->role == HIPMM_ROLE_SOURCE) {
    size_t blocks, bytes;
    ledger_sum(&instance->ledger, &blocks, &bytes);
    json_object_set_new(object, "held",
                        json_pack("{s:I, s:I}", "bytes", (json_int_t)bytes, "blocks", (json_int_t)blocks));
  }
  add_memory(object, instance);
  return object;
}

static json_t *stack_state(const struct stack *stack)
{
  json_t *resources = json_array();
  for (size_t i = stack->graph->n_nodes; i-- > 0;)
    if (stack->instances[i].created) json_array_append_new(resources, resource(&stack->instances[i]));
  return json_pack("{s:i, s:o, s:o, s:I, s:I, s:o}", "device", stack->device, "source",
                   state_string(stack->graph->source), "top", reference(&stack->instances[stack->top]), "held_bytes",
                   (json_int_t)place_device_value(stack, 0), "peak_held_bytes",
                   (json_int_t)place_device_value(stack, 1), "resources", resources);
}

enum hipmm_status hipmm_snapshot(char **json_out)
{
  enum hipmm_status status = life_check_argument(json_out, "json_out");
  if (status) return status;
  json_t *stacks = json_array();
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    json_array_append_new(stacks, stack_state(stack));
  return state_text(
      json_pack("{s:s, s:o, s:o}", "version", hipmm_version(), "runtime", state_string(hip_name()), "stacks", stacks),
      json_out);
}
