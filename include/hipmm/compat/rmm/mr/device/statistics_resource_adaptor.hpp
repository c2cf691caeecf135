/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/statistics_resource_adaptor.hpp of RMM 23.12: counters of bytes and of allocations. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_STATISTICS_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_STATISTICS_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>
#include <hipmm/compat/detail/adaptor_parts.hpp>

#include <utility>

namespace rmm::mr
{

template <typename Upstream>
class statistics_resource_adaptor final : public hipmm::compat::adaptor<statistics_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<statistics_resource_adaptor<Upstream>, Upstream>;

public:
  using counter = hipmm::compat::counter;

  statistics_resource_adaptor(Upstream *upstream) : base{upstream, typename base::below{upstream}.make("statistics")}
  {
  }
  statistics_resource_adaptor(Upstream &upstream) : statistics_resource_adaptor{std::addressof(upstream)}
  {
  }

  counter get_bytes_counter() const noexcept
  {
    return hipmm::compat::get_counters(this->behind()).first;
  }
  counter get_allocations_counter() const noexcept
  {
    return hipmm::compat::get_counters(this->behind()).second;
  }

  /* Of later releases: start and end a scope with counters of its own. push returns the counters of the outer scope, pop
   * those of the inner one; both bytes first. */
  std::pair<counter, counter> push_counters()
  {
    return hipmm::compat::push_counters(this->behind());
  }
  std::pair<counter, counter> pop_counters()
  {
    return hipmm::compat::pop_counters(this->behind());
  }
};

template <typename Upstream> statistics_resource_adaptor<Upstream> make_statistics_adaptor(Upstream *upstream)
{
  return statistics_resource_adaptor<Upstream>{upstream};
}

} // namespace rmm::mr

#endif
