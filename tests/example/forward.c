/* SPDX-License-Identifier: MIT */
/* forward.c: the smallest useful plugin: an adaptor that passes everything on and counts the allocations. */
#include <hipmm/plugin.h>
#include <stdatomic.h>

struct forward {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  atomic_int_least64_t allocations;
};

static enum hipmm_status forward_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct forward *forward = self;
  enum hipmm_status status = hipmm_upstream_allocate(forward->upstream, bytes, alignment, stream, ptr_out);
  if (status == HIPMM_OK) atomic_fetch_add(&forward->allocations, 1);
  return status;
}

static enum hipmm_status forward_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct forward *forward = self;
  return hipmm_upstream_deallocate(forward->upstream, ptr, bytes, alignment, stream);
}

static enum hipmm_status forward_query(void *self, size_t index, int64_t *value_out)
{
  struct forward *forward = self;
  (void)index; /* there is one value */
  *value_out = atomic_load(&forward->allocations);
  return HIPMM_OK;
}

static enum hipmm_status forward_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  struct forward *forward = services->host_allocate(services, sizeof *forward);
  (void)options, (void)n_upstreams; /* it has no options, and one upstream */
  if (!forward) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  forward->services = services;
  forward->upstream = upstreams[0];
  *self_out = forward;
  return HIPMM_OK;
}

static void forward_destroy(void *self)
{
  struct forward *forward = self;
  forward->services->host_free(forward->services, forward, sizeof *forward);
}

static const struct hipmm_feature forward_values[] = {
    {.name = "forwarded", .unit = "allocations", .doc = "Allocations since creation"},
};

static const struct hipmm_ops forward_ops = {
    .struct_size = sizeof forward_ops,
    .allocate = forward_allocate,
    .deallocate = forward_deallocate,
    .query = forward_query,
};

HIPMM_EXPORT extern const struct hipmm_plugin forward_LTX_hipmm_plugin;

const struct hipmm_plugin forward_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,           .type = "forward",          .version = "1.0",
    .doc = "Counts allocations", .role = HIPMM_ROLE_ADAPTOR, .min_upstreams = 1,
    .max_upstreams = 1,          .values = forward_values,   .n_values = 1,
    .ops = &forward_ops,         .create = forward_create,   .destroy = forward_destroy,
};
