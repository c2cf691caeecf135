/* SPDX-License-Identifier: MIT */
/* next_symbol.c: finds the functions of runtimes and of NVIDIA's driver: in the library that comes after this one in the
 * search order of the process, or in one that the program opened later and that is not in that order (RTLD_LOCAL). Never
 * loads a library. */
#include "next_symbol.h"

#include <dlfcn.h>
#include <link.h>
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

struct loaded {
  const char *stem;
  char file[4096];
};

/* A library of the right name, by the file that it was loaded from. */
static int next_symbol_look_at(struct dl_phdr_info *info, size_t bytes, void *closure)
{
  struct loaded *loaded = closure;
  const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
  size_t length = strlen(loaded->stem);
  (void)bytes;
  if (strncmp(name, loaded->stem, length) || !strchr(".-", name[length])) return 0; /* "-" and a checksum: in wheels */
  if (!name[length] || strlen(info->dlpi_name) >= sizeof loaded->file) return 0;
  strcpy(loaded->file, info->dlpi_name);
  return 1;
}

static void *next_symbol_find_in_loaded_library(enum family family, const char *name)
{
  static const char *const stems[] = {
      [FAMILY_HIP] = "libamdhip64", [FAMILY_CUDA] = "libcudart", [FAMILY_DRIVER] = "libcuda"};
  struct loaded loaded = {.stem = stems[family]};
  if (!dl_iterate_phdr(next_symbol_look_at, &loaded)) return NULL;
  void *library = dlopen(loaded.file, RTLD_LAZY | RTLD_NOLOAD);
  void *address = library ? next_dlsym()(library, name) : NULL;
  if (library) dlclose(library); /* the program's own handle keeps it */
  return address;
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

/* ---- Calling ---- */

bool next_recurses(enum hook hook)
{
  enum { DEPTH_MOST = 32 };
  static atomic_bool is_written;
  if (reentry_depth() <= DEPTH_MOST) return false;
  message_write_once(&is_written,
                     "%s: the runtime's own function calls itself through this one without end; hipmm cannot stand "
                     "in front of this runtime",
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
