/* SPDX-License-Identifier: MIT */
/* binning.c: the resource `binning`. It sends each request to the smallest bin that is large enough. A request that is
 * too large for every bin, or needs more than the usual alignment, goes to the upstream. A bin is another resource of
 * the graph, or blocks of one size over the upstream (bins.h). Unlike RMM's, bins allocate nothing from the upstream
 * before they are used, unless blocks_to_preallocate says so.
 *
 * The size of a free tells the bin; where bins were added since, the address tells it. Without a size, or when the
 * block is not in the bin of its size, binning searches for the block: first in the bins that have no resource, then in
 * all resources below. The search tells a wrong size from a foreign pointer, and a block from a chunk at the same
 * address. A free need not tell the alignment, so blocks that are in the upstream for their alignment have records. */
#include "../common/descriptor.h"
#include "../common/live_blocks.h"
#include "../common/refusals.h"
#include "bins.h"

struct binning {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct bins bins;
  struct live_blocks aligned; /* blocks of the upstream whose sizes tell the resource of a bin */
  atomic_bool any_is_aligned; /* such a block was allocated at some time */
};

/* ---- Allocating ---- */

/* The bin of a request; NULL: the upstream. */
static struct bin *binning_route(const struct binning *binning, size_t bytes, size_t alignment)
{
  const struct bins_table *table = bins_table(&binning->bins);
  if (alignment > HIPMM_ALIGNMENT) return NULL;
  size_t at = bins_find(table, bytes);
  return at < table->count ? table->items[at] : NULL;
}

/* A block with more than the usual alignment. No record is needed where the size leads to a bin without a resource, since
 * these know their blocks. Past an added bin it leads on, to the larger bins. */
static __attribute__((noinline)) enum hipmm_status binning_allocate_aligned(struct binning *binning, size_t bytes,
                                                                            size_t alignment, hipmm_stream_t stream,
                                                                            void **ptr_out)
{
  struct live_block block = {.bytes = bytes, .stream = stream}, replaced;
  enum hipmm_status status = hipmm_upstream_allocate(binning->upstream, bytes, alignment, stream, &block.ptr);
  if (status) return status;
  bool has_record = block.ptr && bins_may_find_resource(bins_table(&binning->bins), bytes);
  if (has_record) atomic_store_explicit(&binning->any_is_aligned, true, memory_order_relaxed);
  if (has_record && !live_blocks_insert(&binning->aligned, &block, &replaced)) {
    hipmm_upstream_deallocate(binning->upstream, block.ptr, bytes, alignment, stream);
    return HIPMM_E_OUT_OF_MEMORY;
  }
  *ptr_out = block.ptr;
  return HIPMM_OK;
}

static enum hipmm_status binning_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct binning *binning = self;
  if (alignment > HIPMM_ALIGNMENT) return binning_allocate_aligned(binning, bytes, alignment, stream, ptr_out);
  struct bin *bin = binning_route(binning, bytes, alignment);
  if (bin && !bin->resource) return fixed_allocate(&bin->blocks, bytes, stream, ptr_out);
  return hipmm_upstream_allocate(bin ? bin->resource : binning->upstream, bytes, alignment, stream, ptr_out);
}

/* ---- Finding ---- */

/* A block may have the same address as the upstream's chunk around it. The core asks the resources below for a block
 * that is not here (HIPMM_PLUGIN_HANDS_ON). */
static enum hipmm_status binning_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  const struct binning *binning = self;
  struct bin *bin = bins_with_start(bins_table(&binning->bins), ptr);
  if (bin && fixed_find(&bin->blocks, ptr, block_out)) return HIPMM_OK;
  return refuse_pointer(binning->services, ptr);
}

static enum hipmm_status binning_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  const struct binning *binning = self;
  struct bin *bin = bins_with_start(bins_table(&binning->bins), ptr);
  return bin ? fixed_locate(&bin->blocks, ptr, location_out) : HIPMM_E_POINTER;
}

static int binning_covers(void *self, const void *ptr)
{
  const struct binning *binning = self;
  return bins_with_start(bins_table(&binning->bins), ptr) != NULL;
}

/* ---- Freeing ---- */

static enum hipmm_status binning_deallocate_in(struct binning *binning, struct bin *bin, void *ptr, size_t bytes,
                                               size_t alignment, hipmm_stream_t stream)
{
  if (bin && !bin->resource) return fixed_deallocate(&bin->blocks, ptr, bytes, stream);
  return hipmm_upstream_deallocate(bin ? bin->resource : binning->upstream, ptr, bytes, alignment, stream);
}

/* A block of a resource below: its size tells which, unless its alignment sent it to the upstream. */
static enum hipmm_status binning_deallocate_below(struct binning *binning, void *ptr, size_t bytes, size_t alignment,
                                                  hipmm_stream_t stream)
{
  struct bin *bin = alignment > HIPMM_ALIGNMENT ? NULL : bins_find_of(&binning->bins, bytes, ptr);
  enum hipmm_status status = HIPMM_E_POINTER;
  if (bin && bin->resource) status = binning_deallocate_in(binning, bin, ptr, bytes, alignment, stream);
  return status == HIPMM_E_POINTER ? binning_deallocate_in(binning, NULL, ptr, bytes, alignment, stream) : status;
}

static enum hipmm_status binning_deallocate_where_found(struct binning *binning, void *ptr, size_t bytes,
                                                        size_t alignment, hipmm_stream_t stream)
{
  const struct hipmm_services *services = binning->services;
  struct hipmm_block block;
  struct bin *own = bins_with_start(bins_table(&binning->bins), ptr);
  if (own) return fixed_deallocate(&own->blocks, ptr, bytes, stream);
  enum hipmm_status status = services->find_below(services, ptr, &block);
  if (status) return status;
  if (bytes && bytes != block.bytes) return refuse_size(services, ptr, bytes, block.bytes);
  return binning_deallocate_below(binning, ptr, block.bytes, alignment, stream);
}

/* Whether a free with a wrong size, sent to `bin` (NULL: the upstream), could free a whole chunk of another bin. */
static bool binning_may_be_a_chunk(const struct binning *binning, const struct bin *bin, const void *ptr)
{
  bool has_chunks = bin ? bin->has_chunks : binning->bins.upstream_has_chunks;
  return has_chunks || ((!bin || bin->resource) && bins_with_start(bins_table(&binning->bins), ptr));
}

/* HIPMM_E_POINTER, and nothing done, if the block has no record. */
static __attribute__((noinline)) enum hipmm_status binning_deallocate_aligned(struct binning *binning, void *ptr,
                                                                              size_t bytes, size_t alignment,
                                                                              hipmm_stream_t stream)
{
  struct live_block block;
  enum hipmm_status status = live_blocks_try_extract(&binning->aligned, ptr, bytes, &block);
  if (status) return status;
  status = hipmm_upstream_deallocate(binning->upstream, ptr, block.bytes, alignment, stream);
  if (status)
    live_blocks_restore(&binning->aligned, &block);
  else
    live_blocks_settle(&binning->aligned, ptr);
  return status;
}

static enum hipmm_status binning_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct binning *binning = self;
  if (ptr && atomic_load_explicit(&binning->any_is_aligned, memory_order_relaxed)) {
    enum hipmm_status status = binning_deallocate_aligned(binning, ptr, bytes, alignment, stream);
    if (status != HIPMM_E_POINTER) return status;
  }
  if (ptr && !bytes) return binning_deallocate_where_found(binning, ptr, 0, alignment, stream);
  struct bin *bin = NULL;
  if (!ptr)
    bin = binning_route(binning, 0, alignment);
  else if (alignment <= HIPMM_ALIGNMENT)
    bin = bins_find_of(&binning->bins, bytes, ptr);
  if (ptr && binning_may_be_a_chunk(binning, bin, ptr))
    return binning_deallocate_where_found(binning, ptr, bytes, alignment, stream);
  enum hipmm_status status = binning_deallocate_in(binning, bin, ptr, ptr ? bytes : 0, alignment, stream);
  return status == HIPMM_E_POINTER ? binning_deallocate_where_found(binning, ptr, bytes, alignment, stream) : status;
}

/* ---- Trimming and stream events ---- */

static enum hipmm_status binning_trim(void *self, size_t keep_bytes)
{
  struct binning *binning = self;
  const struct bins_table *table = bins_table(&binning->bins);
  enum hipmm_status first = HIPMM_OK;
  live_blocks_trim(&binning->aligned);
  for (size_t i = 0; i < table->count; i++) {
    struct bin *bin = table->items[i];
    enum hipmm_status status = bin->resource ? HIPMM_OK : fixed_trim(&bin->blocks, keep_bytes);
    if (!first) first = status;
  }
  return first;
}

static void binning_stream_retire(void *self, hipmm_stream_t stream)
{
  const struct binning *binning = self;
  const struct bins_table *table = bins_table(&binning->bins);
  for (size_t i = 0; i < table->count; i++)
    if (!table->items[i]->resource) fixed_stream_retire(&table->items[i]->blocks, stream);
}

static void binning_stream_retain(void *self, hipmm_stream_t stream)
{
  const struct binning *binning = self;
  const struct bins_table *table = bins_table(&binning->bins);
  for (size_t i = 0; i < table->count; i++)
    if (!table->items[i]->resource) fixed_stream_retain(&table->items[i]->blocks, stream);
}

/* The blocks of bins without a resource; the resources below show the rest. */
static enum hipmm_status binning_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                       void *closure)
{
  const struct binning *binning = self;
  const struct bins_table *table = bins_table(&binning->bins);
  enum hipmm_status status = HIPMM_OK;
  for (size_t i = 0; !status && i < table->count; i++)
    if (!table->items[i]->resource) status = fixed_visit(&table->items[i]->blocks, visitor, closure);
  return status;
}

/* ---- Values ---- */

enum binning_value { BINS, BINS_RESERVED_BYTES, BINS_LIVE_BYTES, BINS_LIVE_COUNT, METADATA_BYTES, N_VALUES };

static const struct hipmm_feature binning_values[N_VALUES] = {
    [BINS] = {"bins", "bins", "Bins, those of other resources included"},
    [BINS_RESERVED_BYTES] = {"bins_reserved_bytes", "bytes", "Memory that bins without a resource hold"},
    [BINS_LIVE_BYTES] = {"bins_live_bytes", "bytes", "Allocated memory in them, as requested"},
    [BINS_LIVE_COUNT] = {"bins_live_count", "blocks", "Allocated blocks in them"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for what is known about them"},
};

static enum hipmm_status binning_query(void *self, size_t index, int64_t *value_out)
{
  struct binning *binning = self;
  const struct bins_table *table = bins_table(&binning->bins);
  int64_t values[N_VALUES] = {
      [BINS] = (int64_t)table->count, [METADATA_BYTES] = live_blocks_count(&binning->aligned).metadata_bytes};
  for (size_t i = 0; i < table->count; i++) {
    struct bin *bin = table->items[i];
    if (bin->resource) continue;
    int64_t counts[FIXED_VALUES];
    enum hipmm_status status = fixed_count(&bin->blocks, false, counts);
    if (status) return status;
    values[BINS_RESERVED_BYTES] += counts[FIXED_RESERVED_BYTES];
    values[BINS_LIVE_BYTES] += counts[FIXED_LIVE_BYTES];
    values[BINS_LIVE_COUNT] += counts[FIXED_LIVE_COUNT];
    values[METADATA_BYTES] += counts[FIXED_METADATA_BYTES];
  }
  *value_out = values[index];
  return HIPMM_OK;
}

/* ---- Life ---- */

static enum hipmm_status binning_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct binning *binning = services->host_allocate(services, sizeof *binning);
  if (!binning) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  binning->services = services;
  binning->upstream = upstreams[0];
  enum hipmm_status status = bins_open(&binning->bins, services, options, upstreams[0]);
  if (status) {
    services->host_free(services, binning, sizeof *binning);
    return status;
  }
  live_blocks_open(&binning->aligned, services, sizeof(struct live_block));
  *self_out = binning;
  return HIPMM_OK;
}

static enum hipmm_status binning_reconfigure(void *self, const char *option, const void *options)
{
  struct binning *binning = self;
  (void)option; /* "extra_bins" is the only one */
  return bins_add(&binning->bins, options);
}

static void binning_destroy(void *self)
{
  struct binning *binning = self;
  live_blocks_close(&binning->aligned);
  bins_close(&binning->bins);
  binning->services->host_free(binning->services, binning, sizeof *binning);
}

static const struct hipmm_option binning_bin_fields[] = {
    {.name = "size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct bins_option, size),
     .unit = "bytes",
     .doc = "The largest request for this bin, rounded up to 256 bytes",
     .minimum = "1",
     .maximum = "1024GiB"},
    {.name = "resource",
     .type = HIPMM_OPTION_RESOURCE,
     .offset = offsetof(struct bins_option, resource),
     .doc = "Where the bin allocates; without it, blocks of the bin's size over the upstream, as of fixed_size"},
};

static const struct hipmm_option binning_option_table[] = {
    {.name = "bins",
     .type = HIPMM_OPTION_LIST,
     .offset = offsetof(struct bins_options, bins),
     .doc = "The bins, from the smallest to the largest",
     .fields = binning_bin_fields,
     .n_fields = sizeof binning_bin_fields / sizeof *binning_bin_fields,
     .field_bytes = sizeof(struct bins_option)},
    {.name = "extra_bins",
     .type = HIPMM_OPTION_LIST,
     .flags = HIPMM_OPTION_RELOADABLE | HIPMM_OPTION_ADDS_RESOURCES,
     .offset = offsetof(struct bins_options, extra_bins),
     .doc = "Further bins, in any order; bins can be added while in use, and none removed",
     .fields = binning_bin_fields,
     .n_fields = sizeof binning_bin_fields / sizeof *binning_bin_fields,
     .field_bytes = sizeof(struct bins_option)},
    {.name = "min_size_exponent",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct bins_options, min_size_exponent),
     .initial = "-1",
     .doc = "Adds a bin for each power of two from this one on, unless `bins` has that size; -1 for none",
     .minimum = "-1",
     .maximum = "40"},
    {.name = "max_size_exponent",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct bins_options, max_size_exponent),
     .initial = "-1",
     .doc = "The last of these powers of two; -1 for none",
     .minimum = "-1",
     .maximum = "40"},
    {.name = "blocks_per_chunk",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct bins_options, of_blocks.blocks_per_chunk),
     .initial = "128",
     .unit = "blocks",
     .doc = "The most blocks in one chunk of a bin without a resource",
     .minimum = "1",
     .maximum = "4096"},
    {.name = "blocks_to_preallocate",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct bins_options, of_blocks.blocks_to_preallocate),
     .initial = "0",
     .unit = "blocks",
     .doc = "Blocks that each bin without a resource allocates from the upstream at creation; RMM allocates 128",
     .minimum = "0",
     .maximum = "1000000000"},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct bins_options, of_blocks.record),
     .initial = "auto",
     .doc = "When the event is recorded that another stream waits for before it reuses a block, as in pool",
     .choices = record_words},
};

static const struct hipmm_ops binning_ops = {
    .struct_size = sizeof binning_ops,
    .allocate = binning_allocate,
    .deallocate = binning_deallocate,
    .trim = binning_trim,
    .query = binning_query,
    .find = binning_find,
    .stream_retire = binning_stream_retire,
    .stream_retain = binning_stream_retain,
    .reconfigure = binning_reconfigure,
    .visit = binning_visit,
    .covers = binning_covers,
    .locate = binning_locate,
};

HIPMM_EXPORT extern const struct hipmm_plugin binning_LTX_hipmm_plugin;

const struct hipmm_plugin binning_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(binning_option_table, struct bins_options),
    .type = "binning",
    .version = "1.0",
    .doc = "Sends each request to the smallest bin that is large enough, and larger ones to its upstream",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .flags = HIPMM_PLUGIN_HANDS_ON,
    .min_upstreams = 1,
    .max_upstreams = 1,
    PLUGIN_VALUES(binning_values),
    .ops = &binning_ops,
    .create = binning_create,
    .destroy = binning_destroy,
    .validate = bins_validate,
};
