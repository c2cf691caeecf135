/* SPDX-License-Identifier: MIT */
/* rmm/mr/thread_safe_resource_adaptor.hpp of RMM 26: one thread at a time at its upstream. */
#ifndef HIPMM_COMPAT_RMM_MR_THREAD_SAFE_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_THREAD_SAFE_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/value.hpp>

#include <mutex>

namespace rmm::mr
{
inline namespace of_26
{

class thread_safe_resource_adaptor : public hipmm::compat::value_over<thread_safe_resource_adaptor>
{
public:
  using lock_t = std::lock_guard<std::mutex>;

  explicit thread_safe_resource_adaptor(hipmm::compat::any_device upstream)
      : value_over{upstream, hipmm::compat::below{upstream}.make("thread_safe")}
  {
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
