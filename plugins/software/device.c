/* SPDX-License-Identifier: MIT */
/* device.c: the devices, what they say of themselves, and which one is current for a thread. Called by applications,
 * and by every file for the current device. Asking for the current device takes no lock. */
#include "internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEVICE_NAME "hipmm software device"

/* Attributes that HIP has gained since the headers that this file sees (HIP 5.3 and 6.2). */
#define DEVICE_ATTRIBUTE_VIRTUAL_MEMORY    (hipDeviceAttributeMemoryPoolsSupported + 1)
#define DEVICE_ATTRIBUTE_HOST_REGISTER     (hipDeviceAttributeMemoryPoolsSupported + 2)
#define DEVICE_ATTRIBUTE_POOL_HANDLE_TYPES (hipDeviceAttributeMemoryPoolsSupported + 3)

static _Thread_local int device_current;

int software_current_device(void)
{
  return device_current < atomic_load_explicit(&software.n_devices, memory_order_relaxed) ? device_current : 0;
}

bool software_device_exists(int device)
{
  return device >= 0 && device < atomic_load_explicit(&software.n_devices, memory_order_relaxed);
}

void software_device_fault(int device, enum software_call call, const struct software_span *span, const char *why)
{
  struct software_device *faulty = &software.devices[device];
  faulty->faults++;
  faulty->fault = hipErrorIllegalAddress;
  fprintf(stderr, "hipmm software device %d: fault: %s %s %zu bytes at %p: the memory %s\n", device,
          software_call_name(call), span->is_write ? "writes" : "reads", span->bytes, (void *)span->start, why);
}

/* ---- Existence ------------------------------------------------------------------------------------------------- */

hipError_t hipInit(unsigned int flags)
{
  hipError_t error = software_enter(SOFTWARE_hipInit);
  if (error == hipSuccess && flags != 0) error = hipErrorInvalidValue;
  return software_leave(error);
}

static hipError_t device_version(int *version_out)
{
  if (!version_out) return hipErrorInvalidValue;
  *version_out = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipDriverGetVersion(int *version)
{
  hipError_t error = software_enter(SOFTWARE_hipDriverGetVersion);
  return software_leave(error != hipSuccess ? error : device_version(version));
}

hipError_t hipRuntimeGetVersion(int *version)
{
  hipError_t error = software_enter(SOFTWARE_hipRuntimeGetVersion);
  return software_leave(error != hipSuccess ? error : device_version(version));
}

hipError_t hipGetDeviceCount(int *count)
{
  hipError_t error = software_enter(SOFTWARE_hipGetDeviceCount);
  if (error == hipSuccess && !count) error = hipErrorInvalidValue;
  if (error == hipSuccess) *count = atomic_load_explicit(&software.n_devices, memory_order_relaxed);
  return software_leave(error);
}

hipError_t hipGetDevice(int *device)
{
  hipError_t error = software_enter(SOFTWARE_hipGetDevice);
  if (error == hipSuccess && !device) error = hipErrorInvalidValue;
  if (error == hipSuccess) *device = software_current_device();
  return software_leave(error);
}

hipError_t hipSetDevice(int device)
{
  hipError_t error = software_enter(SOFTWARE_hipSetDevice);
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) device_current = device;
  return software_leave(error);
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGet);
  if (error == hipSuccess && !device) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(ordinal)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) *device = ordinal;
  return software_leave(error);
}

/* ---- Properties ------------------------------------------------------------------------------------------------ */

static hipError_t device_attribute(int attribute, int device, int *value_out)
{
  const struct software_config *config = &software.config;
  switch (attribute) {
  case hipDeviceAttributeManagedMemory:
  case hipDeviceAttributeConcurrentManagedAccess:
  case hipDeviceAttributeDirectManagedMemAccessFromHost: *value_out = config->managed_memory; break;
  case hipDeviceAttributePageableMemoryAccess:
  case hipDeviceAttributePageableMemoryAccessUsesHostPageTables: *value_out = config->pageable_memory_access; break;
  case hipDeviceAttributeMemoryPoolsSupported: *value_out = config->memory_pools; break;
  case DEVICE_ATTRIBUTE_VIRTUAL_MEMORY: *value_out = config->virtual_memory; break;
  case DEVICE_ATTRIBUTE_POOL_HANDLE_TYPES:
    *value_out = config->memory_pools ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
    break;
  case DEVICE_ATTRIBUTE_HOST_REGISTER:
  case hipDeviceAttributeCanMapHostMemory:
  case hipDeviceAttributeUnifiedAddressing:
  case hipDeviceAttributeCanUseHostPointerForRegisteredMem:
  case hipDeviceAttributeConcurrentKernels:
  case hipDeviceAttributeIsLargeBar:
  case hipDeviceAttributeMultiprocessorCount:
  case hipDeviceAttributeAsyncEngineCount: *value_out = 1; break;
  case hipDeviceAttributeWarpSize: *value_out = 64; break;
  case hipDeviceAttributeMaxThreadsPerBlock: *value_out = 1024; break;
  case hipDeviceAttributePciBusId: *value_out = device; break;
  case hipDeviceAttributeEccEnabled:
  case hipDeviceAttributeIntegrated:
  case hipDeviceAttributePciDeviceId:
  case hipDeviceAttributePciDomainID:
  case hipDeviceAttributeComputeMode:
  case hipDeviceAttributeComputeCapabilityMajor:
  case hipDeviceAttributeComputeCapabilityMinor:
  case hipDeviceAttributeStreamPrioritiesSupported: *value_out = 0; break;
  default: return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceGetAttribute);
  if (error == hipSuccess && !value) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) error = device_attribute((int)attribute, device, value);
  return software_end(error);
}

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetName);
  if (error == hipSuccess && (!name || length <= 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) snprintf(name, (size_t)length, "%s", DEVICE_NAME);
  return software_leave(error);
}

hipError_t hipDeviceGetPCIBusId(char *id, int length, int device)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetPCIBusId);
  if (error == hipSuccess && (!id || length <= 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device);
  return software_leave(error);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceTotalMem);
  if (error == hipSuccess && !bytes) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) *bytes = software.config.memory_bytes;
  return software_end(error);
}

/* In the layout of the headers that this file is compiled with, and by the name they give it: both changed with HIP
 * 6. */
hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device)
{
  hipError_t error = software_begin(SOFTWARE_hipGetDeviceProperties);
  if (error == hipSuccess && !properties) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) {
    *properties = (hipDeviceProp_t){.name = DEVICE_NAME,
                                    .totalGlobalMem = software.config.memory_bytes,
                                    .warpSize = 64,
                                    .maxThreadsPerBlock = 1024,
                                    .multiProcessorCount = 1,
                                    .concurrentKernels = 1,
                                    .pciBusID = device,
                                    .canMapHostMemory = 1,
                                    .gcnArchName = "software",
                                    .isLargeBar = 1,
                                    .managedMemory = software.config.managed_memory,
                                    .directManagedMemAccessFromHost = software.config.managed_memory,
                                    .concurrentManagedAccess = software.config.managed_memory,
                                    .pageableMemoryAccess = software.config.pageable_memory_access};
  }
  return software_end(error);
}

/* ---- Work ------------------------------------------------------------------------------------------------------ */

hipError_t hipDeviceSynchronize(void)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipDeviceSynchronize, &device);
  if (error == hipSuccess) {
    software_wait_device(device, software.sequence);
    software_pools_trim(device, NULL);
    error = software.devices[device].fault;
  }
  return software_end(error);
}

/* Also the one way to get a device out of a fault. */
hipError_t hipDeviceReset(void)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceReset);
  if (error == hipSuccess) software_reset_device(software_current_device());
  return software_end(error);
}

/* ---- Peers ----------------------------------------------------------------------------------------------------- */

bool software_device_reaches(int device, int peer)
{
  return device / software.config.peer_group == peer / software.config.peer_group;
}

hipError_t hipDeviceCanAccessPeer(int *can_access, int device, int peer)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceCanAccessPeer);
  if (error == hipSuccess && !can_access) error = hipErrorInvalidValue;
  if (error == hipSuccess && (!software_device_exists(device) || !software_device_exists(peer)))
    error = hipErrorInvalidDevice;
  if (error == hipSuccess) *can_access = device != peer && software_device_reaches(device, peer);
  return software_end(error);
}

/* For fills, which stand for all work of kernels. Copies of hipMalloc's memory go without. */
static hipError_t device_set_peer(int device, int peer, bool enabled)
{
  if (!software_device_exists(peer) || peer == device) return hipErrorInvalidDevice;
  if (!software_device_reaches(device, peer)) return hipErrorPeerAccessUnsupported;
  bool *is_enabled = &software.devices[device].peers[peer];
  if (*is_enabled == enabled) return enabled ? hipErrorPeerAccessAlreadyEnabled : hipErrorPeerAccessNotEnabled;
  *is_enabled = enabled;
  return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipDeviceEnablePeerAccess, &device);
  if (error == hipSuccess && flags != 0) error = hipErrorInvalidValue;
  return software_end(error != hipSuccess ? error : device_set_peer(device, peer, true));
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipDeviceDisablePeerAccess, &device);
  return software_end(error != hipSuccess ? error : device_set_peer(device, peer, false));
}

/* ---- For tests ------------------------------------------------------------------------------------------------- */

bool hipmm_software_live(int device, uint64_t *count_out, uint64_t *bytes_out)
{
  if (!software_device_exists(device)) return false;
  pthread_mutex_lock(&software.lock);
  if (count_out) *count_out = software.devices[device].live_count;
  if (bytes_out) *bytes_out = software.devices[device].live_bytes;
  pthread_mutex_unlock(&software.lock);
  return true;
}

uint64_t hipmm_software_faults(int device)
{
  if (!software_device_exists(device)) return 0;
  pthread_mutex_lock(&software.lock);
  uint64_t faults = software.devices[device].faults;
  pthread_mutex_unlock(&software.lock);
  return faults;
}
