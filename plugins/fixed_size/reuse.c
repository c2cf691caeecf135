/* SPDX-License-Identifier: MIT */
/* reuse.c: the lists of free blocks by stream. A block is searched in this order: ready blocks, blocks whose work has
 * completed, a block of a stream that can be waited for, all blocks after waiting for the device, a new chunk. Meanwhile
 * other threads use lists under the locks of the lists. */
#include "fixed.h"

enum { MOST_POLLS = 64 };

/* ---- Blocks that are ready for every stream ---- */

/* Moves the blocks that were freed up to `epoch`, which are the end of the list, to the ready ones. The caller holds the list's
 * lock. */
static void reuse_make_ready(struct fixed *fixed, struct fixed_list *list, uint64_t epoch)
{
  struct fixed_list *ready = reuse_ready(fixed);
  uint32_t *link = &list->first, kept = FIXED_NONE;
  if (!list->first || fixed_block_note(fixed, list->last) > epoch) return; /* most often, and the list may be long */
  while (fixed_block_note(fixed, *link) > epoch) {
    kept = *link;
    link = &record_of(fixed, kept)->next;
  }
  record_of(fixed, list->last)->next = ready->first;
  ready->first = *link;
  *link = FIXED_NONE;
  list->last = kept;
}

/* Closes the list if it is empty: the next free on its stream takes the lock, and opens it again. */
static bool reuse_close_empty(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  bool is_empty = list->first == FIXED_NONE;
  if (is_empty) list->is_open = false;
  spin_unlock(&list->busy);
  if (!is_empty) return false;
  stream_set_remove(&fixed->filled, stream);
  stream_set_remove(&fixed->with_event, stream);
  return true;
}

/* The first `frees` frees on the stream have completed: it was waited for, or the device. A stream that has freed since stays in
 * `filled` and `unfinished`, so that the next wait takes as many steps as streams have freed by then. */
static void reuse_complete(struct fixed *fixed, uint32_t stream, uint64_t frees)
{
  struct fixed_list *list = &fixed->lists[stream];
  struct stream *waited = stream_of(&fixed->streams, stream);
  if (waited->completed < frees) waited->completed = frees;
  if (waited->recorded < frees) waited->recorded = frees;
  spin_lock(&list->busy);
  reuse_make_ready(fixed, list, frees);
  spin_unlock(&list->busy);
  if (reuse_close_empty(fixed, stream) && waited->completed == waited->frees)
    stream_set_remove(&fixed->streams.sets->unfinished, stream);
}

/* The wait does not cover blocks that are freed from now on. */
enum hipmm_status reuse_synchronize_device(struct fixed *fixed, uint32_t user)
{
  const struct stream_set *unfinished = &fixed->streams.sets->unfinished;
  for (uint32_t stream = 0; (stream = stream_set_next(unfinished, stream)) < MAX_STREAMS; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    spin_lock(&list->busy);
    list->frees_before_wait = stream_of(&fixed->streams, stream)->frees;
    spin_unlock(&list->busy);
  }
  enum hipmm_status status = streams_wait_for_device(&fixed->streams, user);
  if (status) return status;
  for (uint32_t stream = 0; (stream = stream_set_next(unfinished, stream)) < MAX_STREAMS; stream++)
    reuse_complete(fixed, stream, fixed->lists[stream].frees_before_wait);
  streams_forget_gone(&fixed->streams);
  return HIPMM_OK;
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
    if (stream->completed == stream->frees) reuse_make_ready(fixed, list, stream->frees);
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
  return list_pop(fixed, reuse_ready(fixed));
}

/* Moves one block only, so that the other stream keeps the rest without a wait of its own. */
static uint32_t reuse_find_waiting(struct fixed *fixed, uint32_t stream)
{
  uint32_t number = FIXED_NONE;
  const struct stream_set *set = &fixed->with_event;
  for (uint32_t other = 0; !number && (other = reuse_next_in(fixed, set, other, stream)) < MAX_STREAMS; other++) {
    struct fixed_list *list = &fixed->lists[other];
    spin_lock(&list->busy);
    if (list->first && stream_wait(&fixed->streams, stream, other, fixed_block_note(fixed, list->first)))
      number = list_pop(fixed, list);
    spin_unlock(&list->busy);
  }
  return number;
}

/* Blocks of streams whose handles may be gone become ready by waiting for the device, which needs no handle. */
static uint32_t reuse_find_without_event(struct fixed *fixed, uint32_t stream)
{
  bool is_worth_it = reuse_next_in(fixed, &fixed->filled, 0, stream) < MAX_STREAMS;
  return is_worth_it && !reuse_synchronize_device(fixed, stream) ? list_pop(fixed, reuse_ready(fixed)) : FIXED_NONE;
}

static uint32_t reuse_find_held(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  uint32_t number = list_pop(fixed, list);
  spin_unlock(&list->busy);
  if (!number) number = list_pop(fixed, reuse_ready(fixed));
  if (number || fixed->streams.active < 2) return number;
  number = reuse_find_completed(fixed, stream);
  if (!number) number = reuse_find_waiting(fixed, stream);
  return number ? number : reuse_find_without_event(fixed, stream);
}

/* Half of the blocks there are, so that a bin with little use stays small. */
static uint32_t reuse_blocks_to_add(const struct fixed *fixed)
{
  uint64_t n = SIZES_PAGE_BYTES / fixed->block_bytes, half = fixed_n_blocks(fixed) / 2;
  if (n < half) n = half;
  if (n > fixed->blocks_per_chunk) n = fixed->blocks_per_chunk;
  return n ? (uint32_t)n : 1;
}

/* The first block of a new chunk; the others go to the list of the stream, as if freed on it now. */
static enum hipmm_status reuse_grow(struct fixed *fixed, uint32_t stream, uint32_t *number_out)
{
  struct fixed_list *list = &fixed->lists[stream];
  const struct key_tree_node *chunk;
  enum hipmm_status status =
      chunks_grow(fixed, reuse_blocks_to_add(fixed), 1, stream_of(&fixed->streams, stream)->handle, &chunk);
  if (status) return status;
  spin_lock(&list->busy);
  chunks_push_ready(fixed, chunk, list, stream_record_free(&fixed->streams, stream));
  *number_out = list_pop(fixed, list);
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
    reuse_complete(fixed, stream, stream_of(&fixed->streams, stream)->frees);
  } else if (reuse_synchronize_device(fixed, stream)) {
    stream_lose(&fixed->streams, stream);
    return;
  }
  reuse_forget_stream(fixed, stream);
}

/* ---- Seeing all lists ---- */

static void reuse_see_list(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  for (uint32_t number = list->first; number; number = record_of(fixed, number)->next)
    record_of(fixed, number)->seen = (uint16_t)stream;
  spin_unlock(&list->busy);
}

void reuse_see_lists(struct fixed *fixed)
{
  for (uint32_t number = 1; number < fixed->n_records; number++)
    if (address_of(fixed, number)) record_of(fixed, number)->seen = SEEN_IN_NO_LIST;
  reuse_see_list(fixed, STREAM_READY);
  for (uint32_t stream = 0; (stream = stream_set_next(&fixed->filled, stream)) < MAX_STREAMS; stream++)
    reuse_see_list(fixed, stream);
}
