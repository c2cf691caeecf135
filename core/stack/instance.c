/* SPDX-License-Identifier: MIT */
/* instance.c: which live resources stand on which, of one stack or several, and searches along that. Called when a
 * resource is built and by calls on resources, but never by the allocation path. */
#include "../base/error.h"
#include "../graph/graph_build.h"
#include "stack.h"

#include <hipmm/inspect.h>

#include <stdlib.h>
#include <string.h>

/* ---- Links ---- */

static enum hipmm_status instance_find_dependencies(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct external *external = &instance->stack->external;
  instance->dependencies = calloc(node->n_references + external->n + 1, sizeof *instance->dependencies);
  if (!instance->dependencies) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < node->n_references; i++)
    instance->dependencies[instance->n_dependencies++] = &instance->stack->instances[node->references[i]];
  for (size_t i = 0; i < external->n; i++)
    instance->dependencies[instance->n_dependencies++] = instance_from(external->resources[i]);
  return HIPMM_OK;
}

/* A later instance is nearer to the top. */
static int instance_by_age(const void *left, const void *right)
{
  uint64_t a = (*(struct instance *const *)left)->number, b = (*(struct instance *const *)right)->number;
  return a < b ? 1 : a > b ? -1 : 0;
}

/* Sorts the instances, drops duplicates and returns how many are left. */
static size_t instance_sort(struct instance **instances, size_t n)
{
  size_t n_unique = 0;
  qsort(instances, n, sizeof *instances, instance_by_age);
  for (size_t i = 0; i < n; i++)
    if (!n_unique || instances[n_unique - 1] != instances[i]) instances[n_unique++] = instances[i];
  return n_unique;
}

/* The instance itself and the closures of its dependencies. */
static enum hipmm_status instance_find_closure(struct instance *instance)
{
  size_t n = 1;
  for (size_t i = 0; i < instance->n_dependencies; i++) n += instance->dependencies[i]->n_closure;
  struct instance **closure = calloc(n, sizeof *closure);
  if (!closure) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  n = 0;
  closure[n++] = instance;
  for (size_t i = 0; i < instance->n_dependencies; i++) {
    memcpy(closure + n, instance->dependencies[i]->closure, instance->dependencies[i]->n_closure * sizeof *closure);
    n += instance->dependencies[i]->n_closure;
  }
  instance->closure = closure;
  instance->n_closure = instance_sort(closure, n);
  return HIPMM_OK;
}

/* Whether its blocks may be live blocks of a dependency, at the same addresses. */
static bool instance_forwards_blocks(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  return !plugin->ops->find || plugin->flags & HIPMM_PLUGIN_HANDS_ON;
}

/* Whether the instance can be asked for a block, or ends the search because nothing is below it. */
static bool instance_is_finder(const struct instance *instance)
{
  return instance->node->plugin->descriptor.ops->find || !instance->n_dependencies;
}

/* The dependencies that can be asked for a block, and the finders of those that forward blocks of others. */
static enum hipmm_status instance_find_finders(struct instance *instance)
{
  size_t n = instance->n_dependencies;
  for (size_t i = 0; i < instance->n_dependencies; i++) n += instance->dependencies[i]->n_finders;
  struct instance **finders = calloc(n + 1, sizeof *finders);
  if (!finders) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  n = 0;
  for (size_t i = 0; i < instance->n_dependencies; i++) {
    const struct instance *below = instance->dependencies[i];
    if (instance_is_finder(below)) finders[n++] = instance->dependencies[i];
    if (!instance_forwards_blocks(below)) continue;
    memcpy(finders + n, below->finders, below->n_finders * sizeof *finders);
    n += below->n_finders;
  }
  instance->finders = finders;
  instance->n_finders = instance_sort(finders, n);
  return HIPMM_OK;
}

enum hipmm_status instance_link(struct instance *instance)
{
  static atomic_uint_fast64_t numbers;
  enum hipmm_status status = instance_find_dependencies(instance);
  if (status) return status;
  instance->number = atomic_fetch_add(&numbers, 1);
  instance->depth = 1;
  for (size_t i = 0; i < instance->n_dependencies; i++)
    if (instance->dependencies[i]->depth >= instance->depth) instance->depth = instance->dependencies[i]->depth + 1;
  if (instance->depth > GRAPH_MAX_DEPTH)
    return error_set(HIPMM_E_ARGUMENT, "%s: stands on more than %d resources, one on the other; the most is %d deep",
                     instance->node->name, GRAPH_MAX_DEPTH - 1, GRAPH_MAX_DEPTH);
  status = instance_find_closure(instance);
  return status ? status : instance_find_finders(instance);
}

bool instance_is_kept_below(const struct instance *instance)
{
  for (size_t i = 1; i < instance->n_closure; i++) {
    const struct hipmm_plugin *plugin = &instance->closure[i]->node->plugin->descriptor;
    if (plugin->role == HIPMM_ROLE_SUB_ALLOCATOR || plugin->flags & HIPMM_PLUGIN_KEEPS_MEMORY) return true;
  }
  return false;
}

bool instance_stands_on(const struct instance *instance, const struct instance *below)
{
  for (size_t i = 1; i < instance->n_closure; i++)
    if (instance->closure[i] == below) return true;
  return false;
}

/* An adaptor may forward blocks of any instance in its closure. */
bool instance_may_cut_up(const struct instance *other, const struct instance *instance)
{
  bool is_adaptor = instance_forwards_blocks(instance) || instance->node->plugin->descriptor.role == HIPMM_ROLE_ADAPTOR;
  for (size_t i = 0; i < (is_adaptor ? instance->n_closure : 1); i++)
    if (instance_stands_on(other, instance->closure[i])) return true;
  return false;
}

enum hipmm_status instance_fail_op(const struct instance *instance, enum hipmm_status status, const char *op)
{
  if (instance_is_live(&instance->resource)) status = error_of_op(status, instance->node->name, op);
  if (!strcmp(op, "allocate")) error_count_allocation();
  return status;
}

/* ---- Searches ---- */

/* What the instance knows by itself. `is_settled_out`: no other instance needs to be asked. */
static enum hipmm_status instance_ask(const struct instance *instance, const void *ptr, struct hipmm_block *block_out,
                                      bool *is_settled_out)
{
  const struct hipmm_ops *ops = instance->resource.ops;
  *is_settled_out = false;
  if (!instance->node->plugin->descriptor.ops->find) return HIPMM_E_NOT_SUPPORTED;
  enum hipmm_status status = ops->find(instance->resource.self, ptr, block_out);
  if (status == HIPMM_E_POINTER) *is_settled_out = ops->covers(instance->resource.self, ptr);
  if (status != HIPMM_E_POINTER && status != HIPMM_E_NOT_SUPPORTED) *is_settled_out = true;
  return status;
}

enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  enum hipmm_status status = instance->n_finders ? HIPMM_E_POINTER : HIPMM_E_NOT_SUPPORTED;
  for (size_t i = 0; i < instance->n_finders; i++) {
    bool is_settled;
    enum hipmm_status one = instance_ask(instance->finders[i], ptr, block_out, &is_settled);
    if (is_settled) return one;
    if (one == HIPMM_E_NOT_SUPPORTED) status = one;
  }
  return status;
}

enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out)
{
  bool is_settled;
  enum hipmm_status status = instance_ask(instance, ptr, block_out, &is_settled);
  return is_settled || !instance_forwards_blocks(instance) ? status : instance_find_below(instance, ptr, block_out);
}

static const struct instance *instance_search_down(const struct instance *instance, const char *name, bool actions,
                                                   size_t *row_out)
{
  for (size_t i = 0; i < instance->n_closure; i++) {
    const struct hipmm_plugin *plugin = &instance->closure[i]->node->plugin->descriptor;
    const struct hipmm_feature *features = actions ? plugin->actions : plugin->values;
    uint32_t n = actions ? plugin->n_actions : plugin->n_values;
    for (uint32_t row = 0; row < n; row++) {
      if (strcmp(features[row].name, name)) continue;
      *row_out = row;
      return instance->closure[i];
    }
  }
  return NULL;
}

const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out)
{
  return instance_search_down(instance, name, false, row_out);
}

const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out)
{
  return instance_search_down(instance, name, true, row_out);
}

/* ---- What programs ask and keep ---- */

unsigned instance_access(const struct instance *instance)
{
  unsigned access = HIPMM_ACCESS_HOST | HIPMM_ACCESS_DEVICE;
  for (size_t i = 0; i < instance->n_closure; i++) {
    const struct hipmm_plugin *plugin = &instance->closure[i]->node->plugin->descriptor;
    if (plugin->role != HIPMM_ROLE_SOURCE) continue;
    if (!(plugin->flags & HIPMM_PLUGIN_HOST_MEMORY)) access &= ~(unsigned)HIPMM_ACCESS_HOST;
    if (plugin->flags & HIPMM_PLUGIN_HOST_ALONE) access &= ~(unsigned)HIPMM_ACCESS_DEVICE;
  }
  return access;
}

static pthread_mutex_t user_data_lock = PTHREAD_MUTEX_INITIALIZER;

void instance_set_user_data(struct instance *instance, struct instance_user_data data)
{
  pthread_mutex_lock(&user_data_lock);
  struct instance_user_data before = instance->user_data;
  instance->user_data = data;
  pthread_mutex_unlock(&user_data_lock);
  if (before.release) before.release(before.data);
}

void *instance_get_user_data(const struct instance *instance)
{
  pthread_mutex_lock(&user_data_lock);
  void *data = instance->user_data.data;
  pthread_mutex_unlock(&user_data_lock);
  return data;
}
