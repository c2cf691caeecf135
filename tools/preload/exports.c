/* SPDX-License-Identifier: MIT */
/* exports.c: the hooks, which the preload object exports under the names of the runtime's and the driver's functions: one
 * for each row of the table in hooks.h. Each calls the operation that does the work (operations.h, pools.h, streams.h). And
 * the functions that give others by their names, which give a hook where there is one: dlsym(), hipGetProcAddress() and
 * cuGetProcAddress(), through which a CUDA runtime that is linked statically finds the driver.
 *
 * Functions that a program may call before it allocates are passed on. They are hooked since the software device takes
 * its settings from the graph and the environment when hipmm is initialised, and cannot take them after its first use. */
#include "checks.h"
#include "failure.h"
#include "init.h"
#include "next_symbol.h"
#include "operations.h"
#include "pools.h"
#include "shortage.h"
#include "streams.h"

#include <dlfcn.h>
#include <string.h>

/* Operations of this file. */
static int exports_find(enum hook hook, const char *name, void **function, int version, uint64_t flags, int *status);
static int exports_find_in_driver(enum hook hook, const char *name, void **function, int version, uint64_t flags,
                                  int *status);
static int exports_find_in_old_driver(enum hook hook, const char *name, void **function, int version, uint64_t flags);

/* ---- The hooks ---- */

/* The runtime's function, after the software device is set up. Elsewhere later calls from the same place go straight to it. */
static next_function exports_next(enum hook hook, const void *caller)
{
  init_enter();
  reentry_leave();
  next_function function = next_function_of(hook);
  if (next_find(hook) && !init_is_for_software() && !checks_are_on()) next_go_straight(hook, caller, function);
  return function;
}

#define EXPORT_DECLARE(api, name, operation, parameters, arguments) int api##name parameters;
#define EXPORT_DECLARE_PASSED(api, name, parameters, arguments)     int api##name parameters;
#define EXPORT_NOTHING(api, name)

/* A call that is not for the hook, but for a function that is no runtime's. */
#define EXPORT_BEGIN(api, name, parameters, arguments)    \
  const enum hook hook = HOOK_##api##name;                \
  const void *const caller = __builtin_return_address(0); \
  const next_function apart = next_apart(hook, caller);   \
  if (__builtin_expect(apart != NULL, 0)) return ((int(*) parameters)apart)arguments;

#define EXPORT_WITH_HOOK(...) (hook, ##__VA_ARGS__)

#define EXPORT_DEFINE(api, name, operation, parameters, arguments) \
  int api##name parameters                                         \
  {                                                                \
    EXPORT_BEGIN(api, name, parameters, arguments)                 \
    return operation EXPORT_WITH_HOOK arguments;                   \
  }

#define EXPORT_STRAIGHT(api, name) next_straight(HOOK_##api##name, __builtin_return_address(0))

#define EXPORT_DEFINE_PASSED(api, name, parameters, arguments)                                \
  int api##name parameters                                                                    \
  {                                                                                           \
    const next_function straight = EXPORT_STRAIGHT(api, name);                                \
    if (__builtin_expect(straight != NULL, 1)) return ((int(*) parameters)straight)arguments; \
    EXPORT_BEGIN(api, name, parameters, arguments)                                            \
    return ((int(*) parameters)exports_next(hook, caller))arguments;                          \
  }

#define EXPORT_DEFINE_REPEATED(api, name, parameters, arguments)               \
  int api##name parameters                                                     \
  {                                                                            \
    int(*next) parameters = (int(*) parameters)EXPORT_STRAIGHT(api, name);     \
    int code;                                                                  \
    if (__builtin_expect(next == NULL, 0)) {                                   \
      EXPORT_BEGIN(api, name, parameters, arguments)                           \
      next = (int(*) parameters)exports_next(hook, caller);                    \
    }                                                                          \
    SHORTAGE_REPEAT(HOOK_##api##name, !reentry_depth(), code, next arguments); \
    return code;                                                               \
  }

#define EXPORT_DECLARE_WORK(api, name, parameters, arguments, before, after) int api##name parameters;

#define EXPORT_DEFINE_WORK(api, name, parameters, arguments, before, after)                   \
  int api##name parameters                                                                    \
  {                                                                                           \
    const next_function straight = EXPORT_STRAIGHT(api, name);                                \
    if (__builtin_expect(straight != NULL, 1)) return ((int(*) parameters)straight)arguments; \
    EXPORT_BEGIN(api, name, parameters, arguments)                                            \
    int(*next) parameters = (int(*) parameters)exports_next(hook, caller);                    \
    const bool is_observed = checks_are_on();                                                 \
    if (is_observed) before;                                                                  \
    const int code = next arguments;                                                          \
    if (is_observed && !code) after;                                                          \
    return code;                                                                              \
  }

#pragma GCC visibility push(default)
HOOKS(EXPORT_DECLARE, EXPORT_DECLARE, EXPORT_DECLARE_PASSED, EXPORT_DECLARE_PASSED, EXPORT_DECLARE_WORK, EXPORT_NOTHING)
HOOKS(EXPORT_DEFINE, EXPORT_DEFINE, EXPORT_DEFINE_PASSED, EXPORT_DEFINE_REPEATED, EXPORT_DEFINE_WORK, EXPORT_NOTHING)
#pragma GCC visibility pop

/* ---- Functions by their names ---- */

#define EXPORT_ADDRESS(api, name, ...) (next_function) api##name,
#define EXPORT_NO_ADDRESS(api, name)   NULL,
static const next_function hooks[] = {
    HOOKS(EXPORT_ADDRESS, EXPORT_ADDRESS, EXPORT_ADDRESS, EXPORT_ADDRESS, EXPORT_ADDRESS, EXPORT_NO_ADDRESS)};

/* The hook, or `given` where calls of the hook are not served. */
static void *exports_hook_or(enum hook hook, void *given)
{
  void *own = given;
  bool is_wanted = !hook_is_of_work(hook) || checks_are_on();
  if (is_wanted && !init_is_off(hook_family(hook))) memcpy(&own, &hooks[hook], sizeof own);
  return own;
}

/* Whether the hook passes calls on to `given`: a process may have several libraries with a function of that name. */
static bool exports_is_before(enum hook hook, const void *given)
{
  next_function next = hook < HOOK_COUNT && hooks[hook] ? next_find(hook) : NULL;
  return next && !memcmp(&next, &given, sizeof given);
}

/* hipGetProcAddress(). The runtime has several functions of one name, for several versions of the API. */
static int exports_find(enum hook hook, const char *name, void **function, int version, uint64_t flags, int *status)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(const char *, void **, int, uint64_t, int *))next_function_of(hook))(name, function, version,
                                                                                            flags, status);
  enum hook found = !code && is_outermost && name && function && *function ? hook_find(name) : HOOK_COUNT;
  if (exports_is_before(found, function ? *function : NULL)) *function = exports_hook_or(found, *function);
  reentry_leave();
  return code;
}

/* ---- The driver's functions by their names ---- */

/* The release of CUDA (major x 1000 + minor x 10) since which cuGetProcAddress() gives the function that the hook stands in
 * front of, for the name without "_v2" and "_ptsz". */
/* clang-format off */
static const int since[HOOK_COUNT] = {
    [HOOK_cuMemAlloc_v2] = 3020, [HOOK_cuMemAllocPitch_v2] = 3020, [HOOK_cuMemFree_v2] = 3020,
    [HOOK_cuMemAllocAsync] = 11020, [HOOK_cuMemAllocAsync_ptsz] = 11020, [HOOK_cuMemAllocFromPoolAsync] = 11020,
    [HOOK_cuMemAllocFromPoolAsync_ptsz] = 11020, [HOOK_cuMemFreeAsync] = 11020, [HOOK_cuMemFreeAsync_ptsz] = 11020,
    [HOOK_cuMemAllocManaged] = 6000, [HOOK_cuMemHostAlloc] = 2020, [HOOK_cuMemAllocHost_v2] = 3020,
    [HOOK_cuMemFreeHost] = 2000, [HOOK_cuMemGetInfo_v2] = 3020, [HOOK_cuMemGetAddressRange_v2] = 3020,
    [HOOK_cuMemHostGetFlags] = 2030, [HOOK_cuPointerGetAttribute] = 4000, [HOOK_cuPointerGetAttributes] = 7000,
    [HOOK_cuIpcGetMemHandle] = 4010, [HOOK_cuIpcOpenMemHandle_v2] = 11000, [HOOK_cuIpcOpenMemHandle] = 4010,
    [HOOK_cuIpcCloseMemHandle] = 4010, [HOOK_cuMemPoolExportPointer] = 11020, [HOOK_cuMemPoolCreate] = 11020,
    [HOOK_cuMemPoolDestroy] = 11020, [HOOK_cuStreamCreate] = 2000, [HOOK_cuStreamCreateWithPriority] = 5050,
    [HOOK_cuStreamDestroy_v2] = 4000, [HOOK_cuStreamDestroy] = 2000, [HOOK_cuDevicePrimaryCtxReset_v2] = 11000,
    [HOOK_cuDevicePrimaryCtxReset] = 7000, [HOOK_cuDevicePrimaryCtxRetain] = 7000,
    [HOOK_cuDeviceGetDefaultMemPool] = 11020, [HOOK_cuDeviceGetMemPool] = 11020, [HOOK_cuDeviceSetMemPool] = 11020,
    [HOOK_cuMemPoolGetAttribute] = 11020, [HOOK_cuMemPoolSetAttribute] = 11020, [HOOK_cuMemPoolSetAccess] = 11020,
    [HOOK_cuMemPoolTrimTo] = 11020, [HOOK_cuMemGetDefaultMemPool] = 13000, [HOOK_cuMemGetMemPool] = 13000,
    [HOOK_cuMemSetMemPool] = 13000, [HOOK_cuCtxEnablePeerAccess] = 4000, [HOOK_cuCtxDisablePeerAccess] = 4000,
    [HOOK_cuGetProcAddress_v2] = 12000, [HOOK_cuGetProcAddress] = 11030, [HOOK_cuEventRecord] = 2000,
    [HOOK_cuEventRecord_ptsz] = 7000, [HOOK_cuEventRecordWithFlags] = 11010, [HOOK_cuEventRecordWithFlags_ptsz] = 11010,
    [HOOK_cuEventQuery] = 2000, [HOOK_cuEventSynchronize] = 2000, [HOOK_cuEventDestroy_v2] = 4000,
    [HOOK_cuEventElapsedTime] = 2000, [HOOK_cuEventElapsedTime_v2] = 12080, [HOOK_cuLaunchHostFunc] = 10000,
    [HOOK_cuLaunchHostFunc_ptsz] = 10000, [HOOK_cuStreamAddCallback] = 5000, [HOOK_cuStreamAddCallback_ptsz] = 7000,
    [HOOK_cuStreamWaitEvent] = 3020, [HOOK_cuStreamWaitEvent_ptsz] = 7000, [HOOK_cuStreamSynchronize] = 2000,
    [HOOK_cuStreamSynchronize_ptsz] = 7000, [HOOK_cuStreamQuery] = 2000, [HOOK_cuStreamQuery_ptsz] = 7000,
    [HOOK_cuCtxSynchronize] = 2000, [HOOK_cuMemCreate] = 10020, [HOOK_cuArrayCreate_v2] = 3020,
    [HOOK_cuArray3DCreate_v2] = 3020, [HOOK_cuMipmappedArrayCreate] = 5000, [HOOK_cuModuleLoad] = 2000,
    [HOOK_cuModuleLoadData] = 2000, [HOOK_cuModuleLoadDataEx] = 2010, [HOOK_cuModuleLoadFatBinary] = 2000,
    [HOOK_cuLibraryLoadData] = 12000, [HOOK_cuLibraryLoadFromFile] = 12000, [HOOK_cuGraphInstantiateWithFlags] = 12000,
    [HOOK_cuGraphInstantiateWithParams] = 12000, [HOOK_cuGraphInstantiateWithParams_ptsz] = 12000,
    [HOOK_cuGraphUpload] = 11010, [HOOK_cuGraphUpload_ptsz] = 11010, [HOOK_cuGraphLaunch] = 10000,
    [HOOK_cuGraphLaunch_ptsz] = 10000, [HOOK_cuLaunchKernel] = 4000, [HOOK_cuLaunchKernel_ptsz] = 7000,
    [HOOK_cuLaunchKernelEx] = 11060, [HOOK_cuLaunchKernelEx_ptsz] = 11060,
    [HOOK_cuEventCreate] = 2000, [HOOK_cuMemHostRegister_v2] = 6050, [HOOK_cuMemRelease] = 10020, [HOOK_cuMemMap] =
    10020, [HOOK_cuMemUnmap] = 10020, [HOOK_cuMemRetainAllocationHandle] = 11000, [HOOK_cuMemSetAccess] = 10020,
    [HOOK_cuMemImportFromShareableHandle] = 10020, [HOOK_cuMulticastCreate] = 12010, [HOOK_cuMulticastBindMem] =
    12010, [HOOK_cuMulticastBindAddr] = 12010, [HOOK_cuCtxCreate_v2] = 3020, [HOOK_cuCtxCreate_v3] = 11040,
    [HOOK_cuCtxCreate_v4] = 12050, [HOOK_cuGreenCtxCreate] = 12040, [HOOK_cuCtxSetLimit] = 3010,
    [HOOK_cuModuleGetFunction] = 2000, [HOOK_cuModuleGetGlobal_v2] = 3020, [HOOK_cuLibraryGetModule] = 12000,
    [HOOK_cuLibraryGetGlobal] = 12000, [HOOK_cuKernelGetFunction] = 12000, [HOOK_cuFuncLoad] = 12040,
    [HOOK_cuGraphInstantiate] = 10000, [HOOK_cuGraphInstantiate_v2] = 11000, [HOOK_cuLaunchCooperativeKernel] = 9000,
    [HOOK_cuLaunchCooperativeKernel_ptsz] = 9000, [HOOK_cuDeviceTotalMem_v2] = 3020};
/* clang-format on */

/* The driver's own cuGetProcAddress(). */
static int exports_ask_driver(enum hook hook, const char *name, void **function, int version, uint64_t flags,
                              int *status)
{
  typedef int old_function(const char *, void **, int, uint64_t);
  typedef int new_function(const char *, void **, int, uint64_t, int *);
  next_function next = next_function_of(hook);
  if (hook == HOOK_cuGetProcAddress) return ((old_function *)next)(name, function, version, flags);
  return ((new_function *)next)(name, function, version, flags, status);
}

/* Whether `name` is what cuGetProcAddress() takes for the function of the hook. Since release 12 the name
 * "cuGraphInstantiate" stands for cuGraphInstantiateWithFlags(). */
static bool exports_has_name(enum hook hook, const char *name, bool *is_per_thread_out)
{
  const char *own = hook_name(hook);
  size_t length = strlen(name);
  if (!since[hook] || strncmp(own, name, length) != 0) return false;
  *is_per_thread_out = !strcmp(own + length, "_ptsz");
  return *is_per_thread_out || !own[length] || !strncmp(own + length, "_v", 2) || !strcmp(own + length, "WithFlags");
}

/* The hook for `given`, which the driver gave for `name`. Addresses from cuGetProcAddress() need not be those from dlsym(),
 * and a later release may bring another function of the name: the hook's own function is the one that the driver gives for
 * the release that brought it. */
static void *exports_hook_of_driver(enum hook finder, const char *name, void *given)
{
  enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };
  for (int i = HOOK_cuMemAlloc_v2; i < HOOK_COUNT; i++) {
    enum hook hook = (enum hook)i;
    bool is_per_thread = false;
    int status = 0;
    void *known = NULL;
    if (!exports_has_name(hook, name, &is_per_thread) || !next_find(hook)) continue;
    int code = exports_ask_driver(finder, name, &known, since[hook], is_per_thread ? PER_THREAD_STREAM : LEGACY_STREAM,
                                  &status);
    if (!code && known == given) return exports_hook_or(hook, given);
  }
  return given;
}

/* At any depth: what the runtime finds when it starts, which may be within a call that hipmm passes on, it calls later. */
static int exports_find_in_driver(enum hook hook, const char *name, void **function, int version, uint64_t flags,
                                  int *status)
{
  int code = exports_ask_driver(hook, name, function, version, flags, status);
  if (!code && name && function && *function) *function = exports_hook_of_driver(hook, name, *function);
  return code;
}

static int exports_find_in_old_driver(enum hook hook, const char *name, void **function, int version, uint64_t flags)
{
  return exports_find_in_driver(hook, name, function, version, flags, NULL);
}

/* ---- dlsym() ----
 *
 * A program that opens libcuda.so.1, or a runtime, finds its functions so. hipmm's own runtime `nvidia` must have the
 * driver's own ones, and calls hipmm_run_symbol(). */

/* dlsym() for a name that a hook may have. Where only hipmm has the function, the program gets NULL, and the message of
 * dlerror(), as it would without hipmm. */
static void *exports_look_up(void *library, const char *name)
{
  enum hook hook = hook_find(name);
  void *own = NULL;
  if (hook < HOOK_COUNT && hooks[hook]) memcpy(&own, &hooks[hook], sizeof own);
  bool is_there = own && next_find(hook);
  /* hipmm is linked symbolically: it would be searched before the program, which may have functions of these names. */
  if (library == RTLD_DEFAULT) library = dlopen(NULL, RTLD_LAZY);
  void *given = next_in_order(name, next_dlsym()(library, name));
  if (own && given == own && !is_there) {
    given = next_dlsym()(RTLD_NEXT, name); /* for its message */
    if (given == own) given = NULL; /* and so that the call is no jump, after which the loader saw another caller */
  }
  return is_there && exports_is_before(hook, given) ? exports_hook_or(hook, given) : given;
}

/* Whether the caller, for which the loader looks, has a function of that name of its own: the hook finds it too. */
static bool exports_is_own(const char *name, const void *caller)
{
  enum hook hook = hook_find(name);
  return hook < HOOK_COUNT && next_own(hook, caller);
}

/* The function to go on with. Not instrumented: a sanitizer calls dlsym() before it is ready. */
__attribute__((used, no_sanitize("address", "thread", "undefined"))) next_lookup *exports_choose_lookup(
    void *library, const char *name, const void *caller);
next_lookup *exports_choose_lookup(void *library, const char *name, const void *caller)
{
  bool is_hooked = library != RTLD_NEXT && name &&
                   ((name[0] == 'c' && name[1] == 'u') || (name[0] == 'h' && name[1] == 'i' && name[2] == 'p'));
  if (is_hooked && library == RTLD_DEFAULT && exports_is_own(name, caller)) is_hooked = false;
  return is_hooked ? exports_look_up : next_dlsym();
}

/* For RTLD_NEXT and RTLD_DEFAULT the loader looks at the address that its function returns to, so hipmm's dlsym() goes on to
 * that function with a jump, which C cannot promise. Where NVIDIA's driver is. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "  .cfi_startproc\n"
        "  endbr64\n"
        "  push %rdi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  push %rsi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  sub $8, %rsp\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  mov 24(%rsp), %rdx\n" /* the return address */
        "  call exports_choose_lookup\n"
        "  add $8, %rsp\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  pop %rsi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  pop %rdi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  jmp *%rax\n"
        "  .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "  .cfi_startproc\n"
        "  hint #34\n" /* bti c */
        "  stp x29, x30, [sp, #-32]!\n"
        "  .cfi_def_cfa_offset 32\n"
        "  .cfi_offset 29, -32\n"
        "  .cfi_offset 30, -24\n"
        "  stp x0, x1, [sp, #16]\n"
        "  mov x2, x30\n" /* the return address */
        "  bl exports_choose_lookup\n"
        "  mov x16, x0\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        "  .cfi_restore 29\n"
        "  .cfi_restore 30\n"
        "  .cfi_def_cfa_offset 0\n"
        "  br x16\n"
        "  .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#endif

#pragma GCC visibility push(default)
void *hipmm_run_symbol(void *library, const char *name);

/* For the plugin `nvidia`: dlsym() without a hook. */
void *hipmm_run_symbol(void *library, const char *name)
{
  return next_dlsym()(library, name);
}
#pragma GCC visibility pop
