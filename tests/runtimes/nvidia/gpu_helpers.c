/* SPDX-License-Identifier: MIT */
/* gpu_helpers.c: opens nvidia.so; the helpers of gpu_smoke.h. */
#include "gpu_smoke.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct hip_table_functions hip;
int failures;
unsigned char host[4 * MIB];

static const struct {
  const char *name;
  void *slot;
} functions[] = {
    {"hipGetDeviceCount", &hip.GetDeviceCount},
    {"hipGetDevice", &hip.GetDevice},
    {"hipSetDevice", &hip.SetDevice},
    {"hipDeviceGetName", &hip.DeviceGetName},
    {"hipDeviceGetAttribute", &hip.DeviceGetAttribute},
    {"hipDeviceSynchronize", &hip.DeviceSynchronize},
    {"hipRuntimeGetVersion", &hip.RuntimeGetVersion},
    {"hipDriverGetVersion", &hip.DriverGetVersion},
    {"hipGetLastError", &hip.GetLastError},
    {"hipGetErrorName", &hip.GetErrorName},
    {"hipGetErrorString", &hip.GetErrorString},
    {"hipMalloc", &hip.Malloc},
    {"hipFree", &hip.Free},
    {"hipMemGetInfo", &hip.MemGetInfo},
    {"hipMemGetAddressRange", &hip.MemGetAddressRange},
    {"hipMemcpy", &hip.Memcpy},
    {"hipMemcpyAsync", &hip.MemcpyAsync},
    {"hipMemcpyPeer", &hip.MemcpyPeer},
    {"hipMemset", &hip.Memset},
    {"hipMemsetAsync", &hip.MemsetAsync},
    {"hipMemsetD32", &hip.MemsetD32},
    {"hipHostMalloc", &hip.HostMalloc},
    {"hipHostFree", &hip.HostFree},
    {"hipHostRegister", &hip.HostRegister},
    {"hipHostUnregister", &hip.HostUnregister},
    {"hipMallocManaged", &hip.MallocManaged},
    {"hipMemAdvise", &hip.MemAdvise},
    {"hipMemPrefetchAsync", &hip.MemPrefetchAsync},
    {"hipLaunchHostFunc", &hip.LaunchHostFunc},
    {"hipStreamCreateWithFlags", &hip.StreamCreateWithFlags},
    {"hipStreamDestroy", &hip.StreamDestroy},
    {"hipStreamSynchronize", &hip.StreamSynchronize},
    {"hipStreamQuery", &hip.StreamQuery},
    {"hipStreamWaitEvent", &hip.StreamWaitEvent},
    {"hipStreamGetId", &hip.StreamGetId},
    {"hipStreamGetDevice", &hip.StreamGetDevice},
    {"hipEventCreateWithFlags", &hip.EventCreateWithFlags},
    {"hipEventDestroy", &hip.EventDestroy},
    {"hipEventRecord", &hip.EventRecord},
    {"hipEventQuery", &hip.EventQuery},
    {"hipEventSynchronize", &hip.EventSynchronize},
    {"hipEventElapsedTime", &hip.EventElapsedTime},
    {"hipMallocAsync", &hip.MallocAsync},
    {"hipFreeAsync", &hip.FreeAsync},
    {"hipMallocFromPoolAsync", &hip.MallocFromPoolAsync},
    {"hipMemPoolCreate", &hip.MemPoolCreate},
    {"hipMemPoolDestroy", &hip.MemPoolDestroy},
    {"hipMemPoolSetAttribute", &hip.MemPoolSetAttribute},
    {"hipMemPoolGetAttribute", &hip.MemPoolGetAttribute},
    {"hipMemPoolTrimTo", &hip.MemPoolTrimTo},
    {"hipDeviceGetDefaultMemPool", &hip.DeviceGetDefaultMemPool},
    {"hipMemGetAllocationGranularity", &hip.MemGetAllocationGranularity},
    {"hipMemAddressReserve", &hip.MemAddressReserve},
    {"hipMemAddressFree", &hip.MemAddressFree},
    {"hipMemCreate", &hip.MemCreate},
    {"hipMemRelease", &hip.MemRelease},
    {"hipMemMap", &hip.MemMap},
    {"hipMemUnmap", &hip.MemUnmap},
    {"hipMemSetAccess", &hip.MemSetAccess},
    {"hipMemGetDefaultMemPool", &hip.MemGetDefaultMemPool},
    {"hipMemGetHandleForAddressRange", &hip.MemGetHandleForAddressRange},
    {"hipMemAdvise_v2", &hip.MemAdvise_v2},
    {"hipMemPrefetchAsync_v2", &hip.MemPrefetchAsync_v2},
    {"hipIpcGetMemHandle", &hip.IpcGetMemHandle},
    {"hipIpcOpenMemHandle", &hip.IpcOpenMemHandle},
    {"hipIpcCloseMemHandle", &hip.IpcCloseMemHandle},
};

_Static_assert(sizeof functions / sizeof *functions == sizeof hip / sizeof hip.Malloc, "a row per function");

bool open_runtime(const char *path)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("FAIL %s\n", dlerror());
    return false;
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *symbol = dlsym(library, functions[i].name);
    if (!symbol) printf("FAIL %s is not exported\n", functions[i].name);
    if (!symbol) return false;
    memcpy(functions[i].slot, &symbol, sizeof symbol);
  }
  return true;
}

void check(bool good, int code, const char *format, ...)
{
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!good) failures++;
  printf("%s %s", good ? "ok  " : "FAIL", text);
  if (!good && code) printf(" [%d %s: %s]", code, hip.GetErrorName(code), hip.GetErrorString(code));
  printf("\n");
  fflush(stdout);
  hip.GetLastError();
}

void absent(const char *what)
{
  printf("--   %s\n", what);
}

bool holds(const unsigned char *bytes, int value, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != (unsigned char)value) return false;
  return true;
}

bool device_holds(const void *ptr, int value, size_t count)
{
  memset(host, ~value, count);
  return hip.Memcpy(host, ptr, count, TO_HOST) == 0 && holds(host, value, count);
}

int attribute(int which)
{
  int value = 0;
  hip.DeviceGetAttribute(&value, which, 0);
  return value;
}
