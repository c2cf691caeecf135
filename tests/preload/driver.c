/* SPDX-License-Identifier: MIT */
/* driver.c: a program that calls NVIDIA's driver and knows nothing of hipmm, over the stand-in of libcuda.c. DRIVER_WAY is
 * how it finds the functions: "opened", by dlopen() and dlsym(); "asked", by cuGetProcAddress() for the release that
 * brought each, as a CUDA runtime does that is linked statically; "asked-old", by the function that CUDA 11 has for that;
 * "default", by dlsym(RTLD_DEFAULT); "linked". For the latter two it is linked to the library (LINKED). */
#include "driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- The functions ---- */

struct driver driver;

static void *library, *runtime_lookup;

static void *look_up(const char *name, const char *base, int since, bool is_per_thread)
{
  typedef int old_function(const char *, void **, int, uint64_t);
  typedef int new_function(const char *, void **, int, uint64_t, int *);
  const char *way = getenv("DRIVER_WAY");
  void *found = NULL;
  int status = 0, code = 0;
  if (!strncmp(way, "asked", 5) && strcmp(base, "cuGetProcAddress") != 0) {
    if (!strcmp(way, "asked"))
      code = ((new_function *)runtime_lookup)(base, &found, since, is_per_thread ? 2 : 0, &status);
    else
      code = ((old_function *)runtime_lookup)(base, &found, since, is_per_thread ? 2 : 1);
    if (code || status) found = NULL;
  } else {
    found = dlsym(strcmp(way, "default") ? library : RTLD_DEFAULT, name);
  }
  if (!found) complain(__FILE__, __LINE__, "%s is not there", name);
  return found;
}

#define LOOK_UP(name, base, since, parameters, arguments)               \
  found = look_up(#name, #base, since, strstr(#name, "_ptsz") != NULL); \
  memcpy(&driver.name, &found, sizeof found);

static void find_functions(void)
{
  const char *way = getenv("DRIVER_WAY");
  void *found;
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) complain(__FILE__, __LINE__, "%s", dlerror());
  if (!library) exit(1);
  runtime_lookup = dlsym(library, strcmp(way, "asked") ? "cuGetProcAddress" : "cuGetProcAddress_v2");
#define FIND(name)               \
  found = dlsym(library, #name); \
  memcpy(&driver.name, &found, sizeof found)
  FIND(fake_allocations);
  FIND(fake_frees);
  FIND(fake_capture);
  FIND(fake_waited_for);
  FIND(fake_synchronized);
#ifdef LINKED
#define TAKE(name, base, since, parameters, arguments) driver.name = name;
  if (!strcmp(way, "linked")) {
    DRIVER_FUNCTIONS(TAKE)
    return;
  }
#endif
  DRIVER_FUNCTIONS(LOOK_UP)
}

/* ---- What all do ---- */

CUcontext start(void)
{
  CUcontext context = NULL;
  GOOD(driver.cuInit(0));
  GOOD(driver.cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(driver.cuCtxSetCurrent(context));
  return context;
}

void verify(CUdeviceptr memory, int value, size_t bytes)
{
  static unsigned char host[64 * KIB];
  GOOD(driver.cuMemcpy((CUdeviceptr)(uintptr_t)host, memory, bytes));
  for (size_t i = 0; i < bytes; i++)
    if (host[i] != (unsigned char)value) {
      complain(__FILE__, __LINE__, "byte %zu is %d and not %d", i, host[i], value);
      return;
    }
}

void fill(CUdeviceptr memory, int value, size_t bytes, CUstream stream)
{
  GOOD(driver.cuMemsetD8Async(memory, (unsigned char)value, bytes, stream));
  GOOD(driver.cuStreamSynchronize(stream));
  verify(memory, value, bytes);
}

/* A name stands for other functions in other releases; hipmm has a hook for one of them. */
static void ask_for_releases(void)
{
  typedef int lookup(const char *, void **, int, uint64_t, int *);
  void *first = NULL, *second = NULL, *third = NULL, *again = NULL, *itself = NULL;
  int status;
  lookup *find = (lookup *)driver.cuGetProcAddress_v2;
  GOOD(find("cuMemAlloc", &first, 2000, 0, &status));
  GOOD(find("cuMemAlloc", &second, 12000, 0, &status));
  GOOD(find("cuMemAlloc", &third, 99000, 0, &status));
  CHECK(first != second && second != third && first != third);
  EXPECT(UNSUPPORTED, ((int (*)(unsigned *, unsigned))first)(NULL, 1));
  EXPECT(UNSUPPORTED, ((int (*)(CUdeviceptr *, size_t, int))third)(NULL, 1, 0));
  GOOD(find("cuGetProcAddress", &itself, 12000, 0, &status));
  GOOD(((lookup *)itself)("cuMemAlloc", &again, 12000, 0, &status));
  CHECK(again == second);
  EXPECT(NOT_FOUND, find("cuNothing", &again, 12000, 0, &status));
  CHECK(!again);
  CHECK(!dlsym(library, "cuNothing") && strstr(dlerror(), "cuNothing"));
  CHECK(dlsym(library, "cuMemAlloc_v2") && !dlerror());
  CHECK(!dlsym(RTLD_DEFAULT, "cudaMalloc") && dlerror()); /* without hipmm it would not be there either */
}

/* Counts how often the environment is read, by hipmm too. */
static atomic_uint n_reads;
__attribute__((visibility("default"))) char *secure_getenv(const char *name)
{
  n_reads++;
  return getenv(name);
}

/* The environment is searched by text: a program launches too many kernels for that. Nothing else asks for the driver's
 * memory here, as under PyTorch. */
static void launch(void)
{
  GOOD(driver.cuInit(0));
  driver.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  CHECK(n_reads);
  n_reads = 0;
  for (int i = 0; i < 100; i++) driver.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  CHECK(!n_reads);
}

int main(int argc, char **argv)
{
  static const struct scenario scenarios[] = {{"memory", use_memory},
                                              {"kinds", use_kinds},
                                              {"ask", ask},
                                              {"wrong", be_wrong},
                                              {"contexts", use_contexts},
                                              {"capture", use_capture},
                                              {"capture_forks", fork_capture},
                                              {"pools", use_pools},
                                              {"locations", use_locations},
                                              {"reset", reset},
                                              {"threads", use_threads},
                                              {"devices", use_devices},
                                              {"peers", use_peers},
                                              {"share", share},
                                              {"releases", ask_for_releases},
                                              {"short", run_short},
                                              {"hungry", be_hungry},
                                              {"launch", launch},
                                              {"past", pass_by},
                                              {"past_threads", pass_by_in_threads},
                                              {"capture_short", capture_short}};
  find_functions();
  return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
