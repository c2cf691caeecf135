/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/cuda_names.hpp: CUDA's names for HIP's, as far as programs of RMM use them. */
#ifndef HIPMM_COMPAT_DETAIL_CUDA_NAMES_HPP
#define HIPMM_COMPAT_DETAIL_CUDA_NAMES_HPP

#define cudaError_t                          hipError_t
#define cudaSuccess                          hipSuccess
#define cudaErrorInvalidValue                hipErrorInvalidValue
#define cudaErrorMemoryAllocation            hipErrorOutOfMemory
#define cudaErrorNotSupported                hipErrorNotSupported
#define cudaErrorNotReady                    hipErrorNotReady
#define cudaErrorInvalidDevice               hipErrorInvalidDevice
#define cudaErrorCudartUnloading             hipErrorDeinitialized
#define cudaGetErrorName                     hipGetErrorName
#define cudaGetErrorString                   hipGetErrorString
#define cudaGetLastError                     hipGetLastError
#define cudaPeekAtLastError                  hipPeekAtLastError
#define cudaGetDevice                        hipGetDevice
#define cudaSetDevice                        hipSetDevice
#define cudaGetDeviceCount                   hipGetDeviceCount
#define cudaDeviceSynchronize                hipDeviceSynchronize
#define cudaDeviceReset                      hipDeviceReset
#define cudaDeviceGetAttribute               hipDeviceGetAttribute
#define cudaDevAttrMemoryPoolsSupported      hipDeviceAttributeMemoryPoolsSupported
#define cudaDevAttrMultiProcessorCount       hipDeviceAttributeMultiprocessorCount
#define cudaDevAttrIntegrated                hipDeviceAttributeIntegrated
#define cudaDevAttrConcurrentManagedAccess   hipDeviceAttributeConcurrentManagedAccess
#define cudaDevAttrPageableMemoryAccess      hipDeviceAttributePageableMemoryAccess
#define cudaDeviceProp                       hipDeviceProp_t
#define cudaGetDeviceProperties              hipGetDeviceProperties
#define cudaDriverGetVersion                 hipDriverGetVersion
#define cudaRuntimeGetVersion                hipRuntimeGetVersion
#define cudaStream_t                         hipStream_t
#define cudaStreamLegacy                     hipmm::compat::from_hipmm(HIPMM_LEGACY_STREAM)
#define cudaStreamPerThread                  hipStreamPerThread
#define cudaStreamDefault                    hipStreamDefault
#define cudaStreamNonBlocking                hipStreamNonBlocking
#define cudaStreamCreate                     hipStreamCreate
#define cudaStreamCreateWithFlags            hipStreamCreateWithFlags
#define cudaStreamCreateWithPriority         hipStreamCreateWithPriority
#define cudaStreamDestroy                    hipStreamDestroy
#define cudaStreamSynchronize                hipStreamSynchronize
#define cudaStreamQuery                      hipStreamQuery
#define cudaStreamGetFlags                   hipStreamGetFlags
#define cudaLaunchHostFunc                   hipLaunchHostFunc
#define cudaEvent_t                          hipEvent_t
#define cudaEventDefault                     hipEventDefault
#define cudaEventBlockingSync                hipEventBlockingSync
#define cudaEventDisableTiming               hipEventDisableTiming
#define cudaEventCreate                      hipEventCreate
#define cudaEventCreateWithFlags             hipEventCreateWithFlags
#define cudaEventDestroy                     hipEventDestroy
#define cudaEventRecord                      hipEventRecord
#define cudaEventSynchronize                 hipEventSynchronize
#define cudaEventQuery                       hipEventQuery
#define cudaEventElapsedTime                 hipEventElapsedTime
#define cudaMalloc                           hipMalloc
#define cudaMallocAsync                      hipMallocAsync
#define cudaMallocHost                       hipHostMalloc
#define cudaMallocManaged                    hipMallocManaged
#define cudaMallocFromPoolAsync              hipMallocFromPoolAsync
#define cudaFree                             hipFree
#define cudaFreeAsync                        hipFreeAsync
#define cudaFreeHost                         hipHostFree
#define cudaHostAlloc                        hipHostAlloc
#define cudaMemGetInfo                       hipMemGetInfo
#define cudaMemcpy                           hipMemcpy
#define cudaMemcpyAsync                      hipMemcpyAsync
#define cudaMemcpyPeer                       hipMemcpyPeer
#define cudaMemcpyPeerAsync                  hipMemcpyPeerAsync
#define cudaMemcpyKind                       hipMemcpyKind
#define cudaMemcpyDefault                    hipMemcpyDefault
#define cudaMemcpyHostToHost                 hipMemcpyHostToHost
#define cudaMemcpyHostToDevice               hipMemcpyHostToDevice
#define cudaMemcpyDeviceToHost               hipMemcpyDeviceToHost
#define cudaMemcpyDeviceToDevice             hipMemcpyDeviceToDevice
#define cudaMemset                           hipMemset
#define cudaMemsetAsync                      hipMemsetAsync
#define cudaMemPrefetchAsync                 hipMemPrefetchAsync
#define cudaCpuDeviceId                      hipCpuDeviceId
#define cudaInvalidDeviceId                  hipInvalidDeviceId
#define cudaMemRangeAttribute                hipMemRangeAttribute
#define cudaMemRangeGetAttribute             hipMemRangeGetAttribute
#define cudaMemPool_t                        hipMemPool_t
#define cudaMemPoolProps                     hipMemPoolProps
#define cudaMemPoolCreate                    hipMemPoolCreate
#define cudaMemPoolDestroy                   hipMemPoolDestroy
#define cudaMemPoolSetAttribute              hipMemPoolSetAttribute
#define cudaMemPoolGetAttribute              hipMemPoolGetAttribute
#define cudaMemPoolTrimTo                    hipMemPoolTrimTo
#define cudaMemPoolAttrReleaseThreshold      hipMemPoolAttrReleaseThreshold
#define cudaMemPoolReuseAllowOpportunistic   hipMemPoolReuseAllowOpportunistic
#define cudaMemAllocationTypePinned          hipMemAllocationTypePinned
#define cudaMemAllocationHandleType          hipMemAllocationHandleType
#define cudaMemHandleTypeNone                hipMemHandleTypeNone
#define cudaMemHandleTypePosixFileDescriptor hipMemHandleTypePosixFileDescriptor
#define cudaMemLocationTypeDevice            hipMemLocationTypeDevice
#define cudaDeviceGetDefaultMemPool          hipDeviceGetDefaultMemPool
#define cudaPointerAttributes                hipPointerAttribute_t
#define cudaPointerGetAttributes             hipPointerGetAttributes
#define cudaMemoryTypeHost                   hipMemoryTypeHost
#define cudaMemoryTypeDevice                 hipMemoryTypeDevice
#if HIP_VERSION_MAJOR < 6
#define cudaMemoryTypeManaged hipMemoryTypeUnified
#else
#define cudaMemoryTypeManaged hipMemoryTypeManaged
#endif

#define cudaMemRangeAttributeLastPrefetchLocation         hipMemRangeAttributeLastPrefetchLocation
#define cudaDevAttrMemoryPoolSupportedHandleTypes         hipDeviceAttributeMemoryPoolSupportedHandleTypes
#define cudaDevAttrPageableMemoryAccessUsesHostPageTables hipDeviceAttributePageableMemoryAccessUsesHostPageTables

/* Whose flags have a default in CUDA. */
inline hipError_t cudaStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags = 0)
{
  return hipStreamWaitEvent(stream, event, flags);
}

#endif
