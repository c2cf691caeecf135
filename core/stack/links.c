/* SPDX-License-Identifier: MIT */
/* links.c: which live resources stand on which, of one stack or several. Called when a resource is built, and when one gains
 * a dependency while it is in use. */
#include "../graph/graph_build.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct instance *linked; /* all instances that have links */
static uint64_t last_number;

/* ---- One instance; the lock is held ---- */

/* The links of an instance, or those that it is about to get. */
static const struct instance_links *links_next(const struct instance *instance)
{
  return instance->next_links ? instance->next_links : links_of(instance);
}

int links_by_age(const void *left, const void *right)
{
  uint64_t a = (*(struct instance *const *)left)->number, b = (*(struct instance *const *)right)->number;
  return a < b ? 1 : a > b ? -1 : 0;
}

/* Sorts the instances, drops duplicates and returns how many are left. */
static size_t links_sort(struct instance **instances, size_t n)
{
  size_t n_unique = 0;
  qsort(instances, n, sizeof *instances, links_by_age);
  for (size_t i = 0; i < n; i++)
    if (!n_unique || instances[n_unique - 1] != instances[i]) instances[n_unique++] = instances[i];
  return n_unique;
}

bool links_forward_blocks(const struct instance *instance)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  return !plugin->ops->find || plugin->flags & HIPMM_PLUGIN_HANDS_ON;
}

bool links_stand_on(const struct instance *instance, const struct instance *below)
{
  CLOSURE_EACH_BELOW(one, instance)
    if (one == below) return true;
  return false;
}

/* Whether the instance can be asked for a block, or ends the search because nothing is below it. */
static bool links_is_finder(const struct instance *instance)
{
  return instance->node->plugin->descriptor.ops->find || !links_next(instance)->n_dependencies;
}

/* The instance itself and the closures of its dependencies. */
static void links_fill_closure(struct instance_links *links, struct instance *instance)
{
  links->closure[links->n_closure++] = instance;
  for (size_t i = 0; i < links->n_dependencies; i++) {
    const struct instance_links *below = links_next(links->dependencies[i]);
    memcpy(links->closure + links->n_closure, below->closure, below->n_closure * sizeof *links->closure);
    links->n_closure += below->n_closure;
  }
  links->n_closure = links_sort(links->closure, links->n_closure);
  links->closure[links->n_closure] = NULL;
}

/* The dependencies that can be asked for a block, and the finders of those that forward blocks of others. */
static void links_fill_finders(struct instance_links *links)
{
  for (size_t i = 0; i < links->n_dependencies; i++) {
    struct instance *dependency = links->dependencies[i];
    const struct instance_links *below = links_next(dependency);
    if (links_is_finder(dependency)) links->finders[links->n_finders++] = dependency;
    if (!links_forward_blocks(dependency)) continue;
    memcpy(links->finders + links->n_finders, below->finders, below->n_finders * sizeof *links->finders);
    links->n_finders += below->n_finders;
  }
  links->n_finders = links_sort(links->finders, links->n_finders);
}

static void links_free(const struct instance_links *links)
{
  if (!links) return;
  free(links->dependencies);
  free(links->closure);
  free(links->finders);
  free((void *)(uintptr_t)links);
}

/* Links to the `n` dependencies, one of which may be in `added` alone. NULL without host memory. */
static struct instance_links *links_new(struct instance *instance, struct instance *const *dependencies, size_t n,
                                        struct instance *added)
{
  struct instance_links *links = calloc(1, sizeof *links);
  if (!links) return NULL;
  size_t n_closure = 1, n_finders = n + 1;
  links->dependencies = calloc(n + 2, sizeof *links->dependencies);
  if (links->dependencies && n) memcpy(links->dependencies, dependencies, n * sizeof *dependencies);
  if (links->dependencies && added) links->dependencies[n++] = added;
  links->n_dependencies = links->dependencies ? n : 0;
  links->depth = 1;
  for (size_t i = 0; i < links->n_dependencies; i++) {
    const struct instance_links *below = links_next(links->dependencies[i]);
    n_closure += below->n_closure;
    n_finders += below->n_finders;
    if (below->depth >= links->depth) links->depth = below->depth + 1;
  }
  links->closure = calloc(n_closure + 1, sizeof *links->closure);
  links->finders = calloc(n_finders, sizeof *links->finders);
  if (!links->dependencies || !links->closure || !links->finders) {
    links_free(links);
    return NULL;
  }
  links_fill_closure(links, instance);
  links_fill_finders(links);
  return links;
}

static enum hipmm_status links_check(const struct instance *instance, const struct instance_links *links,
                                     enum hipmm_status too_deep)
{
  if (!links) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (links->depth <= GRAPH_MAX_DEPTH) return HIPMM_OK;
  return error_set(too_deep, "%s: stands on more than %d resources, one on the other; the most is %d deep",
                   instance->node->name, GRAPH_MAX_DEPTH - 1, GRAPH_MAX_DEPTH);
}

/* ---- Life ---- */

static void links_enter(struct instance *instance, const struct instance_links *links)
{
  atomic_store_explicit(&instance->links, links, memory_order_release);
  instance->next_linked = linked;
  if (linked) linked->previous_linked = instance;
  linked = instance;
}

enum hipmm_status links_open(struct instance *instance)
{
  const struct graph_node *node = instance->node;
  const struct external *external = &instance->stack->external;
  size_t n = 0;
  struct instance **dependencies = calloc(node->n_references + external->n + 1, sizeof(struct instance *));
  if (!dependencies) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (size_t i = 0; i < node->n_references; i++) dependencies[n++] = &instance->stack->instances[node->references[i]];
  for (size_t i = 0; i < external->n; i++) dependencies[n++] = instance_from(external->resources[i]);
  pthread_mutex_lock(&lock);
  instance->number = ++last_number;
  struct instance_links *links = links_new(instance, dependencies, n, NULL);
  enum hipmm_status status = links_check(instance, links, HIPMM_E_ARGUMENT);
  if (!status) links_enter(instance, links);
  pthread_mutex_unlock(&lock);
  if (status) links_free(links);
  free(dependencies);
  return status;
}

void links_close(struct instance *instance)
{
  const struct instance_links *links = links_of(instance);
  if (!links) return;
  pthread_mutex_lock(&lock);
  *(instance->previous_linked ? &instance->previous_linked->next_linked : &linked) = instance->next_linked;
  if (instance->next_linked) instance->next_linked->previous_linked = instance->previous_linked;
  pthread_mutex_unlock(&lock);
  while (links) {
    const struct instance_links *older = links->older;
    links_free(links);
    links = older;
  }
}

bool links_find_accessor(const struct instance *below, char *name_out, size_t name_bytes)
{
  const struct instance *found = NULL;
  pthread_mutex_lock(&lock);
  for (const struct instance *one = linked; one && !found; one = one->next_linked)
    if (one->node->plugin->descriptor.flags & HIPMM_PLUGIN_ACCESSES_MEMORY && links_stand_on(one, below)) found = one;
  if (found) snprintf(name_out, name_bytes, "%s", found->node->name);
  pthread_mutex_unlock(&lock);
  return found != NULL;
}

/* ---- Changes ---- */

/* Those that stand on the instance, itself included, with the lowest number first: NULL without host memory. */
static struct instance **links_find_above(struct instance *instance, size_t *n_out)
{
  size_t most = 1, n = 0;
  for (const struct instance *one = linked; one; one = one->next_linked) most++;
  struct instance **above = calloc(most, sizeof(struct instance *));
  if (!above) return NULL;
  for (struct instance *one = linked; one; one = one->next_linked)
    if (one == instance || links_stand_on(one, instance)) above[n++] = one;
  qsort(above, n, sizeof(struct instance *), links_by_age);
  for (size_t i = 0; i < n / 2; i++) {
    struct instance *swapped = above[i];
    above[i] = above[n - 1 - i];
    above[n - 1 - i] = swapped;
  }
  *n_out = n;
  return above;
}

/* Makes the links that the instances get, each after what it stands on. `n_dependencies` of the first, `added` besides. */
static enum hipmm_status links_prepare(struct instance *const *above, size_t n, size_t n_dependencies,
                                       struct instance *added)
{
  enum hipmm_status status = HIPMM_OK;
  for (size_t i = 0; i < n && !status; i++) {
    const struct instance_links *now = links_of(above[i]);
    above[i]->next_links =
        links_new(above[i], now->dependencies, i ? now->n_dependencies : n_dependencies, i ? NULL : added);
    status = links_check(above[i], above[i]->next_links, HIPMM_E_CONFIG);
  }
  return status;
}

/* Puts the new links in force, or drops them. */
static void links_finish(struct instance *const *above, size_t n, bool is_good)
{
  for (size_t i = 0; i < n; i++) {
    struct instance_links *links = (struct instance_links *)(uintptr_t)above[i]->next_links;
    if (is_good) {
      links->older = links_of(above[i]);
      atomic_store_explicit(&above[i]->links, links, memory_order_release);
    } else {
      links_free(links);
    }
    above[i]->next_links = NULL;
  }
}

/* The instance keeps the first `n_dependencies` of its dependencies, and gets `added`, if that is not NULL. */
static enum hipmm_status links_change(struct instance *instance, size_t n_dependencies, struct instance *added)
{
  size_t n = 0;
  struct instance **above = links_find_above(instance, &n);
  if (!above) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (added && added->number > instance->number)
    for (size_t i = 0; i < n; i++) above[i]->number = ++last_number;
  enum hipmm_status status = links_prepare(above, n, n_dependencies, added);
  links_finish(above, n, !status);
  free(above);
  return status;
}

static bool links_has(const struct instance *instance, const struct instance *dependency)
{
  const struct instance_links *links = links_of(instance);
  for (size_t i = 0; i < links->n_dependencies; i++)
    if (links->dependencies[i] == dependency) return true;
  return false;
}

enum hipmm_status links_add(struct instance *instance, struct instance *dependency)
{
  enum hipmm_status status = HIPMM_OK;
  pthread_mutex_lock(&lock);
  if (dependency == instance || links_stand_on(dependency, instance))
    status = error_set(HIPMM_E_CONFIG, "%s stands on %s, so that %s cannot stand on it", dependency->node->name,
                       instance->node->name, instance->node->name);
  else if (!links_has(instance, dependency))
    status = links_change(instance, links_of(instance)->n_dependencies, dependency);
  pthread_mutex_unlock(&lock);
  return status;
}

void links_truncate(struct instance *instance, size_t n)
{
  if (links_of(instance)->n_dependencies == n) return;
  pthread_mutex_lock(&lock);
  links_change(instance, n, NULL);
  pthread_mutex_unlock(&lock);
}
