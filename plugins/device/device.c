/* SPDX-License-Identifier: MIT */
/* device.c: the source of device memory: hipMalloc and hipFree, and virtual memory (mapping.c) for a pool above. The
 * stream given to deallocate is waited for. */
#include "../source.h"
#include "mapping.h"

static enum hipmm_status device_obtain(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  int code = services->hip->Malloc(ptr_out, bytes);
  return code ? services->refuse_hip(services, "hipMalloc", code, bytes) : HIPMM_OK;
}

static enum hipmm_status device_give_back(const struct source *source, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = source->services;
  (void)bytes; /* HIP knows */
  int code = services->hip->Free(ptr);
  return code ? services->refuse_hip(services, "hipFree", code, 0) : HIPMM_OK;
}

static const struct source_memory device_memory = {.obtain = device_obtain, .give_back = device_give_back};

static enum hipmm_status device_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams; /* it has none */
  return source_create(services, &device_memory, sizeof(struct source), self_out);
}

static const struct hipmm_ops device_ops = {
    .struct_size = sizeof device_ops,
    .allocate = source_allocate,
    .deallocate = source_deallocate,
    .find = source_find,
    .mapping = &device_mapping,
};

HIPMM_EXPORT extern const struct hipmm_plugin device_LTX_hipmm_plugin;

const struct hipmm_plugin device_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "device",
    .version = "1.0",          .doc = "Device memory, straight from the runtime (hipMalloc)",
    .role = HIPMM_ROLE_SOURCE, .ops = &device_ops,
    .create = device_create,   .destroy = source_destroy,
};
