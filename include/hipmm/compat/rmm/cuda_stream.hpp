/* SPDX-License-Identifier: MIT */
/* rmm/cuda_stream.hpp: a stream with an owner. */
#ifndef HIPMM_COMPAT_RMM_CUDA_STREAM_HPP
#define HIPMM_COMPAT_RMM_CUDA_STREAM_HPP

#include "cuda_stream_view.hpp"
#include <hipmm/compat/detail/core.hpp>

#include <cassert>
#include <cstdint>
#include <utility>

namespace rmm
{

class cuda_stream
{
public:
  /* Of later releases. */
  enum class flags : std::uint32_t {
    sync_default = HIPMM_STREAM_SYNC_DEFAULT,
    non_blocking = HIPMM_STREAM_NON_BLOCKING
  };

  /* Of the current device. */
  explicit cuda_stream(flags wanted = flags::sync_default)
  {
    const int device = hipmm::compat::current_device();
    hipmm::compat::check(::hipmm_stream_create(device, static_cast<unsigned>(wanted), &stream_));
  }
  cuda_stream(cuda_stream &&other) noexcept : stream_{std::exchange(other.stream_, nullptr)}
  {
  }
  cuda_stream &operator=(cuda_stream &&other) noexcept
  {
    cuda_stream taken{std::move(other)};
    std::swap(stream_, taken.stream_);
    return *this;
  }
  ~cuda_stream()
  {
    if (stream_) static_cast<void>(::hipmm_stream_destroy(stream_));
  }
  cuda_stream(const cuda_stream &) = delete;
  cuda_stream &operator=(const cuda_stream &) = delete;

  /* Not after it was moved from. */
  [[nodiscard]] bool is_valid() const
  {
    return stream_ != nullptr;
  }
  [[nodiscard]] hipmm::compat::stream_handle value() const
  {
    assert(is_valid());
    return hipmm::compat::from_hipmm(stream_);
  }
  explicit operator hipmm::compat::stream_handle() const noexcept
  {
    return value();
  }
  [[nodiscard]] cuda_stream_view view() const
  {
    return cuda_stream_view{value()};
  }
  operator cuda_stream_view() const
  {
    return view();
  }
#ifdef HIPMM_COMPAT_CUDA_STREAM_REF
  operator ::cuda::stream_ref() const noexcept
  {
    return ::cuda::stream_ref{value()};
  }
#endif

  void synchronize() const
  {
    view().synchronize();
  }
  void synchronize_no_throw() const noexcept
  {
    view().synchronize_no_throw();
  }

private:
  ::hipmm_stream_t stream_ = nullptr;
};

} // namespace rmm

#endif
