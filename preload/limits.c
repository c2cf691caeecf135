/* SPDX-License-Identifier: MIT */
/* limits.c: see limits.h. A limit counts if every way from the top of the stack to a source leads through it: the value
 * "limit_bytes" (of `limiting`), the option "maximum_size" (of `pool` and others like it). */
#include "limits.h"

#include "../core/stack/instance_options.h"

#include <string.h>

static bool limits_value_of(const struct instance *instance, const char *name, uint64_t *value_out)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  int64_t value;
  for (uint32_t row = 0; row < plugin->n_values; row++) {
    if (strcmp(plugin->values[row].name, name)) continue;
    if (instance->resource.ops->query(instance->resource.self, row, &value) || value < 0) return false;
    *value_out = (uint64_t)value;
    return true;
  }
  return false;
}

static bool limits_size_option_of(const struct instance *instance, const char *name, uint64_t *bytes_out)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  for (uint32_t row = 0; row < plugin->n_options; row++) {
    if (plugin->options[row].type != HIPMM_OPTION_BYTES || strcmp(plugin->options[row].name, name)) continue;
    const struct instance_options *set = atomic_load(&instance->options);
    memcpy(bytes_out, (const char *)set->options + plugin->options[row].offset, sizeof *bytes_out);
    return *bytes_out != HIPMM_UNLIMITED;
  }
  return false;
}

/* What this resource lets through at most, and how much of it is taken. */
static bool limits_limit_of(const struct instance *instance, uint64_t *limit_out, uint64_t *taken_out)
{
  if (limits_value_of(instance, "limit_bytes", limit_out) && limits_value_of(instance, "allocated_bytes", taken_out))
    return true;
  return limits_size_option_of(instance, "maximum_size", limit_out) &&
         limits_value_of(instance, "live_bytes", taken_out);
}

/* Whether no source can be reached from the top but through `node`. */
static bool limits_all_lead_through(const struct stack *stack, int node)
{
  bool is_reached[GRAPH_MAX_NODES] = {false};
  is_reached[stack->top] = true;
  for (int i = stack->top; i >= 0; i--) {
    const struct graph_node *at = &stack->graph->nodes[i];
    if (!is_reached[i] || i == node) continue;
    if (at->plugin->descriptor.role == HIPMM_ROLE_SOURCE) return false;
    for (size_t r = 0; r < at->n_references; r++) is_reached[at->references[r]] = true;
  }
  return true;
}

static uint64_t limits_least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

void limits_apply(const struct served_device *served, size_t *free_bytes, size_t *total_bytes)
{
  const struct stack *stack = served->kinds[KIND_DEVICE].stack;
  uint64_t total = *total_bytes, left = *free_bytes + (uint64_t)devices_idle_bytes(served), limit, taken;
  for (int i = 0; i <= stack->top; i++) {
    const struct instance *instance = &stack->instances[i];
    if (!instance->created || !limits_limit_of(instance, &limit, &taken) || !limits_all_lead_through(stack, i))
      continue;
    total = limits_least(total, limit);
    left = limits_least(left, limit > taken ? limit - taken : 0);
  }
  *total_bytes = total;
  *free_bytes = limits_least(left, total);
}
