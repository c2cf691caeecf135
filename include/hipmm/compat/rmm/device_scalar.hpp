/* SPDX-License-Identifier: MIT */
/* rmm/device_scalar.hpp: one element in device memory. */
#ifndef HIPMM_COMPAT_RMM_DEVICE_SCALAR_HPP
#define HIPMM_COMPAT_RMM_DEVICE_SCALAR_HPP

#include "device_uvector.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace rmm
{

template <typename T> class HIPMM_COMPAT_TAG device_scalar
{
  static_assert(std::is_trivially_copyable_v<T>, "Scalar type must be trivially copyable");

public:
  using value_type = typename device_uvector<T>::value_type;
  using size_type = typename device_uvector<T>::size_type;
  using reference = typename device_uvector<T>::reference;
  using const_reference = typename device_uvector<T>::const_reference;
  using pointer = typename device_uvector<T>::pointer;
  using const_pointer = typename device_uvector<T>::const_pointer;

  device_scalar() = delete;
  explicit device_scalar(cuda_stream_view stream,
                         hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : storage_{1, stream, std::move(resource)}
  {
  }
  /* Does not wait for the copy of the value. */
  explicit device_scalar(const value_type &initial_value, cuda_stream_view stream,
                         hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : storage_{1, stream, std::move(resource)}
  {
    set_value_async(initial_value, stream);
  }
  device_scalar(const device_scalar &other, cuda_stream_view stream,
                hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : storage_{other.storage_, stream, std::move(resource)}
  {
  }
  device_scalar(device_scalar &&) noexcept = default;
  device_scalar &operator=(device_scalar &&) noexcept = default;
  device_scalar(const device_scalar &) = delete;
  device_scalar &operator=(const device_scalar &) = delete;
  ~device_scalar() = default;

  /* Waits. */
  [[nodiscard]] value_type value(cuda_stream_view stream) const
  {
    return storage_.front_element(stream);
  }
  /* As early releases, and the examples of later ones, have it: waits. */
  void set_value(const value_type &value, cuda_stream_view stream)
  {
    storage_.set_element(0, value, stream);
  }
  /* `value` must stay unchanged until the copy has completed. */
  void set_value_async(const value_type &value, cuda_stream_view stream)
  {
    storage_.set_element_async(0, value, stream);
  }
  void set_value_async(value_type &&, cuda_stream_view) = delete;
  void set_value_to_zero_async(cuda_stream_view stream)
  {
    storage_.set_element_to_zero_async(0, stream);
  }

  [[nodiscard]] pointer data() noexcept
  {
    return storage_.data();
  }
  [[nodiscard]] const_pointer data() const noexcept
  {
    return storage_.data();
  }
  [[nodiscard]] constexpr size_type size() const noexcept
  {
    return 1;
  }
  [[nodiscard]] cuda_stream_view stream() const noexcept
  {
    return storage_.stream();
  }
  void set_stream(cuda_stream_view stream) noexcept
  {
    storage_.set_stream(stream);
  }
  [[nodiscard]] device_async_resource_ref memory_resource() const noexcept
  {
    return storage_.memory_resource();
  }

private:
  device_uvector<T> storage_;
};

} // namespace rmm

#endif
