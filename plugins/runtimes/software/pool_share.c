/* SPDX-License-Identifier: MIT */
/* pool_share.c: pools and their pointers between processes. Called by applications. A pool that can be exported has a
 * memfd of its own. The other process gets a descriptor of that file, and for each pointer its offset in the file. */
#include "pool.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE_MAGIC 0x68706d70736f6674U

struct pool_share_pointer {
  uint64_t magic, offset, bytes;
};
_Static_assert(sizeof(struct pool_share_pointer) <= sizeof(hipMemPoolPtrExportData), "must fit into HIP's struct");

static hipError_t pool_share_export(struct software_pool *pool, void *shareable)
{
  uint64_t unused;
  if (pool->handle_type != hipMemHandleTypePosixFileDescriptor || pool->imported.fd > 0) return hipErrorInvalidValue;
  hipError_t error = software_heap_extend(pool->heap, 0, &unused);
  if (error != hipSuccess) return error;
  int fd = fcntl(software_file_descriptor(&pool->heap->file), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return hipErrorOperatingSystem;
  memcpy(shareable, &fd, sizeof fd);
  return hipSuccess;
}

hipError_t hipMemPoolExportToShareableHandle(void *shareable, hipMemPool_t handle, hipMemAllocationHandleType type,
                                             unsigned int flags)
{
  struct software_pool *pool;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolExportToShareableHandle);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && (!shareable || flags != 0 || type != hipMemHandleTypePosixFileDescriptor))
    error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : pool_share_export(pool, shareable));
}

static hipError_t pool_share_import(int fd, int device, hipMemPool_t *handle_out)
{
  if (!software_file_is_ours(fd)) return hipErrorInvalidValue;
  struct software_file file;
  if (!software_file_duplicate(fd, &file)) return hipErrorOperatingSystem;
  struct software_pool *pool = software_pool_create(device, hipMemHandleTypePosixFileDescriptor);
  if (!pool) {
    software_file_close(&file);
    return hipErrorOutOfMemory;
  }
  pool->imported = file;
  *handle_out = (hipMemPool_t)pool;
  return hipSuccess;
}

/* The value of the pointer is the file descriptor, which the caller still owns. */
hipError_t hipMemPoolImportFromShareableHandle(hipMemPool_t *handle, void *shareable, hipMemAllocationHandleType type,
                                               unsigned int flags)
{
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolImportFromShareableHandle);
  int device = software_current_device();
  if (error == hipSuccess) error = software.devices[device].fault;
  if (error == hipSuccess && (!handle || flags != 0 || type != hipMemHandleTypePosixFileDescriptor))
    error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : pool_share_import((int)(intptr_t)shareable, device, handle));
}

hipError_t hipMemPoolExportPointer(hipMemPoolPtrExportData *data, void *pointer)
{
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolExportPointer);
  const struct software_allocation *allocation = software_allocation_at(pointer);
  bool is_shareable = allocation && allocation->kind == SOFTWARE_POOLED &&
                      allocation->pool->handle_type == hipMemHandleTypePosixFileDescriptor;
  if (error == hipSuccess && (!data || !is_shareable)) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    const struct software_block *chunk = allocation->pool_block->chunk;
    uint64_t offset = software_block_offset(chunk) + (allocation->by_address.major - chunk->by_address.major);
    struct pool_share_pointer shared = {SHARE_MAGIC, offset, allocation->by_address.minor};
    memset(data, 0, sizeof *data);
    memcpy(data, &shared, sizeof shared);
  }
  return software_end(error);
}

/* Whether the range lies in the file. Data of another process can be anything. */
static bool pool_share_is_inside(const struct pool_share_pointer *shared, int fd)
{
  struct stat status;
  if (shared->magic != SHARE_MAGIC || shared->bytes == 0 || shared->offset % SOFTWARE_PAGE_BYTES != 0) return false;
  if (fstat(fd, &status) != 0) return false;
  uint64_t file_bytes = (uint64_t)status.st_size;
  return shared->offset < file_bytes && shared->bytes <= file_bytes - shared->offset;
}

static hipError_t pool_share_import_pointer(struct software_pool *pool, const struct pool_share_pointer *shared,
                                            void **pointer_out)
{
  if (pool->imported.fd == 0) return hipErrorInvalidValue;
  int fd = software_file_descriptor(&pool->imported);
  if (fd < 0) return hipErrorOperatingSystem;
  if (!pool_share_is_inside(shared, fd)) return hipErrorInvalidValue;
  size_t mapped_bytes = software_align_up(shared->bytes, SOFTWARE_PAGE_BYTES);
  void *start = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)shared->offset);
  if (start == MAP_FAILED) return hipErrorOutOfMemory;
  struct software_allocation *allocation;
  hipError_t error = software_allocation_add(SOFTWARE_OPENED, pool->device, start, shared->bytes, &allocation);
  if (error != hipSuccess) {
    munmap(start, mapped_bytes);
    return error;
  }
  allocation->mapped_bytes = mapped_bytes;
  allocation->pool = pool;
  pool->n_allocations++;
  *pointer_out = start;
  return hipSuccess;
}

/* Freed with hipFreeAsync, which ends the mapping and does not change the memory of the owner. */
hipError_t hipMemPoolImportPointer(void **pointer, hipMemPool_t handle, hipMemPoolPtrExportData *data)
{
  struct software_pool *pool;
  struct pool_share_pointer shared;
  hipError_t error = software_pool_begin(SOFTWARE_hipMemPoolImportPointer);
  if (error == hipSuccess) error = software_pool_find(handle, &pool);
  if (error == hipSuccess && (!pointer || !data)) error = hipErrorInvalidValue;
  if (error == hipSuccess) {
    memcpy(&shared, data, sizeof shared);
    error = pool_share_import_pointer(pool, &shared, pointer);
  }
  return software_end(error);
}
