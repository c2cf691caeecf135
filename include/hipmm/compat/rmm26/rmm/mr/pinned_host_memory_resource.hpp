/* SPDX-License-Identifier: MIT */
/* rmm/mr/pinned_host_memory_resource.hpp of RMM 26: pinned memory of the host, which every device can access. */
#ifndef HIPMM_COMPAT_RMM_MR_PINNED_HOST_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_PINNED_HOST_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

class pinned_host_memory_resource final
    : public hipmm::compat::source_value<pinned_host_memory_resource, hipmm::compat::shared_source::pinned>
{
public:
  pinned_host_memory_resource() noexcept /* without a body of its own it would be an aggregate in C++17 */
  {
  }

  friend constexpr void get_property(const pinned_host_memory_resource &, ::cuda::mr::host_accessible) noexcept
  {
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
