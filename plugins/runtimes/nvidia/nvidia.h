/* SPDX-License-Identifier: MIT */
/* nvidia.h: what the files of the nvidia runtime share.
 *
 * The layers, from top to bottom. A file calls files below it, and files of its own line that stand to its right:
 *
 *   nvidia                                        the plugin
 *   attribute copy device event host ipc          the HIP API: each file has the functions of one subject
 *     memory pool pool_share virtual stream
 *   context                                       which device is current
 *   driver                                        loads the driver
 *   error                                         HIP's codes for CUDA's
 *   symbols layouts state                         the driver's functions, checks of layouts, the state of the plugin
 *
 * Every HIP function has the same shape:
 *
 *     if (!nvidia_ready()) return nvidia_last_error;              loads the driver the first time
 *     return nvidia_end(nvidia_call(nvidia_cuda.Something(…)));   one call through a pointer, and once more if the thread
 *                                                                 had no context yet; HIP's code, for hipGetLastError
 *
 * so a call that succeeds costs a load, a test and the driver's function. A thread gets a context only when the driver
 * says that a function needs one: the primary context of device 0, as with CUDA's own runtime. A function that needs no
 * context has no nvidia_call(). */
#ifndef HIPMM_PLUGINS_RUNTIMES_NVIDIA_NVIDIA_H
#define HIPMM_PLUGINS_RUNTIMES_NVIDIA_NVIDIA_H

#include "../../../core/base/hip_layout.h"
#include "driver.h"

#include <hip/hip_runtime_api.h>
#include <hipmm/plugin.h>
#include <stdatomic.h>
#include <stdint.h>

/* ---- state.c --------------------------------------------------------------------------------------------------- */

extern atomic_bool nvidia_is_loaded;
extern int nvidia_n_devices;                /* constant once loaded */
extern _Atomic(CUcontext) *nvidia_contexts; /* the primary context of each device; NULL until it is used */

/* The services through which hipmm logs; they are copied. */
void nvidia_set_services(const struct hipmm_services *services);

/* Writes a line to hipmm's debug log, if there is one. */
void nvidia_log(enum hipmm_log_level level, const char *format, ...) HIPMM_PRINTF(2, 3);

/* Stores why the driver could not be loaded, and returns `error`. */
hipError_t nvidia_set_load_failure(hipError_t error, const char *format, ...) HIPMM_PRINTF(2, 3);

/* Why the driver could not be loaded, for people; NULL if it was not tried or succeeded. */
const char *nvidia_load_failure(void);

/* ---- error.c --------------------------------------------------------------------------------------------------- */

extern _Thread_local hipError_t nvidia_last_error;

/* HIP's code for one of CUDA's. */
hipError_t nvidia_translate(CUresult result);

/* Stores an error for hipGetLastError, and returns it. */
hipError_t nvidia_fail(hipError_t error);

/* The end of every call: the slow part is only for errors. */
hipError_t nvidia_end_failed(CUresult result);

static inline hipError_t nvidia_end(CUresult result)
{
  return __builtin_expect(result == CUDA_SUCCESS, 1) ? hipSuccess : nvidia_end_failed(result);
}

/* ---- driver.c -------------------------------------------------------------------------------------------------- */

#define NVIDIA_DEFAULT_LIBRARY "libcuda.so.1"

/* Loads the driver unless it is loaded; an error is also stored for hipGetLastError. After a failure the next call tries
 * again; nvidia_load_failure() has the reason. */
hipError_t nvidia_load(void);

/* Says which library is the driver, and through which services to log. False if another library is in use already. */
bool nvidia_configure(const char *library, const struct hipmm_services *services);

static inline bool nvidia_ready(void)
{
  return __builtin_expect(atomic_load_explicit(&nvidia_is_loaded, memory_order_acquire), 1) ||
         nvidia_load() == hipSuccess;
}

/* ---- context.c ------------------------------------------------------------------------------------------------- */

/* The primary context of a device, which stays alive from then on. */
CUresult nvidia_primary_context(int device, CUcontext *context_out);

/* If the thread has no context: gives it that of device 0, and true. If that fails, the reason goes into *result. */
bool nvidia_bind_thread(CUresult *result);

static inline bool nvidia_again(CUresult *result)
{
  return __builtin_expect(*result == CUDA_ERROR_INVALID_CONTEXT, 0) && nvidia_bind_thread(result);
}

/* The result of a call of the driver. */
#define nvidia_call(call)                 \
  __extension__({                         \
    CUresult nvidia_result;               \
    do nvidia_result = (call);            \
    while (nvidia_again(&nvidia_result)); \
    nvidia_result;                        \
  })

/* CUDA's handle of a device is its number, as CUDA's own runtime takes for granted. */
static inline bool nvidia_device_exists(int device)
{
  return device >= 0 && device < nvidia_n_devices;
}

/* ---- Types ----------------------------------------------------------------------------------------------------- */

static inline CUdeviceptr nvidia_address(const void *ptr)
{
  return (CUdeviceptr)(uintptr_t)ptr;
}

static inline void *nvidia_pointer(CUdeviceptr address)
{
  return (void *)(uintptr_t)address;
}

/* Handles of streams keep their value, so that those of other libraries work, and so do NULL (the default stream), 1
 * (the legacy stream) and 2 (the thread's own). */
static inline CUstream nvidia_stream(hipStream_t stream)
{
  return (CUstream)stream;
}

static inline CUevent nvidia_event(hipEvent_t event)
{
  return (CUevent)event;
}

/* Structs and numbers that HIP and CUDA have in common; see layouts.c. Their locations are numbered alike: of a device, the host,
 * a node of the host, the node of the calling thread. */
static inline CUmemLocation nvidia_location(hipMemLocation location)
{
  return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

static inline const CUmemAccessDesc *nvidia_access(const hipMemAccessDesc *access)
{
  return (const CUmemAccessDesc *)access;
}

/* Whether memory of hipMemCreate() has RDMA; creates some and asks it. */
bool virtual_has_rdma(int device);

/* ---- HIP functions newer than the oldest headers ---------------------------------------------------------------- */

#pragma GCC visibility push(default)
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device); /* HIP 5.7 */
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id);  /* HIP 7.0 */
hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value);      /* HIP 5.3 */
hipError_t hipMemGetDefaultMemPool(hipMemPool_t *pool, hipMemLocation *location,
                                   hipMemAllocationType type);                                        /* HIP 7.15 */
hipError_t hipMemGetMemPool(hipMemPool_t *pool, hipMemLocation *location, hipMemAllocationType type); /* HIP 7.2 */
hipError_t hipMemSetMemPool(hipMemLocation *location, hipMemAllocationType type, hipMemPool_t pool);  /* HIP 7.2 */
#if HIP_VERSION_MAJOR < 7
typedef enum { hipMemRangeHandleTypeDmaBufFd = 1 } hipMemRangeHandleType;
hipError_t hipMemGetHandleForAddressRange(void *handle, hipDeviceptr_t pointer, size_t bytes,
                                          hipMemRangeHandleType type, unsigned long long flags);
hipError_t hipMemAdvise_v2(const void *pointer, size_t bytes, hipMemoryAdvise advice, hipMemLocation location);
hipError_t hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, hipMemLocation location, unsigned int flags,
                                  hipStream_t stream);
#endif
#pragma GCC visibility pop

#endif
