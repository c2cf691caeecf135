/* SPDX-License-Identifier: MIT */
/* no_device.c: a HIP runtime on a machine without a GPU: it exports what HIP exports, and every function answers that
 * there is no device, as AMD's does. Not a plugin. */
#include <hipmm/plugin.h>

#pragma GCC visibility push(default)

int hipGetDeviceCount(void);

int hipGetDeviceCount(void)
{
  return HIPMM_HIP_ERROR_NO_DEVICE;
}

const char *hipGetErrorName(void);

const char *hipGetErrorName(void)
{
  return "hipErrorNoDevice";
}

const char *hipGetErrorString(void) __attribute__((alias("hipGetErrorName")));

int hipGetDevice(void) __attribute__((alias("hipGetDeviceCount")));
int hipSetDevice(void) __attribute__((alias("hipGetDeviceCount")));
int hipDeviceGetAttribute(void) __attribute__((alias("hipGetDeviceCount")));
int hipDeviceGetName(void) __attribute__((alias("hipGetDeviceCount")));
int hipDeviceSynchronize(void) __attribute__((alias("hipGetDeviceCount")));
int hipMemGetInfo(void) __attribute__((alias("hipGetDeviceCount")));
int hipRuntimeGetVersion(void) __attribute__((alias("hipGetDeviceCount")));
int hipGetLastError(void) __attribute__((alias("hipGetDeviceCount")));
int hipMalloc(void) __attribute__((alias("hipGetDeviceCount")));
int hipFree(void) __attribute__((alias("hipGetDeviceCount")));
int hipMemcpy(void) __attribute__((alias("hipGetDeviceCount")));
int hipMemcpyAsync(void) __attribute__((alias("hipGetDeviceCount")));
int hipMemsetAsync(void) __attribute__((alias("hipGetDeviceCount")));
int hipStreamCreateWithFlags(void) __attribute__((alias("hipGetDeviceCount")));
int hipStreamDestroy(void) __attribute__((alias("hipGetDeviceCount")));
int hipStreamSynchronize(void) __attribute__((alias("hipGetDeviceCount")));
int hipStreamQuery(void) __attribute__((alias("hipGetDeviceCount")));
int hipStreamWaitEvent(void) __attribute__((alias("hipGetDeviceCount")));
int hipEventCreateWithFlags(void) __attribute__((alias("hipGetDeviceCount")));
int hipEventDestroy(void) __attribute__((alias("hipGetDeviceCount")));
int hipEventRecord(void) __attribute__((alias("hipGetDeviceCount")));
int hipEventQuery(void) __attribute__((alias("hipGetDeviceCount")));
int hipEventSynchronize(void) __attribute__((alias("hipGetDeviceCount")));
