/* SPDX-License-Identifier: MIT */
/* live.c: see live.h. A log has few spaces, and its rows mostly stay in one. */
#include "live.h"
#include "../../../core/base/key_map.h"
#include "../array.h"

#include <stdlib.h>

struct trace_live_space {
  struct trace_space space;
  struct key_map slots; /* by address */
};

/* The addresses of a space, which becomes the first of the list. NULL: out of memory. */
static struct key_map *trace_live_slots(struct trace_live *live, const struct trace_space *space)
{
  size_t at = 0;
  while (at < live->n_spaces && !trace_space_is(&live->spaces[at].space, space)) at++;
  if (at == live->n_spaces) {
    if (!array_grow(&live->spaces, at, &live->space_capacity, sizeof *live->spaces)) return NULL;
    live->spaces[live->n_spaces++] = (struct trace_live_space){.space = *space};
  }
  if (at) {
    struct trace_live_space found = live->spaces[at];
    live->spaces[at] = live->spaces[0];
    live->spaces[0] = found;
  }
  return &live->spaces[0].slots;
}

/* A slot that no block has. False: out of memory. */
static bool trace_live_take_slot(struct trace_live *live, uint32_t *slot_out)
{
  uint32_t slot = live->free_slot;
  if (slot) {
    live->free_slot = live->blocks[slot].next_free;
  } else {
    slot = live->n_slots ? live->n_slots : 1;
    if (slot == UINT32_MAX || !array_grow_zeroed(&live->blocks, slot, &live->capacity, sizeof *live->blocks))
      return false;
    live->n_slots = slot + 1;
  }
  *slot_out = slot;
  return true;
}

static bool trace_live_allocate(struct trace_live *live, struct key_map *slots, const struct trace_row *row,
                                struct trace_pair *pair_out)
{
  pair_out->older = (uint32_t)key_map_get(slots, row->pointer);
  if (!trace_live_take_slot(live, &pair_out->slot) || !key_map_put(slots, row->pointer, pair_out->slot)) return false;
  live->blocks[pair_out->slot].bytes = row->bytes;
  return true;
}

static void trace_live_free(struct trace_live *live, struct key_map *slots, uint64_t pointer,
                            struct trace_pair *pair_out)
{
  uint32_t slot = (uint32_t)key_map_extract(slots, pointer);
  if (!slot) return;
  struct trace_live_block *block = &live->blocks[slot];
  pair_out->slot = slot;
  pair_out->bytes = block->bytes;
  block->next_free = live->free_slot;
  live->free_slot = slot;
}

bool trace_live_note(struct trace_live *live, const struct trace_row *row, struct trace_pair *pair_out)
{
  *pair_out = (struct trace_pair){TRACE_NULL_SLOT, TRACE_NULL_SLOT, 0};
  if (!row->pointer || (row->action != TRACE_ALLOCATE && row->action != TRACE_FREE)) return true;
  struct key_map *slots = trace_live_slots(live, &row->space);
  if (!slots) return false;
  if (row->action == TRACE_ALLOCATE) return trace_live_allocate(live, slots, row, pair_out);
  trace_live_free(live, slots, row->pointer, pair_out);
  return true;
}

void trace_live_place(const struct trace_live *live, struct trace_row *row)
{
  const struct trace_space *found = NULL;
  for (size_t i = 0; i < live->n_spaces; i++) {
    const struct trace_live_space *space = &live->spaces[i];
    if (space->space.process != row->space.process) continue;
    bool has_block = row->pointer && key_map_get(&space->slots, row->pointer);
    if (has_block || !found) found = &space->space;
    if (has_block) break;
  }
  row->space.device = 0;
  if (found) row->space = *found;
}

void trace_live_clear(struct trace_live *live)
{
  for (size_t i = 0; i < live->n_spaces; i++) key_map_clear(&live->spaces[i].slots);
  free(live->spaces);
  free(live->blocks);
  *live = (struct trace_live){0};
}
