/* SPDX-License-Identifier: MIT */
/* pinned.c: a source of host memory that stays in place (hipHostMalloc), which every device reads and writes over the
 * bus. For buffers that copies go through, and for what the host and a device share. The stream given to deallocate is
 * waited for. */
#include "../common/source.h"

static enum hipmm_status pinned_obtain(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  int code = services->hip->HostMalloc(ptr_out, bytes, HIPMM_HIP_HOST_MALLOC_PORTABLE);
  return code ? services->refuse_hip(services, "hipHostMalloc", code, bytes) : HIPMM_OK;
}

static enum hipmm_status pinned_give_back(const struct source *source, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = source->services;
  (void)bytes; /* HIP knows */
  int code = services->hip->HostFree(ptr);
  return code ? services->refuse_hip(services, "hipHostFree", code, 0) : HIPMM_OK;
}

static const struct source_memory pinned_memory = {.obtain = pinned_obtain, .release = pinned_give_back};

static enum hipmm_status pinned_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = source_require_function(services, !!services->hip->HostMalloc, "hipHostMalloc");
  if (!status) status = source_require_function(services, !!services->hip->HostFree, "hipHostFree");
  return status ? status : source_create(services, &pinned_memory, sizeof(struct source), self_out);
}

static const struct hipmm_ops pinned_ops = {
    .struct_size = sizeof pinned_ops,
    .allocate = source_allocate,
    .deallocate = source_deallocate,
    .find = source_find,
};

HIPMM_EXPORT extern const struct hipmm_plugin pinned_LTX_hipmm_plugin;

const struct hipmm_plugin pinned_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "pinned",
    .version = "1.0",          .doc = "Host memory that stays in place (hipHostMalloc) and that every device can use",
    .role = HIPMM_ROLE_SOURCE, .flags = HIPMM_PLUGIN_HOST_MEMORY,
    .ops = &pinned_ops,        .create = pinned_create,
    .destroy = source_destroy,
};
