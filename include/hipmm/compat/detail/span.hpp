/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/span.hpp: cuda::std::span without CUDA's C++ library: std::span, in C++17 what programs of RMM call. */
#ifndef HIPMM_COMPAT_DETAIL_SPAN_HPP
#define HIPMM_COMPAT_DETAIL_SPAN_HPP

#if __has_include(<cuda/std/version>)
#include <cuda/std/span>
#elif __cplusplus >= 202002L
#include <span>

namespace cuda::std
{
using ::std::span;
} // namespace cuda::std
#else
#include <cstddef>
#include <type_traits>

namespace cuda::std
{

template <typename T> class span
{
public:
  using element_type = T;
  using value_type = ::std::remove_cv_t<T>;

  constexpr span() noexcept = default;
  constexpr span(T *data, ::std::size_t size) noexcept : data_{data}, size_{size}
  {
  }
  template <typename U, typename = ::std::enable_if_t<::std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr span(const span<U> &other) noexcept : data_{other.data()}, size_{other.size()}
  {
  }

  [[nodiscard]] constexpr T *data() const noexcept
  {
    return data_;
  }
  [[nodiscard]] constexpr ::std::size_t size() const noexcept
  {
    return size_;
  }
  [[nodiscard]] constexpr ::std::size_t size_bytes() const noexcept
  {
    return size_ * sizeof(T);
  }
  [[nodiscard]] constexpr bool empty() const noexcept
  {
    return size_ == 0;
  }
  [[nodiscard]] constexpr T *begin() const noexcept
  {
    return data_;
  }
  [[nodiscard]] constexpr T *end() const noexcept
  {
    return data_ + size_;
  }
  [[nodiscard]] constexpr T &operator[](::std::size_t index) const noexcept
  {
    return data_[index];
  }

private:
  T *data_ = nullptr;
  ::std::size_t size_ = 0;
};

} // namespace cuda::std
#endif

#endif
