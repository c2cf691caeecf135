/* SPDX-License-Identifier: MIT */
/* managed.c: a source of managed memory (hipMallocManaged), which migrates between host and devices and may be larger than
 * any device. A free waits for its stream. */
#include "../common/source.h"

static enum hipmm_status managed_malloc(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  int code = services->hip->MallocManaged(ptr_out, bytes, HIPMM_HIP_MEM_ATTACH_GLOBAL);
  return code ? services->refuse_hip(services, "hipMallocManaged", code, bytes) : HIPMM_OK;
}

static enum hipmm_status managed_free(const struct source *source, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = source->services;
  (void)bytes; /* HIP knows */
  int code = services->hip->Free(ptr);
  return code ? services->refuse_hip(services, "hipFree", code, 0) : HIPMM_OK;
}

static const struct source_memory managed_memory = {.obtain = managed_malloc, .release = managed_free};

static enum hipmm_status managed_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = source_require_function(services, !!services->hip->MallocManaged, "hipMallocManaged");
  if (!status)
    status = source_require_attribute(services, HIPMM_HIP_DEVICE_MANAGED_MEMORY,
                                      "managed memory (hipDeviceAttributeManagedMemory is 0); use device or pinned");
  return status ? status : source_create(services, &managed_memory, sizeof(struct source), self_out);
}

HIPMM_EXPORT extern const struct hipmm_plugin managed_LTX_hipmm_plugin;

const struct hipmm_plugin managed_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "managed",
    .version = "1.0",          .doc = "Managed memory, which migrates between host and devices (hipMallocManaged)",
    .role = HIPMM_ROLE_SOURCE, .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &source_ops,        .create = managed_create,
    .destroy = source_destroy,
};
