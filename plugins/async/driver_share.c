/* SPDX-License-Identifier: MIT */
/* driver_share.c: a driver's pool and other devices and processes: access, export and import. See driver_pool.h. */
#include "driver_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <hipmm/share.h>
#include <string.h>
#include <unistd.h>

/* ---- Other devices ---- */

static const char *const modes[] = {"read_write", "read", NULL};

const struct hipmm_option driver_pool_access_fields[2] = {
    {.name = "device",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct driver_pool_access, device),
     .doc = "The device, numbered from 0; the pool's own is passed over",
     .minimum = "0",
     .maximum = "1023"},
    {.name = "mode",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct driver_pool_access, mode),
     .initial = "read_write",
     .doc = "What the device may do with the memory",
     .choices = modes},
};

static enum hipmm_status allow(struct driver_pool *pool, int device, uint32_t mode)
{
  const struct hipmm_services *services = pool->services;
  if (device == services->device) return HIPMM_OK;
  int access = mode ? HIPMM_HIP_ACCESS_READ : HIPMM_HIP_ACCESS_READ_WRITE;
  int code = services->hip->MemPoolSetAccess(pool->pool, device, access);
  if (!code) return HIPMM_OK;
  services->hip->GetLastError();
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, "access",
                        "device %d cannot use memory of device %d (hipMemPoolSetAccess: %s); leave it out", device,
                        services->device, services->hip->GetErrorName(code));
}

enum hipmm_status driver_pool_allow(struct driver_pool *pool, const struct hipmm_list *access)
{
  const struct hipmm_services *services = pool->services;
  const struct driver_pool_access *rows = access->items;
  int count = 0;
  if (!access->count) return HIPMM_OK;
  enum hipmm_status status =
      source_require_function(services, !!services->hip->MemPoolSetAccess, "hipMemPoolSetAccess");
  if (status) return status;
  int code = services->hip->GetDeviceCount(&count);
  if (code) return services->refuse_hip(services, "hipGetDeviceCount", code, 0);
  for (size_t i = 0; !status && i < access->count; i++)
    status = rows[i].device < count ? allow(pool, (int)rows[i].device, rows[i].mode)
                                    : services->fail(services, HIPMM_E_CONFIG, "access",
                                                     "device %lld does not exist: there are %d, numbered from 0",
                                                     (long long)rows[i].device, count);
  return status;
}

/* ---- Other processes ---- */

static enum hipmm_status require_export(const struct driver_pool *pool, int is_there, const char *name)
{
  const struct hipmm_services *services = pool->services;
  if (!pool->is_exportable)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "%s",
                          pool->is_imported ? "this pool is another process's, which alone can hand it on"
                                            : "this pool was not made for other processes; use async with "
                                              "\"handle_type\": \"posix_fd\"");
  return source_require_function(services, is_there, name);
}

/* CUDA makes a new descriptor each time, ROCm hands out one of its own: it is asked once, and others get copies. */
static enum hipmm_status export_locked(struct driver_pool *pool, int *fd_out)
{
  const struct hipmm_services *services = pool->services;
  if (pool->exported_fd < 0) {
    int fd = -1;
    int code = services->hip->MemPoolExport(&fd, pool->pool);
    if (code) return services->refuse_hip(services, "hipMemPoolExportToShareableHandle", code, 0);
    pool->exported_fd = fd;
  }
  int copy = fcntl(pool->exported_fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    return services->fail(services, HIPMM_E_IO, NULL, "the pool's file descriptor cannot be copied: %s",
                          strerror(errno));
  *fd_out = copy;
  return HIPMM_OK;
}

static enum hipmm_status export_fd(void *self, int *fd_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  enum hipmm_status status = require_export(pool, !!services->hip->MemPoolExport, "hipMemPoolExportToShareableHandle");
  if (status) return status;
  int previous = services->enter_device(services);
  pthread_mutex_lock(&pool->lock);
  status = export_locked(pool, fd_out);
  pthread_mutex_unlock(&pool->lock);
  services->leave_device(services, previous);
  return status;
}

void driver_pool_close_export(struct driver_pool *pool)
{
  if (pool->exported_fd >= 0) close(pool->exported_fd);
}

static enum hipmm_status export_pointer(void *self, const void *ptr, struct hipmm_pool_pointer *pointer_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  struct hipmm_block block;
  struct hipmm_pool_pointer pointer = {.bytes = 0};
  enum hipmm_status status = require_export(pool, !!services->hip->MemPoolExportPointer, "hipMemPoolExportPointer");
  if (!status) status = services->held(services, ptr, &block);
  if (status) return status;
  pointer.bytes = block.bytes;
  int previous = services->enter_device(services);
  int code = services->hip->MemPoolExportPointer(pointer.data, block.ptr);
  status = code ? services->refuse_hip(services, "hipMemPoolExportPointer", code, 0) : HIPMM_OK;
  services->leave_device(services, previous);
  if (!status) *pointer_out = pointer;
  return status;
}

static enum hipmm_status open_pointer(struct driver_pool *pool, struct hipmm_pool_pointer pointer, void **ptr_out)
{
  const struct hipmm_services *services = pool->services;
  void *ptr = NULL;
  int code = services->hip->MemPoolImportPointer(&ptr, pool->pool, pointer.data);
  if (code) return services->refuse_hip(services, "hipMemPoolImportPointer", code, pointer.bytes);
  enum hipmm_status status = driver_pool_hold(pool, ptr, pointer.bytes);
  if (status)
    services->hip->FreeAsync(ptr, NULL);
  else
    *ptr_out = ptr;
  return status;
}

static enum hipmm_status import_pointer(void *self, const struct hipmm_pool_pointer *pointer, void **ptr_out)
{
  struct driver_pool *pool = self;
  const struct hipmm_services *services = pool->services;
  if (!pool->is_imported)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "pointers are imported into an imported pool: see hipmm_pool_import_fd()");
  if (!pointer->bytes || source_check(services, pointer->bytes, HIPMM_ALIGNMENT))
    return services->fail(services, HIPMM_E_ARGUMENT, NULL, "the pointer says that it has %llu bytes: it was not %s",
                          (unsigned long long)pointer->bytes, "exported by hipmm_pool_export_pointer()");
  enum hipmm_status status =
      source_require_function(services, !!services->hip->MemPoolImportPointer, "hipMemPoolImportPointer");
  if (status) return status;
  int previous = services->enter_device(services);
  status = open_pointer(pool, *pointer, ptr_out);
  services->leave_device(services, previous);
  return status;
}

const struct hipmm_sharing driver_pool_sharing = {.struct_size = sizeof driver_pool_sharing,
                                                  .export_fd = export_fd,
                                                  .export_pointer = export_pointer,
                                                  .import_pointer = import_pointer};
