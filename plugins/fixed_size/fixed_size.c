/* SPDX-License-Identifier: MIT */
/* fixed_size.c: the resource `fixed_size`, a sub-allocator of blocks of one size: options, values, ops. fixed.h has the
 * allocator itself.
 *
 * Unlike RMM's, it allocates nothing from its upstream before the first allocation, unless `blocks_to_preallocate` says
 * so; and its chunks grow with use up to `blocks_per_chunk`, so that a few large blocks do not cost hundreds of MiB. */
#include "../common/descriptor.h"
#include "fixed.h"

static enum hipmm_status fixed_size_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                             void **ptr_out)
{
  struct fixed *fixed = self;
  const struct hipmm_services *services = fixed->services;
  if (bytes > fixed->block_bytes)
    return services->refuse(services, HIPMM_E_LIMIT,
                            "cannot allocate {0:bytes}: a block has {1:bytes}; raise block_size, or put binning on top",
                            bytes, fixed->block_bytes, 0);
  if (alignment > HIPMM_ALIGNMENT)
    return services->refuse(
        services, HIPMM_E_ARGUMENT,
        "cannot align to {0:bytes}: blocks are aligned to {1:bytes}, pool aligns to any power of two", alignment,
        HIPMM_ALIGNMENT, 0);
  return fixed_allocate(fixed, bytes, stream, ptr_out);
}

static enum hipmm_status fixed_size_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                               hipmm_stream_t stream)
{
  (void)alignment;
  return fixed_deallocate(self, ptr, bytes, stream);
}

static enum hipmm_status fixed_size_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct fixed *fixed = self;
  if (fixed_find(fixed, ptr, block_out)) return HIPMM_OK;
  return fixed->services->refuse(fixed->services, HIPMM_E_POINTER, "{0:hex} is not allocated here", (uintptr_t)ptr, 0,
                                 0);
}

/* ---- Values ---- */

static const struct hipmm_feature fixed_size_values[FIXED_VALUES] = {
    [FIXED_RESERVED_BYTES] = {"reserved_bytes", "bytes", "Memory held from the upstream"},
    [FIXED_PEAK_RESERVED_BYTES] = {"peak_reserved_bytes", "bytes", "The most that was held from the upstream"},
    [FIXED_LIVE_BYTES] = {"live_bytes", "bytes", "Allocated memory, as requested"},
    [FIXED_LIVE_COUNT] = {"live_count", "blocks", "Allocated blocks"},
    [FIXED_FREE_COUNT] = {"free_count", "blocks", "Blocks that are not allocated"},
    [FIXED_CHUNKS] = {"chunks", "chunks", "Chunks held from the upstream"},
    [FIXED_STREAM_WAITS] = {"stream_waits", "waits", "Times that a stream was made to wait for another one"},
    [FIXED_METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for what is known about blocks and streams"},
};

static enum hipmm_status fixed_size_query(void *self, size_t index, int64_t *value_out)
{
  int64_t values[FIXED_VALUES];
  enum hipmm_status status = fixed_count(self, false, values);
  if (!status) *value_out = values[index];
  return status;
}

static const struct hipmm_feature fixed_size_actions[] = {
    {.name = "reset_peaks", .doc = "Starts peak_reserved_bytes again from what is held now"},
};

static enum hipmm_status fixed_size_perform(void *self, size_t index, int64_t *values_out)
{
  (void)index; /* there is one action */
  return fixed_count(self, true, values_out);
}

/* ---- Life ---- */

static void fixed_size_destroy(void *self)
{
  struct fixed *fixed = self;
  const struct hipmm_services *services = fixed->services;
  fixed_close(fixed);
  services->host_free(services, fixed, sizeof *fixed);
}

static enum hipmm_status fixed_size_create(const struct hipmm_services *services, const void *options,
                                           struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct fixed *fixed = services->host_allocate(services, sizeof *fixed);
  if (!fixed) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  enum hipmm_status status = fixed_open(fixed, services, upstreams[0], options);
  if (status)
    services->host_free(services, fixed, sizeof *fixed);
  else
    *self_out = fixed;
  return status;
}

static const struct hipmm_option fixed_size_option_table[] = {
    {.name = "block_size",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct fixed_size_options, block_size),
     .initial = "1MiB",
     .unit = "bytes",
     .doc = "Size of a block, rounded up to 256 bytes; larger requests are refused",
     .minimum = "1",
     .maximum = "1024GiB"},
    {.name = "blocks_per_chunk",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct fixed_size_options, blocks_per_chunk),
     .initial = "128",
     .unit = "blocks",
     .doc = "The most blocks in one chunk of the upstream; the first chunks are smaller",
     .minimum = "1",
     .maximum = "4096"},
    {.name = "blocks_to_preallocate",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct fixed_size_options, blocks_to_preallocate),
     .initial = "0",
     .unit = "blocks",
     .doc = "Blocks to allocate from the upstream at creation; RMM allocates 128",
     .minimum = "0",
     .maximum = "1000000000"},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct fixed_size_options, record),
     .initial = "auto",
     .doc = "When the event is recorded that another stream waits for before it reuses a block, as in pool",
     .choices = record_words},
};

static const struct hipmm_ops fixed_size_ops = {
    .struct_size = sizeof fixed_size_ops,
    .allocate = fixed_size_allocate,
    .deallocate = fixed_size_deallocate,
    .trim = fixed_trim,
    .query = fixed_size_query,
    .perform = fixed_size_perform,
    .find = fixed_size_find,
    .stream_retire = fixed_stream_retire,
    .stream_retain = fixed_stream_retain,
    .visit = fixed_visit,
    .covers = fixed_covers,
    .locate = fixed_locate,
};

HIPMM_EXPORT extern const struct hipmm_plugin fixed_size_LTX_hipmm_plugin;

const struct hipmm_plugin fixed_size_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(fixed_size_option_table, struct fixed_size_options),
    .type = "fixed_size",
    .version = "1.0",
    .doc = "Allocates blocks of one size, cut from chunks of its upstream and reused in stream order",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    PLUGIN_VALUES(fixed_size_values),
    PLUGIN_ACTIONS(fixed_size_actions),
    .ops = &fixed_size_ops,
    .create = fixed_size_create,
    .destroy = fixed_size_destroy,
};
