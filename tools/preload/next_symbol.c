/* SPDX-License-Identifier: MIT */
/* next_symbol.c: finds the functions of runtimes and of NVIDIA's driver: in the library that comes after this one in the
 * search order of the process, or in one that the program opened later and that is not in that order (RTLD_LOCAL). And it
 * finds functions of these names that are no runtime's: an object's own ones, such as those of CuPy for ROCm, which call
 * HIP. Never loads a library. */
#include "next_symbol.h"

#include "../../core/plugin/loaded_object.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static next_function _Atomic found[HOOK_COUNT];

/* ---- Finding ---- */

/* By its versions, since glibc 2.34 and before, on each processor. Nothing here may be instrumented: a sanitizer calls
 * dlsym() before it is ready. */
__attribute__((no_sanitize("address", "thread", "undefined"))) next_lookup *next_dlsym(void)
{
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.0"};
  static next_lookup *_Atomic cached;
  next_lookup *lookup = atomic_load_explicit(&cached, memory_order_relaxed);
  for (size_t i = 0; !lookup && i < sizeof versions / sizeof *versions; i++) {
    void *address = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    memcpy(&lookup, &address, sizeof lookup);
  }
  atomic_store_explicit(&cached, lookup, memory_order_relaxed);
  return lookup;
}

atomic_uint next_closings;

static int next_symbol_close(void *library)
{
  static int (*_Atomic cached)(void *);
  int (*close_library)(void *) = atomic_load_explicit(&cached, memory_order_relaxed);
  if (!close_library) {
    void *address = next_dlsym()(RTLD_NEXT, "dlclose");
    memcpy(&close_library, &address, sizeof address);
    atomic_store_explicit(&cached, close_library, memory_order_relaxed);
  }
  return close_library(library);
}

#pragma GCC visibility push(default)
int dlclose(void *library)
{
  int code = next_symbol_close(library);
  atomic_fetch_add(&next_closings, 1);
  return code;
}
#pragma GCC visibility pop

static const char *next_symbol_stem(enum family family)
{
  static const char *const stems[] = {
      [FAMILY_HIP] = "libamdhip64", [FAMILY_CUDA] = "libcudart", [FAMILY_DRIVER] = "libcuda"};
  return stems[family];
}

/* What the loaded object and the libraries that it needs have. */
static void *next_symbol_find_in(const char *file, const char *name)
{
  void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  void *address = library ? next_dlsym()(library, name) : NULL;
  if (library) next_symbol_close(library); /* the program's own handle keeps it */
  return address;
}

static void *next_symbol_find_in_loaded_library(enum family family, const char *name)
{
  char file[LOADED_FILE_BYTES];
  return loaded_find(next_symbol_stem(family), 0, file) ? next_symbol_find_in(file, name) : NULL;
}

next_function next_find(enum hook hook)
{
  next_function function = atomic_load_explicit(&found[hook], memory_order_acquire);
  if (function) return function;
  void *address = next_dlsym()(RTLD_NEXT, hook_name(hook));
  if (!address) address = next_symbol_find_in_loaded_library(hook_family(hook), hook_name(hook));
  memcpy(&function, &address, sizeof function);
  atomic_store_explicit(&found[hook], function, memory_order_release);
  return function;
}

static int next_symbol_refuse_missing(void)
{
  return HIPMM_HIP_ERROR_NOT_SUPPORTED;
}

next_function next_function_of(enum hook hook)
{
  static atomic_bool is_written[HOOK_COUNT];
  next_function function = next_find(hook);
  if (function) return function;
  message_write_once(&is_written[hook],
                     "%s: no library of this process has this function besides hipmm, so the call is refused",
                     hook_name(hook));
  return (next_function)next_symbol_refuse_missing;
}

/* ---- Functions that are no runtime's ---- */

/* The file of the object that `address` is in; NULL for hipmm's own. */
static const char *next_symbol_file(const void *address, Dl_info *info)
{
  Dl_info own;
  bool is_known = dladdr(address, info) && info->dli_fname && dladdr(&found, &own);
  return is_known && info->dli_fbase != own.dli_fbase ? info->dli_fname : NULL;
}

/* Whether the function is made of HIP's: a library that gives CUDA's names to programs on AMD's GPUs. */
static bool next_symbol_is_over_hip(enum hook hook, const void *address)
{
  Dl_info info;
  const char *file = hook_family(hook) == FAMILY_HIP ? NULL : next_symbol_file(address, &info);
  return file && next_symbol_find_in(file, hook_name(HOOK_hipMalloc));
}

/* Where a call jumps to its function, the return address is in another object: then any that has the function. */
static void *next_symbol_find_anywhere(const char *name)
{
  char file[LOADED_FILE_BYTES];
  Dl_info info;
  void *address = NULL;
  for (unsigned i = 0; !address && loaded_find(NULL, i, file); i++) {
    address = next_symbol_find_in(file, name);
    if (address && !next_symbol_file(address, &info)) address = NULL;
  }
  return address;
}

/* A function that is not in the search order of the process; *is_runtime_out: the runtime's. The caller's object sees its own
 * one and those of the libraries that it needs. */
static void *next_symbol_find_out_of_order(enum hook hook, const void *caller, bool *is_runtime_out)
{
  Dl_info info;
  const char *name = hook_name(hook), *file = next_symbol_file(caller, &info);
  void *address = file ? next_symbol_find_in(file, name) : NULL;
  file = address ? next_symbol_file(address, &info) : NULL;
  *is_runtime_out = file && loaded_has_stem(file, next_symbol_stem(hook_family(hook)));
  if (file) return address;
  address = next_symbol_find_in_loaded_library(hook_family(hook), name);
  *is_runtime_out = address != NULL;
  return address ? address : next_symbol_find_anywhere(name);
}

void *next_in_order(const char *name, void *given)
{
  Dl_info info;
  const char *stem = next_symbol_stem(FAMILY_HIP), *file = given ? next_symbol_file(given, &info) : NULL;
  if (strncmp(name, "hip", 3) || !file || !loaded_has_stem(file, stem)) return given;
  void *first = next_dlsym()(RTLD_NEXT, name);
  if (!first) (void)dlerror(); /* the program's call has not failed */
  file = first ? next_symbol_file(first, &info) : NULL;
  return file && !loaded_has_stem(file, stem) ? first : given;
}

_Thread_local struct next_memo next_memos[NEXT_MEMOS];

/* Of a place in the code. What was known of another place is over. */
static struct next_memo *next_symbol_remember(struct next_memo memo)
{
  struct next_memo *place = next_memo_of(memo.caller);
  *place = memo;
  return place;
}

void next_go_straight(enum hook hook, const void *caller, next_function function)
{
  struct next_memo *memo = next_memo_of(caller);
  if (!next_memo_is(memo, hook, caller))
    memo = next_symbol_remember((struct next_memo){caller, function, NULL, atomic_load(&next_closings), hook, false});
  if (!memo->is_apart) memo->straight = function;
}

/* Of a function that is not in the search order. The loader could say how many objects were closed, but it takes its lock and
 * looks at all of them for that, which launches of kernels would notice. */
static next_function next_symbol_search_own(enum hook hook, const void *caller)
{
  bool is_runtime = false;
  unsigned before = atomic_load(&next_closings);
  void *address = next_symbol_find_out_of_order(hook, caller, &is_runtime);
  if (!address) return NULL;
  struct next_memo memo = {caller, NULL, NULL, before, hook, !is_runtime || next_symbol_is_over_hip(hook, address)};
  memcpy(&memo.function, &address, sizeof address);
  next_symbol_remember(memo);
  return memo.is_apart ? memo.function : NULL;
}

next_function next_own(enum hook hook, const void *caller)
{
  enum { UNKNOWN, OF_RUNTIME, OVER_HIP };
  static atomic_uchar places[HOOK_COUNT]; /* of functions in the search order */
  int place = atomic_load_explicit(&places[hook], memory_order_relaxed);
  if (place == UNKNOWN) {
    const struct next_memo *memo = next_memo_of(caller);
    if (next_memo_is(memo, hook, caller)) return memo->is_apart ? memo->function : NULL;
    const void *address = next_dlsym()(RTLD_NEXT, hook_name(hook));
    if (!address) return next_symbol_search_own(hook, caller);
    place = next_symbol_is_over_hip(hook, address) ? OVER_HIP : OF_RUNTIME;
    atomic_store_explicit(&places[hook], (unsigned char)place, memory_order_relaxed);
  }
  return place == OVER_HIP ? next_find(hook) : NULL;
}

next_function next_apart(enum hook hook, const void *caller)
{
  next_function own = next_own(hook, caller);
  if (own || next_find(hook)) return own;
  if (!reentry_depth()) hook_count(hook, OUTCOME_FAILED);
  return next_function_of(hook); /* for its message */
}

/* ---- Calling ---- */

bool next_recurses(enum hook hook)
{
  enum { DEPTH_MOST = 32 };
  static atomic_bool is_written;
  if (reentry_depth() <= DEPTH_MOST) return false;
  message_write_once(&is_written,
                     "%s: the runtime's own function calls itself through this one without end; hipmm cannot stand in "
                     "front of this runtime",
                     hook_name(hook));
  return true;
}

int next_memory(enum hook hook, void **ptr, size_t bytes)
{
  return ((int (*)(void **, size_t))next_function_of(hook))(ptr, bytes);
}

int next_pointer(enum hook hook, void *ptr)
{
  return ((int (*)(void *))next_function_of(hook))(ptr);
}

int next_two_pointers(enum hook hook, void *first, const void *second)
{
  return ((int (*)(void *, const void *))next_function_of(hook))(first, second);
}

int next_int(enum hook hook, int number)
{
  return ((int (*)(int))next_function_of(hook))(number);
}

int next_int_flags(enum hook hook, int number, unsigned flags)
{
  return ((int (*)(int, unsigned))next_function_of(hook))(number, flags);
}

int next_void(enum hook hook)
{
  return ((int (*)(void))next_function_of(hook))();
}

bool next_is_capturing(enum family family, hipmm_stream_t stream, int *code_out)
{
  static const enum hook hooks[] = {HOOK_hipStreamIsCapturing, HOOK_cudaStreamIsCapturing, HOOK_cuStreamIsCapturing};
  int state = 0;
  next_function function = next_find(hooks[family]);
  *code_out = function ? ((int (*)(hipmm_stream_t, int *))function)(stream, &state) : 0;
  return !*code_out && state != 0;
}
