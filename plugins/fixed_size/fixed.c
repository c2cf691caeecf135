/* SPDX-License-Identifier: MIT */
/* fixed.c: see fixed.h. Most calls go through a list of the stream alone; all others take the lock and go through
 * reuse.c. */
#include "fixed.h"
#include "../../core/base/text.h"
#include "../common/refusals.h"

static const size_t lists_bytes = MAX_STREAMS * sizeof(struct fixed_list);

/* ---- Allocating ---- */

/* Acquires the lock for a call on the stream. */
static enum hipmm_status fixed_enter(struct fixed *fixed, hipmm_stream_t handle, uint32_t *stream_out)
{
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  status = reuse_enter_stream(fixed, handle, stream_out);
  if (status) biased_lock_release(&fixed->lock);
  return status;
}

/* Adds to the reason of the upstream. */
static enum hipmm_status fixed_explain_failure(const struct fixed *fixed, enum hipmm_status status, size_t bytes)
{
  if (!hipmm_is_out_of_memory(status)) return status;
  return fixed->services->explain(fixed->services, status,
                                  "cannot allocate {0:bytes}: {1:bytes} are held in {2} blocks of {3:bytes}, all in "
                                  "use, and the upstream has no room for one more",
                                  bytes, fixed->reserved_bytes, fixed_n_blocks(fixed), fixed->block_bytes);
}

/* Of a free block that is in no list. The caller holds the list's lock. */
static inline void *fixed_make_live(const struct fixed *fixed, struct fixed_list *list, uint32_t number, size_t bytes,
                                    hipmm_stream_t handle)
{
  struct fixed_record *record = record_of(fixed, number);
  list->live_count++;
  list->live_bytes += (int64_t)bytes;
  __atomic_store_n(&record->note, (uintptr_t)handle, __ATOMIC_RELAXED);
  __atomic_store_n(&record->requested, bytes, __ATOMIC_RELEASE);
  return (void *)(uintptr_t)record->start;
}

/* Every allocation that the list of the stream cannot serve. */
static __attribute__((noinline)) enum hipmm_status fixed_allocate_slow_path(struct fixed *fixed, size_t bytes,
                                                                            hipmm_stream_t handle, void **ptr_out)
{
  uint32_t stream, number;
  enum hipmm_status status = fixed_enter(fixed, handle, &stream);
  if (status) return status;
  struct fixed_list *list = &fixed->lists[stream];
  status = reuse_find(fixed, stream, &number);
  if (status) {
    status = fixed_explain_failure(fixed, status, bytes);
  } else {
    spin_lock(&list->busy);
    *ptr_out = fixed_make_live(fixed, list, number, bytes, handle);
    spin_unlock(&list->busy);
  }
  biased_lock_release(&fixed->lock);
  return status;
}

/* NULL if the list has no block for this stream. */
static inline void *fixed_allocate_from_list(struct fixed *fixed, struct fixed_list *list, size_t bytes,
                                             hipmm_stream_t handle)
{
  void *ptr = NULL;
  spin_lock(&list->busy);
  uint32_t number = list_is_for(list, handle) ? list_pop(fixed, list) : FIXED_NONE;
  if (number) ptr = fixed_make_live(fixed, list, number, bytes, handle);
  spin_unlock(&list->busy);
  return ptr;
}

enum hipmm_status fixed_allocate(struct fixed *fixed, size_t bytes, hipmm_stream_t stream, void **ptr_out)
{
  hipmm_stream_t handle = stream_canonical_handle(stream);
  struct fixed_list *list = thread_recall(fixed->serial, handle);
  void *ptr = list && bytes ? fixed_allocate_from_list(fixed, list, bytes, handle) : NULL;
  if (__builtin_expect(!ptr && bytes, 0)) return fixed_allocate_slow_path(fixed, bytes, handle, ptr_out);
  *ptr_out = ptr;
  return HIPMM_OK;
}

/* ---- Freeing and finding ---- */

/* Adds a block that the caller has claimed. The caller holds the list's lock. */
static inline void fixed_make_free(const struct fixed *fixed, struct fixed_list *list, uint32_t number,
                                   uint64_t requested, uint64_t epoch)
{
  list->live_count--;
  list->live_bytes -= (int64_t)requested;
  list_push(fixed, list, number, epoch);
}

/* The block is claimed. If it cannot be freed, it is live again. */
static __attribute__((noinline)) enum hipmm_status fixed_deallocate_slow_path(struct fixed *fixed, uint32_t number,
                                                                              uint64_t requested, hipmm_stream_t handle)
{
  uint32_t stream;
  enum hipmm_status status = fixed_enter(fixed, handle, &stream);
  if (status) {
    fixed_block_set_requested(fixed, number, requested);
    return status;
  }
  struct fixed_list *list = &fixed->lists[stream];
  spin_lock(&list->busy);
  fixed_make_free(fixed, list, number, requested, stream_record_free(&fixed->streams, stream));
  spin_unlock(&list->busy);
  biased_lock_release(&fixed->lock);
  return HIPMM_OK;
}

/* False, and nothing done, if the list belongs to another stream by now. */
static inline bool fixed_free_to_list(struct fixed *fixed, struct fixed_list *list, uint32_t number, uint64_t requested,
                                      hipmm_stream_t handle)
{
  struct stream *stream = stream_of(&fixed->streams, (uint32_t)(list - fixed->lists));
  spin_lock(&list->busy);
  bool is_for = list_is_for(list, handle);
  if (is_for) fixed_make_free(fixed, list, number, requested, ++stream->frees);
  spin_unlock(&list->busy);
  return is_for;
}

/* The block that starts at `ptr`; *requested_out is 0 if it is not live. */
static inline uint32_t fixed_look_up(const struct fixed *fixed, const void *ptr, uint64_t *requested_out)
{
  uint32_t number = fixed_block_at(fixed, (uintptr_t)ptr);
  *requested_out = number ? fixed_block_requested(fixed, number) : 0;
  return number;
}

enum hipmm_status fixed_deallocate(struct fixed *fixed, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  if (!ptr) return HIPMM_OK;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  uint64_t requested;
  uint32_t number = fixed_look_up(fixed, ptr, &requested);
  if (!requested) return refuse_pointer(fixed->services, ptr);
  if (bytes && bytes != requested) return refuse_size(fixed->services, ptr, bytes, requested);
  if (!fixed_block_claim(fixed, number, (uintptr_t)ptr, requested)) return refuse_pointer(fixed->services, ptr);
  struct fixed_list *list = thread_recall(fixed->serial, handle);
  if (__builtin_expect(list && fixed_free_to_list(fixed, list, number, requested, handle), 1)) return HIPMM_OK;
  return fixed_deallocate_slow_path(fixed, number, requested, handle);
}

bool fixed_find(const struct fixed *fixed, const void *ptr, struct hipmm_block *block_out)
{
  uint64_t requested;
  fixed_look_up(fixed, ptr, &requested);
  if (requested) *block_out = (struct hipmm_block){(void *)(uintptr_t)ptr, requested};
  return requested != 0;
}

enum hipmm_status fixed_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  const struct fixed *fixed = self;
  uint64_t requested;
  uint32_t number = fixed_look_up(fixed, ptr, &requested);
  if (!requested) return HIPMM_E_POINTER;
  location_out->usable_bytes = fixed->block_bytes;
  location_out->stream = (hipmm_stream_t)(uintptr_t)fixed_block_note(fixed, number);
  location_out->has_stream = 1;
  return HIPMM_OK;
}

int fixed_covers(void *self, const void *ptr)
{
  return fixed_block_at(self, (uintptr_t)ptr) != FIXED_NONE;
}

/* ---- Trimming and stream events ---- */

enum hipmm_status fixed_trim(void *self, size_t keep_bytes)
{
  struct fixed *fixed = self;
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  if (hipmm_may_wait(fixed->services, HIPMM_OK)) status = reuse_synchronize_device(fixed, STREAM_READY);
  if (!status) {
    reuse_see_lists(fixed);
    status = chunks_release_idle(fixed, keep_bytes);
  }
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
  uint32_t id;
  if (fixed_enter(fixed, stream_canonical_handle(stream), &id)) return;
  stream_retain(&fixed->streams, id);
  stream_set_add(&fixed->with_event, id); /* it is in `filled` now */
  biased_lock_release(&fixed->lock);
}

/* ---- Values ---- */

/* Returns how many blocks are live. The caller holds the lock. */
static int64_t fixed_count_live(const struct fixed *fixed, int64_t *bytes_out)
{
  int64_t count = 0;
  *bytes_out = 0;
  for (uint32_t stream = 0; fixed->lists && stream < fixed->streams.count; stream++) {
    struct fixed_list *list = &fixed->lists[stream];
    spin_lock(&list->busy);
    count += list->live_count;
    *bytes_out += list->live_bytes;
    spin_unlock(&list->busy);
  }
  return count;
}

enum hipmm_status fixed_count(struct fixed *fixed, bool resets_peak, int64_t values_out[FIXED_VALUES])
{
  enum hipmm_status status = biased_lock_enter(&fixed->lock, fixed->services);
  if (status) return status;
  int64_t live_count = fixed_count_live(fixed, &values_out[FIXED_LIVE_BYTES]);
  uint64_t metadata_bytes = sizeof *fixed + chunks_metadata_bytes(fixed) +
                            fixed->streams.count * (sizeof(struct fixed_list) + sizeof(struct stream));
  values_out[FIXED_RESERVED_BYTES] = (int64_t)fixed->reserved_bytes;
  values_out[FIXED_PEAK_RESERVED_BYTES] = (int64_t)fixed->peak_reserved_bytes;
  values_out[FIXED_LIVE_COUNT] = live_count;
  values_out[FIXED_FREE_COUNT] = (int64_t)fixed_n_blocks(fixed) - live_count;
  values_out[FIXED_CHUNKS] = fixed->n_chunks;
  values_out[FIXED_STREAM_WAITS] = (int64_t)fixed->streams.waits;
  values_out[FIXED_METADATA_BYTES] = (int64_t)metadata_bytes;
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
    const struct key_tree_node *chunk;
    uint32_t n = n_blocks < fixed->blocks_per_chunk ? n_blocks : fixed->blocks_per_chunk;
    status = chunks_grow(fixed, n, n, NULL, &chunk);
    if (!status) chunks_push_ready(fixed, chunk, reuse_ready(fixed), 0);
    n_blocks -= n;
  }
  if (wanted && !status) return reuse_synchronize_device(fixed, STREAM_READY);
  if (!hipmm_is_out_of_memory(status)) return status;
  return fixed->services->fail(fixed->services, status, "blocks_to_preallocate",
                               "the upstream does not have %llu blocks of %llu bytes; ask for fewer",
                               (unsigned long long)wanted, (unsigned long long)fixed->block_bytes);
}

enum hipmm_status fixed_open(struct fixed *fixed, const struct hipmm_services *services,
                             struct hipmm_resource *upstream, const struct fixed_size_options *options)
{
  *fixed = (struct fixed){.services = services,
                          .upstream = upstream,
                          .serial = thread_new_owner(),
                          .block_bytes = sizes_round_up(options->block_size, HIPMM_ALIGNMENT),
                          .blocks_per_chunk = (uint32_t)options->blocks_per_chunk};
  biased_lock_open(&fixed->lock);
  bool opened = streams_open(&fixed->streams, services, (enum record)options->record);
  opened = chunks_open(fixed) && opened;
  fixed->lists = services->host_allocate(services, lists_bytes);
  enum hipmm_status status = opened && fixed->lists ? fixed_preallocate(fixed, (uint32_t)options->blocks_to_preallocate)
                                                    : services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL,
                                                                     "no host memory for the records of blocks");
  if (status) fixed_close(fixed);
  return status;
}

void fixed_close(struct fixed *fixed)
{
  const struct hipmm_services *services = fixed->services;
  int64_t bytes, count = fixed_count_live(fixed, &bytes);
  if (count)
    services->log(services, HIPMM_LOG_WARNING, "destroyed with %lld block%s of %llu bytes still allocated",
                  (long long)count, text_plural((uint64_t)count), (unsigned long long)fixed->block_bytes);
  device_wait_at_end(services);
  chunks_close(fixed);
  streams_close(&fixed->streams);
  services->host_free(services, fixed->lists, lists_bytes);
  biased_lock_close(&fixed->lock);
}
