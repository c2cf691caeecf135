/* SPDX-License-Identifier: MIT */
/* handle.c: shelves of objects of one size, and what they hold. Called when pools and containers are made and
 * destroyed. What was freed last is used again last, so that a stale handle is recognised for long. Never gives memory
 * back.
 *
 * Counting a stack's references at each object would have all threads write to one place. A shelf counts the objects of
 * each stack under its own lock and has one reference for all of them; for a stack of the table of devices, which lives
 * on anyhow, it keeps that for the next object when the last is gone. */
#include "handle.h"
#include "../base/error.h"
#include "../base/lifecycle.h"
#include "../base/os_memory.h"
#include "device_table.h"

#include <pthread.h>
#include <string.h>

enum { SHELVES = 16, CHUNK_BYTES = 16 << 10, HOLDS = 8, NO_HOLD = HOLDS };

_Static_assert(CHUNK_BYTES % HANDLE_OBJECT_BYTES == 0, "objects lie side by side, each in cache lines of its own");

/* A stack that objects of a shelf are of. */
struct hold {
  struct stack *stack; /* with a reference; NULL: unused */
  size_t objects;
};

struct shelf {
  _Alignas(64) pthread_mutex_t lock;
  struct handle *first, *last;
  struct hold holds[HOLDS];
  atomic_size_t opened; /* objects of this shelf that are open */
};

static struct shelf shelves[SHELVES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static atomic_uint threads;

static void handle_make_shelves(void)
{
  for (size_t i = 0; i < SHELVES; i++) pthread_mutex_init(&shelves[i].lock, NULL);
}

static unsigned handle_shelf_of_thread(void)
{
  static _Thread_local unsigned number;
  pthread_once(&once, handle_make_shelves);
  if (!number) number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHELVES + 1;
  return number - 1;
}

/* The shelf's lock is held. */
static void handle_put(struct handle *handle)
{
  struct shelf *shelf = &shelves[handle->shelf];
  handle->next = NULL;
  *(shelf->last ? &shelf->last->next : &shelf->first) = handle;
  shelf->last = handle;
}

static void handle_fill(unsigned number)
{
  char *chunk = os_memory_allocate(CHUNK_BYTES);
  for (size_t at = 0; chunk && at < CHUNK_BYTES; at += HANDLE_OBJECT_BYTES) {
    struct handle *handle = (struct handle *)(chunk + at);
    handle->shelf = (unsigned short)number;
    handle_put(handle);
  }
}

static struct handle *handle_take(unsigned number)
{
  struct shelf *shelf = &shelves[number];
  if (!shelf->first) handle_fill(number);
  struct handle *handle = shelf->first;
  if (handle) shelf->first = handle->next;
  if (!shelf->first) shelf->last = NULL;
  return handle;
}

/* ---- Holding stacks; the shelf's lock is held ---- */

/* The hold of a stack, or else an unused one; NO_HOLD if there is neither. */
static unsigned handle_find_hold(const struct shelf *shelf, const struct stack *stack)
{
  unsigned unused = NO_HOLD;
  for (unsigned i = 0; i < HOLDS; i++) {
    if (shelf->holds[i].stack == stack) return i;
    if (!shelf->holds[i].stack) unused = i;
  }
  return unused;
}

static void handle_hold(struct shelf *shelf, struct handle *handle, struct stack *stack)
{
  handle->stack = stack;
  handle->hold = NO_HOLD;
  if (!stack) return;
  handle->hold = (unsigned short)handle_find_hold(shelf, stack);
  struct hold *found = handle->hold == NO_HOLD ? NULL : &shelf->holds[handle->hold];
  if (!found || !found->stack) stack_retain(stack);
  if (!found) return;
  found->stack = stack;
  found->objects++;
}

/* A reference that is to be given back once the lock is: it may be the last. NULL: none. */
static struct stack *handle_release_hold(struct shelf *shelf, const struct handle *handle)
{
  struct stack *stack = handle->stack;
  if (!stack || handle->hold == NO_HOLD) return stack;
  struct hold *found = &shelf->holds[handle->hold];
  if (--found->objects || device_table_stack_if_built(stack->device) == stack) return NULL;
  found->stack = NULL;
  return stack;
}

static struct stack *handle_let_go_of_idle(struct shelf *shelf)
{
  for (size_t i = 0; i < HOLDS; i++) {
    struct stack *stack = shelf->holds[i].stack;
    if (!stack || shelf->holds[i].objects) continue;
    shelf->holds[i].stack = NULL;
    return stack;
  }
  return NULL;
}

void handle_let_go(void)
{
  pthread_once(&once, handle_make_shelves);
  for (size_t i = 0; i < SHELVES; i++) {
    struct stack *stack;
    do {
      pthread_mutex_lock(&shelves[i].lock);
      stack = handle_let_go_of_idle(&shelves[i]);
      pthread_mutex_unlock(&shelves[i].lock);
      if (stack) stack_release(stack);
    } while (stack);
  }
}

/* ---- Life ---- */

void *handle_new(struct stack *stack)
{
  unsigned number = handle_shelf_of_thread();
  struct shelf *shelf = &shelves[number];
  pthread_mutex_lock(&shelf->lock);
  struct handle *handle = handle_take(number);
  if (handle) handle_hold(shelf, handle, stack);
  pthread_mutex_unlock(&shelf->lock);
  if (handle) memset(handle + 1, 0, HANDLE_OBJECT_BYTES - sizeof *handle);
  return handle;
}

void handle_open(void *object, enum handle_kind kind)
{
  struct handle *handle = object;
  atomic_fetch_add_explicit(&shelves[handle->shelf].opened, 1, memory_order_relaxed);
  atomic_store_explicit(&handle->kind, (unsigned)kind, memory_order_release);
}

bool handle_close(void *object, enum handle_kind kind)
{
  struct handle *handle = object;
  unsigned expected = (unsigned)kind;
  if (!handle || !atomic_compare_exchange_strong(&handle->kind, &expected, 0)) return false;
  atomic_fetch_sub_explicit(&shelves[handle->shelf].opened, 1, memory_order_relaxed);
  return true;
}

void handle_free(void *object)
{
  struct handle *handle = object;
  struct shelf *shelf = &shelves[handle->shelf];
  pthread_mutex_lock(&shelf->lock);
  struct stack *stack = handle_release_hold(shelf, handle);
  handle_put(handle);
  pthread_mutex_unlock(&shelf->lock);
  if (stack) stack_release(stack);
}

enum hipmm_status handle_refuse(enum handle_kind kind)
{
  static const char *const names[HANDLE_KINDS] = {[HANDLE_STREAM_POOL] = "stream pool",
                                                  [HANDLE_BUFFER] = "buffer",
                                                  [HANDLE_VECTOR] = "vector",
                                                  [HANDLE_SCALAR] = "scalar",
                                                  [HANDLE_HOST_BUFFER] = "host buffer"};
  return error_set(HIPMM_E_POINTER, "it is no %s, or was destroyed already", names[kind]);
}

enum hipmm_status handle_check(const void *object, enum handle_kind kind)
{
  if (lifecycle_is_barred()) return lifecycle_check();
  if (!object) return error_set(HIPMM_E_ARGUMENT, "the object is NULL");
  return handle_is(object, kind) ? HIPMM_OK : handle_refuse(kind);
}

size_t handle_count(void)
{
  size_t count = 0;
  for (size_t i = 0; i < SHELVES; i++) count += atomic_load(&shelves[i].opened);
  return count;
}
