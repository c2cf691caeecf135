/* SPDX-License-Identifier: MIT */
/* host.c: a source of pageable host memory from the C library, for programs that run on the host alone and for trying a
 * stack. Whether a device can access it depends on the system; `system` checks that. A free waits for its stream, since
 * host functions on it may use the memory. */
#include "../common/source.h"

static enum hipmm_status host_create(const struct hipmm_services *services, const void *options,
                                     struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  return source_create(services, &source_host_memory, sizeof(struct source), self_out);
}

HIPMM_EXPORT extern const struct hipmm_plugin host_LTX_hipmm_plugin;

const struct hipmm_plugin host_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "host",
    .version = "1.0",          .doc = "Pageable host memory from the C library",
    .role = HIPMM_ROLE_SOURCE, .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_HOST_ALONE | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &source_ops,        .create = host_create,
    .destroy = source_destroy,
};
