/* SPDX-License-Identifier: MIT */
/* hooks.h: the functions of the runtime that the preload object hooks, with their names and counts; and what is known of
 * the calling thread. A function that is not in this list can neither be counted nor found. Y: it is in the report. */
#ifndef HIPMM_PRELOAD_HOOKS_H
#define HIPMM_PRELOAD_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#define HOOKS(X, Y)               \
  Y(hipMalloc)                    \
  Y(hipExtMallocWithFlags)        \
  Y(hipFree)                      \
  Y(hipMallocAsync)               \
  Y(hipMallocFromPoolAsync)       \
  Y(hipFreeAsync)                 \
  Y(hipMallocManaged)             \
  Y(hipHostMalloc)                \
  Y(hipHostAlloc)                 \
  Y(hipExtHostAlloc)              \
  Y(hipMallocHost)                \
  Y(hipMemAllocHost)              \
  Y(hipHostFree)                  \
  Y(hipFreeHost)                  \
  Y(hipMemGetInfo)                \
  Y(hipMemGetAddressRange)        \
  Y(hipMemPtrGetInfo)             \
  Y(hipHostGetFlags)              \
  Y(hipPointerGetAttribute)       \
  Y(hipIpcGetMemHandle)           \
  Y(hipMemPoolExportPointer)      \
  Y(hipMemPoolCreate)             \
  Y(hipMemPoolDestroy)            \
  Y(hipStreamCreate)              \
  Y(hipStreamCreateWithFlags)     \
  Y(hipStreamCreateWithPriority)  \
  Y(hipStreamDestroy)             \
  Y(hipDeviceReset)               \
  X(hipDeviceGetDefaultMemPool)   \
  X(hipDeviceGetMemPool)          \
  X(hipDeviceSetMemPool)          \
  X(hipMemPoolGetAttribute)       \
  X(hipMemPoolSetAttribute)       \
  X(hipMemPoolSetAccess)          \
  X(hipMemPoolTrimTo)             \
  X(hipGetProcAddress)            \
  X(hipGetLastError)              \
  X(hipPeekAtLastError)           \
  X(hipSetDevice)                 \
  X(hipDeviceEnablePeerAccess)    \
  X(hipDeviceDisablePeerAccess)   \
  X(hipGetDevice)                 \
  X(hipStreamIsCapturing)         \
  X(hipInit)                      \
  X(hipGetDeviceCount)            \
  X(hipDeviceGet)                 \
  X(hipDeviceGetAttribute)        \
  X(hipDeviceGetName)             \
  X(hipDeviceTotalMem)            \
  X(hipGetDeviceProperties)       \
  X(hipDeviceSynchronize)         \
  X(hipEventCreate)               \
  X(hipEventCreateWithFlags)      \
  Y(cudaMalloc)                   \
  Y(cudaFree)                     \
  Y(cudaMallocAsync)              \
  Y(cudaMallocAsync_ptsz)         \
  Y(cudaMallocFromPoolAsync)      \
  Y(cudaMallocFromPoolAsync_ptsz) \
  Y(cudaFreeAsync)                \
  Y(cudaFreeAsync_ptsz)           \
  Y(cudaMallocManaged)            \
  Y(cudaMallocHost)               \
  Y(cudaHostAlloc)                \
  Y(cudaFreeHost)                 \
  Y(cudaMemGetInfo)               \
  Y(cudaIpcGetMemHandle)          \
  Y(cudaMemPoolExportPointer)     \
  Y(cudaMemPoolCreate)            \
  Y(cudaMemPoolDestroy)           \
  Y(cudaStreamCreate)             \
  Y(cudaStreamCreateWithFlags)    \
  Y(cudaStreamCreateWithPriority) \
  Y(cudaStreamDestroy)            \
  Y(cudaDeviceReset)              \
  X(cudaDeviceGetDefaultMemPool)  \
  X(cudaDeviceGetMemPool)         \
  X(cudaDeviceSetMemPool)         \
  X(cudaMemPoolGetAttribute)      \
  X(cudaMemPoolSetAttribute)      \
  X(cudaMemPoolSetAccess)         \
  X(cudaMemPoolTrimTo)            \
  X(cudaGetLastError)             \
  X(cudaPeekAtLastError)          \
  X(cudaSetDevice)                \
  X(cudaDeviceEnablePeerAccess)   \
  X(cudaDeviceDisablePeerAccess)  \
  X(cudaGetDevice)                \
  X(cudaStreamIsCapturing)

#define HOOK_VALUE(name) HOOK_##name,
enum hook { HOOKS(HOOK_VALUE, HOOK_VALUE) HOOK_COUNT };

/* The API that a function belongs to. */
enum family { FAMILY_HIP, FAMILY_CUDA, FAMILY_COUNT };

static inline enum family hook_family(enum hook hook)
{
  return hook < HOOK_cudaMalloc ? FAMILY_HIP : FAMILY_CUDA;
}

const char *hook_name(enum hook hook);
bool hook_is_reported(enum hook hook);

/* The hook of this name; HOOK_COUNT if there is none. */
enum hook hook_find(const char *name);

/* How a call ended: served by hipmm, passed on to the runtime, or failed in hipmm. */
enum outcome { OUTCOME_SERVED, OUTCOME_PASSED, OUTCOME_FAILED };

struct hook_counts {
  uint64_t calls, passed, failed;
};

void hook_count(enum hook hook, enum outcome outcome);
struct hook_counts hook_counts(enum hook hook);
void hook_reset_counts(void);

/* ---- The calling thread ---- */

/* Every hook begins with enter and ends with leave. In between, each hooked function that the thread calls is passed on:
 * hipmm calls it itself, or the runtime calls a function that it exports. enter returns false if the thread was inside
 * already; leave must follow in that case too. */
bool reentry_enter(void);
void reentry_leave(void);

/* Leaves, and counts the call if the program made it. Returns `code`. */
int reentry_finish(enum hook hook, enum outcome outcome, int code);

/* How often the thread has entered and not yet left. */
unsigned reentry_depth(void);

/* The last error of hipmm, for hipGetLastError() and cudaGetLastError(); 0: none. */
void reentry_set_error(enum family family, int code);
int reentry_error(enum family family);

#endif
