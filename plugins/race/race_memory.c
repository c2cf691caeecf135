/* SPDX-License-Identifier: MIT */
/* race_memory.c: see race_memory.h. Called by race_detector.c.
 *
 * A block has the last work of each stream on it, and the earlier frees in its place that some stream is not ordered
 * after. A free reports the work that it is not ordered after. From then on the free stands for all work on the
 * block. So a block costs one record for each stream that uses it, and a new block is checked against one point for
 * each freed block in its place. */
#include "race_memory.h"

#include <stdlib.h>
#include <string.h>

/* One for each stream; without host memory some are missing. */
struct race_uses {
  struct race_use *items;
  uint32_t count, capacity;
};

struct race_block {
  struct key_tree_node by_address;
  const char *resource;
  const void *owner;
  struct race_use allocated;
  struct race_uses work, before;   /* frees of blocks that were in its place */
  struct race_unwritten unwritten; /* nothing, if that is not checked */
  struct race_site unordered;      /* work that its free is not ordered after, if it has a call */
};

static struct key_tree_node *blocks;

/* ---- Parts ---- */

/* Replaces an earlier one of the same stream. */
static void race_uses_put(struct race_uses *uses, const struct race_use *use)
{
  for (uint32_t i = 0; i < uses->count; i++) {
    if (uses->items[i].point.stream != use->point.stream) continue;
    if (uses->items[i].point.tick < use->point.tick) uses->items[i] = *use;
    return;
  }
  if (uses->count == uses->capacity) {
    uint32_t capacity = uses->capacity ? 2 * uses->capacity : 1;
    struct race_use *items = realloc(uses->items, capacity * sizeof *items);
    if (!items) return;
    uses->items = items;
    uses->capacity = capacity;
  }
  uses->items[uses->count++] = *use;
}

/* The first that the next work of the line is not ordered after; NULL if there is none. */
static const struct race_use *race_uses_find_unordered(const struct race_uses *uses, const struct race_line *line)
{
  for (uint32_t i = 0; i < uses->count; i++)
    if (!race_order_is_before(uses->items[i].point, line)) return &uses->items[i];
  return NULL;
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
  free(block->before.items);
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
 * streams are checked when they use the block. */
static void race_memory_inherit(void *closure, const struct race_remains *remains)
{
  const struct placement *placement = closure;
  struct race_block *block = placement->block;
  if (remains->is_returned || race_order_is_over(remains->freed.point)) return;
  if (race_order_is_before(remains->freed.point, placement->line)) {
    race_uses_put(&block->before, &remains->freed);
    return;
  }
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
  const struct race_use *unordered = race_uses_find_unordered(&block->work, line);
  if (!unordered) unordered = race_uses_find_unordered(&block->before, line);
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

static struct touched race_memory_touch(const struct race_line *line, struct race_use *use, struct race_access access)
{
  uintptr_t start = (uintptr_t)access.start;
  struct race_block *block = access.bytes ? (struct race_block *)key_tree_holding(blocks, start) : NULL;
  if (access.bytes && !block) race_memory_work_outside(start, access.bytes, use);
  if (!block) return (struct touched){NULL, 0, 0};
  size_t offset = start - block->by_address.major, room = block->by_address.minor - offset;
  const struct race_site *site = race_memory_site(use);
  if (access.bytes > room) race_memory_report(RACE_PAST_END, block, start, access.bytes, site, &block->allocated.site);
  const struct race_use *before = race_uses_find_unordered(&block->before, line);
  if (before) race_memory_report(RACE_EARLY_USE, block, start, access.bytes, site, &before->site);
  race_uses_put(&block->work, use);
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
  const struct touched source = race_memory_touch(line, use, from), target = race_memory_touch(line, use, to);
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
