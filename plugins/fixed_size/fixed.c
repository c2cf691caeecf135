/* SPDX-License-Identifier: MIT */
/* fixed.c: see fixed.h. Most calls go through a list of the stream alone; all others take the lock and go through
 * reuse.h. */
#include "../../core/base/text.h"
#include "../common/refusals.h"
#include "reuse.h"

static const size_t lists_bytes = MAX_STREAMS * sizeof(struct fixed_list);

/* ---- Allocating ---- */

/* Adds to the reason of the upstream. */
static enum hipmm_status fixed_explain_failure(const struct fixed *fixed, enum hipmm_status status, size_t bytes)
{
  if (!hipmm_is_out_of_memory(status)) return status;
  return fixed->services->explain(fixed->services, status,
                                  "cannot allocate {0:bytes}: {1:bytes} are held in {2} blocks of {3:bytes}, all in "
                                  "use, and the upstream has no room for one more",
                                  bytes, fixed->reserved_bytes, fixed->n_blocks, fixed->block_bytes);
}

/* The caller holds the lock. */
static enum hipmm_status fixed_allocate_locked(struct fixed *fixed, size_t bytes, hipmm_stream_t handle,
                                               uint32_t *number_out)
{
  uint32_t stream, number;
  enum hipmm_status status = reuse_enter_stream(fixed, handle, &stream);
  if (status) return status;
  status = reuse_find(fixed, stream, &number);
  if (status) return fixed_explain_failure(fixed, status, bytes);
  spin_lock(&fixed->lists[stream].busy);
  list_count(&fixed->lists[stream], 1, (int64_t)bytes);
  spin_unlock(&fixed->lists[stream].busy);
  fixed_block_set_live(fixed, number, bytes, handle);
  *number_out = number;
  return HIPMM_OK;
}

/* Every allocation that the list of the stream cannot serve. */
static __attribute__((noinline)) enum hipmm_status fixed_allocate_slow_path(struct fixed *fixed, size_t bytes,
                                                                            hipmm_stream_t handle, void **ptr_out)
{
  uint32_t number = FIXED_NONE;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  status = fixed_allocate_locked(fixed, bytes, handle, &number);
  biased_lock_release(&fixed->lock);
  if (!status) *ptr_out = (void *)(uintptr_t)address_of(fixed, number);
  return status;
}

/* FIXED_NONE if the list has no block for this stream. */
static inline uint32_t fixed_allocate_from_list(struct fixed *fixed, struct fixed_list *list, size_t bytes,
                                                hipmm_stream_t handle)
{
  uint32_t number = FIXED_NONE;
  spin_lock(&list->busy);
  if (list_is_for(list, handle)) number = chain_pop(fixed, &list->free);
  if (number) {
    list_count(list, 1, (int64_t)bytes);
    fixed_block_set_live(fixed, number, bytes, handle);
  }
  spin_unlock(&list->busy);
  return number;
}

enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipmm_stream_t stream, void **ptr_out)
{
  hipmm_stream_t handle = stream_canonical_handle(stream);
  struct fixed_list *list = thread_recall(fixed->serial, handle);
  uint32_t number = list && bytes ? fixed_allocate_from_list(fixed, list, bytes, handle) : FIXED_NONE;
  if (__builtin_expect(!number, 0)) return fixed_allocate_slow_path(fixed, bytes, handle, ptr_out);
  *ptr_out = (void *)(uintptr_t)address_of(fixed, number);
  return HIPMM_OK;
}

/* ---- Freeing and finding ---- */

/* The caller holds the lock. */
static enum hipmm_status fixed_deallocate_locked(struct fixed *fixed, uint32_t number, uint64_t requested,
                                                 hipmm_stream_t handle)
{
  uint32_t stream;
  enum hipmm_status status = reuse_enter_stream(fixed, handle, &stream);
  if (status) return status;
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  chain_push(fixed, &list->free, number, stream_record_free(&fixed->streams, stream));
  list_count(list, -1, -(int64_t)requested);
  spin_unlock(&list->busy);
  return HIPMM_OK;
}

/* The block is claimed. If it cannot be freed, it is live again. */
static __attribute__((noinline)) enum hipmm_status fixed_deallocate_slow_path(struct fixed *fixed, uint32_t number,
                                                                              uint64_t requested, hipmm_stream_t handle)
{
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (!status) {
    status = fixed_deallocate_locked(fixed, number, requested, handle);
    biased_lock_release(&fixed->lock);
  }
  if (status) fixed_block_set_requested(fixed, number, requested);
  return status;
}

/* False, and nothing done, if the list belongs to another stream by now. */
static inline bool fixed_free_to_list(struct fixed *fixed, struct fixed_list *list, uint32_t number, uint64_t requested,
                                      hipmm_stream_t handle)
{
  spin_lock(&list->busy);
  bool is_for = list_is_for(list, handle);
  if (is_for) {
    chain_push(fixed, &list->free, number, ++stream_of(&fixed->streams, (uint32_t)(list - fixed->lists))->frees);
    list_count(list, -1, -(int64_t)requested);
  }
  spin_unlock(&list->busy);
  return is_for;
}

enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  if (!ptr) return HIPMM_OK;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  uint32_t number = fixed_block_at(fixed, ptr);
  uint64_t requested = number ? fixed_block_requested(fixed, number) : 0;
  if (!requested) return refuse_pointer(fixed->services, ptr);
  if (bytes && bytes != requested) return refuse_size(fixed->services, ptr, bytes, requested);
  if (!fixed_block_claim(fixed, number, requested)) return refuse_pointer(fixed->services, ptr);
  struct fixed_list *list = thread_recall(fixed->serial, handle);
  if (__builtin_expect(list && fixed_free_to_list(fixed, list, number, requested, handle), 1)) return HIPMM_OK;
  return fixed_deallocate_slow_path(fixed, number, requested, handle);
}

bool fixed_find(const struct fixed *fixed, const void *ptr, struct hipmm_block *block_out)
{
  uint32_t number = fixed_block_at(fixed, ptr);
  uint64_t requested = number ? fixed_block_requested(fixed, number) : 0;
  if (requested) *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, requested};
  return requested != 0;
}

enum hipmm_status fixed_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  const struct fixed *fixed = self;
  uint32_t number = fixed_block_at(fixed, ptr);
  if (!number || !fixed_block_requested(fixed, number)) return HIPMM_E_POINTER;
  location_out->usable_bytes = fixed->block_bytes;
  location_out->stream = (hipmm_stream_t)(uintptr_t)fixed_block_note(fixed, number);
  location_out->has_stream = 1;
  return HIPMM_OK;
}

int fixed_covers(void *self, const void *ptr)
{
  return fixed_block_at(self, ptr) != FIXED_NONE;
}

/* ---- Trimming and stream events ---- */

enum hipmm_status fixed_trim(void *self, size_t keep_bytes)
{
  struct fixed *fixed = self;
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  if (hipmm_may_wait(fixed->services, HIPMM_OK)) status = reuse_synchronize_device(fixed, STREAM_READY);
  if (!status) status = chunks_release_idle(fixed, keep_bytes, reuse_ready(fixed));
  biased_lock_release(&fixed->lock);
  return status;
}

void fixed_stream_retire(void *self, hipmm_stream_t stream)
{
  struct fixed *fixed = self;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  if (biased_lock_enter(&fixed->lock, fixed->services)) return;
  uint32_t id = streams_known_id(&fixed->streams, handle);
  if (id) reuse_retire_stream(fixed, id, handle);
  biased_lock_release(&fixed->lock);
}

void fixed_stream_retain(void *self, hipmm_stream_t stream)
{
  struct fixed *fixed = self;
  if (biased_lock_enter(&fixed->lock, fixed->services)) return;
  reuse_retain_stream(fixed, stream_canonical_handle(stream));
  biased_lock_release(&fixed->lock);
}

/* ---- Counts; the caller holds the lock ---- */

static void fixed_count_live(struct fixed *fixed, struct fixed_counts *counts)
{
  for (uint32_t stream = 0; fixed->lists && stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    spin_lock(&list->busy);
    counts->live_count += list->live_count;
    counts->live_bytes += list->live_bytes;
    spin_unlock(&list->busy);
  }
}

/* The caller holds the lock. */
static void fixed_count_all(struct fixed *fixed, struct fixed_counts *counts_out)
{
  uint64_t metadata_bytes = sizeof *fixed + chunks_metadata_bytes(fixed) +
                            fixed->streams.count * (sizeof(struct fixed_list) + sizeof(struct stream));
  *counts_out = (struct fixed_counts){.reserved_bytes = (int64_t)fixed->reserved_bytes,
                                      .peak_reserved_bytes = (int64_t)fixed->peak_reserved_bytes,
                                      .chunks = fixed->n_chunks,
                                      .stream_waits = (int64_t)fixed->streams.waits,
                                      .metadata_bytes = (int64_t)metadata_bytes};
  fixed_count_live(fixed, counts_out);
  counts_out->free_count = fixed->n_blocks - counts_out->live_count;
}

enum hipmm_status fixed_count(struct fixed *fixed, bool resets_peak, struct fixed_counts *counts_out)
{
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  fixed_count_all(fixed, counts_out);
  if (resets_peak) fixed->peak_reserved_bytes = fixed->reserved_bytes;
  biased_lock_release(&fixed->lock);
  return HIPMM_OK;
}

/* ---- Life ---- */

/* Nobody else knows the resource yet. The blocks are ready on the default stream at first, and on every stream after the
 * device was waited for. */
static enum hipmm_status fixed_preallocate(struct fixed *fixed, uint32_t n_blocks)
{
  enum hipmm_status status = HIPMM_OK;
  const uint32_t wanted = n_blocks;
  while (!status && n_blocks) {
    struct fixed_chain chain;
    uint32_t n = n_blocks < fixed->blocks_per_chunk ? n_blocks : fixed->blocks_per_chunk;
    status = chunks_grow(fixed, n, n, NULL, &chain);
    if (!status) reuse_add_ready(fixed, chain);
    n_blocks -= n;
  }
  if (wanted && !status) return reuse_synchronize_device(fixed, STREAM_READY);
  if (!hipmm_is_out_of_memory(status)) return status;
  return fixed->services->fail(fixed->services, status, "blocks_to_preallocate",
                               "the upstream does not have %llu blocks of %llu bytes; ask for fewer",
                               (unsigned long long)wanted, (unsigned long long)fixed->block_bytes);
}

enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, uint64_t block_bytes, uint32_t blocks_per_chunk,
                             int64_t blocks_to_preallocate, enum record record)
{
  *fixed = (struct fixed){.services = services,
                          .upstream = upstream,
                          .serial = thread_new_owner(),
                          .block_bytes = sizes_round_up(block_bytes, HIPMM_ALIGNMENT),
                          .blocks_per_chunk = blocks_per_chunk};
  biased_lock_open(&fixed->lock);
  bool opened = streams_open(&fixed->streams, services, record);
  opened = chunks_open(fixed) && opened;
  fixed->lists = services->host_allocate(services, lists_bytes);
  enum hipmm_status status = opened && fixed->lists ? fixed_preallocate(fixed, (uint32_t)blocks_to_preallocate)
                                                    : services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL,
                                                                     "no host memory for the records of blocks");
  if (status) fixed_close(fixed);
  return status;
}

void fixed_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  struct fixed_counts counts = {.live_count = 0};
  fixed_count_live(fixed, &counts);
  if (counts.live_count)
    services->log(services, HIPMM_LOG_WARNING, "destroyed with %lld block%s of %llu bytes still allocated",
                  (long long)counts.live_count, text_plural((uint64_t)counts.live_count),
                  (unsigned long long)fixed->block_bytes);
  device_wait_at_end(services);
  chunks_close(fixed);
  streams_close(&fixed->streams);
  services->host_free(services, fixed->lists, lists_bytes);
  biased_lock_close(&fixed->lock);
}
