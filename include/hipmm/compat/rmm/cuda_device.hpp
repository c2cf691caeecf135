/* SPDX-License-Identifier: MIT */
/* rmm/cuda_device.hpp: devices by number, the current one, and their memory. */
#ifndef HIPMM_COMPAT_RMM_CUDA_DEVICE_HPP
#define HIPMM_COMPAT_RMM_CUDA_DEVICE_HPP

#include "detail/aligned.hpp"
#include "detail/error.hpp"
#include <hipmm/compat/detail/core.hpp>

#include <cstddef>
#include <utility>

namespace rmm
{

struct HIPMM_COMPAT_TAG cuda_device_id {
  using value_type = int;

#if HIPMM_COMPAT_RMM == 26
  cuda_device_id() : device_{hipmm::compat::current_device()}
  {
  }
#else
  constexpr cuda_device_id() noexcept = default;
#endif
  explicit constexpr cuda_device_id(value_type device) noexcept : device_{device}
  {
  }
  [[nodiscard]] constexpr value_type value() const noexcept
  {
    return device_;
  }

  [[nodiscard]] friend constexpr bool operator==(const cuda_device_id &one, const cuda_device_id &other) noexcept
  {
    return one.device_ == other.device_;
  }
  [[nodiscard]] friend constexpr bool operator!=(const cuda_device_id &one, const cuda_device_id &other) noexcept
  {
    return one.device_ != other.device_;
  }

private:
  value_type device_{-1};
};

HIPMM_COMPAT_TAG inline cuda_device_id get_current_cuda_device()
{
  return cuda_device_id{hipmm::compat::current_device()};
}

inline int get_num_cuda_devices()
{
  int count = 0;
  hipmm::compat::need_library();
  hipmm::compat::check(::hipmm_device_count(&count));
  return count;
}

/* Free memory of the current device, and all of its memory, in bytes. */
[[nodiscard]] inline std::pair<std::size_t, std::size_t> available_device_memory()
{
  std::size_t free = 0, total = 0;
  const int device = hipmm::compat::current_device();
  hipmm::compat::check(::hipmm_device_memory(device, &free, &total));
  return {free, total};
}

/* So much per cent of its free memory, in bytes, rounded down to 256. */
[[nodiscard]] inline std::size_t percent_of_free_device_memory(int percent)
{
  std::size_t bytes = 0;
  const int device = hipmm::compat::current_device();
  hipmm::compat::check(::hipmm_device_percent_of_free_memory(device, percent, &bytes));
  return bytes;
}

/* Makes a device current until the object is destroyed; a negative device changes nothing. */
struct HIPMM_COMPAT_TAG cuda_set_device_raii {
  explicit cuda_set_device_raii(cuda_device_id device)
      : previous_{get_current_cuda_device()}, is_changed_{device.value() >= 0 && device != previous_}
  {
    if (is_changed_) hipmm::compat::check(::hipmm_device_set(device.value()));
  }
  ~cuda_set_device_raii() noexcept
  {
    if (is_changed_) static_cast<void>(::hipmm_device_set(previous_.value()));
  }
  cuda_set_device_raii(const cuda_set_device_raii &) = delete;
  cuda_set_device_raii &operator=(const cuda_set_device_raii &) = delete;

private:
  cuda_device_id previous_;
  bool is_changed_;
};

namespace detail
{

using rmm::available_device_memory;

} // namespace detail
} // namespace rmm

#endif
