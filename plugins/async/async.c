/* SPDX-License-Identifier: MIT */
/* async.c: a source on the runtime's stream-ordered allocator with its own memory pool (hipMemPoolCreate). This file has
 * the options and creates the pool; driver_pool.h does the rest. */
#include "../common/descriptor.h"
#include "../common/driver_pool.h"

#include <string.h>

struct async_options {
  struct driver_pool_options pool;
  uint32_t handle_type; /* HIP's numbers are the indices of async_handle_types */
  struct hipmm_list peers;
};

static enum hipmm_status async_open(struct driver_pool *pool, const void *given)
{
  const struct async_options *options = given;
  const struct hipmm_services *services = pool->services;
  int code = services->hip->MemPoolCreate(&pool->pool, services->device, (int)options->handle_type);
  if (code) {
    pool->pool = NULL;
    return services->refuse_hip(services, "hipMemPoolCreate", code, 0);
  }
  pool->is_ours = pool->counts_reserve = true;
  pool->is_exportable = options->handle_type != HIPMM_HIP_HANDLE_NONE;
  enum hipmm_status status = driver_pool_allow(pool, &options->peers);
  return status ? status : driver_pool_prepare(pool, &options->pool);
}

static enum hipmm_status async_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  return driver_pool_create(services, async_open, options, self_out);
}

/* A device without a row any more has read and write access again, if it can reach the memory. */
static enum hipmm_status async_reconfigure(void *self, const char *option, const void *options)
{
  struct driver_pool *pool = self;
  if (strcmp(option, "peers")) return driver_pool_reconfigure(self, option, options);
  int previous = pool->services->enter_device(pool->services);
  enum hipmm_status status = driver_pool_allow(pool, &((const struct async_options *)options)->peers);
  pool->services->leave_device(pool->services, previous);
  return status;
}

static const char *const async_handle_types[] = {"none", "posix_fd", NULL};

_Static_assert(HIPMM_HIP_HANDLE_NONE == 0 && HIPMM_HIP_HANDLE_POSIX_FD == 1, "async_handle_types");
_Static_assert(offsetof(struct async_options, pool) == 0, "DRIVER_POOL_OPTIONS");

static const struct hipmm_option async_option_table[] = {
    DRIVER_POOL_OPTIONS,
    {.name = "handle_type",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct async_options, handle_type),
     .initial = "none",
     .doc = "How other processes can import the pool: none, or posix_fd for a file descriptor (hipmm/share.h)",
     .choices = async_handle_types},
    {.name = "peers",
     .type = HIPMM_OPTION_LIST,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct async_options, peers),
     .doc = "Other devices that may access the memory in place; a device without a row has read and write access if it "
            "can reach the memory. A copy on the default stream does not wait for the work of another device's default "
            "stream, as with hipMallocAsync: use events or hipMemcpyPeer",
     .fields = driver_pool_peer_fields,
     .n_fields = sizeof driver_pool_peer_fields / sizeof *driver_pool_peer_fields,
     .field_bytes = sizeof(struct driver_pool_peer)},
};

static const struct hipmm_ops async_ops = {
    .struct_size = sizeof async_ops,
    .allocate = driver_pool_allocate,
    .deallocate = driver_pool_deallocate,
    .trim = driver_pool_trim,
    .query = driver_pool_query,
    .perform = driver_pool_perform,
    .find = driver_pool_find,
    .reconfigure = async_reconfigure,
    .sharing = &driver_pool_sharing,
};

HIPMM_EXPORT extern const struct hipmm_plugin async_LTX_hipmm_plugin;

const struct hipmm_plugin async_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(async_option_table, struct async_options),
    .type = "async",
    .version = "1.1",
    .doc = "Stream-ordered allocator of the runtime (hipMallocAsync), with its own memory pool",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_DEVICE_MEMORY | HIPMM_PLUGIN_RECOUNTS,
    PLUGIN_VALUES(driver_pool_values),
    PLUGIN_ACTIONS(driver_pool_actions),
    .ops = &async_ops,
    .create = async_create,
    .destroy = driver_pool_destroy,
};
