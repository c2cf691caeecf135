/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/thread_safe_resource_adaptor.hpp of RMM 23.12: one thread at a time at its upstream. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_THREAD_SAFE_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_THREAD_SAFE_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>

namespace rmm::mr
{

template <typename Upstream>
class thread_safe_resource_adaptor final
    : public hipmm::compat::adaptor<thread_safe_resource_adaptor<Upstream>, Upstream>
{
  using base = hipmm::compat::adaptor<thread_safe_resource_adaptor<Upstream>, Upstream>;

public:
  thread_safe_resource_adaptor(Upstream *upstream) : base{upstream, typename base::below{upstream}.make("thread_safe")}
  {
  }
  thread_safe_resource_adaptor(Upstream &upstream) : thread_safe_resource_adaptor{std::addressof(upstream)}
  {
  }
  thread_safe_resource_adaptor(const thread_safe_resource_adaptor &) = delete;
  thread_safe_resource_adaptor &operator=(const thread_safe_resource_adaptor &) = delete;
};

} // namespace rmm::mr

#endif
