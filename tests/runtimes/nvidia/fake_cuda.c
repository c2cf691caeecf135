/* SPDX-License-Identifier: MIT */
/* fake_cuda.c: devices, contexts, streams and events of the fake driver, and the lookup of its functions. */
#include "fake_cuda.h"
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static struct fake_cuda fake = {.n_devices = 2};
static _Thread_local CUcontext current;
static _Thread_local CUstreamCaptureMode capture_mode; /* global at first */

EXPORT struct fake_cuda *fake_cuda(void)
{
  return &fake;
}

EXPORT void fake_cuda_set_current(CUcontext context)
{
  current = context;
}

EXPORT CUcontext fake_cuda_current(void)
{
  return current;
}

static CUresult failure_of(const char *name)
{
  return fake.fails && !strcmp(fake.fails, name) ? fake.failure : CUDA_SUCCESS;
}

CUresult fake_call(bool bare, const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
  if (!bare && !current) return CUDA_ERROR_INVALID_CONTEXT;
  fake.calls++;
  fake.last = (struct fake_call){.name = name, .arguments = {a, b, c, d, e}, .capture_mode = capture_mode};
  return failure_of(name);
}

void fake_data(const void *data, size_t bytes)
{
  memcpy(fake.last.data, data, bytes < sizeof fake.last.data ? bytes : sizeof fake.last.data);
}

static int device_of(CUcontext context)
{
  return (int)((uint64_t)(uintptr_t)context - FAKE_CONTEXT(0));
}

static bool exists(CUdevice device)
{
  return device >= 0 && device < fake.n_devices;
}

/* ---- The driver, devices --------------------------------------------------------------------------------------- */

static CUresult init(unsigned flags)
{
  (void)flags;
  return fake.init_result;
}

static CUresult driver_get_version(int *version)
{
  *version = 13000;
  return CUDA_SUCCESS;
}

static CUresult get_error_name(CUresult result, const char **name)
{
  *name = result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "CUDA_ERROR_OF_FAKE";
  return CUDA_SUCCESS;
}

static CUresult get_error_string(CUresult result, const char **text)
{
  (void)result;
  *text = "as the test wants it";
  return CUDA_SUCCESS;
}

static CUresult device_get_count(int *count)
{
  *count = fake.n_devices;
  return CUDA_SUCCESS;
}

/* The value shows which attribute of which device was requested. */
static CUresult device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
  if (!exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 1000 * (device + 1) + (int)attribute;
  return fake_call(true, "cuDeviceGetAttribute", (uint64_t)attribute, (uint64_t)device, 0, 0, 0);
}

static CUresult device_get_name(char *name, int length, CUdevice device)
{
  if (!exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  strncpy(name, "Fake GPU", (size_t)length - 1);
  name[length - 1] = '\0';
  return fake_call(true, "cuDeviceGetName", (uint64_t)device, 0, 0, 0, 0);
}

static CUresult device_get_pci_bus_id(char *id, int length, CUdevice device)
{
  strncpy(id, "0000:17:00.0", (size_t)length - 1);
  id[length - 1] = '\0';
  return fake_call(true, "cuDeviceGetPCIBusId", (uint64_t)device, 0, 0, 0, 0);
}

static CUresult device_get_by_pci_bus_id(CUdevice *device, const char *id)
{
  if (strcmp(id, "0000:17:00.0") != 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = 1;
  return fake_call(true, "cuDeviceGetByPCIBusId", 0, 0, 0, 0, 0);
}

static CUresult device_get_uuid(CUuuid *uuid, CUdevice device)
{
  if (!exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  memset(uuid, 'u', sizeof *uuid);
  return fake_call(true, "cuDeviceGetUuid", (uint64_t)device, 0, 0, 0, 0);
}

static CUresult device_total_mem(size_t *bytes, CUdevice device)
{
  if (!exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = 1 << 30;
  return fake_call(true, "cuDeviceTotalMem", (uint64_t)device, 0, 0, 0, 0);
}

static CUresult device_can_access_peer(int *can_access, CUdevice device, CUdevice peer)
{
  *can_access = device != peer;
  return fake_call(true, "cuDeviceCanAccessPeer", (uint64_t)device, (uint64_t)peer, 0, 0, 0);
}

/* ---- Contexts -------------------------------------------------------------------------------------------------- */

static CUresult primary_retain(CUcontext *context, CUdevice device)
{
  if (!exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUresult result = fake_call(true, "cuDevicePrimaryCtxRetain", (uint64_t)device, 0, 0, 0, 0);
  if (result != CUDA_SUCCESS) return result;
  fake.retained[device]++;
  *context = (CUcontext)(uintptr_t)FAKE_CONTEXT(device);
  return CUDA_SUCCESS;
}

static CUresult primary_get_state(CUdevice device, unsigned *flags, int *is_active)
{
  *flags = 0;
  *is_active = fake.retained[device] > 0;
  return CUDA_SUCCESS;
}

static CUresult primary_set_flags(CUdevice device, unsigned flags)
{
  return fake_call(true, "cuDevicePrimaryCtxSetFlags", (uint64_t)device, flags, 0, 0, 0);
}

static CUresult get_limit(size_t *value, CUlimit limit)
{
  *value = 1024;
  return fake_call(false, "cuCtxGetLimit", (uint64_t)limit, 0, 0, 0, 0);
}

static CUresult set_limit(CUlimit limit, size_t value)
{
  return fake_call(false, "cuCtxSetLimit", (uint64_t)limit, value, 0, 0, 0);
}

static CUresult get_current(CUcontext *context)
{
  CUresult result = failure_of("cuCtxGetCurrent");
  if (result == CUDA_SUCCESS) *context = current;
  return result;
}

static CUresult set_current(CUcontext context)
{
  current = context;
  return CUDA_SUCCESS;
}

static CUcontext beneath;

static CUresult push_current(CUcontext context)
{
  CUresult result = failure_of("cuCtxPushCurrent");
  if (result != CUDA_SUCCESS) return result;
  beneath = current;
  current = context;
  return CUDA_SUCCESS;
}

static CUresult pop_current(CUcontext *context)
{
  *context = current;
  current = beneath;
  return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device)
{
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  *device = device_of(current);
  return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
  return fake_call(false, "cuCtxSynchronize", (uint64_t)device_of(current), 0, 0, 0, 0);
}

static CUresult get_priority_range(int *least, int *greatest)
{
  *least = 0;
  *greatest = -5;
  return fake_call(false, "cuCtxGetStreamPriorityRange", 0, 0, 0, 0, 0);
}

static CUresult enable_peer(CUcontext peer, unsigned flags)
{
  return fake_call(false, "cuCtxEnablePeerAccess", (uint64_t)device_of(peer), flags, 0, 0, 0);
}

static CUresult disable_peer(CUcontext peer)
{
  return fake_call(false, "cuCtxDisablePeerAccess", (uint64_t)device_of(peer), 0, 0, 0, 0);
}

/* ---- Streams --------------------------------------------------------------------------------------------------- */

static CUresult stream_create(CUstream *stream, unsigned flags)
{
  *stream = (CUstream)(uintptr_t)FAKE_STREAM;
  return fake_call(false, "cuStreamCreate", flags, 0, 0, 0, 0);
}

static CUresult stream_create_with_priority(CUstream *stream, unsigned flags, int priority)
{
  *stream = (CUstream)(uintptr_t)FAKE_STREAM;
  return fake_call(false, "cuStreamCreateWithPriority", flags, (uint64_t)priority, 0, 0, 0);
}

static CUresult stream_destroy(CUstream stream)
{
  return fake_call(false, "cuStreamDestroy", (uintptr_t)stream, 0, 0, 0, 0);
}

static CUresult stream_synchronize(CUstream stream)
{
  return fake_call(false, "cuStreamSynchronize", (uintptr_t)stream, 0, 0, 0, 0);
}

static CUresult stream_query(CUstream stream)
{
  return fake_call(false, "cuStreamQuery", (uintptr_t)stream, 0, 0, 0, 0);
}

static CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags)
{
  return fake_call(false, "cuStreamWaitEvent", (uintptr_t)stream, (uintptr_t)event, flags, 0, 0);
}

static CUresult stream_get_flags(CUstream stream, unsigned *flags)
{
  *flags = CU_STREAM_NON_BLOCKING;
  return fake_call(false, "cuStreamGetFlags", (uintptr_t)stream, 0, 0, 0, 0);
}

static CUresult stream_get_priority(CUstream stream, int *priority)
{
  *priority = -3;
  return fake_call(false, "cuStreamGetPriority", (uintptr_t)stream, 0, 0, 0, 0);
}

/* Every stream is of device 1. */
static CUresult stream_get_context(CUstream stream, CUcontext *context)
{
  *context = (CUcontext)(uintptr_t)FAKE_CONTEXT(1);
  bool bare = (uintptr_t)stream == FAKE_STREAM;
  return fake_call(bare, "cuStreamGetCtx", (uintptr_t)stream, 0, 0, 0, 0);
}

static CUresult stream_get_id(CUstream stream, unsigned long long *id)
{
  *id = 77;
  return fake_call(false, "cuStreamGetId", (uintptr_t)stream, 0, 0, 0, 0);
}

/* No capture is of the default stream. */
static CUresult stream_is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
  bool is_default = !stream || stream == (CUstream)CU_STREAM_LEGACY;
  *status = is_default ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return fake_call(false, "cuStreamIsCapturing", (uintptr_t)stream, 0, 0, 0, 0);
}

/* Not recorded. */
static CUresult exchange_capture_mode(CUstreamCaptureMode *mode)
{
  CUstreamCaptureMode before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

static CUresult stream_add_callback(CUstream stream, CUstreamCallback callback, void *argument, unsigned flags)
{
  fake.callback = callback;
  fake.argument = argument;
  return fake_call(false, "cuStreamAddCallback", (uintptr_t)stream, flags, 0, 0, 0);
}

static CUresult launch_host_func(CUstream stream, CUhostFn function, void *argument)
{
  fake.host_function = function;
  fake.argument = argument;
  return fake_call(false, "cuLaunchHostFunc", (uintptr_t)stream, 0, 0, 0, 0);
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static CUresult event_create(CUevent *event, unsigned flags)
{
  *event = (CUevent)(uintptr_t)FAKE_EVENT;
  return fake_call(false, "cuEventCreate", flags, 0, 0, 0, 0);
}

static CUresult event_destroy(CUevent event)
{
  return fake_call(true, "cuEventDestroy", (uintptr_t)event, 0, 0, 0, 0);
}

static CUresult event_record(CUevent event, CUstream stream)
{
  return fake_call(false, "cuEventRecord", (uintptr_t)event, (uintptr_t)stream, 0, 0, 0);
}

static CUresult event_query(CUevent event)
{
  return fake_call(true, "cuEventQuery", (uintptr_t)event, 0, 0, 0, 0);
}

static CUresult event_synchronize(CUevent event)
{
  return fake_call(true, "cuEventSynchronize", (uintptr_t)event, 0, 0, 0, 0);
}

static CUresult event_elapsed_time(float *milliseconds, CUevent start, CUevent stop)
{
  *milliseconds = 2.5f;
  return fake_call(true, "cuEventElapsedTime", (uintptr_t)start, (uintptr_t)stop, 0, 0, 0);
}

static CUresult ipc_get_event_handle(CUipcEventHandle *handle, CUevent event)
{
  memset(handle, 'e', sizeof *handle);
  return fake_call(true, "cuIpcGetEventHandle", (uintptr_t)event, 0, 0, 0, 0);
}

static CUresult ipc_open_event_handle(CUevent *event, CUipcEventHandle handle)
{
  *event = (CUevent)(uintptr_t)FAKE_EVENT;
  CUresult result = fake_call(false, "cuIpcOpenEventHandle", 0, 0, 0, 0, 0);
  fake_data(&handle, sizeof handle);
  return result;
}

/* ---- Lookup ---------------------------------------------------------------------------------------------------- */

/* Newer variants have the same name and another signature. A caller may get one only if it requested it. */
static CUresult wrong_variant(void)
{
  return fake_call(true, "a newer variant", 0, 0, 0, 0, 0);
}

static const struct fake_symbol symbols[] = {
    {"cuInit", 2000, init},
    {"cuDriverGetVersion", 2020, driver_get_version},
    {"cuGetErrorName", 6000, get_error_name},
    {"cuGetErrorString", 6000, get_error_string},
    {"cuDeviceGetCount", 2000, device_get_count},
    {"cuDeviceGetAttribute", 2000, device_get_attribute},
    {"cuDeviceGetName", 2000, device_get_name},
    {"cuDeviceGetPCIBusId", 4010, device_get_pci_bus_id},
    {"cuDeviceGetByPCIBusId", 4010, device_get_by_pci_bus_id},
    {"cuDeviceGetUuid", 9020, device_get_uuid},
    {"cuDevicePrimaryCtxSetFlags", 11000, primary_set_flags},
    {"cuCtxGetLimit", 3010, get_limit},
    {"cuCtxSetLimit", 3010, set_limit},
    {"cuDeviceTotalMem", 3020, device_total_mem},
    {"cuDeviceCanAccessPeer", 4000, device_can_access_peer},
    {"cuDevicePrimaryCtxRetain", 7000, primary_retain},
    {"cuDevicePrimaryCtxGetState", 7000, primary_get_state},
    {"cuCtxGetCurrent", 4000, get_current},
    {"cuCtxSetCurrent", 4000, set_current},
    {"cuCtxPushCurrent", 4000, push_current},
    {"cuCtxPopCurrent", 4000, pop_current},
    {"cuCtxGetDevice", 2000, get_device},
    {"cuCtxGetDevice", 13000, wrong_variant},
    {"cuCtxSynchronize", 2000, synchronize},
    {"cuCtxSynchronize", 13000, wrong_variant},
    {"cuCtxGetStreamPriorityRange", 5050, get_priority_range},
    {"cuCtxEnablePeerAccess", 4000, enable_peer},
    {"cuCtxDisablePeerAccess", 4000, disable_peer},
    {"cuStreamCreate", 2000, stream_create},
    {"cuStreamCreateWithPriority", 5050, stream_create_with_priority},
    {"cuStreamDestroy", 2000, wrong_variant},
    {"cuStreamDestroy", 4000, stream_destroy},
    {"cuStreamSynchronize", 2000, stream_synchronize},
    {"cuStreamQuery", 2000, stream_query},
    {"cuStreamWaitEvent", 3020, stream_wait_event},
    {"cuStreamGetFlags", 5050, stream_get_flags},
    {"cuStreamGetPriority", 5050, stream_get_priority},
    {"cuStreamGetCtx", 9020, stream_get_context},
    {"cuStreamGetCtx", 12050, wrong_variant},
    {"cuStreamGetId", 12000, stream_get_id},
    {"cuStreamIsCapturing", 10000, stream_is_capturing},
    {"cuThreadExchangeStreamCaptureMode", 10010, exchange_capture_mode},
    {"cuStreamAddCallback", 5000, stream_add_callback},
    {"cuLaunchHostFunc", 10000, launch_host_func},
    {"cuEventCreate", 2000, event_create},
    {"cuEventDestroy", 2000, wrong_variant},
    {"cuEventDestroy", 4000, event_destroy},
    {"cuEventRecord", 2000, event_record},
    {"cuEventQuery", 2000, event_query},
    {"cuEventSynchronize", 2000, event_synchronize},
    {"cuEventElapsedTime", 2000, event_elapsed_time},
    {"cuEventElapsedTime", 12080, wrong_variant},
    {"cuIpcGetEventHandle", 4010, ipc_get_event_handle},
    {"cuIpcOpenEventHandle", 4010, ipc_open_event_handle},
    {NULL, 0, NULL},
};

static void *find(const struct fake_symbol *symbol, const char *name, int version)
{
  void *address = NULL;
  for (; symbol->name; symbol++)
    if (!strcmp(symbol->name, name) && symbol->version <= version) address = symbol->address;
  return address;
}

/* As in the real driver: the newest variant that is not newer than requested. */
static CUresult get_proc_address(const char *name, void **address, int version, cuuint64_t flags)
{
  if (fake.is_stub) return CUDA_ERROR_STUB_LIBRARY;
  if (flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM) return CUDA_ERROR_INVALID_VALUE;
  *address = find(symbols, name, version);
  if (!*address) *address = find(fake_memory_symbols, name, version);
  for (int i = 0; i < FAKE_HIDDEN; i++)
    if (fake.hidden[i] && !strcmp(fake.hidden[i], name)) *address = NULL;
  return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* CUDA 11.3 to 11.8 have this function only, later releases have both. */
EXPORT CUresult fake_get_proc_address(const char *name, void **address, int version,
                                      cuuint64_t flags) __asm__("cuGetProcAddress");
CUresult fake_get_proc_address(const char *name, void **address, int version, cuuint64_t flags)
{
  return get_proc_address(name, address, version, flags);
}

#ifndef FAKE_CUDA_11
EXPORT CUresult fake_get_proc_address_v2(const char *name, void **address, int version, cuuint64_t flags,
                                         int *status) __asm__("cuGetProcAddress_v2");
/* A missing function gives a status and not an error, as CUDA 12 may do. */
CUresult fake_get_proc_address_v2(const char *name, void **address, int version, cuuint64_t flags, int *status)
{
  CUresult result = get_proc_address(name, address, version, flags);
  *status = result != CUDA_SUCCESS;
  return result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
}
#endif
