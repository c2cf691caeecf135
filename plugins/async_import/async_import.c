/* SPDX-License-Identifier: MIT */
/* async_import.c: a source on the pool of another process, given as a file descriptor. It allocates nothing: its blocks
 * come from hipmm_share_import_pointer(), and are freed here like any other. hipmm_share_import_fd() creates one; a graph
 * can name one if the process inherited the descriptor. This file imports the pool; driver_pool.h does the rest. */
#include "../common/descriptor.h"
#include "../common/driver_pool.h"

struct async_import_options {
  int64_t fd;
  struct hipmm_list peers;
};

/* Older ROCm binds the pool to device 0 whatever device is current. The driver then refuses the import of pointers. */
static enum hipmm_status async_import_open(struct driver_pool *pool, const void *given)
{
  const struct async_import_options *options = given;
  const struct hipmm_services *services = pool->services;
  const struct hipmm_hip *hip = services->hip;
  enum hipmm_status status =
      source_require_function(services, !!hip->MemPoolImport, "hipMemPoolImportFromShareableHandle");
  if (status) return status;
  int code = hip->MemPoolImport(&pool->pool, (int)options->fd);
  if (code) {
    pool->pool = NULL;
    hip->GetLastError();
    return services->fail(
        services, HIPMM_E_HIP, "fd",
        "%lld is not the file descriptor of a pool (hipMemPoolImportFromShareableHandle: %s); pass one that "
        "hipmm_share_export_fd() gave",
        (long long)options->fd, hip->GetErrorName(code));
  }
  pool->is_ours = pool->is_imported = true;
  status = driver_pool_allow_own(pool);
  return status ? status : driver_pool_allow(pool, &options->peers);
}

static enum hipmm_status async_import_create(const struct hipmm_services *services, const void *options,
                                             struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                             void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  return driver_pool_create(services, async_import_open, options, self_out);
}

static const struct hipmm_option async_import_option_table[] = {
    {.name = "fd",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct async_import_options, fd),
     .doc = "File descriptor of the pool in this process; it may be closed after the stack is built",
     .minimum = "0",
     .maximum = "2147483647"},
    {.name = "peers",
     .type = HIPMM_OPTION_LIST,
     .offset = offsetof(struct async_import_options, peers),
     .doc = "Other devices of this process that may access the memory in place; a device without a row has read and "
            "write access if it can reach the memory",
     .fields = driver_pool_peer_fields,
     .n_fields = sizeof driver_pool_peer_fields / sizeof *driver_pool_peer_fields,
     .field_bytes = sizeof(struct driver_pool_peer)},
};

static const struct hipmm_ops async_import_ops = {
    .struct_size = sizeof async_import_ops,
    .allocate = driver_pool_allocate,
    .deallocate = driver_pool_deallocate,
    .find = driver_pool_find,
    .sharing = &driver_pool_sharing,
};

HIPMM_EXPORT extern const struct hipmm_plugin async_import_LTX_hipmm_plugin;

const struct hipmm_plugin async_import_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(async_import_option_table, struct async_import_options),
    .type = "async_import",
    .version = "1.0",
    .doc = "Memory that another process allocated from its pool and shares with this one",
    .role = HIPMM_ROLE_SOURCE,
    .ops = &async_import_ops,
    .create = async_import_create,
    .destroy = driver_pool_destroy,
};
