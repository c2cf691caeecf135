/* SPDX-License-Identifier: MIT */
/* owners.c: see owners.h. */
#include "owners.h"

_Static_assert(OWNERS_FILTER_SLOTS == 1 << 16, "owners_filter_slot gives 16 bits");

static const size_t filter_bytes = OWNERS_FILTER_SLOTS * sizeof(atomic_uint);

bool owners_open(struct owners *owners, const struct hipmm_services *services)
{
  owners->filter = services->host_allocate(services, filter_bytes);
  if (!owners->filter) return false;
  live_blocks_open(&owners->live, services, sizeof(struct owner));
  atomic_init(&owners->is_used, false);
  return true;
}

void owners_close(struct owners *owners)
{
  const struct hipmm_services *services = owners->live.services;
  live_blocks_close(&owners->live);
  services->host_free(services, owners->filter, filter_bytes);
}

static void owners_filter_remove(struct owners *owners, const void *ptr)
{
  atomic_fetch_sub_explicit(owners_filter_slot(owners, ptr), 1, memory_order_relaxed);
}

bool owners_add(struct owners *owners, const struct owner *owner)
{
  struct owner replaced = {.upstream = 0};
  atomic_store_explicit(&owners->is_used, true, memory_order_relaxed);
  atomic_fetch_add_explicit(owners_filter_slot(owners, owner->block.ptr), 1, memory_order_relaxed);
  bool added = live_blocks_insert(&owners->live, owner, &replaced);
  if (!added || replaced.block.ptr) owners_filter_remove(owners, owner->block.ptr);
  return added;
}

void owners_remove(struct owners *owners, const struct owner *owner)
{
  live_blocks_settle(&owners->live, owner->block.ptr);
  owners_filter_remove(owners, owner->block.ptr);
}
