/* SPDX-License-Identifier: MIT */
/* early_calls.c: functions that a program may call before it allocates, and functions that it gets by their names. The
 * calls are passed on. They are hooked since the software device takes its settings from the graph and the environment
 * when hipmm is initialised, and cannot take them after its first use. */
#include "exports.h"
#include "init.h"
#include "next_symbol.h"

#include <dlfcn.h>
#include <string.h>

static const char self; /* an address in this object */

/* The runtime's function, after the software device is set up. */
static next_function early_calls_next(enum hook hook)
{
  init_enter();
  reentry_leave();
  return next_function_of(hook);
}

/* ---- Functions by their names ---- */

/* The hook for `given`, the runtime's function `name`; `given` itself if there is no hook, or if the hook passes calls on
 * to another function: the runtime has several of one name for several versions of the API. */
static void *early_calls_find_hook(const char *name, void *given)
{
  Dl_info info;
  enum hook hook = hook_find(name);
  next_function function = hook < HOOK_COUNT && hook_family(hook) == FAMILY_HIP ? next_find(hook) : NULL;
  if (!function || memcmp(&function, &given, sizeof given) != 0) return given;
  void *object = dladdr(&self, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  void *own = object ? dlsym(object, name) : NULL;
  if (object) dlclose(object); /* it is never unloaded */
  return own ? own : given;
}

int hipGetProcAddress(const char *name, void **function, int version, uint64_t flags, int *status)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(const char *, void **, int, uint64_t, int *))next_function_of(HOOK_hipGetProcAddress))(
      name, function, version, flags, status);
  if (!code && is_outermost && name && function && *function) *function = early_calls_find_hook(name, *function);
  reentry_leave();
  return code;
}

/* ---- Calls that are passed on ---- */

int hipInit(unsigned flags)
{
  return ((int (*)(unsigned))early_calls_next(HOOK_hipInit))(flags);
}

int hipGetDeviceCount(int *count)
{
  return ((int (*)(int *))early_calls_next(HOOK_hipGetDeviceCount))(count);
}

int hipGetDevice(int *device)
{
  return ((int (*)(int *))early_calls_next(HOOK_hipGetDevice))(device);
}

int hipDeviceGet(int *device, int ordinal)
{
  return ((int (*)(int *, int))early_calls_next(HOOK_hipDeviceGet))(device, ordinal);
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
  return ((int (*)(int *, int, int))early_calls_next(HOOK_hipDeviceGetAttribute))(value, attribute, device);
}

int hipDeviceGetName(char *name, int length, int device)
{
  return ((int (*)(char *, int, int))early_calls_next(HOOK_hipDeviceGetName))(name, length, device);
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
  return ((int (*)(size_t *, int))early_calls_next(HOOK_hipDeviceTotalMem))(bytes, device);
}

int hipGetDeviceProperties(void *properties, int device)
{
  return ((int (*)(void *, int))early_calls_next(HOOK_hipGetDeviceProperties))(properties, device);
}

int hipDeviceSynchronize(void)
{
  return ((int (*)(void))early_calls_next(HOOK_hipDeviceSynchronize))();
}

int hipEventCreate(hipmm_hip_event_t *event)
{
  return ((int (*)(hipmm_hip_event_t *))early_calls_next(HOOK_hipEventCreate))(event);
}

int hipEventCreateWithFlags(hipmm_hip_event_t *event, unsigned flags)
{
  return ((int (*)(hipmm_hip_event_t *, unsigned))early_calls_next(HOOK_hipEventCreateWithFlags))(event, flags);
}
