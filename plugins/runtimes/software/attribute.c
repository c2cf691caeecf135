/* SPDX-License-Identifier: MIT */
/* attribute.c: the attributes of the devices. Called by applications, and by properties.c, so that attributes and
 * properties agree. Every attribute that HIP 6.3 has for an AMD device is here; HIP refuses the others, too. */
#include "../../../core/base/hip_layout.h"
#include "internal.h"
#include <limits.h>

/* Attributes that HIP 5.2 had no name for yet; HIP has kept these numbers since. */
enum {
  ATTRIBUTE_VIRTUAL_MEMORY = 89,    /* hipDeviceAttributeVirtualMemoryManagementSupported, 5.3 */
  ATTRIBUTE_HOST_REGISTER = 90,     /* hipDeviceAttributeHostRegisterSupported, 6.1 */
  ATTRIBUTE_POOL_HANDLE_TYPES = 91, /* hipDeviceAttributeMemoryPoolSupportedHandleTypes, 6.2 */
  ATTRIBUTE_HOST_NUMA_ID = 92,      /* hipDeviceAttributeHostNumaId, 7.0 */
  ATTRIBUTE_WALL_CLOCK_RATE = 10017 /* hipDeviceAttributeWallClockRate, 5.4 */
};

struct attribute_row {
  int attribute, value;
};

/* A device of one processor that runs no kernels and has no images. */
static const struct attribute_row attribute_rows[] = {
    {hipDeviceAttributeEccEnabled, 0},
    {hipDeviceAttributeAccessPolicyMaxWindowSize, 0},
    {hipDeviceAttributeAsyncEngineCount, 1},
    {hipDeviceAttributeCanMapHostMemory, 1},
    {hipDeviceAttributeCanUseHostPointerForRegisteredMem, 1},
    {hipDeviceAttributeClockRate, 1000000},
    {hipDeviceAttributeComputeMode, hipComputeModeDefault},
    {hipDeviceAttributeComputePreemptionSupported, 0},
    {hipDeviceAttributeConcurrentKernels, 1},
    {hipDeviceAttributeCooperativeLaunch, 0},
    {hipDeviceAttributeCooperativeMultiDeviceLaunch, 0},
    {hipDeviceAttributeDeviceOverlap, 1},
    {hipDeviceAttributeGlobalL1CacheSupported, 0},
    {hipDeviceAttributeHostNativeAtomicSupported, 1},
    {hipDeviceAttributeIntegrated, 0},
    {hipDeviceAttributeIsMultiGpuBoard, 0},
    {hipDeviceAttributeKernelExecTimeout, 0},
    {hipDeviceAttributeL2CacheSize, 0},
    {hipDeviceAttributeLocalL1CacheSupported, 0},
    {hipDeviceAttributeLuidDeviceNodeMask, 0},
    {hipDeviceAttributeComputeCapabilityMajor, 0},
    {hipDeviceAttributeMaxBlocksPerMultiProcessor, 2},
    {hipDeviceAttributeMaxBlockDimX, 1024},
    {hipDeviceAttributeMaxBlockDimY, 1024},
    {hipDeviceAttributeMaxBlockDimZ, 1024},
    {hipDeviceAttributeMaxGridDimX, INT_MAX},
    {hipDeviceAttributeMaxGridDimY, 65536},
    {hipDeviceAttributeMaxGridDimZ, 65536},
    {hipDeviceAttributeMaxSurface1D, 0},
    {hipDeviceAttributeMaxTexture1DWidth, 0},
    {hipDeviceAttributeMaxTexture1DLinear, 0},
    {hipDeviceAttributeMaxTexture1DMipmap, 0},
    {hipDeviceAttributeMaxTexture2DWidth, 0},
    {hipDeviceAttributeMaxTexture2DHeight, 0},
    {hipDeviceAttributeMaxTexture3DWidth, 0},
    {hipDeviceAttributeMaxTexture3DHeight, 0},
    {hipDeviceAttributeMaxTexture3DDepth, 0},
    {hipDeviceAttributeMaxTextureCubemap, 0},
    {hipDeviceAttributeMaxThreadsPerBlock, 1024},
    {hipDeviceAttributeMaxThreadsPerMultiProcessor, 2048},
    {hipDeviceAttributeMaxPitch, INT_MAX},
    {hipDeviceAttributeMemoryBusWidth, 64},
    {hipDeviceAttributeMemoryClockRate, 1000000},
    {hipDeviceAttributeComputeCapabilityMinor, 0},
    {hipDeviceAttributeMultiGpuBoardGroupID, 0},
    {hipDeviceAttributeMultiprocessorCount, 1},
    {hipDeviceAttributePciDeviceId, 0},
    {hipDeviceAttributePciDomainID, 0},
    {hipDeviceAttributePersistingL2CacheMaxSize, 0},
    {hipDeviceAttributeMaxRegistersPerBlock, 65536},
    {hipDeviceAttributeMaxRegistersPerMultiprocessor, 65536},
    {hipDeviceAttributeReservedSharedMemPerBlock, 0},
    {hipDeviceAttributeMaxSharedMemoryPerBlock, 65536},
    {hipDeviceAttributeSharedMemPerBlockOptin, 65536},
    {hipDeviceAttributeSharedMemPerMultiprocessor, 65536},
    {hipDeviceAttributeStreamPrioritiesSupported, 1},
    {hipDeviceAttributeSurfaceAlignment, SOFTWARE_PITCH_ALIGNMENT},
    {hipDeviceAttributeTextureAlignment, SOFTWARE_PITCH_ALIGNMENT},
    {hipDeviceAttributeTexturePitchAlignment, SOFTWARE_PITCH_ALIGNMENT},
    {hipDeviceAttributeTotalConstantMemory, 65536},
    {hipDeviceAttributeUnifiedAddressing, 1},
    {hipDeviceAttributeWarpSize, 64},
    {ATTRIBUTE_HOST_REGISTER, 1},
    {ATTRIBUTE_HOST_NUMA_ID, 0},
    {hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 65536},
    {hipDeviceAttributeHdpMemFlushCntl, 0},
    {hipDeviceAttributeHdpRegFlushCntl, 0},
    {hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc, 0},
    {hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim, 0},
    {hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim, 0},
    {hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem, 0},
    {hipDeviceAttributeIsLargeBar, 1},
    {hipDeviceAttributeAsicRevision, 0},
    {hipDeviceAttributeCanUseStreamWaitValue, 0},
    {hipDeviceAttributeImageSupport, 0},
    {hipDeviceAttributePhysicalMultiProcessorCount, 1},
    {hipDeviceAttributeFineGrainSupport, 1},
    {ATTRIBUTE_WALL_CLOCK_RATE, 100000},
};

static hipError_t attribute_constant(int attribute, int *value_out)
{
  for (size_t i = 0; i < sizeof attribute_rows / sizeof *attribute_rows; i++) {
    if (attribute_rows[i].attribute != attribute) continue;
    *value_out = attribute_rows[i].value;
    return hipSuccess;
  }
  return hipErrorInvalidValue;
}

hipError_t software_attribute(int attribute, int device, int *value_out)
{
  const struct software_config *config = &software.config;
  switch (attribute) {
  case hipDeviceAttributeManagedMemory:
  case hipDeviceAttributeConcurrentManagedAccess:
  case hipDeviceAttributeDirectManagedMemAccessFromHost: *value_out = config->managed_memory; break;
  case hipDeviceAttributePageableMemoryAccess:
  case hipDeviceAttributePageableMemoryAccessUsesHostPageTables: *value_out = config->pageable_memory_access; break;
  case hipDeviceAttributeMemoryPoolsSupported: *value_out = config->memory_pools; break;
  case HIP_LAYOUT_DEVICE_CHUNK_DESCRIPTORS:
    if (config->rocm_mapping) return hipErrorInvalidValue; /* as AMD's library, which takes them */
    *value_out = 0;
    break;
  case ATTRIBUTE_VIRTUAL_MEMORY: *value_out = config->virtual_memory; break;
  case ATTRIBUTE_POOL_HANDLE_TYPES:
    *value_out = config->memory_pools ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
    break;
  case hipDeviceAttributePciBusId: *value_out = device; break;
  case hipDeviceAttributeTotalGlobalMem:
    *value_out = config->memory_bytes < INT_MAX ? (int)config->memory_bytes : INT_MAX;
    break;
  default: return attribute_constant(attribute, value_out);
  }
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceGetAttribute);
  if (error == hipSuccess && !value) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) error = software_attribute((int)attribute, device, value);
  return software_end(error);
}
