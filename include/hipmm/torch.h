/* SPDX-License-Identifier: MIT */
/* hipmm/torch.h: the functions that frameworks call: PyTorch's pluggable allocator, and CuPy's function allocator.
 *
 *     allocator = torch.cuda.memory.CUDAPluggableAllocator("libhipmm.so", "hipmm_torch_malloc", "hipmm_torch_free")
 *
 * Where the signature is a framework's, the function returns no status: a failure is logged as an error, and
 * hipmm_last_error() gives its reason. No function throws or aborts. All are thread-safe.
 *
 * The first call initialises hipmm with hipmm_init() (HIPMM_CONFIG) if the program has not done so. If that fails, the
 * log gives the reason in one line, and every allocation returns NULL until the program initialises hipmm. Each allocation
 * uses the resource that is current on its device at that moment, and its block returns to that resource. hipmm keeps a
 * record of blocks that are not of the resource of the device's first allocation.
 *
 * A stack that PyTorch's call builds may map memory if the process has several devices, since PyTorch orders its
 * copies between devices with events. A stack that CuPy's call builds may not, unless its graph says "mapped": CuPy
 * relies on the order that the runtime keeps for memory of hipMalloc. */
#ifndef HIPMM_TORCH_H
#define HIPMM_TORCH_H

#include <hipmm/hipmm.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- PyTorch: torch/csrc/cuda/CUDAPluggableAllocator.h ---------------------------------------------------------- */

/* Returns NULL for 0 bytes, and without memory. Every stream counts as retained: PyTorch's streams come from a pool and
 * are never destroyed. A program that passes another stream calls hipmm_stream_retire() before it destroys that
 * stream. */
void *hipmm_torch_malloc(ssize_t bytes, int device, hipmm_stream_t stream);

/* The same for a caller that has more to try after a failure: the status says why there is no block. The failure is not
 * logged and not counted as a failed allocation, and no function is called. A caller that has nothing more to try makes its
 * last attempt by hipmm_torch_malloc(). What else goes wrong is logged here too: that hipmm cannot be initialised, that a
 * stream cannot be retained, and that a private pool has lost a block. *ptr_out is NULL for 0 bytes. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_torch_try_malloc(size_t bytes, int device, hipmm_stream_t stream,
                                                          void **ptr_out);

/* Frees on the stream for which the block was allocated, after all work that was submitted to its recorded streams so
 * far; the calling thread does not wait for that work. A pointer that is not live is logged and ignored.
 *
 * A block of hipmm_torch_malloc() must not be freed with hipmm_deallocate(), since the private pools, the recorded
 * streams and the memory fraction would not learn of it. A private pool notices it only when it would reuse the block
 * and the block is not live any more; it then logs an error and takes another block. */
void hipmm_torch_free(void *ptr, ssize_t bytes, int device, hipmm_stream_t stream);

/* Sets the function that is called with the reason before hipmm_torch_malloc() returns NULL after a failure; NULL:
 * none. PyTorch does not check for NULL, so `function` may throw through hipmm: no lock is held. hipmm.torch passes a
 * function that throws PyTorch's own c10::OutOfMemoryError. */
void hipmm_torch_on_failure(void (*function)(const char *message));

/* set_init_fn: initialises hipmm now. PyTorch calls it if these functions give all its memory (use(), not pool(), of
 * Python's hipmm.torch). Then it allocates on a device before it works there, and a stack that is built from now on
 * opens mapped memory to another device when the first stack of that device is built. A program that calls it promises
 * the same. Without it, every device can access all memory from the start. set_reset_fn (torch.cuda.empty_cache):
 * returns free memory of all devices to the runtime.
 *
 * In place of a number of devices, before hipmm is initialised: HIPMM_TORCH_POOL makes the graph that hipmm takes where no
 * file is found a pool over `device`; HIPMM_TORCH_POOL_OF_SEGMENTS a pool that maps no memory, of which a program can
 * hand parts to other processes. */
enum { HIPMM_TORCH_POOL = -1, HIPMM_TORCH_POOL_OF_SEGMENTS = -2 };
void hipmm_torch_init(int device_count);
void hipmm_torch_reset(void);

/* set_memory_fraction_fn: from now on an allocation fails if the live bytes of these functions (as requested, without
 * rounding) would exceed this fraction of the device's memory, 0 to 1; 1 is no limit. Live blocks stay. The fraction
 * also limits what each pool and arena of the device's stack holds: it becomes their option maximum_size, unless the
 * graph has a lower one. */
void hipmm_torch_memory_fraction(double fraction, int device);

/* The bytes of the live blocks of hipmm_torch_malloc() on a device, as requested: now, and their peak since the
 * device's first block or hipmm_torch_reset_peak(). 0 if PyTorch has allocated nothing there. Either output may be
 * NULL. The status can be HIPMM_E_NO_DEVICE, and HIPMM_E_STATE before hipmm is initialised. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_torch_memory(int device, size_t *live_bytes_out, size_t *peak_bytes_out);
enum hipmm_status hipmm_torch_reset_peak(int device);

/* set_base_alloc_fn: the live block that starts at `ptr`, and its size as requested; NULL and 0 if there is none. The
 * block may be a part of an allocation of the driver, so that an IPC handle names more than the block. */
void *hipmm_torch_base_alloc(void *ptr, size_t *bytes_out);

/* Whether the live block at `ptr` is at the start of an allocation of the driver, as an IPC handle requires: 1; 0 for a
 * block inside an allocation, for mapped memory, and for a pointer that is not live here. */
int hipmm_torch_is_allocation(void *ptr);

/* set_record_stream_fn: `stream` uses the block at `ptr` as well. It must live until the block is freed. */
void hipmm_torch_record_stream(void *ptr, hipmm_stream_t stream);

/* c10::cuda::MempoolId_t, a pair that C++ passes by value. Never grows. */
struct hipmm_torch_pool {
  unsigned long long first, second;
};

/* set_begin_allocate_to_pool, set_end_allocate_to_pool_fn, set_release_pool: an allocation on `device` between begin
 * and end belongs to the pool if `filter` takes it. `filter` is the address of a std::function<bool(hipStream_t)> of
 * libstdc++ (so C++ passes it by value). It is copied and asked about the stream of each allocation, under a lock: it
 * must neither call hipmm nor throw. An allocation that several pools take belongs to the one that was begun last.
 * NULL, or an empty function: the pool takes allocations of the thread of begin, and of threads that have begun no
 * pool.
 *
 * Freed blocks of the pool serve only allocations of the same size and stream for the same pool, until the pool is
 * released as often as it was begun. So a captured graph can be replayed. PyTorch calls no end after a capture that
 * failed. Once a pool of several graphs is released between a begin and its end, its filter is not called any more, and
 * the pool takes allocations on streams that are being captured. */
void hipmm_torch_begin_allocate_to_pool(int device, struct hipmm_torch_pool pool, const void *filter);
void hipmm_torch_end_allocate_to_pool(int device, struct hipmm_torch_pool pool);
void hipmm_torch_release_pool(int device, struct hipmm_torch_pool pool);

/* ---- CuPy: cupy.cuda.memory.CFunctionAllocator ------------------------------------------------------------------ */

/* `stream`, CuPy's parameter, is the stream. The resource must be able to find the size of a block by its pointer,
 * as all resources of hipmm can. */
void *hipmm_cupy_malloc(void *stream, size_t bytes, int device);
void hipmm_cupy_free(void *stream, void *ptr, int device);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
