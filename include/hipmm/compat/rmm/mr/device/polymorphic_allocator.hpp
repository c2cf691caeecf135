/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/polymorphic_allocator.hpp of RMM 23.12: allocators of elements for a stream. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP

#include "per_device_resource.hpp"
#include <hipmm/compat/detail/stream_allocator.hpp>

#include <cstddef>

namespace rmm::mr
{

template <typename T> class polymorphic_allocator
{
public:
  using value_type = T;

  /* The current device's current resource. */
  polymorphic_allocator() : resource_{get_current_device_resource()}
  {
  }
  polymorphic_allocator(device_memory_resource *resource) : resource_{resource}
  {
  }
  template <typename U>
  polymorphic_allocator(const polymorphic_allocator<U> &other) noexcept : resource_{other.resource()}
  {
  }

  value_type *allocate(std::size_t count, cuda_stream_view stream)
  {
    return static_cast<value_type *>(resource_->allocate(count * sizeof(T), stream));
  }
  void deallocate(value_type *ptr, std::size_t count, cuda_stream_view stream)
  {
    resource_->deallocate(ptr, count * sizeof(T), stream);
  }
  [[nodiscard]] device_memory_resource *resource() const noexcept
  {
    return resource_;
  }

private:
  device_memory_resource *resource_;
};

template <typename T, typename U>
bool operator==(const polymorphic_allocator<T> &one, const polymorphic_allocator<U> &other)
{
  return one.resource()->is_equal(*other.resource());
}
template <typename T, typename U>
bool operator!=(const polymorphic_allocator<T> &one, const polymorphic_allocator<U> &other)
{
  return !(one == other);
}

} // namespace rmm::mr

#endif
