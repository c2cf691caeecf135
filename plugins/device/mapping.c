/* SPDX-License-Identifier: MIT */
/* mapping.c: HIP's virtual memory management as struct hipmm_mapping. Each call costs the driver microseconds. */
#include "../../core/base/hip_layout.h"
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static bool mapping_has_virtual_memory(const struct hipmm_services *services)
{
  const struct hipmm_hip *hip = services->hip;
  int supported = 0;
  if (hip->DeviceGetAttribute(&supported, HIPMM_HIP_DEVICE_VIRTUAL_MEMORY, services->device)) hip->GetLastError();
  return supported && hip->MemGetAllocationGranularity && hip->MemAddressReserve && hip->MemAddressFree &&
         hip->MemCreate && hip->MemRelease && hip->MemMap && hip->MemUnmap && hip->MemSetAccess;
}

/* Some releases of HIP act on the current device whatever device an argument names. */
static enum hipmm_status mapping_end(const struct hipmm_services *services, int previous, const char *call, int code,
                                     size_t bytes)
{
  enum hipmm_status status = code ? services->refuse_hip(services, call, code, bytes) : HIPMM_OK;
  services->leave_device(services, previous);
  return status;
}

/* ---- Descriptors ---- */

enum { DESCRIPTORS_UNKNOWN, DESCRIPTORS_NO, DESCRIPTORS_YES };

/* The lowest descriptor that is not in use; -1: there is none. */
static int mapping_next_descriptor(void)
{
  int next = eventfd(0, EFD_CLOEXEC);
  if (next >= 0) close(next);
  return next;
}

/* Whether a chunk takes a descriptor: tries it. Another thread that opens or closes a file meanwhile spoils the answer:
 * chunks are then larger than they need to be, or smaller than they should be. The first chunk is for files that the driver
 * keeps open. */
static bool mapping_try_descriptors(const struct hipmm_services *services, size_t bytes)
{
  const struct hipmm_hip *hip = services->hip;
  hipmm_hip_chunk_t first, second;
  bool is_taken = false;
  int code = hip->MemCreate(&first, bytes, services->device);
  if (!code) {
    int before = mapping_next_descriptor();
    code = hip->MemCreate(&second, bytes, services->device);
    if (!code) {
      is_taken = before >= 0 && mapping_next_descriptor() != before;
      hip->MemRelease(second);
    }
    hip->MemRelease(first);
  }
  if (code) hip->GetLastError();
  return is_taken;
}

/* A runtime that does not know the attribute is tried. The device is current. */
static void mapping_find_descriptors(struct device *device, size_t bytes)
{
  const struct hipmm_services *services = device->source.services;
  int takes = 0;
  if (atomic_load(&device->descriptors) != DESCRIPTORS_UNKNOWN) return;
  if (services->hip->DeviceGetAttribute(&takes, HIP_LAYOUT_DEVICE_CHUNK_DESCRIPTORS, services->device)) {
    services->hip->GetLastError();
    takes = mapping_try_descriptors(services, bytes);
  }
  atomic_store(&device->descriptors, takes ? DESCRIPTORS_YES : DESCRIPTORS_NO);
}

/* Half of what the process may open, for all devices together: the program opens files too. */
static uint64_t mapping_most_chunks(void *self)
{
  const struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  struct rlimit limit;
  int n_devices = 1;
  if (atomic_load(&device->descriptors) != DESCRIPTORS_YES || getrlimit(RLIMIT_NOFILE, &limit)) return 0;
  if (limit.rlim_cur == RLIM_INFINITY) return 0;
  if (services->hip->GetDeviceCount(&n_devices) || n_devices < 1) n_devices = 1;
  uint64_t most = limit.rlim_cur / 2 / (uint64_t)n_devices;
  return most ? most : 1;
}

/* A driver that could not open a file calls that a lack of memory. */
static enum hipmm_status mapping_explain(const struct hipmm_services *services, enum hipmm_status status)
{
  struct rlimit limit;
  if (mapping_next_descriptor() >= 0 || errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit)) return status;
  return services->explain(services, status,
                           "the process has all {0} files open that it may have, and each chunk of this runtime may "
                           "take one; raise the limit (ulimit -n)",
                           limit.rlim_cur, 0, 0, 0);
}

/* ---- Addresses and chunks ---- */

/* The least granule where each chunk has a descriptor: AMD's granule is a page. A pool gives other processes a granule each. */
enum { DESCRIBED_LEAST_BYTES = 2 << 20 };

static bool mapping_is_described(const struct device *device)
{
  return device->is_shared || atomic_load(&device->descriptors) == DESCRIPTORS_YES;
}

static enum hipmm_status mapping_granularity(void *self, size_t *bytes_out)
{
  struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  size_t bytes = 0;
  if (!mapping_has_virtual_memory(services))
    return services->refuse(services, HIPMM_E_NOT_SUPPORTED, "this runtime or device has no virtual memory management",
                            0, 0, 0);
  int previous = services->enter_device(services);
  int code = services->hip->MemGetAllocationGranularity(&bytes, services->device);
  if (!code) mapping_find_descriptors(device, bytes);
  enum hipmm_status status = mapping_end(services, previous, "hipMemGetAllocationGranularity", code, 0);
  if (!status)
    *bytes_out = mapping_is_described(device) && bytes < DESCRIBED_LEAST_BYTES ? DESCRIBED_LEAST_BYTES : bytes;
  return status;
}

/* A runtime may ignore the alignment; a pool's granules would not begin where it takes them to. */
static enum hipmm_status mapping_reserve(void *self, size_t bytes, void **address_out)
{
  const struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  size_t alignment = 0;
  enum hipmm_status status = mapping_is_described(device) ? mapping_granularity(self, &alignment) : HIPMM_OK;
  if (status) return status;
  int previous = services->enter_device(services);
  int code = services->hip->MemAddressReserve(address_out, bytes, alignment);
  if (!code && alignment && (uintptr_t)*address_out % alignment) {
    services->hip->MemAddressFree(*address_out, bytes);
    code = HIPMM_HIP_ERROR_NOT_SUPPORTED;
  }
  return mapping_end(services, previous, "hipMemAddressReserve", code, bytes);
}

static enum hipmm_status mapping_unreserve(void *self, void *address, size_t bytes)
{
  const struct hipmm_services *services = ((struct source *)self)->services;
  int previous = services->enter_device(services);
  int code = services->hip->MemAddressFree(address, bytes);
  return mapping_end(services, previous, "hipMemAddressFree", code, bytes);
}

static enum hipmm_status mapping_create_as(const struct device *device, bool is_shared, size_t bytes, void **chunk_out)
{
  const struct hipmm_services *services = device->source.services;
  const struct hipmm_hip *hip = services->hip;
  hipmm_hip_chunk_t handle;
  int previous = services->enter_device(services);
  int code = (is_shared ? hip->MemCreateShared : hip->MemCreate)(&handle, bytes, services->device);
  if (!code) {
    services->count_held(services, (int64_t)bytes);
    *chunk_out = handle;
  }
  enum hipmm_status status = mapping_end(services, previous, "hipMemCreate", code, bytes);
  return status ? mapping_explain(services, status) : HIPMM_OK;
}

static enum hipmm_status mapping_create(void *self, size_t bytes, void **chunk_out)
{
  const struct device *device = self;
  return mapping_create_as(device, device->is_shared, bytes, chunk_out);
}

static enum hipmm_status mapping_create_shared(void *self, size_t bytes, void **chunk_out)
{
  struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  enum hipmm_status status = source_require_function(
      services, services->hip->MemExport && services->hip->MemCreateShared, "hipMemExportToShareableHandle");
  if (status) return status;
  atomic_store(&device->has_shared, true);
  return mapping_create_as(device, true, bytes, chunk_out);
}

static enum hipmm_status mapping_destroy(void *self, void *chunk, size_t bytes)
{
  const struct hipmm_services *services = ((struct source *)self)->services;
  int previous = services->enter_device(services);
  int code = services->hip->MemRelease(chunk);
  if (!code) services->count_held(services, -(int64_t)bytes);
  return mapping_end(services, previous, "hipMemRelease", code, bytes);
}

static enum hipmm_status mapping_map(void *self, void *address, size_t bytes, void *chunk)
{
  const struct hipmm_services *services = ((struct source *)self)->services;
  const struct hipmm_hip *hip = services->hip;
  int previous = services->enter_device(services);
  int code = hip->MemMap(address, bytes, chunk);
  if (code) return mapping_end(services, previous, "hipMemMap", code, bytes);
  enum hipmm_status status = peers_give_access(self, address, bytes);
  if (status) hip->MemUnmap(address, bytes);
  services->leave_device(services, previous);
  return status;
}

static enum hipmm_status mapping_unmap(void *self, void *address, size_t bytes)
{
  const struct hipmm_services *services = ((struct source *)self)->services;
  int previous = services->enter_device(services);
  int code = peers_unmap(self, address, bytes);
  return mapping_end(services, previous, "hipMemUnmap", code, bytes);
}

static enum hipmm_status mapping_export_chunk(void *self, void *chunk, int *fd_out)
{
  const struct device *device = self;
  const struct hipmm_services *services = device->source.services;
  int fd = -1;
  if (!device->is_shared && !atomic_load(&device->has_shared))
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                          "its chunks were not created for other processes; set \"handle_type\": \"posix_fd\"");
  enum hipmm_status status =
      source_require_function(services, services->hip->MemExport != NULL, "hipMemExportToShareableHandle");
  if (status) return status;
  int previous = services->enter_device(services);
  int code = services->hip->MemExport(&fd, chunk);
  status = mapping_end(services, previous, "hipMemExportToShareableHandle", code, 0);
  if (!status && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
    close(fd);
    status = services->fail(services, HIPMM_E_IO, NULL, "the driver's file descriptor %d cannot be used", fd);
  }
  if (!status) *fd_out = fd;
  return status;
}

static int mapping_may_export(void *self)
{
  return ((const struct device *)self)->is_shared;
}

static bool mapping_is_runtime(const struct source *source, const char *name)
{
  return !strcmp(source->services->hip->runtime, name);
}

/* NVIDIA documents it, and the software runtime does it. ROCm's HIP stores one address for each chunk: mapping the chunk
 * at a second address forgets the first. */
static int mapping_may_alias(void *self)
{
  return mapping_is_runtime(self, "nvidia") || mapping_is_runtime(self, "software");
}

/* Reports on ROCm up to 7.2: kernels read zeros from memory that was just mapped, and what they write is lost
 * (rocm-systems#11693); hipMemSetAccess refuses valid calls (rocm-systems#2516, #2667, #6977); hipMemRelease frees
 * nothing (hip#3781, legacy-rocm-build#6021); hipMemMap and hipMemUnmap wait for the default stream. Remove the reason
 * for the first release on which the tests pass. */
static const char *mapping_discouraged_by_runtime(void *self)
{
  if (mapping_is_runtime(self, "nvidia") || mapping_is_runtime(self, "software")) return NULL;
  return mapping_is_runtime(self, "amd") ? "ROCm's virtual memory is known to lose what kernels write, on some devices"
                                         : "the virtual memory of this runtime is untested";
}

/* On NVIDIA's driver (580), a copy on the default stream waits for the default stream of another device whose memory it
 * reads if that memory is cuMemAlloc's, but not if it is virtual. CuPy and others rely on that order. */
static const char *mapping_discouraged_by_devices(const struct device *device)
{
  const struct hipmm_services *services = device->source.services;
  if (!mapping_has_virtual_memory(services)) return NULL; /* granularity() reports it */
  if (!device->is_in_reach)
    return "some device of this process cannot reach the memory of this one, and with such a device current mapped "
           "memory cannot be copied";
  if (atomic_load(&device->peers) && !services->copies_are_ordered)
    return "this process has several devices, and a copy of mapped memory does not wait for the default stream of the "
           "memory's device, as a copy of hipMalloc's memory does; make one device visible (CUDA_VISIBLE_DEVICES, "
           "HIP_VISIBLE_DEVICES), or order such copies with events";
  return NULL;
}

static const char *mapping_discouraged_reason(void *self)
{
  const char *runtime = mapping_discouraged_by_runtime(self);
  return runtime ? runtime : mapping_discouraged_by_devices(self);
}

const struct hipmm_mapping device_mapping = {.struct_size = sizeof device_mapping,
                                             .granularity = mapping_granularity,
                                             .reserve = mapping_reserve,
                                             .unreserve = mapping_unreserve,
                                             .create = mapping_create,
                                             .destroy = mapping_destroy,
                                             .map = mapping_map,
                                             .unmap = mapping_unmap,
                                             .may_alias = mapping_may_alias,
                                             .discouraged_reason = mapping_discouraged_reason,
                                             .export_chunk = mapping_export_chunk,
                                             .may_export = mapping_may_export,
                                             .most_chunks = mapping_most_chunks,
                                             .create_shared = mapping_create_shared};
