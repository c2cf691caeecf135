/* SPDX-License-Identifier: MIT */
/* handle.c: memory for the objects of stream pools and containers, all of one size. Called when such an object is created
 * and destroyed. An object that was freed last is used again last, so that a stale handle is recognised for long. Never
 * gives memory back. The locks are held for a few instructions, and around no call.
 *
 * If each object counted as a reference to its stack, all threads would write to one place. A shard counts the objects of
 * each stack under its own lock and has one reference for all of them. For a stack of the table of devices the shard
 * retains that reference for the next object when the last object is gone. */
#include "handle.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/os_memory.h"
#include "device_table.h"

#include <pthread.h>
#include <string.h>

enum { SHARDS = 16, CHUNK_BYTES = 16 << 10, SHARD_STACKS = 8, NO_STACK = SHARD_STACKS };

_Static_assert(CHUNK_BYTES % HANDLE_OBJECT_BYTES == 0, "objects lie side by side, each in cache lines of its own");

/* A stack that objects of a shard belong to. */
struct shard_stack {
  struct stack *stack; /* with a reference; NULL: unused */
  size_t objects;
};

struct shard {
  _Alignas(64) pthread_mutex_t lock;
  struct handle *first, *last;
  struct shard_stack stacks[SHARD_STACKS];
  size_t objects; /* that were made and not freed */
};

static struct shard shards[SHARDS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static atomic_uint threads;

static void handle_init_shards(void)
{
  for (size_t i = 0; i < SHARDS; i++) pthread_mutex_init(&shards[i].lock, NULL);
}

static unsigned handle_shard_of_thread(void)
{
  static _Thread_local unsigned number;
  pthread_once(&once, handle_init_shards);
  if (!number) number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHARDS + 1;
  return number - 1;
}

/* The shard's lock is held. */
static void handle_push(struct handle *handle)
{
  struct shard *shard = &shards[handle->shard];
  handle->next = NULL;
  *(shard->last ? &shard->last->next : &shard->first) = handle;
  shard->last = handle;
}

/* NULL: no object is free. */
static struct handle *handle_pop(struct shard *shard)
{
  struct handle *handle = shard->first;
  if (handle) shard->first = handle->next;
  if (!shard->first) shard->last = NULL;
  return handle;
}

/* ---- References to stacks; the lock of the shard is held ---- */

/* The entry of a stack, or else an unused entry; NO_STACK if there is neither. */
static unsigned handle_find_stack(const struct shard *shard, const struct stack *stack)
{
  unsigned unused = NO_STACK;
  for (unsigned i = 0; i < SHARD_STACKS; i++) {
    if (shard->stacks[i].stack == stack) return i;
    if (unused == NO_STACK && !shard->stacks[i].stack) unused = i; /* the first: later searches end there */
  }
  return unused;
}

static void handle_retain_stack(struct shard *shard, struct handle *handle, struct stack *stack)
{
  handle->stack = stack;
  handle->stack_index = NO_STACK;
  if (!stack) return;
  handle->stack_index = (unsigned short)handle_find_stack(shard, stack);
  struct shard_stack *found = handle->stack_index == NO_STACK ? NULL : &shard->stacks[handle->stack_index];
  if (!found || !found->stack) stack_retain(stack);
  if (!found) return;
  found->stack = stack;
  found->objects++;
}

/* The stack to release once the lock is free: the reference may be the last. NULL: none. */
static struct stack *handle_release_stack(struct shard *shard, const struct handle *handle)
{
  struct stack *stack = handle->stack;
  if (!stack || handle->stack_index == NO_STACK) return stack;
  struct shard_stack *found = &shard->stacks[handle->stack_index];
  if (--found->objects || device_table_stack_if_built(stack->device) == stack) return NULL;
  found->stack = NULL;
  return stack;
}

static struct stack *handle_take_idle_stack(struct shard *shard)
{
  for (size_t i = 0; i < SHARD_STACKS; i++) {
    struct stack *stack = shard->stacks[i].stack;
    if (!stack || shard->stacks[i].objects) continue;
    shard->stacks[i].stack = NULL;
    return stack;
  }
  return NULL;
}

void handle_release_idle(void)
{
  pthread_once(&once, handle_init_shards);
  for (size_t i = 0; i < SHARDS; i++) {
    struct stack *stack;
    do {
      pthread_mutex_lock(&shards[i].lock);
      stack = handle_take_idle_stack(&shards[i]);
      pthread_mutex_unlock(&shards[i].lock);
      if (stack) stack_release(stack);
    } while (stack);
  }
}

/* ---- Life ---- */

void *handle_try_new(struct stack *stack)
{
  struct shard *shard = &shards[handle_shard_of_thread()];
  pthread_mutex_lock(&shard->lock);
  struct handle *handle = handle_pop(shard);
  if (handle) {
    handle_retain_stack(shard, handle, stack);
    shard->objects++;
  }
  pthread_mutex_unlock(&shard->lock);
  if (handle) memset(handle + 1, 0, HANDLE_OBJECT_BYTES - sizeof *handle);
  return handle;
}

/* The memory may come from a function of the program, so the lock is not held meanwhile. */
static bool handle_add_chunk(void)
{
  unsigned number = handle_shard_of_thread();
  char *chunk = os_memory_allocate(CHUNK_BYTES);
  if (!chunk) return false;
  pthread_mutex_lock(&shards[number].lock);
  for (size_t at = 0; at < CHUNK_BYTES; at += HANDLE_OBJECT_BYTES) {
    struct handle *handle = (struct handle *)(chunk + at);
    handle->shard = (unsigned short)number;
    handle_push(handle);
  }
  pthread_mutex_unlock(&shards[number].lock);
  return true;
}

/* Other threads of the shard may take all objects of the chunk first. */
void *handle_new(struct stack *stack)
{
  void *object = handle_try_new(stack);
  while (!object && handle_add_chunk()) object = handle_try_new(stack);
  return object;
}

void handle_open(void *object, enum handle_kind kind)
{
  struct handle *handle = object;
  atomic_store_explicit(&handle->kind, (unsigned)kind, memory_order_release);
}

bool handle_close(void *object, enum handle_kind kind)
{
  struct handle *handle = object;
  unsigned expected = (unsigned)kind;
  return handle && atomic_compare_exchange_strong(&handle->kind, &expected, 0);
}

void handle_free(void *object)
{
  struct handle *handle = object;
  struct shard *shard = &shards[handle->shard];
  pthread_mutex_lock(&shard->lock);
  struct stack *stack = handle_release_stack(shard, handle);
  handle_push(handle);
  shard->objects--;
  pthread_mutex_unlock(&shard->lock);
  if (stack) stack_release(stack);
}

bool handle_try_free(void *object)
{
  struct handle *handle = object;
  struct shard *shard = &shards[handle->shard];
  pthread_mutex_lock(&shard->lock);
  struct stack *stack = handle_release_stack(shard, handle);
  bool is_free = !stack || stack_try_release(stack);
  if (is_free) {
    handle_push(handle);
    shard->objects--;
  } else if (handle->stack_index != NO_STACK) {
    shard->stacks[handle->stack_index] = (struct shard_stack){stack, 1};
  }
  pthread_mutex_unlock(&shard->lock);
  return is_free;
}

/* What an object is called, and an argument that is one. */
static const struct {
  const char *object, *argument;
} names[HANDLE_KINDS] = {[HANDLE_STREAM_POOL] = {"stream pool", "pool"},
                         [HANDLE_BUFFER] = {"buffer", "buffer"},
                         [HANDLE_HOST_BUFFER] = {"host buffer", "buffer"},
                         [HANDLE_STREAM_EVENT] = {"stream event", "event"},
                         [HANDLE_MOVABLE] = {"movable buffer", "movable"}};

static enum hipmm_status handle_refuse_argument(enum handle_kind kind, const char *name)
{
  return error_set(HIPMM_E_POINTER, "%s is not a %s, or already destroyed", name, names[kind].object);
}

enum hipmm_status handle_refuse(enum handle_kind kind)
{
  return handle_refuse_argument(kind, names[kind].argument);
}

enum hipmm_status handle_check_argument(const void *object, enum handle_kind kind, const char *name)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!object) return error_set(HIPMM_E_ARGUMENT, "%s is NULL", name);
  return handle_is(object, kind) ? HIPMM_OK : handle_refuse_argument(kind, name);
}

enum hipmm_status handle_check(const void *object, enum handle_kind kind)
{
  return handle_check_argument(object, kind, names[kind].argument);
}

size_t handle_count(void)
{
  size_t count = 0;
  pthread_once(&once, handle_init_shards);
  for (size_t i = 0; i < SHARDS; i++) {
    pthread_mutex_lock(&shards[i].lock);
    count += shards[i].objects;
    pthread_mutex_unlock(&shards[i].lock);
  }
  return count;
}
