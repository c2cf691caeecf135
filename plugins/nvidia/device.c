/* SPDX-License-Identifier: MIT */
/* device.c: what devices there are and what they say of themselves, waiting for one, and access among them. Called by
 * applications. attribute.c has the attributes, context.c the current device. */
#include "nvidia.h"

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

/* That of the headers which say how our structs are laid out; needs no driver. */
hipError_t hipRuntimeGetVersion(int *version)
{
  if (!version) return nvidia_fail(hipErrorInvalidValue);
  *version = HIP_VERSION;
  return hipSuccess;
}

/* Asks the driver, which knows when it can no longer be used, as in a fork of the process. */
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

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!bytes) return nvidia_fail(hipErrorInvalidValue);
  return nvidia_end(nvidia_cuda.DeviceTotalMem(bytes, device));
}

hipError_t hipDeviceSynchronize(void)
{
  if (!nvidia_ready()) return nvidia_last_error;
  CUresult result;
  do result = nvidia_cuda.CtxSynchronize();
  while (nvidia_again(&result));
  return nvidia_end(result);
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.CtxGetStreamPriorityRange) return nvidia_fail(hipErrorNotSupported);
  CUresult result;
  do result = nvidia_cuda.CtxGetStreamPriorityRange(least, greatest);
  while (nvidia_again(&result));
  return nvidia_end(result);
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
  do result = nvidia_cuda.CtxEnablePeerAccess(context, flags);
  while (nvidia_again(&result));
  return nvidia_end(result);
}

hipError_t hipDeviceDisablePeerAccess(int peer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.CtxDisablePeerAccess) return nvidia_fail(hipErrorNotSupported);
  CUcontext context;
  CUresult result = nvidia_primary_context(peer, &context);
  if (result != CUDA_SUCCESS) return nvidia_end(result);
  do result = nvidia_cuda.CtxDisablePeerAccess(context);
  while (nvidia_again(&result));
  return nvidia_end(result);
}
