/* SPDX-License-Identifier: MIT */
/* async_managed.c: a source of stream-ordered managed memory with its own memory pool in the driver. HIP has such pools
 * since 7.2, CUDA since 13.0. This file creates the pool; driver_pool.h does the rest. */
#include "../common/descriptor.h"
#include "../common/driver_pool.h"

static enum hipmm_status async_managed_open(struct driver_pool *pool, const void *options)
{
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status =
      source_require_attribute(services, HIPMM_HIP_DEVICE_MANAGED_MEMORY,
                               "managed memory (hipDeviceAttributeManagedMemory is 0); use async or pinned");
  if (status) return status;
  int code = services->hip->MemPoolCreateManaged(&pool->pool, services->device);
  if (code) pool->pool = NULL;
  if (code == HIPMM_HIP_ERROR_NOT_SUPPORTED) {
    services->hip->GetLastError();
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "this runtime's hipMemPoolCreate has no hipMemAllocationTypeManaged (HIP has it since 7.2); "
                          "use pool over managed");
  }
  if (code) return services->refuse_hip(services, "hipMemPoolCreate", code, 0);
  pool->is_ours = pool->counts_reserve = pool->is_managed = true;
  status = driver_pool_allow(pool, &(const struct hipmm_list){0});
  return status ? status : driver_pool_prepare(pool, options);
}

static enum hipmm_status async_managed_create(const struct hipmm_services *services, const void *options,
                                              struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                              void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  return driver_pool_create(services, async_managed_open, options, self_out);
}

static const struct hipmm_option async_managed_option_table[] = {DRIVER_POOL_OPTIONS};

HIPMM_EXPORT extern const struct hipmm_plugin async_managed_LTX_hipmm_plugin;

const struct hipmm_plugin async_managed_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(async_managed_option_table, struct driver_pool_options),
    .type = "async_managed",
    .version = "1.0",
    .doc = "Stream-ordered managed memory, which migrates between host and devices, with its own memory pool",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_KEEPS_MEMORY | HIPMM_PLUGIN_RECOUNTS,
    PLUGIN_VALUES(driver_pool_values),
    PLUGIN_ACTIONS(driver_pool_actions),
    .ops = &driver_pool_ops,
    .create = async_managed_create,
    .destroy = driver_pool_destroy,
};
