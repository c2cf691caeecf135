/* SPDX-License-Identifier: MIT */
/* blocks.c: the table of live blocks, and their counts; see blocks.h. Calls the stack only to free. */
#include "blocks.h"

#include "../../core/base/peak.h"
#include <pthread.h>
#include <stdlib.h>

static struct key_tree_node *root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Counting ---- */

/* How the driver is assumed to allocate, since it cannot be asked: a block of 1 MiB or more takes whole units of 2 MiB;
 * smaller blocks take multiples of 512 bytes out of units that they share. Device pages of 2 MiB and addresses at
 * multiples of 512 bytes are known of CUDA; where small blocks end is a guess, and ROCm may differ. Nothing of it was
 * measured. */
enum { UNIT_BYTES = 2 << 20, LARGE_BYTES = 1 << 20, SMALL_BYTES = 512 };

static int64_t blocks_round_up(int64_t bytes, int64_t unit)
{
  return (bytes + unit - 1) / unit * unit;
}

static int64_t blocks_add_bytes(atomic_int_fast64_t *counter, int64_t more)
{
  return atomic_fetch_add_explicit(counter, more, memory_order_relaxed) + more;
}

void blocks_count(struct usage *usage, int64_t bytes, int sign)
{
  bool large = bytes >= LARGE_BYTES;
  int64_t driver_bytes = blocks_round_up(bytes, large ? UNIT_BYTES : SMALL_BYTES) * sign;
  blocks_add_bytes(large ? &usage->large_bytes : &usage->small_bytes, driver_bytes);
  blocks_add_bytes(&usage->count, sign);
  peak_add(&usage->bytes, &usage->peak_bytes, bytes * sign);
  peak_raise(&usage->driver_peak_bytes,
             atomic_load_explicit(&usage->large_bytes, memory_order_relaxed) +
                 blocks_round_up(atomic_load_explicit(&usage->small_bytes, memory_order_relaxed), UNIT_BYTES));
}

/* ---- The table ---- */

uint32_t blocks_new_id(void)
{
  enum { BIT = 31 };
  static atomic_uint_fast32_t next;
  return (uint32_t)atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) | UINT32_C(1) << BIT;
}

void blocks_insert(struct block *block)
{
  blocks_count(&block->served->usage[block->kind], (int64_t)block_bytes(block), 1);
  pools_count(block->account, (int64_t)block_bytes(block));
  pthread_mutex_lock(&lock);
  key_tree_insert(&root, &block->by_address);
  pthread_mutex_unlock(&lock);
}

static void blocks_remove_locked(struct block *block)
{
  key_tree_remove(&root, &block->by_address);
  blocks_count(&block->served->usage[block->kind], (int64_t)block_bytes(block), -1);
  pools_count(block->account, -(int64_t)block_bytes(block));
}

struct block *blocks_remove(const void *ptr, unsigned kinds, bool *other_kind_out)
{
  pthread_mutex_lock(&lock);
  struct block *block = (struct block *)key_tree_at(root, (uintptr_t)ptr);
  *other_kind_out = block && !(kinds >> block->kind & 1);
  if (*other_kind_out) block = NULL;
  if (block) blocks_remove_locked(block);
  pthread_mutex_unlock(&lock);
  return block;
}

struct block *blocks_remove_any(void)
{
  pthread_mutex_lock(&lock);
  struct block *block = (struct block *)root;
  if (block) blocks_remove_locked(block);
  pthread_mutex_unlock(&lock);
  return block;
}

void blocks_release(const struct block *block)
{
  struct hipmm_resource *resource = block->served->resources[block->kind];
  if (hipmm_deallocate(resource, block_start(block), block_bytes(block), block->served->idle))
    message_write("%p is lost: %s", block_start(block), hipmm_last_error_message());
}

void blocks_free(struct block *block)
{
  pools_release(block->account);
  free(block);
}

bool blocks_find(const void *ptr, struct block *block_out)
{
  pthread_mutex_lock(&lock);
  const struct block *block = (const struct block *)key_tree_holding(root, (uintptr_t)ptr);
  if (block) *block_out = *block;
  pthread_mutex_unlock(&lock);
  return block != NULL;
}

enum blocks_held blocks_find_held(const void *ptr, struct block *block_out)
{
  struct hipmm_extent extent;
  struct served_device *served;
  if (blocks_find(ptr, block_out)) return BLOCKS_HELD_LIVE;
  if (!devices_find_extent(ptr, &extent, &served)) return BLOCKS_NOT_HELD;
  if (extent.state != HIPMM_EXTENT_LIVE) return BLOCKS_HELD_FREE;
  *block_out = (struct block){
      .by_address = {.major = (uintptr_t)extent.ptr, .minor = extent.bytes}, .served = served, .kind = KIND_DEVICE};
  return BLOCKS_HELD_LIVE;
}

/* Stored plus one. */
uint64_t blocks_set_share(const struct block *copy, uint64_t share)
{
  pthread_mutex_lock(&lock);
  struct block *block = (struct block *)key_tree_holding(root, copy->by_address.major);
  if (block && block->id == copy->id && block->share) share = block->share - 1;
  if (block && block->id == copy->id) block->share = share + 1;
  pthread_mutex_unlock(&lock);
  return share;
}
