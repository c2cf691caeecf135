/* SPDX-License-Identifier: MIT */
/* host.c: memory that the host and the devices share: pinned, registered, managed. Called by applications. HIP has
 * flags for coherence that AMD's devices need. NVIDIA's devices are always coherent with pinned memory, as the strict
 * flags require and the other flags allow, so these flags are valid and have no effect. */
#include "nvidia.h"

/* ---- Pinned ---------------------------------------------------------------------------------------------------- */

_Static_assert(hipHostMallocPortable == CU_MEMHOSTALLOC_PORTABLE && hipHostMallocMapped == CU_MEMHOSTALLOC_DEVICEMAP &&
                   hipHostMallocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED,
               "HIP and CUDA number these flags alike");

static hipError_t host_allocate(void **pointer, size_t bytes, unsigned int flags)
{
  const unsigned cudas = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined;
  const unsigned hips = hipHostMallocNumaUser | hipHostMallocCoherent | hipHostMallocNonCoherent;
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || (flags & ~(cudas | hips))) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemHostAlloc) return nvidia_fail(hipErrorNotSupported);
  void *allocated = NULL;
  CUresult result = CUDA_SUCCESS;
  if (bytes > 0) result = nvidia_call(nvidia_cuda.MemHostAlloc(&allocated, bytes, flags & cudas));
  if (result == CUDA_SUCCESS) *pointer = allocated;
  return nvidia_end(result);
}

hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned int flags)
{
  return host_allocate(pointer, bytes, flags);
}

hipError_t hipHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
  return host_allocate(pointer, bytes, flags);
}

hipError_t hipMallocHost(void **pointer, size_t bytes)
{
  return host_allocate(pointer, bytes, hipHostMallocDefault);
}

static hipError_t host_free(void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer) return hipSuccess;
  if (!nvidia_cuda.MemFreeHost) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemFreeHost(pointer)));
}

hipError_t hipHostFree(void *pointer)
{
  return host_free(pointer);
}

hipError_t hipFreeHost(void *pointer)
{
  return host_free(pointer);
}

/* ---- Registered ------------------------------------------------------------------------------------------------ */

_Static_assert(hipHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE &&
                   hipHostRegisterMapped == CU_MEMHOSTREGISTER_DEVICEMAP &&
                   hipHostRegisterIoMemory == CU_MEMHOSTREGISTER_IOMEMORY,
               "HIP and CUDA number these flags alike");

/* Flag 8 is not passed on: it means "coarse-grained" in HIP, and "read-only" in CUDA. */
hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
  const unsigned cudas = hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory;
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || bytes == 0 || (flags & ~(cudas | hipExtHostRegisterCoarseGrained)))
    return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemHostRegister) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemHostRegister(pointer, bytes, flags & cudas)));
}

hipError_t hipHostUnregister(void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemHostUnregister) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemHostUnregister(pointer)));
}

hipError_t hipHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!device_pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemHostGetDevicePointer) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result = nvidia_call(nvidia_cuda.MemHostGetDevicePointer(&address, pointer, flags));
  if (result == CUDA_SUCCESS) *device_pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

hipError_t hipHostGetFlags(unsigned int *flags, void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!flags) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemHostGetFlags) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemHostGetFlags(flags, pointer)));
}

/* ---- Managed --------------------------------------------------------------------------------------------------- */

_Static_assert(hipMemAttachGlobal == CU_MEM_ATTACH_GLOBAL && hipMemAttachHost == CU_MEM_ATTACH_HOST &&
                   hipCpuDeviceId == CU_DEVICE_CPU,
               "HIP and CUDA number these alike");

hipError_t hipMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || bytes == 0 || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
    return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAllocManaged) return nvidia_fail(hipErrorNotSupported);
  CUdeviceptr address = 0;
  CUresult result = nvidia_call(nvidia_cuda.MemAllocManaged(&address, bytes, flags));
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

_Static_assert((int)hipMemAdviseSetReadMostly == CU_MEM_ADVISE_SET_READ_MOSTLY &&
                   (int)hipMemAdviseUnsetReadMostly == CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
                   (int)hipMemAdviseSetPreferredLocation == CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
                   (int)hipMemAdviseUnsetPreferredLocation == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION &&
                   (int)hipMemAdviseSetAccessedBy == CU_MEM_ADVISE_SET_ACCESSED_BY &&
                   (int)hipMemAdviseUnsetAccessedBy == CU_MEM_ADVISE_UNSET_ACCESSED_BY,
               "HIP and CUDA number advice alike");

/* Coarse grain allows less coherence than there is, so it has no effect. */
static bool host_is_without_effect(hipMemoryAdvise advice)
{
  return advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain;
}

static bool host_is_advice(hipMemoryAdvise advice)
{
  return (int)advice >= hipMemAdviseSetReadMostly && (int)advice <= hipMemAdviseUnsetAccessedBy;
}

hipError_t hipMemAdvise(const void *pointer, size_t bytes, hipMemoryAdvise advice, int device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (host_is_without_effect(advice)) return hipSuccess;
  if (!host_is_advice(advice)) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAdvise) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemAdvise(nvidia_address(pointer), bytes, (CUmem_advise)advice, device)));
}

hipError_t hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemPrefetchAsync) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(
      nvidia_call(nvidia_cuda.MemPrefetchAsync(nvidia_address(pointer), bytes, device, nvidia_stream(stream))));
}

hipError_t hipMemAdvise_v2(const void *pointer, size_t bytes, hipMemoryAdvise advice, hipMemLocation location)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (host_is_without_effect(advice)) return hipSuccess;
  if (!host_is_advice(advice)) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemAdviseAt) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(
      nvidia_cuda.MemAdviseAt(nvidia_address(pointer), bytes, (CUmem_advise)advice, nvidia_location(location))));
}

hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, hipMemLocation location, unsigned int flags,
                                  hipStream_t stream)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.MemPrefetchAsyncTo) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemPrefetchAsyncTo(
      nvidia_address(pointer), bytes, nvidia_location(location), flags, nvidia_stream(stream))));
}

_Static_assert((int)hipMemRangeAttributeReadMostly == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
                   (int)hipMemRangeAttributePreferredLocation == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION &&
                   (int)hipMemRangeAttributeAccessedBy == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY &&
                   (int)hipMemRangeAttributeLastPrefetchLocation == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
               "HIP and CUDA number range attributes alike");

/* CUDA has no coherency mode. */
hipError_t hipMemRangeGetAttribute(void *data, size_t data_bytes, hipMemRangeAttribute attribute, const void *pointer,
                                   size_t bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if ((int)attribute < hipMemRangeAttributeReadMostly || (int)attribute > hipMemRangeAttributeLastPrefetchLocation)
    return nvidia_fail(attribute == hipMemRangeAttributeCoherencyMode ? hipErrorNotSupported : hipErrorInvalidValue);
  if (!nvidia_cuda.MemRangeGetAttribute) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemRangeGetAttribute(data, data_bytes, (CUmem_range_attribute)attribute,
                                                                 nvidia_address(pointer), bytes)));
}

hipError_t hipMemRangeGetAttributes(void **data, size_t *data_bytes, hipMemRangeAttribute *attributes,
                                    size_t n_attributes, const void *pointer, size_t bytes)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!data || !data_bytes || !attributes || n_attributes == 0) return nvidia_fail(hipErrorInvalidValue);
  for (size_t i = 0; i < n_attributes; i++)
    if (attributes[i] == hipMemRangeAttributeCoherencyMode) return nvidia_fail(hipErrorNotSupported);
  if (!nvidia_cuda.MemRangeGetAttributes) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemRangeGetAttributes(data, data_bytes, (CUmem_range_attribute *)attributes,
                                                                  n_attributes, nvidia_address(pointer), bytes)));
}

_Static_assert(hipMemAttachSingle == CU_MEM_ATTACH_SINGLE, "HIP and CUDA number these alike");

hipError_t hipStreamAttachMemAsync(hipStream_t stream, void *pointer, size_t bytes, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.StreamAttachMemAsync) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(
      nvidia_call(nvidia_cuda.StreamAttachMemAsync(nvidia_stream(stream), nvidia_address(pointer), bytes, flags)));
}
