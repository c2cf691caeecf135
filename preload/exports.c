/* SPDX-License-Identifier: MIT */
/* exports.c: the hooks, which the preload object exports under the names of the runtime's functions: one for each row of
 * the table in hooks.h. Each calls the operation that does the work (operations.h, pools.h, streams.h).
 *
 * Functions that a program may call before it allocates are passed on. They are hooked since the software device takes
 * its settings from the graph and the environment when hipmm is initialised, and cannot take them after its first use. */
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "operations.h"
#include "pools.h"
#include "streams.h"

#include <dlfcn.h>
#include <string.h>

static const char self; /* an address in this object */

/* ---- Functions by their names ---- */

/* The hook for `given`, the runtime's function `name`; `given` itself if there is no hook, or if the hook passes calls on
 * to another function: the runtime has several of one name for several versions of the API. */
static void *exports_find_hook(const char *name, void *given)
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

/* hipGetProcAddress(). */
static int exports_find(enum hook hook, const char *name, void **function, int version, uint64_t flags, int *status)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(const char *, void **, int, uint64_t, int *))next_function_of(hook))(name, function, version,
                                                                                            flags, status);
  if (!code && is_outermost && name && function && *function) *function = exports_find_hook(name, *function);
  reentry_leave();
  return code;
}

/* ---- The hooks ---- */

/* The runtime's function, after the software device is set up. */
static next_function exports_next(enum hook hook)
{
  init_enter();
  reentry_leave();
  return next_function_of(hook);
}

#define EXPORT_DECLARE(api, name, operation, parameters, arguments) int api##name parameters;
#define EXPORT_DECLARE_PASSED(api, name, parameters, arguments)     int api##name parameters;
#define EXPORT_NOTHING(api, name)

#define EXPORT_DEFINE(api, name, operation, parameters, arguments) \
  int api##name parameters                                         \
  {                                                                \
    const enum hook hook = HOOK_##api##name;                       \
    return operation arguments;                                    \
  }

#define EXPORT_DEFINE_PASSED(api, name, parameters, arguments)           \
  int api##name parameters                                               \
  {                                                                      \
    return ((int(*) parameters)exports_next(HOOK_##api##name))arguments; \
  }

#pragma GCC visibility push(default)
HOOKS(EXPORT_DECLARE, EXPORT_DECLARE, EXPORT_DECLARE_PASSED, EXPORT_NOTHING)
HOOKS(EXPORT_DEFINE, EXPORT_DEFINE, EXPORT_DEFINE_PASSED, EXPORT_NOTHING)
#pragma GCC visibility pop
