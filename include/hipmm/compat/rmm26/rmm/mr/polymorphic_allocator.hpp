/* SPDX-License-Identifier: MIT */
/* rmm/mr/polymorphic_allocator.hpp of RMM 26: allocators of elements for a stream. */
#ifndef HIPMM_COMPAT_RMM_MR_POLYMORPHIC_ALLOCATOR_HPP
#define HIPMM_COMPAT_RMM_MR_POLYMORPHIC_ALLOCATOR_HPP

#include "per_device_resource.hpp"
#include <hipmm/compat/detail/stream_allocator.hpp>

#include <cstddef>
#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

template <typename T> class polymorphic_allocator
{
public:
  using value_type = T;

  /* Of the current device's current resource. */
  polymorphic_allocator() = default;
  polymorphic_allocator(hipmm::compat::any_device resource) : resource_{std::move(resource)}
  {
  }
  template <typename U>
  polymorphic_allocator(const polymorphic_allocator<U> &other) noexcept : resource_{other.get_upstream_resource()}
  {
  }

  value_type *allocate(std::size_t count, cuda_stream_view stream)
  {
    return static_cast<value_type *>(resource_.allocate(stream, count * sizeof(T), CUDA_ALLOCATION_ALIGNMENT));
  }
  void deallocate(value_type *ptr, std::size_t count, cuda_stream_view stream) noexcept
  {
    resource_.deallocate(stream, ptr, count * sizeof(T), CUDA_ALLOCATION_ALIGNMENT);
  }
  [[nodiscard]] device_async_resource_ref get_upstream_resource() const noexcept
  {
    return device_async_resource_ref{resource_};
  }

private:
  mutable hipmm::compat::any_device resource_{detail::current_resource()};
};

template <typename T, typename U>
bool operator==(const polymorphic_allocator<T> &one, const polymorphic_allocator<U> &other)
{
  return one.get_upstream_resource() == other.get_upstream_resource();
}
template <typename T, typename U>
bool operator!=(const polymorphic_allocator<T> &one, const polymorphic_allocator<U> &other)
{
  return !(one == other);
}

} // namespace of_26
} // namespace rmm::mr

#endif
