/* SPDX-License-Identifier: MIT */
/* blocks.c: see blocks.h. */
#include "blocks.h"

#include "message.h"

#include <pthread.h>
#include <stdlib.h>

static struct address_tree_node *root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct block *blocks_block_of(struct address_tree_node *node)
{
  return (struct block *)node; /* it comes first */
}

uint32_t blocks_new_id(void)
{
  enum { BIT = 31 };
  static atomic_uint_fast32_t next;
  return (uint32_t)atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) | UINT32_C(1) << BIT;
}

void blocks_put(struct block *block)
{
  usage_add(&block->served->usage[block->kind], block_bytes(block));
  pools_count(block->drawn, (int64_t)block_bytes(block));
  pthread_mutex_lock(&lock);
  address_tree_insert(&root, &block->by_address);
  pthread_mutex_unlock(&lock);
}

static void blocks_remove_locked(struct block *block)
{
  address_tree_remove(&root, &block->by_address);
  usage_remove(&block->served->usage[block->kind], block_bytes(block));
  pools_count(block->drawn, -(int64_t)block_bytes(block));
}

struct block *blocks_take(const void *ptr, unsigned kinds, bool *other_kind_out)
{
  pthread_mutex_lock(&lock);
  struct address_tree_node *node = address_tree_at_least(root, (uintptr_t)ptr, 0);
  struct block *block = node && node->major == (uintptr_t)ptr ? blocks_block_of(node) : NULL;
  *other_kind_out = block && !(kinds >> block->kind & 1);
  if (*other_kind_out) block = NULL;
  if (block) blocks_remove_locked(block);
  pthread_mutex_unlock(&lock);
  return block;
}

struct block *blocks_take_any(void)
{
  pthread_mutex_lock(&lock);
  struct block *block = root ? blocks_block_of(root) : NULL;
  if (block) blocks_remove_locked(block);
  pthread_mutex_unlock(&lock);
  return block;
}

void blocks_give_back(const struct block *block)
{
  struct hipmm_resource *resource = block->served->kinds[block->kind].resource;
  if (hipmm_deallocate(resource, block_start(block), block_bytes(block), block->served->idle))
    message_write("%p is lost: %s", block_start(block), hipmm_last_error_message());
}

void blocks_free(struct block *block)
{
  pools_release(block->drawn);
  free(block);
}

bool blocks_holding(const void *ptr, struct block *block_out)
{
  pthread_mutex_lock(&lock);
  struct address_tree_node *node = address_tree_holding(root, (uintptr_t)ptr);
  if (node) *block_out = *blocks_block_of(node);
  pthread_mutex_unlock(&lock);
  return node != NULL;
}
