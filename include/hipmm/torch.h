/* SPDX-License-Identifier: MIT */
/* hipmm/torch.h: the functions that frameworks call: PyTorch's pluggable allocator, and CuPy's function allocator.
 *
 *     allocator = torch.cuda.memory.CUDAPluggableAllocator("libhipmm.so", "hipmm_torch_malloc", "hipmm_torch_free")
 *
 * The signatures are the frameworks' own, so nothing here returns a status: what went wrong is logged as an error and
 * stays in hipmm_last_error(). Nothing here throws or aborts.
 *
 * The first call initialises hipmm with hipmm_init() (HIPMM_CONFIG) if the program has not done so itself. If that
 * fails, one line says why and every allocation gives NULL until the program initialises hipmm. Each device is served
 * by the resource that is in force on it at its first allocation, until hipmm_finalize().
 *
 * A stack that PyTorch's call builds may map memory where the process has several devices, since PyTorch orders its
 * copies between devices with events. A stack that CuPy's call builds may not, unless its graph says "mapped": CuPy
 * relies on the order that the runtime keeps for memory of hipMalloc.
 */
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

/* NULL for 0 bytes, and when there is no memory. Streams are taken to last: PyTorch's come from a pool and are never
 * destroyed. Whoever brings a stream of another origin calls hipmm_stream_retire() before destroying it. */
void *hipmm_torch_malloc(ssize_t bytes, int device, hipStream_t stream);

/* Frees on the stream that the block was allocated for, after the work that all recorded streams have been given so
 * far; the calling thread does not wait for it. Pointers that are not live here are refused.
 *
 * A block of hipmm_torch_malloc() must not be freed with hipmm_deallocate(): the private pools, the recorded streams and
 * the memory fraction would not know. A private pool notices only where the block is not live any more when the pool
 * would use it again; the pool then logs an error and takes another block. */
void hipmm_torch_free(void *ptr, ssize_t bytes, int device, hipStream_t stream);

/* What is called, if not NULL, when hipmm_torch_malloc() is about to give NULL, with the reason. PyTorch does not look
 * for NULL, so `function` may throw through hipmm: no lock is held. hipmm_torch.py passes
 * std::__throw_runtime_error. */
void hipmm_torch_on_failure(void (*function)(const char *message));

/* set_init_fn: initialises hipmm now. set_reset_fn (torch.cuda.empty_cache): gives idle memory of all devices back. */
void hipmm_torch_init(int device_count);
void hipmm_torch_reset(void);

/* set_memory_fraction_fn: from now on an allocation fails that would bring what is live through these hooks (as
 * requested, without rounding) over this part of the device's memory. What is live already stays; 1 is no limit. */
void hipmm_torch_memory_fraction(double fraction, int device);

/* set_base_alloc_fn: a live block that starts at `ptr`, and its size as requested; NULL and 0 otherwise. The block may
 * be a part of what the driver gave, so an IPC handle for it does not name it alone. */
void *hipmm_torch_base_alloc(void *ptr, size_t *bytes_out);

/* Whether the live block at `ptr` begins an allocation of the driver, as an IPC handle must: 1; 0 for one that begins
 * within an allocation, for mapped memory, and for what is not live here. Asks the driver. Thread-safe. */
int hipmm_torch_is_allocation(void *ptr);

/* set_record_stream_fn: `stream` uses the block at `ptr` as well. It must live until the block is freed. */
void hipmm_torch_record_stream(void *ptr, hipStream_t stream);

/* c10::cuda::MempoolId_t, a pair, as C++ passes it by value. */
struct hipmm_torch_pool {
  unsigned long long first, second;
};

/* set_begin_allocate_to_pool, set_end_allocate_to_pool_fn, set_release_pool: blocks allocated on `device` in between,
 * on whatever stream (`filter`, a C++ object, is not asked), belong to the pool: once freed they serve only allocations
 * of the same size and stream for the same pool, until it is released as often as it was begun. A captured graph can
 * therefore be replayed. */
void hipmm_torch_begin_allocate_to_pool(int device, struct hipmm_torch_pool pool, const void *filter);
void hipmm_torch_end_allocate_to_pool(int device, struct hipmm_torch_pool pool);
void hipmm_torch_release_pool(int device, struct hipmm_torch_pool pool);

/* ---- CuPy: cupy.cuda.memory.CFunctionAllocator ------------------------------------------------------------------ */

/* `stream`, CuPy's parameter, is the hipStream_t to allocate and free for. The resource must be able to find a block's
 * size by its pointer; all of hipmm's can. */
void *hipmm_cupy_malloc(void *stream, size_t bytes, int device);
void hipmm_cupy_free(void *stream, void *ptr, int device);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
