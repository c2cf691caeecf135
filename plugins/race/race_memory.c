/* SPDX-License-Identifier: MIT */
/* race_memory.c: see race_memory.h. Called by race_detector.c.
 *
 * A block has its allocation and the work on it that a later call may not be ordered after. Work is checked against
 * both, and so is the free, which from then on stands for all work on the block. A new block is checked against the
 * frees in its place; after that its allocation stands for them. So a block costs one record for each part that a
 * stream has used since the host last waited. */
#include "race_memory.h"

#include <stdlib.h>
#include <string.h>

/* Work on a range. */
struct race_work {
  struct race_use use;
  struct race_access range;
  bool writes;
};

/* In the order of the calls; without host memory some are missing. */
struct race_works {
  struct race_work *items;
  uint32_t count, capacity;
};

struct race_block {
  struct key_tree_node by_address;
  const char *resource;
  const void *owner;
  struct race_use allocated;
  struct race_works work;
  struct race_unwritten unwritten; /* nothing, if that is not checked */
  struct race_site unordered;      /* work that its free is not ordered after, if it has a call */
};

static struct key_tree_node *blocks;

/* ---- Parts ---- */

static uintptr_t race_range_end(const struct race_access *range)
{
  return (uintptr_t)range->start + range->bytes;
}

/* Whether one row has a byte of the range. */
static bool race_row_meets(uintptr_t row, size_t width, const struct race_access *range)
{
  uintptr_t start = (uintptr_t)range->start;
  if (row >= race_range_end(range) || row + width <= start) return false;
  if (!range->pitch || row < start) return true; /* before `start` it can only reach the first row */
  return (row - start) % range->pitch < range->width || (row - start) % range->pitch + width > range->pitch;
}

/* Whether both have a byte in common. */
static bool race_ranges_meet(const struct race_access *one, const struct race_access *other)
{
  if (!one->pitch) {
    const struct race_access *rows = other;
    other = one;
    one = rows;
  }
  uintptr_t row = (uintptr_t)one->start, start = (uintptr_t)other->start;
  if (!one->pitch) return race_row_meets(row, one->bytes, other);
  if (row < start) row += (start - row) / one->pitch * one->pitch;
  for (; row < race_range_end(one) && row < race_range_end(other); row += one->pitch)
    if (race_row_meets(row, one->width, other)) return true;
  return false;
}

static bool race_range_holds(const struct race_access *range, const struct race_access *other)
{
  bool is_same = range->start == other->start && range->bytes == other->bytes && range->pitch == other->pitch &&
                 range->width == other->width;
  return is_same || (!range->pitch && range->start <= other->start && race_range_end(range) >= race_range_end(other));
}

/* Forgets work that later calls need not be checked against: what the host has waited for; and what the new work comes
 * after and stands for, since it uses the same bytes and whatever must come after the old work must come after it. */
static void race_works_forget(struct race_works *works, const struct race_work *added, const struct race_line *line)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < works->count; i++) {
    const struct race_work *work = &works->items[i];
    bool stands_for = work->range.is_hint || (!added->range.is_hint && (added->writes || !work->writes));
    bool is_replaced =
        stands_for && race_order_is_before(work->use.point, line) && race_range_holds(&added->range, &work->range);
    if (!is_replaced && !race_order_is_over(work->use.point)) works->items[kept++] = *work;
  }
  works->count = kept;
}

static void race_works_remove(struct race_works *works, uint32_t at)
{
  works->count--;
  memmove(&works->items[at], &works->items[at + 1], (works->count - at) * sizeof *works->items);
}

/* Work that is followed by more work of its stream: only a use of the same bytes would be checked against it. */
static void race_works_forget_oldest(struct race_works *works)
{
  for (uint32_t i = 0; i + 1 < works->count; i++)
    for (uint32_t k = i + 1; k < works->count; k++)
      if (works->items[k].use.point.stream == works->items[i].use.point.stream) {
        race_works_remove(works, i);
        return;
      }
}

static void race_works_add(struct race_works *works, const struct race_work *added, const struct race_line *line)
{
  enum { MOST = 64 };
  race_works_forget(works, added, line);
  if (works->count >= MOST) race_works_forget_oldest(works);
  if (works->count == works->capacity) {
    uint32_t capacity = works->capacity ? 2 * works->capacity : 1;
    struct race_work *items = realloc(works->items, capacity * sizeof *items);
    if (!items) return;
    works->items = items;
    works->capacity = capacity;
  }
  works->items[works->count++] = *added;
}

/* Whether the order of the two matters: they use the same bytes, and one of them writes. */
static bool race_works_clash(const struct race_work *one, const struct race_work *other)
{
  bool is_hint = one->range.is_hint || other->range.is_hint;
  return !is_hint && (one->writes || other->writes) && race_ranges_meet(&one->range, &other->range);
}

/* The first work that the next call of the line is not ordered after, and that clashes with `added` unless that is NULL.
 * The count if there is none. */
static uint32_t race_works_find_unordered(const struct race_works *works, const struct race_line *line,
                                          const struct race_work *added)
{
  uint32_t i = 0;
  while (i < works->count && (race_order_is_before(works->items[i].use.point, line) ||
                              (added && !race_works_clash(&works->items[i], added))))
    i++;
  return i;
}

/* Names of resources, which blocks outlive. There are few. */
static const char *race_memory_name(const char *name)
{
  static struct name {
    struct name *next;
    char text[];
  } * names;
  for (const struct name *known = names; known; known = known->next)
    if (!strcmp(known->text, name)) return known->text;
  size_t bytes = strlen(name) + 1;
  struct name *added = malloc(sizeof *added + bytes);
  if (!added) return "?";
  memcpy(added->text, name, bytes);
  added->next = names;
  names = added;
  return added->text;
}

static void race_memory_discard(struct race_block *block)
{
  free(block->work.items);
  race_unwritten_clear(&block->unwritten);
  free(block);
}

static void race_memory_report(enum race_kind kind, const struct race_block *block, uintptr_t start, size_t bytes,
                               const struct race_site *now, const struct race_site *before)
{
  race_report_add(&(struct race_finding){.kind = kind,
                                         .start = start,
                                         .bytes = bytes,
                                         .block = block->by_address.major,
                                         .block_bytes = block->by_address.minor,
                                         .resource = block->resource,
                                         .now = *now,
                                         .before = *before});
}

/* ---- Allocation ---- */

struct placement {
  struct race_block *block;
  const struct race_line *line;
};

/* The remains of a free in the place of the new block. The block's own stream must be ordered after it; other
 * streams must be ordered after the allocation. */
static void race_memory_inherit(void *closure, const struct race_remains *remains)
{
  const struct placement *placement = closure;
  struct race_block *block = placement->block;
  if (remains->is_returned || race_order_is_before(remains->freed.point, placement->line)) return;
  uintptr_t start = remains->by_address.major, end = start + remains->by_address.minor;
  if (start < block->by_address.major) start = block->by_address.major;
  if (end > block->by_address.major + block->by_address.minor) end = block->by_address.major + block->by_address.minor;
  race_memory_report(RACE_REUSE, block, start, end - start, &block->allocated.site, &remains->freed.site);
}

/* The new block lies in a block of another resource: the program, or a resource of the program, divides that block.
 * The outer block is not watched any more. */
static void race_memory_displace(const struct race_block *block)
{
  uintptr_t start = block->by_address.major, bytes = block->by_address.minor;
  struct race_block *other;
  while ((other = (struct race_block *)key_tree_overlapping(blocks, start, bytes))) {
    uintptr_t first = other->by_address.major, end = first + other->by_address.minor;
    bool holds = first <= start && end >= start + bytes && other->resource != block->resource;
    if (!holds) race_memory_report(RACE_OVERLAP, other, start, bytes, &block->allocated.site, &other->allocated.site);
    key_tree_remove(&blocks, &other->by_address);
    race_memory_discard(other);
  }
}

void race_memory_allocate(const struct memory_event *event, const struct race_line *line, const struct race_use *use,
                          bool checks_written)
{
  uintptr_t start = (uintptr_t)event->ptr;
  struct race_block *block = calloc(1, sizeof *block);
  if (!block) return;
  block->by_address = (struct key_tree_node){.major = start, .minor = event->bytes};
  block->resource = race_memory_name(event->resource);
  block->owner = event->owner;
  block->allocated = *use;
  if (checks_written && !race_remains_is_shared(start)) race_unwritten_add(&block->unwritten, 0, event->bytes);
  race_memory_displace(block);
  race_remains_cut(start, event->bytes, race_memory_inherit, &(struct placement){block, line});
  key_tree_insert(&blocks, &block->by_address);
}

/* ---- Free ---- */

static struct race_block *race_memory_at(const void *ptr)
{
  return (struct race_block *)key_tree_at(blocks, (uintptr_t)ptr);
}

struct race_block *race_memory_free(const void *ptr, const struct race_line *line, const struct race_use *use,
                                    bool remembers)
{
  struct race_block *block = race_memory_at(ptr);
  if (!block) return NULL;
  uintptr_t start = block->by_address.major, bytes = block->by_address.minor;
  uint32_t first = race_works_find_unordered(&block->work, line, NULL);
  const struct race_use *unordered = first < block->work.count ? &block->work.items[first].use : NULL;
  if (!unordered && remembers && !race_order_is_before(block->allocated.point, line)) unordered = &block->allocated;
  block->unordered = unordered ? unordered->site : (struct race_site){NULL, NULL, 0, 0};
  key_tree_remove(&blocks, &block->by_address);
  if (!remembers || !race_remains_is_given(start)) return block;
  const struct race_remains remains = {
      .freed = *use, .block = start, .block_bytes = bytes, .resource = block->resource};
  race_remains_add(&remains, start, bytes);
  return block;
}

void race_memory_undo_free(struct race_block *block)
{
  uintptr_t start = block->by_address.major, bytes = block->by_address.minor;
  race_remains_cut(start, bytes, NULL, NULL);
  if (key_tree_overlapping(blocks, start, bytes))
    race_memory_discard(block);
  else
    key_tree_insert(&blocks, &block->by_address);
}

void race_memory_end_free(struct race_block *block, const struct race_site *site)
{
  if (block->unordered.call)
    race_memory_report(RACE_FREE_IN_USE, block, block->by_address.major, block->by_address.minor, site,
                       &block->unordered);
  race_memory_discard(block);
}

static void race_memory_report_remains(enum race_kind kind, const struct race_remains *remains, uintptr_t start,
                                       size_t bytes, const struct race_site *now)
{
  race_report_add(&(struct race_finding){.kind = kind,
                                         .start = start,
                                         .bytes = bytes,
                                         .block = remains->block,
                                         .block_bytes = remains->block_bytes,
                                         .resource = remains->resource,
                                         .now = *now,
                                         .before = remains->freed.site});
}

void race_memory_free_again(const void *ptr, const struct race_site *site, bool is_refused)
{
  uintptr_t start = (uintptr_t)ptr;
  const struct race_remains *remains = race_remains_in(start, 1);
  if (remains && remains->block == start && (is_refused || !remains->is_returned))
    race_memory_report_remains(RACE_DOUBLE_FREE, remains, start, remains->block_bytes, site);
}

/* ---- Work ---- */

/* A range of work, as far as it lies in a block. */
struct touched {
  struct race_block *block; /* NULL: in none */
  size_t start, end;        /* offsets */
};

static const struct race_site *race_memory_site(struct race_use *use)
{
  if (!use->site.trace) use->site.trace = race_report_trace();
  return &use->site;
}

/* Work outside of blocks: on freed memory, or on memory that the detector does not know. */
static void race_memory_work_outside(uintptr_t start, size_t bytes, struct race_use *use)
{
  const struct race_remains *remains = race_remains_in(start, bytes);
  if (remains && !remains->is_returned)
    race_memory_report_remains(RACE_USE_AFTER_FREE, remains, start, bytes, race_memory_site(use));
}

/* The work must be ordered after the allocation, and after other work on the same bytes. What was reported counts as
 * ordered: the next call of the program would say the same again. */
static void race_memory_check_order(const struct race_line *line, struct race_block *block,
                                    const struct race_work *work)
{
  uintptr_t start = (uintptr_t)work->range.start;
  if (!race_order_is_before(block->allocated.point, line)) {
    race_memory_report(RACE_EARLY_USE, block, start, work->range.bytes, &work->use.site, &block->allocated.site);
    block->allocated.point.tick = 0;
  }
  uint32_t first = race_works_find_unordered(&block->work, line, work);
  if (first == block->work.count) return;
  race_memory_report(RACE_UNORDERED, block, start, work->range.bytes, &work->use.site,
                     &block->work.items[first].use.site);
  race_works_remove(&block->work, first);
}

static struct touched race_memory_touch(const struct race_line *line, struct race_use *use, struct race_access access,
                                        bool writes)
{
  uintptr_t start = (uintptr_t)access.start;
  struct race_block *block = access.bytes ? (struct race_block *)key_tree_holding(blocks, start) : NULL;
  if (access.bytes && !block) race_memory_work_outside(start, access.bytes, use);
  if (!block) return (struct touched){NULL, 0, 0};
  size_t offset = start - block->by_address.major, room = block->by_address.minor - offset;
  const struct race_site *site = race_memory_site(use);
  if (access.bytes > room) race_memory_report(RACE_PAST_END, block, start, access.bytes, site, &block->allocated.site);
  const struct race_work work = {*use, access, writes};
  race_memory_check_order(line, block, &work);
  race_works_add(&block->work, &work, line);
  return (struct touched){block, offset, offset + (access.bytes < room ? access.bytes : room)};
}

/* The bytes of `to` were written as far as those of `from` were: a copy within the device reads nothing out. */
static void race_memory_copy_unwritten(const struct touched *to, const struct touched *from)
{
  struct race_part part;
  if (!to->block) return;
  race_unwritten_remove(&to->block->unwritten, to->start, to->end);
  if (!from->block || to->block == from->block) return;
  for (size_t at = from->start; race_unwritten_find(&from->block->unwritten, at, from->end, &part); at = part.end) {
    size_t start = to->start + (part.start - from->start), end = to->start + (part.end - from->start);
    race_unwritten_add(&to->block->unwritten, start, end < to->end ? end : to->end);
  }
}

void race_memory_work(const struct race_line *line, struct race_use *use, struct race_access to,
                      struct race_access from)
{
  struct race_part part;
  const struct touched source = race_memory_touch(line, use, from, false);
  const struct touched target = race_memory_touch(line, use, to, true);
  bool is_read_out = to.bytes && !target.block && !race_remains_is_given((uintptr_t)to.start);
  if (is_read_out && source.block && race_unwritten_find(&source.block->unwritten, source.start, source.end, &part))
    race_memory_report(RACE_NEVER_WRITTEN, source.block, source.block->by_address.major + part.start,
                       part.end - part.start, race_memory_site(use), &source.block->allocated.site);
  race_memory_copy_unwritten(&target, &source);
}

/* ---- What ends without a free ---- */

void race_memory_forget_owner(const void *owner)
{
  struct key_tree_node *next = key_tree_at_least(blocks, 0, 0);
  while (next) {
    struct race_block *block = (struct race_block *)next;
    next = key_tree_next(blocks, next);
    if (block->owner != owner) continue;
    key_tree_remove(&blocks, &block->by_address);
    race_memory_discard(block);
  }
}

static void race_memory_forget(uintptr_t start, size_t bytes)
{
  struct race_block *block;
  while ((block = (struct race_block *)key_tree_overlapping(blocks, start, bytes))) {
    key_tree_remove(&blocks, &block->by_address);
    race_memory_discard(block);
  }
}

void race_memory_driver_gave(uintptr_t start, size_t bytes)
{
  race_memory_forget(start, bytes);
  race_remains_driver_gave(start, bytes);
}

void race_memory_driver_took(uintptr_t start, size_t bytes)
{
  race_memory_forget(start, bytes);
  race_remains_driver_took(start, bytes);
}

void race_memory_share(uintptr_t start, size_t bytes)
{
  struct key_tree_node *node = key_tree_overlapping(blocks, start, bytes);
  for (; node && node->major < start + bytes; node = key_tree_next(blocks, node))
    race_unwritten_clear(&((struct race_block *)node)->unwritten);
  race_remains_share(start, bytes);
}
