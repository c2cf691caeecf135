/* SPDX-License-Identifier: MIT */
/* torch_pools.c: PyTorch's private pools. Called by the hooks of torch.c, only while there is a pool or for a block that
 * has a record. Never calls a resource under the lock. */
#include "torch_pools.h"
#include "../base/error.h"
#include "../base/log.h"
#include "torch_blocks.h"

#include <stdlib.h>

/* A block that PyTorch freed and the resource has not got yet. */
struct cached {
  void *ptr;
  size_t bytes;
  hipmm_stream_t stream;
  struct torch_use *uses; /* that the next owner would have to wait for: such a block has no next owner */
  struct cached *next;
};

struct torch_pool {
  struct hipmm_torch_pool id;
  int device;
  unsigned references; /* begun so often and not released; 0: the pool only has members left */
  unsigned active;     /* begun so often and not ended */
  size_t members;      /* blocks in PyTorch's hands */
  struct cached *idle;
  struct cached *waiting; /* blocks of no pool, freed while this one was active; until it no longer is */
  struct torch_pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of torch_blocks.c */
static struct torch_pool *pools;                         /* the one begun last comes first */
static unsigned generation;                              /* of the table of devices that the pools are about */

static struct cached *torch_pools_take_list(struct cached **list)
{
  struct cached *taken = *list;
  *list = NULL;
  return taken;
}

static void torch_pools_drop_list(struct cached *list)
{
  while (list) {
    struct cached *cached = list;
    list = cached->next;
    torch_uses_free(cached->uses);
    free(cached);
  }
}

/* Pools of stacks that are gone are dropped at the first call after that; their blocks went with the stacks. */
static void torch_pools_lock(void)
{
  pthread_mutex_lock(&lock);
  unsigned now = atomic_load(&device_table_generation);
  while (generation != now && pools) {
    struct torch_pool *pool = pools;
    pools = pool->next;
    torch_pools_drop_list(pool->idle);
    torch_pools_drop_list(pool->waiting);
    free(pool);
  }
  generation = now;
}

static struct torch_pool **torch_pools_find(int device, struct hipmm_torch_pool id)
{
  struct torch_pool **link = &pools;
  while (*link && ((*link)->device != device || (*link)->id.first != id.first || (*link)->id.second != id.second))
    link = &(*link)->next;
  return link;
}

static void torch_pools_remove_if_over(struct torch_pool *pool)
{
  if (pool->references || pool->members) return;
  *torch_pools_find(pool->device, pool->id) = pool->next;
  free(pool);
}

/* Allocations belong to the active pool that was begun last. */
static void torch_pools_choose(struct framework_device *device)
{
  struct torch_pool *pool = pools;
  while (pool && (pool->device != device->device || !pool->active)) pool = pool->next;
  atomic_store(&device->pool, pool);
}

static void torch_pools_free_list(struct framework_device *device, struct cached *list)
{
  for (const struct cached *cached = list; cached; cached = cached->next) {
    torch_block_remove(cached->ptr);
    torch_uses_settle(cached->uses, device->device, cached->stream);
    framework_free(device, cached->ptr, cached->bytes, cached->stream);
  }
  while (list) {
    struct cached *cached = list;
    list = cached->next;
    free(cached);
  }
}

/* ---- Begin, end, release ---- */

void torch_pool_begin(struct framework_device *device, struct hipmm_torch_pool id)
{
  torch_pools_lock();
  struct torch_pool **link = torch_pools_find(device->device, id), *pool = *link;
  if (pool) *link = pool->next;
  if (!pool) pool = calloc(1, sizeof *pool);
  if (pool) {
    pool->id = id;
    pool->device = device->device;
    pool->references++;
    pool->active++;
    pool->next = pools;
    pools = pool;
    torch_pools_choose(device);
  }
  pthread_mutex_unlock(&lock);
  if (!pool) log_line(HIPMM_LOG_ERROR, "torch", "no host memory for a private pool: its memory is shared");
}

void torch_pool_end(struct framework_device *device, struct hipmm_torch_pool id)
{
  struct cached *waiting = NULL;
  torch_pools_lock();
  struct torch_pool *pool = *torch_pools_find(device->device, id);
  if (pool && pool->active && !--pool->active) waiting = torch_pools_take_list(&pool->waiting);
  torch_pools_choose(device);
  pthread_mutex_unlock(&lock);
  torch_pools_free_list(device, waiting);
}

void torch_pool_release(struct framework_device *device, struct hipmm_torch_pool id)
{
  struct cached *idle = NULL, *waiting = NULL;
  torch_pools_lock();
  struct torch_pool *pool = *torch_pools_find(device->device, id);
  if (pool && pool->references && !--pool->references) {
    pool->active = 0;
    torch_pools_choose(device);
    idle = torch_pools_take_list(&pool->idle);
    waiting = torch_pools_take_list(&pool->waiting);
    torch_pools_remove_if_over(pool);
  }
  pthread_mutex_unlock(&lock);
  torch_pools_free_list(device, idle);
  torch_pools_free_list(device, waiting);
}

/* ---- Allocating ---- */

/* What the resource says of a block: whether it is live, and of this size. HIPMM_OK where no resource can tell. */
static enum hipmm_status torch_pools_check(const struct framework_device *device, const void *ptr, size_t bytes)
{
  struct hipmm_block block;
  enum hipmm_status status = instance_find(instance_from(framework_owner(device, ptr)), ptr, &block);
  if (status == HIPMM_E_NOT_SUPPORTED) return HIPMM_OK;
  if (status || block.bytes == bytes) return status;
  return error_refuse(HIPMM_E_SIZE, NULL, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                      (uintptr_t)ptr, block.bytes, bytes);
}

static void *torch_pools_pop(struct torch_pool *pool, size_t bytes, hipmm_stream_t stream)
{
  struct cached **link = &pool->idle;
  while (*link && ((*link)->bytes != bytes || (*link)->stream != stream || (*link)->uses)) link = &(*link)->next;
  if (!*link) return NULL;
  struct cached *cached = *link;
  void *ptr = cached->ptr;
  *link = cached->next;
  free(cached);
  torch_block_set_pool(ptr, pool); /* the block has a record already */
  pool->members++;
  return ptr;
}

/* The resource does not know the block any more: the program freed it with hipmm_deallocate(). */
static void torch_pools_forget_block(struct framework_device *device, struct torch_pool *pool, void *ptr, size_t bytes)
{
  log_line(HIPMM_LOG_ERROR, "torch",
           "%p of a private pool was freed by other means than hipmm_torch_free(); the pool does not use it any more",
           ptr);
  framework_uncount(device, bytes);
  torch_pools_lock();
  torch_uses_free(torch_block_remove(ptr));
  pool->members--;
  torch_pools_remove_if_over(pool);
  pthread_mutex_unlock(&lock);
}

void *torch_pool_allocate(struct framework_device *device, size_t bytes, hipmm_stream_t stream)
{
  for (;;) {
    torch_pools_lock();
    struct torch_pool *pool = atomic_load(&device->pool);
    void *ptr = pool ? torch_pools_pop(pool, bytes, stream) : NULL;
    pthread_mutex_unlock(&lock);
    if (!ptr || !torch_pools_check(device, ptr, bytes)) return ptr;
    torch_pools_forget_block(device, pool, ptr, bytes);
  }
}

bool torch_pool_adopt(struct framework_device *device, void *ptr)
{
  torch_pools_lock();
  struct torch_pool *pool = atomic_load(&device->pool);
  bool is_recorded = !pool || torch_block_set_pool(ptr, pool);
  if (pool && is_recorded) pool->members++;
  pthread_mutex_unlock(&lock);
  return is_recorded;
}

/* ---- Freeing ---- */

/* Without host memory for its entry the block stays allocated for ever: another use of it would not be safe. */
static void torch_pools_push(struct cached **list, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  struct torch_use *uses = torch_block_set_cached(ptr);
  struct cached *cached = malloc(sizeof *cached);
  if (cached) {
    *cached = (struct cached){ptr, bytes, stream, uses, *list};
    *list = cached;
  } else {
    log_line(HIPMM_LOG_ERROR, "torch", "no host memory to cache a block: %zu bytes are lost", bytes);
    torch_uses_free(uses);
  }
}

/* Which list takes the block; NULL: none, the resource gets it. */
static struct cached **torch_pools_list_for(struct framework_device *device, const struct torch_block *block)
{
  struct torch_pool *active = atomic_load(&device->pool);
  if (block->pool && block->pool->references) return &block->pool->idle;
  return block->uses && active ? &active->waiting : NULL;
}

/* All in one hold of the lock, and the record of a cached block never goes: of two threads that free one block, one
 * finds it cached. */
void torch_pool_free(struct framework_device *device, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  struct torch_use *uses = NULL;
  struct cached **list = NULL;
  if (torch_pools_check(device, ptr, bytes) == HIPMM_E_SIZE) {
    framework_log_failure("torch", "a block is not freed");
    return; /* its record stays */
  }
  torch_pools_lock();
  struct torch_block block = torch_block_find(ptr);
  if (!block.is_cached) {
    list = torch_pools_list_for(device, &block);
    if (list)
      torch_pools_push(list, ptr, bytes, stream);
    else
      uses = torch_block_remove(ptr);
    if (block.pool) {
      block.pool->members--;
      torch_pools_remove_if_over(block.pool);
    }
  }
  pthread_mutex_unlock(&lock);
  if (block.is_cached) {
    error_set(HIPMM_E_POINTER, "%p was freed before", ptr);
    framework_log_failure("torch", "a block is not freed");
  } else if (!list) {
    torch_uses_settle(uses, device->device, stream);
    framework_free(device, ptr, bytes, stream);
  }
}
