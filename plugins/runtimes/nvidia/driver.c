/* SPDX-License-Identifier: MIT */
/* driver.c: finds NVIDIA's driver and fills the table of its functions, when a HIP function is called for the first time
 * or when hipmm creates the runtime. Called by every file of the HIP API through nvidia_ready(). A machine without a
 * driver gives an error code and a sentence that says why. A loaded driver is never unloaded. */
#include "../../../core/base/own_symbol.h"
#include "nvidia.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static char driver_library[4096] = NVIDIA_DEFAULT_LIBRARY; /* under driver_lock */

/* ---- Symbols --------------------------------------------------------------------------------------------------- */

/* cuGetProcAddress of CUDA 11.3, and of CUDA 12. One of them is enough. */
struct driver_lookup {
  CUresult (*v1)(const char *name, void **address, int version, cuuint64_t flags);
  CUresult (*v2)(const char *name, void **address, int version, cuuint64_t flags, int *status);
};

static struct driver_lookup driver_find_lookup(void *library)
{
  struct driver_lookup lookup;
  void *v1 = own_symbol(library, "cuGetProcAddress"), *v2 = own_symbol(library, "cuGetProcAddress_v2");
  memcpy(&lookup.v1, &v1, sizeof v1);
  memcpy(&lookup.v2, &v2, sizeof v2);
  return lookup;
}

static CUresult driver_find_symbol(const struct driver_lookup *lookup, const struct nvidia_symbol *symbol)
{
  const cuuint64_t flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  void *address = NULL;
  int status = 0;
  CUresult result = lookup->v2 ? lookup->v2(symbol->name, &address, symbol->version, flags, &status)
                               : lookup->v1(symbol->name, &address, symbol->version, flags);
  if (result != CUDA_SUCCESS) address = NULL;
  memcpy(symbol->slot, &address, sizeof address);
  return result == CUDA_SUCCESS && !address ? CUDA_ERROR_NOT_FOUND : result;
}

/* Names that were not found, as many as fit. */
struct driver_names {
  char text[256];
  bool is_full;
};

static void driver_add_name(struct driver_names *names, const char *name)
{
  size_t used = strlen(names->text);
  if (names->is_full) return;
  names->is_full = used + strlen(name) + sizeof ", and more" > sizeof names->text;
  snprintf(names->text + used, sizeof names->text - used, "%s%s", used ? ", " : "", names->is_full ? "and more" : name);
}

static hipError_t driver_fail_stub(void)
{
  return nvidia_set_load_failure(
      hipErrorNoDevice, "%s is the CUDA toolkit's stub and not the driver; take its folder out of LD_LIBRARY_PATH",
      driver_library);
}

static hipError_t driver_find_symbols(void *library)
{
  struct driver_lookup lookup = driver_find_lookup(library);
  struct driver_names needed = {.text = ""}, optional = {.text = ""};
  if (!lookup.v1 && !lookup.v2)
    return nvidia_set_load_failure(
        hipErrorInsufficientDriver,
        "%s has no cuGetProcAddress: the driver is older than CUDA 11.3, or not NVIDIA's; update it", driver_library);
  for (size_t i = 0; i < nvidia_n_symbols; i++) {
    const struct nvidia_symbol *symbol = &nvidia_symbols[i];
    CUresult result = driver_find_symbol(&lookup, symbol);
    if (result == CUDA_ERROR_STUB_LIBRARY) return driver_fail_stub();
    if (result != CUDA_SUCCESS) driver_add_name(symbol->optional ? &optional : &needed, symbol->name);
  }
  if (*needed.text)
    return nvidia_set_load_failure(hipErrorInsufficientDriver, "%s lacks %s, which hipmm needs; update the driver",
                                   driver_library, needed.text);
  if (*optional.text)
    nvidia_log(HIPMM_LOG_INFO, "%s lacks %s; functions that need them return hipErrorNotSupported", driver_library,
               optional.text);
  return hipSuccess;
}

/* ---- The driver ------------------------------------------------------------------------------------------------ */

static hipError_t driver_fail_no_device(void)
{
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  return nvidia_set_load_failure(hipErrorNoDevice, "%s sees no device%s%s%s", driver_library,
                                 visible ? " (CUDA_VISIBLE_DEVICES is \"" : "", visible ? visible : "",
                                 visible ? "\")" : "");
}

/* Why cuInit failed, and what to do. */
static hipError_t driver_fail_init(CUresult result)
{
  if (result == CUDA_ERROR_NO_DEVICE) return driver_fail_no_device();
  if (result == CUDA_ERROR_STUB_LIBRARY) return driver_fail_stub();
  const char *name = "?", *text = "?";
  nvidia_cuda.GetErrorName(result, &name);
  nvidia_cuda.GetErrorString(result, &text);
  bool is_mismatch = result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  hipError_t error = nvidia_translate(result);
  return nvidia_set_load_failure(error == hipErrorUnknown ? hipErrorNotInitialized : error, "%s: cuInit: %s (%s)%s",
                                 driver_library, name, text,
                                 is_mismatch ? "; restart the machine after an update" : "");
}

static hipError_t driver_start(void)
{
  int version = 0, count = 0;
  CUresult result = nvidia_cuda.Init(0);
  if (result == CUDA_SUCCESS) result = nvidia_cuda.DeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return driver_fail_init(result);
  if (count < 1) return driver_fail_no_device();
  nvidia_contexts = calloc((size_t)count, sizeof *nvidia_contexts);
  if (!nvidia_contexts) return nvidia_set_load_failure(hipErrorOutOfMemory, "out of host memory");
  nvidia_n_devices = count;
  nvidia_cuda.DriverGetVersion(&version);
  nvidia_log(HIPMM_LOG_INFO, "%s, for CUDA %d.%d, %d device%s", driver_library, version / 1000, version % 1000 / 10,
             count, count == 1 ? "" : "s");
  return hipSuccess;
}

static hipError_t driver_open(void)
{
  void *library = dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *text = dlerror();
    return nvidia_set_load_failure(hipErrorNoDevice, "NVIDIA's driver cannot be loaded: %s",
                                   text ? text : driver_library);
  }
  hipError_t error = driver_find_symbols(library);
  if (error == hipSuccess) return driver_start(); /* a started driver may have threads, so it stays loaded */
  dlclose(library);
  return error;
}

hipError_t nvidia_load(void)
{
  hipError_t error = hipSuccess;
  pthread_mutex_lock(&driver_lock);
  if (!atomic_load(&nvidia_is_loaded)) {
    error = driver_open();
    if (error == hipSuccess) atomic_store_explicit(&nvidia_is_loaded, true, memory_order_release);
  }
  pthread_mutex_unlock(&driver_lock);
  return error == hipSuccess ? error : nvidia_fail(error);
}

bool nvidia_configure(const char *library, const struct hipmm_services *services)
{
  pthread_mutex_lock(&driver_lock);
  bool is_same = !strcmp(library, driver_library), is_loaded = atomic_load(&nvidia_is_loaded);
  bool fits = strlen(library) < sizeof driver_library;
  if (!is_loaded) {
    nvidia_set_services(services);
    if (fits) strcpy(driver_library, library);
  }
  pthread_mutex_unlock(&driver_lock);
  return is_loaded ? is_same : fits;
}
