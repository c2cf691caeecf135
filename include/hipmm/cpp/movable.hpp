/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/movable.hpp: buffers that are moved out of device memory while they are not pinned (hipmm/spill.h). */
#ifndef HIPMM_CPP_MOVABLE_HPP
#define HIPMM_CPP_MOVABLE_HPP

#include <hipmm/cpp/resource.hpp>
#include <hipmm/cpp/stream.hpp>
#include <hipmm/spill.h>

#include <cstddef>
#include <memory>

namespace hipmm
{

/* A movable buffer, destroyed with the object. The nearest resource at or below `from` of the type `spilling` owns it.
 *
 *     hipmm::movable part{1ULL << 30};            // has no memory yet
 *     {
 *       const auto pin = part.pin(stream);        // in device memory, while `pin` lives
 *       sort<<<blocks, threads, 0, stream>>>(static_cast<float *>(pin.data()));
 *     }
 */
class movable
{
public:
  /* Keeps a buffer in device memory. It ends before the buffer does. */
  class pinned
  {
  public:
    /* NULL for 0 bytes, and when the pin has ended. */
    [[nodiscard]] void *data() const noexcept
    {
      return raw_ ? data_ : nullptr;
    }

    /* Takes the pin back before the object is destroyed, which ignores errors. */
    void unpin()
    {
      if (raw_) check(::hipmm_movable_unpin(raw_.get(), raw_.get_deleter().stream.get()));
      static_cast<void>(raw_.release());
    }

  private:
    friend class movable;
    struct unpinner {
      stream_ref stream;
      void operator()(::hipmm_movable *raw) const noexcept
      {
        static_cast<void>(::hipmm_movable_unpin(raw, stream.get()));
      }
    };
    pinned(::hipmm_movable *raw, stream_ref stream)
    {
      check(::hipmm_movable_pin(raw, stream.get(), &data_));
      raw_ = std::unique_ptr<::hipmm_movable, unpinner>{raw, unpinner{stream}};
    }
    std::unique_ptr<::hipmm_movable, unpinner> raw_;
    void *data_ = nullptr;
  };

  explicit movable(std::size_t bytes, const resource &from = {}) : size_{bytes}
  {
    check(::hipmm_movable_create(from.get(), bytes, raw_.out()));
  }

  /* Brings the buffer into device memory for work on `stream`. Throws hipmm::bad_alloc if there is no memory and no other buffer
   * can be moved; the content stays where it was. */
  [[nodiscard]] pinned pin(stream_ref stream = {}) const
  {
    return {raw_.get(), stream};
  }

  [[nodiscard]] std::size_t size() const noexcept
  {
    return size_;
  }
  [[nodiscard]] ::hipmm_movable *get() const noexcept
  {
    return raw_.get();
  }

private:
  detail::owner<::hipmm_movable, ::hipmm_movable_destroy> raw_;
  std::size_t size_;
};

} // namespace hipmm

#endif
