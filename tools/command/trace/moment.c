/* SPDX-License-Identifier: MIT */
/* moment.c: see moment.h. */
#include "moment.h"
#include "../cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t moment_curve(const struct blocks *blocks, const enum moment_key *by, uint64_t key, uint64_t *curve)
{
  uint32_t peak = 0;
  memset(curve, 0, blocks->n_events * sizeof *curve);
  for (size_t i = 0; i < blocks->n; i++) { /* differences at first */
    const struct block *block = &blocks->items[i];
    if (by && moment_key_of(blocks, block, *by) != key) continue;
    uint64_t bytes = by && *by == MOMENT_BY_STACK ? blocks_stack_bytes(blocks, block) : block->bytes;
    curve[block->from] += bytes;
    if (block->to != BLOCK_IS_LIVE) curve[block->to] -= bytes;
  }
  for (size_t event = 1; event < blocks->n_events; event++) {
    curve[event] += curve[event - 1];
    if (curve[event] > curve[peak]) peak = (uint32_t)event;
  }
  return peak;
}

static int moment_compare_keys(const void *one, const void *other)
{
  const struct moment_group *a = one, *b = other;
  return a->key < b->key ? -1 : a->key > b->key;
}

/* Of equal sizes the one with the smaller key, so that the order does not depend on qsort(). */
static int moment_compare_bytes(const void *one, const void *other)
{
  const struct moment_group *a = one, *b = other;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return moment_compare_keys(one, other);
}

bool moment_group(const struct blocks *blocks, struct moment moment, enum moment_key by, struct moment_groups *out)
{
  size_t n = 0, groups = 0;
  *out = (struct moment_groups){0};
  for (size_t i = 0; i < blocks->n; i++) n += moment_has(&moment, &blocks->items[i]);
  struct moment_group *items = calloc(n + 1, sizeof *items);
  if (!items) return false;
  for (size_t i = 0; i < blocks->n; i++) {
    const struct block *block = &blocks->items[i];
    if (!moment_has(&moment, block)) continue;
    bool by_stack = by == MOMENT_BY_STACK;
    items[out->blocks++] =
        (struct moment_group){moment_key_of(blocks, block, by), by_stack ? blocks_stack_blocks(blocks, block) : 1,
                              by_stack ? blocks_stack_bytes(blocks, block) : block->bytes};
    out->bytes += block->bytes;
  }
  qsort(items, n, sizeof *items, moment_compare_keys);
  for (size_t i = 0; i < n; i++) {
    if (groups && items[groups - 1].key == items[i].key) {
      items[groups - 1].blocks += items[i].blocks;
      items[groups - 1].bytes += items[i].bytes;
    } else {
      items[groups++] = items[i];
    }
  }
  qsort(items, groups, sizeof *items, moment_compare_bytes);
  while (groups && !items[groups - 1].blocks) groups--; /* stacks stand for them */
  out->items = items;
  out->n = groups;
  return true;
}

static json_t *moment_group_json(const struct blocks *blocks, const struct moment_group *group, enum moment_key by)
{
  char text[BLOCKS_STACK_NAME_BYTES];
  json_t *object = json_pack("{s:I, s:I}", "blocks", (json_int_t)group->blocks, "bytes", (json_int_t)group->bytes);
  switch (by) {
  case MOMENT_BY_STREAM:
    if (group->key < blocks->streams.n)
      snprintf(text, sizeof text, "%#" PRIx64, blocks->streams.values[group->key]);
    else
      snprintf(text, sizeof text, "others");
    json_object_set_new(object, "stream", json_string(text));
    break;
  case MOMENT_BY_THREAD:
    json_object_set_new(object, "thread",
                        group->key < blocks->threads.n ? json_integer((json_int_t)blocks->threads.values[group->key])
                                                       : json_string("others"));
    break;
  case MOMENT_BY_STACK:
    blocks_stack_name(blocks, (uint32_t)group->key, text, sizeof text);
    json_object_set_new(object, "stack", json_integer((json_int_t)group->key));
    json_object_set_new(object, "name", output_json_string(text));
    break;
  case MOMENT_BY_TAG:
    json_object_set_new(object, "tag", output_json_string(blocks_tag_name(blocks, (uint32_t)group->key)));
    break;
  default: json_object_set_new(object, "size", json_integer((json_int_t)group->key)); break;
  }
  return object;
}

json_t *moment_groups_json(const struct blocks *blocks, const struct moment_groups *groups, enum moment_key by,
                           size_t most)
{
  json_t *array = json_array();
  for (size_t i = 0; i < groups->n && i < most; i++)
    json_array_append_new(array, moment_group_json(blocks, &groups->items[i], by));
  return array;
}
