/* SPDX-License-Identifier: MIT */
/* registry.c: the objects that the program registered by name for its graphs. Called by programs to register, and by
 * option when a stack is built. Objects are reference-counted: a stack keeps an object as long as its options, even
 * after the name is registered again. Never dereferences what a registered struct points to. */
#include "registry.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every struct that can be registered begins with its size, as their union does. */
union registered {
  size_t struct_size;
  struct hipmm_allocator allocator;
  struct hipmm_failure_handler failure;
  struct hipmm_region region;
  struct hipmm_mempool mempool;
  struct hipmm_hooks hooks;
};

struct object_kind {
  const char *name, *function, *type;
  size_t bytes;
  struct {
    const char *name;
    size_t offset;
  } pointers[2]; /* the members that must not be NULL */
};

/* A registered object. Plugins see `registered`. */
struct object {
  atomic_uint references;
  const struct object_kind *kind;
  struct object *next;
  union registered registered;
  struct hipmm_hooks hooks; /* of the program; `registered` has registry_call_hooks() */
  char name[];
};

static struct object *objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Kinds ---- */

#define KIND(name, function, type, ...)                   \
  {                                                       \
    name, function, "struct " #type, sizeof(struct type), \
    {                                                     \
      __VA_ARGS__                                         \
    }                                                     \
  }
#define POINTER(type, member)              \
  {                                        \
#member, offsetof(struct type, member) \
  }
static const struct object_kind kinds[] = {
    KIND("allocator", "hipmm_allocator_register", hipmm_allocator, POINTER(hipmm_allocator, allocate),
         POINTER(hipmm_allocator, deallocate)),
    KIND("failure", "hipmm_failure_handler_register", hipmm_failure_handler, POINTER(hipmm_failure_handler, callback)),
    KIND("region", "hipmm_region_register", hipmm_region, POINTER(hipmm_region, ptr)),
    KIND("mempool", "hipmm_mempool_register", hipmm_mempool, POINTER(hipmm_mempool, handle)),
    KIND("hooks", "hipmm_hooks_register", hipmm_hooks, POINTER(hipmm_hooks, callback)),
};
enum { ALLOCATOR, FAILURE, REGION, MEMPOOL, HOOKS, N_KINDS };

_Static_assert(sizeof kinds / sizeof *kinds == N_KINDS, "a row for each kind");

static const struct object_kind *registry_find_kind(const char *name)
{
  for (size_t i = 0; name && i < N_KINDS; i++)
    if (!strcmp(kinds[i].name, name)) return &kinds[i];
  return NULL;
}

bool registry_kind_exists(const char *kind)
{
  return registry_find_kind(kind) != NULL;
}

const char *registry_function(const char *kind)
{
  const struct object_kind *found = registry_find_kind(kind);
  return found ? found->function : NULL;
}

/* ---- The list ---- */

static void registry_begin(void)
{
  pthread_mutex_lock(&lock);
}

static void registry_end(void)
{
  pthread_mutex_unlock(&lock);
}

/* Before the first initialisation a fork's child may use hipmm: it must not inherit a lock that another thread
 * holds. At load, so that a runtime, which is opened later, takes its locks before this one at a fork. */
__attribute__((constructor)) static void registry_watch_forks(void)
{
  pthread_atfork(registry_begin, registry_end, registry_end);
}

/* The link of the list to the object, or the last link, which is NULL. */
static struct object **registry_find(const struct object_kind *kind, const char *name)
{
  struct object **link = &objects;
  while (*link && ((*link)->kind != kind || strcmp((*link)->name, name))) link = &(*link)->next;
  return link;
}

static void registry_release_object(struct object *object)
{
  if (object && atomic_fetch_sub(&object->references, 1) == 1) free(object);
}

/* Replaces the object of this name by `object` (NULL: removes it). Returns the old object, with its reference. */
static struct object *registry_exchange(const struct object_kind *kind, const char *name, struct object *object)
{
  registry_begin();
  struct object **link = registry_find(kind, name), *old = *link;
  if (old) *link = old->next;
  if (object) {
    object->next = objects;
    objects = object;
  }
  registry_end();
  return old;
}

const void *registry_acquire(const char *kind, const char *name)
{
  const struct object_kind *found = registry_find_kind(kind);
  registry_begin();
  struct object *object = found ? *registry_find(found, name) : NULL;
  if (object) atomic_fetch_add(&object->references, 1);
  registry_end();
  return object ? &object->registered : NULL;
}

void registry_release(const void *registered)
{
  if (registered)
    registry_release_object((struct object *)((char *)(uintptr_t)registered - offsetof(struct object, registered)));
}

const char *registry_nearest(const char *kind, const char *name, char *buffer, size_t buffer_bytes)
{
  const struct object_kind *found = registry_find_kind(kind);
  struct text_near near = text_near(name);
  registry_begin();
  for (const struct object *object = objects; object; object = object->next)
    if (object->kind == found && object->name[0] != REGISTRY_PRIVATE) text_near_try(&near, object->name);
  if (near.name) snprintf(buffer, buffer_bytes, "%s", near.name);
  registry_end();
  return near.name ? buffer : NULL;
}

/* ---- Registering ---- */

static enum hipmm_status registry_check_name(const struct object_kind *kind, const char *name)
{
  char shown[TEXT_QUOTE_BYTES];
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!name) return error_set(HIPMM_E_ARGUMENT, "%s: name is NULL", kind->function);
  if (text_is_name(name)) return HIPMM_OK;
  return error_set(HIPMM_E_ARGUMENT, "%s: %s is not a name; " TEXT_NAME_RULE, kind->function,
                   text_quote(name, shown, sizeof shown), TEXT_LONGEST_NAME);
}

static enum hipmm_status registry_check_struct(const struct object_kind *kind, const union registered *registered)
{
  if (registered->struct_size < kind->bytes)
    return error_set(HIPMM_E_ARGUMENT, "%s: struct_size is %zu; set it to sizeof(%s), %zu", kind->function,
                     registered->struct_size, kind->type, kind->bytes);
  for (size_t i = 0; i < sizeof kind->pointers / sizeof *kind->pointers && kind->pointers[i].name; i++) {
    static void *const null;
    if (!memcmp((const char *)registered + kind->pointers[i].offset, &null, sizeof null))
      return error_set(HIPMM_E_ARGUMENT, "%s: %s is NULL", kind->function, kind->pointers[i].name);
  }
  const struct hipmm_region *region = kind == &kinds[REGION] ? &registered->region : NULL;
  if (region && !region->bytes) return error_set(HIPMM_E_ARGUMENT, "%s: bytes is 0", kind->function);
  if (!region || (uintptr_t)region->ptr <= UINTPTR_MAX - region->bytes) return HIPMM_OK;
  return error_set(HIPMM_E_ARGUMENT, "%s: ptr and bytes go beyond the end of all addresses", kind->function);
}

static enum hipmm_status registry_remove(const struct object_kind *kind, const char *name)
{
  char nearest[TEXT_LONGEST_NAME + 1], hint[TEXT_HINT_BYTES];
  struct object *old = registry_exchange(kind, name, NULL);
  if (!old) {
    const char *near = registry_nearest(kind->name, name, nearest, sizeof nearest);
    return error_set(HIPMM_E_ARGUMENT, "%s: no %s is registered as \"%s\"%s", kind->function, kind->name, name,
                     text_hint(near, hint, sizeof hint));
  }
  registry_release_object(old);
  return HIPMM_OK;
}

/* The function may run under locks of plugins, so its calls of hipmm are refused. The thread's error stays that of the call
 * that failed. */
static void registry_call_hooks(void *object, const struct hipmm_event *event)
{
  const struct hipmm_hooks *hooks = &((const struct object *)object)->hooks;
  bool has_failed = event->kind == HIPMM_EVENT_OUT_OF_MEMORY || event->kind == HIPMM_EVENT_FREE_REFUSED;
  struct error_record before;
  if (has_failed) before = error_mark();
  const char *outer = lifecycle_forbid_reentry("a function of hooks");
  hooks->callback(hooks->arg, event);
  lifecycle_allow_reentry(outer);
  if (has_failed) error_return_to_mark(&before);
}

static void registry_wrap_hooks(struct object *object)
{
  object->hooks = object->registered.hooks;
  object->registered.hooks.callback = registry_call_hooks;
  object->registered.hooks.arg = object;
}

/* `registered` is one of the structs of the union; only the kind's bytes may be read. */
static enum hipmm_status registry_enter(const struct object_kind *kind, const char *name, const void *registered)
{
  enum hipmm_status status = registry_check_struct(kind, registered);
  if (status) return status;
  struct object *object = calloc(1, sizeof *object + strlen(name) + 1);
  if (!object) return error_set(HIPMM_E_OUT_OF_MEMORY, "%s: out of host memory", kind->function);
  atomic_init(&object->references, 1);
  object->kind = kind;
  memcpy(&object->registered, registered, kind->bytes);
  if (kind == &kinds[HOOKS]) registry_wrap_hooks(object);
  object->registered.struct_size = kind->bytes; /* a larger struct of a later program is copied in part */
  strcpy(object->name, name);
  registry_release_object(registry_exchange(kind, name, object));
  return HIPMM_OK;
}

static enum hipmm_status registry_add(const struct object_kind *kind, const char *name, const void *registered)
{
  enum hipmm_status status = registry_check_name(kind, name);
  if (status) return status;
  return registered ? registry_enter(kind, name, registered) : registry_remove(kind, name);
}

enum hipmm_status registry_add_private(const char *kind, const void *registered, char name_out[REGISTRY_PRIVATE_BYTES])
{
  static atomic_ulong numbers;
  const struct object_kind *found = registry_find_kind(kind);
  if (!found) return error_set(HIPMM_E_ARGUMENT, "programs cannot pass objects of the kind %s", kind);
  snprintf(name_out, REGISTRY_PRIVATE_BYTES, "%c%lu", REGISTRY_PRIVATE, atomic_fetch_add(&numbers, 1) + 1);
  return registry_enter(found, name_out, registered);
}

void registry_remove_private(const char *kind, const char *name)
{
  const struct object_kind *found = registry_find_kind(kind);
  if (found) registry_release_object(registry_exchange(found, name, NULL));
}

enum hipmm_status hipmm_allocator_register(const char *name, const struct hipmm_allocator *allocator)
{
  return registry_add(&kinds[ALLOCATOR], name, allocator);
}

enum hipmm_status hipmm_failure_handler_register(const char *name, const struct hipmm_failure_handler *failure)
{
  return registry_add(&kinds[FAILURE], name, failure);
}

enum hipmm_status hipmm_region_register(const char *name, const struct hipmm_region *region)
{
  return registry_add(&kinds[REGION], name, region);
}

enum hipmm_status hipmm_mempool_register(const char *name, const struct hipmm_mempool *mempool)
{
  return registry_add(&kinds[MEMPOOL], name, mempool);
}

enum hipmm_status hipmm_hooks_register(const char *name, const struct hipmm_hooks *hooks)
{
  return registry_add(&kinds[HOOKS], name, hooks);
}
