/* SPDX-License-Identifier: MIT */
/* placement_hints.c: see history.h. */
#include "placement_hints.h"

enum { NUMBER_BITS = 15, SET_BITS = 11, SET_ITEMS = 16 };

_Static_assert(HISTORY_ITEMS < 1 << NUMBER_BITS, "an entry has 1 + the number of any item");

/* Items whose keys share a set: 1 + number in the ring, and above that a tag, so that mostly one item is looked at, or
 * none. 0: no item. */
struct history_set {
  _Alignas(64) uint32_t entries[SET_ITEMS];
};

static const size_t items_bytes = HISTORY_ITEMS * sizeof(struct history_item);
static const size_t sets_bytes = sizeof(struct history_set) << SET_BITS;

bool history_open(struct history *history, const struct hipmm_services *services)
{
  *history = (struct history){.items = services->host_allocate(services, items_bytes),
                              .sets = services->host_allocate(services, sets_bytes)};
  if (history->items && history->sets) return true;
  history_close(history, services);
  return false;
}

void history_close(struct history *history, const struct hipmm_services *services)
{
  services->host_free(services, history->items, items_bytes);
  services->host_free(services, history->sets, sets_bytes);
}

static struct history_set *placement_hints_set_of(const struct history *history)
{
  return &history->sets[history->key >> (64 - SET_BITS)];
}

static bool placement_hints_is_item(const struct history *history, uint32_t number)
{
  return history->items[number].key == history->key;
}

/* As it is of the key under way, with the bits that follow those of the set as its tag. */
static uint32_t placement_hints_entry_for(const struct history *history, uint32_t number)
{
  return (uint32_t)(history->key << SET_BITS >> (32 + NUMBER_BITS)) << NUMBER_BITS | (number + 1);
}

static uint32_t placement_hints_number_in(uint32_t entry)
{
  return entry % (1 << NUMBER_BITS) - 1;
}

static uint32_t placement_hints_search(const struct history *history)
{
  const struct history_set *set = placement_hints_set_of(history);
  for (unsigned i = 0; i < SET_ITEMS && set->entries[i]; i++) {
    uint32_t number = placement_hints_number_in(set->entries[i]);
    if (set->entries[i] == placement_hints_entry_for(history, number) && placement_hints_is_item(history, number))
      return number;
  }
  return HISTORY_ITEMS;
}

const uint64_t *history_find(struct history *history, uint64_t bytes, uint64_t live_bytes, uint64_t lately)
{
  uint64_t moment = (live_bytes ^ lately * 0xD6E8FEB86659FD93ull) + (history->age << 48);
  history->key = (bytes * 0xC2B2AE3D27D4EB4Full ^ moment) * 0x9E3779B97F4A7C15ull | 1; /* 0 is of no request */
  history->found = placement_hints_is_item(history, history->next) ? history->next : placement_hints_search(history);
  if (history->found == HISTORY_ITEMS) return NULL;
  history->next = (history->found + 1) % HISTORY_ITEMS;
  return history->items[history->found].addresses;
}

/* How many items came after it. */
static uint32_t placement_hints_age_of(const struct history *history, uint32_t entry)
{
  return (history->count - 1 - placement_hints_number_in(entry)) % HISTORY_ITEMS;
}

/* An unused entry of the set, which are the last, or that of the oldest item. */
static uint32_t *placement_hints_place_in(const struct history *history, struct history_set *set)
{
  uint32_t *oldest = set->entries;
  for (unsigned i = 0; i < SET_ITEMS; i++) {
    uint32_t *entry = &set->entries[i];
    if (!*entry) return entry;
    if (placement_hints_age_of(history, *entry) > placement_hints_age_of(history, *oldest)) oldest = entry;
  }
  return oldest;
}

static uint32_t placement_hints_add(struct history *history)
{
  uint32_t number = history->count % HISTORY_ITEMS;
  *placement_hints_place_in(history, placement_hints_set_of(history)) = placement_hints_entry_for(history, number);
  history->items[number] = (struct history_item){.key = history->key};
  history->count++;
  history->next = history->count % HISTORY_ITEMS;
  return number;
}

void history_note(struct history *history, uint64_t address)
{
  struct history_item *item =
      &history->items[history->found < HISTORY_ITEMS ? history->found : placement_hints_add(history)];
  if (item->addresses[0] == address) return;
  item->addresses[1] = item->addresses[0];
  item->addresses[0] = address;
}

void history_forget(struct history *history)
{
  history->age++;
}

uint64_t history_metadata_bytes(void)
{
  return items_bytes + sets_bytes;
}
