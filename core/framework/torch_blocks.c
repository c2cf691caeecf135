/* SPDX-License-Identifier: MIT */
/* torch_blocks.c: notes of single blocks. Called by the hooks of torch.c; never on the path of a block without a
 * note. */
#include "torch_blocks.h"
#include "../base/block_map.h"
#include "../base/log.h"
#include "../runtime/hip.h"
#include "../stream/stream.h"

#include <stdlib.h>

atomic_ushort torch_marks[TORCH_MARKS];
atomic_uint torch_marks_all;

_Static_assert(TORCH_MARKS == 1 << (64 - 52), "torch_mark_of() takes 12 bits");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* From a block's pointer to its note, whose address stands where a block_map keeps sizes. */
static struct block_map notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool incomplete; /* a use could not be noted, of a block that nobody can name any more */

static void torch_blocks_mark(const void *ptr)
{
  atomic_fetch_add(&torch_marks[torch_mark_of(ptr)], 1);
  atomic_fetch_add(&torch_marks_all, 1);
}

static void torch_blocks_unmark(const void *ptr)
{
  atomic_fetch_sub(&torch_marks_all, 1);
  atomic_fetch_sub(&torch_marks[torch_mark_of(ptr)], 1);
}

static struct torch_block *torch_blocks_find(void *ptr)
{
  struct hipmm_block block;
  return block_map_find(&notes, ptr, &block) ? (struct torch_block *)block.bytes : NULL;
}

static struct torch_block *torch_blocks_find_or_add(void *ptr)
{
  struct torch_block *note = torch_blocks_find(ptr);
  if (note) return note;
  note = calloc(1, sizeof *note);
  if (note && block_map_insert(&notes, ptr, (size_t)note)) {
    torch_blocks_mark(ptr);
    return note;
  }
  free(note);
  return NULL;
}

static bool torch_blocks_add_use(struct torch_block *note, hipStream_t stream, int device)
{
  for (const struct torch_use *use = note->uses; use; use = use->next)
    if (use->stream == stream && use->device == device) return true;
  struct torch_use *use = malloc(sizeof *use);
  if (!use) return false;
  *use = (struct torch_use){stream, device, note->uses};
  note->uses = use;
  return true;
}

/* The mark is never taken off again, so the block is looked at when it is freed. */
static void torch_blocks_give_up(void *ptr)
{
  if (!atomic_exchange(&incomplete, true))
    log_line(HIPMM_LOG_WARNING, "torch",
             "no host memory to note which streams use a block; some frees wait for the "
             "device from now on");
  torch_blocks_mark(ptr);
}

void torch_block_use(void *ptr, hipStream_t stream, int device)
{
  pthread_mutex_lock(&lock);
  struct torch_block *note = torch_blocks_find_or_add(ptr);
  if (!note || !torch_blocks_add_use(note, stream, device)) torch_blocks_give_up(ptr);
  pthread_mutex_unlock(&lock);
}

bool torch_block_pool(void *ptr, struct torch_pool *pool, bool kept)
{
  pthread_mutex_lock(&lock);
  struct torch_block *note = torch_blocks_find_or_add(ptr);
  if (note) note->pool = pool;
  if (note) note->kept = kept;
  pthread_mutex_unlock(&lock);
  return note;
}

struct torch_block torch_blocks_take(void *ptr)
{
  struct torch_block taken = {.pool = NULL};
  struct hipmm_block block;
  pthread_mutex_lock(&lock);
  struct torch_block *note = block_map_remove(&notes, ptr, 0, &block) ? NULL : (struct torch_block *)block.bytes;
  if (note) torch_blocks_unmark(ptr);
  pthread_mutex_unlock(&lock);
  if (note) taken = *note;
  free(note);
  return taken;
}

void torch_drop_uses(struct torch_use *uses)
{
  while (uses) {
    struct torch_use *use = uses;
    uses = use->next;
    free(use);
  }
}

void torch_blocks_forget(void)
{
  struct hipmm_block block;
  pthread_mutex_lock(&lock);
  while (block_map_remove_any(&notes, &block)) {
    struct torch_block *note = (struct torch_block *)block.bytes;
    torch_blocks_unmark(block.ptr);
    torch_drop_uses(note->uses);
    free(note);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- Waiting ---- */

static void torch_blocks_wait_for_device(int device)
{
  int previous = hip_enter_device(device);
  hip_table()->DeviceSynchronize();
  hip_leave_device(device, previous);
}

void torch_settle(struct torch_use *uses, int device, hipStream_t stream)
{
  for (const struct torch_use *use = uses; use; use = use->next) {
    if (use->stream == stream && use->device == device) continue;
    if (stream_order(device, stream, use->device, use->stream)) torch_blocks_wait_for_device(use->device);
  }
  if (atomic_load_explicit(&incomplete, memory_order_relaxed)) torch_blocks_wait_for_device(device);
  torch_drop_uses(uses);
}
