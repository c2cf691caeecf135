/* SPDX-License-Identifier: MIT */
/* torch_waiting.c: blocks that PyTorch freed while further streams had work on them, until the resource gets them. Called by
 * torch.c and torch_pools.c; never calls a resource under the lock. */
#include "../base/deadline.h"
#include "../runtime/hip.h"
#include "torch_pools.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken after the lock of torch_pools.c */
static struct cached *waiting, **last = &waiting;        /* the first that was freed comes first */
static unsigned generation;                              /* of the table of devices that the blocks are of */

/* Blocks of stacks that are gone are dropped at the first call after that. */
static void torch_waiting_lock(void)
{
  pthread_mutex_lock(&lock);
  unsigned now = atomic_load(&device_table_generation);
  while (generation != now && waiting) {
    struct cached *cached = waiting;
    waiting = cached->next;
    torch_uses_free(cached->uses);
    free(cached);
  }
  if (generation != now) last = &waiting;
  generation = now;
}

static bool torch_waiting_is_captured(const struct cached *block)
{
  bool is_captured = hip_is_captured(block->device, block->stream);
  for (const struct torch_use *use = block->uses; use && !is_captured; use = use->next)
    is_captured = hip_is_captured(use->device, use->stream);
  return is_captured;
}

/* ---- Giving up ---- */

void torch_cached_free(struct framework_device *device, struct cached *block)
{
  torch_block_remove(block->ptr);
  torch_uses_settle(block->uses, block->device, block->stream);
  framework_free(device, block->ptr, block->bytes, block->stream);
  free(block);
}

/* The streams on which work was found that is not over: later blocks of theirs wait, too. */
struct busy {
  hipmm_stream_t streams[4];
  unsigned n;
};

static bool torch_waiting_is_busy(const struct busy *busy, hipmm_stream_t stream)
{
  unsigned i = 0;
  while (i < busy->n && busy->streams[i] != stream) i++;
  return i < busy->n;
}

/* Whether the resource may have the block; frees the uses whose work is over. */
static bool torch_waiting_may_end(struct cached *block, bool all, struct busy *busy)
{
  bool looks = block->is_recorded && block->uses && !all;
  if (looks && torch_waiting_is_busy(busy, block->uses->stream)) return false;
  if (looks && !torch_uses_are_over(block->uses)) {
    if (busy->n < sizeof busy->streams / sizeof *busy->streams) busy->streams[busy->n++] = block->uses->stream;
    return false;
  }
  if (torch_waiting_is_captured(block)) return false;
  if (!looks) return true;
  torch_uses_free(block->uses);
  block->uses = NULL;
  return true;
}

static struct cached *torch_waiting_take(struct framework_device *device, bool all)
{
  struct cached *taken = NULL, **end = &taken;
  struct busy busy = {.n = 0};
  torch_waiting_lock();
  for (struct cached **link = &waiting; *link;) {
    struct cached *block = *link;
    if (block->device != device->device || !torch_waiting_may_end(block, all, &busy)) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    block->next = NULL;
    *end = block;
    end = &block->next;
    atomic_fetch_sub(&device->n_apart, 1);
  }
  last = &waiting;
  while (*last) last = &(*last)->next;
  pthread_mutex_unlock(&lock);
  return taken;
}

bool torch_waiting_free(struct framework_device *device, bool all)
{
  struct cached *taken = torch_waiting_take(device, all);
  bool any = taken != NULL;
  while (taken) {
    struct cached *block = taken;
    taken = block->next;
    torch_cached_free(device, block);
  }
  return any;
}

/* Before the stacks end. */
static void torch_waiting_end(void)
{
  for (int number = 0; number < STACK_MOST_DEVICES; number++) {
    struct framework_device *device = framework_find(number);
    if (device) torch_waiting_free(device, true);
  }
}

/* Each question is a call of the runtime, and a program that is ahead of its device would ask at each allocation. */
void torch_waiting_look(struct framework_device *device)
{
  enum { PAUSE_NS = 100000 };
  static _Atomic uint64_t looked_ns;
  uint64_t now_ns = monotonic_ns();
  if (now_ns - atomic_load_explicit(&looked_ns, memory_order_relaxed) < PAUSE_NS) return;
  atomic_store_explicit(&looked_ns, now_ns, memory_order_relaxed);
  torch_waiting_free(device, false);
}

void torch_waiting_add(struct framework_device *device, struct cached *block)
{
  block->is_recorded =
      !torch_waiting_is_captured(block) && torch_uses_record(block->uses, block->device, block->stream);
  lifecycle_watch_end(torch_waiting_end);
  torch_waiting_lock();
  *last = block;
  last = &block->next;
  atomic_fetch_add(&device->n_apart, 1);
  pthread_mutex_unlock(&lock);
}

/* ---- Streams that end ---- */

bool torch_cached_end_stream(struct cached *list, int device, hipmm_stream_t stream, bool forgets)
{
  bool any = false;
  for (struct cached *block = list; block; block = block->next) {
    bool is_own = block->device == device && block->stream == stream;
    if (is_own && forgets) block->stream = NULL;
    any = torch_uses_have(&block->uses, stream, forgets) || is_own || any;
  }
  return any;
}

bool torch_waiting_end_stream(int device, hipmm_stream_t stream, bool forgets)
{
  torch_waiting_lock();
  bool any = torch_cached_end_stream(waiting, device, stream, forgets);
  pthread_mutex_unlock(&lock);
  return any;
}
