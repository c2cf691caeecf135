/* SPDX-License-Identifier: MIT */
/* rmm/mr/thrust_allocator_adaptor.hpp of RMM 26: an allocator for Thrust's vectors. */
#ifndef HIPMM_COMPAT_RMM_MR_THRUST_ALLOCATOR_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_THRUST_ALLOCATOR_ADAPTOR_HPP

#include "per_device_resource.hpp"

#include <thrust/device_malloc_allocator.h>
#include <thrust/device_ptr.h>
#include <thrust/memory.h>

#include <cstddef>
#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

/* For elements on a stream, from the current device's current resource unless another one is given. Allocations and frees
 * are made with the device current that was current when the allocator was made. */
template <typename T> class thrust_allocator : public thrust::device_malloc_allocator<T>
{
public:
  using Base = thrust::device_malloc_allocator<T>;
  using pointer = typename Base::pointer;
  using size_type = typename Base::size_type;
  template <typename U> struct rebind {
    using other = thrust_allocator<U>;
  };

  thrust_allocator() = default;
  explicit thrust_allocator(cuda_stream_view stream) : stream_{stream}
  {
  }
  thrust_allocator(cuda_stream_view stream, hipmm::compat::any_device resource)
      : stream_{stream}, resource_{std::move(resource)}
  {
  }
  template <typename U>
  thrust_allocator(const thrust_allocator<U> &other)
      : stream_{other.stream()}, resource_{other.get_upstream_resource()}, device_{other.hipmm_device()}
  {
  }

  pointer allocate(size_type count)
  {
    const cuda_set_device_raii current{device_};
    return thrust::device_pointer_cast(
        static_cast<T *>(resource_.allocate(stream_, count * sizeof(T), CUDA_ALLOCATION_ALIGNMENT)));
  }
  void deallocate(pointer ptr, size_type count) noexcept
  {
    const cuda_set_device_raii current{device_};
    resource_.deallocate(stream_, thrust::raw_pointer_cast(ptr), count * sizeof(T), CUDA_ALLOCATION_ALIGNMENT);
  }

  [[nodiscard]] device_async_resource_ref get_upstream_resource() const noexcept
  {
    return device_async_resource_ref{resource_};
  }
  [[nodiscard]] cuda_stream_view stream() const noexcept
  {
    return stream_;
  }
  [[nodiscard]] cuda_device_id hipmm_device() const noexcept
  {
    return device_;
  }
  friend constexpr void get_property(const thrust_allocator &, ::cuda::mr::device_accessible) noexcept
  {
  }

private:
  cuda_stream_view stream_;
  mutable hipmm::compat::any_device resource_{detail::current_resource()};
  cuda_device_id device_;
};

} // namespace of_26
} // namespace rmm::mr

#endif
