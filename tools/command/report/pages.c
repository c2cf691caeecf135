/* SPDX-License-Identifier: MIT */
/* pages.c: see report.h. */
#include "../../../core/base/key_map.h"
#include "report.h"

#include <stdlib.h>

struct pages {
  struct key_map users; /* page to number of blocks, for pages that a block does not fill */
  uint64_t bytes, live_bytes;
};

static bool pages_add(struct pages *pages, uint64_t page)
{
  uint64_t users = key_map_get(&pages->users, page);
  if (!users) pages->bytes += 1u << PAGES_SHIFT;
  return key_map_put(&pages->users, page, users + 1);
}

static bool pages_remove(struct pages *pages, uint64_t page)
{
  uint64_t users = key_map_extract(&pages->users, page);
  if (users > 1) return key_map_put(&pages->users, page, users - 1);
  pages->bytes -= 1u << PAGES_SHIFT;
  return true;
}

/* The pages between a block's first and last are its own. */
static bool pages_change(struct pages *pages, const struct block *block, bool is_free)
{
  if (!block->bytes) return true;
  uint64_t first = block->address >> PAGES_SHIFT, last = (block->address + block->bytes - 1) >> PAGES_SHIFT;
  if (last < first) return true; /* beyond the end of the addresses */
  uint64_t own = last - first > 1 ? (last - first - 1) << PAGES_SHIFT : 0;
  pages->live_bytes += is_free ? -block->bytes : block->bytes;
  pages->bytes += is_free ? -own : own;
  bool (*change)(struct pages *, uint64_t) = is_free ? pages_remove : pages_add;
  return change(pages, first) && (first == last || change(pages, last));
}

static void pages_note(const struct pages *pages, uint32_t event, struct pages_result *out)
{
  if (pages->bytes > out->peak_bytes) out->peak_bytes = pages->bytes;
  if (pages->bytes - pages->live_bytes <= out->worst_bytes - out->worst_live_bytes) return;
  out->worst_bytes = pages->bytes;
  out->worst_live_bytes = pages->live_bytes;
  out->worst_event = event;
}

static int pages_compare_frees(const void *one, const void *other)
{
  const struct block *const *a = one, *const *b = other;
  return (*a)->to < (*b)->to ? -1 : (*a)->to > (*b)->to;
}

bool pages_count(const struct blocks *blocks, void (*notify)(void *closure, uint32_t event, uint64_t bytes),
                 void *closure, struct pages_result *out)
{
  struct pages pages = {.bytes = 0};
  size_t next = 0, freed = 0;
  bool good = true;
  *out = (struct pages_result){0};
  const struct block **by_free = calloc(blocks->n + 1, sizeof *by_free);
  if (!by_free) return false;
  for (size_t i = 0; i < blocks->n; i++) by_free[i] = &blocks->items[i];
  qsort(by_free, blocks->n, sizeof *by_free, pages_compare_frees);
  for (uint32_t event = 0; good && event < blocks->n_events; event++) {
    while (good && freed < blocks->n && by_free[freed]->to == event)
      good = pages_change(&pages, by_free[freed++], true);
    while (good && next < blocks->n && blocks->items[next].from == event)
      good = pages_change(&pages, &blocks->items[next++], false);
    pages_note(&pages, event, out);
    if (notify) notify(closure, event, pages.bytes);
  }
  free(by_free);
  key_map_clear(&pages.users);
  return good;
}
