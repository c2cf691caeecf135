/* SPDX-License-Identifier: MIT */
/* libcuda.c: a stand-in for NVIDIA's driver, libcuda.so.1: its functions in terms of the software device's, in the library
 * that FAKE_SOFTWARE names. It has contexts, as the driver, and functions need one; a primary context is one for each
 * device. cuGetProcAddress() gives other addresses than dlsym(), which a driver may do, and for some names several
 * functions, by the release. */
#include "libcuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  INVALID = 1,
  UNINITIALISED = 3,
  NO_DEVICE = 101,
  NO_CONTEXT = 201,
  NO_STREAM = 400,
  NOT_FOUND = 500,
  UNSUPPORTED = 801
};

static void *function_called(const char *name)
{
  static void *library;
  const char *file = getenv("FAKE_SOFTWARE");
  if (!library) library = dlopen(file ? file : "", RTLD_NOW | RTLD_LOCAL);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) fprintf(stderr, "%s: no %s\n", file ? file : "FAKE_SOFTWARE", name);
  if (!function) exit(99);
  return function;
}

/* Calls a function of the software device, whose parameters follow. */
#define SOFTWARE(name, parameters) ((int(*) parameters)function_called(name))

/* ---- Contexts ---- */

enum { DEVICES = 4 };

struct CUctx_st {
  int device;
  unsigned references; /* of a primary context */
};

static struct CUctx_st primary[DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2}, {.device = 3}};
static _Thread_local CUcontext current;
static atomic_bool is_initialised;

/* The streams that were created, each with its context; NULL once that has ended. */
static struct {
  CUstream stream;
  CUcontext context;
} streams[64];
static int stream_count;

static int device_count(void)
{
  int count = 0;
  SOFTWARE("hipGetDeviceCount", (int *))(&count);
  return count < DEVICES ? count : DEVICES;
}

static bool exists(int device)
{
  return device >= 0 && device < device_count();
}

static bool is_primary(CUcontext context)
{
  return context >= primary && context < primary + DEVICES;
}

/* What a function that needs a context begins with: an error, or 0 with the context's device current. */
static int ready(void)
{
  if (!is_initialised) return UNINITIALISED;
  if (!current) return NO_CONTEXT;
  return SOFTWARE("hipSetDevice", (int))(current->device);
}

#define READY()                      \
  do {                               \
    int not_ready = ready();         \
    if (not_ready) return not_ready; \
  } while (0)

#define FUNCTION(name) static int own_##name

/* A function that is one of the software device's, once a context is current. */
#define PASS(name, software, parameters, arguments)   \
  FUNCTION(name) parameters                           \
  {                                                   \
    READY();                                          \
    return SOFTWARE(#software, parameters) arguments; \
  }

FUNCTION(cuInit)(unsigned flags)
{
  is_initialised = true;
  return flags ? INVALID : 0;
}

FUNCTION(cuDriverGetVersion)(int *version)
{
  *version = 13000;
  return 0;
}

FUNCTION(cuGetErrorName)(int code, const char **text)
{
  *text = code ? "CUDA_ERROR_OF_FAKE" : "CUDA_SUCCESS";
  return 0;
}

FUNCTION(cuGetErrorString)(int code, const char **text)
{
  return own_cuGetErrorName(code, text);
}

FUNCTION(cuDeviceGetCount)(int *count)
{
  if (!is_initialised) return UNINITIALISED;
  *count = device_count();
  return 0;
}

/* Those that pitched memory needs; of all others a device has 1. */
FUNCTION(cuDeviceGetAttribute)(int *value, int attribute, int device)
{
  *value = attribute == 11 ? 0x7fffffff : attribute == 14 ? 512 : attribute == 51 ? 32 : 1;
  return exists(device) ? 0 : NO_DEVICE;
}

FUNCTION(cuDeviceGetName)(char *name, int length, int device)
{
  snprintf(name, (size_t)length, "fake");
  return exists(device) ? 0 : NO_DEVICE;
}

FUNCTION(cuDeviceTotalMem_v2)(size_t *bytes, int device)
{
  return SOFTWARE("hipDeviceTotalMem", (size_t *, int))(bytes, device);
}

FUNCTION(cuDeviceCanAccessPeer)(int *can, int device, int peer)
{
  return SOFTWARE("hipDeviceCanAccessPeer", (int *, int, int))(can, device, peer);
}

FUNCTION(cuDevicePrimaryCtxRetain)(CUcontext *context, int device)
{
  if (!is_initialised) return UNINITIALISED;
  if (!exists(device)) return NO_DEVICE;
  primary[device].references++;
  *context = &primary[device];
  return 0;
}

FUNCTION(cuDevicePrimaryCtxRelease_v2)(int device)
{
  if (!exists(device) || !primary[device].references) return NO_CONTEXT;
  primary[device].references--;
  return 0;
}

static void end_streams(CUcontext context)
{
  for (int i = 0; i < stream_count; i++)
    if (streams[i].context == context) streams[i].context = NULL;
}

FUNCTION(cuDevicePrimaryCtxReset_v2)(int device)
{
  int before = 0;
  if (!exists(device)) return NO_DEVICE;
  SOFTWARE("hipGetDevice", (int *))(&before);
  end_streams(&primary[device]);
  int code = SOFTWARE("hipSetDevice", (int))(device);
  if (!code) code = SOFTWARE("hipDeviceReset", (void))();
  SOFTWARE("hipSetDevice", (int))(before);
  return code;
}

FUNCTION(cuDevicePrimaryCtxGetState)(int device, unsigned *flags, int *is_active)
{
  if (!is_initialised) return UNINITIALISED;
  if (!exists(device)) return NO_DEVICE;
  *flags = 0;
  *is_active = primary[device].references != 0;
  return 0;
}

/* The new context is current. */
FUNCTION(cuCtxCreate_v2)(CUcontext *context, unsigned flags, int device)
{
  (void)flags;
  if (!is_initialised) return UNINITIALISED;
  if (!exists(device)) return NO_DEVICE;
  *context = current = calloc(1, sizeof **context);
  current->device = device;
  return 0;
}

FUNCTION(cuCtxDestroy_v2)(CUcontext context)
{
  if (!is_initialised) return UNINITIALISED;
  if (!context || is_primary(context)) return NO_CONTEXT;
  end_streams(context);
  if (current == context) current = NULL;
  free(context);
  return 0;
}

FUNCTION(cuCtxGetCurrent)(CUcontext *context)
{
  if (!is_initialised) return UNINITIALISED;
  *context = current;
  return 0;
}

FUNCTION(cuCtxSetCurrent)(CUcontext context)
{
  if (!is_initialised) return UNINITIALISED;
  current = context;
  return 0;
}

FUNCTION(cuCtxGetDevice)(int *device)
{
  READY();
  *device = current->device;
  return 0;
}

PASS(cuCtxSynchronize, hipDeviceSynchronize, (void), ())

FUNCTION(cuCtxEnablePeerAccess)(CUcontext peer, unsigned flags)
{
  READY();
  return SOFTWARE("hipDeviceEnablePeerAccess", (int, unsigned))(peer->device, flags);
}

FUNCTION(cuCtxDisablePeerAccess)(CUcontext peer)
{
  READY();
  return SOFTWARE("hipDeviceDisablePeerAccess", (int))(peer->device);
}

/* ---- Memory ---- */

static atomic_uint allocations, frees;

unsigned fake_allocations(void)
{
  return allocations;
}

unsigned fake_frees(void)
{
  return frees;
}

PASS(cuMemGetInfo_v2, hipMemGetInfo, (size_t * free_bytes, size_t *total_bytes), (free_bytes, total_bytes))

FUNCTION(cuMemAlloc_v2)(CUdeviceptr *address, size_t bytes)
{
  READY();
  if (!bytes || !address) return INVALID;
  allocations++;
  return SOFTWARE("hipMalloc", (CUdeviceptr *, size_t))(address, bytes);
}

/* The functions of other releases are not called in the tests. */
FUNCTION(cuMemAlloc)(unsigned *address, unsigned bytes)
{
  (void)address;
  (void)bytes;
  return UNSUPPORTED;
}

FUNCTION(cuMemAlloc_v3)(CUdeviceptr *address, size_t bytes, int kind)
{
  (void)address;
  (void)bytes;
  (void)kind;
  return UNSUPPORTED;
}

FUNCTION(cuMemAllocPitch_v2)(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
  READY();
  if (!width || !height || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)) return INVALID;
  *pitch = (width + 511) / 512 * 512;
  return own_cuMemAlloc_v2(address, *pitch * height);
}

FUNCTION(cuMemFree_v2)(CUdeviceptr address)
{
  READY();
  frees += address != 0;
  return SOFTWARE("hipFree", (CUdeviceptr))(address);
}

PASS(cuMemGetAddressRange_v2, hipMemGetAddressRange, (CUdeviceptr * base, size_t *bytes, CUdeviceptr address),
     (base, bytes, address))

/* Of device memory, as if all were of the current context. */
FUNCTION(cuPointerGetAttribute)(void *data, int attribute, CUdeviceptr address)
{
  CUdeviceptr base = 0;
  size_t bytes = 0;
  const uint32_t device_memory = 2;
  READY();
  if (SOFTWARE("hipMemGetAddressRange", (CUdeviceptr *, size_t *, CUdeviceptr))(&base, &bytes, address)) return INVALID;
  if (attribute == 1) memcpy(data, &current, sizeof current);
  if (attribute == 2) memcpy(data, &device_memory, sizeof device_memory);
  if (attribute == 11) memcpy(data, &base, sizeof base);
  if (attribute == 12) memcpy(data, &bytes, sizeof bytes);
  return 0;
}

FUNCTION(cuPointerGetAttributes)(unsigned count, int *attributes, void **data, CUdeviceptr address)
{
  READY();
  for (unsigned i = 0; i < count; i++)
    if (own_cuPointerGetAttribute(data[i], attributes[i], address)) memset(data[i], 0, 4);
  return 0;
}

PASS(cuMemHostAlloc, hipHostMalloc, (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags))

FUNCTION(cuMemAllocHost_v2)(void **ptr, size_t bytes)
{
  return own_cuMemHostAlloc(ptr, bytes, 0);
}

PASS(cuMemFreeHost, hipHostFree, (void *ptr), (ptr))
PASS(cuMemHostGetFlags, hipHostGetFlags, (unsigned *flags, void *ptr), (flags, ptr))
PASS(cuMemAllocManaged, hipMallocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags),
     (address, bytes, flags))
PASS(cuIpcGetMemHandle, hipIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr address), (handle, address))
PASS(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle, (CUdeviceptr * address, CUipcMemHandle handle, unsigned flags),
     (address, handle, flags))
PASS(cuIpcCloseMemHandle, hipIpcCloseMemHandle, (CUdeviceptr address), (address))

/* ---- Work ---- */

enum { COPY_DEFAULT = 4 };

FUNCTION(cuMemcpy)(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  READY();
  return SOFTWARE("hipMemcpy", (CUdeviceptr, CUdeviceptr, size_t, int))(to, from, bytes, COPY_DEFAULT);
}

FUNCTION(cuMemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
  READY();
  return SOFTWARE("hipMemcpyAsync", (CUdeviceptr, CUdeviceptr, size_t, int, CUstream))(to, from, bytes, COPY_DEFAULT,
                                                                                       stream);
}

PASS(cuMemcpyDtoH_v2, hipMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
PASS(cuMemsetD8_v2, hipMemset, (CUdeviceptr address, unsigned char value, size_t count), (address, value, count))
PASS(cuMemsetD8Async, hipMemsetAsync, (CUdeviceptr address, unsigned char value, size_t count, CUstream stream),
     (address, value, count, stream))

PASS(cuMemsetD32Async, hipMemsetD32Async, (CUdeviceptr address, unsigned value, size_t count, CUstream stream),
     (address, value, count, stream))

/* ---- Streams and events ---- */

static CUstream captured;

void fake_capture(CUstream stream)
{
  captured = stream;
}

FUNCTION(cuStreamCreate)(CUstream *stream, unsigned flags)
{
  READY();
  int code = SOFTWARE("hipStreamCreateWithFlags", (CUstream *, unsigned))(stream, flags);
  if (!code && stream_count < 64) {
    streams[stream_count].stream = *stream;
    streams[stream_count++].context = current;
  }
  return code;
}

PASS(cuStreamDestroy_v2, hipStreamDestroy, (CUstream stream), (stream))
PASS(cuStreamSynchronize, hipStreamSynchronize, (CUstream stream), (stream))
PASS(cuStreamWaitEvent, hipStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags))

FUNCTION(cuStreamGetCtx)(CUstream stream, CUcontext *context)
{
  READY();
  *context = NULL;
  for (int i = 0; i < stream_count; i++)
    if (streams[i].stream == stream) *context = streams[i].context;
  return *context ? 0 : NO_STREAM;
}

FUNCTION(cuStreamQuery)(CUstream stream)
{
  CUcontext context = current;
  READY();
  if ((uintptr_t)stream > 2 && own_cuStreamGetCtx(stream, &context)) return NO_STREAM;
  return SOFTWARE("hipStreamQuery", (CUstream))(stream);
}

FUNCTION(cuStreamIsCapturing)(CUstream stream, int *state)
{
  READY();
  *state = captured && stream == captured;
  return 0;
}

PASS(cuEventCreate, hipEventCreateWithFlags, (CUevent * event, unsigned flags), (event, flags))
PASS(cuEventDestroy_v2, hipEventDestroy, (CUevent event), (event))
PASS(cuEventRecord, hipEventRecord, (CUevent event, CUstream stream), (event, stream))
PASS(cuEventQuery, hipEventQuery, (CUevent event), (event))
PASS(cuEventSynchronize, hipEventSynchronize, (CUevent event), (event))

/* ---- Pools ---- */

PASS(cuMemAllocAsync, hipMallocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))

FUNCTION(cuMemAllocAsync_ptsz)(CUdeviceptr *address, size_t bytes, CUstream stream)
{
  return own_cuMemAllocAsync(address, bytes, stream ? stream : (CUstream)2);
}

PASS(cuMemAllocFromPoolAsync, hipMallocFromPoolAsync,
     (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream), (address, bytes, pool, stream))
PASS(cuMemFreeAsync, hipFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))

FUNCTION(cuMemFreeAsync_ptsz)(CUdeviceptr address, CUstream stream)
{
  return own_cuMemFreeAsync(address, stream ? stream : (CUstream)2);
}

FUNCTION(cuMemPoolCreate)(CUmemoryPool *pool, const void *properties)
{
  return SOFTWARE("hipMemPoolCreate", (CUmemoryPool *, const void *))(pool, properties);
}

FUNCTION(cuMemPoolDestroy)(CUmemoryPool pool)
{
  return SOFTWARE("hipMemPoolDestroy", (CUmemoryPool))(pool);
}

FUNCTION(cuMemPoolGetAttribute)(CUmemoryPool pool, int attribute, void *value)
{
  return SOFTWARE("hipMemPoolGetAttribute", (CUmemoryPool, int, void *))(pool, attribute, value);
}

FUNCTION(cuMemPoolTrimTo)(CUmemoryPool pool, size_t keep_bytes)
{
  return SOFTWARE("hipMemPoolTrimTo", (CUmemoryPool, size_t))(pool, keep_bytes);
}

FUNCTION(cuDeviceGetDefaultMemPool)(CUmemoryPool *pool, int device)
{
  return SOFTWARE("hipDeviceGetDefaultMemPool", (CUmemoryPool *, int))(pool, device);
}

FUNCTION(cuDeviceGetMemPool)(CUmemoryPool *pool, int device)
{
  return SOFTWARE("hipDeviceGetMemPool", (CUmemoryPool *, int))(pool, device);
}

/* ---- Functions by their names ---- */

static int find(const char *name, void **function, int version, uint64_t flags);

FUNCTION(cuGetProcAddress)(const char *name, void **function, int version, uint64_t flags)
{
  return find(name, function, version, flags);
}

FUNCTION(cuGetProcAddress_v2)(const char *name, void **function, int version, uint64_t flags, int *status)
{
  int code = find(name, function, version, flags);
  if (status) *status = code ? 1 : 0;
  return code;
}

#define ROW(name, base, since, parameters, arguments) {#name, #base, since, (void (*)(void))own_##name},
static const struct {
  const char *name, *base;
  int since;
  void (*function)(void);
} rows[] = {DRIVER_FUNCTIONS(ROW)};

/* The newest that is not newer than the version; for threads' own default streams with flag 2, where there is one. */
static int find(const char *name, void **function, int version, uint64_t flags)
{
  int best = -1;
  bool best_is_per_thread = false;
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
    const char *suffix = strstr(rows[i].name, "_ptsz");
    if (strcmp(rows[i].base, name) != 0 || rows[i].since > version || (suffix && flags != 2)) continue;
    if (best >= 0 && rows[i].since < rows[best].since) continue;
    if (best_is_per_thread && !suffix) continue;
    best = i;
    best_is_per_thread = suffix != NULL;
  }
  *function = NULL;
  if (best >= 0) memcpy(function, &rows[best].function, sizeof *function);
  return best >= 0 ? 0 : NOT_FOUND;
}

#define EXPORT(name, base, since, parameters, arguments) \
  int name parameters                                    \
  {                                                      \
    return own_##name arguments;                         \
  }
DRIVER_FUNCTIONS(EXPORT)
