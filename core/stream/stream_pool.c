/* SPDX-License-Identifier: MIT */
/* stream_pool.c: pools of streams. Called by applications. Takes no lock: the
 * creation of a stream is told to resources, which take locks of their own and may call functions of the program. */
#include "../base/lifecycle.h"
#include "../call/device_table.h"
#include "../call/handle.h"
#include "stream.h"

#include <stdlib.h>

struct hipmm_stream_pool {
  struct handle handle;
  int device;
  unsigned flags;
  size_t size;
  atomic_size_t turn;
  hipmm_stream_t _Atomic *streams; /* NULL: not created yet */
};

_Static_assert(sizeof(struct hipmm_stream_pool) <= HANDLE_OBJECT_BYTES, "struct hipmm_stream_pool");

static enum hipmm_status stream_pool_check_options(int device, size_t size, unsigned flags)
{
  enum hipmm_status status = device_table_check(device);
  if (status) return status;
  if (size > HIPMM_STREAM_POOL_MAX_SIZE)
    return error_set(HIPMM_E_ARGUMENT, "size: %zu streams are too many; at most %d are allowed", size,
                     HIPMM_STREAM_POOL_MAX_SIZE);
  return stream_check_flags(flags);
}

enum hipmm_status hipmm_stream_pool_create(int device, size_t size, unsigned flags, struct hipmm_stream_pool **pool_out)
{
  enum hipmm_status status = lifecycle_check_use(pool_out, "pool_out");
  if (!status) status = stream_pool_check_options(device, size, flags);
  if (status) return status;
  if (!size) size = HIPMM_STREAM_POOL_SIZE;
  struct hipmm_stream_pool *pool = handle_new(NULL);
  if (pool) pool->streams = calloc(size, sizeof *pool->streams);
  if (!pool || !pool->streams) {
    if (pool) handle_free(pool);
    return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  }
  pool->device = device;
  pool->flags = flags;
  pool->size = size;
  handle_open(pool, HANDLE_STREAM_POOL);
  *pool_out = pool;
  return HIPMM_OK;
}

/* The first failure. A stream that could not be destroyed stays for another try. */
static enum hipmm_status stream_pool_destroy_streams(struct hipmm_stream_pool *pool)
{
  enum hipmm_status first = HIPMM_OK;
  struct error_record failure;
  for (size_t i = 0; i < pool->size; i++) {
    hipmm_stream_t stream = atomic_load(&pool->streams[i]);
    enum hipmm_status status = stream ? stream_destroy(stream, pool->device, STREAM_OF_POOL) : HIPMM_OK;
    if (!status) atomic_store(&pool->streams[i], NULL);
    error_keep_first(&first, &failure, status);
  }
  if (first) error_return_to_mark(&failure);
  return first;
}

enum hipmm_status hipmm_stream_pool_destroy(struct hipmm_stream_pool *pool)
{
  if (lifecycle_refuses_calls()) return lifecycle_check();
  if (!pool) return HIPMM_OK;
  if (!handle_close(pool, HANDLE_STREAM_POOL)) return handle_refuse(HANDLE_STREAM_POOL);
  enum hipmm_status status = stream_pool_destroy_streams(pool);
  if (status) {
    handle_open(pool, HANDLE_STREAM_POOL);
    return status;
  }
  free(pool->streams);
  handle_free(pool);
  return HIPMM_OK;
}

/* Of threads that create the same stream at once, one keeps it, and the others destroy theirs. */
static enum hipmm_status stream_pool_create_stream(struct hipmm_stream_pool *pool, size_t index,
                                                   hipmm_stream_t *stream_out)
{
  hipmm_stream_t created = NULL, there = NULL;
  enum hipmm_status status = stream_create(pool->device, pool->flags, NULL, STREAM_OF_POOL, &created);
  if (!status && !atomic_compare_exchange_strong(&pool->streams[index], &there, created))
    status = stream_destroy(created, pool->device, STREAM_OF_POOL);
  if (!status) *stream_out = there ? there : created;
  return status;
}

enum hipmm_status hipmm_stream_pool_get_at(struct hipmm_stream_pool *pool, size_t index, hipmm_stream_t *stream_out)
{
  enum hipmm_status status = handle_check(pool, HANDLE_STREAM_POOL);
  if (!status && !stream_out) status = error_set(HIPMM_E_ARGUMENT, "stream_out is NULL");
  if (status) return status;
  hipmm_stream_t stream = atomic_load_explicit(&pool->streams[index % pool->size], memory_order_acquire);
  if (!stream) return stream_pool_create_stream(pool, index % pool->size, stream_out);
  *stream_out = stream;
  return HIPMM_OK;
}

enum hipmm_status hipmm_stream_pool_get(struct hipmm_stream_pool *pool, hipmm_stream_t *stream_out)
{
  enum hipmm_status status = handle_check(pool, HANDLE_STREAM_POOL);
  if (status) return status;
  return hipmm_stream_pool_get_at(pool, atomic_fetch_add_explicit(&pool->turn, 1, memory_order_relaxed), stream_out);
}

size_t hipmm_stream_pool_size(const struct hipmm_stream_pool *pool)
{
  return handle_is(pool, HANDLE_STREAM_POOL) ? pool->size : 0;
}

int hipmm_stream_pool_device(const struct hipmm_stream_pool *pool)
{
  return handle_is(pool, HANDLE_STREAM_POOL) ? pool->device : -1;
}
