/* SPDX-License-Identifier: MIT */
/* rmm/mr/managed_memory_resource.hpp of RMM 26: memory that migrates between host and devices. */
#ifndef HIPMM_COMPAT_RMM_MR_MANAGED_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_MANAGED_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

class managed_memory_resource final
    : public hipmm::compat::source_value<managed_memory_resource, hipmm::compat::shared_source::managed>
{
public:
  managed_memory_resource() noexcept /* without a body of its own it would be an aggregate in C++17 */
  {
  }

  friend constexpr void get_property(const managed_memory_resource &, ::cuda::mr::host_accessible) noexcept
  {
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
