/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/adaptor.hpp: the bases of the resources that depend on another one: each object owns one resource
 * of hipmm, made in code on the device that is current when the object is made. */
#ifndef HIPMM_COMPAT_DETAIL_ADAPTOR_HPP
#define HIPMM_COMPAT_DETAIL_ADAPTOR_HPP

#include <rmm/mr/device/device_memory_resource.hpp>
#include <rmm/resource_ref.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

/* Programs have these from RMM's headers, without a line of their own. */
#include <algorithm>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace hipmm::compat
{

/* What stands behind an upstream. One of a class that is not RMM's needs allocate_async() and deallocate_async() alone. */
template <typename Upstream, typename = void> struct backing_of {
  static backing get(Upstream &upstream, int device)
  {
    callback_state<Upstream> *state = nullptr;
    return {make_callback(device, state, &upstream), true};
  }
};
template <typename Upstream>
struct backing_of<Upstream, std::void_t<decltype(std::declval<Upstream &>().hipmm_backing(0))>> {
  static backing get(Upstream &upstream, int device)
  {
    return upstream.hipmm_backing(device);
  }
};

/* An object of RMM's over one resource of hipmm. */
class owner : public rmm::mr::device_memory_resource
{
protected:
  owner() = default;
  explicit owner(backing behind) : behind_{std::move(behind)}
  {
  }

  [[nodiscard]] const hipmm::resource &behind() const noexcept
  {
    return behind_.resource;
  }
  [[nodiscard]] std::size_t query(const char *value) const noexcept
  {
    std::int64_t number = 0;
    return ::hipmm_resource_query(behind_.resource.get(), value, &number) == HIPMM_OK ? static_cast<std::size_t>(number)
                                                                                      : 0;
  }

private:
  void *do_allocate(std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    return compat::allocate(behind_, bytes, stream);
  }
  void do_deallocate(void *ptr, std::size_t bytes, rmm::cuda_stream_view stream) override
  {
    compat::deallocate(behind_, ptr, bytes, stream);
  }
  [[nodiscard]] backing do_get_backing(int) override
  {
    return behind_;
  }

  backing behind_;
};

/* What stands over one upstream. */
template <typename Upstream> class over : public owner
{
public:
  [[nodiscard]] Upstream *get_upstream() const noexcept
  {
    return upstream_;
  }
  /* Of later releases. */
  [[nodiscard]] Upstream &upstream_resource() const noexcept
  {
    return *upstream_;
  }

protected:
  /* The resource of hipmm below, and the device for which it is made. */
  struct below {
    int device;
    backing upstream;

    explicit below(Upstream *from)
        : device{(RMM_EXPECTS(from != nullptr, "Unexpected null upstream resource pointer."), current_device())},
          upstream{backing_of<Upstream>::get(*from, device)}
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

  over(Upstream *upstream, backing behind) : owner{std::move(behind)}, upstream_{upstream}
  {
  }

private:
  Upstream *upstream_;
};

/* Adaptors: what they cannot answer themselves, the upstream answers. Two are equal if their upstreams are, and an adaptor
 * is equal to what is equal to its upstream. */
template <typename Self, typename Upstream> class adaptor : public over<Upstream>
{
public:
  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return this->get_upstream()->supports_streams();
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return this->get_upstream()->supports_get_mem_info();
  }

protected:
  using over<Upstream>::over;

private:
  [[nodiscard]] bool do_is_equal(const rmm::mr::device_memory_resource &other) const noexcept override
  {
    if (this == &other) return true;
    const auto *same = dynamic_cast<const Self *>(&other);
    return this->get_upstream()->is_equal(same ? *same->get_upstream() : other);
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(rmm::cuda_stream_view stream) const override
  {
    return this->get_upstream()->get_mem_info(stream);
  }
};

/* Resources that divide memory of their upstream: in stream order, and without an answer to get_mem_info(). */
template <typename Upstream> class suballocator : public over<Upstream>
{
public:
  [[nodiscard]] bool supports_streams() const noexcept override
  {
    return true;
  }
  [[nodiscard]] bool supports_get_mem_info() const noexcept override
  {
    return false;
  }

protected:
  using over<Upstream>::over;

private:
  [[nodiscard]] std::pair<std::size_t, std::size_t> do_get_mem_info(rmm::cuda_stream_view) const override
  {
    return {0, 0};
  }
};

/* A size that may be left out: a number, or an empty or full std::optional, thrust::optional or cuda::std::optional. */
class optional_size
{
public:
  constexpr optional_size() noexcept = default;
  template <typename Value> constexpr optional_size(const Value &value)
  {
    if constexpr (std::is_arithmetic_v<Value>) {
      bytes_ = static_cast<std::size_t>(value);
    } else if constexpr (!std::is_empty_v<Value>) { /* std::nullopt and its like are empty */
      if (value.has_value()) bytes_ = static_cast<std::size_t>(value.value());
    }
  }

  [[nodiscard]] constexpr bool has_value() const noexcept
  {
    return bytes_.has_value();
  }
  [[nodiscard]] constexpr std::size_t value() const
  {
    return bytes_.value();
  }
  [[nodiscard]] constexpr std::size_t value_or(std::size_t other) const noexcept
  {
    return bytes_.value_or(other);
  }

private:
  std::optional<std::size_t> bytes_;
};

} // namespace hipmm::compat

#endif
