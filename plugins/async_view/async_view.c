/* SPDX-License-Identifier: MIT */
/* async_view.c: a source on a pool of the driver that belongs to others: the device's default or current pool, which
 * hipMallocAsync() uses too, or a pool that the program registered. Never destroys the pool and never changes its
 * attributes. This file chooses the pool; driver_pool.h does the rest. */
#include "../common/descriptor.h"
#include "../common/driver_pool.h"

struct async_view_options {
  uint32_t pool;
  const struct hipmm_mempool *pool_handle;
};

enum { DEFAULT_POOL, CURRENT_POOL };

static const char *const async_view_pools[] = {"default", "current", NULL};

static enum hipmm_status async_view_find(const struct hipmm_services *services, uint32_t which,
                                         hipmm_hip_mempool_t *pool_out)
{
  const struct hipmm_hip *hip = services->hip;
  bool is_current = which == CURRENT_POOL;
  const char *name = is_current ? "hipDeviceGetMemPool" : "hipDeviceGetDefaultMemPool";
  int (*get)(hipmm_hip_mempool_t *, int) = is_current ? hip->DeviceGetMemPool : hip->DeviceGetDefaultMemPool;
  enum hipmm_status status = source_require_function(services, get != NULL, name);
  if (status) return status;
  int code = get(pool_out, services->device);
  return code ? services->refuse_hip(services, name, code, 0) : HIPMM_OK;
}

/* The only way to learn the device of a pool: HIP refuses a pool of another device as this device's current pool. */
static enum hipmm_status async_view_check(const struct hipmm_services *services, hipmm_hip_mempool_t pool)
{
  const struct hipmm_hip *hip = services->hip;
  hipmm_hip_mempool_t current = NULL;
  enum hipmm_status status = source_require_function(services, !!hip->DeviceSetMemPool, "hipDeviceSetMemPool");
  if (!status) status = async_view_find(services, CURRENT_POOL, &current);
  if (status || pool == current) return status;
  int code = hip->DeviceSetMemPool(services->device, pool);
  if (code == HIPMM_HIP_ERROR_INVALID_VALUE || code == HIPMM_HIP_ERROR_INVALID_DEVICE) {
    hip->GetLastError();
    return services->fail(services, HIPMM_E_CONFIG, "pool_handle",
                          "%p is not a pool of device %d that allows allocations (hipDeviceSetMemPool: %s); register a "
                          "pool of this device, or give the other device a resource of its own",
                          (void *)pool, services->device, hip->GetErrorName(code));
  }
  if (code) return services->refuse_hip(services, "hipDeviceSetMemPool", code, 0);
  code = hip->DeviceSetMemPool(services->device, current);
  if (code) code = hip->DeviceSetMemPool(services->device, current);
  return code ? services->refuse_hip(services, "hipDeviceSetMemPool", code, 0) : HIPMM_OK;
}

static enum hipmm_status async_view_open(struct driver_pool *pool, const void *given)
{
  const struct async_view_options *options = given;
  pool->is_exportable = true; /* if its owner created it so; the driver refuses otherwise */
  if (!options->pool_handle) return async_view_find(pool->services, options->pool, &pool->pool);
  pool->pool = options->pool_handle->handle;
  return async_view_check(pool->services, pool->pool);
}

static enum hipmm_status async_view_create(const struct hipmm_services *services, const void *options,
                                           struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  return driver_pool_create(services, async_view_open, options, self_out);
}

static const struct hipmm_option async_view_option_table[] = {
    {.name = "pool",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct async_view_options, pool),
     .initial = "default",
     .doc = "Which pool of the device, without pool_handle: default, the device's first one; current, the one set with "
            "hipDeviceSetMemPool() before the stack was built",
     .choices = async_view_pools},
    {.name = "pool_handle",
     .type = HIPMM_OPTION_OBJECT,
     .offset = offsetof(struct async_view_options, pool_handle),
     .unit = "mempool",
     .doc = "Name of a pool of this device that the program registered with hipmm_mempool_register(); the pool must "
            "outlive the stack"},
};

static const struct hipmm_ops async_view_ops = {
    .struct_size = sizeof async_view_ops,
    .allocate = driver_pool_allocate,
    .deallocate = driver_pool_deallocate,
    .trim = driver_pool_trim,
    .query = driver_pool_query,
    .perform = driver_pool_perform,
    .find = driver_pool_find,
    .sharing = &driver_pool_sharing,
};

HIPMM_EXPORT extern const struct hipmm_plugin async_view_LTX_hipmm_plugin;

const struct hipmm_plugin async_view_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(async_view_option_table, struct async_view_options),
    .type = "async_view",
    .version = "1.0",
    .doc = "Memory pool of the driver that belongs to others, such as the pool of hipMallocAsync",
    .role = HIPMM_ROLE_SOURCE,
    PLUGIN_VALUES(driver_pool_values),
    PLUGIN_ACTIONS(driver_pool_actions),
    .ops = &async_view_ops,
    .create = async_view_create,
    .destroy = driver_pool_destroy,
};
