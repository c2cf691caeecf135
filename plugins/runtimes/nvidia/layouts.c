/* SPDX-License-Identifier: MIT */
/* layouts.c: checks that the numbers and structs which are passed between HIP and CUDA unchanged are the same in both. It
 * has no code: if a header differs, this file does not compile. */
#include "nvidia.h"

#define SAME(hips, cudas) _Static_assert((int)(hips) == (int)(cudas), #hips)
#define SAME_PLACE(hip_struct, hip_field, cuda_struct, cuda_field)                             \
  _Static_assert(offsetof(hip_struct, hip_field) == offsetof(cuda_struct, cuda_field) &&       \
                     sizeof((hip_struct){0}.hip_field) == sizeof((cuda_struct){0}.cuda_field), \
                 #hip_struct "." #hip_field)

SAME_PLACE(hipMemAccessDesc, location.type, CUmemAccessDesc, location.type);
SAME_PLACE(hipMemAccessDesc, location.id, CUmemAccessDesc, location.id);
SAME_PLACE(hipMemAccessDesc, flags, CUmemAccessDesc, flags);
_Static_assert(sizeof(hipMemAccessDesc) == sizeof(CUmemAccessDesc), "they are passed as arrays");
SAME(hipMemAccessFlagsProtNone, CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME(hipMemAccessFlagsProtRead, CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME(hipMemAccessFlagsProtReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

SAME(hipMemLocationTypeInvalid, CU_MEM_LOCATION_TYPE_INVALID);
SAME(hipMemLocationTypeDevice, CU_MEM_LOCATION_TYPE_DEVICE);
#if HIP_VERSION_MAJOR >= 7 && CUDA_VERSION >= 12020
SAME(hipMemLocationTypeHost, CU_MEM_LOCATION_TYPE_HOST);
SAME(hipMemLocationTypeHostNuma, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME(hipMemLocationTypeHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
#endif
SAME(hipMemRangeHandleTypeDmaBufFd, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME(hipMemAllocationTypeInvalid, CU_MEM_ALLOCATION_TYPE_INVALID);
SAME(hipMemAllocationTypePinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(hipMemHandleTypeNone, CU_MEM_HANDLE_TYPE_NONE);
SAME(hipMemHandleTypePosixFileDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(hipMemAllocationGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(hipMemAllocationGranularityRecommended, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

SAME(hipMemPoolReuseFollowEventDependencies, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME(hipMemPoolReuseAllowOpportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME(hipMemPoolReuseAllowInternalDependencies, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(hipMemPoolAttrReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(hipMemPoolAttrReservedMemCurrent, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(hipMemPoolAttrReservedMemHigh, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(hipMemPoolAttrUsedMemCurrent, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(hipMemPoolAttrUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
_Static_assert(sizeof(hipMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "hipMemPoolPtrExportData");
