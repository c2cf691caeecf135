/* SPDX-License-Identifier: MIT */
/* rmm/mr/prefetch_resource_adaptor.hpp of RMM 26: moves managed memory to the device when it is allocated. */
#ifndef HIPMM_COMPAT_RMM_MR_PREFETCH_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_PREFETCH_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

class prefetch_resource_adaptor : public hipmm::compat::value_over<prefetch_resource_adaptor>
{
public:
  explicit prefetch_resource_adaptor(hipmm::compat::any_device upstream)
      : value_over{upstream, hipmm::compat::below{upstream}.make("prefetch")}
  {
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
