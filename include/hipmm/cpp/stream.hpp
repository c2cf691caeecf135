/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/stream.hpp: streams, events, pools of streams, and the current device. */
#ifndef HIPMM_CPP_STREAM_HPP
#define HIPMM_CPP_STREAM_HPP

#include <hipmm/cpp/error.hpp>
#include <hipmm/stream.h>

#include <cstddef>
#include <type_traits>
#include <utility>

/* What the streams of CUDA (cudaStream_t, CUstream) and HIP (hipStream_t) point to. */
struct CUstream_st;
struct ihipStream_t;

namespace hipmm
{

namespace detail
{

template <typename Handle>
using if_stream_handle =
    std::enable_if_t<std::is_same_v<Handle, ::CUstream_st *> || std::is_same_v<Handle, ::ihipStream_t *>>;

} // namespace detail

/* ---- Devices ---- */

/* The current device of the calling thread. */
[[nodiscard]] inline int current_device()
{
  int device = 0;
  check(::hipmm_device_current(&device));
  return device;
}

[[nodiscard]] inline int device_count()
{
  int count = 0;
  check(::hipmm_device_count(&count));
  return count;
}

/* Makes a device current for the calling thread until the guard is destroyed (RMM: cuda_set_device_raii). */
class device_guard
{
public:
  explicit device_guard(int device)
  {
    check(::hipmm_device_enter(device, &previous_));
  }
  ~device_guard()
  {
    static_cast<void>(::hipmm_device_leave(previous_));
  }
  device_guard(const device_guard &) = delete;
  device_guard &operator=(const device_guard &) = delete;

private:
  int previous_ = 0;
};

/* ---- Streams ---- */

class event;

/* A stream that somebody else owns: the runtime's handle (RMM: cuda_stream_view). A default-constructed one is the
 * default stream. Functions that wait or ask need the device for the default stream alone: by default the current
 * one. */
class stream_ref
{
public:
  constexpr stream_ref() noexcept = default;
  constexpr stream_ref(std::nullptr_t) noexcept
  {
  }
  /* A hipStream_t, a cudaStream_t or a hipmm_stream_t. NOLINTNEXTLINE(google-explicit-constructor): meant to convert */
  constexpr stream_ref(void *handle) noexcept : handle_{handle}
  {
  }

  [[nodiscard]] constexpr hipmm_stream_t get() const noexcept
  {
    return handle_;
  }
  [[nodiscard]] constexpr hipmm_stream_t value() const noexcept
  {
    return handle_;
  }

  /* To a cudaStream_t or a hipStream_t, for the functions of the runtime and for kernels. */
  template <typename Handle, typename = detail::if_stream_handle<Handle>> operator Handle() const noexcept
  {
    return static_cast<Handle>(handle_);
  }

  [[nodiscard]] bool is_default() const noexcept
  {
    return ::hipmm_stream_is_default(handle_) != 0;
  }
  [[nodiscard]] bool is_per_thread_default() const noexcept
  {
    return ::hipmm_stream_is_per_thread_default(handle_) != 0;
  }

  /* The stream's device; for a default stream, the current one. */
  [[nodiscard]] int device() const
  {
    int device = 0;
    check(::hipmm_stream_device(handle_, &device));
    return device;
  }

  /* Waits until all work that was submitted so far has completed. */
  void synchronize() const
  {
    check(::hipmm_stream_synchronize(device(), handle_));
  }

  /* Whether it has. */
  [[nodiscard]] bool is_done() const
  {
    int done = 0;
    check(::hipmm_stream_query(device(), handle_, &done));
    return done != 0;
  }

  /* Later work of this stream waits for the work that was submitted to `other` so far. */
  void wait(stream_ref other) const
  {
    check(::hipmm_stream_wait(device(), handle_, other.device(), other.get()));
  }

  /* Later work of this stream waits for the work that the event stands for. */
  inline void wait(const event &other) const;

  friend constexpr bool operator==(stream_ref one, stream_ref other) noexcept
  {
    return one.handle_ == other.handle_;
  }
  friend constexpr bool operator!=(stream_ref one, stream_ref other) noexcept
  {
    return !(one == other);
  }

private:
  hipmm_stream_t handle_ = nullptr;
};

inline const stream_ref default_stream{};
inline const stream_ref legacy_stream{HIPMM_LEGACY_STREAM};
inline const stream_ref per_thread_stream{HIPMM_PER_THREAD_STREAM};

enum class stream_flags : unsigned {
  sync_default = HIPMM_STREAM_SYNC_DEFAULT, /* ordered with the device's default stream */
  non_blocking = HIPMM_STREAM_NON_BLOCKING  /* independent of it */
};

/* The priorities of a device's streams. The greatest is the lowest number; 0 is usual. */
struct stream_priorities {
  int least, greatest;
};

[[nodiscard]] inline stream_priorities priorities_of(int device)
{
  stream_priorities range{};
  check(::hipmm_stream_priority_range(device, &range.least, &range.greatest));
  return range;
}

/* A point in the work of a stream of one device. Before the first record it stands for work that has completed. A moved-from
 * event is refused. */
class event
{
public:
  explicit event(int device)
  {
    check(::hipmm_stream_event_create(device, event_.out()));
  }
  /* Recorded on a stream, of the stream's device. */
  explicit event(stream_ref stream) : event{stream.device()}
  {
    record(stream);
  }

  /* From now on the event stands for the work that was submitted to `stream` so far. */
  void record(stream_ref stream)
  {
    check(::hipmm_stream_event_record(event_.get(), stream.get()));
  }

  /* Whether this work has completed; and waits until it has. */
  [[nodiscard]] bool is_done() const
  {
    int done = 0;
    check(::hipmm_stream_event_query(event_.get(), &done));
    return done != 0;
  }
  void synchronize() const
  {
    check(::hipmm_stream_event_synchronize(event_.get()));
  }

  [[nodiscard]] ::hipmm_stream_event *get() const noexcept
  {
    return event_.get();
  }

private:
  detail::owner<::hipmm_stream_event, ::hipmm_stream_event_destroy> event_;
};

inline void stream_ref::wait(const event &other) const
{
  check(::hipmm_stream_event_wait(other.get(), device(), handle_));
}

/* A stream of its own (RMM: cuda_stream). A moved-from stream is the default stream. */
class stream
{
public:
  explicit stream(int device, stream_flags flags = stream_flags::sync_default)
  {
    check(::hipmm_stream_create(device, static_cast<unsigned>(flags), &handle_));
  }
  /* The lower of two numbers goes first: see priorities_of(). */
  stream(int device, stream_flags flags, int priority)
  {
    check(::hipmm_stream_create_with_priority(device, static_cast<unsigned>(flags), priority, &handle_));
  }
  stream() : stream(current_device())
  {
  }
  stream(stream &&other) noexcept : handle_{std::exchange(other.handle_, nullptr)}
  {
  }
  stream &operator=(stream &&other) noexcept
  {
    stream taken{std::move(other)};
    std::swap(handle_, taken.handle_);
    return *this;
  }
  ~stream()
  {
    if (handle_) static_cast<void>(::hipmm_stream_destroy(handle_));
  }

  [[nodiscard]] stream_ref view() const noexcept
  {
    return {handle_};
  }
  operator stream_ref() const noexcept
  {
    return view();
  }
  template <typename Handle, typename = detail::if_stream_handle<Handle>> operator Handle() const noexcept
  {
    return view();
  }
  [[nodiscard]] hipmm_stream_t get() const noexcept
  {
    return handle_;
  }
  [[nodiscard]] int device() const
  {
    return view().device();
  }
  void synchronize() const
  {
    view().synchronize();
  }
  void wait(stream_ref other) const
  {
    view().wait(other);
  }
  void wait(const event &other) const
  {
    view().wait(other);
  }

private:
  hipmm_stream_t handle_ = nullptr;
};

/* Streams of one device, returned in turn (RMM: cuda_stream_pool). */
class stream_pool
{
public:
  /* `size` is the number of streams. */
  explicit stream_pool(int device, std::size_t size = HIPMM_STREAM_POOL_SIZE,
                       stream_flags flags = stream_flags::sync_default)
  {
    check(::hipmm_stream_pool_create(device, size, static_cast<unsigned>(flags), pool_.out()));
  }

  /* The next stream in turn, and the stream number `index` modulo the size. The pool owns both. */
  [[nodiscard]] stream_ref get_stream() const
  {
    hipmm_stream_t handle = nullptr;
    check(::hipmm_stream_pool_get(pool_.get(), &handle));
    return {handle};
  }
  [[nodiscard]] stream_ref get_stream(std::size_t index) const
  {
    hipmm_stream_t handle = nullptr;
    check(::hipmm_stream_pool_get_at(pool_.get(), index, &handle));
    return {handle};
  }

  [[nodiscard]] std::size_t size() const noexcept
  {
    return ::hipmm_stream_pool_size(pool_.get());
  }
  [[nodiscard]] int device() const noexcept
  {
    return ::hipmm_stream_pool_device(pool_.get());
  }

private:
  detail::owner<::hipmm_stream_pool, ::hipmm_stream_pool_destroy> pool_;
};

} // namespace hipmm

#endif
