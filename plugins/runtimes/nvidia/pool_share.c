/* SPDX-License-Identifier: MIT */
/* pool_share.c: pools and their memory in other processes. Called by applications. Handles of pools are of the kinds
 * that HIP and CUDA share (a file descriptor on Linux); an exported pointer is 64 bytes that only the driver reads. */
#include "nvidia.h"

hipError_t hipMemPoolExportToShareableHandle(void *handle, hipMemPool_t pool, hipMemAllocationHandleType type,
                                             unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle || !pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolExportToShareableHandle) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(
      nvidia_cuda.MemPoolExportToShareableHandle(handle, (CUmemoryPool)pool, (CUmemAllocationHandleType)type, flags));
}

/* In CUDA, and so in programs of HIP, the value of the pointer is the file descriptor. */
hipError_t hipMemPoolImportFromShareableHandle(hipMemPool_t *pool, void *handle, hipMemAllocationHandleType type,
                                               unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pool) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolImportFromShareableHandle) return nvidia_fail(hipErrorNotSupported);
  CUmemoryPool imported = NULL;
  CUresult result = nvidia_call(
      nvidia_cuda.MemPoolImportFromShareableHandle(&imported, handle, (CUmemAllocationHandleType)type, flags));
  if (result == CUDA_SUCCESS) *pool = (hipMemPool_t)imported;
  return nvidia_end(result);
}

hipError_t hipMemPoolExportPointer(hipMemPoolPtrExportData *data, void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!data || !pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolExportPointer) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.MemPoolExportPointer((CUmemPoolPtrExportData *)data, nvidia_address(pointer)));
}

hipError_t hipMemPoolImportPointer(void **pointer, hipMemPool_t pool, hipMemPoolPtrExportData *data)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || !pool || !data) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemPoolImportPointer) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result =
      nvidia_call(nvidia_cuda.MemPoolImportPointer(&address, (CUmemoryPool)pool, (CUmemPoolPtrExportData *)data));
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}
