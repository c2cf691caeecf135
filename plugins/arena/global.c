/* SPDX-License-Identifier: MIT */
/* global.c: see global.h. */
#include "global.h"

bool global_open(struct global *global, const struct hipmm_services *services, struct hipmm_resource *upstream,
                 uint64_t maximum_bytes, enum record record)
{
  *global = (struct global){.services = services};
  bool opened = ranges_open(&global->ranges, services);
  opened = heap_open(&global->heap, services, record) && opened;
  opened =
      opened && backing_open_segments(&global->backing, &global->heap, services, upstream, maximum_bytes, SLACK_AUTO);
  global->backing.segments.starts = &global->ranges.starts;
  global->heap.small_bytes =
      ARENA_SUPERBLOCK_BYTES + 1; /* a superblock would keep a large segment from becoming idle */
  return opened;
}

void global_close(struct global *global)
{
  backing_close(&global->backing);
  heap_close(&global->heap);
  ranges_close(&global->ranges);
}

uint32_t global_lend(struct global *global, uint32_t block_id, uint32_t stream)
{
  struct arena_ranges *ranges = &global->ranges;
  const struct block *block = heap_block(&global->heap, block_id);
  uint32_t id = address_map_cover(&ranges->starts, block->start, block->bytes) ? range_new(ranges) : RANGE_NONE;
  if (!id) {
    heap_free(&global->heap, block_id, stream);
    return RANGE_NONE;
  }
  struct arena_range *range = range_of(ranges, id);
  range_set_extent(range, block->start, block->bytes, 0);
  range->before = range->after = RANGE_NONE;
  range->block = block_id;
  return id;
}

void global_take_back(struct global *global, uint32_t id, uint32_t stream, uint64_t epoch)
{
  uint32_t block = range_of(&global->ranges, id)->block;
  range_discard(&global->ranges, id);
  heap_free_later(&global->heap, block, stream, epoch);
}

void global_visit_free(const struct global *global, void (*look)(void *closure, const struct block *block),
                       void *closure)
{
  const struct heap *heap = &global->heap;
  for (uint32_t stream = 0; stream < heap->streams.count; stream++)
    for (enum kind kind = KIND_BUSY; kind < KINDS; kind++)
      for (uint32_t id = BLOCK_NONE; (id = free_index_next(&heap->free[stream], &heap->blocks, kind, id));)
        look(closure, heap_block(heap, id));
}

static void global_forget_addresses(void *ranges, const struct block *block)
{
  address_map_discard(&((struct arena_ranges *)ranges)->starts, block->start, block->bytes);
}

void global_trim_records(struct global *global)
{
  global_visit_free(global, global_forget_addresses, &global->ranges);
  ranges_trim(&global->ranges);
  blocks_trim(&global->heap.blocks);
}
