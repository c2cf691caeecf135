/* SPDX-License-Identifier: MIT */
/* torch_pools.c: PyTorch's private pools. Called by the hooks of torch.c, and only while there is a pool or for blocks
 * that belong to one. Blocks are given back without the lock. */
#include "torch_pools.h"
#include "../base/error.h"
#include "../base/log.h"

#include <stdlib.h>

/* A block that was freed by PyTorch and not yet here. */
struct kept {
  void *ptr;
  size_t bytes;
  hipStream_t stream;
  struct torch_use *uses; /* not yet waited for: nobody may have it before */
  struct kept *next;
};

struct torch_pool {
  struct hipmm_torch_pool id;
  int device;
  unsigned references; /* begun so often and not released; 0: it only has members left */
  unsigned active;     /* begun so often and not ended */
  size_t members;      /* blocks in PyTorch's hands */
  struct kept *idle;
  struct kept *waiting; /* not of the pool: freed while it was active, until it no longer is */
  struct torch_pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct torch_pool *pools; /* the one begun last comes first */

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

/* The active pool that was begun last is the one that allocations belong to. */
static void torch_pools_choose(struct framework_device *device)
{
  struct torch_pool *pool = pools;
  while (pool && (pool->device != device->device || !pool->active)) pool = pool->next;
  atomic_store(&device->pool, pool);
}

static void torch_pools_give_back(struct framework_device *device, struct kept *list)
{
  while (list) {
    struct kept *kept = list;
    list = kept->next;
    torch_blocks_take(kept->ptr);
    torch_settle(kept->uses, device->device, kept->stream);
    framework_free(device, kept->ptr, kept->bytes, kept->stream);
    free(kept);
  }
}

static struct kept *torch_pools_take_list(struct kept **list)
{
  struct kept *taken = *list;
  *list = NULL;
  return taken;
}

/* ---- Begin, end, release ---- */

void torch_pool_begin(struct framework_device *device, struct hipmm_torch_pool id)
{
  pthread_mutex_lock(&lock);
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
  struct kept *list = NULL;
  pthread_mutex_lock(&lock);
  struct torch_pool *pool = *torch_pools_find(device->device, id);
  if (pool && pool->active && !--pool->active) list = torch_pools_take_list(&pool->waiting);
  torch_pools_choose(device);
  pthread_mutex_unlock(&lock);
  torch_pools_give_back(device, list);
}

void torch_pool_release(struct framework_device *device, struct hipmm_torch_pool id)
{
  struct kept *idle = NULL, *waiting = NULL;
  pthread_mutex_lock(&lock);
  struct torch_pool *pool = *torch_pools_find(device->device, id);
  if (pool && pool->references && !--pool->references) {
    pool->active = 0;
    torch_pools_choose(device);
    idle = torch_pools_take_list(&pool->idle);
    waiting = torch_pools_take_list(&pool->waiting);
    torch_pools_remove_if_over(pool);
  }
  pthread_mutex_unlock(&lock);
  torch_pools_give_back(device, idle);
  torch_pools_give_back(device, waiting);
}

/* ---- Blocks ---- */

void *torch_pool_take(struct framework_device *device, size_t bytes, hipStream_t stream)
{
  void *ptr = NULL;
  pthread_mutex_lock(&lock);
  struct torch_pool *pool = atomic_load(&device->pool);
  struct kept **link = pool ? &pool->idle : NULL;
  while (link && *link && ((*link)->bytes != bytes || (*link)->stream != stream || (*link)->uses))
    link = &(*link)->next;
  if (link && *link) {
    struct kept *kept = *link;
    *link = kept->next;
    ptr = kept->ptr;
    torch_block_pool(ptr, pool, false); /* it has a note already */
    pool->members++;
    free(kept);
  }
  pthread_mutex_unlock(&lock);
  return ptr;
}

bool torch_pool_adopt(struct framework_device *device, void *ptr)
{
  pthread_mutex_lock(&lock);
  struct torch_pool *pool = atomic_load(&device->pool);
  bool good = !pool || torch_block_pool(ptr, pool, false);
  if (pool && good) pool->members++;
  pthread_mutex_unlock(&lock);
  return good;
}

/* Without host memory to keep it in, the block stays allocated for ever: giving it back would not be safe. */
static void torch_pools_push(struct kept **list, struct kept block)
{
  struct kept *kept = malloc(sizeof *kept);
  if (kept) {
    *kept = block;
    kept->next = *list;
    *list = kept;
  } else {
    log_line(HIPMM_LOG_ERROR, "torch", "no host memory to keep a block: %zu bytes are lost", block.bytes);
    torch_drop_uses(block.uses);
  }
  torch_block_pool(block.ptr, NULL, true);
}

bool torch_pool_keep(struct framework_device *device, struct torch_block note, void *ptr, size_t bytes,
                     hipStream_t stream)
{
  pthread_mutex_lock(&lock);
  struct torch_pool *pool = note.pool, *active = atomic_load(&device->pool);
  struct kept block = {ptr, bytes, stream, note.uses, NULL};
  bool stays = pool && pool->references, waits = !stays && note.uses && active;
  if (stays) torch_pools_push(&pool->idle, block);
  if (waits) torch_pools_push(&active->waiting, block);
  if (pool) {
    pool->members--;
    torch_pools_remove_if_over(pool);
  }
  pthread_mutex_unlock(&lock);
  return stays || waits;
}

/* The stacks are gone, and the blocks with them. */
void torch_pools_forget(void)
{
  pthread_mutex_lock(&lock);
  while (pools) {
    struct torch_pool *pool = pools;
    pools = pool->next;
    for (int i = 0; i < 2; i++) {
      struct kept *list = i ? pool->idle : pool->waiting;
      while (list) {
        struct kept *kept = list;
        list = kept->next;
        torch_drop_uses(kept->uses);
        free(kept);
      }
    }
    free(pool);
  }
  pthread_mutex_unlock(&lock);
}
