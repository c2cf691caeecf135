/* SPDX-License-Identifier: MIT */
/* pinned.c: a source of pinned host memory (hipHostMalloc), which every device accesses over the bus: for staging buffers,
 * and for data that host and device share. A free waits for its stream. */
#include "../common/source.h"

static enum hipmm_status pinned_malloc(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  int code = services->hip->HostMalloc(ptr_out, bytes, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  return code ? services->refuse_hip(services, "hipHostMalloc", code, bytes) : HIPMM_OK;
}

static enum hipmm_status pinned_free(const struct source *source, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = source->services;
  (void)bytes; /* HIP knows */
  int code = services->hip->HostFree(ptr);
  return code ? services->refuse_hip(services, "hipHostFree", code, 0) : HIPMM_OK;
}

static const struct source_memory pinned_memory = {
    .obtain = pinned_malloc, .release = pinned_free, .aligns_to_any = true};

static enum hipmm_status pinned_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = source_require_function(services, !!services->hip->HostMalloc, "hipHostMalloc");
  if (!status) status = source_require_function(services, !!services->hip->HostFree, "hipHostFree");
  return status ? status : source_create(services, &pinned_memory, sizeof(struct source), self_out);
}

HIPMM_EXPORT extern const struct hipmm_plugin pinned_LTX_hipmm_plugin;

const struct hipmm_plugin pinned_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "pinned",
    .version = "1.0",          .doc = "Pinned host memory, which every device can access (hipHostMalloc)",
    .role = HIPMM_ROLE_SOURCE, .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &source_ops,        .create = pinned_create,
    .destroy = source_destroy,
};
