/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/stream_allocator.hpp: binds an allocator whose functions take a stream to one stream. The result is an
 * allocator as the standard library wants it. */
#ifndef HIPMM_COMPAT_DETAIL_STREAM_ALLOCATOR_HPP
#define HIPMM_COMPAT_DETAIL_STREAM_ALLOCATOR_HPP

#include <rmm/cuda_stream_view.hpp>

#include <cstddef>
#include <memory>

namespace rmm::mr
{

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
