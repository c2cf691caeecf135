/* SPDX-License-Identifier: MIT */
/* placement_hints.c: a ring of hints, and a set-associative table that finds them by key. */
#include "placement_hints.h"

enum { NUMBER_BITS = 15, SET_BITS = 11, SET_ITEMS = 16 };

_Static_assert(PLACEMENT_HINTS < 1 << NUMBER_BITS, "an entry has 1 + the number of any item");

/* A set has an entry for each item whose key belongs to it: 1 + the item's number in the ring, and above that a tag of
 * the key, so that a search mostly compares one item, or none. 0: no item. */
struct placement_hint_set {
  _Alignas(64) uint32_t entries[SET_ITEMS];
};

static const size_t items_bytes = PLACEMENT_HINTS * sizeof(struct placement_hint);
static const size_t sets_bytes = sizeof(struct placement_hint_set) << SET_BITS;

bool placement_hints_open(struct placement_hints *hints, const struct hipmm_services *services)
{
  *hints = (struct placement_hints){.items = services->host_allocate(services, items_bytes),
                                    .sets = services->host_allocate(services, sets_bytes)};
  if (hints->items && hints->sets) return true;
  placement_hints_close(hints, services);
  return false;
}

void placement_hints_close(struct placement_hints *hints, const struct hipmm_services *services)
{
  services->host_free(services, hints->items, items_bytes);
  services->host_free(services, hints->sets, sets_bytes);
}

static struct placement_hint_set *placement_hints_set_of(const struct placement_hints *hints)
{
  return &hints->sets[hints->key >> (64 - SET_BITS)];
}

static bool placement_hints_is_item(const struct placement_hints *hints, uint32_t number)
{
  return hints->items[number].key == hints->key;
}

/* The entry of an item with the current key. The tag is the bits of the key after those that choose the set. */
static uint32_t placement_hints_entry_for(const struct placement_hints *hints, uint32_t number)
{
  return (uint32_t)(hints->key << SET_BITS >> (32 + NUMBER_BITS)) << NUMBER_BITS | (number + 1);
}

static uint32_t placement_hints_number_in(uint32_t entry)
{
  return entry % (1 << NUMBER_BITS) - 1;
}

static uint32_t placement_hints_search(const struct placement_hints *hints)
{
  const struct placement_hint_set *set = placement_hints_set_of(hints);
  for (unsigned i = 0; i < SET_ITEMS && set->entries[i]; i++) {
    uint32_t number = placement_hints_number_in(set->entries[i]);
    if (set->entries[i] == placement_hints_entry_for(hints, number) && placement_hints_is_item(hints, number))
      return number;
  }
  return PLACEMENT_HINTS;
}

const uint64_t *placement_hints_find(struct placement_hints *hints, uint64_t bytes, uint64_t live_bytes,
                                     uint64_t recent_hash)
{
  uint64_t moment = (live_bytes ^ recent_hash * 0xD6E8FEB86659FD93ull) + (hints->age << 48);
  hints->key = (bytes * 0xC2B2AE3D27D4EB4Full ^ moment) * 0x9E3779B97F4A7C15ull | 1; /* never 0 */
  hints->found = placement_hints_is_item(hints, hints->next) ? hints->next : placement_hints_search(hints);
  if (hints->found == PLACEMENT_HINTS) return NULL;
  hints->next = (hints->found + 1) % PLACEMENT_HINTS;
  return hints->items[hints->found].addresses;
}

/* The number of items recorded after it. */
static uint32_t placement_hints_age_of(const struct placement_hints *hints, uint32_t entry)
{
  return (hints->count - 1 - placement_hints_number_in(entry)) % PLACEMENT_HINTS;
}

/* An unused entry of the set, or the entry of its oldest item. The unused entries are the last. */
static uint32_t *placement_hints_replaceable_entry(const struct placement_hints *hints, struct placement_hint_set *set)
{
  uint32_t *oldest = set->entries;
  for (unsigned i = 0; i < SET_ITEMS; i++) {
    uint32_t *entry = &set->entries[i];
    if (!*entry) return entry;
    if (placement_hints_age_of(hints, *entry) > placement_hints_age_of(hints, *oldest)) oldest = entry;
  }
  return oldest;
}

static uint32_t placement_hints_add(struct placement_hints *hints)
{
  uint32_t number = hints->count % PLACEMENT_HINTS;
  *placement_hints_replaceable_entry(hints, placement_hints_set_of(hints)) = placement_hints_entry_for(hints, number);
  hints->items[number] = (struct placement_hint){.key = hints->key};
  hints->count++;
  hints->next = hints->count % PLACEMENT_HINTS;
  return number;
}

void placement_hints_record(struct placement_hints *hints, uint64_t address)
{
  struct placement_hint *item =
      &hints->items[hints->found < PLACEMENT_HINTS ? hints->found : placement_hints_add(hints)];
  if (item->addresses[0] == address) return;
  item->addresses[1] = item->addresses[0];
  item->addresses[0] = address;
}

void placement_hints_forget(struct placement_hints *hints)
{
  hints->age++;
}

uint64_t placement_hints_metadata_bytes(void)
{
  return items_bytes + sets_bytes;
}
