/* SPDX-License-Identifier: MIT */
/* async_view.c: a source over a pool of the driver that others own: the device's default or current one, which
 * hipMallocAsync() uses too, or one that the program registered. Takes memory from it and gives it back; never destroys
 * the pool, and never changes what its owner has set. driver_pool.h is all but the choice of the pool. */
#include "../common/driver_pool.h"

struct async_view_options {
  uint32_t pool;
  const struct hipmm_mempool *pool_handle;
};

enum { DEFAULT_POOL, CURRENT_POOL };

static const char *const async_view_pools[] = {"default", "current", NULL};

static enum hipmm_status async_view_find(const struct hipmm_services *services, uint32_t which, hipMemPool_t *pool_out)
{
  const struct hipmm_hip *hip = services->hip;
  bool is_current = which == CURRENT_POOL;
  const char *name = is_current ? "hipDeviceGetMemPool" : "hipDeviceGetDefaultMemPool";
  int (*get)(hipMemPool_t *, int) = is_current ? hip->DeviceGetMemPool : hip->DeviceGetDefaultMemPool;
  enum hipmm_status status = source_require_function(services, get != NULL, name);
  if (status) return status;
  int code = get(pool_out, services->device);
  return code ? services->refuse_hip(services, name, code, 0) : HIPMM_OK;
}

/* Only HIP can tell whose a pool is, and only so: another device's is refused as this device's current one. */
static enum hipmm_status async_view_check(const struct hipmm_services *services, hipMemPool_t pool)
{
  const struct hipmm_hip *hip = services->hip;
  hipMemPool_t current = NULL;
  enum hipmm_status status = source_require_function(services, !!hip->DeviceSetMemPool, "hipDeviceSetMemPool");
  if (!status) status = async_view_find(services, CURRENT_POOL, &current);
  if (status || pool == current) return status;
  int code = hip->DeviceSetMemPool(services->device, pool);
  if (code == HIPMM_HIP_ERROR_INVALID_VALUE || code == HIPMM_HIP_ERROR_INVALID_DEVICE) {
    hip->GetLastError();
    return services->fail(services, HIPMM_E_CONFIG, "pool_handle",
                          "%p is no pool of device %d that can be allocated from (hipDeviceSetMemPool: %s); register a "
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
  pool->is_exportable = true; /* if its owner made it so: the driver knows */
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
     .doc = "Name of a pool of this device that the program registered with hipmm_register_mempool(); the pool must "
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
    .type = "async_view",
    .version = "1.0",
    .doc = "Memory pool of the driver that belongs to others, such as the pool of hipMallocAsync",
    .role = HIPMM_ROLE_SOURCE,
    .options = async_view_option_table,
    .n_options = sizeof async_view_option_table / sizeof *async_view_option_table,
    .options_bytes = sizeof(struct async_view_options),
    .values = driver_pool_values,
    .n_values = DRIVER_POOL_VALUES,
    .actions = driver_pool_actions,
    .n_actions = DRIVER_POOL_ACTIONS,
    .ops = &async_view_ops,
    .create = async_view_create,
    .destroy = driver_pool_destroy,
};
