/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/tracking_resource_adaptor.hpp of RMM 23.12: a list of all live allocations. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_TRACKING_RESOURCE_ADAPTOR_HPP

#include "../../logger.hpp"
#include <hipmm/compat/detail/adaptor.hpp>
#include <hipmm/compat/detail/adaptor_parts.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace rmm::mr
{

/* A wrong free is refused, and changes nothing: in RMM its use is undefined. */
template <typename Upstream>
class tracking_resource_adaptor final : public hipmm::compat::adaptor<tracking_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<tracking_resource_adaptor<Upstream>, Upstream>;

public:
  using allocation_info = hipmm::compat::allocation_info;

  tracking_resource_adaptor(Upstream *upstream, bool capture_stacks = false)
      : base{upstream,
             typename base::below{upstream}.make("tracking", hipmm::compat::tracking_options(capture_stacks))},
        captures_stacks_{capture_stacks}
  {
  }
  tracking_resource_adaptor(Upstream &upstream, bool capture_stacks = false)
      : tracking_resource_adaptor{std::addressof(upstream), capture_stacks}
  {
  }

  /* As of this call; the next call changes the map. */
  const std::map<void *, allocation_info> &get_outstanding_allocations() const
  {
    return allocations_ = hipmm::compat::live_allocations(this->behind(), captures_stacks_);
  }
  std::size_t get_allocated_bytes() const noexcept
  {
    return this->query("outstanding_bytes");
  }

  /* A line for each allocation, with the lines of its stack trace behind it. */
  std::string get_outstanding_allocations_str() const
  {
    return hipmm::compat::lines_of(get_outstanding_allocations());
  }
  void log_outstanding_allocations() const
  {
    RMM_LOG_DEBUG("Outstanding Allocations: {}", get_outstanding_allocations_str());
  }

private:
  bool captures_stacks_;
  mutable std::map<void *, allocation_info> allocations_;
};

template <typename Upstream> tracking_resource_adaptor<Upstream> make_tracking_adaptor(Upstream *upstream)
{
  return tracking_resource_adaptor<Upstream>{upstream};
}

} // namespace rmm::mr

#endif
