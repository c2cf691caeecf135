/* SPDX-License-Identifier: MIT */
/* fixed.c: see fixed.h. The order in which a block is looked for: ready now, found to have passed, on another stream
 * that ours waits for, behind the device, from the upstream. */
#include "chunks.h"

static const uint64_t FIRST_CHUNK_BYTES = 2ull << 20; /* drivers hand out memory in pages of this size anyway */

/* ---- Streams ---- */

static bool has_free(const struct fixed *fixed, uint32_t stream)
{
  return stream_of(&fixed->streams, stream)->in_use && fixed->lists[stream].head;
}

/* All work has passed: every free block is clean. */
static enum hipmm_status synchronize_device(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  int previous = services->enter_device(services);
  int code = services->hip->DeviceSynchronize();
  enum hipmm_status status = code ? services->refuse_hip(services, "hipDeviceSynchronize", code, 0) : HIPMM_OK;
  services->leave_device(services, previous);
  for (uint32_t stream = STREAM_FIRST; !status && stream < fixed->streams.count; stream++) {
    if (!stream_of(&fixed->streams, stream)->in_use) continue;
    stream_passed(&fixed->streams, stream);
    list_move(fixed, stream, STREAM_CLEAN);
  }
  return status;
}

/* The stream's id; when there is room for no more, the device is waited for and all streams are forgotten. */
static enum hipmm_status enter_stream(struct fixed *fixed, hipStream_t handle, uint32_t *id_out)
{
  struct streams *streams = &fixed->streams;
  uint32_t id = streams_id(streams, handle);
  if (id < STREAM_FIRST || id >= FIXED_MOST_STREAMS) {
    enum hipmm_status status = synchronize_device(fixed);
    if (status) return status;
    for (uint32_t other = STREAM_FIRST; other < streams->count; other++)
      if (stream_of(streams, other)->in_use) stream_forget(streams, other);
    id = streams_id(streams, handle);
  }
  *id_out = id;
  return HIPMM_OK;
}

/* ---- Allocating ---- */

static uint32_t take_ready(struct fixed *fixed, uint32_t stream)
{
  uint32_t number = list_pop(fixed, stream);
  return number ? number : list_pop(fixed, STREAM_CLEAN);
}

/* Looks which other streams have passed all their frees. */
static uint32_t take_passed(struct fixed *fixed, uint32_t stream)
{
  struct streams *streams = &fixed->streams;
  for (uint32_t other = STREAM_FIRST; other < streams->count; other++) {
    if (other == stream || !has_free(fixed, other) || !stream_cover(streams, other)) continue;
    stream_poll(streams, other);
    if (stream_of(streams, other)->passed == stream_of(streams, other)->frees) list_move(fixed, other, STREAM_CLEAN);
  }
  return list_pop(fixed, STREAM_CLEAN);
}

/* Takes one block and no more, so that the other stream keeps the rest without a wait of its own. */
static uint32_t take_waiting(struct fixed *fixed, uint32_t stream)
{
  for (uint32_t other = STREAM_FIRST; other < fixed->streams.count; other++) {
    if (other == stream || !has_free(fixed, other)) continue;
    uint64_t epoch = record_of(fixed, fixed->lists[other].head)->epoch;
    if (stream_wait(&fixed->streams, stream, other, epoch)) return list_pop(fixed, other);
  }
  return FIXED_NONE;
}

/* Blocks of streams whose handles may be gone come back through the device, which needs no handle. */
static uint32_t take_withheld(struct fixed *fixed)
{
  bool is_worth_it = false;
  for (uint32_t other = STREAM_FIRST; !is_worth_it && other < fixed->streams.count; other++)
    is_worth_it = has_free(fixed, other);
  return is_worth_it && !synchronize_device(fixed) ? list_pop(fixed, STREAM_CLEAN) : FIXED_NONE;
}

/* Half as much again as there is, so that a bin that is used little stays small. */
static uint32_t blocks_to_add(const struct fixed *fixed)
{
  uint64_t n = FIRST_CHUNK_BYTES / fixed->block_bytes;
  if (n < fixed->n_blocks / 2) n = fixed->n_blocks / 2;
  if (n > fixed->blocks_per_chunk) n = fixed->blocks_per_chunk;
  return n ? (uint32_t)n : 1;
}

static enum hipmm_status take(struct fixed *fixed, uint32_t stream, uint32_t *number_out)
{
  uint32_t number = take_ready(fixed, stream);
  if (!number && fixed->streams.active > 1) number = take_passed(fixed, stream);
  if (!number && fixed->streams.active > 1) number = take_waiting(fixed, stream);
  if (!number && fixed->streams.active > 1) number = take_withheld(fixed);
  if (!number) {
    enum hipmm_status status = chunks_grow(fixed, blocks_to_add(fixed), 1, stream);
    if (status) return status;
    number = list_pop(fixed, stream);
  }
  *number_out = number;
  return HIPMM_OK;
}

static enum hipmm_status allocate_locked(struct fixed *fixed, size_t bytes, hipStream_t handle, void **ptr_out)
{
  uint32_t stream, number;
  enum hipmm_status status = enter_stream(fixed, handle, &stream);
  if (!status) status = take(fixed, stream, &number);
  if (status) return status;
  record_of(fixed, number)->requested = bytes;
  chunk_of(fixed, number)->live_count++;
  fixed->live_count++;
  fixed->live_bytes += bytes;
  *ptr_out = address_of(fixed, number);
  return HIPMM_OK;
}

enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipStream_t stream, void **ptr_out)
{
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  pthread_mutex_lock(&fixed->lock);
  enum hipmm_status status = allocate_locked(fixed, bytes, stream, ptr_out);
  pthread_mutex_unlock(&fixed->lock);
  return status;
}

/* ---- Freeing and finding ---- */

static enum hipmm_status deallocate_locked(struct fixed *fixed, void *ptr, size_t bytes, hipStream_t handle)
{
  const struct hipmm_services *services = fixed->services;
  uint32_t number = chunks_live_at(fixed, ptr), stream;
  if (!number)
    return services->refuse(services, HIPMM_E_POINTER,
                            "{0:hex} is not allocated here: it is foreign, or was freed before", (uintptr_t)ptr, 0, 0);
  uint64_t requested = record_of(fixed, number)->requested;
  if (bytes && bytes != requested)
    return services->refuse(services, HIPMM_E_SIZE, "{0:hex} was allocated with {1} bytes and cannot be freed with {2}",
                            (uintptr_t)ptr, requested, bytes);
  enum hipmm_status status = enter_stream(fixed, handle, &stream);
  if (status) return status;
  list_push(fixed, stream, number, stream_note_free(&fixed->streams, stream));
  chunk_of(fixed, number)->live_count--;
  fixed->live_count--;
  fixed->live_bytes -= requested;
  return HIPMM_OK;
}

enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipStream_t stream)
{
  if (!ptr) return HIPMM_OK;
  pthread_mutex_lock(&fixed->lock);
  enum hipmm_status status = deallocate_locked(fixed, ptr, bytes, stream);
  pthread_mutex_unlock(&fixed->lock);
  return status;
}

bool fixed_find(struct fixed *fixed, const void *ptr, struct hipmm_block *block_out)
{
  pthread_mutex_lock(&fixed->lock);
  uint32_t number = chunks_live_at(fixed, ptr);
  if (number) *block_out = (struct hipmm_block){address_of(fixed, number), record_of(fixed, number)->requested};
  pthread_mutex_unlock(&fixed->lock);
  return number != FIXED_NONE;
}

bool fixed_contains(struct fixed *fixed, const void *ptr)
{
  pthread_mutex_lock(&fixed->lock);
  bool contains = chunks_contain(fixed, ptr);
  pthread_mutex_unlock(&fixed->lock);
  return contains;
}

/* ---- Giving back, and news of streams ---- */

enum hipmm_status fixed_trim(struct fixed *fixed, size_t keep_bytes)
{
  pthread_mutex_lock(&fixed->lock);
  enum hipmm_status status = synchronize_device(fixed);
  if (!status) status = chunks_release_idle(fixed, keep_bytes);
  pthread_mutex_unlock(&fixed->lock);
  return status;
}

/* The stream is still valid: once it is waited for, its blocks are anybody's. */
void fixed_stream_retire(struct fixed *fixed, hipStream_t handle)
{
  const struct hipmm_services *services = fixed->services;
  pthread_mutex_lock(&fixed->lock);
  uint32_t stream = streams_known_id(&fixed->streams, handle);
  if (stream >= STREAM_FIRST) {
    int previous = services->enter_device(services);
    int code = services->hip->StreamSynchronize(handle);
    if (code) services->hip->GetLastError();
    services->leave_device(services, previous);
    if (!code || !synchronize_device(fixed)) {
      stream_passed(&fixed->streams, stream);
      list_move(fixed, stream, STREAM_CLEAN);
      stream_forget(&fixed->streams, stream);
    }
  }
  pthread_mutex_unlock(&fixed->lock);
}

void fixed_stream_retain(struct fixed *fixed, hipStream_t handle)
{
  uint32_t stream;
  pthread_mutex_lock(&fixed->lock);
  if (!enter_stream(fixed, handle, &stream)) stream_of(&fixed->streams, stream)->lasts = true;
  pthread_mutex_unlock(&fixed->lock);
}

struct fixed_counts fixed_count(struct fixed *fixed)
{
  pthread_mutex_lock(&fixed->lock);
  struct fixed_counts counts = {.reserved_bytes = (int64_t)fixed->reserved_bytes,
                                .peak_reserved_bytes = (int64_t)fixed->peak_reserved_bytes,
                                .live_bytes = (int64_t)fixed->live_bytes,
                                .live_count = fixed->live_count,
                                .free_count = (int64_t)fixed->n_blocks - fixed->live_count,
                                .chunks = fixed->n_chunks,
                                .stream_waits = (int64_t)fixed->streams.waits};
  pthread_mutex_unlock(&fixed->lock);
  return counts;
}

/* ---- Life ---- */

enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, uint64_t block_bytes, uint32_t blocks_per_chunk,
                             enum record record)
{
  *fixed = (struct fixed){.services = services,
                          .upstream = upstream,
                          .block_bytes = (block_bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT,
                          .blocks_per_chunk = blocks_per_chunk};
  pthread_mutex_init(&fixed->lock, NULL);
  bool opened = streams_open(&fixed->streams, services, record);
  opened = chunks_open(fixed) && opened;
  if (opened) return HIPMM_OK;
  fixed_close(fixed);
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the records of blocks");
}

void fixed_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  if (fixed->live_count)
    services->log(services, HIPMM_LOG_WARNING, "%u blocks of %llu bytes are still allocated and go with it",
                  fixed->live_count, (unsigned long long)fixed->block_bytes);
  if (services->hip->DeviceSynchronize()) services->hip->GetLastError(); /* a broken device frees all the same */
  chunks_close(fixed);
  streams_close(&fixed->streams);
  pthread_mutex_destroy(&fixed->lock);
}

enum hipmm_status fixed_preallocate(struct fixed *fixed, uint32_t n_chunks)
{
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t i = 0; !status && i < n_chunks; i++)
    status = chunks_grow(fixed, fixed->blocks_per_chunk, fixed->blocks_per_chunk, STREAM_CLEAN);
  return status;
}
