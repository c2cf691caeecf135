/* SPDX-License-Identifier: MIT */
/* system.c: a source of pageable host memory for devices that can access all of it, as on MI300A or Grace Hopper. A free
 * waits for its stream, since the device may still use the memory. */
#include "../common/source.h"

static enum hipmm_status system_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status =
      source_require_attribute(services, HIPMM_HIP_DEVICE_PAGEABLE_MEMORY_ACCESS,
                               "access to plain host memory (hipDeviceAttributePageableMemoryAccess is 0); use pinned "
                               "or managed");
  return status ? status : source_create(services, &source_host_memory, sizeof(struct source), self_out);
}

HIPMM_EXPORT extern const struct hipmm_plugin system_LTX_hipmm_plugin;

const struct hipmm_plugin system_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "system",
    .version = "1.0",          .doc = "Pageable host memory, on systems whose devices can access all of it",
    .role = HIPMM_ROLE_SOURCE, .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &source_ops,        .create = system_create,
    .destroy = source_destroy,
};
