/* SPDX-License-Identifier: MIT */
/* rmm/cuda_stream_view.hpp: a stream that somebody else owns. */
#ifndef HIPMM_COMPAT_RMM_CUDA_STREAM_VIEW_HPP
#define HIPMM_COMPAT_RMM_CUDA_STREAM_VIEW_HPP

#include "detail/error.hpp"

#include <cassert>
#include <cstddef>
#include <ostream>
#include <type_traits>

namespace rmm
{

class cuda_stream_view
{
public:
  constexpr cuda_stream_view() noexcept = default;
  constexpr cuda_stream_view(hipmm::compat::stream_handle stream) noexcept : stream_{stream}
  {
  }
  constexpr cuda_stream_view(int) = delete; /* 0 is not a stream */
  constexpr cuda_stream_view(std::nullptr_t) = delete;

#ifdef HIPMM_COMPAT_CUDA_STREAM_REF
  constexpr cuda_stream_view(::cuda::stream_ref stream) noexcept : stream_{stream.get()}
  {
  }
  constexpr operator ::cuda::stream_ref() const noexcept
  {
    return ::cuda::stream_ref{stream_};
  }
#endif

  [[nodiscard]] constexpr hipmm::compat::stream_handle value() const noexcept
  {
    return stream_;
  }
  constexpr operator hipmm::compat::stream_handle() const noexcept
  {
    return stream_;
  }
  /* The names that CUDA's cuda::stream_ref has for these. */
  [[nodiscard]] constexpr hipmm::compat::stream_handle get() const noexcept
  {
    return stream_;
  }
  void sync() const
  {
    synchronize();
  }

  [[nodiscard]] bool is_per_thread_default() const noexcept
  {
    return ::hipmm_stream_is_per_thread_default(hipmm::compat::to_hipmm(stream_)) != 0;
  }
  [[nodiscard]] bool is_default() const noexcept
  {
    return ::hipmm_stream_is_default(hipmm::compat::to_hipmm(stream_)) != 0;
  }

  /* Waits for all work that was submitted so far; cuda_error if the runtime fails. */
  void synchronize() const
  {
    if (finish() != HIPMM_OK) throw cuda_error{::hipmm_last_error_message()};
  }
  void synchronize_no_throw() const noexcept
  {
    [[maybe_unused]] const ::hipmm_status status = finish();
    assert(status == HIPMM_OK);
  }

private:
  [[nodiscard]] ::hipmm_status finish() const noexcept
  {
    int device = 0;
    const ::hipmm_stream_t stream = hipmm::compat::to_hipmm(stream_);
    ::hipmm_status status = hipmm::compat::open_library();
    if (status == HIPMM_OK) status = ::hipmm_stream_device(stream, &device);
    /* Old runtimes cannot tell the device of a stream that hipmm did not create. */
    if (status == HIPMM_E_NOT_SUPPORTED) status = ::hipmm_device_current(&device);
    return status == HIPMM_OK ? ::hipmm_stream_synchronize(device, stream) : status;
  }

  hipmm::compat::stream_handle stream_{};
};

static constexpr cuda_stream_view cuda_stream_default{};
static const cuda_stream_view cuda_stream_legacy{hipmm::compat::from_hipmm(HIPMM_LEGACY_STREAM)};
static const cuda_stream_view cuda_stream_per_thread{hipmm::compat::from_hipmm(HIPMM_PER_THREAD_STREAM)};

inline bool operator==(cuda_stream_view one, cuda_stream_view other)
{
  return one.value() == other.value();
}
inline bool operator!=(cuda_stream_view one, cuda_stream_view other)
{
  return !(one == other);
}
#ifdef HIPMM_COMPAT_CUDA_STREAM_REF
template <typename Ref, std::enable_if_t<std::is_same_v<Ref, ::cuda::stream_ref>, int> = 0>
bool operator==(cuda_stream_view one, const Ref &other)
{
  return one.value() == other.get();
}
template <typename Ref, std::enable_if_t<std::is_same_v<Ref, ::cuda::stream_ref>, int> = 0>
bool operator==(const Ref &one, cuda_stream_view other)
{
  return one.get() == other.value();
}
template <typename Ref, std::enable_if_t<std::is_same_v<Ref, ::cuda::stream_ref>, int> = 0>
bool operator!=(cuda_stream_view one, const Ref &other)
{
  return one.value() != other.get();
}
template <typename Ref, std::enable_if_t<std::is_same_v<Ref, ::cuda::stream_ref>, int> = 0>
bool operator!=(const Ref &one, cuda_stream_view other)
{
  return one.get() != other.value();
}
#endif
inline std::ostream &operator<<(std::ostream &output, cuda_stream_view stream)
{
  return output << static_cast<const void *>(stream.value());
}

} // namespace rmm

#endif
