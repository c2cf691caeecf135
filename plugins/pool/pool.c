/* SPDX-License-Identifier: MIT */
/* pool.c: the plugin: options, values, creation and destruction. The pool takes memory from its upstream as it needs it
 * and serves allocations from it; freed memory is reused in stream order. allocate.h has the ops, cache.h holds small blocks
 * for each thread; in ../heap, heap.h finds blocks and backing.h grows the pool; stream_order.h knows when a block may be
 * reused.
 *
 *   thread cache (cache.c)       blocks up to 4 KiB, by thread, stream and size: no lock, no search
 *        │ miss                  a thread that has waited for the lock too often: a local arena (../arena)
 *        │ the pool's lock
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
  return sizeof *pool - sizeof pool->arena + arena_metadata_bytes(&pool->arena) +
         pool->caches.count * sizeof(struct cache) + backing_count(&pool->arena.backing) * sizeof(struct chunk);
}

/* Free memory of a suspended pool is none that could be used. */
static int64_t pool_value_of(struct arena *arena, size_t index)
{
  struct pool *pool = (struct pool *)arena;
  const struct cache_totals cached = caches_totals(&pool->caches);
  const struct chunks *chunks = &arena->backing.granules.chunks;
  bool is_usable = !chunks->is_suspended;
  int64_t live_bytes;
  switch ((enum value)index) {
  case RESERVED_BYTES: return (int64_t)(backing_bytes(&arena->backing) - chunks->away_bytes);
  case PEAK_RESERVED_BYTES: return (int64_t)arena->backing.held->peak_bytes;
  case LIVE_BYTES: arena_live_count(arena, &live_bytes); return live_bytes + cached.requested;
  case LIVE_COUNT: return arena_live_count(arena, &live_bytes) + cached.live + pool->spans.n;
  case FREE_BYTES: return is_usable ? (int64_t)(arena_free_bytes(arena) + cached.bytes) : 0;
  case CACHED_BYTES: return is_usable ? (int64_t)cached.bytes : 0;
  case LARGEST_FREE_BYTES: return is_usable ? (int64_t)arena_largest_free(arena) : 0;
  case FRAGMENTED_BYTES: return is_usable ? (int64_t)fragments_bytes(&arena->backing, &arena->heap) : 0;
  case MOVES: return (int64_t)arena->backing.granules.moves;
  case RETURNS: return (int64_t)arena->backing.granules.returns;
  case THREAD_HEAPS: return arena->n_locals - 1;
  case CHUNKS: return (int64_t)backing_count(&arena->backing);
  case STREAM_WAITS: return (int64_t)arena->heap.streams.waits;
  case METADATA_BYTES: return (int64_t)pool_metadata_bytes(pool);
  case SUSPENDED_BYTES: return (int64_t)chunks->away_bytes;
  case SWAPPED_OUT_BYTES: return (int64_t)pool->swapped_out.bytes;
  }
  return 0;
}

static const struct hipmm_feature actions[] = {
    {.name = "reset_peaks", .doc = "Starts peak_reserved_bytes again from what is held now"},
};

/* The maximum is the only option that may change. */
static enum hipmm_status pool_reconfigure(void *self, const char *option, const void *wanted)
{
  struct pool *pool = self;
  uint64_t maximum_bytes = ((const struct pool_options *)wanted)->maximum_size;
  enum hipmm_status status = biased_lock_enter(&pool->arena.lock, pool->arena.services);
  if (status) return status;
  bool is_possible = maximum_bytes >= pool->arena.backing.held->least_bytes;
  if (is_possible) held_set_maximum(pool->arena.backing.held, maximum_bytes);
  biased_lock_release(&pool->arena.lock);
  if (is_possible) return HIPMM_OK;
  return pool->arena.services->fail(pool->arena.services, HIPMM_E_CONFIG, option,
                                    "is less than the smallest chunk, %llu bytes",
                                    (unsigned long long)pool->arena.backing.held->least_bytes);
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
  struct arena *arena = &pool->arena;
  const struct hipmm_services *services = arena->services;
  share_close(pool);
  thread_watch_close(&arena->threads);
  swapped_out_release(pool);
  content_file_close(&pool->swapped_out.file);
  if (pool->caches.items) caches_flush(&pool->caches, &arena->heap);
  struct cache_totals cached = caches_totals(&pool->caches); /* empty caches still correct the heap's counts */
  int64_t live_bytes, live = arena_live_count(arena, &live_bytes) + cached.live + pool->spans.n;
  live_bytes += cached.requested;
  arena_warn_of_live(arena, live, live_bytes);
  if (arena->backing.ops)
    services->log(services, HIPMM_LOG_DEBUG,
                  "held at most %llu bytes, moved %llu chunks, reused %llu at an earlier address, waited %llu times",
                  (unsigned long long)arena->backing.held->peak_bytes,
                  (unsigned long long)arena->backing.granules.moves,
                  (unsigned long long)arena->backing.granules.returns, (unsigned long long)arena->heap.streams.waits);
  arena_close(arena);
  spans_close(pool);
  caches_close(&pool->caches);
  services->host_free(services, pool, sizeof *pool);
}

static enum hipmm_status pool_fill(struct pool *pool, uint64_t bytes)
{
  uint64_t maximum_bytes = pool->arena.backing.held->maximum_bytes; /* which backing_open() has rounded down */
  bytes = sizes_round_up(bytes, HIPMM_ALIGNMENT);
  return arena_fill(&pool->arena, bytes < maximum_bytes ? bytes : maximum_bytes, "initial_size");
}

/* What the warning of fragmentation advises. */
static const char *pool_remedy(const struct pool *pool, const struct hipmm_resource *upstream, enum ipc ipc)
{
  bool can_map =
      upstream->ops->mapping && pool->arena.backing.ops && !pool->arena.backing.ops->moves && ipc != IPC_LEGACY;
  return can_map ? "\"growth\": \"mapped\" joins them" : "give blocks that live long a pool of their own";
}

/* Blocks with chunks of their own come from no local arena. Superblocks lie in the segments for small blocks. */
static void pool_limit_locals(struct pool *pool)
{
  struct arena *arena = &pool->arena;
  bool moves = arena->backing.ops && arena->backing.ops->moves;
  pool->most_local_bytes = moves ? LOCAL_MOST_BYTES : LOCAL_MOST_BYTES_IN_SEGMENTS;
  if (pool->most_local_bytes >= pool->whole_bytes) pool->most_local_bytes = pool->whole_bytes - 1;
  if (moves) return;
  arena->superblock_bytes = arena->heap.small_bytes / 4;
  arena->most_superblock_bytes = arena->heap.small_bytes / 2;
}

static bool pool_flush(struct arena *arena)
{
  return caches_flush(&((struct pool *)arena)->caches, &arena->heap);
}

static void pool_end_stream(struct arena *arena, uint32_t stream)
{
  caches_end_stream(&((struct pool *)arena)->caches, &arena->heap, stream);
}

static void pool_end_thread(struct arena *arena, uint64_t thread, bool is_locked)
{
  struct caches *caches = &((struct pool *)arena)->caches;
  if (is_locked)
    caches_end_thread(caches, &arena->heap, thread);
  else
    caches_abandon(caches, thread);
}

static const struct arena_type pool_type = {.is_merging = true,
                                            .flush = pool_flush,
                                            .end_stream = pool_end_stream,
                                            .end_thread = pool_end_thread,
                                            .refuse = pool_refuse_pointer,
                                            .value = pool_value_of,
                                            .n_values = sizeof values / sizeof *values};

static enum hipmm_status pool_create(const struct hipmm_services *services, const void *options,
                                     struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct pool_options *wanted = options;
  (void)n_upstreams;
  struct pool *pool = services->host_allocate(services, sizeof *pool);
  if (!pool) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left");
  struct arena *arena = &pool->arena;
  arena->services = services;
  arena->type = &pool_type;
  pool->save_to = wanted->folder ? SAVE_TO_FILE : wanted->save_to;
  enum hipmm_status status = HIPMM_OK;
  bool opened = caches_open(&pool->caches, services);
  if (!arena_open(arena, (enum record)wanted->record) || !opened)
    status = services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the pool's records");
  if (!status) status = backing_open(&arena->backing, &arena->heap, services, upstreams[0], wanted);
  bool has_own = arena->backing.granules.chunks.may_export || wanted->ipc == IPC_LEGACY;
  pool->whole_bytes = has_own ? SHARE_FORMAT_LEAST_BYTES : UINT64_MAX;
  pool->whole_unit = arena->heap.blocks.granule_bytes ? arena->heap.blocks.granule_bytes : SIZES_PAGE_BYTES;
  pool_limit_locals(pool);
  arena->heap.remedy = pool_remedy(pool, upstreams[0], (enum ipc)wanted->ipc);
  if (!status && wanted->folder) status = content_file_open(&pool->swapped_out.file, services, wanted->folder);
  if (!status) status = pool_fill(pool, wanted->initial_size);
  if (status) {
    pool_destroy(pool);
    return status;
  }
  arena_watch_threads(arena); /* last: it may be notified at once */
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
                                     .trim = arena_trim,
                                     .query = arena_query,
                                     .perform = arena_perform,
                                     .find = arena_find,
                                     .stream_retire = arena_stream_retire,
                                     .stream_retain = arena_stream_retain,
                                     .reconfigure = pool_reconfigure,
                                     .visit = pool_visit,
                                     .covers = arena_covers,
                                     .locate = arena_locate,
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
