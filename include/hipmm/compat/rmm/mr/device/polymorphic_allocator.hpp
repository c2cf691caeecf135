/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/polymorphic_allocator.hpp of RMM 23.12: allocators of elements for a stream. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_POLYMORPHIC_ALLOCATOR_HPP

#include "per_device_resource.hpp"

#include <cstddef>
#include <memory>

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

/* Such an allocator bound to a stream: an allocator as the standard library wants it. */
template <typename Allocator> class stream_allocator_adaptor
{
public:
  using value_type = typename std::allocator_traits<Allocator>::value_type;
  template <typename T> struct rebind {
    using other = stream_allocator_adaptor<typename std::allocator_traits<Allocator>::template rebind_alloc<T>>;
  };

  stream_allocator_adaptor() = delete;
  stream_allocator_adaptor(const Allocator &allocator, cuda_stream_view stream) : allocator_{allocator}, stream_{stream}
  {
  }
  template <typename Other>
  stream_allocator_adaptor(const stream_allocator_adaptor<Other> &other)
      : stream_allocator_adaptor{other.underlying_allocator(), other.stream()}
  {
  }

  value_type *allocate(std::size_t count)
  {
    return allocator_.allocate(count, stream_);
  }
  void deallocate(value_type *ptr, std::size_t count)
  {
    allocator_.deallocate(ptr, count, stream_);
  }
  [[nodiscard]] cuda_stream_view stream() const noexcept
  {
    return stream_;
  }
  [[nodiscard]] Allocator underlying_allocator() const noexcept
  {
    return allocator_;
  }

private:
  Allocator allocator_;
  cuda_stream_view stream_;
};

template <typename One, typename Other>
bool operator==(const stream_allocator_adaptor<One> &one, const stream_allocator_adaptor<Other> &other)
{
  return one.underlying_allocator() == other.underlying_allocator();
}
template <typename One, typename Other>
bool operator!=(const stream_allocator_adaptor<One> &one, const stream_allocator_adaptor<Other> &other)
{
  return !(one == other);
}

template <typename Allocator> auto make_stream_allocator_adaptor(const Allocator &allocator, cuda_stream_view stream)
{
  return stream_allocator_adaptor<Allocator>{allocator, stream};
}

} // namespace rmm::mr

#endif
