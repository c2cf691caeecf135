/* SPDX-License-Identifier: MIT */
/* rmm/mr/statistics_resource_adaptor.hpp of RMM 26: counters of bytes and of allocations. */
#ifndef HIPMM_COMPAT_RMM_MR_STATISTICS_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_STATISTICS_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor_parts.hpp>
#include <hipmm/compat/detail/value.hpp>

#include <mutex>
#include <shared_mutex>
#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

class statistics_resource_adaptor : public hipmm::compat::value_over<statistics_resource_adaptor>
{
public:
  using counter = hipmm::compat::counter;
  using read_lock_t = std::shared_lock<std::shared_mutex>;
  using write_lock_t = std::unique_lock<std::shared_mutex>;

  explicit statistics_resource_adaptor(hipmm::compat::any_device upstream)
      : value_over{upstream, hipmm::compat::below{upstream}.make("statistics")}
  {
  }

  [[nodiscard]] counter get_bytes_counter() const noexcept
  {
    return hipmm::compat::get_counters(shared().behind.resource).first;
  }
  [[nodiscard]] counter get_allocations_counter() const noexcept
  {
    return hipmm::compat::get_counters(shared().behind.resource).second;
  }

  /* Start and end a scope with counters of its own. push returns the counters of the outer scope, pop those of the inner
   * one; both bytes first. */
  std::pair<counter, counter> push_counters()
  {
    return hipmm::compat::push_counters(shared().behind.resource);
  }
  std::pair<counter, counter> pop_counters()
  {
    return hipmm::compat::pop_counters(shared().behind.resource);
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
