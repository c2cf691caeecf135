/* SPDX-License-Identifier: MIT */
/* device.c: the source of device memory: hipMalloc and hipFree, and virtual memory (mapping.c) for a pool above. A free
 * waits for its stream. */
#include "device.h"
#include "../common/descriptor.h"

static enum hipmm_status device_malloc(const struct source *source, size_t bytes, void **ptr_out)
{
  const struct hipmm_services *services = source->services;
  int code = services->hip->Malloc(ptr_out, bytes);
  return code ? services->refuse_hip(services, "hipMalloc", code, bytes) : HIPMM_OK;
}

static enum hipmm_status device_free(const struct source *source, void *ptr, size_t bytes)
{
  const struct hipmm_services *services = source->services;
  enum hipmm_status status;
  (void)bytes; /* HIP knows */
  if (import_release((struct device *)(uintptr_t)source, ptr, &status)) return status;
  int code = services->hip->Free(ptr);
  return code ? services->refuse_hip(services, "hipFree", code, 0) : HIPMM_OK;
}

static const struct source_memory device_memory = {.obtain = device_malloc, .release = device_free};

static enum hipmm_status device_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  void *self;
  struct device_reach reach;
  (void)upstreams, (void)n_upstreams; /* it has none */
  bool is_shared = ((const struct device_options *)options)->handle_type != HIPMM_HIP_HANDLE_NONE;
  enum hipmm_status status = peers_enable(services, options);
  if (!status && is_shared)
    status = source_require_function(services, services->hip->MemExport && services->hip->MemCreateShared,
                                     "hipMemExportToShareableHandle");
  if (!status) status = device_reach_find(services, &reach);
  if (!status) status = source_create(services, &device_memory, sizeof(struct device), &self);
  if (status) return status;
  peers_open(self, &reach);
  ((struct device *)self)->is_shared = is_shared;
  *self_out = self;
  return HIPMM_OK;
}

static void device_destroy(void *self)
{
  peers_close(self);
  source_destroy(self);
}

/* `peers` is the only option that may change. A device that is in no row any more keeps its access, which is the whole
 * process's. */
static enum hipmm_status device_reconfigure(void *self, const char *option, const void *options)
{
  const struct hipmm_services *services = ((struct source *)self)->services;
  (void)option;
  int previous = services->enter_device(services);
  enum hipmm_status status = peers_enable(services, options);
  services->leave_device(services, previous);
  return status;
}

static const struct hipmm_option peer_table[] = {
    {.name = "device",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct peer, device),
     .doc = "Device number, from 0; a row with the resource's own device has no effect",
     .minimum = "0"},
};

static const char *const device_handle_types[] = {"none", "posix_fd", NULL};

_Static_assert(HIPMM_HIP_HANDLE_NONE == 0 && HIPMM_HIP_HANDLE_POSIX_FD == 1, "device_handle_types");

static const struct hipmm_option device_table[] = {
    {.name = "handle_type",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct device_options, handle_type),
     .initial = "none",
     .doc = "How other processes can import mapped memory, as of a pool above: none, or posix_fd for file descriptors "
            "(hipmm_share_export_block). The pool then gives each block of 1 MiB and more a chunk of its own. With old "
            "NVIDIA drivers, such as 525, programs with posix_fd were seen to run much slower",
     .choices = device_handle_types},
    {.name = "peers",
     .type = HIPMM_OPTION_LIST,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct device_options, peers),
     .doc = "Other devices whose kernels may access memory of hipMalloc, as after hipDeviceEnablePeerAccess; the "
            "access stays when the stack is destroyed. Mapped memory, as of a pool above, needs no row: every device "
            "that can reach it has access",
     .fields = peer_table,
     .n_fields = sizeof peer_table / sizeof *peer_table,
     .field_bytes = sizeof(struct peer)},
};

static const struct hipmm_ops device_ops = {
    .struct_size = sizeof device_ops,
    .allocate = source_allocate,
    .deallocate = source_deallocate,
    .find = source_find,
    .reconfigure = device_reconfigure,
    .mapping = &device_mapping,
    .grant_access = peers_grant_access,
    .sharing = &device_sharing,
};

HIPMM_EXPORT extern const struct hipmm_plugin device_LTX_hipmm_plugin;

const struct hipmm_plugin device_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(device_table, struct device_options),
    .type = "device",
    .version = "1.0",
    .doc = "Device memory from the runtime (hipMalloc)",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_DEVICE_MEMORY | HIPMM_PLUGIN_FREE_WAITS,
    .ops = &device_ops,
    .create = device_create,
    .destroy = device_destroy,
};
