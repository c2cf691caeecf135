/* SPDX-License-Identifier: MIT */
/* fixed_buffer.c: a source that allocates from memory of the program only (hipmm_region_register). A pool divides the
 * region (best fit, free neighbours merged, reuse in stream order); the option `record` is the pool's. The region belongs
 * to the program: it must outlive the stack, and is never freed. */
#include "../common/descriptor.h"
#include "../common/stream_order.h"
#include "../pool/options.h"
#include "region.h"

#include <string.h>

struct fixed_buffer_options {
  const struct hipmm_region *region;
  uint32_t record;
};

struct fixed_buffer {
  const struct hipmm_services *services;
  struct region region;
  struct pool_options pool_options;
  void *pool;
};

static const struct hipmm_plugin *const inner = &pool_LTX_hipmm_plugin;

/* The pool's value called `name`. */
static enum hipmm_status fixed_buffer_inner_query(const struct fixed_buffer *self, const char *name, int64_t *value_out)
{
  for (uint32_t i = 0; i < inner->n_values; i++)
    if (!strcmp(inner->values[i].name, name)) return inner->ops->query(self->pool, i, value_out);
  return HIPMM_E_INTERNAL;
}

/* ---- Memory ---- */

static enum hipmm_status fixed_buffer_explain(const struct fixed_buffer *self, size_t bytes)
{
  int64_t free_bytes = 0, largest_bytes = 0;
  fixed_buffer_inner_query(self, "free_bytes", &free_bytes);
  fixed_buffer_inner_query(self, "largest_free_bytes", &largest_bytes);
  return self->services->refuse(
      self->services, HIPMM_E_OUT_OF_MEMORY,
      "cannot allocate {0:bytes}: {1:bytes} of the region are free, in ranges of at most {2:bytes}", bytes,
      (uint64_t)free_bytes, (uint64_t)largest_bytes);
}

/* HIPMM_E_NOT_SUPPORTED comes from the region, which cannot be freed. Before the pool tried to free it, it waited for
 * all work and merged all free memory, so a second attempt may succeed. */
static enum hipmm_status fixed_buffer_allocate(void *self_, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                               void **ptr_out)
{
  struct fixed_buffer *self = self_;
  if (bytes > self->region.bytes) return fixed_buffer_explain(self, bytes);
  enum hipmm_status status = inner->ops->allocate(self->pool, bytes, alignment, stream, ptr_out);
  if (status == HIPMM_E_NOT_SUPPORTED) status = inner->ops->allocate(self->pool, bytes, alignment, stream, ptr_out);
  bool is_full = status == HIPMM_E_OUT_OF_MEMORY || status == HIPMM_E_NOT_SUPPORTED;
  return is_full ? fixed_buffer_explain(self, bytes) : status;
}

static enum hipmm_status fixed_buffer_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                 hipmm_stream_t stream)
{
  return inner->ops->deallocate(((struct fixed_buffer *)self)->pool, ptr, bytes, alignment, stream);
}

static enum hipmm_status fixed_buffer_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  return inner->ops->find(((struct fixed_buffer *)self)->pool, ptr, block_out);
}

static enum hipmm_status fixed_buffer_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  return inner->ops->locate(((struct fixed_buffer *)self)->pool, ptr, location_out);
}

static void fixed_buffer_stream_retire(void *self, hipmm_stream_t stream)
{
  inner->ops->stream_retire(((struct fixed_buffer *)self)->pool, stream);
}

static void fixed_buffer_stream_retain(void *self, hipmm_stream_t stream)
{
  inner->ops->stream_retain(((struct fixed_buffer *)self)->pool, stream);
}

static enum hipmm_status fixed_buffer_visit(void *self,
                                            void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                            void *closure)
{
  return inner->ops->visit(((struct fixed_buffer *)self)->pool, visitor, closure);
}

/* ---- Values: the region's size, and the pool's of the same names ---- */

static const struct hipmm_feature fixed_buffer_values[] = {
    {"region_bytes", "bytes", "Memory of the region that can be allocated"},
    {"live_bytes", "bytes", "Allocated memory, as requested"},
    {"live_count", "blocks", "Allocated blocks"},
    {"free_bytes", "bytes", "Memory of the region that is not allocated"},
    {"cached_bytes", "bytes", "Free memory in the caches of threads"},
    {"largest_free_bytes", "bytes", "The largest free block"},
    {"stream_waits", "waits", "Times that a stream was made to wait for another one"},
    {"metadata_bytes", "bytes", "Host memory that the records of blocks take, at most"},
};

static enum hipmm_status fixed_buffer_query(void *self_, size_t index, int64_t *value_out)
{
  struct fixed_buffer *self = self_;
  if (index) return fixed_buffer_inner_query(self, fixed_buffer_values[index].name, value_out);
  *value_out = (int64_t)self->region.bytes;
  return HIPMM_OK;
}

/* ---- Life ---- */

static enum hipmm_status fixed_buffer_create(const struct hipmm_services *services, const void *options,
                                             struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                             void **self_out)
{
  const struct fixed_buffer_options *wanted = options;
  (void)upstreams, (void)n_upstreams; /* it has none */
  struct fixed_buffer *self = services->host_allocate(services, sizeof *self);
  if (!self) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  self->services = services;
  enum hipmm_status status = region_open(&self->region, services, wanted->region);
  if (status) goto free_self;
  self->pool_options = (struct pool_options){.initial_size = self->region.bytes,
                                             .maximum_size = self->region.bytes,
                                             .growth = GROWTH_SEGMENTS,
                                             .record = wanted->record};
  struct hipmm_resource *upstream = &self->region.resource;
  status = inner->create(services, &self->pool_options, &upstream, 1, &self->pool);
  if (status) goto close_region;
  *self_out = self;
  return HIPMM_OK;

close_region:
  region_close(&self->region);
free_self:
  services->host_free(services, self, sizeof *self);
  return status;
}

static void fixed_buffer_destroy(void *self_)
{
  struct fixed_buffer *self = self_;
  const struct hipmm_services *services = self->services;
  self->region.is_closing = true;
  inner->destroy(self->pool); /* which waits for the device */
  region_close(&self->region);
  services->host_free(services, self, sizeof *self);
}

static const struct hipmm_option fixed_buffer_option_table[] = {
    {.name = "region",
     .type = HIPMM_OPTION_OBJECT,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct fixed_buffer_options, region),
     .unit = "region",
     .doc = "Name of the memory that the program registered with hipmm_region_register(): aligned to 256 bytes, usable "
            "by this device, and used by no other resource"},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct fixed_buffer_options, record),
     .initial = "auto",
     .doc = "When to record the event that another stream waits for before it reuses a block, as in pool",
     .choices = record_words},
};

static const struct hipmm_ops fixed_buffer_ops = {
    .struct_size = sizeof fixed_buffer_ops,
    .allocate = fixed_buffer_allocate,
    .deallocate = fixed_buffer_deallocate,
    .query = fixed_buffer_query,
    .find = fixed_buffer_find,
    .stream_retire = fixed_buffer_stream_retire,
    .stream_retain = fixed_buffer_stream_retain,
    .visit = fixed_buffer_visit,
    .locate = fixed_buffer_locate,
};

HIPMM_EXPORT extern const struct hipmm_plugin fixed_buffer_LTX_hipmm_plugin;

const struct hipmm_plugin fixed_buffer_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(fixed_buffer_option_table, struct fixed_buffer_options),
    .type = "fixed_buffer",
    .version = "1.0",
    .doc = "Allocations from a region of memory that the program owns",
    .role = HIPMM_ROLE_SOURCE,
    PLUGIN_VALUES(fixed_buffer_values),
    .ops = &fixed_buffer_ops,
    .create = fixed_buffer_create,
    .destroy = fixed_buffer_destroy,
};
