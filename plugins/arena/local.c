/* SPDX-License-Identifier: MIT */
/* local.c: see local.h. */
#include "local.h"

/* ---- Superblocks that are wholly free ---- */

static bool local_is_whole(const struct arena_range *block)
{
  return !block->before && !block->after;
}

static void local_note_idle(struct local *local, const struct arena_ranges *ranges, const struct arena_range *block)
{
  struct arena_range *range = range_of(ranges, block->superblock);
  range->previous = RANGE_NONE;
  range->next = local->idle;
  if (local->idle) range_of(ranges, local->idle)->previous = block->superblock;
  local->idle = block->superblock;
  local->idle_bytes += range->bytes;
}

static void local_note_busy(struct local *local, const struct arena_ranges *ranges, const struct arena_range *block)
{
  const struct arena_range *range = range_of(ranges, block->superblock);
  if (range->previous)
    range_of(ranges, range->previous)->next = range->next;
  else
    local->idle = range->next;
  if (range->next) range_of(ranges, range->next)->previous = range->previous;
  local->idle_bytes -= range->bytes;
}

/* ---- Ready blocks ---- */

static void local_add_ready(struct local *local, const struct arena_ranges *ranges, uint32_t id)
{
  struct arena_range *block = range_of(ranges, id);
  range_set_state(block, RANGE_READY);
  tlsf_add(&local->ready, ranges, id);
  if (local_is_whole(block)) local_note_idle(local, ranges, block);
}

static void local_remove_ready(struct local *local, const struct arena_ranges *ranges, uint32_t id)
{
  const struct arena_range *block = range_of(ranges, id);
  if (local_is_whole(block)) local_note_busy(local, ranges, block);
  tlsf_remove(&local->ready, ranges, id);
}

static bool local_is_ready(const struct arena_ranges *ranges, uint32_t id)
{
  return id && range_state(range_of(ranges, id)) == RANGE_READY;
}

/* Makes a block that is in no list ready, merged with its neighbours. */
static void local_merge(struct local *local, const struct arena_ranges *ranges, uint32_t id)
{
  uint32_t before = range_of(ranges, id)->before, after = range_of(ranges, id)->after;
  if (local_is_ready(ranges, after)) {
    local_remove_ready(local, ranges, after);
    range_merge(ranges, id, after);
    local_push_unused(local, ranges, after);
  }
  if (local_is_ready(ranges, before)) {
    local_remove_ready(local, ranges, before);
    range_merge(ranges, before, id);
    local_push_unused(local, ranges, id);
    id = before;
  }
  local_add_ready(local, ranges, id);
}

/* ---- Quick lists ---- */

static void local_empty_quick_list(struct local *local, const struct arena_ranges *ranges, uint32_t units)
{
  uint32_t id = local->quick[units];
  local->quick[units] = RANGE_NONE;
  while (id) {
    uint32_t next = range_of(ranges, id)->next;
    local->quick_bytes -= (uint64_t)units << RANGE_UNIT_BITS;
    local_merge(local, ranges, id);
    id = next;
  }
}

static void local_shrink_quick(struct local *local, const struct arena_ranges *ranges, uint64_t bytes)
{
  while (local->quick_bytes > bytes) local_empty_quick_list(local, ranges, local->next_quick++ % LOCAL_QUICK_UNITS + 1);
}

void local_empty_quick(struct local *local, struct arena_ranges *ranges)
{
  local_shrink_quick(local, ranges, 0);
}

/* ---- Allocating and freeing ---- */

static uint32_t local_allocate_ready(struct local *local, struct arena_ranges *ranges, uint64_t bytes, bool without_cut)
{
  uint32_t id = tlsf_fit(&local->ready, ranges, bytes);
  if (!id && local->quick_bytes) {
    local_empty_quick(local, ranges);
    id = tlsf_fit(&local->ready, ranges, bytes);
  }
  if (!id) return RANGE_NONE;
  bool has_rest = range_of(ranges, id)->bytes > bytes;
  if (has_rest && !local->unused && !without_cut) return RANGE_NONE;
  local_remove_ready(local, ranges, id);
  uint32_t rest = has_rest ? local_pop_unused(local, ranges) : RANGE_NONE;
  if (!rest) return id;
  range_split(ranges, id, bytes, rest);
  address_map_set(&ranges->starts, range_of(ranges, rest)->start, rest);
  local_add_ready(local, ranges, rest);
  return id;
}

uint32_t local_allocate(struct local *local, struct arena_ranges *ranges, uint64_t bytes, bool without_cut)
{
  uint64_t units = bytes >> RANGE_UNIT_BITS;
  uint32_t id = units <= LOCAL_QUICK_UNITS ? local->quick[units] : RANGE_NONE;
  if (!id && !without_cut) { /* otherwise since local_acquire(): see find_memory.c */
    if (local_has_messages(local)) local_receive(local, ranges);
    if (local_has_surplus(local)) return RANGE_NONE; /* which the caller returns under the global lock */
    id = units <= LOCAL_QUICK_UNITS ? local->quick[units] : RANGE_NONE;
  }
  if (!id) return local_allocate_ready(local, ranges, bytes, without_cut);
  local->quick[units] = range_of(ranges, id)->next;
  local->quick_bytes -= bytes;
  return id;
}

void local_free(struct local *local, const struct arena_ranges *ranges, uint32_t id)
{
  struct arena_range *block = range_of(ranges, id);
  uint64_t units = block->bytes >> RANGE_UNIT_BITS;
  if (units > LOCAL_QUICK_UNITS) {
    local_merge(local, ranges, id);
    return;
  }
  if (local->quick_bytes + block->bytes > LOCAL_MOST_QUICK_BYTES)
    local_shrink_quick(local, ranges, LOCAL_MOST_QUICK_BYTES - block->bytes);
  range_set_state(block, RANGE_QUICK);
  block->next = local->quick[units];
  local->quick[units] = id;
  local->quick_bytes += block->bytes;
}

void local_free_pending(struct local *local, struct arena_ranges *ranges, uint32_t id)
{
  struct arena_range *block = range_of(ranges, id);
  range_set_state(block, RANGE_PENDING);
  block->next = RANGE_NONE;
  block->previous = local->pending_last;
  if (local->pending_last)
    range_of(ranges, local->pending_last)->next = id;
  else
    local->pending_first = id;
  local->pending_last = id;
  local->pending_bytes += block->bytes;
}

void local_end_pending(struct local *local, struct arena_ranges *ranges, uint32_t id)
{
  const struct arena_range *block = range_of(ranges, id);
  if (block->previous)
    range_of(ranges, block->previous)->next = block->next;
  else
    local->pending_first = block->next;
  if (block->next)
    range_of(ranges, block->next)->previous = block->previous;
  else
    local->pending_last = block->previous;
  local->pending_bytes -= block->bytes;
  local_merge(local, ranges, id);
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

void local_receive(struct local *local, const struct arena_ranges *ranges)
{
  uint64_t all = MESSAGES_OPEN - 1, word = atomic_fetch_and_explicit(&local->messages.word, ~all, memory_order_acquire);
  for (uint32_t id = (uint32_t)(word & MESSAGES_FIRST), next; id; id = next) {
    next = range_of(ranges, id)->next;
    local_end_live(local, range_of(ranges, id));
    local_free(local, ranges, id);
  }
}

/* ---- Superblocks ---- */

void local_add_superblock(struct local *local, struct arena_ranges *ranges, uint32_t range_id)
{
  struct arena_range *range = range_of(ranges, range_id);
  uint32_t id = local_pop_unused(local, ranges);
  struct arena_range *block = range_of(ranges, id);
  range_set_extent(block, range->start, range->bytes, local->number);
  block->before = block->after = RANGE_NONE;
  block->superblock = range_id;
  __atomic_store_n(&range->arena, local->number, __ATOMIC_RELAXED);
  range->first = id;
  address_map_set(&ranges->starts, block->start, id);
  local->bytes += range->bytes;
  local->n_superblocks++;
  local_add_ready(local, ranges, id);
}

uint32_t local_remove_idle(struct local *local, struct arena_ranges *ranges)
{
  uint32_t range_id = local->idle;
  struct arena_range *range = range_of(ranges, range_id);
  uint32_t first = range->first;
  local_remove_ready(local, ranges, first);
  local_push_unused(local, ranges, first);
  __atomic_store_n(&range->arena, 0, __ATOMIC_RELAXED);
  local->bytes -= range->bytes;
  local->n_superblocks--;
  return range_id;
}
