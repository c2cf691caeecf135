/* SPDX-License-Identifier: MIT */
/* fixed.c: see fixed.h. The order in which a block is looked for: ready now, found to have passed, on another stream
 * that ours waits for, behind the device, from the upstream. */
#include "lists.h"

#include <sched.h>

enum { SPINS_BEFORE_YIELD = 64 };

static const uint64_t FIRST_CHUNK_BYTES = 2ull << 20; /* drivers hand out memory in pages of this size anyway */

static const size_t lists_bytes = FIXED_MOST_STREAMS * sizeof(struct fixed_list);

void list_wait(struct fixed_list *list)
{
  for (int spins = 0; atomic_flag_test_and_set_explicit(&list->busy, memory_order_acquire); spins++)
    if (spins < SPINS_BEFORE_YIELD)
      __builtin_ia32_pause();
    else
      sched_yield(); /* its holder may have lost the processor */
}

/* HIP has two names for the default stream. */
static inline hipStream_t usual_handle(hipStream_t handle)
{
  return handle == (hipStream_t)1 ? NULL : handle;
}

/* ---- Blocks that are clean; the lock is held ---- */

static struct fixed_chain *clean_of(const struct fixed *fixed)
{
  return &fixed->lists[STREAM_CLEAN].free;
}

/* The same chain with its blocks no longer in it. */
static struct fixed_chain take_all(struct fixed_chain *chain)
{
  struct fixed_chain taken = *chain;
  *chain = (struct fixed_chain){0};
  return taken;
}

static void add_clean(struct fixed *fixed, struct fixed_chain chain)
{
  *clean_of(fixed) = chain_join(fixed, chain, *clean_of(fixed));
}

/* ---- Waiting for the device; the lock is held ---- */

/* Takes the free blocks of all streams aside: what is freed from now on is not clean after the wait. */
static void put_aside(struct fixed *fixed)
{
  for (uint32_t stream = STREAM_FIRST; stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    list_lock(list);
    list->aside = take_all(&list->free);
    list->aside_frees = stream_of(&fixed->streams, stream)->frees;
    list_unlock(list);
  }
}

static void put_back(struct fixed *fixed)
{
  for (uint32_t stream = STREAM_FIRST; stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    list_lock(list);
    list->free = chain_join(fixed, list->free, take_all(&list->aside));
    list_unlock(list);
  }
}

static void note_passed(struct stream *stream, uint64_t frees)
{
  if (stream->passed < frees) stream->passed = frees;
  if (stream->recorded < frees) stream->recorded = frees;
}

static void clean_aside(struct fixed *fixed)
{
  for (uint32_t stream = STREAM_FIRST; stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    note_passed(stream_of(&fixed->streams, stream), list->aside_frees);
    add_clean(fixed, take_all(&list->aside));
  }
  streams_forget_gone(&fixed->streams);
}

/* All work up to now has passed: the blocks that were free are clean. */
static enum hipmm_status synchronize_device(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  put_aside(fixed);
  int previous = services->enter_device(services);
  int code = services->hip->DeviceSynchronize();
  enum hipmm_status status = code ? services->refuse_hip(services, "hipDeviceSynchronize", code, 0) : HIPMM_OK;
  services->leave_device(services, previous);
  if (status)
    put_back(fixed);
  else
    clean_aside(fixed);
  return status;
}

/* ---- Streams; the lock is held ---- */

/* Unless it has free blocks that are not clean. */
static void forget_stream(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  list_lock(list);
  bool is_empty = !list->free.head;
  if (is_empty) list->is_open = false;
  list_unlock(list);
  if (is_empty) stream_forget(&fixed->streams, stream);
}

static void open_list(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  const struct stream *opened = stream_of(&fixed->streams, stream);
  list_lock(list);
  list->is_open = true;
  list->handle = opened->handle;
  list->thread = opened->thread;
  list_unlock(list);
}

static bool is_stream(uint32_t id)
{
  return id >= STREAM_FIRST && id < FIXED_MOST_STREAMS;
}

/* The stream's id; when there is room for no more, the device is waited for and all streams are forgotten. */
static enum hipmm_status enter_stream(struct fixed *fixed, hipStream_t handle, uint32_t *id_out)
{
  struct streams *streams = &fixed->streams;
  uint32_t id = streams_id(streams, handle);
  if (!is_stream(id)) {
    enum hipmm_status status = synchronize_device(fixed);
    if (status) return status;
    for (uint32_t other = STREAM_FIRST; other < streams->count; other++) forget_stream(fixed, other);
    id = streams_id(streams, handle);
  }
  if (!is_stream(id))
    return fixed->services->refuse(fixed->services, HIPMM_E_LIMIT, "cannot keep more than {0} streams apart",
                                   FIXED_MOST_STREAMS, 0, 0);
  open_list(fixed, id);
  bool is_remembered = streams->record != RECORD_ON_FREE && stream_is_sure(streams, id);
  if (is_remembered) thread_remember(fixed->serial, handle, &fixed->lists[id]);
  *id_out = id;
  return HIPMM_OK;
}

/* ---- Allocating; the lock is held ---- */

static uint32_t take_own(struct fixed *fixed, uint32_t stream)
{
  struct fixed_list *list = &fixed->lists[stream];
  list_lock(list);
  uint32_t number = chain_pop(fixed, &list->free);
  list_unlock(list);
  return number;
}

/* Looks whether another stream has passed all its frees. */
static void clean_if_passed(struct fixed *fixed, uint32_t other)
{
  struct fixed_list *list = &fixed->lists[other];
  const struct stream *stream = stream_of(&fixed->streams, other);
  list_lock(list);
  if (list->free.head && stream_cover(&fixed->streams, other)) {
    stream_poll(&fixed->streams, other);
    if (stream->passed == stream->frees) add_clean(fixed, take_all(&list->free));
  }
  list_unlock(list);
}

static uint32_t take_passed(struct fixed *fixed, uint32_t stream)
{
  for (uint32_t other = STREAM_FIRST; other < fixed->streams.count; other++)
    if (other != stream) clean_if_passed(fixed, other);
  return chain_pop(fixed, clean_of(fixed));
}

/* Takes one block and no more, so that the other stream keeps the rest without a wait of its own. */
static uint32_t take_waiting_from(struct fixed *fixed, uint32_t stream, uint32_t other)
{
  struct fixed_list *list = &fixed->lists[other];
  uint32_t number = FIXED_NONE;
  list_lock(list);
  if (list->free.head && stream_wait(&fixed->streams, stream, other, record_of(fixed, list->free.head)->epoch))
    number = chain_pop(fixed, &list->free);
  list_unlock(list);
  return number;
}

static uint32_t take_waiting(struct fixed *fixed, uint32_t stream)
{
  uint32_t number = FIXED_NONE;
  for (uint32_t other = STREAM_FIRST; !number && other < fixed->streams.count; other++)
    if (other != stream) number = take_waiting_from(fixed, stream, other);
  return number;
}

/* Blocks of streams whose handles may be gone come back through the device, which needs no handle. */
static uint32_t take_withheld(struct fixed *fixed)
{
  bool is_worth_it = false;
  for (uint32_t other = STREAM_FIRST; !is_worth_it && other < fixed->streams.count; other++) {
    struct fixed_list *list = &fixed->lists[other];
    list_lock(list);
    is_worth_it = list->free.head != FIXED_NONE;
    list_unlock(list);
  }
  return is_worth_it && !synchronize_device(fixed) ? chain_pop(fixed, clean_of(fixed)) : FIXED_NONE;
}

static uint32_t take(struct fixed *fixed, uint32_t stream)
{
  uint32_t number = take_own(fixed, stream);
  if (!number) number = chain_pop(fixed, clean_of(fixed));
  if (number || fixed->streams.active < 2) return number;
  number = take_passed(fixed, stream);
  if (!number) number = take_waiting(fixed, stream);
  return number ? number : take_withheld(fixed);
}

/* Half as much again as there is, so that a bin that is used little stays small. */
static uint32_t blocks_to_add(const struct fixed *fixed)
{
  uint64_t n = FIRST_CHUNK_BYTES / fixed->block_bytes;
  if (n < fixed->n_blocks / 2) n = fixed->n_blocks / 2;
  if (n > fixed->blocks_per_chunk) n = fixed->blocks_per_chunk;
  return n ? (uint32_t)n : 1;
}

/* The first block of a new chunk; the others join the stream's list, as if freed on it now. */
static enum hipmm_status take_new(struct fixed *fixed, uint32_t stream, uint32_t *number_out)
{
  struct fixed_list *list = &fixed->lists[stream];
  struct fixed_chain chain;
  enum hipmm_status status =
      chunks_grow(fixed, blocks_to_add(fixed), 1, stream_of(&fixed->streams, stream)->handle, &chain);
  if (status) return status;
  list_lock(list);
  uint64_t epoch = stream_note_free(&fixed->streams, stream);
  for (uint32_t number = chain.head; number; number = record_of(fixed, number)->next)
    record_of(fixed, number)->epoch = epoch;
  *number_out = chain_pop(fixed, &chain);
  list->free = chain_join(fixed, chain, list->free);
  list_unlock(list);
  return HIPMM_OK;
}

static enum hipmm_status allocate_locked(struct fixed *fixed, size_t bytes, hipStream_t handle, uint32_t *number_out)
{
  uint32_t stream;
  enum hipmm_status status = enter_stream(fixed, handle, &stream);
  if (status) return status;
  uint32_t number = take(fixed, stream);
  if (!number) status = take_new(fixed, stream, &number);
  if (status) return status;
  list_lock(&fixed->lists[stream]);
  list_count(&fixed->lists[stream], 1, (int64_t)bytes);
  list_unlock(&fixed->lists[stream]);
  fixed_block_set_requested(fixed, number, bytes);
  *number_out = number;
  return HIPMM_OK;
}

/* ---- Allocating ---- */

/* Everything that a list does not have. */
static __attribute__((noinline)) enum hipmm_status allocate_slowly(struct fixed *fixed, size_t bytes,
                                                                   hipStream_t handle, void **ptr_out)
{
  uint32_t number = FIXED_NONE;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  pthread_mutex_lock(&fixed->lock);
  enum hipmm_status status = allocate_locked(fixed, bytes, handle, &number);
  pthread_mutex_unlock(&fixed->lock);
  if (!status) *ptr_out = (void *)(uintptr_t)address_of(fixed, number);
  return status;
}

/* FIXED_NONE if the list has no block for this stream. */
static inline uint32_t take_from_list(struct fixed *fixed, struct fixed_list *list, size_t bytes, hipStream_t handle)
{
  uint32_t number = FIXED_NONE;
  list_lock(list);
  if (list_is_for(list, handle)) number = chain_pop(fixed, &list->free);
  if (number) {
    list_count(list, 1, (int64_t)bytes);
    fixed_block_set_requested(fixed, number, bytes);
  }
  list_unlock(list);
  return number;
}

enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipStream_t stream, void **ptr_out)
{
  hipStream_t handle = usual_handle(stream);
  struct fixed_list *list = thread_recall(fixed->serial, handle);
  uint32_t number = list && bytes ? take_from_list(fixed, list, bytes, handle) : FIXED_NONE;
  if (__builtin_expect(!number, 0)) return allocate_slowly(fixed, bytes, handle, ptr_out);
  *ptr_out = (void *)(uintptr_t)address_of(fixed, number);
  return HIPMM_OK;
}

/* ---- Freeing and finding ---- */

static __attribute__((noinline)) enum hipmm_status refuse_pointer(const struct fixed *fixed, const void *ptr)
{
  return fixed->services->refuse(fixed->services, HIPMM_E_POINTER,
                                 "{0:hex} is not allocated here: it is foreign, or was freed before", (uintptr_t)ptr, 0,
                                 0);
}

static __attribute__((noinline)) enum hipmm_status refuse_size(const struct fixed *fixed, const void *ptr, size_t bytes,
                                                               uint64_t requested)
{
  return fixed->services->refuse(fixed->services, HIPMM_E_SIZE,
                                 "{0:hex} was allocated with {1} bytes and cannot be freed with {2}", (uintptr_t)ptr,
                                 requested, bytes);
}

/* The block is claimed. Should it not be possible to free it, it is live again. */
static __attribute__((noinline)) enum hipmm_status deallocate_slowly(struct fixed *fixed, uint32_t number,
                                                                     uint64_t requested, hipStream_t handle)
{
  uint32_t stream;
  pthread_mutex_lock(&fixed->lock);
  enum hipmm_status status = enter_stream(fixed, handle, &stream);
  if (status) {
    fixed_block_set_requested(fixed, number, requested);
  } else {
    struct fixed_list *list = &fixed->lists[stream];
    list_lock(list);
    chain_push(fixed, &list->free, number, stream_note_free(&fixed->streams, stream));
    list_count(list, -1, -(int64_t)requested);
    list_unlock(list);
  }
  pthread_mutex_unlock(&fixed->lock);
  return status;
}

/* False, and nothing done, if the list is for another stream. */
static inline bool give_to_list(struct fixed *fixed, struct fixed_list *list, uint32_t number, uint64_t requested,
                                hipStream_t handle)
{
  list_lock(list);
  bool is_for = list_is_for(list, handle);
  if (is_for) {
    chain_push(fixed, &list->free, number, ++stream_of(&fixed->streams, (uint32_t)(list - fixed->lists))->frees);
    list_count(list, -1, -(int64_t)requested);
  }
  list_unlock(list);
  return is_for;
}

enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipStream_t stream)
{
  if (!ptr) return HIPMM_OK;
  hipStream_t handle = usual_handle(stream);
  uint32_t number = fixed_block_at(fixed, ptr);
  uint64_t requested = number ? fixed_block_requested(fixed, number) : 0;
  if (!requested) return refuse_pointer(fixed, ptr);
  if (bytes && bytes != requested) return refuse_size(fixed, ptr, bytes, requested);
  if (!fixed_block_claim(fixed, number, requested)) return refuse_pointer(fixed, ptr);
  struct fixed_list *list = thread_recall(fixed->serial, handle);
  if (__builtin_expect(list && give_to_list(fixed, list, number, requested, handle), 1)) return HIPMM_OK;
  return deallocate_slowly(fixed, number, requested, handle);
}

bool fixed_find(const struct fixed *fixed, const void *ptr, struct hipmm_block *block_out)
{
  uint32_t number = fixed_block_at(fixed, ptr);
  uint64_t requested = number ? fixed_block_requested(fixed, number) : 0;
  if (requested) *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, requested};
  return requested != 0;
}

bool fixed_starts_at(const struct fixed *fixed, const void *ptr)
{
  return fixed_block_at(fixed, ptr) != FIXED_NONE;
}

/* ---- Giving back, and news of streams ---- */

enum hipmm_status fixed_trim(struct fixed *fixed, size_t keep_bytes)
{
  pthread_mutex_lock(&fixed->lock);
  enum hipmm_status status = synchronize_device(fixed);
  if (!status) status = chunks_release_idle(fixed, keep_bytes, clean_of(fixed));
  pthread_mutex_unlock(&fixed->lock);
  return status;
}

/* The stream is still valid: once it is waited for, its blocks are anybody's. Nothing is freed on it meanwhile. */
static bool clean_stream(struct fixed *fixed, uint32_t stream, hipStream_t handle)
{
  const struct hipmm_services *services = fixed->services;
  struct fixed_list *list = &fixed->lists[stream];
  list_lock(list);
  int previous = services->enter_device(services);
  int code = services->hip->StreamSynchronize(handle);
  if (code) services->hip->GetLastError();
  services->leave_device(services, previous);
  if (!code) {
    stream_passed(&fixed->streams, stream);
    add_clean(fixed, take_all(&list->free));
  }
  list_unlock(list);
  return !code;
}

void fixed_stream_retire(struct fixed *fixed, hipStream_t stream)
{
  hipStream_t handle = usual_handle(stream);
  pthread_mutex_lock(&fixed->lock);
  uint32_t id = streams_known_id(&fixed->streams, handle);
  if (is_stream(id) && (clean_stream(fixed, id, handle) || !synchronize_device(fixed))) forget_stream(fixed, id);
  pthread_mutex_unlock(&fixed->lock);
}

void fixed_stream_retain(struct fixed *fixed, hipStream_t stream)
{
  uint32_t id;
  pthread_mutex_lock(&fixed->lock);
  if (!enter_stream(fixed, usual_handle(stream), &id)) stream_of(&fixed->streams, id)->lasts = true;
  pthread_mutex_unlock(&fixed->lock);
}

/* ---- Counts; the lock is held ---- */

static uint64_t metadata_bytes(const struct fixed *fixed)
{
  return sizeof *fixed + fixed->streams.count * (sizeof(struct fixed_list) + sizeof(struct stream)) +
         chunks_metadata_bytes(fixed);
}

static void count_live(struct fixed *fixed, struct fixed_counts *counts)
{
  for (uint32_t stream = 0; fixed->lists && stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    list_lock(list);
    counts->live_count += list->live_count;
    counts->live_bytes += list->live_bytes;
    list_unlock(list);
  }
}

struct fixed_counts fixed_count(struct fixed *fixed)
{
  pthread_mutex_lock(&fixed->lock);
  struct fixed_counts counts = {.reserved_bytes = (int64_t)fixed->reserved_bytes,
                                .peak_reserved_bytes = (int64_t)fixed->peak_reserved_bytes,
                                .chunks = fixed->n_chunks,
                                .stream_waits = (int64_t)fixed->streams.waits,
                                .metadata_bytes = (int64_t)metadata_bytes(fixed)};
  count_live(fixed, &counts);
  counts.free_count = fixed->n_blocks - counts.live_count;
  pthread_mutex_unlock(&fixed->lock);
  return counts;
}

/* ---- Life ---- */

enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, uint64_t block_bytes, uint32_t blocks_per_chunk,
                             enum record record)
{
  static atomic_uint_fast64_t last_serial;
  *fixed = (struct fixed){.services = services,
                          .upstream = upstream,
                          .serial = atomic_fetch_add(&last_serial, 1) + 1,
                          .block_bytes = (block_bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT,
                          .blocks_per_chunk = blocks_per_chunk};
  pthread_mutex_init(&fixed->lock, NULL);
  bool opened = streams_open(&fixed->streams, services, record);
  opened = chunks_open(fixed) && opened;
  fixed->lists = services->host_allocate(services, lists_bytes);
  if (opened && fixed->lists) return HIPMM_OK;
  fixed_close(fixed);
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the records of blocks");
}

void fixed_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  int64_t live_count = fixed_count(fixed).live_count;
  if (live_count)
    services->log(services, HIPMM_LOG_WARNING, "%lld blocks of %llu bytes are still allocated and go with it",
                  (long long)live_count, (unsigned long long)fixed->block_bytes);
  if (services->hip->DeviceSynchronize()) services->hip->GetLastError(); /* a broken device frees all the same */
  chunks_close(fixed);
  streams_close(&fixed->streams);
  services->host_free(services, fixed->lists, lists_bytes);
  pthread_mutex_destroy(&fixed->lock);
}

enum hipmm_status fixed_preallocate(struct fixed *fixed, uint32_t n_chunks)
{
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t i = 0; !status && i < n_chunks; i++) {
    struct fixed_chain chain;
    status = chunks_grow(fixed, fixed->blocks_per_chunk, fixed->blocks_per_chunk, NULL, &chain);
    if (!status) add_clean(fixed, chain);
  }
  return status;
}
