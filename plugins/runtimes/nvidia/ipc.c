/* SPDX-License-Identifier: MIT */
/* ipc.c: memory and events of other processes, by handles of 64 bytes that only the driver reads. Called by
 * applications. */
#include "nvidia.h"

#include <string.h>

_Static_assert(sizeof(hipIpcMemHandle_t) == sizeof(CUipcMemHandle) &&
                   sizeof(hipIpcEventHandle_t) == sizeof(CUipcEventHandle),
               "HIP and CUDA have handles of one size");

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle || !pointer) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.IpcGetMemHandle) return nvidia_fail(hipErrorNotSupported);
  CUipcMemHandle made;
  CUresult result = nvidia_call(nvidia_cuda.IpcGetMemHandle(&made, nvidia_address(pointer)));
  if (result == CUDA_SUCCESS) memcpy(handle, &made, sizeof made);
  return nvidia_end(result);
}

/* HIP has one flag, which was 0 in old releases and is 1 now. Both runtimes require it, so the driver always gets it. */
hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned int flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!pointer || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.IpcOpenMemHandle) return nvidia_fail(hipErrorNotSupported);
  CUipcMemHandle given;
  CUdeviceptr address = 0;
  memcpy(&given, &handle, sizeof given);
  CUresult result = nvidia_call(nvidia_cuda.IpcOpenMemHandle(&address, given, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  if (result == CUDA_SUCCESS) *pointer = nvidia_pointer(address);
  return nvidia_end(result);
}

hipError_t hipIpcCloseMemHandle(void *pointer)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!nvidia_cuda.IpcCloseMemHandle) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.IpcCloseMemHandle(nvidia_address(pointer))));
}

hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.IpcGetEventHandle) return nvidia_fail(hipErrorNotSupported);
  CUipcEventHandle made;
  CUresult result = nvidia_call(nvidia_cuda.IpcGetEventHandle(&made, nvidia_event(event)));
  if (result == CUDA_SUCCESS) memcpy(handle, &made, sizeof made);
  return nvidia_end(result);
}

hipError_t hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!event) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.IpcOpenEventHandle) return nvidia_fail(hipErrorNotSupported);
  CUipcEventHandle given;
  CUevent opened = NULL;
  memcpy(&given, &handle, sizeof given);
  CUresult result = nvidia_call(nvidia_cuda.IpcOpenEventHandle(&opened, given));
  if (result == CUDA_SUCCESS) *event = (hipEvent_t)opened;
  return nvidia_end(result);
}

/* ---- A range of addresses for another driver ------------------------------------------------------------------- */

/* HIP's flag, for mappings over PCIe, has CUDA's number. */
hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t pointer, size_t bytes,
                                          hipMemRangeHandleType type, unsigned long long flags)
{
  if (!nvidia_ready()) return nvidia_last_error;
  if (!handle) return nvidia_fail(hipErrorInvalidValue);
  if (!nvidia_cuda.MemGetHandleForAddressRange) return nvidia_fail(hipErrorNotSupported);
  return nvidia_end(nvidia_call(nvidia_cuda.MemGetHandleForAddressRange(handle, nvidia_address(pointer), bytes,
                                                                        (CUmemRangeHandleType)type, flags)));
}
