/* SPDX-License-Identifier: MIT */
/* rmm/device_buffer.hpp: bytes of device memory with an owner. */
#ifndef HIPMM_COMPAT_RMM_DEVICE_BUFFER_HPP
#define HIPMM_COMPAT_RMM_DEVICE_BUFFER_HPP

#include "cuda_device.hpp"
#include "cuda_stream_view.hpp"
#include "resource_ref.hpp"
#include <hipmm/buffer.h>
#include <hipmm/compat/detail/container_resource.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace rmm
{

/* Uninitialized, in stream order. A moved-from buffer has no memory, and the default stream; it may be used again. In RMM
 * 23.12 the resource must live as long as the buffer, and hipmm keeps what is behind it; in 26 the buffer owns a copy of the
 * resource. Whatever device is current, the memory is of the device that was current when the buffer was made. */
class HIPMM_COMPAT_TAG device_buffer
{
  using resource_argument = hipmm::compat::container_resource;

public:
  device_buffer() : resource_{hipmm::compat::default_resource()}
  {
  }
  explicit device_buffer(std::size_t size, cuda_stream_view stream,
                         resource_argument resource = hipmm::compat::default_resource())
      : resource_{std::move(resource)}, stream_{stream}
  {
    create(size);
  }
  /* With the default stream, as examples of RMM's have it. */
  explicit device_buffer(std::size_t size) : device_buffer{size, cuda_stream_view{}}
  {
  }

  /* With a copy of `size` bytes of the host or of a device. Does not wait for the copy. */
  device_buffer(const void *source_data, std::size_t size, cuda_stream_view stream,
                resource_argument resource = hipmm::compat::default_resource())
      : resource_{std::move(resource)}, stream_{stream}
  {
    RMM_EXPECTS(size == 0 || source_data != nullptr, "Invalid copy from nullptr.");
    const hipmm::resource from = begin();
    end(::hipmm_buffer_create_from(from.get(), source_data, size, raw(stream), &buffer_));
  }
  device_buffer(const device_buffer &other, cuda_stream_view stream,
                resource_argument resource = hipmm::compat::default_resource())
      : device_buffer{other.data(), other.size(), stream, std::move(resource)}
  {
    align(other.alignment_);
  }

  /* Of RMM 26: with an alignment, a power of two (else invalid_argument). More than 256 bytes is bad_alloc, unless the
   * resource is an aligned_resource_adaptor of at least this alignment. */
  explicit device_buffer(std::size_t size, std::size_t alignment, cuda_stream_view stream,
                         resource_argument resource = hipmm::compat::default_resource())
      : device_buffer{size, stream, std::move(resource)}
  {
    align(alignment);
  }
  explicit device_buffer(const void *source_data, std::size_t size, std::size_t alignment, cuda_stream_view stream,
                         resource_argument resource = hipmm::compat::default_resource())
      : device_buffer{source_data, size, stream, std::move(resource)}
  {
    align(alignment);
  }

  device_buffer(device_buffer &&other) noexcept
      : buffer_{std::exchange(other.buffer_, nullptr)}, resource_{other.resource_}, stream_{std::exchange(
                                                                                        other.stream_,
                                                                                        cuda_stream_view{})},
        alignment_{std::exchange(other.alignment_, 1)}, is_exception_passed_{other.is_exception_passed_}
  {
  }
  device_buffer &operator=(device_buffer &&other) noexcept
  {
    if (&other == this) return *this;
    device_buffer taken{std::move(other)};
    std::swap(buffer_, taken.buffer_);
    std::swap(resource_, taken.resource_);
    std::swap(stream_, taken.stream_);
    std::swap(alignment_, taken.alignment_);
    std::swap(is_exception_passed_, taken.is_exception_passed_);
    return *this;
  }
  device_buffer(const device_buffer &) = delete;
  device_buffer &operator=(const device_buffer &) = delete;
  ~device_buffer() noexcept
  {
    static_cast<void>(::hipmm_buffer_destroy(buffer_));
  }

  /* The contents stay. Beyond the capacity there is a new allocation of exactly this size. */
  void reserve(std::size_t new_capacity, cuda_stream_view stream)
  {
    change(::hipmm_buffer_reserve, new_capacity, stream);
  }
  void resize(std::size_t new_size, cuda_stream_view stream)
  {
    change(::hipmm_buffer_resize, new_size, stream);
  }
  void shrink_to_fit(cuda_stream_view stream)
  {
    const auto shrink = [](::hipmm_buffer *buffer, std::size_t, ::hipmm_stream_t on) {
      return ::hipmm_buffer_shrink_to_fit(buffer, on);
    };
    change(shrink, 0, stream);
  }

  [[nodiscard]] const void *data() const noexcept
  {
    return ::hipmm_buffer_data(buffer_);
  }
  void *data() noexcept
  {
    return ::hipmm_buffer_data(buffer_);
  }
  [[nodiscard]] std::size_t size() const noexcept
  {
    return ::hipmm_buffer_bytes(buffer_);
  }
  [[nodiscard]] std::int64_t ssize() const noexcept
  {
    assert(size() < static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()));
    return static_cast<std::int64_t>(size());
  }
  [[nodiscard]] bool is_empty() const noexcept
  {
    return size() == 0;
  }
  [[nodiscard]] std::size_t capacity() const noexcept
  {
    return ::hipmm_buffer_capacity_bytes(buffer_);
  }

  /* The stream on which the memory will be freed. */
  [[nodiscard]] cuda_stream_view stream() const noexcept
  {
    return stream_;
  }
  void set_stream(cuda_stream_view stream) noexcept
  {
    stream_ = stream;
    if (buffer_) static_cast<void>(::hipmm_buffer_set_stream(buffer_, raw(stream)));
  }
  [[nodiscard]] device_async_resource_ref memory_resource() const noexcept
  {
    return hipmm::compat::reference_to(resource_);
  }
  [[nodiscard]] std::size_t alignment() const noexcept
  {
    return alignment_;
  }

  /* hipmm's own object, for hipmm's functions; nullptr while the buffer never had memory. The buffer owns it. */
  [[nodiscard]] ::hipmm_buffer *hipmm_buffer() const noexcept
  {
    return buffer_;
  }

private:
  static ::hipmm_stream_t raw(cuda_stream_view stream) noexcept
  {
    return hipmm::compat::to_hipmm(stream.value());
  }

  /* Around a call that may allocate: what the resource throws reaches the caller. */
  [[nodiscard]] hipmm::resource begin()
  {
    const int device = buffer_ ? ::hipmm_buffer_device(buffer_) : hipmm::compat::current_device();
    const hipmm::compat::backing from = hipmm::compat::backing_for(resource_, device);
    hipmm::compat::pending_exception() = nullptr;
    is_exception_passed_ = from.is_exception_passed;
    return from.resource;
  }
  void end(::hipmm_status status) const
  {
    if (status != HIPMM_OK) hipmm::compat::throw_failure(status, is_exception_passed_);
  }

  void create(std::size_t size)
  {
    const hipmm::resource from = begin();
    end(::hipmm_buffer_create(from.get(), size, raw(stream_), &buffer_));
  }

  void align(std::size_t alignment)
  {
    alignment_ = alignment;
    if (alignment == 0 || !is_pow2(alignment)) throw invalid_argument{"The alignment is not a power of two."};
    need_alignment();
  }
  void need_alignment() const
  {
    if (alignment_ <= CUDA_ALLOCATION_ALIGNMENT || !data()) return;
    if (is_pointer_aligned(data(), alignment_) && hipmm::compat::is_aligned_type(buffer_)) return;
    throw bad_alloc{"cannot align to more than 256 bytes; aligned_resource_adaptor can"};
  }

  template <typename Function> void change(Function function, std::size_t size, cuda_stream_view stream)
  {
    if (!buffer_) create(0);
    hipmm::compat::pending_exception() = nullptr;
    end(function(buffer_, size, raw(stream)));
    stream_ = stream;
    need_alignment();
  }

  ::hipmm_buffer *buffer_ = nullptr;
  resource_argument resource_;
  cuda_stream_view stream_;
  std::size_t alignment_ = CUDA_ALLOCATION_ALIGNMENT;
  bool is_exception_passed_ = true; /* as the backing of the memory has it */
};

} // namespace rmm

#endif
