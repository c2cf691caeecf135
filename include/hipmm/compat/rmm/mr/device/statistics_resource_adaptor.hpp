/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/statistics_resource_adaptor.hpp of RMM 23.12: counters of bytes and of allocations. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_STATISTICS_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_STATISTICS_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rmm::mr
{

template <typename Upstream>
class statistics_resource_adaptor final : public hipmm::compat::adaptor<statistics_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<statistics_resource_adaptor<Upstream>, Upstream>;

public:
  /* Now, at most, and in all. */
  struct counter {
    std::int64_t value{0};
    std::int64_t peak{0};
    std::int64_t total{0};

    counter &operator+=(std::int64_t change)
    {
      value += change;
      total += change;
      peak = std::max(value, peak);
      return *this;
    }
    counter &operator-=(std::int64_t change)
    {
      value -= change;
      return *this;
    }
  };

  statistics_resource_adaptor(Upstream *upstream) : base{upstream, typename base::below{upstream}.make("statistics")}
  {
  }
  statistics_resource_adaptor(Upstream &upstream) : statistics_resource_adaptor{std::addressof(upstream)}
  {
  }

  counter get_bytes_counter() const noexcept
  {
    return bytes_of(read(::hipmm_statistics_get));
  }
  counter get_allocations_counter() const noexcept
  {
    return allocations_of(read(::hipmm_statistics_get));
  }

  /* Of later releases: start and end a scope with counters of its own. push returns the counters of the outer scope, pop
   * those of the inner one; both bytes first. */
  std::pair<counter, counter> push_counters()
  {
    const ::hipmm_statistics counters = read(::hipmm_statistics_push);
    return {bytes_of(counters), allocations_of(counters)};
  }
  std::pair<counter, counter> pop_counters()
  {
    ::hipmm_statistics counters{};
    if (::hipmm_statistics_pop(this->behind().get(), &counters) != HIPMM_OK)
      throw std::out_of_range{"cannot pop the last allocation counter pair"};
    return {bytes_of(counters), allocations_of(counters)};
  }

private:
  [[nodiscard]] ::hipmm_statistics read(::hipmm_status (*function)(::hipmm_resource *,
                                                                   ::hipmm_statistics *)) const noexcept
  {
    ::hipmm_statistics counters{};
    static_cast<void>(function(this->behind().get(), &counters));
    return counters;
  }
  static counter bytes_of(const ::hipmm_statistics &counters) noexcept
  {
    return {counters.current_bytes, counters.peak_bytes, counters.total_bytes};
  }
  [[nodiscard]] static counter allocations_of(const ::hipmm_statistics &counters) noexcept
  {
    return {counters.current_count, counters.peak_count, counters.total_count};
  }
};

template <typename Upstream> statistics_resource_adaptor<Upstream> make_statistics_adaptor(Upstream *upstream)
{
  return statistics_resource_adaptor<Upstream>{upstream};
}

} // namespace rmm::mr

#endif
