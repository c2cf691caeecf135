/* SPDX-License-Identifier: MIT */
/* contexts.c: see contexts.h. The driver's own functions are called, so nothing here is served or counted. A primary
 * context that was found once is retained for the life of the process, as hipmm's runtime does with a device that it uses:
 * its handle then stays what it is. */
#include "contexts.h"

#include "devices.h"
#include "next_symbol.h"

#include <stdatomic.h>

static void *_Atomic primary[DEVICES_MOST]; /* those that are known */

static void *contexts_current(void)
{
  void *context = NULL;
  next_function function = next_find(HOOK_cuCtxGetCurrent);
  if (!function || ((int (*)(void **))function)(&context)) return NULL;
  return context;
}

/* ---- Primary contexts ---- */

static bool contexts_is_active(int device)
{
  unsigned flags;
  int is_active = 0;
  next_function function = next_find(HOOK_cuDevicePrimaryCtxGetState);
  return function && !((int (*)(int, unsigned *, int *))function)(device, &flags, &is_active) && is_active;
}

/* A reference, to be stored in `primary` or released. NULL on failure. */
static void *contexts_retain(int device)
{
  void *context = NULL;
  next_function function = next_find(HOOK_cuDevicePrimaryCtxRetain);
  if (!function || ((int (*)(void **, int))function)(&context, device)) return NULL;
  return context;
}

static void contexts_release(int device)
{
  next_function function = next_find(HOOK_cuDevicePrimaryCtxRelease_v2);
  if (function) ((int (*)(int))function)(device);
}

/* Stores the reference, unless another thread has stored one. */
static void contexts_store(int device, void *context)
{
  void *none = NULL;
  if (!atomic_compare_exchange_strong(&primary[device], &none, context)) contexts_release(device);
}

void *contexts_primary(int device)
{
  if (device < 0 || device >= DEVICES_MOST) return NULL;
  void *context = atomic_load_explicit(&primary[device], memory_order_acquire);
  if (context || !(context = contexts_retain(device))) return context;
  contexts_store(device, context);
  return context;
}

/* Asks the driver for contexts that are not known yet. A device that nobody uses has none, and gets none. */
static int contexts_search(const void *context)
{
  int count = 0;
  next_function function = next_find(HOOK_cuDeviceGetCount);
  if (!function || ((int (*)(int *))function)(&count)) return -1;
  for (int device = 0; device < count && device < DEVICES_MOST; device++) {
    void *known = atomic_load(&primary[device]); /* another thread may have found it just now */
    if (known == context) return device;
    if (known || !contexts_is_active(device)) continue;
    void *found = contexts_retain(device);
    if (found == context) {
      contexts_store(device, found);
      return device;
    }
    if (found) contexts_release(device);
  }
  return -1;
}

int contexts_device_of(const void *context)
{
  if (!context) return -1;
  for (int device = 0; device < DEVICES_MOST; device++)
    if (atomic_load_explicit(&primary[device], memory_order_acquire) == context) return device;
  return contexts_search(context);
}

/* ---- What is current ---- */

int contexts_current_device(enum family family)
{
  int device = 0;
  void *context = family == FAMILY_HIP ? NULL : contexts_current();
  if (family == FAMILY_DRIVER) return contexts_device_of(context);
  if (context && contexts_device_of(context) < 0) return -1;
  next_function function = next_find(family == FAMILY_HIP ? HOOK_hipGetDevice : HOOK_cudaGetDevice);
  if (!function || ((int (*)(int *))function)(&device)) return 0;
  return device;
}

bool contexts_are_primary(hipmm_stream_t stream)
{
  void *context = NULL;
  next_function function = next_find(HOOK_cuStreamGetCtx);
  if (contexts_device_of(contexts_current()) < 0) return false;
  if ((uintptr_t)stream <= 2) return true; /* of the current context */
  return function && !((int (*)(hipmm_stream_t, void **))function)(stream, &context) &&
         contexts_device_of(context) >= 0;
}

static void contexts_make_current(void *context)
{
  next_function function = next_find(HOOK_cuCtxSetCurrent);
  if (function) ((int (*)(void *))function)(context);
}

struct context_switch contexts_enter(enum family family, int device)
{
  struct context_switch before = {.previous = NULL};
  if (family == FAMILY_HIP || !next_find(HOOK_cuCtxGetCurrent)) return before;
  before.previous = contexts_current();
  before.is_switched = contexts_device_of(before.previous) < 0;
  if (!before.is_switched) return before;
  next_function synchronize = before.previous ? next_find(HOOK_cuCtxSynchronize) : NULL;
  if (synchronize) ((int (*)(void))synchronize)();
  contexts_make_current(contexts_primary(device));
  return before;
}

void contexts_leave(struct context_switch before)
{
  if (before.is_switched) contexts_make_current(before.previous);
}
