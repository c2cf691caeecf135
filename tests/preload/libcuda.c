/* SPDX-License-Identifier: MIT */
/* libcuda.c: a stand-in for NVIDIA's driver, libcuda.so.1: its functions in terms of the software device's. It has contexts,
 * as the driver, and functions need one; a primary context is one for each device. cuGetProcAddress() gives other addresses
 * than dlsym(), which a driver may do, and for some names several functions, by the release. */
#include "libcuda_own.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void *fake_software(const char *name)
{
  static void *library;
  const char *file = getenv("FAKE_SOFTWARE");
  if (!library) library = dlopen(file ? file : "", RTLD_NOW | RTLD_LOCAL);
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) fprintf(stderr, "%s: no %s\n", file ? file : "FAKE_SOFTWARE", name);
  if (!function) exit(99);
  return function;
}

/* ---- Contexts ---- */

enum { DEVICES = 4 };

static struct CUctx_st primary[DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2}, {.device = 3}};
_Thread_local CUcontext fake_current;
static atomic_bool is_initialised;

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

int fake_ready(void)
{
  if (!is_initialised) return UNINITIALISED;
  if (!fake_current) return NO_CONTEXT;
  return SOFTWARE("hipSetDevice", (int))(fake_current->device);
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

FUNCTION(cuDevicePrimaryCtxReset_v2)(int device)
{
  int before = 0;
  if (!exists(device)) return NO_DEVICE;
  SOFTWARE("hipGetDevice", (int *))(&before);
  fake_end_streams(&primary[device]);
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
  *context = fake_current = calloc(1, sizeof **context);
  fake_current->device = device;
  return 0;
}

FUNCTION(cuCtxDestroy_v2)(CUcontext context)
{
  if (!is_initialised) return UNINITIALISED;
  if (!context || is_primary(context)) return NO_CONTEXT;
  fake_end_streams(context);
  if (fake_current == context) fake_current = NULL;
  free(context);
  return 0;
}

FUNCTION(cuCtxGetCurrent)(CUcontext *context)
{
  if (!is_initialised) return UNINITIALISED;
  *context = fake_current;
  return 0;
}

FUNCTION(cuCtxSetCurrent)(CUcontext context)
{
  if (!is_initialised) return UNINITIALISED;
  fake_current = context;
  return 0;
}

FUNCTION(cuCtxGetDevice)(int *device)
{
  READY();
  *device = fake_current->device;
  return 0;
}

static _Thread_local CUcontext last_synchronized;

CUcontext fake_synchronized(void)
{
  return last_synchronized;
}

FUNCTION(cuCtxSynchronize)(void)
{
  READY();
  last_synchronized = fake_current;
  return SOFTWARE("hipDeviceSynchronize", (void))();
}

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
