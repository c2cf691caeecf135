/* SPDX-License-Identifier: MIT */
/* dependencies.c: which live resources depend on which, of one stack or several. Called when a resource is built, and
 * when one gains a dependency while it is in use. */
#include "../graph/graph_build.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct instance *linked; /* all instances that have dependencies */
static uint64_t last_number;

/* ---- One instance; the lock is held ---- */

/* The dependencies of an instance, or those that it is about to get. */
static const struct instance_dependencies *dependencies_next(const struct instance *instance)
{
  return instance->next_dependencies ? instance->next_dependencies : dependencies_of(instance);
}

int dependencies_by_creation(const void *left, const void *right)
{
  uint64_t a = (*(struct instance *const *)left)->number, b = (*(struct instance *const *)right)->number;
  return a < b ? 1 : a > b ? -1 : 0;
}

/* Sorts the instances, drops duplicates and returns how many are left. */
static size_t dependencies_sort(struct instance **instances, size_t n)
{
  size_t n_unique = 0;
  qsort(instances, n, sizeof *instances, dependencies_by_creation);
  for (size_t i = 0; i < n; i++)
    if (!n_unique || instances[n_unique - 1] != instances[i]) instances[n_unique++] = instances[i];
  return n_unique;
}

bool dependencies_forward_blocks(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  return !plugin->ops->find || plugin->flags & HIPMM_PLUGIN_HANDS_ON;
}

bool dependencies_include(const struct instance *instance, const struct instance *below)
{
  CLOSURE_EACH_BELOW(one, instance)
    if (one == below) return true;
  return false;
}

/* Whether the instance can be asked for a block, or ends the search because nothing is below it. */
static bool dependencies_is_finder(const struct instance *instance)
{
  return instance->node->plugin->descriptor.ops->find || !dependencies_next(instance)->n_direct;
}

/* The instance itself and the closures of its dependencies. */
static void dependencies_fill_closure(struct instance_dependencies *dependencies, struct instance *instance)
{
  dependencies->closure[dependencies->n_closure++] = instance;
  for (size_t i = 0; i < dependencies->n_direct; i++) {
    const struct instance_dependencies *below = dependencies_next(dependencies->direct[i]);
    memcpy(dependencies->closure + dependencies->n_closure, below->closure,
           below->n_closure * sizeof *dependencies->closure);
    dependencies->n_closure += below->n_closure;
  }
  dependencies->n_closure = dependencies_sort(dependencies->closure, dependencies->n_closure);
  dependencies->closure[dependencies->n_closure] = NULL;
}

/* The dependencies that can be asked for a block, and the finders of those that forward blocks of others. */
static void dependencies_fill_finders(struct instance_dependencies *dependencies)
{
  for (size_t i = 0; i < dependencies->n_direct; i++) {
    struct instance *dependency = dependencies->direct[i];
    const struct instance_dependencies *below = dependencies_next(dependency);
    if (dependencies_is_finder(dependency)) dependencies->finders[dependencies->n_finders++] = dependency;
    if (!dependencies_forward_blocks(dependency)) continue;
    memcpy(dependencies->finders + dependencies->n_finders, below->finders,
           below->n_finders * sizeof *dependencies->finders);
    dependencies->n_finders += below->n_finders;
  }
  dependencies->n_finders = dependencies_sort(dependencies->finders, dependencies->n_finders);
}

static void dependencies_free(const struct instance_dependencies *dependencies)
{
  if (!dependencies) return;
  free(dependencies->direct);
  free(dependencies->closure);
  free(dependencies->finders);
  free((void *)(uintptr_t)dependencies);
}

/* The struct of the `n` dependencies, one of which may be in `added` alone. NULL without host memory. */
static struct instance_dependencies *dependencies_new(struct instance *instance, struct instance *const *direct,
                                                      size_t n, struct instance *added)
{
  struct instance_dependencies *dependencies = calloc(1, sizeof *dependencies);
  if (!dependencies) return NULL;
  size_t n_closure = 1, n_finders = n + 1;
  dependencies->direct = calloc(n + 2, sizeof *dependencies->direct);
  if (dependencies->direct && n) memcpy(dependencies->direct, direct, n * sizeof *direct);
  if (dependencies->direct && added) dependencies->direct[n++] = added;
  dependencies->n_direct = dependencies->direct ? n : 0;
  dependencies->depth = 1;
  for (size_t i = 0; i < dependencies->n_direct; i++) {
    const struct instance_dependencies *below = dependencies_next(dependencies->direct[i]);
    n_closure += below->n_closure;
    n_finders += below->n_finders;
    if (below->depth >= dependencies->depth) dependencies->depth = below->depth + 1;
  }
  dependencies->closure = calloc(n_closure + 1, sizeof *dependencies->closure);
  dependencies->finders = calloc(n_finders, sizeof *dependencies->finders);
  if (!dependencies->direct || !dependencies->closure || !dependencies->finders) {
    dependencies_free(dependencies);
    return NULL;
  }
  dependencies_fill_closure(dependencies, instance);
  dependencies_fill_finders(dependencies);
  return dependencies;
}

/* The graph was checked, but for what stands below a resource made in code, and for what is added later. */
static enum hipmm_status dependencies_check_undivided(const struct instance *instance,
                                                      const struct instance_dependencies *dependencies)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  if (!graph_uses_freed_blocks(plugin)) return HIPMM_OK;
  for (size_t i = 0; i < dependencies->n_closure; i++) {
    const struct hipmm_plugin *below = &dependencies->closure[i]->node->plugin->descriptor;
    if (below->flags & HIPMM_PLUGIN_UNDIVIDED)
      return error_set(HIPMM_E_CONFIG, "%s: " GRAPH_UNDIVIDED, instance->node->name, plugin->type, below->type);
  }
  return HIPMM_OK;
}

static enum hipmm_status dependencies_check(const struct instance *instance,
                                            const struct instance_dependencies *dependencies,
                                            enum hipmm_status too_deep)
{
  if (!dependencies) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (dependencies->depth <= GRAPH_MAX_DEPTH) return dependencies_check_undivided(instance, dependencies);
  return error_set(too_deep, "%s: depends on more than %d resources, one on the other; the most is %d deep",
                   instance->node->name, GRAPH_MAX_DEPTH - 1, GRAPH_MAX_DEPTH);
}

/* ---- Life ---- */

static void dependencies_enter(struct instance *instance, const struct instance_dependencies *dependencies)
{
  atomic_store_explicit(&instance->dependencies, dependencies, memory_order_release);
  instance->next_linked = linked;
  if (linked) linked->previous_linked = instance;
  linked = instance;
}

enum hipmm_status dependencies_open(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct external *external = &instance->stack->external;
  size_t n = 0;
  struct instance **direct = calloc(node->n_references + external->n + 1, sizeof(struct instance *));
  if (!direct) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < node->n_references; i++) direct[n++] = &instance->stack->instances[node->references[i]];
  for (size_t i = 0; i < external->n; i++) direct[n++] = instance_from(external->resources[i]);
  pthread_mutex_lock(&lock);
  instance->number = ++last_number;
  struct instance_dependencies *dependencies = dependencies_new(instance, direct, n, NULL);
  enum hipmm_status status = dependencies_check(instance, dependencies, HIPMM_E_ARGUMENT);
  if (!status) dependencies_enter(instance, dependencies);
  pthread_mutex_unlock(&lock);
  if (status) dependencies_free(dependencies);
  free(direct);
  return status;
}

void dependencies_close(struct instance *instance)
{
  const struct instance_dependencies *dependencies = dependencies_of(instance);
  if (!dependencies) return;
  pthread_mutex_lock(&lock);
  *(instance->previous_linked ? &instance->previous_linked->next_linked : &linked) = instance->next_linked;
  if (instance->next_linked) instance->next_linked->previous_linked = instance->previous_linked;
  pthread_mutex_unlock(&lock);
  while (dependencies) {
    const struct instance_dependencies *older = dependencies->older;
    dependencies_free(dependencies);
    dependencies = older;
  }
}

bool dependencies_find_accessor(const struct instance *below, char *name_out, size_t name_bytes)
{
  const struct instance *found = NULL;
  pthread_mutex_lock(&lock);
  for (const struct instance *one = linked; one && !found; one = one->next_linked)
    if (one->node->plugin->descriptor.flags & HIPMM_PLUGIN_ACCESSES_MEMORY && dependencies_include(one, below))
      found = one;
  if (found) snprintf(name_out, name_bytes, "%s", found->node->name);
  pthread_mutex_unlock(&lock);
  return found != NULL;
}

/* ---- Changes ---- */

/* Those that depend on the instance, and last itself, with the highest number first: NULL without host memory. */
static struct instance **dependencies_find_above(struct instance *instance, size_t *n_out)
{
  size_t most = 1, n = 0;
  for (const struct instance *one = linked; one; one = one->next_linked) most++;
  struct instance **above = calloc(most, sizeof(struct instance *));
  if (!above) return NULL;
  for (struct instance *one = linked; one; one = one->next_linked)
    if (one == instance || dependencies_include(one, instance)) above[n++] = one;
  qsort(above, n, sizeof(struct instance *), dependencies_by_creation);
  *n_out = n;
  return above;
}

/* Makes the dependencies that the instances get, each after what it depends on. `n_direct` of the last, `added`
 * besides. */
static enum hipmm_status dependencies_prepare(struct instance *const *above, size_t n, size_t n_direct,
                                              struct instance *added)
{
  enum hipmm_status status = HIPMM_OK;
  for (size_t i = n; i-- > 0 && !status;) {
    const struct instance_dependencies *now = dependencies_of(above[i]);
    bool is_above = i + 1 < n;
    above[i]->next_dependencies =
        dependencies_new(above[i], now->direct, is_above ? now->n_direct : n_direct, is_above ? NULL : added);
    status = dependencies_check(above[i], above[i]->next_dependencies, HIPMM_E_CONFIG);
  }
  return status;
}

/* Makes the new dependencies current, or drops them. */
static void dependencies_finish(struct instance *const *above, size_t n, bool is_good)
{
  for (size_t i = 0; i < n; i++) {
    struct instance_dependencies *dependencies = (struct instance_dependencies *)(uintptr_t)above[i]->next_dependencies;
    if (is_good) {
      dependencies->older = dependencies_of(above[i]);
      atomic_store_explicit(&above[i]->dependencies, dependencies, memory_order_release);
    } else {
      dependencies_free(dependencies);
    }
    above[i]->next_dependencies = NULL;
  }
}

/* The instance keeps the first `n_direct` of its dependencies, and gets `added`, if that is not NULL. */
static enum hipmm_status dependencies_change(struct instance *instance, size_t n_direct, struct instance *added)
{
  size_t n = 0;
  struct instance **above = dependencies_find_above(instance, &n);
  if (!above) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (added && added->number > instance->number)
    for (size_t i = n; i-- > 0;) above[i]->number = ++last_number;
  enum hipmm_status status = dependencies_prepare(above, n, n_direct, added);
  dependencies_finish(above, n, !status);
  free(above);
  return status;
}

static bool dependencies_has(const struct instance *instance, const struct instance *dependency)
{
  const struct instance_dependencies *dependencies = dependencies_of(instance);
  for (size_t i = 0; i < dependencies->n_direct; i++)
    if (dependencies->direct[i] == dependency) return true;
  return false;
}

enum hipmm_status dependencies_add(struct instance *instance, struct instance *dependency)
{
  enum hipmm_status status = HIPMM_OK;
  pthread_mutex_lock(&lock);
  if (dependency == instance || dependencies_include(dependency, instance))
    status = error_set(HIPMM_E_CONFIG, "%s depends on %s, so that %s cannot depend on it", dependency->node->name,
                       instance->node->name, instance->node->name);
  else if (!dependencies_has(instance, dependency))
    status = dependencies_change(instance, dependencies_of(instance)->n_direct, dependency);
  pthread_mutex_unlock(&lock);
  return status;
}

void dependencies_truncate(struct instance *instance, size_t n)
{
  if (dependencies_of(instance)->n_direct == n) return;
  pthread_mutex_lock(&lock);
  dependencies_change(instance, n, NULL);
  pthread_mutex_unlock(&lock);
}
