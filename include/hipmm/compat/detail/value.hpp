/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/value.hpp: the bases of RMM 26's resources. These are values whose copies share one hipmm resource. It is
 * made in code, on the device that is current when the first value is made. A move is a copy, so a moved-from value works. */
#ifndef HIPMM_COMPAT_DETAIL_VALUE_HPP
#define HIPMM_COMPAT_DETAIL_VALUE_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM != 26
#error \
    "this header is of RMM 26: compile with -DHIPMM_COMPAT_RMM=26 (pkg-config: hipmm-rmm26), or include <rmm/mr/device/...>, RMM 23.12's"
#include <HIPMM_COMPAT_RMM>
#endif

#include <rmm/cuda_device.hpp>
#include <rmm/resource_ref.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/* Programs get these from RMM's headers without including them. */
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

namespace hipmm::compat
{

using any_device = ::cuda::mr::any_resource<::cuda::mr::device_accessible>;

/* RMM's resources align to 256 bytes, and refuse other alignments. */
inline void check_alignment(std::size_t alignment)
{
  if (alignment != 0 && alignment <= default_alignment && rmm::is_pow2(alignment)) return;
  throw rmm::bad_alloc{"cannot align to " + std::to_string(alignment) +
                       " bytes: resources align to powers of two up to 256; aligned_resource_adaptor to more"};
}

/* ---- What hipmm has behind a resource ---- */

/* A `callback` resource over a resource of the program's type, of which it owns a copy. */
struct foreign_state {
  any_device target;

  static status allocate(void *arg, std::size_t bytes, std::size_t alignment, ::hipmm_stream_t stream,
                         void **ptr_out) noexcept
  {
    try {
      auto &target = static_cast<foreign_state *>(arg)->target;
      *ptr_out = target.allocate(rmm::cuda_stream_view{from_hipmm(stream)}, bytes, alignment);
      return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
    } catch (...) {
      pending_exception() = std::current_exception();
      return HIPMM_E_OUT_OF_MEMORY;
    }
  }
  static void deallocate(void *arg, void *ptr, std::size_t bytes, std::size_t alignment,
                         ::hipmm_stream_t stream) noexcept
  {
    static_cast<foreign_state *>(arg)->target.deallocate(rmm::cuda_stream_view{from_hipmm(stream)}, ptr, bytes,
                                                         alignment);
  }

  static backing make(const any_device &target, int device)
  {
    const auto describe = [](foreign_state *arg) {
      return ::hipmm_allocator{sizeof(::hipmm_allocator), allocate, deallocate, arg};
    };
    return {make_resource_with(device, "callback", {}, "allocator",
                               std::make_unique<foreign_state>(foreign_state{target}), describe),
            true};
  }
};

#ifdef HIPMM_COMPAT_CCCL

/* CCCL's any_resource tells the type that it holds. So a list has the types of hipmm's values; each type is added when its first
 * object is made. */
using find_function = bool (*)(const any_device &holder, int device, backing &found);
struct known_types {
  std::mutex lock;
  std::vector<find_function> finders;
};
HIPMM_COMPAT_ONE inline known_types &all_known_types()
{
  static known_types &types = *new known_types; /* reachable for ever, as the library */
  return types;
}
template <typename Value> void make_known()
{
  static const bool is_known = [] {
    known_types &types = all_known_types();
    const std::lock_guard<std::mutex> guard{types.lock};
    types.finders.push_back([](const any_device &holder, int device, backing &found) {
      const auto *value = ::cuda::__any_cast<Value>(&holder);
      if (value) found = value->hipmm_backing(device);
      return value != nullptr;
    });
    return true;
  }();
  static_cast<void>(is_known);
}
inline bool find_backing(const any_device &holder, int device, backing &found)
{
  known_types &types = all_known_types();
  std::unique_lock<std::mutex> guard{types.lock};
  const std::vector<find_function> finders = types.finders;
  guard.unlock();
  for (const find_function finder : finders)
    if (finder(holder, device, found)) return true;
  return false;
}

#else

template <typename Value> void make_known() noexcept
{
}
inline bool find_backing(const any_device &holder, int device, backing &found)
{
  const auto behind = holder.hipmm_type()->behind;
  if (behind) found = behind(holder.hipmm_object(), device);
  return behind != nullptr;
}

#endif

inline backing backing_of(const any_device &holder, int device)
{
  backing found{};
  RMM_EXPECTS(holder.has_value(), "A resource was used that holds nothing, for it was moved from or never set.");
  return find_backing(holder, device, found) ? found : foreign_state::make(holder, device);
}

/* A resource as an argument of a container, perhaps with what is known to be behind it on the current device. */
class owned_resource
{
public:
  template <typename Resource, typename = std::enable_if_t<std::is_convertible_v<Resource, any_device> &&
                                                           !std::is_same_v<std::decay_t<Resource>, owned_resource>>>
  owned_resource(Resource &&resource) : resource_{std::forward<Resource>(resource)}
  {
  }
  owned_resource(const any_device &resource, const backing &behind) : resource_{resource}, behind_{behind}
  {
  }

  operator any_device() const
  {
    return resource_;
  }
  [[nodiscard]] any_device &get() noexcept
  {
    return resource_;
  }
  [[nodiscard]] backing on(int device) const
  {
    return behind_.resource ? behind_ : backing_of(resource_, device);
  }

private:
  any_device resource_;
  backing behind_{};
};

/* ---- Values ---- */

struct body {
  backing behind;
};

/* Self: the class derived from it, which may have functions check(), equals() and deallocate() of its own. */
template <typename Self, typename Body = body> class value
{
public:
  value(const value &) noexcept = default; /* and with only these two, a move is a copy */
  value &operator=(const value &) noexcept = default;

  [[nodiscard]] void *allocate(rmm::cuda_stream_view stream, std::size_t bytes,
                               std::size_t alignment = default_alignment)
  {
    self().check(alignment);
    return compat::allocate(shared().behind, bytes, stream, alignment);
  }
  void deallocate(rmm::cuda_stream_view stream, void *ptr, std::size_t bytes,
                  std::size_t alignment = default_alignment) noexcept
  {
    if (shared_) compat::deallocate(shared_->behind, ptr, bytes, stream, alignment);
  }

  /* On the default stream, for which the calls wait. */
  [[nodiscard]] void *allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment)
  {
    void *ptr = self().allocate(rmm::cuda_stream_view{}, bytes, alignment);
    rmm::cuda_stream_view{}.synchronize();
    return ptr;
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = default_alignment) noexcept
  {
    self().deallocate(rmm::cuda_stream_view{}, ptr, bytes, alignment);
    rmm::cuda_stream_view{}.synchronize_no_throw();
  }

  /* The hipmm resource behind the value, to inspect it or to build on it. */
  [[nodiscard]] hipmm::resource hipmm_resource() const
  {
    return shared().behind.resource;
  }
  [[nodiscard]] backing hipmm_backing(int) const
  {
    return shared().behind;
  }

  /* Whether one may free what the other has allocated. */
  [[nodiscard]] friend bool operator==(const Self &one, const Self &other) noexcept
  {
    return one.equals(other);
  }
  [[nodiscard]] friend bool operator!=(const Self &one, const Self &other) noexcept
  {
    return !one.equals(other);
  }
  friend constexpr void get_property(const Self &, ::cuda::mr::device_accessible) noexcept
  {
  }

  static void check(std::size_t alignment)
  {
    check_alignment(alignment);
  }
  [[nodiscard]] bool equals(const Self &other) const noexcept
  {
    return shared_ == other.shared_;
  }

protected:
  value() noexcept
  {
    make_known<Self>();
  }
  explicit value(Body made) : shared_{std::make_shared<Body>(std::move(made))}
  {
    make_known<Self>();
  }
  ~value() = default;

  [[nodiscard]] Body &shared() const
  {
    RMM_EXPECTS(shared_ != nullptr, "A resource was used that has no memory: it was made without arguments.");
    return *shared_;
  }
  [[nodiscard]] std::size_t query(const char *name) const noexcept
  {
    std::int64_t number = 0;
    return shared_ && ::hipmm_resource_query(shared_->behind.resource.get(), name, &number) == HIPMM_OK
               ? static_cast<std::size_t>(number)
               : 0;
  }

private:
  [[nodiscard]] Self &self() noexcept
  {
    return static_cast<Self &>(*this);
  }

  std::shared_ptr<Body> shared_;
};

/* A value over an upstream, of which it owns a copy. State: what the class itself needs. */
struct no_state {
};
template <typename State> struct body_over : body {
  any_device upstream;
  State state;
};

/* The resource below, and the device for which the one above is made. */
struct below {
  int device;
  backing upstream;

  explicit below(const any_device &from) : device{current_device()}, upstream{backing_of(from, device)}
  {
  }
  /* `is_exception_passed`: an exception of an upstream that is the program's own reaches the caller. */
  [[nodiscard]] backing make(const char *type, const graph::options &options = {},
                             bool is_exception_passed = true) const
  {
    const bool is_passed = is_exception_passed && upstream.is_exception_passed;
    return {make_resource(device, type, options, upstream.resource, {nullptr, nullptr}, is_passed), is_passed};
  }
};

template <typename Self, typename State = no_state> class value_over : public value<Self, body_over<State>>
{
public:
  [[nodiscard]] rmm::device_async_resource_ref get_upstream_resource() const noexcept
  {
    return rmm::device_async_resource_ref{this->shared().upstream};
  }

  /* For allocate(): the resource behind it serves every power of two that its upstream can. */
  static void check(std::size_t alignment)
  {
    if (alignment == 0 || !rmm::is_pow2(alignment)) check_alignment(alignment);
  }

protected:
  value_over(any_device upstream, backing behind, State state = {})
      : value<Self, body_over<State>>{body_over<State>{{std::move(behind)}, std::move(upstream), std::move(state)}}
  {
  }
};

/* Values without a state. All objects of such a type share one resource for each device, and use the current device's. */
template <typename Self, shared_source source> class source_value
{
public:
  source_value() noexcept
  {
    make_known<Self>();
  }

  [[nodiscard]] void *allocate(rmm::cuda_stream_view stream, std::size_t bytes,
                               std::size_t alignment = default_alignment)
  {
    check_alignment(alignment);
    return compat::allocate(hipmm_backing(current_device()), bytes, stream);
  }
  void deallocate(rmm::cuda_stream_view stream, void *ptr, std::size_t bytes, std::size_t = default_alignment) noexcept
  {
    shared_deallocate(source, ptr, bytes, stream, is_initial_);
  }
  [[nodiscard]] void *allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment)
  {
    void *ptr = allocate(rmm::cuda_stream_view{}, bytes, alignment);
    rmm::cuda_stream_view{}.synchronize();
    return ptr;
  }
  void deallocate_sync(void *ptr, std::size_t bytes, std::size_t alignment = default_alignment) noexcept
  {
    deallocate(rmm::cuda_stream_view{}, ptr, bytes, alignment);
    rmm::cuda_stream_view{}.synchronize_no_throw();
  }

  [[nodiscard]] hipmm::resource hipmm_resource() const
  {
    return shared_resource(source, current_device(), is_initial_);
  }
  [[nodiscard]] backing hipmm_backing(int device) const
  {
    return {shared_resource(source, device, is_initial_), true};
  }

  [[nodiscard]] friend bool operator==(const Self &one, const Self &other) noexcept
  {
    if (one.is_initial_ == other.is_initial_) return true;
    try {
      return one.hipmm_resource() == other.hipmm_resource();
    } catch (...) {
      return false;
    }
  }
  [[nodiscard]] friend bool operator!=(const Self &one, const Self &other) noexcept
  {
    return !(one == other);
  }
  friend constexpr void get_property(const Self &, ::cuda::mr::device_accessible) noexcept
  {
  }

protected:
  explicit source_value(bool is_initial) noexcept : is_initial_{is_initial}
  {
    make_known<Self>();
  }
  ~source_value() = default;

private:
  bool is_initial_ = false; /* its memory is that of the resource of hipmm's graph, if there is a graph */
};

} // namespace hipmm::compat

#endif
