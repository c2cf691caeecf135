/* SPDX-License-Identifier: MIT */
/* pool.c: the plugin: options, values, creation and destruction. The pool takes memory from its upstream as it needs it
 * and serves allocations from it; freed memory is reused in stream order. allocate.h has the ops, cache.h holds small blocks
 * for each thread; in ../heap, heap.h finds blocks and backing.h grows the pool; stream_order.h knows when a block may be
 * reused.
 *
 *   thread cache (cache.c)       blocks up to 4 KiB, by thread, stream and size: no lock, no search
 *        │ miss                  a thread that has waited for the lock too often: thread_heaps.c, an arena
 *        │ the pool's lock       (plugins/arena) over blocks that the heap lends
 *   depots (cache.c)             what full caches had, for other threads on the stream
 *   ../heap (heap.c, block.c)    free blocks by stream, kind and size (free_index.c)
 *        │ nothing fits          other streams' blocks, by waiting (heap_streams.c); miss.c has the table of attempts
 *   backing (backing.c) ─┬─ granules.c   ranges of addresses (addresses.c); below them chunks of memory (chunks.c),
 *        │               │               which move to where they are needed (idle.c) when memory is short (slack.c);
 *        │               │               own.c: chunks that are one block, for other processes (share.c);
 *        │               │               span.c: addresses of which the program commits parts
 *        │               └─ segments.c   allocations of the upstream, as they are
 *   upstream                     hipmm_mapping of a source (create, map, unmap), or its allocate
 */
#include "../../core/base/share_format.h"
#include "../../core/base/text.h"
#include "../common/descriptor.h"
#include "allocate.h"

/* ---- Values ---- */

enum value {
  RESERVED_BYTES,
  PEAK_RESERVED_BYTES,
  LIVE_BYTES,
  LIVE_COUNT,
  FREE_BYTES,
  CACHED_BYTES,
  LARGEST_FREE_BYTES,
  FRAGMENTED_BYTES,
  THREAD_HEAPS,
  CHUNKS,
  MOVES,
  RETURNS,
  STREAM_WAITS,
  METADATA_BYTES,
  SUSPENDED_BYTES,
  SWAPPED_OUT_BYTES
};

static const struct hipmm_feature values[] = {
    [RESERVED_BYTES] = {"reserved_bytes", "bytes", "Memory held from the upstream"},
    [PEAK_RESERVED_BYTES] = {"peak_reserved_bytes", "bytes", "The most that was held from the upstream"},
    [LIVE_BYTES] = {"live_bytes", "bytes", "Allocated memory, as requested"},
    [LIVE_COUNT] = {"live_count", "blocks", "Allocated blocks, and spans"},
    [FREE_BYTES] = {"free_bytes", "bytes", "Held memory that is not allocated"},
    [CACHED_BYTES] = {"cached_bytes", "bytes", "The part of it in caches of threads"},
    [LARGEST_FREE_BYTES] = {"largest_free_bytes", "bytes", "The largest free block"},
    [FRAGMENTED_BYTES] =
        {"fragmented_bytes", "bytes",
         "Held memory that is free, but no part of the largest block that it could serve, nor in a cache"},
    [THREAD_HEAPS] = {"thread_heaps", "heaps", "Heaps of threads that had to wait for each other, made so far"},
    [CHUNKS] = {"chunks", "chunks", "Granules, or segments, held from the upstream"},
    [MOVES] = {"moves", "chunks", "Idle chunks mapped at other addresses so far"},
    [RETURNS] = {"returns", "chunks", "Idle chunks that were used again at an earlier address, without a driver call"},
    [STREAM_WAITS] = {"stream_waits", "waits", "Times that a stream was made to wait for another one"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "The most host memory that the pool's records take"},
    [SUSPENDED_BYTES] = {"suspended_bytes", "bytes", "Memory that was given back, and that a resume needs"},
    [SWAPPED_OUT_BYTES] = {"saved_bytes", "bytes", "Host memory with the content of a suspended pool"},
};

static uint64_t pool_metadata_bytes(const struct pool *pool)
{
  return sizeof *pool + heap_metadata_bytes(&pool->heap) + pool->caches.count * sizeof(struct cache) +
         backing_count(&pool->backing) * sizeof(struct chunk);
}

static int64_t pool_value_of(struct pool *pool, enum value value)
{
  const struct heap *heap = &pool->heap;
  struct cache_totals cached = caches_totals(&pool->caches);
  uint64_t away_bytes = pool->backing.granules.chunks.away_bytes;
  switch (value) {
  case RESERVED_BYTES: return (int64_t)(backing_bytes(&pool->backing) - away_bytes);
  case PEAK_RESERVED_BYTES: return (int64_t)pool->backing.held->peak_bytes;
  case LIVE_BYTES: return (int64_t)(heap->requested_bytes - pool->heaps.loan_bytes) + cached.requested;
  case LIVE_COUNT: return heap->blocks.live + cached.live - (int64_t)pool->heaps.loan_count + pool->spans.n;
  case FREE_BYTES: return (int64_t)(backing_free_bytes(&pool->backing, heap) + cached.bytes);
  case CACHED_BYTES: return (int64_t)cached.bytes;
  case LARGEST_FREE_BYTES: return (int64_t)heap_largest_free(heap);
  case FRAGMENTED_BYTES: return (int64_t)fragments_bytes(&pool->backing, heap);
  case MOVES: return (int64_t)pool->backing.granules.moves;
  case RETURNS: return (int64_t)pool->backing.granules.returns;
  case THREAD_HEAPS: return 0;
  case CHUNKS: return (int64_t)backing_count(&pool->backing);
  case STREAM_WAITS: return (int64_t)heap->streams.waits;
  case METADATA_BYTES: return (int64_t)pool_metadata_bytes(pool);
  case SUSPENDED_BYTES: return (int64_t)away_bytes;
  case SWAPPED_OUT_BYTES: return (int64_t)pool->swapped_out.bytes;
  }
  return 0;
}

/* The arena's values that are part of the pool's. */
static const char *const values_in_heaps[] = {
    [LIVE_BYTES] = "live_bytes",         [LIVE_COUNT] = "live_count",
    [FREE_BYTES] = "free_bytes",         [LARGEST_FREE_BYTES] = "largest_free_bytes",
    [THREAD_HEAPS] = "arenas",           [STREAM_WAITS] = "stream_waits",
    [METADATA_BYTES] = "metadata_bytes",
};

/* What the heaps of threads have of the value. The pool's lock is not held. */
static int64_t pool_value_in_heaps(struct pool *pool, size_t index)
{
  const char *name = index < sizeof values_in_heaps / sizeof *values_in_heaps ? values_in_heaps[index] : NULL;
  return name ? thread_heaps_value(&pool->heaps, name) : 0;
}

/* Free memory of a suspended pool is none that could be used. */
static int64_t pool_value_with(struct pool *pool, enum value value, int64_t in_heaps)
{
  bool is_free_memory =
      value == FREE_BYTES || value == CACHED_BYTES || value == LARGEST_FREE_BYTES || value == FRAGMENTED_BYTES;
  if (is_free_memory && pool->backing.granules.chunks.is_suspended) return 0;
  int64_t own = pool_value_of(pool, value);
  if (value != LARGEST_FREE_BYTES) return own + in_heaps;
  return own > in_heaps ? own : in_heaps;
}

static enum hipmm_status pool_query(void *self, size_t index, int64_t *value_out)
{
  struct pool *pool = self;
  int64_t in_heaps = pool_value_in_heaps(pool, index);
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  *value_out = pool_value_with(pool, (enum value)index, in_heaps);
  biased_lock_release(&pool->lock);
  return HIPMM_OK;
}

static const struct hipmm_feature actions[] = {
    {.name = "reset_peaks", .doc = "Starts peak_reserved_bytes again from what is held now"},
};

static enum hipmm_status pool_perform(void *self, size_t index, int64_t *values_out)
{
  struct pool *pool = self;
  int64_t in_heaps[sizeof values / sizeof *values];
  (void)index; /* there is one action */
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) in_heaps[i] = pool_value_in_heaps(pool, i);
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    values_out[i] = pool_value_with(pool, (enum value)i, in_heaps[i]);
  pool->backing.held->peak_bytes = pool->backing.held->bytes;
  biased_lock_release(&pool->lock);
  return HIPMM_OK;
}

/* The maximum is the only option that may change. */
static enum hipmm_status pool_reconfigure(void *self, const char *option, const void *wanted)
{
  struct pool *pool = self;
  uint64_t maximum_bytes = ((const struct pool_options *)wanted)->maximum_size;
  enum hipmm_status status = biased_lock_enter(&pool->lock, pool->services);
  if (status) return status;
  bool is_possible = maximum_bytes >= pool->backing.held->least_bytes;
  if (is_possible) held_set_maximum(pool->backing.held, maximum_bytes);
  biased_lock_release(&pool->lock);
  if (is_possible) return HIPMM_OK;
  return pool->services->fail(pool->services, HIPMM_E_CONFIG, option, "is less than the smallest chunk, %llu bytes",
                              (unsigned long long)pool->backing.held->least_bytes);
}

static void pool_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct pool_options *wanted = options;
  if (!wanted->maximum_size && !validation->is_unknown(validation, "maximum_size"))
    validation->warn(validation, "maximum_size",
                     "is 0, so every allocation fails; write the most bytes, such as \"8GiB\", or \"unlimited\"");
  if (wanted->folder && wanted->save_to != SAVE_TO_PINNED)
    validation->warn(validation, "save_to", "is not used, since \"folder\" names a place for a file");
}

/* ---- Life ---- */

static void pool_destroy(void *self)
{
  struct pool *pool = self;
  const struct hipmm_services *services = pool->services;
  share_close(pool);
  thread_watch_close(&pool->threads);
  thread_heaps_close(&pool->heaps);
  swapped_out_release(pool);
  content_file_close(&pool->swapped_out.file);
  if (pool->caches.items) caches_flush(&pool->caches, &pool->heap);
  struct cache_totals cached = caches_totals(&pool->caches); /* empty caches still correct the heap's counts */
  int64_t live = pool->heap.blocks.live + cached.live + pool->spans.n;
  int64_t live_bytes = (int64_t)pool->heap.requested_bytes + cached.requested;
  if (live)
    services->log(services, HIPMM_LOG_WARNING, "destroyed with %lld block%s (%lld byte%s) still allocated",
                  (long long)live, text_plural((uint64_t)live), (long long)live_bytes,
                  text_plural((uint64_t)live_bytes));
  if (pool->backing.ops)
    services->log(services, HIPMM_LOG_DEBUG,
                  "held at most %llu bytes, moved %llu chunks, reused %llu at an earlier address, waited %llu times",
                  (unsigned long long)pool->backing.held->peak_bytes, (unsigned long long)pool->backing.granules.moves,
                  (unsigned long long)pool->backing.granules.returns, (unsigned long long)pool->heap.streams.waits);
  device_wait_at_end(services);
  backing_close(&pool->backing);
  spans_close(pool);
  heap_close(&pool->heap);
  caches_close(&pool->caches);
  biased_lock_close(&pool->lock);
  services->host_free(services, pool, sizeof *pool);
}

static enum hipmm_status pool_fill(struct pool *pool, uint64_t initial_bytes)
{
  uint64_t maximum_bytes = pool->backing.held->maximum_bytes;
  initial_bytes = sizes_round_up(initial_bytes, HIPMM_ALIGNMENT);
  if (initial_bytes > maximum_bytes) initial_bytes = maximum_bytes; /* which backing_open() has rounded down */
  if (!initial_bytes) return HIPMM_OK;
  enum hipmm_status status = backing_fill(&pool->backing, &pool->heap, initial_bytes);
  if (status == HIPMM_E_OUT_OF_MEMORY)
    return pool->services->fail(pool->services, status, "initial_size",
                                "the upstream does not have %llu bytes; ask for less (a percentage is of what is free)",
                                (unsigned long long)initial_bytes);
  if (status) return status;
  int code = pool->services->hip->StreamSynchronize(NULL); /* the memory may be ready for this stream only */
  return code ? pool->services->refuse_hip(pool->services, "hipStreamSynchronize", code, 0) : HIPMM_OK;
}

/* What the warning of fragmentation advises. */
static const char *pool_remedy(const struct pool *pool, const struct hipmm_resource *upstream, enum ipc ipc)
{
  bool can_map = upstream->ops->mapping && pool->backing.ops && !pool->backing.ops->moves && ipc != IPC_LEGACY;
  return can_map ? "\"growth\": \"mapped\" joins them" : "give blocks that live long a pool of their own";
}

/* Blocks with chunks of their own come from no heap of a thread. */
static void pool_limit_thread_heaps(struct pool *pool)
{
  bool moves = pool->backing.ops && pool->backing.ops->moves;
  uint64_t most_bytes = moves ? THREAD_HEAPS_MOST_BYTES : THREAD_HEAPS_MOST_BYTES_IN_SEGMENTS;
  pool->heaps.most_bytes = most_bytes < pool->whole_bytes ? most_bytes : pool->whole_bytes - 1;
}

static enum hipmm_status pool_create(const struct hipmm_services *services, const void *options,
                                     struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct pool_options *wanted = options;
  (void)n_upstreams;
  struct pool *pool = services->host_allocate(services, sizeof *pool);
  if (!pool) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left");
  pool->services = services;
  pool->save_to = wanted->folder ? SAVE_TO_FILE : wanted->save_to;
  biased_lock_open(&pool->lock);
  thread_heaps_open(&pool->heaps, (struct hipmm_resource){.ops = &pool_loan_ops, .self = pool}, wanted->record);
  enum hipmm_status status = HIPMM_OK;
  bool opened = caches_open(&pool->caches, services);
  if (!heap_open(&pool->heap, services, (enum record)wanted->record) || !opened)
    status = services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the pool's records");
  if (!status) status = backing_open(&pool->backing, &pool->heap, services, upstreams[0], wanted);
  bool has_own = pool->backing.granules.chunks.may_export || wanted->ipc == IPC_LEGACY;
  pool->whole_bytes = has_own ? SHARE_FORMAT_LEAST_BYTES : UINT64_MAX;
  pool->whole_unit = pool->heap.blocks.granule_bytes ? pool->heap.blocks.granule_bytes : SIZES_PAGE_BYTES;
  pool_limit_thread_heaps(pool);
  pool->heap.remedy = pool_remedy(pool, upstreams[0], (enum ipc)wanted->ipc);
  if (!status && wanted->folder) status = content_file_open(&pool->swapped_out.file, services, wanted->folder);
  if (!status) status = pool_fill(pool, wanted->initial_size);
  if (status) {
    pool_destroy(pool);
    return status;
  }
  pool->threads.ended = pool_thread_ended;
  thread_watch_open(&pool->threads); /* last: it may be called at once */
  *self_out = pool;
  return HIPMM_OK;
}

static const char *const unlimited[] = {"unlimited", NULL};
static const char *const automatic[] = {"auto", NULL};
static const char *const growths[] = {
    [GROWTH_AUTO] = "auto", [GROWTH_MAPPED] = "mapped", [GROWTH_SEGMENTS] = "segments", NULL};

static const char *const ipcs[] = {[IPC_HIPMM] = "hipmm", [IPC_LEGACY] = "legacy", NULL};

static const char *const places[] = {
    [SAVE_TO_PINNED] = "pinned", [SAVE_TO_PINNED_KEPT] = "pinned_kept", [SAVE_TO_PAGEABLE] = "pageable", NULL};

static const struct hipmm_option options[] = {
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct pool_options, initial_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "Memory taken from the upstream at once; the pool grows by itself"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct pool_options, maximum_size),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "The most that is ever held from the upstream",
     .at_least = "initial_size",
     .choices = unlimited},
    {.name = "growth",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct pool_options, growth),
     .initial = "auto",
     .doc =
         "How the pool grows: mapped, by granules under one range of addresses (a copy on the default stream does not "
         "wait for the work of another device's default stream: use events, hipMemcpyPeer, or segments); segments, by "
         "separate blocks of the upstream; auto, mapped where the upstream can map, the process has one device or is "
         "PyTorch's and every device can reach the memory, and nothing else speaks against it",
     .choices = growths},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct pool_options, record),
     .initial = "auto",
     .doc =
         "When the event is recorded that another stream waits for before it reuses a block: on_free, at each free; "
         "lazy, when another stream wants the block, if every stream outlives its frees; auto, lazily for the default "
         "stream and retained ones, by synchronising the device for others",
     .choices = record_words},
    {.name = "slack",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct pool_options, slack),
     .initial = "auto",
     .unit = "bytes",
     .doc = "Idle memory that the pool may hold beyond the peak of what was allocated, rather than move it to "
            "where it is needed, or release it if it is a segment; less as maximum_size or the end of the "
            "device's memory nears; auto, of segments 1/8 of the peak, or up to 1/4 if what was released was "
            "needed again; of mapped memory 1/16 of the peak, or up to half of the peak while that is no more "
            "than 1/256 of the device's free memory",
     .choices = automatic},
    {.name = "exportable",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct pool_options, exportable),
     .initial = "false",
     .doc =
         "Whether other processes may get mapped blocks of 1 MiB and more, by hipIpcGetMemHandle and its like under "
         "hipmm run, or by hipmm_share_export_pointer: each has a chunk of its own, of eight sizes a doubling, which "
         "stays where it is while the block lives. Always where device has a handle_type"},
    {.name = "ipc",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct pool_options, ipc),
     .initial = "hipmm",
     .doc = "Whose handles other processes open: hipmm, which both processes need for mapped memory; legacy, the "
            "driver's, for processes without hipmm: blocks of 1 MiB and more are segments of their own",
     .choices = ipcs},
    {.name = "save_to",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct pool_options, save_to),
     .initial = "pinned",
     .doc = "Where the content of a suspended pool is: pinned, in pinned host memory until the pool is resumed; "
            "pinned_kept, in pinned host memory that stays for the next time, in pieces of 64 MiB, until the pool is "
            "suspended without its content or destroyed; pageable, in plain host memory, whose copies are slower",
     .choices = places},
    {.name = "folder",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct pool_options, folder),
     .doc = "A folder on a fast disk, such as \"/tmp\". A file there, without a name, gets the content of a suspended "
            "pool, instead of the memory that save_to says"},
};

static const struct hipmm_ops ops = {.struct_size = sizeof ops,
                                     .allocate = pool_allocate,
                                     .deallocate = pool_deallocate,
                                     .trim = pool_trim,
                                     .query = pool_query,
                                     .perform = pool_perform,
                                     .find = pool_find,
                                     .stream_retire = pool_stream_retire,
                                     .stream_retain = pool_stream_retain,
                                     .reconfigure = pool_reconfigure,
                                     .visit = pool_visit,
                                     .covers = pool_covers,
                                     .locate = pool_locate,
                                     .visit_chunks = pool_visit_chunks,
                                     .sharing = &pool_sharing,
                                     .suspend = pool_suspend,
                                     .resume = pool_resume,
                                     .try_allocate = pool_try_allocate,
                                     .try_deallocate = pool_try_deallocate,
                                     .spans = &pool_spans};

const struct hipmm_plugin pool_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(options, struct pool_options),
    .type = "pool",
    .version = "1.0",
    .doc = "Serves allocations from large blocks of its upstream; best fit, merged when freed, reused in stream order",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    PLUGIN_VALUES(values),
    PLUGIN_ACTIONS(actions),
    .ops = &ops,
    .create = pool_create,
    .destroy = pool_destroy,
    .validate = pool_validate,
};
