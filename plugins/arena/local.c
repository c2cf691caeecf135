/* SPDX-License-Identifier: MIT */
/* local.c: see local.h. */
#include "local.h"

/* ---- Lists through `next` and `previous` ---- */

BLOCK_INLINE void local_append(struct local_list *list, const struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  block->next = BLOCK_NONE;
  block->previous = list->last;
  *(list->last ? &block_of(blocks, list->last)->next : &list->first) = id;
  list->last = id;
}

BLOCK_INLINE void local_unlink(struct local_list *list, const struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  *(block->previous ? &block_of(blocks, block->previous)->next : &list->first) = block->next;
  *(block->next ? &block_of(blocks, block->next)->previous : &list->last) = block->previous;
}

/* ---- Ready blocks ---- */

/* Whether the block is all of its superblock. */
static bool local_is_whole(const struct blocks *blocks, const struct block *block)
{
  return !block->after && block_state(block_of(blocks, block->before)) == BLOCK_ON_LOAN;
}

/* All of one kind. */
static void local_add_ready(struct local *local, const struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  block_set_state(block, BLOCK_FREE);
  free_index_link(&local->ready, blocks, id, KIND_WHOLE * FREE_LISTS + free_index_list_of(block->bytes), block->bytes);
  if (!local_is_whole(blocks, block)) return;
  local_append(&local->idle, blocks, block->before);
  local->idle_bytes += block->bytes;
}

static void local_remove_ready(struct local *local, const struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  free_index_remove(&local->ready, blocks, id);
  if (!local_is_whole(blocks, block)) return;
  local_unlink(&local->idle, blocks, block->before);
  local->idle_bytes -= block->bytes;
}

/* A block takes in the one behind it. Neither is in a list. */
static void local_join(struct local *local, const struct blocks *blocks, uint32_t id, uint32_t behind)
{
  struct block *block = block_of(blocks, id);
  const struct block *dropped = block_of(blocks, behind);
  block->bytes += dropped->bytes;
  block_join(blocks, id, dropped->after);
  local_push_unused(local, blocks, behind);
}

/* Makes a block that is in no list ready, merged with its neighbours. */
static void local_merge(struct local *local, const struct blocks *blocks, uint32_t id)
{
  uint32_t before = block_of(blocks, id)->before, after = block_of(blocks, id)->after;
  if (block_state(block_of(blocks, after)) == BLOCK_FREE) {
    local_remove_ready(local, blocks, after);
    local_join(local, blocks, id, after);
  }
  if (block_state(block_of(blocks, before)) == BLOCK_FREE) {
    local_remove_ready(local, blocks, before);
    local_join(local, blocks, before, id);
    id = before;
  }
  local_add_ready(local, blocks, id);
}

/* ---- Quick lists ---- */

static void local_empty_quick_list(struct local *local, const struct blocks *blocks, uint32_t units)
{
  uint32_t id = local->quick[units];
  local->quick[units] = BLOCK_NONE;
  while (id) {
    uint32_t next = block_of(blocks, id)->next;
    local->quick_bytes -= (uint64_t)units << UNIT_BITS;
    local_merge(local, blocks, id);
    id = next;
  }
}

static void local_shrink_quick(struct local *local, const struct blocks *blocks, uint64_t bytes)
{
  while (local->quick_bytes > bytes) local_empty_quick_list(local, blocks, local->next_quick++ % LOCAL_QUICK_UNITS + 1);
}

void local_empty_quick(struct local *local, const struct blocks *blocks)
{
  local_shrink_quick(local, blocks, 0);
}

/* ---- Allocating and freeing ---- */

/* Splits what is behind `bytes` off a block that is in no list, as a ready block. Nothing is done without an unused record. */
static void local_cut(struct local *local, const struct blocks *blocks, uint32_t id, uint64_t bytes)
{
  struct block *block = block_of(blocks, id);
  uint32_t rest = local_pop_unused(local, blocks);
  if (!rest) return;
  block_set_bounds(block_of(blocks, rest), block->start + bytes, block->bytes - bytes);
  block->bytes = bytes;
  block_join(blocks, rest, block->after);
  block_join(blocks, id, rest);
  local_add_ready(local, blocks, rest);
}

static uint32_t local_allocate_ready(struct local *local, const struct blocks *blocks, uint64_t bytes, bool without_cut)
{
  uint32_t id = free_index_fit(&local->ready, blocks, KIND_WHOLE, bytes);
  if (!id && local->quick_bytes) {
    local_empty_quick(local, blocks);
    id = free_index_fit(&local->ready, blocks, KIND_WHOLE, bytes);
  }
  if (!id) return BLOCK_NONE;
  bool has_rest = block_of(blocks, id)->bytes > bytes;
  if (has_rest && !local->unused && !without_cut) return BLOCK_NONE;
  local_remove_ready(local, blocks, id);
  if (has_rest) local_cut(local, blocks, id, bytes);
  block_publish(blocks, id);
  return id;
}

uint32_t local_allocate(struct local *local, const struct blocks *blocks, uint64_t bytes, bool without_cut)
{
  uint64_t units = bytes >> UNIT_BITS;
  uint32_t id = units <= LOCAL_QUICK_UNITS ? local->quick[units] : BLOCK_NONE;
  if (!id && !without_cut) { /* otherwise since local_acquire(): see find_memory.c */
    if (local_has_messages(local)) local_receive(local, blocks);
    if (local_has_surplus(local)) return BLOCK_NONE; /* which the caller returns under the global lock */
    id = units <= LOCAL_QUICK_UNITS ? local->quick[units] : BLOCK_NONE;
  }
  if (!id) return local_allocate_ready(local, blocks, bytes, without_cut);
  local->quick[units] = block_of(blocks, id)->next;
  local->quick_bytes -= bytes;
  return id;
}

void local_free(struct local *local, const struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  uint64_t units = block->bytes >> UNIT_BITS;
  if (units > LOCAL_QUICK_UNITS) {
    local_merge(local, blocks, id);
    return;
  }
  if (local->quick_bytes + block->bytes > LOCAL_MOST_QUICK_BYTES)
    local_shrink_quick(local, blocks, LOCAL_MOST_QUICK_BYTES - block->bytes);
  block_set_state(block, BLOCK_QUICK);
  block->next = local->quick[units];
  local->quick[units] = id;
  local->quick_bytes += block->bytes;
}

void local_free_pending(struct local *local, const struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  block_set_state(block, BLOCK_PENDING);
  local_append(&local->pending, blocks, id);
  local->pending_bytes += block->bytes;
}

void local_end_pending(struct local *local, const struct blocks *blocks, uint32_t id)
{
  local_unlink(&local->pending, blocks, id);
  local->pending_bytes -= block_of(blocks, id)->bytes;
  local_merge(local, blocks, id);
}

/* ---- Messages ---- */

void local_open_messages(struct local *local, hipmm_stream_t handle)
{
  struct messages *messages = &local->messages;
  uint64_t word = atomic_load_explicit(&messages->word, memory_order_relaxed);
  if (word & MESSAGES_OPEN) return;
  atomic_store_explicit(&messages->handle, handle, memory_order_release); /* behind the last end */
  atomic_fetch_or_explicit(&messages->word, MESSAGES_OPEN, memory_order_release);
}

/* A thread that has looked at the word before sees that it has changed. The work before each block that was left comes before
 * what the caller waits for next. */
void local_close_messages(struct local *local)
{
  _Atomic uint64_t *word = &local->messages.word;
  if (atomic_load_explicit(word, memory_order_relaxed) & MESSAGES_OPEN)
    atomic_fetch_add_explicit(word, MESSAGES_OPEN, memory_order_acquire);
}

void local_receive(struct local *local, const struct blocks *blocks)
{
  uint64_t all = MESSAGES_OPEN - 1, word = atomic_fetch_and_explicit(&local->messages.word, ~all, memory_order_acquire);
  for (uint32_t id = (uint32_t)(word & MESSAGES_FIRST), next; id; id = next) {
    next = block_of(blocks, id)->next;
    local_end_live(local, block_of(blocks, id));
    local_free(local, blocks, id);
  }
}

/* ---- Superblocks ---- */

void local_add_superblock(struct local *local, const struct blocks *blocks, uint32_t id)
{
  struct block *superblock = block_of(blocks, id);
  uint32_t first = local_pop_unused(local, blocks);
  block_set_bounds(block_of(blocks, first), superblock->start, superblock->bytes);
  __atomic_store_n(&block_of(blocks, first)->before, id, __ATOMIC_RELAXED); /* see block_join() */
  block_of(blocks, first)->after = BLOCK_NONE;
  superblock->arena = local->number;
  superblock->first = first;
  local->bytes += superblock->bytes;
  local->n_superblocks++;
  local_add_ready(local, blocks, first);
}

uint32_t local_remove_idle(struct local *local, const struct blocks *blocks)
{
  uint32_t id = local->idle.last;
  struct block *superblock = block_of(blocks, id);
  local_remove_ready(local, blocks, superblock->first);
  local_push_unused(local, blocks, superblock->first);
  superblock->arena = 0;
  local->bytes -= superblock->bytes;
  local->n_superblocks--;
  return id;
}
