/* SPDX-License-Identifier: MIT */
/* reuse.c: see reuse.h. A block is searched in this order: ready blocks, blocks whose work has completed, a block of a
 * stream that can be waited for, all blocks after waiting for the device, a new chunk. */
#include "reuse.h"

enum { MOST_POLLS = 64 };

/* ---- Blocks that are ready for every stream ---- */

struct fixed_chain *reuse_ready(const struct fixed *fixed)
{
  return &fixed->lists[STREAM_READY].free;
}

/* Empties the chain and returns its blocks. */
static struct fixed_chain chain_detach(struct fixed_chain *chain)
{
  struct fixed_chain taken = *chain;
  *chain = (struct fixed_chain){0};
  return taken;
}

void reuse_add_ready(struct fixed *fixed, struct fixed_chain chain)
{
  *reuse_ready(fixed) = chain_join(fixed, chain, *reuse_ready(fixed));
}

/* ---- Waiting for the device ---- */

/* Takes a snapshot of the free blocks of all streams: the wait does not cover blocks that are freed from now on. */
static void reuse_take_snapshot(struct fixed *fixed)
{
  for (uint32_t stream = 0; (stream = stream_set_next(&fixed->filled, stream)) < MAX_STREAMS; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    spin_lock(&list->busy);
    list->snapshot = chain_detach(&list->free);
    list->snapshot_frees = stream_of(&fixed->streams, stream)->frees;
    spin_unlock(&list->busy);
  }
}

static void reuse_put_back(struct fixed *fixed)
{
  for (uint32_t stream = 0; (stream = stream_set_next(&fixed->filled, stream)) < MAX_STREAMS; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    spin_lock(&list->busy);
    list->free = chain_join(fixed, list->free, chain_detach(&list->snapshot));
    spin_unlock(&list->busy);
  }
}

/* Closes the list if it is empty: the next free on its stream takes the lock, and opens it again. */
static bool reuse_close_empty(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  bool is_empty = list->free.head == FIXED_NONE;
  if (is_empty) list->is_open = false;
  spin_unlock(&list->busy);
  if (!is_empty) return false;
  stream_set_remove(&fixed->filled, stream);
  stream_set_remove(&fixed->with_event, stream);
  return true;
}

/* Frees on a stream outside `filled` are counted under the lock, which was held during the wait. Leaves the streams that
 * have freed since in `filled` and `unfinished`, so that the next wait takes as many steps as streams have freed by
 * then. */
static void reuse_complete_snapshot(struct fixed *fixed)
{
  struct stream_set *unfinished = &fixed->streams.sets->unfinished;
  for (uint32_t stream = 0; (stream = stream_set_next(unfinished, stream)) < MAX_STREAMS; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    struct stream *waited = stream_of(&fixed->streams, stream);
    bool is_filled = stream_set_has(&fixed->filled, stream);
    uint64_t frees = is_filled ? list->snapshot_frees : waited->frees;
    if (waited->completed < frees) waited->completed = frees;
    if (waited->recorded < frees) waited->recorded = frees;
    if (is_filled) reuse_add_ready(fixed, chain_detach(&list->snapshot));
    bool is_closed = !is_filled || reuse_close_empty(fixed, stream);
    if (is_closed && waited->completed == waited->frees) stream_set_remove(unfinished, stream);
  }
  streams_forget_gone(&fixed->streams);
}

enum hipmm_status reuse_synchronize_device(struct fixed *fixed, uint32_t user)
{
  reuse_take_snapshot(fixed);
  enum hipmm_status status = streams_wait_for_device(&fixed->streams, user);
  if (status)
    reuse_put_back(fixed);
  else
    reuse_complete_snapshot(fixed);
  return status;
}

/* ---- Streams ---- */

/* Does nothing if the list of the stream has blocks. */
static void reuse_forget_stream(struct fixed *fixed, uint32_t stream)
{
  if (reuse_close_empty(fixed, stream)) stream_forget(&fixed->streams, stream);
}

/* A thread finds a list by the handle of its stream alone, which may be the handle of an earlier stream. The list is
 * therefore open to threads only if the handle identifies the stream without asking HIP. */
static void reuse_open_list(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  const struct streams *streams = &fixed->streams;
  const struct stream *opened = stream_of(streams, stream);
  bool is_open = streams->record != RECORD_ON_FREE && stream_has_stable_handle(streams, stream);
  stream_set_add(&fixed->filled, stream);
  stream_set_add(&streams->sets->unfinished, stream); /* frees through the open list do not add it */
  if (stream_may_be_waited_for(streams, stream)) stream_set_add(&fixed->with_event, stream);
  spin_lock(&list->busy);
  list->is_open = is_open;
  list->handle = opened->handle;
  list->thread = opened->thread;
  spin_unlock(&list->busy);
  if (is_open) thread_remember(fixed->serial, opened->handle, list);
}

/* If the table of streams is full, waits for the device and forgets all streams. */
enum hipmm_status reuse_enter_stream(struct fixed *fixed, hipmm_stream_t handle, uint32_t *id_out)
{
  struct streams *streams = &fixed->streams;
  uint32_t id;
  enum hipmm_status status = streams_enter(streams, handle, &id);
  if (!status && !id) {
    status = reuse_synchronize_device(fixed, STREAM_READY);
    for (uint32_t other = STREAM_FIRST; !status && other < streams->count; other++) reuse_forget_stream(fixed, other);
    if (!status) status = streams_enter(streams, handle, &id);
  }
  if (status) return status;
  if (!id)
    return fixed->services->refuse(fixed->services, HIPMM_E_LIMIT, "cannot keep more than {0} streams apart",
                                   MAX_STREAMS, 0, 0);
  reuse_open_list(fixed, id);
  *id_out = id;
  return HIPMM_OK;
}

void reuse_retain_stream(struct fixed *fixed, hipmm_stream_t handle)
{
  uint32_t stream;
  if (reuse_enter_stream(fixed, handle, &stream)) return;
  stream_retain(&fixed->streams, stream);
  stream_set_add(&fixed->with_event, stream); /* it is in `filled` now */
}

/* ---- Finding a block ---- */

/* The next stream of the set from `stream` on, other than `user`, that has free blocks; MAX_STREAMS if there is none.
 * Closes empty lists. */
static uint32_t reuse_next_in(struct fixed *fixed, const struct stream_set *set, uint32_t stream, uint32_t user)
{
  while ((stream = stream_set_next(set, stream)) < MAX_STREAMS && (stream == user || reuse_close_empty(fixed, stream)))
    stream++;
  return stream;
}

/* If all frees on another stream have completed, its blocks become ready for every stream. */
static void reuse_poll_stream(struct fixed *fixed, uint32_t other)
{
  struct fixed_list *list = &fixed->lists[other];
  const struct stream *stream = stream_of(&fixed->streams, other);
  spin_lock(&list->busy);
  if (stream_cover(&fixed->streams, other)) {
    stream_poll(&fixed->streams, other);
    if (stream->completed == stream->frees) reuse_add_ready(fixed, chain_detach(&list->free));
  }
  spin_unlock(&list->busy);
}

/* Polls at most MOST_POLLS streams; the next search continues behind them. */
static uint32_t reuse_find_completed(struct fixed *fixed, uint32_t stream)
{
  uint32_t other = fixed->next_poll;
  for (int i = 0; i < MOST_POLLS && (other = reuse_next_in(fixed, &fixed->with_event, other, stream)) < MAX_STREAMS;
       i++)
    reuse_poll_stream(fixed, other++);
  fixed->next_poll = other < MAX_STREAMS ? other : 0;
  return chain_pop(fixed, reuse_ready(fixed));
}

/* Moves one block only, so that the other stream keeps the rest without a wait of its own. */
static uint32_t reuse_find_waiting(struct fixed *fixed, uint32_t stream)
{
  uint32_t number = FIXED_NONE;
  const struct stream_set *set = &fixed->with_event;
  for (uint32_t other = 0; !number && (other = reuse_next_in(fixed, set, other, stream)) < MAX_STREAMS; other++) {
    struct fixed_list *list = &fixed->lists[other];
    spin_lock(&list->busy);
    if (list->free.head && stream_wait(&fixed->streams, stream, other, fixed_block_note(fixed, list->free.head)))
      number = chain_pop(fixed, &list->free);
    spin_unlock(&list->busy);
  }
  return number;
}

/* Blocks of streams whose handles may be gone become ready by waiting for the device, which needs no handle. */
static uint32_t reuse_find_without_event(struct fixed *fixed, uint32_t stream)
{
  bool is_worth_it = reuse_next_in(fixed, &fixed->filled, 0, stream) < MAX_STREAMS;
  return is_worth_it && !reuse_synchronize_device(fixed, stream) ? chain_pop(fixed, reuse_ready(fixed)) : FIXED_NONE;
}

static uint32_t reuse_find_held(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  uint32_t number = chain_pop(fixed, &list->free);
  spin_unlock(&list->busy);
  if (!number) number = chain_pop(fixed, reuse_ready(fixed));
  if (number || fixed->streams.active < 2) return number;
  number = reuse_find_completed(fixed, stream);
  if (!number) number = reuse_find_waiting(fixed, stream);
  return number ? number : reuse_find_without_event(fixed, stream);
}

/* Half of the blocks there are, so that a bin with little use stays small. */
static uint32_t reuse_blocks_to_add(const struct fixed *fixed)
{
  uint64_t n = SIZES_PAGE_BYTES / fixed->block_bytes;
  if (n < fixed->n_blocks / 2) n = fixed->n_blocks / 2;
  if (n > fixed->blocks_per_chunk) n = fixed->blocks_per_chunk;
  return n ? (uint32_t)n : 1;
}

/* The first block of a new chunk; the others go to the list of the stream, as if freed on it now. */
static enum hipmm_status reuse_grow(struct fixed *fixed, uint32_t stream, uint32_t *number_out)
{
  struct fixed_list *list = &fixed->lists[stream];
  struct fixed_chain chain;
  enum hipmm_status status =
      chunks_grow(fixed, reuse_blocks_to_add(fixed), 1, stream_of(&fixed->streams, stream)->handle, &chain);
  if (status) return status;
  spin_lock(&list->busy);
  uint64_t epoch = stream_record_free(&fixed->streams, stream);
  for (uint32_t number = chain.head; number; number = record_of(fixed, number)->next)
    fixed_block_set_note(fixed, number, epoch);
  *number_out = chain_pop(fixed, &chain);
  list->free = chain_join(fixed, chain, list->free);
  spin_unlock(&list->busy);
  return HIPMM_OK;
}

enum hipmm_status reuse_find(struct fixed *fixed, uint32_t stream, uint32_t *number_out)
{
  uint32_t number = reuse_find_held(fixed, stream);
  if (!number) return reuse_grow(fixed, stream, number_out);
  *number_out = number;
  return HIPMM_OK;
}

/* ---- The end of a stream ---- */

void reuse_retire_stream(struct fixed *fixed, uint32_t stream, hipmm_stream_t handle)
{
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  list->is_open = false; /* from now on, every free on the stream takes the lock of `fixed` */
  spin_unlock(&list->busy);
  if (streams_wait_for_handle(fixed->services, handle)) {
    stream_complete(&fixed->streams, stream);
    reuse_add_ready(fixed, chain_detach(&list->free));
  } else if (reuse_synchronize_device(fixed, stream)) {
    stream_lose(&fixed->streams, stream);
    return;
  }
  reuse_forget_stream(fixed, stream);
}
