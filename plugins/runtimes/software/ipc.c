/* SPDX-License-Identifier: MIT */
/* ipc.c: device memory between processes of one machine, and for other drivers. Called by applications. A handle has a
 * process, a file descriptor of that process, and a range of the file. It can be opened while that process lives, by a
 * process that may read its descriptors (of the same user). */
#include "internal.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define IPC_MAGIC 0x68706d69736f6674U

struct ipc_handle {
  uint64_t magic, offset, bytes;
  int32_t process, fd;
  uint32_t allocation; /* its id: two allocations never have the same handle, even at the same address */
  uint32_t zero;       /* instead of padding, whose bytes would differ between two handles of one allocation */
  struct output_file_identity file; /* that process may have another file at `fd` by now */
};
_Static_assert(sizeof(struct ipc_handle) <= sizeof(hipIpcMemHandle_t), "must fit into HIP's struct");

static hipError_t ipc_get(const void *pointer, hipIpcMemHandle_t *handle_out)
{
  const struct software_allocation *allocation = software_allocation_at(pointer);
  if (!allocation || allocation->kind != SOFTWARE_DEVICE_MEMORY) return hipErrorInvalidValue;
  const struct software_file *file = &software.devices[allocation->device].heap.file;
  int fd = software_file_descriptor(file);
  if (fd < 0) return hipErrorOperatingSystem;
  struct ipc_handle handle = {.magic = IPC_MAGIC,
                              .offset = software_block_offset(allocation->block),
                              .bytes = allocation->by_address.minor,
                              .process = getpid(),
                              .fd = fd,
                              .allocation = allocation->id,
                              .file = file->identity};
  memset(handle_out, 0, sizeof *handle_out);
  memcpy(handle_out, &handle, sizeof handle);
  software_watch_shared(allocation);
  return software.devices[allocation->device].fault;
}

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipIpcGetMemHandle);
  if (error == hipSuccess && !handle) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : ipc_get(pointer, handle));
}

/* The file of the other process, if the software device made it and it holds that range; -1 otherwise. */
static int ipc_open_file(const struct ipc_handle *handle)
{
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)handle->process, (int)handle->fd);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  bool is_inside = software_file_is_ours(fd) && output_file_is(fd, &handle->file) && fstat(fd, &status) == 0 &&
                   handle->bytes > 0 && handle->offset % SOFTWARE_PAGE_BYTES == 0 &&
                   handle->offset < (uint64_t)status.st_size &&
                   handle->bytes <= (uint64_t)status.st_size - handle->offset;
  if (is_inside) return fd;
  close(fd);
  return -1;
}

static hipError_t ipc_open(const struct ipc_handle *handle, int device, void **pointer_out)
{
  if (handle->magic != IPC_MAGIC) return hipErrorInvalidValue;
  if (handle->process == getpid()) return hipErrorInvalidContext;
  int fd = ipc_open_file(handle);
  if (fd < 0) return hipErrorMapFailed;
  size_t mapped_bytes = software_align_up(handle->bytes, SOFTWARE_PAGE_BYTES);
  void *start = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)handle->offset);
  close(fd);
  if (start == MAP_FAILED) return hipErrorMapFailed;
  struct software_allocation *allocation;
  hipError_t error = software_allocation_add(SOFTWARE_OPENED, device, start, handle->bytes, &allocation);
  if (error != hipSuccess) {
    munmap(start, mapped_bytes);
    return error;
  }
  allocation->mapped_bytes = mapped_bytes;
  *pointer_out = start;
  return hipSuccess;
}

/* The flag for peer access is 0 in HIP and 1 in CUDA; both are valid here. As in both, a process cannot open its own
 * handle. */
hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned int flags)
{
  int device;
  struct ipc_handle shared;
  hipError_t error = software_begin_on_device(SOFTWARE_hipIpcOpenMemHandle, &device);
  if (error == hipSuccess && (!pointer || flags > 1)) error = hipErrorInvalidValue;
  memcpy(&shared, &handle, sizeof shared);
  return software_end(error != hipSuccess ? error : ipc_open(&shared, device, pointer));
}

hipError_t hipIpcCloseMemHandle(void *pointer)
{
  hipError_t error = software_begin(SOFTWARE_hipIpcCloseMemHandle);
  const struct software_allocation *allocation = software_allocation_at(pointer);
  if (error == hipSuccess && (!allocation || allocation->pool)) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : software_free(pointer, 1U << SOFTWARE_OPENED));
}

/* ---- A range of addresses for another driver ------------------------------------------------------------------- */

/* As in HIP, the range lies in one allocation of device memory, or in one mapping of it. */
static hipError_t ipc_find_range(const void *pointer, size_t bytes, struct software_file_range *range_out)
{
  int device;
  bool is_host = false;
  const struct software_allocation *allocation = software_allocation_holding(pointer);
  if (bytes == 0) return hipErrorInvalidValue;
  if (!allocation) {
    bool is_mapped = software_virtual_device(pointer, &device, &is_host) && !is_host &&
                     software_virtual_locate((uintptr_t)pointer, range_out) && bytes <= range_out->bytes;
    return is_mapped ? hipSuccess : hipErrorInvalidValue;
  }
  bool is_device = (allocation->kind == SOFTWARE_DEVICE_MEMORY || allocation->kind == SOFTWARE_POOLED) &&
                   !allocation->is_managed && !allocation->is_host;
  if (!is_device || bytes > allocation->by_address.minor - ((uintptr_t)pointer - allocation->by_address.major) ||
      !software_heap_locate((uintptr_t)pointer, range_out))
    return hipErrorInvalidValue;
  software_watch_shared(allocation);
  return software.devices[allocation->device].fault;
}

/* The descriptor has a position of its own, at the range. */
static hipError_t ipc_open_range(const struct software_file_range *range, int *fd_out)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", range->fd);
  int fd = range->fd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return hipErrorOperatingSystem;
  if (lseek(fd, (off_t)range->offset, SEEK_SET) < 0) {
    close(fd);
    return hipErrorOperatingSystem;
  }
  *fd_out = fd;
  return hipSuccess;
}

hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t pointer, size_t bytes,
                                          hipMemRangeHandleType type, unsigned long long flags)
{
  int fd;
  struct software_file_range range;
  const unsigned long long over_pcie = 1; /* hipMemRangeFlagDmaBufMappingTypePcie */
  hipError_t error = software_begin(SOFTWARE_hipMemGetHandleForAddressRange);
  if (error == hipSuccess && (!handle || type != hipMemRangeHandleTypeDmaBufFd || flags > over_pcie))
    error = hipErrorInvalidValue;
  if (error == hipSuccess) error = ipc_find_range(pointer, bytes, &range);
  if (error == hipSuccess) error = ipc_open_range(&range, &fd);
  if (error == hipSuccess) memcpy(handle, &fd, sizeof fd);
  return software_end(error);
}
