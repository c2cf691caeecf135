/* SPDX-License-Identifier: MIT */
/* block_map.c: a hash table with linear probing and no tombstones: removal moves the followers up. */
#include "block_map.h"
#include "os_memory.h"

enum { FIRST_CAPACITY = 256, MOST_EMPTY = 16 /* a table has at most so many slots for each block, or is the first */ };

static size_t home_of(const struct ledger *ledger, const void *ptr)
{
  uint64_t key = (uint64_t)(uintptr_t)ptr >> 8; /* blocks are 256-byte aligned */
  return (size_t)((key * 0x9E3779B97F4A7C15ull) >> 32) & (ledger->capacity - 1);
}

static size_t next_of(const struct ledger *ledger, size_t slot)
{
  return (slot + 1) & (ledger->capacity - 1);
}

/* The slot of `ptr`, or the empty slot where it would go. */
static size_t slot_of(const struct ledger *ledger, const void *ptr)
{
  size_t slot = home_of(ledger, ptr);
  while (ledger->slots[slot].ptr && ledger->slots[slot].ptr != ptr) slot = next_of(ledger, slot);
  return slot;
}

static bool resize(struct ledger *ledger, size_t capacity)
{
  struct ledger other = {.capacity = capacity};
  other.slots = pages_allocate(other.capacity * sizeof *other.slots);
  if (!other.slots) return false;
  for (size_t i = 0; i < ledger->capacity; i++)
    if (ledger->slots[i].ptr) other.slots[slot_of(&other, ledger->slots[i].ptr)] = ledger->slots[i];
  pages_free(ledger->slots, ledger->capacity * sizeof *ledger->slots);
  ledger->slots = other.slots;
  ledger->capacity = other.capacity;
  ledger->cursor = 0;
  return true;
}

static bool grow(struct ledger *ledger)
{
  return resize(ledger, ledger->capacity ? 2 * ledger->capacity : FIRST_CAPACITY);
}

/* Gives memory back once most of the table is empty; without memory for the smaller table the large one stays. */
static void shrink(struct ledger *ledger)
{
  if (MOST_EMPTY * ledger->count < ledger->capacity && ledger->capacity > FIRST_CAPACITY)
    resize(ledger, ledger->capacity / 4 > FIRST_CAPACITY ? ledger->capacity / 4 : FIRST_CAPACITY);
}

/* Whether `slot` lies on the probe path from `home` to `end`, all modulo the capacity. */
static bool lies_between(size_t home, size_t slot, size_t end)
{
  return home <= end ? home <= slot && slot < end : home <= slot || slot < end;
}

static void remove_slot(struct ledger *ledger, size_t hole)
{
  ledger->count--;
  ledger->bytes -= ledger->slots[hole].bytes;
  for (size_t slot = next_of(ledger, hole); ledger->slots[slot].ptr; slot = next_of(ledger, slot)) {
    if (!lies_between(home_of(ledger, ledger->slots[slot].ptr), hole, slot)) continue;
    ledger->slots[hole] = ledger->slots[slot];
    hole = slot;
  }
  ledger->slots[hole] = (struct hipmm_block){0};
}

void ledger_open(struct ledger *ledger)
{
  *ledger = (struct ledger){.capacity = 0};
  pthread_mutex_init(&ledger->lock, NULL);
}

void ledger_close(struct ledger *ledger)
{
  pages_free(ledger->slots, ledger->capacity * sizeof *ledger->slots);
  pthread_mutex_destroy(&ledger->lock);
}

bool ledger_insert(struct ledger *ledger, void *ptr, size_t bytes)
{
  pthread_mutex_lock(&ledger->lock);
  bool fits = 2 * ledger->count < ledger->capacity || grow(ledger);
  if (fits) {
    ledger->slots[slot_of(ledger, ptr)] = (struct hipmm_block){ptr, bytes};
    ledger->count++;
    ledger->bytes += bytes;
    ledger->cursor = 0;
  }
  pthread_mutex_unlock(&ledger->lock);
  return fits;
}

static enum hipmm_status remove_locked(struct ledger *ledger, const void *ptr, size_t bytes,
                                       struct hipmm_block *block_out)
{
  if (!ledger->count || !ptr) return HIPMM_E_POINTER;
  size_t slot = slot_of(ledger, ptr);
  if (!ledger->slots[slot].ptr) return HIPMM_E_POINTER;
  *block_out = ledger->slots[slot];
  if (bytes && bytes != block_out->bytes) return HIPMM_E_SIZE;
  remove_slot(ledger, slot);
  shrink(ledger);
  return HIPMM_OK;
}

enum hipmm_status ledger_remove(struct ledger *ledger, const void *ptr, size_t bytes, struct hipmm_block *block_out)
{
  pthread_mutex_lock(&ledger->lock);
  enum hipmm_status status = remove_locked(ledger, ptr, bytes, block_out);
  pthread_mutex_unlock(&ledger->lock);
  return status;
}

bool ledger_find(struct ledger *ledger, const void *ptr, struct hipmm_block *block_out)
{
  bool found = false;
  pthread_mutex_lock(&ledger->lock);
  if (ledger->count && ptr) {
    struct hipmm_block block = ledger->slots[slot_of(ledger, ptr)];
    found = block.ptr != NULL;
    if (found) *block_out = block;
  }
  pthread_mutex_unlock(&ledger->lock);
  return found;
}

bool ledger_remove_any(struct ledger *ledger, struct hipmm_block *block_out)
{
  bool found = false;
  pthread_mutex_lock(&ledger->lock);
  if (ledger->count) {
    while (!ledger->slots[ledger->cursor].ptr) ledger->cursor++;
    *block_out = ledger->slots[ledger->cursor];
    remove_slot(ledger, ledger->cursor);
    found = true;
  }
  pthread_mutex_unlock(&ledger->lock);
  return found;
}

void ledger_sum(struct ledger *ledger, size_t *blocks_out, size_t *bytes_out)
{
  pthread_mutex_lock(&ledger->lock);
  *blocks_out = ledger->count;
  *bytes_out = ledger->bytes;
  pthread_mutex_unlock(&ledger->lock);
}
