/* SPDX-License-Identifier: MIT */
/* rmm/mr/cuda_async_managed_memory_resource.hpp of RMM 26: a pool of the driver of memory that migrates. */
#ifndef HIPMM_COMPAT_RMM_MR_CUDA_ASYNC_MANAGED_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_CUDA_ASYNC_MANAGED_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

class cuda_async_managed_memory_resource final : public hipmm::compat::value<cuda_async_managed_memory_resource>
{
public:
  cuda_async_managed_memory_resource()
      : value{{{hipmm::compat::make_resource(hipmm::compat::current_device(), "async_managed"), true}}}
  {
  }

  [[nodiscard]] hipmm::compat::mempool_handle pool_handle() const noexcept
  {
    return hipmm::compat::pool_handle_of(shared().behind.resource);
  }

  friend constexpr void get_property(const cuda_async_managed_memory_resource &, ::cuda::mr::host_accessible) noexcept
  {
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
