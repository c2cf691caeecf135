/* SPDX-License-Identifier: MIT */
/* hooks.h: the list of every function that the preload object puts itself in front of, for the enum, the names and the
 * counts. Y: the report tells of it. A function that is not in this list cannot be counted, nor found. */
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

/* Which API a function belongs to. */
enum family { FAMILY_HIP, FAMILY_CUDA, FAMILY_COUNT };

static inline enum family hook_family(enum hook hook)
{
  return hook < HOOK_cudaMalloc ? FAMILY_HIP : FAMILY_CUDA;
}

const char *hook_name(enum hook hook);
bool hook_is_reported(enum hook hook);

/* HOOK_COUNT if there is none of this name. */
enum hook hook_find(const char *name);

/* What came of a call. */
enum outcome { OUTCOME_SERVED, OUTCOME_PASSED, OUTCOME_FAILED };

struct hook_counts {
  uint64_t calls, passed, failed;
};

void hook_count(enum hook hook, enum outcome outcome);
struct hook_counts hook_counts(enum hook hook);
void hook_forget_counts(void);

/* ---- The calling thread ---- */

/* Between enter and leave every routed function that the thread calls is meant for the real one: hipmm's own calls, and
 * those that a runtime makes of functions that it exports. enter returns false when the thread was inside already;
 * leave is owed in any case. */
bool reentry_enter(void);
void reentry_leave(void);

/* The end of a routed call: leaves, and counts the call if it is the program's own. Returns `code`. */
int reentry_finish(enum hook hook, enum outcome outcome, int code);

/* How often the thread has entered and not left. */
unsigned reentry_depth(void);

/* The error that hipGetLastError has to tell; 0: none of ours. One for each family. */
void reentry_set_error(enum family family, int code);
int reentry_error(enum family family);

#endif
