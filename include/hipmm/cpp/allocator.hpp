/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/allocator.hpp: resources as the standard library's allocators, and owners of single objects. */
#ifndef HIPMM_CPP_ALLOCATOR_HPP
#define HIPMM_CPP_ALLOCATOR_HPP

#include <hipmm/cpp/resource.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <type_traits>

namespace hipmm
{

/* ---- The standard library's memory resource, for memory that the host can use ---- */

/* std::pmr containers over `pinned`, `host`, `managed`, `system`, or a pool above one of these. Another resource throws
 * hipmm::error: the host cannot read its memory. Allocations wait for the stream, so the host may use the memory at
 * once. */
class pmr_resource : public std::pmr::memory_resource
{
public:
  /* `from` without a resource of its own: the current device's current resource at this moment. */
  explicit pmr_resource(const resource &from, stream_ref stream = {})
      : from_{from ? from : current_resource()}, stream_{stream}
  {
    if (from_.is_host_accessible()) return;
    throw std::invalid_argument{"the host cannot access memory of \"" + from_.name() +
                                "\"; take a resource over pinned, host, managed or system"};
  }

  [[nodiscard]] const resource &get_resource() const noexcept
  {
    return from_;
  }

private:
  /* The standard library promises its callers an address for zero bytes too. */
  static constexpr std::size_t at_least_one(std::size_t bytes) noexcept
  {
    return bytes == 0 ? 1 : bytes;
  }
  void *do_allocate(std::size_t bytes, std::size_t alignment) override
  {
    bytes = at_least_one(bytes);
    alignment = wide(alignment);
    void *ptr = from_.allocate(bytes, stream_, alignment);
    const status waited = ::hipmm_stream_synchronize(from_.device(), stream_.get());
    if (waited == HIPMM_OK) return ptr;
    from_.deallocate(ptr, bytes, stream_, alignment);
    throw_failure(waited);
  }
  void do_deallocate(void *ptr, std::size_t bytes, std::size_t alignment) override
  {
    from_.deallocate(ptr, at_least_one(bytes), stream_, wide(alignment));
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
  {
    const auto *same = dynamic_cast<const pmr_resource *>(&other);
    return same && same->from_ == from_ && same->stream_ == stream_;
  }

  static std::size_t wide(std::size_t alignment) noexcept
  {
    return alignment < default_alignment ? default_alignment : alignment;
  }

  resource from_;
  stream_ref stream_;
};

/* ---- Stream-ordered allocators ---- */

/* Allocates elements of any type for a stream (RMM: polymorphic_allocator). Two are equal if their resources are. */
template <typename T> class polymorphic_allocator
{
public:
  using value_type = T;

  polymorphic_allocator() : from_{current_resource()}
  {
  }
  /* `from` without a resource of its own: the current device's current resource at this moment. */
  explicit polymorphic_allocator(const resource &from) : from_{from ? from : current_resource()}
  {
  }
  template <typename U>
  polymorphic_allocator(const polymorphic_allocator<U> &other) noexcept : from_{other.get_resource()}
  {
  }

  [[nodiscard]] T *allocate(std::size_t count, stream_ref stream) const
  {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length{};
    return static_cast<T *>(from_.allocate(count * sizeof(T), stream));
  }
  void deallocate(T *ptr, std::size_t count, stream_ref stream) const noexcept
  {
    from_.deallocate(ptr, count * sizeof(T), stream);
  }

  [[nodiscard]] const resource &get_resource() const noexcept
  {
    return from_;
  }

private:
  resource from_;
};

template <typename T, typename U>
bool operator==(const polymorphic_allocator<T> &one, const polymorphic_allocator<U> &other) noexcept
{
  return one.get_resource() == other.get_resource();
}
template <typename T, typename U>
bool operator!=(const polymorphic_allocator<T> &one, const polymorphic_allocator<U> &other) noexcept
{
  return !(one == other);
}

/* A stream-ordered allocator bound to one stream: an allocator as the standard library wants it. Two are equal if their
 * allocators and streams are. */
template <typename Allocator> class stream_allocator_adaptor
{
public:
  using value_type = typename std::allocator_traits<Allocator>::value_type;
  template <typename U> struct rebind {
    using other = stream_allocator_adaptor<typename std::allocator_traits<Allocator>::template rebind_alloc<U>>;
  };

  stream_allocator_adaptor(const Allocator &allocator, stream_ref stream) : allocator_{allocator}, stream_{stream}
  {
  }
  template <typename Other>
  stream_allocator_adaptor(const stream_allocator_adaptor<Other> &other)
      : allocator_{other.underlying_allocator()}, stream_{other.stream()}
  {
  }

  [[nodiscard]] value_type *allocate(std::size_t count)
  {
    return allocator_.allocate(count, stream_);
  }
  void deallocate(value_type *ptr, std::size_t count) noexcept
  {
    allocator_.deallocate(ptr, count, stream_);
  }

  [[nodiscard]] const Allocator &underlying_allocator() const noexcept
  {
    return allocator_;
  }
  [[nodiscard]] stream_ref stream() const noexcept
  {
    return stream_;
  }

private:
  Allocator allocator_;
  stream_ref stream_;
};

template <typename One, typename Other>
bool operator==(const stream_allocator_adaptor<One> &one, const stream_allocator_adaptor<Other> &other) noexcept
{
  return one.underlying_allocator() == other.underlying_allocator() && one.stream() == other.stream();
}
template <typename One, typename Other>
bool operator!=(const stream_allocator_adaptor<One> &one, const stream_allocator_adaptor<Other> &other) noexcept
{
  return !(one == other);
}

/* ---- Owners of single objects ---- */

/* Frees `count` elements on a stream, without running destructors: the memory is the device's. */
template <typename T> class deleter
{
public:
  using pointer = std::remove_extent_t<T> *;

  deleter() noexcept = default;
  deleter(const resource &from, std::size_t count, stream_ref stream) noexcept
      : from_{from}, count_{count}, stream_{stream}
  {
  }

  void operator()(pointer ptr) const noexcept
  {
    from_.deallocate(ptr, count_ * sizeof(std::remove_extent_t<T>), stream_);
  }

private:
  resource from_;
  std::size_t count_ = 1;
  stream_ref stream_;
};

template <typename T> using unique_ptr = std::unique_ptr<T, deleter<T>>;

/* Memory for one T, or for `count` elements of T[], whose contents are undefined. */
template <typename T>
[[nodiscard]] unique_ptr<T> make_unique(stream_ref stream, const resource &from = {}, std::size_t count = 1)
{
  using element = std::remove_extent_t<T>;
  static_assert(std::is_trivially_destructible_v<element>, "no destructor runs on the device's memory");
  const polymorphic_allocator<element> allocator{from};
  return unique_ptr<T>{allocator.allocate(count, stream), deleter<T>{allocator.get_resource(), count, stream}};
}

} // namespace hipmm

#endif
