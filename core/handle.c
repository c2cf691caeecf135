/* SPDX-License-Identifier: MIT */
/* handle.c: shelves of objects of one size. Called when pools and containers are made and destroyed. What was freed
 * last is used again last, so that a stale handle is recognised for long. Never gives memory back. */
#include "handle.h"
#include "life.h"
#include "pages.h"

#include <pthread.h>
#include <string.h>

enum { SHELVES = 8, CHUNK_BYTES = 64 << 10 };

_Static_assert((SHELVES & (SHELVES - 1)) == 0, "threads are spread over shelves by the low bits of their number");

struct shelf {
  _Alignas(64) pthread_mutex_t lock;
  struct handle *first, *last;
  atomic_size_t opened; /* objects of this shelf that are open */
};

static struct shelf shelves[SHELVES] = {{.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER},
                                        {.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER},
                                        {.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER},
                                        {.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER}};

static atomic_uint threads;

static unsigned shelf_of_thread(void)
{
  static _Thread_local unsigned number;
  if (!number) number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHELVES + 1;
  return number - 1;
}

/* The shelf's lock is held. */
static void put(struct handle *handle)
{
  struct shelf *shelf = &shelves[handle->shelf];
  handle->next = NULL;
  *(shelf->last ? &shelf->last->next : &shelf->first) = handle;
  shelf->last = handle;
}

static void fill(unsigned number)
{
  char *chunk = pages_allocate(CHUNK_BYTES);
  for (size_t at = 0; chunk && at < CHUNK_BYTES; at += HANDLE_OBJECT_BYTES) {
    struct handle *handle = (struct handle *)(chunk + at);
    handle->shelf = number;
    put(handle);
  }
}

void *handle_new(void)
{
  unsigned number = shelf_of_thread();
  struct shelf *shelf = &shelves[number];
  pthread_mutex_lock(&shelf->lock);
  if (!shelf->first) fill(number);
  struct handle *handle = shelf->first;
  if (handle) shelf->first = handle->next;
  if (!shelf->first) shelf->last = NULL;
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
  put(handle);
  pthread_mutex_unlock(&shelf->lock);
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
  if (life_is_barred()) return life_check();
  if (!object) return error_set(HIPMM_E_ARGUMENT, "the object is NULL");
  return handle_is(object, kind) ? HIPMM_OK : handle_refuse(kind);
}

size_t handle_count(void)
{
  size_t count = 0;
  for (size_t i = 0; i < SHELVES; i++) count += atomic_load(&shelves[i].opened);
  return count;
}
