/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/thrust_allocator_adaptor.hpp of RMM 23.12: an allocator for Thrust's vectors. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_THRUST_ALLOCATOR_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_THRUST_ALLOCATOR_ADAPTOR_HPP

#include "per_device_resource.hpp"

#include <thrust/device_malloc_allocator.h>
#include <thrust/device_ptr.h>
#include <thrust/memory.h>

#include <cstddef>

namespace rmm::mr
{

/* For elements on a stream, from the current device's current resource unless another one is given. */
template <typename T> class thrust_allocator : public thrust::device_malloc_allocator<T>
{
public:
  using Base = thrust::device_malloc_allocator<T>;
  using pointer = typename Base::pointer;
  using size_type = typename Base::size_type;
  template <typename U> struct rebind {
    using other = thrust_allocator<U>;
  };

  thrust_allocator() : thrust_allocator{cuda_stream_view{}}
  {
  }
  explicit thrust_allocator(cuda_stream_view stream) : thrust_allocator{stream, get_current_device_resource()}
  {
  }
  thrust_allocator(cuda_stream_view stream, device_async_resource_ref resource) : stream_{stream}, resource_{resource}
  {
  }
  template <typename U>
  thrust_allocator(const thrust_allocator<U> &other) : stream_{other.stream()}, resource_{other.memory_resource()}
  {
  }

  pointer allocate(size_type count)
  {
    return thrust::device_pointer_cast(static_cast<T *>(resource_.allocate_async(count * sizeof(T), stream_)));
  }
  void deallocate(pointer ptr, size_type count)
  {
    resource_.deallocate_async(thrust::raw_pointer_cast(ptr), count * sizeof(T), stream_);
  }

  [[nodiscard]] device_async_resource_ref memory_resource() const noexcept
  {
    return resource_;
  }
  [[nodiscard]] cuda_stream_view stream() const noexcept
  {
    return stream_;
  }

private:
  cuda_stream_view stream_;
  device_async_resource_ref resource_;
};

} // namespace rmm::mr

#endif
