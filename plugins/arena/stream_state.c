/* SPDX-License-Identifier: MIT */
/* stream_state.c: the streams and threads of an arena, and the order in which memory may be used again. A block freed
 * on the stream of its arena is in order already: its memory gets an epoch (stream_order.h) only when it leaves the
 * arena. A block freed on another stream gets an epoch of that stream at once. The caller holds the global lock
 * throughout; meanwhile other threads use their arenas under the locks of these. */
#include "arena.h"

enum { LEAST_UNUSED = 64, MOST_UNUSED = 256 /* unused records of a local arena */ };

/* ---- Pending blocks ---- */

/* Makes blocks ready whose frees have completed, or whose streams are in `waited`, which may be NULL. */
static void stream_state_end_pending(struct arena *arena, struct local *local, const struct stream_set *waited)
{
  struct blocks *blocks = &arena->heap.blocks;
  for (uint32_t id = local->pending.first, next; id; id = next) {
    const struct block *block = block_of(blocks, id);
    bool is_waited = waited && stream_set_has(waited, block->stream);
    next = block->next;
    if (is_waited || block->epoch <= stream_of(&arena->heap.streams, block->stream)->completed)
      local_end_pending(local, blocks, id);
  }
  if (!local->pending.first) stream_set_remove(&arena->locals->pending, local->number);
}

void arena_add_pending(struct arena *arena, struct local *local, uint32_t id)
{
  local_free_pending(local, &arena->heap.blocks, id);
  stream_set_add(&arena->locals->pending, local->number);
}

/* Whether the arena's stream waits for the other one. Without `waits`, what has completed is asked only. */
static bool stream_state_wait_for(struct streams *streams, uint32_t waiter, uint32_t stream, bool waits)
{
  if (waits) return stream_wait(streams, waiter, stream, stream_of(streams, stream)->frees);
  stream_cover(streams, stream);
  stream_poll(streams, stream);
  return false;
}

void arena_settle(struct arena *arena, struct local *local, bool waits)
{
  const struct blocks *blocks = &arena->heap.blocks;
  struct streams *streams = &arena->heap.streams;
  stream_set_clear(&arena->locals->seen);
  stream_set_clear(&arena->locals->waited);
  local_acquire(local, blocks);
  for (uint32_t id = local->pending.first; id; id = block_of(blocks, id)->next) {
    uint32_t stream = block_of(blocks, id)->stream;
    if (stream_set_has(&arena->locals->seen, stream)) continue;
    stream_set_add(&arena->locals->seen, stream);
    if (stream_state_wait_for(streams, local->stream, stream, waits)) stream_set_add(&arena->locals->waited, stream);
  }
  /* What was freed where this stream has waited counts as freed on this stream now. */
  if (waits && streams->record == RECORD_ON_FREE) stream_record_free(streams, local->stream);
  stream_state_end_pending(arena, local, &arena->locals->waited);
  biased_lock_release(&local->lock);
}

/* ---- Superblocks ---- */

/* Memory that leaves an arena is freed now: every later event covers it. Where each free records an event, the last
 * event covers it already. */
static uint64_t stream_state_epoch_of_leaving(struct arena *arena, uint32_t stream)
{
  struct streams *streams = &arena->heap.streams;
  if (stream == STREAM_READY) return 0;
  return streams->record == RECORD_ON_FREE ? stream_of(streams, stream)->frees : stream_record_free(streams, stream);
}

/* Down to `most` unused records. The caller holds the arena's lock. */
static void stream_state_drop_records(struct arena *arena, struct local *local, uint32_t most)
{
  while (local->n_unused > most) {
    uint32_t id = local_pop_unused(local, &arena->heap.blocks);
    heap_block(&arena->heap, id)->arena = 0;
    block_drop(&arena->heap.blocks, id);
  }
}

bool arena_add_superblock(struct arena *arena, struct local *local, uint32_t superblock)
{
  struct heap *heap = &arena->heap;
  struct block *block = heap_block(heap, superblock);
  if (!local->unused) return false;
  heap->requested_bytes -= block->requested; /* the blocks in it count instead */
  heap->blocks.live--;
  block->requested = 0;
  local_add_superblock(local, &heap->blocks, superblock);
  stream_set_add(&arena->locals->holding, local->number);
  return true;
}

/* The caller holds the arena's lock. */
static void stream_state_return_idle_locked(struct arena *arena, struct local *local, uint64_t keep_bytes)
{
  struct heap *heap = &arena->heap;
  while (local->idle_bytes > keep_bytes) {
    uint32_t id = local_remove_idle(local, &heap->blocks);
    heap->blocks.live++;
    heap_free_later(heap, id, local->stream, stream_state_epoch_of_leaving(arena, local->stream));
  }
  if (!local->bytes) stream_set_remove(&arena->locals->holding, local->number);
  stream_state_drop_records(arena, local, MOST_UNUSED);
}

void arena_supply(struct arena *arena, struct local *local)
{
  struct blocks *blocks = &arena->heap.blocks;
  for (uint32_t id; local->n_unused < LEAST_UNUSED && (id = block_new(blocks, 0, 0));) {
    block_of(blocks, id)->arena = local->number;
    block_of(blocks, id)->is_for_small = false;
    local_push_unused(local, blocks, id);
  }
}

void arena_return_idle(struct arena *arena, struct local *local, uint64_t keep_bytes)
{
  local_acquire(local, &arena->heap.blocks);
  stream_state_return_idle_locked(arena, local, keep_bytes);
  biased_lock_release(&local->lock);
}

void arena_trim_records(struct arena *arena)
{
  for (uint32_t number = 1; number < arena->n_locals; number++) {
    struct local *local = arena_local(arena, number);
    local_acquire(local, &arena->heap.blocks);
    stream_state_drop_records(arena, local, 0);
    biased_lock_release(&local->lock);
  }
  blocks_trim(&arena->heap.blocks);
}

/* ---- Arenas whose stream or thread is gone ---- */

/* The number of the first arena of a stream; 0: none. */
static uint32_t stream_state_first(const struct arena *arena, uint32_t stream)
{
  return arena->locals ? arena->locals->first[stream] : 0;
}

static void stream_state_unlist(struct arena *arena, struct local *local)
{
  uint32_t *link = &arena->locals->first[local->stream];
  while (*link != local->number) link = &arena_local(arena, *link)->next_of_stream;
  *link = local->next_of_stream;
}

static void stream_state_list(struct arena *arena, struct local *local, uint32_t stream)
{
  local->stream = (uint16_t)stream;
  local->next_of_stream = arena->locals->first[stream];
  arena->locals->first[stream] = local->number;
}

/* From now on, every free into the arena takes the global lock. */
static void stream_state_close_local(struct local *local)
{
  biased_lock_acquire(&local->lock);
  local->is_open = false;
  local_close_messages(local);
  biased_lock_release(&local->lock);
}

/* The arena is closed, and all work on its stream has completed: no work uses its ready blocks. */
static void stream_state_retire_local(struct arena *arena, struct local *local)
{
  local_acquire(local, &arena->heap.blocks);
  stream_state_unlist(arena, local);
  stream_state_list(arena, local, STREAM_READY);
  local_set_thread(local, 0);
  local_empty_quick(local, &arena->heap.blocks);
  stream_state_return_idle_locked(arena, local, 0);
  biased_lock_release(&local->lock);
}

static void stream_state_end_pending_everywhere(struct arena *arena)
{
  if (!arena->locals) return;
  for (uint32_t number = 0; (number = stream_set_next(&arena->locals->pending, number)) < MAX_STREAMS; number++) {
    struct local *local = arena_local(arena, number);
    local_acquire(local, &arena->heap.blocks);
    stream_state_end_pending(arena, local, NULL);
    biased_lock_release(&local->lock);
  }
}

static void stream_state_retire_locals(struct arena *arena, uint32_t stream)
{
  for (uint32_t first; (first = stream_state_first(arena, stream));)
    stream_state_retire_local(arena, arena_local(arena, first));
}

/* No memory is pending on the stream. */
static void stream_state_forget(struct arena *arena, uint32_t stream)
{
  if (arena->type->end_stream) arena->type->end_stream(arena, stream);
  stream_state_retire_locals(arena, stream);
  heap_complete_stream(&arena->heap, stream);
  stream_forget(&arena->heap.streams, stream);
}

/* Whether it is the default stream of a thread that has ended. */
static bool stream_state_has_no_thread(const struct arena *arena, uint32_t stream)
{
  uint32_t first = stream_state_first(arena, stream);
  const struct local *local = first ? arena_local(arena, first) : NULL;
  return local && local->is_open && local->stream_thread && !local_thread(local);
}

/* ---- Waiting for the device ---- */

/* Epochs advance under the global lock only, so no free is newer than the wait. */
enum hipmm_status arena_synchronize(struct arena *arena, uint32_t user)
{
  struct streams *streams = &arena->heap.streams;
  enum hipmm_status status = streams_wait_for_device(streams, user);
  if (status) return status;
  const struct stream_sets *sets = streams->sets;
  heap_complete_all(&arena->heap);
  stream_state_end_pending_everywhere(arena);
  for (uint32_t stream = 0; (stream = stream_set_next(&sets->named, stream)) < MAX_STREAMS; stream++)
    if (stream_state_has_no_thread(arena, stream)) stream_state_forget(arena, stream);
  for (uint32_t stream = 0; (stream = stream_set_next(&sets->gone, stream)) < MAX_STREAMS; stream++)
    stream_state_retire_locals(arena, stream);
  streams_forget_gone(streams);
  return HIPMM_OK;
}

static void stream_state_return_all(struct arena *arena, struct local *local)
{
  local_acquire(local, &arena->heap.blocks);
  local_empty_quick(local, &arena->heap.blocks);
  stream_state_return_idle_locked(arena, local, 0);
  biased_lock_release(&local->lock);
}

void arena_return_all(struct arena *arena)
{
  if (!arena->locals) return;
  for (uint32_t number = 0; (number = stream_set_next(&arena->locals->holding, number)) < MAX_STREAMS; number++)
    stream_state_return_all(arena, arena_local(arena, number));
}

enum hipmm_status arena_collect(struct arena *arena, uint32_t user, enum hipmm_status refusal)
{
  bool may_wait = hipmm_may_wait(arena->services, refusal);
  enum hipmm_status status = may_wait ? arena_synchronize(arena, user) : HIPMM_OK;
  if (status) return status;
  if (!may_wait) heap_poll(&arena->heap);
  arena->collections++;
  arena_return_all(arena);
  if (!may_wait || !arena->locals) return HIPMM_OK;
  return arena_synchronize(arena, user); /* other threads may have freed since the first wait */
}

/* Holds that arena's lock while it waits for the device: all its free memory is ready for every stream then. */
uint32_t arena_find_elsewhere(struct arena *arena, const struct request *request)
{
  const struct streams *streams = &arena->heap.streams;
  const struct blocks *blocks = &arena->heap.blocks;
  uint32_t id = BLOCK_NONE;
  if (!arena->locals) return BLOCK_NONE;
  for (uint32_t number = 0; !id && (number = stream_set_next(&arena->locals->holding, number)) < MAX_STREAMS;
       number++) {
    struct local *other = arena_local(arena, number);
    local_acquire(other, blocks);
    arena_supply(arena, other);
    id = local_allocate(other, blocks, request->bytes, true);
    if (id)
      local_make_live(other, block_of(blocks, id), request->requested, stream_of(streams, request->stream)->handle);
    if (id && streams_wait_for_device(streams, request->stream)) {
      local_end_live(other, block_of(blocks, id));
      local_free(other, blocks, id);
      id = BLOCK_NONE;
    }
    biased_lock_release(&other->lock);
  }
  return id;
}

/* ---- Entering ---- */

/* If the table of streams is full, waits for the device and forgets all streams. */
enum hipmm_status arena_enter_stream(struct arena *arena, hipmm_stream_t handle, uint32_t *id_out)
{
  struct streams *streams = &arena->heap.streams;
  enum hipmm_status status = streams_enter(streams, handle, id_out);
  if (status || *id_out) return status;
  for (uint32_t number = 1; number < arena->n_locals; number++) stream_state_close_local(arena_local(arena, number));
  status = arena_synchronize(arena, STREAM_READY);
  if (status) return status;
  for (uint32_t stream = STREAM_FIRST; stream < streams->count; stream++)
    if (stream_of(streams, stream)->in_use) stream_state_forget(arena, stream);
  return streams_enter(streams, handle, id_out);
}

static struct local *stream_state_new_local(struct arena *arena)
{
  if (!arena->locals) arena->locals = arena->services->host_allocate(arena->services, sizeof *arena->locals);
  if (!arena->locals) return NULL;
  struct local *waiting = arena_local(arena, arena->locals->first[STREAM_READY]);
  if (waiting->number) {
    stream_state_unlist(arena, waiting);
    return waiting;
  }
  if (arena->n_locals == ARENA_MOST_LOCALS) return NULL;
  struct local *local = arena_local(arena, arena->n_locals);
  biased_lock_open(&local->lock);
  local->number = arena->n_locals;
  __atomic_store_n(&arena->n_locals, arena->n_locals + 1, __ATOMIC_RELEASE);
  return local;
}

/* The thread's arena for the stream, or an arena of the stream without a thread. */
static struct local *stream_state_local_for(struct arena *arena, uint32_t stream, uint64_t thread)
{
  struct local *found = NULL;
  for (uint32_t number = stream_state_first(arena, stream); number;
       number = arena_local(arena, number)->next_of_stream) {
    struct local *local = arena_local(arena, number);
    uint64_t owner = local_thread(local);
    if (owner == thread) return local;
    if (!owner) found = local;
  }
  return found;
}

/* Where each call must ask HIP which stream a handle names, all threads share one arena: each call takes the global
 * lock anyway. */
struct local *arena_enter_local(struct arena *arena, uint32_t stream)
{
  struct streams *streams = &arena->heap.streams;
  hipmm_stream_t handle = stream_of(streams, stream)->handle;
  bool is_open = streams->record != RECORD_ON_FREE && stream_has_stable_handle(streams, stream) && thread_register();
  uint64_t thread = is_open ? thread_number() : 0;
  struct local *local = stream_state_local_for(arena, stream, thread);
  bool is_new = !local;
  if (is_new) local = stream_state_new_local(arena);
  if (!local) return NULL;
  local_acquire(local, &arena->heap.blocks);
  if (is_new) stream_state_list(arena, local, stream);
  local->is_open = is_open;
  local->handle = handle;
  local->stream_thread = stream_of(streams, stream)->thread;
  if (is_open) thread_remember(arena->serial, handle, local);
  if (is_open) biased_lock_own(&local->lock);
  atomic_store_explicit(&local->memories, is_open ? thread_memories : NULL, memory_order_relaxed);
  if (is_open && !local->stream_thread)
    local_open_messages(local, handle);
  else
    local_close_messages(local);
  biased_lock_release(&local->lock);
  local_set_thread(local, thread);
  return local;
}

/* ---- Ends ---- */

/* The stream is still valid. After a wait for it, its blocks are ready for every stream. If neither the stream nor the device can
 * be waited for, the stream stays until the device is waited for. */
void arena_stream_retire(void *self, hipmm_stream_t handle)
{
  struct arena *arena = self;
  struct streams *streams = &arena->heap.streams;
  handle = stream_canonical_handle(handle);
  if (biased_lock_enter(&arena->lock, arena->services)) return;
  uint32_t stream = streams_known_id(streams, handle);
  for (uint32_t number = stream_state_first(arena, stream); stream && number;
       number = arena_local(arena, number)->next_of_stream)
    stream_state_close_local(arena_local(arena, number));
  if (stream && (streams_wait_for_handle(arena->services, handle) || !arena_synchronize(arena, stream))) {
    stream_complete(streams, stream);
    stream_state_end_pending_everywhere(arena);
    stream_state_forget(arena, stream);
  } else if (stream) {
    if (arena->type->end_stream) arena->type->end_stream(arena, stream);
    stream_lose(streams, stream);
  }
  biased_lock_release(&arena->lock);
}

void arena_stream_retain(void *self, hipmm_stream_t handle)
{
  struct arena *arena = self;
  uint32_t id;
  if (biased_lock_enter(&arena->lock, arena->services)) return;
  if (!arena_enter_stream(arena, stream_canonical_handle(handle), &id)) heap_retain_stream(&arena->heap, id);
  biased_lock_release(&arena->lock);
}

/* The next thread on the same stream gets the arena; the arena of the thread's own default stream gets a new stream after the
 * device was waited for. */
void arena_end_thread(struct arena *arena, uint64_t thread, bool is_locked)
{
  uint32_t n_locals = __atomic_load_n(&arena->n_locals, __ATOMIC_ACQUIRE);
  for (uint32_t number = 1; number < n_locals; number++) {
    struct local *local = arena_local(arena, number);
    biased_lock_disown(&local->lock);
    if (local_thread(local) != thread) continue;
    if (is_locked) stream_state_return_all(arena, local);
    local_set_thread(local, 0);
  }
}
