/* SPDX-License-Identifier: MIT */
/* device.c: the devices, their names, access among them, and waiting for one. Called by applications. state.c has the
 * current device, which is read without the lock. */
#include "internal.h"
#include <stdio.h>
#include <string.h>

const char software_device_name[] = "hipmm software device";
const char software_device_architecture[] = "software";

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
  *version_out = software_version();
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
  if (error == hipSuccess) software_set_current_device(device);
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

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetName);
  if (error == hipSuccess && (!name || length <= 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) snprintf(name, (size_t)length, "%s", software_device_name);
  return software_leave(error);
}

hipError_t hipDeviceGetPCIBusId(char *id, int length, int device)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetPCIBusId);
  if (error == hipSuccess && (!id || length <= 0)) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess && snprintf(id, (size_t)length, "0000:%02x:00.0", (unsigned)device) >= length)
    error = hipErrorInvalidValue;
  return software_leave(error);
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id)
{
  unsigned domain, bus, slot, function;
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetByPCIBusId);
  if (error == hipSuccess && (!device || !id)) error = hipErrorInvalidValue;
  if (error != hipSuccess) return software_leave(error);
  bool is_id = sscanf(id, "%4x:%2x:%2x.%1x", &domain, &bus, &slot, &function) == 4;
  if (!is_id || domain != 0 || slot != 0 || function != 0 || !software_device_exists((int)bus))
    return software_leave(hipErrorInvalidValue);
  *device = (int)bus;
  return hipSuccess;
}

void software_device_uuid(int device, unsigned char uuid_out[16])
{
  char text[17];
  snprintf(text, sizeof text, "hipmm-sw%08x", (unsigned)device);
  memcpy(uuid_out, text, 16);
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
  hipError_t error = software_enter(SOFTWARE_hipDeviceGetUuid);
  if (error == hipSuccess && !uuid) error = hipErrorInvalidValue;
  if (error == hipSuccess && !software_device_exists(device)) error = hipErrorInvalidDevice;
  if (error == hipSuccess) software_device_uuid(device, (unsigned char *)uuid->bytes);
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

/* ---- Work ------------------------------------------------------------------------------------------------------ */

hipError_t hipDeviceSynchronize(void)
{
  int device;
  hipError_t error = software_begin_on_device(SOFTWARE_hipDeviceSynchronize, &device);
  if (error == hipSuccess) error = software_capture_forbid_device(device);
  if (error == hipSuccess) {
    software_wait_device(device, software.sequence);
    software_pools_trim(device, NULL);
    error = software.devices[device].fault;
  }
  return software_end(error);
}

/* ---- Peers ----------------------------------------------------------------------------------------------------- */

hipError_t hipDeviceCanAccessPeer(int *can_access, int device, int peer)
{
  hipError_t error = software_begin(SOFTWARE_hipDeviceCanAccessPeer);
  if (error == hipSuccess && !can_access) error = hipErrorInvalidValue;
  if (error == hipSuccess && (!software_device_exists(device) || !software_device_exists(peer)))
    error = hipErrorInvalidDevice;
  if (error == hipSuccess) *can_access = device != peer && software_device_reaches(device, peer);
  return software_end(error);
}

/* For fills, which stand for all work of kernels. Copies of memory of hipMalloc need no peer access. */
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
