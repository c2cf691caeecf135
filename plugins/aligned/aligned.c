/* SPDX-License-Identifier: MIT */
/* aligned.c: an adaptor whose addresses have a larger alignment than those of its upstream. It allocates so much more from
 * the upstream that an aligned block always fits in, as RMM does, and honours a larger alignment in a request.
 *
 * Every block has a record, even one of the usual alignment. So a free of any other pointer is refused, including the
 * start of the upstream's block. */
#include "../common/descriptor.h"
#include "../common/live_blocks.h"

struct aligned_options {
  uint64_t alignment;
  uint64_t alignment_threshold;
};

struct aligned {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct aligned_options options; /* may change while in use: read and written atomically */
  struct live_blocks live;
};

struct aligned_record {
  struct live_block block;
  void *upstream_ptr;
  size_t upstream_bytes;
};

/* ---- Allocating and freeing ---- */

/* The alignment of this request. */
static uint64_t aligned_wanted(const struct aligned *aligned, size_t bytes, size_t alignment)
{
  uint64_t wanted = __atomic_load_n(&aligned->options.alignment, __ATOMIC_RELAXED);
  uint64_t threshold = __atomic_load_n(&aligned->options.alignment_threshold, __ATOMIC_RELAXED);
  return bytes < threshold || wanted < alignment ? alignment : wanted;
}

/* The bytes to allocate from the upstream; 0 on overflow. */
static size_t aligned_upstream_bytes(size_t bytes, size_t alignment)
{
  if (alignment == HIPMM_ALIGNMENT) return bytes;
  if (bytes > SIZE_MAX - 2 * (alignment - 1)) return 0;
  return ((bytes + alignment - 1) & ~(alignment - 1)) + (alignment - HIPMM_ALIGNMENT);
}

static void *aligned_up(void *ptr, size_t alignment)
{
  return (char *)ptr + (-(uintptr_t)ptr & (alignment - 1));
}

static enum hipmm_status aligned_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct aligned *aligned = self;
  struct hipmm_resource *upstream = aligned->upstream;
  struct aligned_record record = {.block = {NULL, bytes, 0, stream}}, replaced;
  if (!bytes) return hipmm_upstream_allocate(upstream, 0, HIPMM_ALIGNMENT, stream, ptr_out);
  uint64_t wanted = aligned_wanted(aligned, bytes, alignment);
  record.upstream_bytes = aligned_upstream_bytes(bytes, wanted);
  if (!record.upstream_bytes)
    return aligned->services->refuse(aligned->services, HIPMM_E_OUT_OF_MEMORY,
                                     "cannot allocate {0:bytes} aligned to {1:bytes}: no memory is that large", bytes,
                                     wanted, 0);
  enum hipmm_status status =
      hipmm_upstream_allocate(upstream, record.upstream_bytes, HIPMM_ALIGNMENT, stream, &record.upstream_ptr);
  if (status) return status;
  record.block.ptr = aligned_up(record.upstream_ptr, wanted);
  if (!live_blocks_insert(&aligned->live, &record, &replaced)) {
    hipmm_upstream_deallocate(upstream, record.upstream_ptr, record.upstream_bytes, HIPMM_ALIGNMENT, stream);
    return HIPMM_E_OUT_OF_MEMORY;
  }
  *ptr_out = record.block.ptr;
  return HIPMM_OK;
}

static enum hipmm_status aligned_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct aligned *aligned = self;
  struct aligned_record record;
  (void)alignment; /* the upstream block has the usual one */
  if (!ptr) return hipmm_upstream_deallocate(aligned->upstream, NULL, bytes, HIPMM_ALIGNMENT, stream);
  enum hipmm_status status = live_blocks_extract(&aligned->live, ptr, bytes, &record);
  if (status) return status;
  status =
      hipmm_upstream_deallocate(aligned->upstream, record.upstream_ptr, record.upstream_bytes, HIPMM_ALIGNMENT, stream);
  if (status)
    live_blocks_restore(&aligned->live, &record);
  else
    live_blocks_settle(&aligned->live, ptr);
  return status;
}

/* ---- Trimming and looking ---- */

static enum hipmm_status aligned_trim(void *self, size_t keep_bytes)
{
  struct aligned *aligned = self;
  (void)keep_bytes; /* of device memory, which the upstream holds */
  live_blocks_trim(&aligned->live);
  return HIPMM_OK;
}

static enum hipmm_status aligned_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct aligned *aligned = self;
  return live_blocks_find_block(&aligned->live, ptr, block_out);
}

static enum hipmm_status aligned_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                       void *closure)
{
  struct aligned *aligned = self;
  return live_blocks_visit(&aligned->live, visitor, closure);
}

enum aligned_value { ALLOCATED_COUNT, ALLOCATED_BYTES, METADATA_BYTES, N_VALUES };

static const struct hipmm_feature aligned_values[N_VALUES] = {
    [ALLOCATED_COUNT] = {"allocated_count", "blocks", "Blocks allocated now"},
    [ALLOCATED_BYTES] = {"allocated_bytes", "bytes", "Sum of their sizes, as requested"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for the records of blocks"},
};

static enum hipmm_status aligned_query(void *self, size_t index, int64_t *value_out)
{
  struct aligned *aligned = self;
  struct live_blocks_counts counts = live_blocks_count(&aligned->live);
  const int64_t values[N_VALUES] = {counts.count, counts.bytes, counts.metadata_bytes};
  *value_out = values[index];
  return HIPMM_OK;
}

/* ---- Life ---- */

static void aligned_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct aligned_options *given = options;
  if (given->alignment & (given->alignment - 1))
    validation->error(validation, "alignment",
                      "%llu is not a power of two; write 256, 512, \"4KiB\", \"2MiB\" or the like",
                      (unsigned long long)given->alignment);
}

static void aligned_set(struct aligned *aligned, const struct aligned_options *given)
{
  __atomic_store_n(&aligned->options.alignment, given->alignment, __ATOMIC_RELAXED);
  __atomic_store_n(&aligned->options.alignment_threshold, given->alignment_threshold, __ATOMIC_RELAXED);
}

/* Live blocks keep their alignment, since each has a record. */
static enum hipmm_status aligned_reconfigure(void *self, const char *option, const void *options)
{
  struct aligned *aligned = self;
  (void)option;
  aligned_set(aligned, options);
  return HIPMM_OK;
}

static enum hipmm_status aligned_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct aligned *aligned = services->host_allocate(services, sizeof *aligned);
  if (!aligned) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  aligned->services = services;
  aligned->upstream = upstreams[0];
  aligned_set(aligned, options);
  live_blocks_open(&aligned->live, services, sizeof(struct aligned_record));
  *self_out = aligned;
  return HIPMM_OK;
}

static void aligned_destroy(void *self)
{
  struct aligned *aligned = self;
  live_blocks_close(&aligned->live);
  aligned->services->host_free(aligned->services, aligned, sizeof *aligned);
}

static const struct hipmm_option aligned_option_table[] = {
    {.name = "alignment",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct aligned_options, alignment),
     .initial = "256",
     .unit = "bytes",
     .doc = "Alignment of addresses, a power of two; a larger alignment in a request takes precedence",
     .minimum = "256",
     .maximum = "1024GiB"},
    {.name = "alignment_threshold",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct aligned_options, alignment_threshold),
     .initial = "0",
     .unit = "bytes",
     .doc = "Smaller allocations get only the alignment that the request asks for"},
};

static const struct hipmm_ops aligned_ops = {
    .struct_size = sizeof aligned_ops,
    .allocate = aligned_allocate,
    .deallocate = aligned_deallocate,
    .trim = aligned_trim,
    .query = aligned_query,
    .find = aligned_find,
    .reconfigure = aligned_reconfigure,
    .visit = aligned_visit,
};

HIPMM_EXPORT extern const struct hipmm_plugin aligned_LTX_hipmm_plugin;

const struct hipmm_plugin aligned_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(aligned_option_table, struct aligned_options),
    .type = "aligned",
    .version = "1.0",
    .doc = "Aligns addresses to more than the 256 bytes that every resource guarantees",
    PLUGIN_VALUES(aligned_values),
    .ops = &aligned_ops,
    .create = aligned_create,
    .destroy = aligned_destroy,
    .validate = aligned_validate,
};
