/* SPDX-License-Identifier: MIT */
/* arena.c: the resource `arena`: options, names of values, create and destroy. Each pair of a thread and a stream
 * allocates from an arena of its own and so contends with no other; local arenas get superblocks from a global arena.
 * arena.h lists the other files.
 *
 * The global arena has its memory in a heap over segments, whose code is the pool's (../heap/heap.h). A block of that heap is
 * a superblock of a local arena, or a large allocation. The records of the blocks in a superblock are the heap's too.
 *
 * Unlike RMM's arena, this one grows, and a free never waits on the host. */
#include "../common/descriptor.h"
#include "../common/log_file.h"
#include "at_hand.h"
#include "options.h"

/* ---- Values ---- */

enum arena_value {
  ARENA_RESERVED_BYTES,
  ARENA_PEAK_RESERVED_BYTES,
  ARENA_LIVE_BYTES,
  ARENA_LIVE_COUNT,
  ARENA_FREE_BYTES,
  ARENA_LARGEST_FREE_BYTES,
  ARENA_FRAGMENTED_BYTES,
  ARENA_CHUNKS,
  ARENA_SUPERBLOCKS,
  ARENA_SUPERBLOCK_BYTES_HELD,
  ARENA_LOCALS,
  ARENA_COLLECTIONS,
  ARENA_STREAM_WAITS,
  ARENA_METADATA_BYTES,
  ARENA_N_VALUES
};

static const struct hipmm_feature arena_values[ARENA_N_VALUES] = {
    [ARENA_RESERVED_BYTES] = {"reserved_bytes", "bytes", "Memory held from the upstream"},
    [ARENA_PEAK_RESERVED_BYTES] = {"peak_reserved_bytes", "bytes", "The most that was held from the upstream"},
    [ARENA_LIVE_BYTES] = {"live_bytes", "bytes", "Allocated memory, as requested"},
    [ARENA_LIVE_COUNT] = {"live_count", "blocks", "Allocated blocks"},
    [ARENA_FREE_BYTES] = {"free_bytes", "bytes", "Held memory that is not allocated"},
    [ARENA_LARGEST_FREE_BYTES] = {"largest_free_bytes", "bytes", "The largest free block"},
    [ARENA_FRAGMENTED_BYTES] = {"fragmented_bytes", "bytes",
                                "Free memory outside of superblocks, and outside of the largest free block there"},
    [ARENA_CHUNKS] = {"chunks", "chunks", "Segments held from the upstream"},
    [ARENA_SUPERBLOCKS] = {"superblocks", "superblocks", "Parts of segments that arenas of threads and streams have"},
    [ARENA_SUPERBLOCK_BYTES_HELD] = {"superblock_bytes", "bytes", "Memory in superblocks, allocated or not"},
    [ARENA_LOCALS] = {"arenas", "arenas", "Arenas of threads and streams made so far"},
    [ARENA_COLLECTIONS] = {"collections", "collections",
                           "Times that all arenas had to give back what they did not use"},
    [ARENA_STREAM_WAITS] = {"stream_waits", "waits", "Times that a stream was made to wait for another one"},
    [ARENA_METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for what is known about blocks and streams"},
};

static int64_t arena_value_of(struct arena *arena, size_t index)
{
  int64_t live_bytes;
  switch ((enum arena_value)index) {
  case ARENA_RESERVED_BYTES: return (int64_t)arena->backing.held->bytes;
  case ARENA_PEAK_RESERVED_BYTES: return (int64_t)arena->backing.held->peak_bytes;
  case ARENA_LIVE_BYTES: arena_live_count(arena, &live_bytes); return live_bytes;
  case ARENA_LIVE_COUNT: return arena_live_count(arena, &live_bytes);
  case ARENA_FREE_BYTES: return (int64_t)arena_free_bytes(arena);
  case ARENA_LARGEST_FREE_BYTES: return (int64_t)arena_largest_free(arena);
  case ARENA_FRAGMENTED_BYTES: return (int64_t)fragments_bytes(&arena->backing, &arena->heap);
  case ARENA_CHUNKS: return (int64_t)backing_count(&arena->backing);
  case ARENA_SUPERBLOCKS: return arena_totals(arena).n_superblocks;
  case ARENA_SUPERBLOCK_BYTES_HELD: return (int64_t)arena_totals(arena).bytes;
  case ARENA_LOCALS: return arena->n_locals - 1;
  case ARENA_COLLECTIONS: return (int64_t)arena->collections;
  case ARENA_STREAM_WAITS: return (int64_t)arena->heap.streams.waits;
  case ARENA_METADATA_BYTES: return (int64_t)arena_metadata_bytes(arena);
  case ARENA_N_VALUES: break;
  }
  return 0;
}

/* ---- Allocating and freeing ---- */

enum { ARENA_SMALL_BYTES = 1 << 20 /* larger allocations come from the heap */ };

static enum hipmm_status arena_refuse_without_records(const struct arena *arena, const struct request *request)
{
  const struct hipmm_services *services = arena->services;
  int64_t live_bytes, live_count = arena_live_count(arena, &live_bytes);
  enum hipmm_status status =
      services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                       "cannot allocate {0:bytes}: {1} blocks are allocated, and with the free ones between them the "
                       "arena has records for {2} and no more; free some, or allocate fewer and larger blocks",
                       request->requested, (uint64_t)live_count, arena->heap.blocks.most - 1);
  return services->explain(services, status, "{0:bytes} are held, {1:bytes} of it free", backing_bytes(&arena->backing),
                           arena_free_bytes(arena), 0, 0);
}

/* All streams were waited for by now, and every arena has returned its free superblocks. If the maximum allows growth,
 * the upstream has given the reason of its refusal. */
static enum hipmm_status arena_refuse_allocation(const struct arena_resource *resource, const struct request *request,
                                                 struct dump *dump)
{
  const struct arena *arena = &resource->arena;
  const struct hipmm_services *services = arena->services;
  const struct held *held = arena->backing.held;
  int64_t live_bytes;
  uint64_t largest = arena_largest_free(arena), room = sizes_headroom(held->maximum_bytes, held->bytes);
  arena_live_count(arena, &live_bytes);
  if (resource->dumps && !hipmm_is_tried_again(services, arena->refusal)) arena_dump(arena, request->requested, dump);
  if (room >= request_fit_bytes(request))
    return services->explain(services, arena->refusal,
                             "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it allocated, and the "
                             "upstream does not have enough more; all streams were waited for, all arenas gave back "
                             "what was idle, and {3:bytes} are free in one range",
                             request->requested, held->bytes, (uint64_t)live_bytes, largest);
  services->refuse(services, HIPMM_E_OUT_OF_MEMORY,
                   "cannot allocate {0:bytes}: {1:bytes} are held, {2:bytes} of it allocated, and maximum_size "
                   "does not allow enough more",
                   request->requested, held->bytes, (uint64_t)live_bytes);
  return services->explain(services, HIPMM_E_OUT_OF_MEMORY,
                           "all streams were waited for, all arenas gave back what was idle; {0:bytes} are free, "
                           "{1:bytes} of it in one range, and maximum_size {2:bytes} allows {3:bytes} more",
                           arena_free_bytes(arena), largest, held->maximum_bytes, room);
}

static enum hipmm_status arena_allocate_locked(struct arena_resource *resource, struct request *request,
                                               hipmm_stream_t handle, struct dump *dump, void **ptr_out)
{
  struct arena *arena = &resource->arena;
  bool is_small = request->bytes <= ARENA_SMALL_BYTES && request->alignment == HIPMM_ALIGNMENT;
  uint32_t id = BLOCK_NONE;
  enum hipmm_status status = arena_enter_stream(arena, handle, &request->stream);
  if (!status && is_small) status = arena_find_small(arena, request, &id);
  if (status) return status;
  if (!id) id = arena_find_ready(arena, request);
  if (!id) status = arena_find_shared(arena, request, &id);
  if (status) return status;
  if (!id && blocks_are_exhausted(&arena->heap.blocks)) return arena_refuse_without_records(arena, request);
  if (!id) return arena_refuse_allocation(resource, request, dump);
  *ptr_out = (void *)(uintptr_t)block_of(&arena->heap.blocks, id)->start;
  return HIPMM_OK;
}

static __attribute__((noinline)) enum hipmm_status arena_allocate_slow_path(struct arena_resource *resource,
                                                                            size_t bytes, size_t alignment,
                                                                            hipmm_stream_t handle, void **ptr_out)
{
  struct arena *arena = &resource->arena;
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  enum hipmm_status status = sizes_check(arena->services, bytes, alignment);
  if (status) return status;
  struct request request = {
      .bytes = sizes_round_up(bytes, HIPMM_ALIGNMENT), .alignment = alignment, .requested = bytes};
  status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  struct dump dump = {0};
  status = arena_allocate_locked(resource, &request, handle, &dump, ptr_out);
  biased_lock_release(&arena->lock);
  arena_dump_write(resource, &dump);
  return status;
}

static enum hipmm_status arena_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  struct arena_resource *resource = self;
  hipmm_stream_t handle = stream_canonical_handle(stream);
  bool is_small = bytes - 1 < ARENA_SMALL_BYTES && alignment == HIPMM_ALIGNMENT;
  uint32_t id = is_small ? arena_allocate_at_hand(&resource->arena, bytes, handle) : BLOCK_NONE;
  if (__builtin_expect(!id, 0)) return arena_allocate_slow_path(resource, bytes, alignment, handle, ptr_out);
  *ptr_out = (void *)(uintptr_t)block_of(&resource->arena.heap.blocks, id)->start;
  return HIPMM_OK;
}

static enum hipmm_status arena_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct arena *arena = self;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  uint32_t id = block_at(&arena->heap.blocks, ptr, bytes);
  enum hipmm_status status = arena_claim(arena, id, ptr, bytes);
  return __builtin_expect(status, 0) ? status : arena_free_claimed(arena, id, stream_canonical_handle(stream));
}

/* ---- Life ---- */

static void arena_destroy(void *self)
{
  struct arena *arena = self;
  const struct hipmm_services *services = arena->services;
  int64_t live_bytes, live_count = arena_live_count(arena, &live_bytes);
  thread_watch_close(&arena->threads);
  arena_warn_of_live(arena, live_count, live_bytes);
  services->log(services, HIPMM_LOG_DEBUG, "held at most %llu bytes, had %u arenas, collected %llu times",
                (unsigned long long)arena->backing.segments.held.peak_bytes, arena->n_locals - 1,
                (unsigned long long)arena->collections);
  arena_close(arena);
  services->host_free(services, arena, sizeof(struct arena_resource));
}

static enum hipmm_status arena_refuse(struct arena *arena, const void *ptr)
{
  return refuse_pointer(arena->services, ptr);
}

static const struct arena_type arena_type = {
    .refuse = arena_refuse, .value = arena_value_of, .n_values = ARENA_N_VALUES};

static enum hipmm_status arena_open_memory(struct arena *arena, const struct arena_options *wanted,
                                           struct hipmm_resource *upstream)
{
  const struct hipmm_services *services = arena->services;
  bool opened = arena_open(arena, (enum record)wanted->record);
  opened = opened &&
           backing_open_segments(&arena->backing, &arena->heap, services, upstream, wanted->maximum_size, SLACK_AUTO);
  arena->heap.small_bytes = ARENA_SUPERBLOCK_BYTES + 1; /* a superblock would keep a large segment from becoming idle */
  arena->heap.remedy = "a pool with \"growth\": \"mapped\" can join them";
  if (opened) return HIPMM_OK;
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the arena's records");
}

static void arena_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct arena_options *wanted = options;
  uint64_t bytes = wanted->arena_size / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  if (bytes && bytes < ARENA_SUPERBLOCK_BYTES)
    validation->error(validation, "arena_size", "%llu bytes is less than a superblock; write 0, or at least \"1MiB\"",
                      (unsigned long long)bytes);
  if (wanted->dump_log_on_failure) log_file_validate(validation, "dump_log_file", wanted->dump_log_file);
}

static void arena_set_dump(struct arena_resource *resource, const struct arena_options *wanted)
{
  resource->dumps = wanted->dump_log_on_failure;
  resource->dump_file = wanted->dump_log_file;
}

static enum hipmm_status arena_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct arena_options *wanted = options;
  (void)n_upstreams; /* one, as the descriptor says */
  struct arena_resource *resource = services->host_allocate(services, sizeof *resource);
  if (!resource) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  struct arena *arena = &resource->arena;
  arena->services = services;
  arena->type = &arena_type;
  arena_set_dump(resource, wanted);
  enum hipmm_status status = arena_open_memory(arena, wanted, upstreams[0]);
  if (!status) status = arena_fill(arena, wanted->arena_size / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT, "arena_size");
  if (status) {
    arena_destroy(arena);
    return status;
  }
  arena_watch_threads(arena); /* last: it may be notified at once */
  *self_out = resource;
  return HIPMM_OK;
}

/* A maximum below the held bytes frees nothing: it stops growth until less is held. */
static enum hipmm_status arena_reconfigure(void *self, const char *option, const void *options)
{
  struct arena_resource *resource = self;
  struct arena *arena = &resource->arena;
  const struct arena_options *wanted = options;
  (void)option;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  held_set_maximum(arena->backing.held, wanted->maximum_size);
  arena_set_dump(resource, wanted);
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}

static enum hipmm_status arena_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                     void *closure)
{
  struct arena *arena = self;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  arena_visit_blocks(arena, visitor, closure);
  biased_lock_release(&arena->lock);
  return HIPMM_OK;
}

/* ---- The descriptor ---- */

static const char *const arena_unlimited[] = {"unlimited", NULL};

static const struct hipmm_option arena_option_table[] = {
    {.name = "arena_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct arena_options, arena_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "Memory allocated from the upstream at creation, 0 or at least 1 MiB; the arena grows beyond it"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct arena_options, maximum_size),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "The most that is ever held from the upstream; the same as arena_size for an arena like RMM's",
     .at_least = "arena_size",
     .choices = arena_unlimited},
    {.name = "dump_log_on_failure",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct arena_options, dump_log_on_failure),
     .initial = "false",
     .doc = "Writes the state of every arena to a file when an allocation fails"},
    {.name = "dump_log_file",
     .type = HIPMM_OPTION_STRING,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct arena_options, dump_log_file),
     .initial = "hipmm_arena_memory_dump.log",
     .doc = "The file for dump_log_on_failure; each failure overwrites it. %p in its name is replaced by the process "
            "id, %h "
            "by the host's name, %r by the rank, %d by the device, %% by a percent sign"},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct arena_options, record),
     .initial = "auto",
     .doc = "When the event is recorded that another stream waits for before it reuses a block, as in pool",
     .choices = record_words},
};

static const struct hipmm_feature arena_actions[] = {
    {.name = "reset_peaks", .doc = "Starts peak_reserved_bytes again from what is held now"},
};

static const struct hipmm_ops arena_ops = {
    .struct_size = sizeof arena_ops,
    .allocate = arena_allocate,
    .deallocate = arena_deallocate,
    .trim = arena_trim,
    .query = arena_query,
    .perform = arena_perform,
    .find = arena_find,
    .stream_retire = arena_stream_retire,
    .stream_retain = arena_stream_retain,
    .reconfigure = arena_reconfigure,
    .visit = arena_visit,
    .covers = arena_covers,
    .locate = arena_locate,
};

const struct hipmm_plugin arena_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(arena_option_table, struct arena_options),
    .type = "arena",
    .version = "1.0",
    .doc = "Serves each thread and stream from an arena of its own, in superblocks of one that all share",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    PLUGIN_VALUES(arena_values),
    PLUGIN_ACTIONS(arena_actions),
    .ops = &arena_ops,
    .create = arena_create,
    .destroy = arena_destroy,
    .validate = arena_validate,
};
