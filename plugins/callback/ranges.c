/* SPDX-License-Identifier: MIT */
/* ranges.c: see ranges.h. Records come from chunks that are kept until the end. */
#include "ranges.h"

enum { CHUNK_BLOCKS = 1024 };

struct ranges_chunk {
  struct ranges_chunk *next;
  struct range blocks[CHUNK_BLOCKS];
};

void ranges_open(struct ranges *ranges, const struct hipmm_services *services)
{
  *ranges = (struct ranges){.services = services};
  pthread_mutex_init(&ranges->lock, NULL);
}

void ranges_close(struct ranges *ranges)
{
  while (ranges->chunks) {
    struct ranges_chunk *chunk = ranges->chunks;
    ranges->chunks = chunk->next;
    ranges->services->host_free(ranges->services, chunk, sizeof *chunk);
  }
  pthread_mutex_destroy(&ranges->lock);
}

/* ---- Under the lock ---- */

static struct range *ranges_new_record(struct ranges *ranges)
{
  if (!ranges->unused) {
    struct ranges_chunk *chunk = ranges->services->host_allocate(ranges->services, sizeof *chunk);
    if (!chunk) return NULL;
    chunk->next = ranges->chunks;
    ranges->chunks = chunk;
    for (size_t i = 0; i < CHUNK_BLOCKS; i++) {
      chunk->blocks[i].next_unused = ranges->unused;
      ranges->unused = &chunk->blocks[i];
    }
  }
  struct range *record = ranges->unused;
  ranges->unused = record->next_unused;
  return record;
}

static struct range *ranges_block_at(const struct ranges *ranges, const void *ptr)
{
  return (struct range *)key_tree_at(ranges->blocks, (uintptr_t)ptr);
}

static void ranges_remove_block(struct ranges *ranges, struct range *block)
{
  key_tree_remove(&ranges->blocks, &block->by_address);
  ranges->count--;
  ranges->bytes -= block->by_address.minor;
  block->next_unused = ranges->unused;
  ranges->unused = block;
}

/* ---- Calls ---- */

enum ranges_result ranges_add(struct ranges *ranges, const struct range *block, struct hipmm_block *other_out)
{
  pthread_mutex_lock(&ranges->lock);
  const struct key_tree_node *other =
      key_tree_overlapping(ranges->blocks, block->by_address.major, block->by_address.minor);
  struct range *record = other ? NULL : ranges_new_record(ranges);
  if (other) *other_out = (struct hipmm_block){(void *)other->major, other->minor};
  if (record) {
    *record = *block;
    key_tree_insert(&ranges->blocks, &record->by_address);
    ranges->count++;
    ranges->bytes += block->by_address.minor;
  }
  pthread_mutex_unlock(&ranges->lock);
  return record ? RANGES_ADDED : other ? RANGES_OVERLAP : RANGES_NO_MEMORY;
}

enum hipmm_status ranges_remove(struct ranges *ranges, const void *ptr, size_t bytes, struct range *block_out)
{
  pthread_mutex_lock(&ranges->lock);
  struct range *block = ranges_block_at(ranges, ptr);
  enum hipmm_status status = block ? HIPMM_OK : HIPMM_E_POINTER;
  if (block) *block_out = *block;
  if (block && bytes && bytes != block->by_address.minor) status = HIPMM_E_SIZE;
  if (!status) ranges_remove_block(ranges, block);
  pthread_mutex_unlock(&ranges->lock);
  return status;
}

bool ranges_find(struct ranges *ranges, const void *ptr, struct range *block_out)
{
  pthread_mutex_lock(&ranges->lock);
  const struct range *block = ranges_block_at(ranges, ptr);
  if (block) *block_out = *block;
  pthread_mutex_unlock(&ranges->lock);
  return block != NULL;
}

bool ranges_remove_first(struct ranges *ranges, struct range *block_out)
{
  struct range *block = (struct range *)key_tree_at_least(ranges->blocks, 0, 0);
  if (block) *block_out = *block;
  if (block) ranges_remove_block(ranges, block);
  return block != NULL;
}

void ranges_visit(struct ranges *ranges, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                  void *closure)
{
  pthread_mutex_lock(&ranges->lock);
  struct key_tree_node *node = key_tree_at_least(ranges->blocks, 0, 0);
  for (; node; node = key_tree_next(ranges->blocks, node)) {
    const struct range *block = (const struct range *)node;
    struct hipmm_extent extent = {
        .ptr = (const void *)node->major, .bytes = node->minor, .state = HIPMM_EXTENT_LIVE, .stream = block->stream};
    visitor(closure, &extent);
  }
  pthread_mutex_unlock(&ranges->lock);
}
