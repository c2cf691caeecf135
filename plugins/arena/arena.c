/* SPDX-License-Identifier: MIT */
/* arena.c: the resource `arena`: options, names of values, create and destroy. Each pair of a thread and a stream
 * allocates from an arena of its own and so contends with no other; local arenas get superblocks from a global arena.
 * arena.h lists the other files.
 *
 * The global arena has its memory in a heap over segments, whose code is the pool's (../heap/heap.h). A block of that heap is
 * a superblock of a local arena, or a large allocation. The records of the blocks in a superblock are the heap's too.
 *
 * Unlike RMM's arena, this one grows, and a free never waits on the host. */
#include "arena.h"
#include "../../core/base/text.h"
#include "../common/descriptor.h"
#include "../common/log_file.h"
#include "options.h"

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

/* ---- Life ---- */

static const size_t locals_bytes = ARENA_MOST_LOCALS * sizeof(struct local); /* committed on touch, as all here */
static const size_t first_local_bytes = MAX_STREAMS * sizeof(uint32_t);

static void arena_destroy(void *self)
{
  struct arena *arena = self;
  const struct hipmm_services *services = arena->services;
  int64_t live_bytes = 0, live_count = arena->locals ? arena_live_count(arena, &live_bytes) : 0;
  thread_watch_close(&arena->threads);
  if (live_count)
    services->log(services, HIPMM_LOG_WARNING, "destroyed with %lld block%s (%lld byte%s) still allocated",
                  (long long)live_count, text_plural((uint64_t)live_count), (long long)live_bytes,
                  text_plural((uint64_t)live_bytes));
  services->log(services, HIPMM_LOG_DEBUG, "held at most %llu bytes, had %u arenas, collected %llu times",
                (unsigned long long)arena->backing.segments.held.peak_bytes, arena->n_locals - 1,
                (unsigned long long)arena->collections);
  device_wait_at_end(services);
  backing_close(&arena->backing);
  heap_close(&arena->heap);
  for (uint32_t number = 1; number < arena->n_locals; number++) biased_lock_close(&arena_local(arena, number)->lock);
  services->host_free(services, arena->first_local, first_local_bytes);
  services->host_free(services, arena->locals, locals_bytes);
  biased_lock_close(&arena->lock);
  services->host_free(services, arena, sizeof *arena);
}

static enum hipmm_status arena_open_memory(struct arena *arena, const struct arena_options *wanted,
                                           struct hipmm_resource *upstream)
{
  const struct hipmm_services *services = arena->services;
  arena->locals = services->host_allocate(services, locals_bytes);
  arena->first_local = services->host_allocate(services, first_local_bytes);
  bool opened = heap_open(&arena->heap, services, (enum record)wanted->record);
  opened = opened &&
           backing_open_segments(&arena->backing, &arena->heap, services, upstream, wanted->maximum_size, SLACK_AUTO);
  arena->heap.small_bytes = ARENA_SUPERBLOCK_BYTES + 1; /* a superblock would keep a large segment from becoming idle */
  if (!opened || !arena->locals || !arena->first_local)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the arena's records");
  return HIPMM_OK;
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

/* The memory is ready on the default stream at first, and on every stream after the device was waited for. */
static enum hipmm_status arena_fill(struct arena *arena, uint64_t bytes)
{
  const struct hipmm_services *services = arena->services;
  bytes = bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  if (!bytes) return HIPMM_OK;
  enum hipmm_status status = backing_fill(&arena->backing, &arena->heap, bytes);
  if (!status) return arena_synchronize(arena, STREAM_READY);
  if (!hipmm_is_out_of_memory(status)) return status;
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, "arena_size",
                        "the upstream does not have %llu bytes; ask for less (a percentage is of what is free)",
                        (unsigned long long)bytes);
}

static void arena_set_dump(struct arena *arena, const struct arena_options *wanted)
{
  arena->dumps = wanted->dump_log_on_failure;
  arena->dump_file = wanted->dump_log_file;
}

static enum hipmm_status arena_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct arena_options *wanted = options;
  (void)n_upstreams; /* one, as the descriptor says */
  struct arena *arena = services->host_allocate(services, sizeof *arena);
  if (!arena) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  arena->services = services;
  arena->serial = thread_new_owner();
  arena->small_bytes = wanted->small_bytes ? wanted->small_bytes : ARENA_SMALL_BYTES;
  arena->n_locals = 1;
  arena_set_dump(arena, wanted);
  biased_lock_open(&arena->lock);
  enum hipmm_status status = arena_open_memory(arena, wanted, upstreams[0]);
  bool is_of_pool = wanted->small_bytes; /* which warns */
  if (!is_of_pool) arena->heap.remedy = "a pool with \"growth\": \"mapped\" can join them";
  if (!status) status = arena_fill(arena, wanted->arena_size);
  if (status) {
    arena_destroy(arena);
    return status;
  }
  arena->threads.ended = arena_thread_ended;
  thread_watch_open(&arena->threads); /* last: the callback needs everything above */
  *self_out = arena;
  return HIPMM_OK;
}

/* A maximum below the held bytes frees nothing: it stops growth until less is held. */
static enum hipmm_status arena_reconfigure(void *self, const char *option, const void *options)
{
  struct arena *arena = self;
  const struct arena_options *wanted = options;
  (void)option;
  enum hipmm_status status = biased_lock_enter(&arena->lock, arena->services);
  if (status) return status;
  held_set_maximum(arena->backing.held, wanted->maximum_size);
  arena_set_dump(arena, wanted);
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
