/* SPDX-License-Identifier: MIT */
/* bare.c: a good plugin that exports its descriptor under the plain name hipmm_plugin, as a third party may. It
 * forwards to its upstream. */
#include <hipmm/plugin.h>

static enum hipmm_status bare_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                       void **ptr_out)
{
  return hipmm_upstream_allocate(self, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status bare_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  return hipmm_upstream_deallocate(self, ptr, bytes, alignment, stream);
}

static const struct hipmm_ops bare_ops = {
    .struct_size = sizeof bare_ops, .allocate = bare_allocate, .deallocate = bare_deallocate};

static enum hipmm_status bare_create(const struct hipmm_services *services, const void *options,
                                     struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)services, (void)options, (void)n_upstreams;
  *self_out = upstreams[0];
  return HIPMM_OK;
}

static void bare_destroy(void *self)
{
  (void)self;
}

HIPMM_EXPORT extern const struct hipmm_plugin hipmm_plugin;

const struct hipmm_plugin hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,          .type = "bare",          .version = "0.1",   .doc = "Forwards to its upstream",
    .role = HIPMM_ROLE_ADAPTOR, .min_upstreams = 1,      .max_upstreams = 1, .ops = &bare_ops,
    .create = bare_create,      .destroy = bare_destroy,
};
