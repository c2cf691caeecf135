/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/buffer.hpp: bytes with an owner, on the device and on the host. */
#ifndef HIPMM_CPP_BUFFER_HPP
#define HIPMM_CPP_BUFFER_HPP

#include <hipmm/buffer.h>
#include <hipmm/cpp/resource.hpp>

#include <cstddef>

namespace hipmm
{

/* Memory of a device (RMM: device_buffer): stream-ordered, contents undefined unless copied. A moved-from buffer, like a
 * default-constructed one, has no memory, and may be assigned to. */
class buffer
{
public:
  buffer() noexcept = default;

  explicit buffer(std::size_t bytes) : buffer{bytes, stream_ref{}}
  {
  }
  buffer(std::size_t bytes, stream_ref stream, const resource &from = {})
  {
    check(::hipmm_buffer_create(from.get(), bytes, stream.get(), raw_.out()));
  }

  /* With a copy of `bytes` at `source`, memory of the host or of any device. */
  buffer(const void *source, std::size_t bytes, stream_ref stream = {}, const resource &from = {})
  {
    check(::hipmm_buffer_create_from(from.get(), source, bytes, stream.get(), raw_.out()));
  }

  /* With a copy of another buffer. Copies need a stream, so there is no copy constructor. */
  buffer(const buffer &source, stream_ref stream, const resource &from = {})
  {
    if (source.get()) check(::hipmm_buffer_copy(source.get(), from.get(), stream.get(), raw_.out()));
  }

  [[nodiscard]] static buffer adopt(::hipmm_buffer *owned) noexcept
  {
    buffer adopted;
    *adopted.raw_.out() = owned;
    return adopted;
  }

  /* Gives the C object to the caller, who destroys it. */
  [[nodiscard]] ::hipmm_buffer *release() noexcept
  {
    return raw_.release();
  }
  [[nodiscard]] ::hipmm_buffer *get() const noexcept
  {
    return raw_.get();
  }

  void resize(std::size_t bytes, stream_ref stream = {})
  {
    check(::hipmm_buffer_resize(raw(stream), bytes, stream.get()));
  }
  void reserve(std::size_t bytes, stream_ref stream = {})
  {
    check(::hipmm_buffer_reserve(raw(stream), bytes, stream.get()));
  }
  void shrink_to_fit(stream_ref stream = {})
  {
    check(::hipmm_buffer_shrink_to_fit(raw(stream), stream.get()));
  }

  /* Copy from and to memory of the host or of any device. The `_async` functions return when the copy is submitted. */
  void write(const void *source, std::size_t bytes, stream_ref stream = {}, std::size_t offset = 0)
  {
    check(::hipmm_buffer_write(raw_.get(), offset, source, bytes, stream.get()));
  }
  void write_async(const void *source, std::size_t bytes, stream_ref stream = {}, std::size_t offset = 0)
  {
    check(::hipmm_buffer_write_async(raw_.get(), offset, source, bytes, stream.get()));
  }
  void read(void *target, std::size_t bytes, stream_ref stream = {}, std::size_t offset = 0) const
  {
    check(::hipmm_buffer_read(raw_.get(), offset, bytes, stream.get(), target));
  }
  void read_async(void *target, std::size_t bytes, stream_ref stream = {}, std::size_t offset = 0) const
  {
    check(::hipmm_buffer_read_async(raw_.get(), offset, bytes, stream.get(), target));
  }
  void fill(int value, stream_ref stream = {})
  {
    check(::hipmm_buffer_fill(raw_.get(), 0, value, size(), stream.get()));
  }

  [[nodiscard]] void *data() const noexcept
  {
    return ::hipmm_buffer_data(raw_.get());
  }
  [[nodiscard]] std::size_t size() const noexcept
  {
    return ::hipmm_buffer_bytes(raw_.get());
  }
  [[nodiscard]] std::size_t capacity() const noexcept
  {
    return ::hipmm_buffer_capacity_bytes(raw_.get());
  }
  [[nodiscard]] bool is_empty() const noexcept
  {
    return size() == 0;
  }
  [[nodiscard]] stream_ref stream() const noexcept
  {
    return {::hipmm_buffer_stream(raw_.get())};
  }
  [[nodiscard]] int device() const noexcept
  {
    return ::hipmm_buffer_device(raw_.get());
  }
  [[nodiscard]] resource memory_resource() const noexcept
  {
    return resource::retain(::hipmm_buffer_resource(raw_.get()));
  }

  /* The stream on which the memory will be freed. */
  void set_stream(stream_ref stream)
  {
    check(::hipmm_buffer_set_stream(raw_.get(), stream.get()));
  }

private:
  /* A buffer without memory gets its C object when it grows. */
  ::hipmm_buffer *raw(stream_ref stream)
  {
    if (!raw_.get()) check(::hipmm_buffer_create(nullptr, 0, stream.get(), raw_.out()));
    return raw_.get();
  }

  detail::owner<::hipmm_buffer, ::hipmm_buffer_destroy> raw_;
};

/* Memory that the host can read and write (RMM: pinned host memory). Without a resource: pinned memory for the current
 * device. */
class host_buffer
{
public:
  host_buffer() noexcept = default;
  explicit host_buffer(std::size_t bytes) : host_buffer{bytes, stream_ref{}}
  {
  }
  host_buffer(std::size_t bytes, stream_ref stream, const resource &from = {})
  {
    check(::hipmm_host_buffer_create(from.get(), bytes, stream.get(), raw_.out()));
  }
  host_buffer(const void *source, std::size_t bytes, stream_ref stream = {}, const resource &from = {})
  {
    check(::hipmm_host_buffer_create_from(from.get(), source, bytes, stream.get(), raw_.out()));
  }

  void resize(std::size_t bytes, stream_ref stream = {})
  {
    check(::hipmm_host_buffer_resize(raw_.get(), bytes, stream.get()));
  }
  void reserve(std::size_t bytes, stream_ref stream = {})
  {
    check(::hipmm_host_buffer_reserve(raw_.get(), bytes, stream.get()));
  }
  void shrink_to_fit(stream_ref stream = {})
  {
    check(::hipmm_host_buffer_shrink_to_fit(raw_.get(), stream.get()));
  }

  [[nodiscard]] ::hipmm_host_buffer *get() const noexcept
  {
    return raw_.get();
  }
  [[nodiscard]] void *data() const noexcept
  {
    return ::hipmm_host_buffer_data(raw_.get());
  }
  [[nodiscard]] std::size_t size() const noexcept
  {
    return ::hipmm_host_buffer_bytes(raw_.get());
  }
  [[nodiscard]] std::size_t capacity() const noexcept
  {
    return ::hipmm_host_buffer_capacity_bytes(raw_.get());
  }
  [[nodiscard]] stream_ref stream() const noexcept
  {
    return {::hipmm_host_buffer_stream(raw_.get())};
  }
  [[nodiscard]] int device() const noexcept
  {
    return ::hipmm_host_buffer_device(raw_.get());
  }

private:
  detail::owner<::hipmm_host_buffer, ::hipmm_host_buffer_destroy> raw_;
};

} // namespace hipmm

#endif
