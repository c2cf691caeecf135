/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/runtime.hpp: the runtime whose types a program of RMM uses, and its names.
 *
 * With HIP's compiler, or with __HIP_PLATFORM_AMD__, it is HIP, and CUDA's names stand for HIP's, as in hipMM. Otherwise it
 * is CUDA where its headers are found, else HIP where its headers are found. Without either the stream type alone is
 * known: nothing here calls the runtime, so a program needs its headers only for its own calls. */
#ifndef HIPMM_COMPAT_DETAIL_RUNTIME_HPP
#define HIPMM_COMPAT_DETAIL_RUNTIME_HPP

#include <hipmm/compat/detail/generation.hpp>
#include <hipmm/stream.h>

#include <atomic>

#if !defined(__HIP_PLATFORM_AMD__) && !defined(__HIP__) && __has_include(<cuda_runtime_api.h>)
#define HIPMM_COMPAT_CUDA 1
#include <cuda_runtime_api.h>
#if HIPMM_COMPAT_RMM == 26
#if __has_include(<cuda/std/version>) && !defined(HIPMM_COMPAT_OWN_CUDA_MR)
#define HIPMM_COMPAT_CCCL 1 /* CUDA's C++ library; its folder may also stand behind hipmm's rmm26 */
#include <cuda/std/version>
#if !defined(CCCL_VERSION) || CCCL_VERSION < 3003000
#error \
    "RMM 26's resources need CCCL 3.3 or newer, and the compiler finds an older one; put the folder of a newer one before it (pip download nvidia-cuda-cccl), or define HIPMM_COMPAT_OWN_CUDA_MR for hipmm's own cuda::mr"
#include <HIPMM_COMPAT_OWN_CUDA_MR> /* a missing file ends the compilation without more errors */
#endif
#include <cuda/stream_ref>
#define HIPMM_COMPAT_CUDA_STREAM_REF 1
#endif
#elif __has_include(<cuda/stream_ref>)
#include <cuda/stream_ref>
#define HIPMM_COMPAT_CUDA_STREAM_REF 1
#endif
#elif __has_include(<hip/hip_runtime_api.h>)
#define HIPMM_COMPAT_HIP 1
#if !defined(__HIP_PLATFORM_AMD__) && !defined(__HIP_PLATFORM_NVIDIA__)
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime_api.h>
#include <hipmm/compat/detail/cuda_names.hpp>
#else
typedef struct CUstream_st *cudaStream_t;
#endif

/* For functions with a state of the process: the same in every library, also in one that hides its symbols. */
#if defined(__GNUC__)
#define HIPMM_COMPAT_ONE __attribute__((visibility("default")))
#else
#define HIPMM_COMPAT_ONE
#endif

namespace hipmm::compat
{

using stream_handle = ::cudaStream_t;

#if defined(HIPMM_COMPAT_HIP) || defined(HIPMM_COMPAT_CUDA)
using mempool_handle = ::cudaMemPool_t;
#else
using mempool_handle = void *;
#endif

/* With a default stream for each thread, the null handle stands for that stream. */
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(HIP_API_PER_THREAD_DEFAULT_STREAM)
inline constexpr bool is_default_per_thread = true;
#else
inline constexpr bool is_default_per_thread = false;
#endif

inline ::hipmm_stream_t to_hipmm(stream_handle stream) noexcept
{
  return is_default_per_thread && !stream ? HIPMM_PER_THREAD_STREAM : static_cast<::hipmm_stream_t>(stream);
}

inline stream_handle from_hipmm(::hipmm_stream_t stream) noexcept
{
  return static_cast<stream_handle>(stream);
}

/* Initialises hipmm at the first use, with the graph that HIPMM_CONFIG or ./hipmm.json has. The initialisation is never
 * undone: objects of static storage may use it until the process ends. */
HIPMM_COMPAT_ONE inline ::hipmm_status open_library() noexcept
{
  static std::atomic<bool> is_open{false};
  if (is_open.load(std::memory_order_acquire)) return HIPMM_OK;
  const ::hipmm_status status = ::hipmm_init_if_needed();
  if (status == HIPMM_OK) is_open.store(true, std::memory_order_release);
  return status;
}

} // namespace hipmm::compat

#endif
