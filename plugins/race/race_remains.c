/* SPDX-License-Identifier: MIT */
/* race_remains.c: see race_memory.h. Called by race_memory.c. The oldest remains are forgotten where there are very
 * many, so that memory is bounded. */
#include "race_memory.h"

#include <stdlib.h>

enum { REMAINS_MOST = 1 << 17 };

/* A range that the runtime has given. */
struct race_given {
  struct key_tree_node by_address;
  bool is_shared; /* with another process */
};

static struct key_tree_node *remains_by_address, *given;
static struct race_remains *oldest, *newest;
static size_t n_remains;

/* ---- Remains ---- */

static void race_remains_insert(const struct race_remains *model, uintptr_t start, uintptr_t end)
{
  struct race_remains *remains = start < end ? malloc(sizeof *remains) : NULL;
  if (!remains) return;
  *remains = *model;
  remains->by_address = (struct key_tree_node){.major = start, .minor = end - start};
  remains->older = newest;
  remains->newer = NULL;
  *(newest ? &newest->newer : &oldest) = remains;
  newest = remains;
  key_tree_insert(&remains_by_address, &remains->by_address);
  n_remains++;
}

static void race_remains_extract(struct race_remains *remains)
{
  *(remains->older ? &remains->older->newer : &oldest) = remains->newer;
  *(remains->newer ? &remains->newer->older : &newest) = remains->older;
  key_tree_remove(&remains_by_address, &remains->by_address);
  n_remains--;
}

void race_remains_cut(uintptr_t start, size_t bytes, void (*visit)(void *closure, const struct race_remains *remains),
                      void *closure)
{
  struct race_remains *remains;
  while ((remains = (struct race_remains *)key_tree_overlapping(remains_by_address, start, bytes))) {
    uintptr_t first = remains->by_address.major, end = first + remains->by_address.minor;
    if (visit) visit(closure, remains);
    race_remains_extract(remains);
    if (first < start) race_remains_insert(remains, first, start);
    if (end > start + bytes) race_remains_insert(remains, start + bytes, end);
    free(remains);
  }
}

void race_remains_add(const struct race_remains *model, uintptr_t start, size_t bytes)
{
  race_remains_cut(start, bytes, NULL, NULL);
  race_remains_insert(model, start, start + bytes);
  while (n_remains > REMAINS_MOST) { /* what was cut before may have become two parts each time */
    struct race_remains *first = oldest;
    race_remains_extract(first);
    free(first);
  }
}

const struct race_remains *race_remains_in(uintptr_t start, size_t bytes)
{
  return (const struct race_remains *)key_tree_overlapping(remains_by_address, start, bytes);
}

/* ---- What the runtime has given ---- */

static void race_remains_insert_given(uintptr_t start, uintptr_t end, bool is_shared)
{
  struct race_given *range = start < end ? malloc(sizeof *range) : NULL;
  if (!range) return;
  *range = (struct race_given){{.major = start, .minor = end - start}, is_shared};
  key_tree_insert(&given, &range->by_address);
}

static void race_remains_cut_given(uintptr_t start, size_t bytes)
{
  struct key_tree_node *node;
  while ((node = key_tree_overlapping(given, start, bytes))) {
    uintptr_t first = node->major, end = first + node->minor;
    bool is_shared = ((struct race_given *)node)->is_shared;
    key_tree_remove(&given, node);
    free(node);
    if (first < start) race_remains_insert_given(first, start, is_shared);
    if (end > start + bytes) race_remains_insert_given(start + bytes, end, is_shared);
  }
}

void race_remains_driver_gave(uintptr_t start, size_t bytes)
{
  race_remains_cut(start, bytes, NULL, NULL);
  race_remains_cut_given(start, bytes);
  race_remains_insert_given(start, start + bytes, false);
}

void race_remains_share(uintptr_t start, size_t bytes)
{
  race_remains_cut_given(start, bytes);
  race_remains_insert_given(start, start + bytes, true);
}

bool race_remains_is_shared(uintptr_t address)
{
  const struct race_given *range = (const struct race_given *)key_tree_holding(given, address);
  return range && range->is_shared;
}

void race_remains_driver_took(uintptr_t start, size_t bytes)
{
  struct key_tree_node *node = key_tree_overlapping(remains_by_address, start, bytes);
  for (; node && node->major < start + bytes; node = key_tree_next(remains_by_address, node))
    ((struct race_remains *)node)->is_returned = true;
  race_remains_cut_given(start, bytes);
}

bool race_remains_is_given(uintptr_t address)
{
  return key_tree_holding(given, address) != NULL;
}

size_t race_remains_given_bytes(uintptr_t start)
{
  const struct key_tree_node *node = key_tree_at(given, start);
  return node ? node->minor : 0;
}
