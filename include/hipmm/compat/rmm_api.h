/* SPDX-License-Identifier: MIT */
/* hipmm/compat/rmm_api.h: the C interface of RMM 0.12 (2019 and 2020), over hipmm, for programs of that time.
 *
 * A program that includes <rmm/rmm.h> or <rmm/rmm_api.h> compiles with the include folder …/hipmm/compat, and is linked
 * with -lrmm_compat -lhipmm (pkg-config: hipmm-rmm). It behaves as the README of RMM 0.12 says; the comments below name
 * the differences.
 *
 * rmmOptions_t becomes a graph:
 *   CudaDefaultAllocation             {"stack": ["device"]}
 *   PoolAllocation                    {"stack": [{"type": "pool", "initial_size": …}, "device"]}
 *   CudaManagedMemory                 {"stack": ["managed"]}
 *   both                              {"stack": [{"type": "pool", "initial_size": …}, "prefetch", "managed"]}
 * A file that HIPMM_CONFIG names replaces this graph; so does the graph of a program that has initialised hipmm before.
 *
 * Allocations and frees are thread-safe, and so are rmmInitialize() and rmmFinalize() with each other. As in RMM 0.12, no
 * thread may allocate or free while another finalizes. No function throws or aborts. hipmm_last_error_message() has the
 * reason of a failure. */
#ifndef HIPMM_COMPAT_RMM_API_H
#define HIPMM_COMPAT_RMM_API_H

#include <hipmm/hipmm.h>

#include <stddef.h>

#ifdef __cplusplus
#include <vector>
#else
#include <stdbool.h>
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Types ------------------------------------------------------------------------------------------------------- */

typedef enum {
  RMM_SUCCESS = 0,
  RMM_ERROR_CUDA_ERROR,       /* a call of the runtime failed */
  RMM_ERROR_INVALID_ARGUMENT, /* also: a pointer that is not live, which RMM 0.12 did not notice */
  RMM_ERROR_NOT_INITIALIZED,
  RMM_ERROR_OUT_OF_MEMORY,
  RMM_ERROR_UNKNOWN,
  RMM_ERROR_IO, /* the log cannot be written */
  N_RMM_ERROR
} rmmError_t;

/* The values may be combined. */
typedef enum { CudaDefaultAllocation = 0, PoolAllocation = 1, CudaManagedMemory = 2 } rmmAllocationMode_t;

#ifdef __cplusplus
struct rmmOptions_t {
  rmmAllocationMode_t allocation_mode = CudaDefaultAllocation;
  std::size_t initial_pool_size = 0; /* of each device's pool, in bytes; 0: half of the device's free memory */
  bool enable_logging = false;
  std::vector<int> devices = {}; /* whose stacks are built at once; empty: the current device's */
};
#else
typedef struct {
  rmmAllocationMode_t allocation_mode;
  size_t initial_pool_size;
  bool enable_logging;
  const int *devices; /* NULL and 0: the current device; the memory is the caller's */
  size_t n_devices;
} rmmOptions_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Functions --------------------------------------------------------------------------------------------------- */

/* The name of the constant, such as "RMM_ERROR_IO". */
const char *rmmGetErrorString(rmmError_t errcode);

/* Releases the memory and clears the log. Without initialisation it does nothing. */
rmmError_t rmmFinalize(void);

/* Allocates `size` bytes on the current device. On failure *ptr is NULL. A NULL ptr with size 0 succeeds. `file`, which
 * may be NULL, and `line` go to the log. */
rmmError_t rmmAlloc(void **ptr, size_t size, hipmm_stream_t stream, const char *file, unsigned int line);

/* Gives the block another size. Unlike in RMM up to 0.7, the content is kept, as far as it fits; after a failure the old
 * block stays. */
rmmError_t rmmRealloc(void **ptr, size_t new_size, hipmm_stream_t stream, const char *file, unsigned int line);

rmmError_t rmmFree(void *ptr, hipmm_stream_t stream, const char *file, unsigned int line);

/* How far `ptr` lies from the start of the driver's allocation, in bytes: what sharing between processes needs. */
rmmError_t rmmGetAllocationOffset(ptrdiff_t *offset, void *ptr, hipmm_stream_t stream);

/* Free memory of the current device, together with the free memory of its pool, but at most all memory; and all memory;
 * in bytes. */
rmmError_t rmmGetInfo(size_t *freeSize, size_t *totalSize, hipmm_stream_t stream);

/* The log as CSV: "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,
 * Elapsed,Location". Times are in seconds since the first initialisation; free and total memory are 0, as in RMM 0.12,
 * which wrote them on request only. rmmGetLog() copies at most `buffer_size` characters, without a terminating 0. */
rmmError_t rmmWriteLog(const char *filename);
size_t rmmLogSize(void);
rmmError_t rmmGetLog(char *buffer, size_t buffer_size);

/* ---- Initialisation ---------------------------------------------------------------------------------------------- */

/* rmmOptions_t without C++. Never grows. */
struct hipmm_rmm_options {
  int32_t allocation_mode; /* rmmAllocationMode_t */
  int32_t enable_logging;  /* 1 or 0 */
  size_t initial_pool_size;
  const int *devices;
  size_t n_devices;
};

/* What rmmInitialize() and rmmIsInitialized() call. The devices that options_out gets are valid until the next
 * initialisation. */
rmmError_t hipmm_rmm_initialize(const struct hipmm_rmm_options *options);
int hipmm_rmm_is_initialized(struct hipmm_rmm_options *options_out);

#ifdef __cplusplus
}
#endif

/* Initialises the memory manager; `options` NULL means the defaults. A second call does nothing. A device that does not
 * exist, and an initial pool that the device cannot hold, are errors. */
static inline rmmError_t rmmInitialize(rmmOptions_t *options)
{
  struct hipmm_rmm_options plain = {0, 0, 0, NULL, 0};
  if (!options) return hipmm_rmm_initialize(NULL);
  plain.allocation_mode = (int32_t)options->allocation_mode;
  plain.enable_logging = options->enable_logging;
  plain.initial_pool_size = options->initial_pool_size;
#ifdef __cplusplus
  plain.devices = options->devices.data();
  plain.n_devices = options->devices.size();
#else
  plain.devices = options->devices;
  plain.n_devices = options->n_devices;
#endif
  return hipmm_rmm_initialize(&plain);
}

/* Whether it is initialised, and with what; `options` may be NULL. */
static inline bool rmmIsInitialized(rmmOptions_t *options)
{
  struct hipmm_rmm_options plain = {0, 0, 0, NULL, 0};
  const bool is_initialized = hipmm_rmm_is_initialized(&plain) != 0;
  if (!options) return is_initialized;
  options->allocation_mode = (rmmAllocationMode_t)plain.allocation_mode;
  options->enable_logging = plain.enable_logging != 0;
  options->initial_pool_size = plain.initial_pool_size;
#ifdef __cplusplus
  options->devices.assign(plain.devices, plain.devices + plain.n_devices);
#else
  options->devices = plain.devices;
  options->n_devices = plain.n_devices;
#endif
  return is_initialized;
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
