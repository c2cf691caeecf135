/* SPDX-License-Identifier: MIT */
/* interleave_use.h: what two threads do with a sub-allocator while interleave.h explores it, each with its own places for blocks, or with
 * the other's; and how it ends. For test_interleave_pool.c and test_interleave_fixed.c. */
#ifndef HIPMM_TESTS_EXPLORE_INTERLEAVE_USE_H
#define HIPMM_TESTS_EXPLORE_INTERLEAVE_USE_H

#include "interleave.h"
#include "interleave_device.h"

#include <string.h>

enum { SMALL = 512, FIRST = 0, SECOND = 1 };

static const hipmm_stream_t other_stream = (hipmm_stream_t)0x1000;

static const struct hipmm_plugin *plugin;
static void *resource;

/* A block that both threads free, how many frees of it were not refused, and the block that came next. */
static void *shared_block, *next_block;
static int n_frees;

/* ---- What threads do ---- */

static inline bool try_get(unsigned place, size_t bytes, hipmm_stream_t stream)
{
  void *ptr = NULL;
  if (plugin->ops->allocate(resource, bytes, HIPMM_ALIGNMENT, stream, &ptr)) return false;
  if (!device_keep(place, ptr, bytes)) interleave_note("memory is given out twice");
  return true;
}

static inline void get(unsigned place, size_t bytes, hipmm_stream_t stream)
{
  if (!try_get(place, bytes, stream)) interleave_note("an allocation fails");
}

static inline void give(unsigned place, hipmm_stream_t stream)
{
  size_t bytes;
  void *ptr = device_take(place, &bytes);
  if (ptr && plugin->ops->deallocate(resource, ptr, bytes, HIPMM_ALIGNMENT, stream))
    interleave_note("a free is refused");
}

static inline int64_t value(const char *name)
{
  int64_t value = -1;
  for (uint32_t i = 0; i < plugin->n_values; i++)
    if (!strcmp(plugin->values[i].name, name)) plugin->ops->query(resource, i, &value);
  return value;
}

static inline void use_small(void)
{
  get(4u + (unsigned)interleave_self(), SMALL, NULL);
  give(4u + (unsigned)interleave_self(), NULL);
}

static inline void use_small_twice(void)
{
  use_small();
  use_small();
}

static inline void use_other_stream(void)
{
  get(6, SMALL, other_stream);
  give(6, other_stream);
}

static inline void trim(void)
{
  if (plugin->ops->trim(resource, 0)) interleave_note("a trim fails");
}

static inline void retire(void)
{
  plugin->ops->stream_retire(resource, other_stream);
}

/* What the other thread may do meanwhile changes the count by one. */
static inline void count(void)
{
  int64_t live = value("live_count");
  if (live < 0 || live > 1) interleave_note("the count of live blocks is wrong");
}

static inline void give_first(void)
{
  give(FIRST, NULL);
}

static inline void give_first_and_get(void)
{
  give(FIRST, NULL);
  get(10, SMALL, NULL);
}

static inline void give_second_and_get(void)
{
  give(SECOND, NULL);
  get(11, SMALL, NULL);
}

/* The same block as the other thread. */
static inline void free_shared(void)
{
  if (!plugin->ops->deallocate(resource, shared_block, SMALL, HIPMM_ALIGNMENT, NULL))
    __atomic_fetch_add(&n_frees, 1, __ATOMIC_RELAXED);
}

/* The block is freed, and its memory may be another block's at once, which a second free may hit. */
static inline void free_shared_and_get(void)
{
  void *ptr = NULL;
  free_shared();
  if (plugin->ops->allocate(resource, SMALL, HIPMM_ALIGNMENT, NULL, &ptr)) interleave_note("an allocation fails");
  next_block = ptr;
}

static inline void get_first(void)
{
  get((unsigned)interleave_self(), SMALL, NULL);
}

static inline void retain_and_use(void)
{
  plugin->ops->stream_retain(resource, other_stream);
  use_other_stream();
}

/* ---- How it ends ---- */

/* Frees all, as a program does at its end. */
static inline void end(void)
{
  unsigned live = device_live_count();
  if (value("live_count") != (int64_t)live) interleave_note("the count of live blocks is wrong in the end");
  for (unsigned place = 0; place < DEVICE_BLOCKS; place++) give(place, NULL);
  if (value("live_count") || value("live_bytes")) interleave_note("blocks are counted that are freed");
  trim();
  if (device_held_bytes()) interleave_note("the upstream has not everything back after a trim");
  plugin->destroy(resource);
  if (device_held_bytes()) interleave_note("the upstream has not everything back");
  if (device_host_bytes()) interleave_note("host memory is lost");
}

static inline void end_with_one_free(void)
{
  if (n_frees != 1) interleave_note("a block is not freed once");
  end();
}

/* A second free that is not refused has freed the block that came next. */
static inline void end_with_next_block(void)
{
  if (n_frees < 1 || n_frees > 2) interleave_note("a block is not freed once");
  if (n_frees == 1 && !device_keep(15, next_block, SMALL)) interleave_note("memory is given out twice");
  end();
}

#endif
