/* SPDX-License-Identifier: MIT */
/* rmm/thrust_rmm_allocator.h of RMM 0.12: Thrust's vectors and temporary memory from rmmAlloc(), in the modes and in the
 * log of rmmInitialize(). For C++ with Thrust or rocThrust; new programs take hipmm/thrust.hpp. */
#ifndef RMM_THRUST_RMM_ALLOCATOR_H
#define RMM_THRUST_RMM_ALLOCATOR_H

#include "rmm.h"

#include <thrust/device_ptr.h>
#include <thrust/device_reference.h>
#include <thrust/device_vector.h>
#include <thrust/version.h>

#if __has_include(<thrust/system/hip/execution_policy.h>)
#include <thrust/system/hip/execution_policy.h>
#else
#include <thrust/system/cuda/execution_policy.h>
#endif

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>

/* Allocates elements on a stream: std::bad_alloc for want of memory, std::runtime_error for another error. All are equal:
 * one may free what another has allocated. */
template <typename T> class rmm_allocator
{
public:
  using value_type = T;
  using pointer = thrust::device_ptr<T>;
  using const_pointer = thrust::device_ptr<const T>;
  using reference = thrust::device_reference<T>;
  using const_reference = thrust::device_reference<const T>;
  using size_type = std::size_t;
  using difference_type = typename pointer::difference_type;
  template <typename U> struct rebind {
    using other = rmm_allocator<U>;
  };

  rmm_allocator(hipmm_stream_t stream = nullptr) noexcept : stream_{stream}
  {
  }
  template <typename U> rmm_allocator(const rmm_allocator<U> &other) noexcept : stream_{other.stream()}
  {
  }

  pointer allocate(size_type count)
  {
    if (count > static_cast<size_type>(-1) / sizeof(T)) throw std::bad_alloc{};
    T *memory = nullptr;
    const rmmError_t error = RMM_ALLOC(&memory, count * sizeof(T), stream_);
    if (error == RMM_ERROR_OUT_OF_MEMORY) throw std::bad_alloc{};
    if (error != RMM_SUCCESS) throw std::runtime_error{rmmGetErrorString(error)};
    return pointer{memory};
  }
  void deallocate(pointer ptr, size_type) noexcept
  {
    static_cast<void>(RMM_FREE(ptr.get(), stream_));
  }

  hipmm_stream_t stream() const noexcept
  {
    return stream_;
  }

  template <typename U> bool operator==(const rmm_allocator<U> &) const noexcept
  {
    return true;
  }
  template <typename U> bool operator!=(const rmm_allocator<U> &) const noexcept
  {
    return false;
  }

private:
  hipmm_stream_t stream_;
};

namespace rmm
{

#ifndef HIPMM_COMPAT_RMM_DEVICE_VECTOR_HPP /* which has the vector of RMM 23.12 */
template <typename T> using device_vector = thrust::device_vector<T, rmm_allocator<T>>;
#endif

#if __has_include(<thrust/system/hip/execution_policy.h>)
using par_t = decltype(thrust::hip::par(rmm_allocator<char>{}));
#else
using par_t = decltype(thrust::cuda::par(rmm_allocator<char>{}));
#endif
using exec_policy_t = std::unique_ptr<par_t>;

/* For thrust::sort(rmm::exec_policy(stream)->on(stream), …): temporary memory is allocated on the stream. */
inline exec_policy_t exec_policy(hipmm_stream_t stream = nullptr)
{
  return exec_policy_t{new par_t{rmm_allocator<char>{stream}}};
}

} // namespace rmm

#endif
