/* SPDX-License-Identifier: MIT */
/* held_watch.c: reports to resources how much memory the sources below them take from the runtime and give back
 * (services->watch_held). Called at each change; without a watch that costs one load. */
#include "../base/error.h"
#include "instance.h"
#include "stack.h"

#include <stdlib.h>

struct held_watch {
  struct held_watch *next;
  const struct instance *watcher;
  void (*changed)(void *closure, const char *source, int64_t bytes, int64_t held_bytes);
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

enum hipmm_status held_watch_add(const struct hipmm_services *services,
                                 void (*changed)(void *closure, const char *source, int64_t bytes, int64_t held_bytes),
                                 void *closure)
{
  struct held_watch *watch = malloc(sizeof *watch);
  if (!watch) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  *watch = (struct held_watch){.watcher = instance_of_services(services), .changed = changed, .closure = closure};
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
