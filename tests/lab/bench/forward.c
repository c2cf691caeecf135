/* SPDX-License-Identifier: MIT */
/* forward.c: an adaptor that only forwards, to measure what an adaptor costs by itself. figures.sh uses it; it is not
 * installed. */
#include <hipmm/plugin.h>

struct forward {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
};

static enum hipmm_status forward_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct forward *forward = self;
  return hipmm_upstream_allocate(forward->upstream, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status forward_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct forward *forward = self;
  return hipmm_upstream_deallocate(forward->upstream, ptr, bytes, alignment, stream);
}

static enum hipmm_status forward_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options;
  (void)n_upstreams;
  struct forward *forward = services->host_allocate(services, sizeof *forward);
  if (!forward) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  *forward = (struct forward){services, upstreams[0]};
  *self_out = forward;
  return HIPMM_OK;
}

static void forward_destroy(void *self)
{
  struct forward *forward = self;
  forward->services->host_free(forward->services, forward, sizeof *forward);
}

static const struct hipmm_ops forward_ops = {
    .struct_size = sizeof forward_ops,
    .allocate = forward_allocate,
    .deallocate = forward_deallocate,
};

HIPMM_EXPORT extern const struct hipmm_plugin forward_LTX_hipmm_plugin;

const struct hipmm_plugin forward_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,          .type = "forward",
    .version = "1.0",           .doc = "Forwards, and does nothing else",
    .role = HIPMM_ROLE_ADAPTOR, .min_upstreams = 1,
    .max_upstreams = 1,         .ops = &forward_ops,
    .create = forward_create,   .destroy = forward_destroy,
};
