/* SPDX-License-Identifier: MIT */
/* rmm/prefetch.hpp of RMM since 24.12: moves managed memory to a device. It calls the runtime, so it is there with the headers
 * of HIP or CUDA only, and the program links with that library. */
#ifndef HIPMM_COMPAT_RMM_PREFETCH_HPP
#define HIPMM_COMPAT_RMM_PREFETCH_HPP

#include "cuda_device.hpp"
#include "cuda_stream_view.hpp"
#include <hipmm/compat/detail/span.hpp>

#include <cstddef>

#if defined(HIPMM_COMPAT_HIP) || defined(HIPMM_COMPAT_CUDA)
namespace rmm
{

/* A negative device is the host. No effect on other memory, nor where the device cannot prefetch. */
inline void prefetch(const void *ptr, std::size_t size, cuda_device_id device, cuda_stream_view stream)
{
  if (size == 0) return;
#if defined(HIPMM_COMPAT_CUDA) && CUDART_VERSION >= 13000
  cudaMemLocation place{};
  place.type = device.value() < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device.value() < 0 ? 0 : device.value();
  const cudaError_t failed = cudaMemPrefetchAsync(ptr, size, place, 0, stream.value());
#else
  const cudaError_t failed = cudaMemPrefetchAsync(ptr, size, device.value(), stream.value());
#endif
  if (failed == cudaErrorInvalidValue || failed == cudaErrorNotSupported) {
    static_cast<void>(cudaGetLastError());
    return;
  }
  RMM_CUDA_TRY(failed);
}

template <typename T> void prefetch(::cuda::std::span<const T> data, cuda_device_id device, cuda_stream_view stream)
{
  prefetch(data.data(), data.size_bytes(), device, stream);
}

} // namespace rmm
#endif

#endif
