/* SPDX-License-Identifier: MIT */
/* rmm/mr/tracking_resource_adaptor.hpp of RMM 26: a list of all live allocations. */
#ifndef HIPMM_COMPAT_RMM_MR_TRACKING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_TRACKING_RESOURCE_ADAPTOR_HPP

#include "../logger.hpp"
#include <hipmm/compat/detail/adaptor_parts.hpp>
#include <hipmm/compat/detail/value.hpp>

#include <cstddef>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace rmm::mr
{
inline namespace of_26
{

namespace detail
{

struct tracking_state {
  bool captures_stacks;
  std::map<void *, hipmm::compat::allocation_info> allocations; /* as of the last call that asked for it */
};

} // namespace detail

/* A wrong free is refused, and changes nothing: in RMM its use is undefined. */
class tracking_resource_adaptor : public hipmm::compat::value_over<tracking_resource_adaptor, detail::tracking_state>
{
public:
  using allocation_info = hipmm::compat::allocation_info;
  using read_lock_t = std::shared_lock<std::shared_mutex>;
  using write_lock_t = std::unique_lock<std::shared_mutex>;

  tracking_resource_adaptor(hipmm::compat::any_device upstream, bool capture_stacks = false)
      : value_over{upstream,
                   hipmm::compat::below{upstream}.make("tracking", hipmm::compat::tracking_options(capture_stacks)),
                   {capture_stacks, {}}}
  {
  }

  /* As of this call; the next call, by a copy of the object too, changes the map. */
  [[nodiscard]] const std::map<void *, allocation_info> &get_outstanding_allocations() const
  {
    auto &[captures_stacks, allocations] = shared().state;
    return allocations = hipmm::compat::live_allocations(shared().behind.resource, captures_stacks);
  }
  [[nodiscard]] std::size_t get_allocated_bytes() const noexcept
  {
    return query("outstanding_bytes");
  }
  [[nodiscard]] std::string get_outstanding_allocations_str() const
  {
    return hipmm::compat::lines_of(get_outstanding_allocations());
  }
  void log_outstanding_allocations() const
  {
    RMM_LOG_DEBUG("Outstanding Allocations: %s", get_outstanding_allocations_str().c_str());
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
