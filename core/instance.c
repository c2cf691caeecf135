/* SPDX-License-Identifier: MIT */
/* instance.c: who stands on whom among live resources, of one stack or several, searches along that, and news for all
 * of a stack. Called when a resource is built and by calls on resources, but never by the allocation path. */
#include "error.h"
#include "graph_build.h"
#include "stack.h"

#include <stdlib.h>
#include <string.h>

/* ---- Links ---- */

static enum hipmm_status find_needs(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct outside *outside = &instance->stack->outside;
  instance->needs = calloc(node->n_references + outside->n + 1, sizeof *instance->needs);
  if (!instance->needs) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < node->n_references; i++)
    instance->needs[instance->n_needs++] = &instance->stack->instances[node->references[i]];
  for (size_t i = 0; i < outside->n; i++) instance->needs[instance->n_needs++] = instance_from(outside->resources[i]);
  return HIPMM_OK;
}

/* The later was made, the nearer to the top. */
static int by_age(const void *left, const void *right)
{
  uint64_t a = (*(struct instance *const *)left)->number, b = (*(struct instance *const *)right)->number;
  return a < b ? 1 : a > b ? -1 : 0;
}

/* All that any of them reaches, in one order, each once. */
static enum hipmm_status find_reach(struct instance *instance)
{
  size_t n = 1, n_kept = 0;
  for (size_t i = 0; i < instance->n_needs; i++) n += instance->needs[i]->n_reach;
  struct instance **reach = calloc(n, sizeof *reach);
  if (!reach) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  n = 0;
  reach[n++] = instance;
  for (size_t i = 0; i < instance->n_needs; i++) {
    memcpy(reach + n, instance->needs[i]->reach, instance->needs[i]->n_reach * sizeof *reach);
    n += instance->needs[i]->n_reach;
  }
  qsort(reach, n, sizeof *reach, by_age);
  for (size_t i = 0; i < n; i++)
    if (!n_kept || reach[n_kept - 1] != reach[i]) reach[n_kept++] = reach[i];
  instance->reach = reach;
  instance->n_reach = n_kept;
  return HIPMM_OK;
}

enum hipmm_status instance_link(struct instance *instance)
{
  static atomic_uint_fast64_t numbers;
  enum hipmm_status status = find_needs(instance);
  if (status) return status;
  instance->number = atomic_fetch_add(&numbers, 1);
  instance->depth = 1;
  for (size_t i = 0; i < instance->n_needs; i++)
    if (instance->needs[i]->depth >= instance->depth) instance->depth = instance->needs[i]->depth + 1;
  if (instance->depth > GRAPH_MAX_DEPTH)
    return error_set(HIPMM_E_ARGUMENT, "%s: stands on more than %d resources, one on the other; the most is %d deep",
                     instance->node->name, GRAPH_MAX_DEPTH - 1, GRAPH_MAX_DEPTH);
  return find_reach(instance);
}

/* ---- Searches ---- */

enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  enum hipmm_status status = HIPMM_E_NOT_SUPPORTED;
  for (size_t i = 0; i < instance->n_needs; i++) {
    status = instance_find(instance->needs[i], ptr, block_out);
    if (status == HIPMM_OK) return status;
  }
  return status;
}

enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  const struct hipmm_resource *resource = &instance->resource;
  return resource->ops->find ? resource->ops->find(resource->self, ptr, block_out)
                             : instance_find_below(instance, ptr, block_out);
}

static const struct instance *search_down(const struct instance *instance, const char *name, bool actions,
                                          size_t *row_out)
{
  for (size_t i = 0; i < instance->n_reach; i++) {
    const struct hipmm_plugin *plugin = &instance->reach[i]->node->plugin->descriptor;
    const struct hipmm_feature *features = actions ? plugin->actions : plugin->values;
    uint32_t n = actions ? plugin->n_actions : plugin->n_values;
    for (uint32_t row = 0; row < n; row++) {
      if (strcmp(features[row].name, name)) continue;
      *row_out = row;
      return instance->reach[i];
    }
  }
  return NULL;
}

const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out)
{
  return search_down(instance, name, false, row_out);
}

const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out)
{
  return search_down(instance, name, true, row_out);
}

/* ---- News of streams ---- */

void stack_tell_stream(const struct stack *stack, hipStream_t stream, enum stream_news news)
{
  for (size_t i = stack->graph->n_nodes; i-- > 0;) {
    const struct instance *instance = &stack->instances[i];
    const struct hipmm_ops *ops = instance->resource.ops;
    if (instance->created)
      (news == STREAM_RETIRED ? ops->stream_retire : ops->stream_retain)(instance->resource.self, stream);
  }
}
