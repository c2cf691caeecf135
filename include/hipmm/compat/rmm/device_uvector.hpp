/* SPDX-License-Identifier: MIT */
/* rmm/device_uvector.hpp: uninitialized elements in device memory. */
#ifndef HIPMM_COMPAT_RMM_DEVICE_UVECTOR_HPP
#define HIPMM_COMPAT_RMM_DEVICE_UVECTOR_HPP

#include "device_buffer.hpp"
#if HIPMM_COMPAT_RMM == 26
#include <hipmm/compat/detail/span.hpp>
#endif

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

namespace rmm
{

/* Counts and indices are in elements. Iterators are device addresses. */
template <typename T> class HIPMM_COMPAT_TAG device_uvector
{
  static_assert(std::is_trivially_copyable_v<T>, "device_uvector only supports types that are trivially copyable.");

public:
  using value_type = T;
  using size_type = std::size_t;
  using reference = value_type &;
  using const_reference = const value_type &;
  using pointer = value_type *;
  using const_pointer = const value_type *;
  using iterator = pointer;
  using const_iterator = const_pointer;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  device_uvector() = delete;
  explicit device_uvector(std::size_t size, cuda_stream_view stream,
                          hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : storage_{bytes_of(size), alignof(T), stream, std::move(resource)}
  {
  }
  explicit device_uvector(const device_uvector &other, cuda_stream_view stream,
                          hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : storage_{other.storage_, stream, std::move(resource)}
  {
  }
  device_uvector(device_uvector &&) noexcept = default;
  device_uvector &operator=(device_uvector &&) noexcept = default;
  device_uvector(const device_uvector &) = delete;
  device_uvector &operator=(const device_uvector &) = delete;
  ~device_uvector() = default;

  [[nodiscard]] pointer element_ptr(std::size_t index) noexcept
  {
    assert(index < size());
    return data() + index;
  }
  [[nodiscard]] const_pointer element_ptr(std::size_t index) const noexcept
  {
    assert(index < size());
    return data() + index;
  }

  /* `value` must stay unchanged until the copy has completed. An index beyond the end is out_of_range. */
  void set_element_async(std::size_t index, const value_type &value, cuda_stream_view stream)
  {
    hipmm::compat::check(::hipmm_buffer_write_async(at(index), index * sizeof(T), &value, sizeof value, raw(stream)));
  }
  void set_element_async(std::size_t, const value_type &&, cuda_stream_view) = delete;
  void set_element_to_zero_async(std::size_t index, cuda_stream_view stream)
  {
    hipmm::compat::check(::hipmm_buffer_fill(at(index), index * sizeof(T), 0, sizeof(T), raw(stream)));
  }

  /* These wait. */
  void set_element(std::size_t index, const T &value, cuda_stream_view stream)
  {
    hipmm::compat::check(::hipmm_buffer_write(at(index), index * sizeof(T), &value, sizeof value, raw(stream)));
  }
  [[nodiscard]] value_type element(std::size_t index, cuda_stream_view stream) const
  {
    value_type value;
    hipmm::compat::check(::hipmm_buffer_read(at(index), index * sizeof(T), sizeof value, raw(stream), &value));
    return value;
  }
  [[nodiscard]] value_type front_element(cuda_stream_view stream) const
  {
    return element(0, stream);
  }
  [[nodiscard]] value_type back_element(cuda_stream_view stream) const
  {
    return element(size() - 1, stream);
  }

  void reserve(std::size_t new_capacity, cuda_stream_view stream)
  {
    storage_.reserve(bytes_of(new_capacity), stream);
  }
  void resize(std::size_t new_size, cuda_stream_view stream)
  {
    storage_.resize(bytes_of(new_size), stream);
  }
  void shrink_to_fit(cuda_stream_view stream)
  {
    storage_.shrink_to_fit(stream);
  }
  /* The vector is empty afterwards. */
  device_buffer release() noexcept
  {
    return std::move(storage_);
  }

  [[nodiscard]] std::size_t capacity() const noexcept
  {
    return storage_.capacity() / sizeof(T);
  }
  [[nodiscard]] pointer data() noexcept
  {
    return static_cast<pointer>(storage_.data());
  }
  [[nodiscard]] const_pointer data() const noexcept
  {
    return static_cast<const_pointer>(storage_.data());
  }
  [[nodiscard]] std::size_t size() const noexcept
  {
    return storage_.size() / sizeof(T);
  }
  [[nodiscard]] std::int64_t ssize() const noexcept
  {
    return storage_.ssize() / static_cast<std::int64_t>(sizeof(T));
  }
  [[nodiscard]] bool is_empty() const noexcept
  {
    return size() == 0;
  }

  [[nodiscard]] iterator begin() noexcept
  {
    return data();
  }
  [[nodiscard]] const_iterator begin() const noexcept
  {
    return data();
  }
  [[nodiscard]] const_iterator cbegin() const noexcept
  {
    return data();
  }
  [[nodiscard]] iterator end() noexcept
  {
    return data() + size();
  }
  [[nodiscard]] const_iterator end() const noexcept
  {
    return data() + size();
  }
  [[nodiscard]] const_iterator cend() const noexcept
  {
    return end();
  }
  /* Of later releases. */
  [[nodiscard]] reverse_iterator rbegin() noexcept
  {
    return reverse_iterator{end()};
  }
  [[nodiscard]] const_reverse_iterator rbegin() const noexcept
  {
    return const_reverse_iterator{end()};
  }
  [[nodiscard]] const_reverse_iterator crbegin() const noexcept
  {
    return rbegin();
  }
  [[nodiscard]] reverse_iterator rend() noexcept
  {
    return reverse_iterator{begin()};
  }
  [[nodiscard]] const_reverse_iterator rend() const noexcept
  {
    return const_reverse_iterator{begin()};
  }
  [[nodiscard]] const_reverse_iterator crend() const noexcept
  {
    return rend();
  }

#if HIPMM_COMPAT_RMM == 26
  [[nodiscard]] operator ::cuda::std::span<const T>() const noexcept
  {
    return ::cuda::std::span<const T>(data(), size());
  }
  [[nodiscard]] operator ::cuda::std::span<T>() noexcept
  {
    return ::cuda::std::span<T>(data(), size());
  }
#endif
  [[nodiscard]] device_async_resource_ref memory_resource() const noexcept
  {
    return storage_.memory_resource();
  }
  [[nodiscard]] cuda_stream_view stream() const noexcept
  {
    return storage_.stream();
  }
  void set_stream(cuda_stream_view stream) noexcept
  {
    storage_.set_stream(stream);
  }

private:
  static ::hipmm_stream_t raw(cuda_stream_view stream) noexcept
  {
    return hipmm::compat::to_hipmm(stream.value());
  }
  static std::size_t bytes_of(std::size_t count)
  {
    RMM_EXPECTS(count <= std::numeric_limits<std::size_t>::max() / sizeof(T),
                "Requested size overflows device_uvector storage.", rmm::invalid_argument);
    return count * sizeof(T);
  }
  [[nodiscard]] ::hipmm_buffer *at(std::size_t index) const
  {
    RMM_EXPECTS(index < size(), "Attempt to access out of bounds element.", rmm::out_of_range);
    return storage_.hipmm_buffer();
  }

  device_buffer storage_;
};

} // namespace rmm

#endif
