/* SPDX-License-Identifier: MIT */
/* driver_share.c: access of other devices to a driver's pool, and its export to and import from other processes. */
#include "device_reach.h"
#include "driver_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <hipmm/share.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Other devices ---- */

static const char *const modes[] = {"read_write", "read", NULL};

const struct hipmm_option driver_pool_peer_fields[2] = {
    {.name = "device",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct driver_pool_peer, device),
     .doc = "The device, numbered from 0; the resource's own is passed over",
     .minimum = "0"},
    {.name = "mode",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct driver_pool_peer, mode),
     .initial = "read_write",
     .doc = "What the device may do with the memory",
     .choices = modes},
};

static enum hipmm_status driver_share_allow(struct driver_pool *pool, size_t row, const struct driver_pool_peer *peer)
{
  const struct hipmm_services *services = pool->services;
  char option[40]; /* which of them: it becomes a JSON pointer */
  snprintf(option, sizeof option, "peers/%zu", row);
  enum hipmm_status status = source_require_device(services, option, peer->device);
  if (status || peer->device == services->device) return status;
  int access = peer->mode ? HIPMM_HIP_ACCESS_READ : HIPMM_HIP_ACCESS_READ_WRITE;
  int code = services->hip->MemPoolSetAccess(pool->pool, (int)peer->device, access);
  if (!code) return HIPMM_OK;
  services->hip->GetLastError();
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, option,
                        "device %lld cannot use memory of device %d (hipMemPoolSetAccess: %s); leave it out",
                        (long long)peer->device, services->device, services->hip->GetErrorName(code));
}

static enum hipmm_status driver_share_allow_rows(struct driver_pool *pool, const struct hipmm_list *peers)
{
  const struct driver_pool_peer *rows = peers->items;
  if (!peers->count) return HIPMM_OK;
  enum hipmm_status status =
      source_require_function(pool->services, !!pool->services->hip->MemPoolSetAccess, "hipMemPoolSetAccess");
  for (size_t i = 0; !status && i < peers->count; i++) status = driver_share_allow(pool, i, &rows[i]);
  return status;
}

/* Without the devices of the option's rows, which may have less access. Managed memory is for every device by its nature: a
 * driver may refuse access to it. */
static enum hipmm_status driver_share_allow_all(const struct driver_pool *pool, uint64_t devices)
{
  const struct hipmm_services *services = pool->services;
  enum hipmm_log_level level = pool->is_managed ? HIPMM_LOG_DEBUG : HIPMM_LOG_WARNING;
  if (!services->hip->MemPoolSetAccess) return HIPMM_OK;
  for (; devices; devices &= devices - 1) {
    int code = services->hip->MemPoolSetAccess(pool->pool, device_reach_first(devices), HIPMM_HIP_ACCESS_READ_WRITE);
    if (device_reach_is_refused(code))
      device_reach_report(services, level, "hipMemPoolSetAccess", code, device_reach_first(devices));
    else if (code)
      return services->refuse_hip(services, "hipMemPoolSetAccess", code, 0);
  }
  return HIPMM_OK;
}

enum hipmm_status driver_pool_allow(struct driver_pool *pool, const struct hipmm_list *peers)
{
  const struct driver_pool_peer *rows = peers->items;
  struct device_reach reach;
  enum hipmm_status status = device_reach_find(pool->services, &reach);
  if (!status) status = driver_share_allow_rows(pool, peers);
  if (status) return status;
  uint64_t devices = pool->is_of_host ? reach.others : reach.devices;
  for (size_t i = 0; i < peers->count; i++) devices &= ~device_reach_bit(rows[i].device);
  return driver_share_allow_all(pool, devices);
}

/* The device of an external pool may have no access yet. A driver that cannot tell needs none. */
enum hipmm_status driver_pool_allow_own(struct driver_pool *pool)
{
  const struct hipmm_services *services = pool->services;
  const struct hipmm_hip *hip = services->hip;
  int access = HIPMM_HIP_ACCESS_NONE;
  if (!hip->MemPoolGetAccess || !hip->MemPoolSetAccess) return HIPMM_OK;
  if (hip->MemPoolGetAccess(&access, pool->pool, services->device)) {
    hip->GetLastError();
    return HIPMM_OK;
  }
  if (access == HIPMM_HIP_ACCESS_READ_WRITE) return HIPMM_OK;
  int code = hip->MemPoolSetAccess(pool->pool, services->device, HIPMM_HIP_ACCESS_READ_WRITE);
  return code ? services->refuse_hip(services, "hipMemPoolSetAccess", code, 0) : HIPMM_OK;
}

/* ---- Other processes ---- */

static enum hipmm_status driver_share_require_export(const struct driver_pool *pool, int is_there, const char *name)
{
  const struct hipmm_services *services = pool->services;
  if (!pool->is_exportable)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "%s",
                          pool->is_imported ? "this pool is another process's, which alone can hand it on"
                                            : "this pool was not made for other processes; use async with "
                                              "\"handle_type\": \"posix_fd\"");
  return source_require_function(services, is_there, name);
}

/* CUDA makes a new descriptor each time, and ROCm returns its own one: it is exported once, and others get copies. CUDA
 * exports a pointer only of a pool that has been exported. The device is current. */
static enum hipmm_status driver_share_export_once(struct driver_pool *pool)
{
  const struct hipmm_services *services = pool->services;
  int fd = -1, code = 0;
  pthread_mutex_lock(&pool->lock);
  if (pool->exported_fd < 0) code = services->hip->MemPoolExport(&fd, pool->pool);
  if (!code && pool->exported_fd < 0) pool->exported_fd = fd;
  pthread_mutex_unlock(&pool->lock);
  return code ? services->refuse_hip(services, "hipMemPoolExportToShareableHandle", code, 0) : HIPMM_OK;
}

static enum hipmm_status driver_share_export_fd(void *self, int *fd_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status =
      driver_share_require_export(pool, !!services->hip->MemPoolExport, "hipMemPoolExportToShareableHandle");
  if (status) return status;
  int previous = services->enter_device(services);
  status = driver_share_export_once(pool);
  services->leave_device(services, previous);
  if (status) return status;
  int copy = fcntl(pool->exported_fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    return services->fail(services, HIPMM_E_IO, NULL, "the pool's file descriptor cannot be copied: %s",
                          strerror(errno));
  *fd_out = copy;
  return HIPMM_OK;
}

/* ROCm up to 5.4 returns success and does nothing. */
static enum hipmm_status driver_share_refuse_silence(const struct hipmm_services *services, const char *call)
{
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "this runtime's %s does nothing", call);
}

static bool driver_share_is_blank(const struct hipmm_share_pointer *pointer)
{
  for (size_t i = 0; i < sizeof pointer->data; i++)
    if (pointer->data[i]) return false;
  return true;
}

static enum hipmm_status driver_share_export_pointer(void *self, const void *ptr,
                                                     struct hipmm_share_pointer *pointer_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  struct hipmm_block block;
  struct hipmm_share_pointer pointer = {.bytes = 0};
  const struct hipmm_hip *hip = services->hip;
  enum hipmm_status status =
      driver_share_require_export(pool, hip->MemPoolExport && hip->MemPoolExportPointer,
                                  "hipMemPoolExportPointer, or hipMemPoolExportToShareableHandle");
  if (!status) status = services->lookup(services, ptr, &block);
  if (status) return status;
  pointer.bytes = block.bytes;
  int previous = services->enter_device(services);
  status = driver_share_export_once(pool);
  int code = status ? 0 : services->hip->MemPoolExportPointer(pointer.data, block.ptr);
  if (code) status = services->refuse_hip(services, "hipMemPoolExportPointer", code, 0);
  if (!status && driver_share_is_blank(&pointer))
    status = driver_share_refuse_silence(services, "hipMemPoolExportPointer");
  services->leave_device(services, previous);
  if (!status) *pointer_out = pointer;
  return status;
}

/* ---- What is imported ---- */

_Static_assert(sizeof((struct hipmm_share_pointer *)NULL)->data == HIPMM_HIP_POINTER_BYTES, "hipmm_share_pointer");

/* Under the lock, from here on. */
static const struct driver_import *driver_share_import_like(const struct driver_pool *pool,
                                                            const struct driver_import *import)
{
  for (size_t i = 0; i < pool->n_imports; i++)
    if (!memcmp(pool->imports[i].data, import->data, sizeof import->data)) return &pool->imports[i];
  return NULL;
}

static bool driver_share_make_room(struct driver_pool *pool)
{
  const struct hipmm_services *services = pool->services;
  if (pool->n_imports < pool->most_imports) return true;
  size_t most = pool->most_imports ? 2 * pool->most_imports : 64;
  struct driver_import *items = services->host_allocate(services, most * sizeof *items);
  if (!items) return false;
  if (pool->imports) {
    memcpy(items, pool->imports, pool->n_imports * sizeof *items);
    services->host_free(services, pool->imports, pool->most_imports * sizeof *items);
  }
  pool->imports = items;
  pool->most_imports = most;
  return true;
}

static enum hipmm_status driver_share_refuse_import(const struct driver_pool *pool, const void *ptr)
{
  return pool->services->fail(pool->services, HIPMM_E_STATE, NULL,
                              "this pointer is imported already, as %p: use that, or free it first", ptr);
}

/* The other process may give a wrong size: the driver is asked, where it can tell. */
static enum hipmm_status driver_share_check_size(const struct hipmm_services *services, void *ptr, uint64_t bytes)
{
  const struct hipmm_hip *hip = services->hip;
  void *start = NULL;
  size_t driver_bytes = 0;
  if (!hip->MemGetAddressRange) return HIPMM_OK;
  if (hip->MemGetAddressRange(&start, &driver_bytes, ptr)) {
    hip->GetLastError();
    return HIPMM_OK;
  }
  uint64_t offset = (uintptr_t)ptr - (uintptr_t)start;
  if (offset < driver_bytes && bytes <= driver_bytes - offset) return HIPMM_OK;
  return services->fail(services, HIPMM_E_ARGUMENT, NULL,
                        "the pointer says that it has %llu bytes, more than the driver knows of (%llu)",
                        (unsigned long long)bytes, (unsigned long long)(driver_bytes - offset));
}

static enum hipmm_status driver_share_open_pointer(struct driver_pool *pool, struct hipmm_share_pointer pointer,
                                                   void **ptr_out)
{
  const struct hipmm_services *services = pool->services;
  struct driver_import import = {.ptr = NULL};
  memcpy(import.data, pointer.data, sizeof import.data);
  const struct driver_import *same = driver_share_import_like(pool, &import);
  if (same) return driver_share_refuse_import(pool, same->ptr);
  if (!driver_share_make_room(pool))
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory to record it");
  int code = services->hip->MemPoolImportPointer(&import.ptr, pool->pool, pointer.data);
  if (code) return services->refuse_hip(services, "hipMemPoolImportPointer", code, pointer.bytes);
  if (!import.ptr) return driver_share_refuse_silence(services, "hipMemPoolImportPointer");
  if (driver_pool_import_of(pool, import.ptr)) return driver_share_refuse_import(pool, import.ptr);
  enum hipmm_status status = driver_share_check_size(services, import.ptr, pointer.bytes);
  if (!status) status = driver_pool_track(pool, import.ptr, pointer.bytes);
  if (status) {
    services->hip->FreeAsync(import.ptr, NULL);
    return status;
  }
  pool->imports[pool->n_imports++] = import;
  *ptr_out = import.ptr;
  return HIPMM_OK;
}

static enum hipmm_status driver_share_import_pointer(void *self, const struct hipmm_share_pointer *pointer,
                                                     void **ptr_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  if (!pool->is_imported)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "pointers are imported into an imported pool: see hipmm_share_import_fd()");
  if (!pointer->bytes || source_check(services, pointer->bytes, HIPMM_ALIGNMENT))
    return services->fail(services, HIPMM_E_ARGUMENT, NULL, "the pointer says that it has %llu bytes: it was not %s",
                          (unsigned long long)pointer->bytes, "exported by hipmm_share_export_pointer()");
  enum hipmm_status status =
      source_require_function(services, !!services->hip->MemPoolImportPointer, "hipMemPoolImportPointer");
  if (status) return status;
  int previous = services->enter_device(services);
  pthread_mutex_lock(&pool->lock);
  status = driver_share_open_pointer(pool, *pointer, ptr_out);
  pthread_mutex_unlock(&pool->lock);
  services->leave_device(services, previous);
  return status;
}

const struct hipmm_sharing driver_pool_sharing = {.struct_size = sizeof driver_pool_sharing,
                                                  .export_fd = driver_share_export_fd,
                                                  .export_pointer = driver_share_export_pointer,
                                                  .import_pointer = driver_share_import_pointer};
