/* SPDX-License-Identifier: MIT */
/* rmm/exec_policy.hpp of RMM 23.12: Thrust's algorithms on a stream, with temporary memory of a resource. */
#ifndef HIPMM_COMPAT_RMM_EXEC_POLICY_HPP
#define HIPMM_COMPAT_RMM_EXEC_POLICY_HPP

#include "mr/device/thrust_allocator_adaptor.hpp"
#include <hipmm/cpp/thrust_policy.hpp>

#include <utility>

namespace rmm
{

using thrust_exec_policy_t =
    decltype(hipmm::detail::thrust_policy(std::declval<const mr::thrust_allocator<char> &>(), cuda_stream_view{}));
using thrust_exec_policy_nosync_t = decltype(hipmm::detail::thrust_policy_nosync(
    std::declval<const mr::thrust_allocator<char> &>(), cuda_stream_view{}));

class exec_policy : public thrust_exec_policy_t
{
public:
  explicit exec_policy(cuda_stream_view stream = cuda_stream_default,
                       device_async_resource_ref resource = mr::get_current_device_resource())
      : thrust_exec_policy_t{hipmm::detail::thrust_policy(mr::thrust_allocator<char>{stream, resource}, stream)}
  {
  }
};

/* The algorithms need not wait for their own work. */
class exec_policy_nosync : public thrust_exec_policy_nosync_t
{
public:
  explicit exec_policy_nosync(cuda_stream_view stream = cuda_stream_default,
                              device_async_resource_ref resource = mr::get_current_device_resource())
      : thrust_exec_policy_nosync_t{
            hipmm::detail::thrust_policy_nosync(mr::thrust_allocator<char>{stream, resource}, stream)}
  {
  }
};

} // namespace rmm

#endif
