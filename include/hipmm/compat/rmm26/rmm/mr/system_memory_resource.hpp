/* SPDX-License-Identifier: MIT */
/* rmm/mr/system_memory_resource.hpp of RMM 26: pageable memory of the host, where devices can access it. */
#ifndef HIPMM_COMPAT_RMM_MR_SYSTEM_MEMORY_RESOURCE_HPP
#define HIPMM_COMPAT_RMM_MR_SYSTEM_MEMORY_RESOURCE_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

namespace detail
{

/* Whether hipmm can make such a resource on the device. */
inline bool is_system_memory_supported(cuda_device_id device)
{
  ::hipmm_resource *made = nullptr;
  hipmm::compat::need_library();
  const ::hipmm_status status = ::hipmm_resource_create(device.value(), "system", nullptr, nullptr, 0, &made);
  ::hipmm_resource_release(made);
  return status == HIPMM_OK;
}

} // namespace detail

class system_memory_resource final
    : public hipmm::compat::source_value<system_memory_resource, hipmm::compat::shared_source::system>
{
public:
  /* Throws logic_error on a device that cannot access such memory. */
  system_memory_resource()
  {
    RMM_EXPECTS(detail::is_system_memory_supported(get_current_cuda_device()),
                "System memory allocator is not supported with this hardware/software version.");
  }

  friend constexpr void get_property(const system_memory_resource &, ::cuda::mr::host_accessible) noexcept
  {
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
