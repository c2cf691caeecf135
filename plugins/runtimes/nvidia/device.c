/* SPDX-License-Identifier: MIT */
/* device.c: the devices, their names, flags and limits, waiting for one, and access among them. Called by applications.
 * attribute.c has the attributes, context.c the current device. */
#include "nvidia.h"

#include <string.h>

hipError_t hipInit(unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_cuda.Init(flags));
}

hipError_t hipDriverGetVersion(int *version)
{
  if (!version) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_cuda.DriverGetVersion(version));
}

/* The version of the headers that this file is compiled with; needs no driver. */
hipError_t hipRuntimeGetVersion(int *version)
{
  if (!version) return nvidia_fail(hipErrorInvalidValue);
  *version = HIP_VERSION;
  return hipSuccess;
}

/* Calls the driver, which fails where it can no longer be used, as in a fork of the process. */
hipError_t hipGetDeviceCount(int *count)
{
  if (!count) return nvidia_fail(hipErrorInvalidValue);
  *count = 0; /* also when it fails, as HIP and CUDA do */
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_cuda.DeviceGetCount(count));
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!device) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_device_exists(ordinal)) return nvidia_fail(hipErrorInvalidDevice);
  *device = ordinal;
  return hipSuccess;
}

hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!name || length < 1) return nvidia_fail(hipErrorInvalidValue);
  return nvidia_end(nvidia_cuda.DeviceGetName(name, length, device));
}

hipError_t hipDeviceGetPCIBusId(char *id, int length, int device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!id || length < 1) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceGetPCIBusId) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.DeviceGetPCIBusId(id, length, device));
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *id)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!device || !id) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceGetByPCIBusId) return nvidia_fail(hipErrorNotSupported);
  CUdevice found;
  CUresult result = nvidia_cuda.DeviceGetByPCIBusId(&found, id);
  if (result == CUDA_SUCCESS) *device = found;
  return nvidia_end(result);
}

_Static_assert(sizeof(hipUUID) == sizeof(CUuuid), "HIP and CUDA have ids of one size");

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!uuid) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceGetUuid) return nvidia_fail(hipErrorNotSupported);
  CUuuid found;
  CUresult result = nvidia_cuda.DeviceGetUuid(&found, device);
  if (result == CUDA_SUCCESS) memcpy(uuid, &found, sizeof found);
  return nvidia_end(result);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!bytes) return nvidia_fail(hipErrorInvalidValue);
  return nvidia_end(nvidia_cuda.DeviceTotalMem(bytes, device));
}

hipError_t hipDeviceSynchronize(void)
{
  if (!nvidia_ready()) return nvidia_last_error;
  return nvidia_end(nvidia_call(nvidia_cuda.CtxSynchronize()));
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.CtxGetStreamPriorityRange) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.CtxGetStreamPriorityRange(least, greatest)));
}

/* ---- Flags and limits ------------------------------------------------------------------------------------------ */

_Static_assert(hipDeviceScheduleSpin == CU_CTX_SCHED_SPIN && hipDeviceScheduleYield == CU_CTX_SCHED_YIELD &&
                   hipDeviceScheduleBlockingSync == CU_CTX_SCHED_BLOCKING_SYNC &&
                   hipDeviceScheduleMask == CU_CTX_SCHED_MASK && hipDeviceMapHost == CU_CTX_MAP_HOST,
               "HIP and CUDA number these flags alike");

/* The flags of the primary context, whether it exists or not. */
hipError_t hipGetDeviceFlags(unsigned int *flags)
{
  int device, is_active;
  if (!flags) return nvidia_fail(hipErrorInvalidValue);
  hipError_t error = hipGetDevice(&device);
  if (error != hipSuccess) return error;
  return nvidia_end(nvidia_cuda.DevicePrimaryCtxGetState(device, flags, &is_active));
}

hipError_t hipSetDeviceFlags(unsigned flags)
{
  int device;
  hipError_t error = hipGetDevice(&device);
  if (error != hipSuccess) return error;
  if (!nvidia_cuda.DevicePrimaryCtxSetFlags) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.DevicePrimaryCtxSetFlags(device, flags));
}

/* HIP numbers limits as CUDA does; not every release has a name for each. */
hipError_t hipDeviceGetLimit(size_t *value, enum hipLimit_t limit)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!value) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.CtxGetLimit) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.CtxGetLimit(value, (CUlimit)limit)));
}

hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.CtxSetLimit) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.CtxSetLimit((CUlimit)limit, value)));
}

/* ---- Peers ----------------------------------------------------------------------------------------------------- */

hipError_t hipDeviceCanAccessPeer(int *can_access, int device, int peer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!can_access) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.DeviceCanAccessPeer) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_cuda.DeviceCanAccessPeer(can_access, device, peer));
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.CtxEnablePeerAccess) return nvidia_fail(hipErrorNotSupported);
  CUcontext context;
  CUresult result = nvidia_primary_context(peer, &context);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  return nvidia_end(nvidia_call(nvidia_cuda.CtxEnablePeerAccess(context, flags)));
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.CtxDisablePeerAccess) return nvidia_fail(hipErrorNotSupported);
  CUcontext context;
  CUresult result = nvidia_primary_context(peer, &context);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  return nvidia_end(nvidia_call(nvidia_cuda.CtxDisablePeerAccess(context)));
}
