/* SPDX-License-Identifier: MIT */
/* properties.c: the struct of a device's properties, in both layouts that HIP has had: up to release 5, and since
 * release 6 under a name of its own, which a program may call whatever headers this file is compiled with. Called by
 * applications. The values are those of the attributes. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

/* The layout up to HIP 5, and the function that writes it, have had these names since HIP 6. */
#if HIP_VERSION_MAJOR < 6
typedef hipDeviceProp_t hipDeviceProp_tR0000;
#else
#include <hip/hip_deprecated.h>
#undef hipGetDeviceProperties
HIPMM_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device);
#endif

/* The layout of HIP 6 and later. */
struct properties_6 {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned luid_node_mask;
  size_t total_memory, shared_per_block;
  int registers_per_block, warp_size;
  size_t max_pitch;
  int threads_per_block, block_dim[3], grid_dim[3], clock_rate;
  size_t constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int device_overlap, processors, kernel_timeout, integrated, can_map_host_memory, compute_mode;
  int texture_1d, texture_1d_mipmap, texture_1d_linear, texture_2d[2], texture_2d_mipmap[2], texture_2d_linear[3],
      texture_2d_gather[2], texture_3d[3], texture_3d_alternate[3], texture_cubemap, texture_1d_layered[2],
      texture_2d_layered[3], texture_cubemap_layered[2];
  int surface_1d, surface_2d[2], surface_3d[3], surface_1d_layered[2], surface_2d_layered[3], surface_cubemap,
      surface_cubemap_layered[2];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc_driver, async_engines, unified_addressing,
      memory_clock_rate, memory_bus_width, l2_bytes, persisting_l2_bytes, threads_per_processor, stream_priorities,
      global_l1, local_l1;
  size_t shared_per_processor;
  int registers_per_processor, managed_memory, is_multi_gpu_board, multi_gpu_board_group, host_native_atomics,
      single_to_double_ratio, pageable_memory_access, concurrent_managed_access, compute_preemption,
      host_pointer_for_registered, cooperative_launch, cooperative_multi_device_launch;
  size_t shared_per_block_optin;
  int pageable_uses_host_page_tables, direct_managed_access, blocks_per_processor, access_policy_window;
  size_t reserved_shared_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, rdma;
  unsigned rdma_flush_writes;
  int rdma_writes_ordering;
  unsigned pool_handle_types;
  int deferred_mapping, ipc_events, cluster_launch, unified_function_pointers, reserved[63], hip_reserved[32];
  char architecture[256];
  size_t max_shared_per_processor;
  int clock_instruction_rate;
  hipDeviceArch_t features;
  unsigned *hdp_memory_flush, *hdp_register_flush;
  int unmatched_function, unmatched_grid, unmatched_block, unmatched_shared, large_bar, asic_revision;
};

#if HIP_VERSION_MAJOR >= 6
_Static_assert(sizeof(struct properties_6) == sizeof(hipDeviceProp_t) &&
                   offsetof(struct properties_6, surface_alignment) == offsetof(hipDeviceProp_t, surfaceAlignment) &&
                   offsetof(struct properties_6, shared_per_processor) ==
                       offsetof(hipDeviceProp_t, sharedMemPerMultiprocessor) &&
                   offsetof(struct properties_6, pool_handle_types) ==
                       offsetof(hipDeviceProp_t, memoryPoolSupportedHandleTypes) &&
                   offsetof(struct properties_6, asic_revision) == offsetof(hipDeviceProp_t, asicRevision),
               "hipDeviceProp_t has changed again");
#endif

/* An attribute, and the field that has its value: an int or a size_t. */
struct property_row {
  int attribute;
  size_t offset, bytes;
};

#define ROW(type, attribute, member)                                                 \
  {                                                                                  \
    hipDeviceAttribute##attribute, offsetof(type, member), sizeof((type *)0)->member \
  }
#define ROW_6(attribute, member) ROW(struct properties_6, attribute, member)

static const struct property_row property_rows_6[] = {
    ROW_6(MaxSharedMemoryPerBlock, shared_per_block),
    ROW_6(MaxRegistersPerBlock, registers_per_block),
    ROW_6(WarpSize, warp_size),
    ROW_6(MaxPitch, max_pitch),
    ROW_6(MaxThreadsPerBlock, threads_per_block),
    ROW_6(MaxBlockDimX, block_dim[0]),
    ROW_6(MaxBlockDimY, block_dim[1]),
    ROW_6(MaxBlockDimZ, block_dim[2]),
    ROW_6(MaxGridDimX, grid_dim[0]),
    ROW_6(MaxGridDimY, grid_dim[1]),
    ROW_6(MaxGridDimZ, grid_dim[2]),
    ROW_6(ClockRate, clock_rate),
    ROW_6(TotalConstantMemory, constant_memory),
    ROW_6(TextureAlignment, texture_alignment),
    ROW_6(TexturePitchAlignment, texture_pitch_alignment),
    ROW_6(DeviceOverlap, device_overlap),
    ROW_6(MultiprocessorCount, processors),
    ROW_6(CanMapHostMemory, can_map_host_memory),
    ROW_6(SurfaceAlignment, surface_alignment),
    ROW_6(ConcurrentKernels, concurrent_kernels),
    ROW_6(PciBusId, pci_bus),
    ROW_6(AsyncEngineCount, async_engines),
    ROW_6(UnifiedAddressing, unified_addressing),
    ROW_6(MemoryClockRate, memory_clock_rate),
    ROW_6(MemoryBusWidth, memory_bus_width),
    ROW_6(MaxThreadsPerMultiProcessor, threads_per_processor),
    ROW_6(StreamPrioritiesSupported, stream_priorities),
    ROW_6(SharedMemPerMultiprocessor, shared_per_processor),
    ROW_6(MaxRegistersPerMultiprocessor, registers_per_processor),
    ROW_6(ManagedMemory, managed_memory),
    ROW_6(HostNativeAtomicSupported, host_native_atomics),
    ROW_6(PageableMemoryAccess, pageable_memory_access),
    ROW_6(ConcurrentManagedAccess, concurrent_managed_access),
    ROW_6(CanUseHostPointerForRegisteredMem, host_pointer_for_registered),
    ROW_6(SharedMemPerBlockOptin, shared_per_block_optin),
    ROW_6(PageableMemoryAccessUsesHostPageTables, pageable_uses_host_page_tables),
    ROW_6(DirectManagedMemAccessFromHost, direct_managed_access),
    ROW_6(MaxBlocksPerMultiProcessor, blocks_per_processor),
    ROW_6(MemoryPoolsSupported, memory_pools),
    ROW_6(MaxSharedMemoryPerMultiprocessor, max_shared_per_processor),
    ROW_6(IsLargeBar, large_bar),
};

/* All other attributes that have a property are 0, like the struct before the call. */
static void properties_fill(void *properties, const struct property_row *rows, size_t n_rows, int device)
{
  for (size_t i = 0; i < n_rows; i++) {
    int value = 0;
    software_attribute(rows[i].attribute, device, &value);
    size_t wide = (size_t)value;
    char *field = (char *)properties + rows[i].offset;
    memcpy(field, rows[i].bytes == sizeof wide ? (const void *)&wide : (const void *)&value, rows[i].bytes);
  }
}

static void properties_fill_6(struct properties_6 *properties, int device)
{
  memset(properties, 0, sizeof *properties);
  properties_fill(properties, property_rows_6, sizeof property_rows_6 / sizeof *property_rows_6, device);
  properties->total_memory = software.config.memory_bytes;
  properties->host_register = 1;
  properties->pool_handle_types =
      software.config.memory_pools ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
  snprintf(properties->name, sizeof properties->name, "%s", software_device_name);
  snprintf(properties->architecture, sizeof properties->architecture, "%s", software_device_architecture);
  software_device_uuid(device, properties->uuid);
}

static hipError_t properties_begin(enum software_call call, const void *properties, int device)
{
  hipError_t error = software_begin(call);
  if (error == hipSuccess && !properties) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  return error;
}

#if HIP_VERSION_MAJOR >= 6
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int device)
#else
hipError_t hipGetDevicePropertiesR0600(void *properties, int device)
#endif
{
  hipError_t error = properties_begin(SOFTWARE_hipGetDevicePropertiesR0600, properties, device);
  if (error == hipSuccess) properties_fill_6((struct properties_6 *)properties, device);
  return software_end(error);
}

#define ROW_5(attribute, member) ROW(hipDeviceProp_tR0000, attribute, member)

static const struct property_row property_rows_5[] = {
    ROW_5(MaxSharedMemoryPerBlock, sharedMemPerBlock),
    ROW_5(MaxRegistersPerBlock, regsPerBlock),
    ROW_5(WarpSize, warpSize),
    ROW_5(MaxThreadsPerBlock, maxThreadsPerBlock),
    ROW_5(MaxBlockDimX, maxThreadsDim[0]),
    ROW_5(MaxBlockDimY, maxThreadsDim[1]),
    ROW_5(MaxBlockDimZ, maxThreadsDim[2]),
    ROW_5(MaxGridDimX, maxGridSize[0]),
    ROW_5(MaxGridDimY, maxGridSize[1]),
    ROW_5(MaxGridDimZ, maxGridSize[2]),
    ROW_5(ClockRate, clockRate),
    ROW_5(MemoryClockRate, memoryClockRate),
    ROW_5(MemoryBusWidth, memoryBusWidth),
    ROW_5(TotalConstantMemory, totalConstMem),
    ROW_5(MultiprocessorCount, multiProcessorCount),
    ROW_5(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor),
    ROW_5(ConcurrentKernels, concurrentKernels),
    ROW_5(PciBusId, pciBusID),
    ROW_5(MaxSharedMemoryPerMultiprocessor, maxSharedMemoryPerMultiProcessor),
    ROW_5(CanMapHostMemory, canMapHostMemory),
    ROW_5(MaxPitch, memPitch),
    ROW_5(TextureAlignment, textureAlignment),
    ROW_5(TexturePitchAlignment, texturePitchAlignment),
    ROW_5(IsLargeBar, isLargeBar),
    ROW_5(ManagedMemory, managedMemory),
    ROW_5(DirectManagedMemAccessFromHost, directManagedMemAccessFromHost),
    ROW_5(ConcurrentManagedAccess, concurrentManagedAccess),
    ROW_5(PageableMemoryAccess, pageableMemoryAccess),
    ROW_5(PageableMemoryAccessUsesHostPageTables, pageableMemoryAccessUsesHostPageTables),
};

static void properties_fill_5(hipDeviceProp_tR0000 *properties, int device)
{
  memset(properties, 0, sizeof *properties);
  properties_fill(properties, property_rows_5, sizeof property_rows_5 / sizeof *property_rows_5, device);
  properties->totalGlobalMem = software.config.memory_bytes;
  snprintf(properties->name, sizeof properties->name, "%s", software_device_name);
  snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s", software_device_architecture);
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device)
{
  hipError_t error = properties_begin(SOFTWARE_hipGetDeviceProperties, properties, device);
  if (error == hipSuccess) properties_fill_5(properties, device);
  return software_end(error);
}
