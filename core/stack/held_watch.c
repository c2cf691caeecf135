/* SPDX-License-Identifier: MIT */
/* held_watch.c: reports to resources how much memory the sources below them take from the runtime and give back
 * (services->watch_held), and where it is. Called at each change; without a watch that costs one load. */
#include "../base/error.h"
#include "instance.h"
#include "stack.h"

#include <stdlib.h>

struct held_watch {
  struct held_watch *next;
  const struct instance *watcher;
  void (*changed)(void *closure, const char *source, int64_t bytes, int64_t held_bytes);
  void (*placed)(void *closure, const char *holder, const void *ptr, int64_t bytes);
  void *closure;
};

static struct held_watch *_Atomic watches;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* held for reading while a watch is called */

void held_watch_notify(const struct instance *source, int64_t bytes, int64_t held_bytes)
{
  if (!bytes || !atomic_load_explicit(&watches, memory_order_acquire)) return;
  pthread_rwlock_rdlock(&lock);
  for (const struct held_watch *watch = atomic_load(&watches); watch; watch = watch->next)
    if (dependencies_include(watch->watcher, source))
      watch->changed(watch->closure, source->node->name, bytes, held_bytes);
  pthread_rwlock_unlock(&lock);
}

void held_watch_place(const struct hipmm_services *services, const void *ptr, int64_t bytes)
{
  if (!atomic_load_explicit(&watches, memory_order_acquire)) return;
  pthread_rwlock_rdlock(&lock);
  for (const struct held_watch *watch = atomic_load(&watches); watch; watch = watch->next)
    if (watch->placed && dependencies_include(watch->watcher, instance_of_services(services)))
      watch->placed(watch->closure, services->name, ptr, bytes);
  pthread_rwlock_unlock(&lock);
}

/* ---- A visit of what is there ---- */

struct held_visit {
  void (*visitor)(void *closure, const char *holder, const void *ptr, int64_t bytes);
  void *closure;
  const char *holder;
};

static void held_visit_block(void *closure, const struct hipmm_block *block)
{
  const struct held_visit *visit = closure;
  visit->visitor(visit->closure, visit->holder, block->ptr, (int64_t)block->bytes);
}

static int held_visit_chunk(void *closure, const struct hipmm_chunk *chunk)
{
  const struct held_visit *visit = closure;
  if (chunk->handle) visit->visitor(visit->closure, visit->holder, chunk->ptr, (int64_t)chunk->bytes);
  return 0;
}

enum hipmm_status held_watch_visit(const struct hipmm_services *services,
                                   void (*visitor)(void *closure, const char *holder, const void *ptr, int64_t bytes),
                                   void *closure)
{
  struct held_visit visit = {visitor, closure, NULL};
  const struct error_record before = error_mark();
  CLOSURE_EACH_BELOW(below, instance_of_services(services)) {
    const struct hipmm_plugin *plugin = &below->node->plugin->descriptor;
    visit.holder = below->services.name;
    if (!(plugin->flags & HIPMM_PLUGIN_RECOUNTS)) block_map_visit(&below->block_map, held_visit_block, &visit);
    if (!plugin->ops->visit_chunks) continue;
    const struct hipmm_resource *resource = &below->resource;
    enum hipmm_status status = resource->ops->visit_chunks(resource->self, NULL, held_visit_chunk, &visit);
    if (!status) continue;
    error_return_to_mark(&before);
    return status;
  }
  return HIPMM_OK;
}

/* ---- Watches ---- */

enum hipmm_status held_watch_add(const struct hipmm_services *services,
                                 void (*changed)(void *closure, const char *source, int64_t bytes, int64_t held_bytes),
                                 void (*placed)(void *closure, const char *holder, const void *ptr, int64_t bytes),
                                 void *closure)
{
  struct held_watch *watch = malloc(sizeof *watch);
  if (!watch) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  *watch = (struct held_watch){NULL, instance_of_services(services), changed, placed, closure};
  pthread_rwlock_wrlock(&lock);
  watch->next = atomic_load(&watches);
  atomic_store(&watches, watch);
  changed(closure, "", 0,
          atomic_load(&watch->watcher->stack->held_bytes)); /* what changes from now on is told after it */
  pthread_rwlock_unlock(&lock);
  return HIPMM_OK;
}

void held_watch_remove(const struct hipmm_services *services)
{
  const struct instance *watcher = instance_of_services(services);
  pthread_rwlock_wrlock(&lock);
  struct held_watch *before = NULL, *watch = atomic_load(&watches);
  for (; watch && watch->watcher != watcher; watch = watch->next) before = watch;
  if (watch && before) before->next = watch->next;
  if (watch && !before) atomic_store(&watches, watch->next);
  pthread_rwlock_unlock(&lock);
  free(watch);
}
