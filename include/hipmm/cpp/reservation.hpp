/* SPDX-License-Identifier: MIT */
/* hipmm/cpp/reservation.hpp: memory that is reserved before it is allocated (hipmm/reserve.h). */
#ifndef HIPMM_CPP_RESERVATION_HPP
#define HIPMM_CPP_RESERVATION_HPP

#include <hipmm/cpp/resource.hpp>
#include <hipmm/reserve.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hipmm
{

/* A reservation, released when the object is destroyed. Its blocks stay, and keep what they use until they are freed.
 *
 *     const hipmm::reservation sort{4ULL << 30, std::chrono::seconds{30}};
 *     hipmm::buffer data{bytes, stream, sort.memory()};
 */
class reservation
{
public:
  /* A timeout that never ends the wait. */
  static constexpr std::chrono::nanoseconds for_ever{-1};

  /* Reserves from the nearest `reserving` at or below `from`. Waits for its turn up to the timeout; with 0 it only tries.
   * Throws hipmm::bad_alloc if there is no room in time. */
  explicit reservation(std::size_t bytes, std::chrono::nanoseconds timeout = for_ever, const resource &from = {},
                       std::int64_t priority = 0, const char *name = nullptr)
  {
    ::hipmm_reserve_request request{};
    request.struct_size = sizeof request;
    request.resource = from.get();
    request.bytes = bytes;
    request.timeout_ns = timeout.count();
    request.priority = priority;
    request.name = name;
    check(::hipmm_reserve(&request, &raw_));
  }
  reservation(reservation &&other) noexcept : raw_{std::exchange(other.raw_, nullptr)}
  {
  }
  reservation &operator=(reservation &&other) noexcept
  {
    reservation taken{std::move(other)};
    std::swap(raw_, taken.raw_);
    return *this;
  }
  ~reservation()
  {
    if (raw_) static_cast<void>(::hipmm_reservation_release(raw_));
  }

  /* The resource to allocate from. After a release it is default-constructed. */
  [[nodiscard]] resource memory() const noexcept
  {
    return resource::retain(raw_);
  }

  /* Never waits. Throws hipmm::bad_alloc, and changes nothing, if there is no room or `bytes` are fewer than are in use. */
  void resize(std::size_t bytes) const
  {
    check(::hipmm_reservation_resize(raw_, bytes));
  }

  /* Gives back what was not spent, before the object is destroyed. */
  void release()
  {
    if (raw_) check(::hipmm_reservation_release(raw_));
    raw_ = nullptr;
  }

private:
  ::hipmm_resource *raw_ = nullptr;
};

} // namespace hipmm

#endif
