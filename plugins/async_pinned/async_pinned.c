/* SPDX-License-Identifier: MIT */
/* async_pinned.c: a source of stream-ordered pinned host memory with its own memory pool in the driver. CUDA has such pools
 * since 12.6. This file creates the pool; driver_pool.h does the rest. */
#include "../common/descriptor.h"
#include "../common/driver_pool.h"
#include "../common/numa_node.h"

#include <string.h>

struct async_pinned_options {
  struct driver_pool_options pool;
  const char *numa_node;
};

/* CUDA 12 has pools of nodes only, and another driver may have only those that it places itself, or refuse a node that the
 * process's cpuset forbids. A node that the graph names is not replaced. */
static int async_pinned_make(struct driver_pool *pool, int node, bool is_given)
{
  const struct hipmm_hip *hip = pool->services->hip;
  int code = hip->MemPoolCreateHost(&pool->pool, node);
  if (is_given || (code != HIPMM_HIP_ERROR_NOT_SUPPORTED && code != HIPMM_HIP_ERROR_INVALID_VALUE)) return code;
  hip->GetLastError();
  return hip->MemPoolCreateHost(&pool->pool, node == NUMA_NODE_ANY ? 0 : NUMA_NODE_ANY);
}

static enum hipmm_status async_pinned_open(struct driver_pool *pool, const void *given)
{
  const struct async_pinned_options *options = given;
  const struct hipmm_services *services = pool->services;
  bool is_given = strcmp(options->numa_node, "auto") != 0 && strcmp(options->numa_node, "off") != 0;
  int node;
  enum hipmm_status status =
      source_require_function(services, !!services->hip->MemPoolSetAccess, "hipMemPoolSetAccess");
  if (!status) status = numa_node_find(services, options->numa_node, &node);
  if (status) return status;
  int code = async_pinned_make(pool, node, is_given);
  if (code) pool->pool = NULL;
  if (code == HIPMM_HIP_ERROR_NOT_SUPPORTED) {
    services->hip->GetLastError();
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "this runtime's hipMemPoolCreate has no %s (CUDA has it since 12.6, HIP has none yet); use "
                          "pool over pinned",
                          is_given ? "hipMemLocationTypeHostNuma" : "hipMemLocationTypeHost");
  }
  if (code) return services->refuse_hip(services, "hipMemPoolCreate", code, 0);
  pool->is_ours = pool->is_of_host = pool->counts_reserve = true;
  status = driver_pool_allow_own(pool);
  if (!status) status = driver_pool_allow(pool, &(const struct hipmm_list){0});
  return status ? status : driver_pool_prepare(pool, &options->pool);
}

static enum hipmm_status async_pinned_create(const struct hipmm_services *services, const void *options,
                                             struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                             void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  return driver_pool_create(services, async_pinned_open, options, self_out);
}

static void async_pinned_validate(const struct hipmm_validation *validation, const void *options)
{
  numa_node_validate(validation, ((const struct async_pinned_options *)options)->numa_node);
}

_Static_assert(offsetof(struct async_pinned_options, pool) == 0, "DRIVER_POOL_OPTIONS");

static const struct hipmm_option async_pinned_option_table[] = {
    DRIVER_POOL_OPTIONS,
    {.name = "numa_node",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct async_pinned_options, numa_node),
     .initial = "auto",
     .doc = "Where memory lies: auto, on the device's node if the driver can do that; off, where the driver places it, "
            "which before CUDA 12.9 is node 0; a number such as \"1\", on that node"},
};

HIPMM_EXPORT extern const struct hipmm_plugin async_pinned_LTX_hipmm_plugin;

const struct hipmm_plugin async_pinned_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(async_pinned_option_table, struct async_pinned_options),
    .type = "async_pinned",
    .version = "1.0",
    .doc = "Stream-ordered pinned host memory, which every device can access, with its own memory pool in the driver",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_HOST_MEMORY | HIPMM_PLUGIN_KEEPS_MEMORY | HIPMM_PLUGIN_RECOUNTS,
    PLUGIN_VALUES(driver_pool_values),
    PLUGIN_ACTIONS(driver_pool_actions),
    .ops = &driver_pool_ops,
    .create = async_pinned_create,
    .destroy = driver_pool_destroy,
    .validate = async_pinned_validate,
};
