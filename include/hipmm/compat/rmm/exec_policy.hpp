/* SPDX-License-Identifier: MIT */
/* rmm/exec_policy.hpp: Thrust's algorithms on a stream, with temporary memory of a resource. */
#ifndef HIPMM_COMPAT_RMM_EXEC_POLICY_HPP
#define HIPMM_COMPAT_RMM_EXEC_POLICY_HPP

#include <hipmm/compat/detail/generation.hpp>
#if HIPMM_COMPAT_RMM == 26
#include <rmm/mr/thrust_allocator_adaptor.hpp>
#else
#include "mr/device/thrust_allocator_adaptor.hpp"
#endif
#include <hipmm/compat/detail/container_resource.hpp>
#include <hipmm/cpp/thrust_policy.hpp>

#include <utility>

namespace rmm
{

using thrust_exec_policy_t =
    decltype(hipmm::detail::thrust_policy(std::declval<const mr::thrust_allocator<char> &>(), cuda_stream_view{}));
using thrust_exec_policy_nosync_t = decltype(hipmm::detail::thrust_policy_nosync(
    std::declval<const mr::thrust_allocator<char> &>(), cuda_stream_view{}));

class HIPMM_COMPAT_TAG exec_policy : public thrust_exec_policy_t
{
public:
  explicit exec_policy(cuda_stream_view stream = cuda_stream_default,
                       hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : thrust_exec_policy_t{
            hipmm::detail::thrust_policy(mr::thrust_allocator<char>{stream, std::move(resource)}, stream)}
  {
  }
};

/* The algorithms need not wait for their own work. */
class HIPMM_COMPAT_TAG exec_policy_nosync : public thrust_exec_policy_nosync_t
{
public:
  explicit exec_policy_nosync(cuda_stream_view stream = cuda_stream_default,
                              hipmm::compat::container_resource resource = hipmm::compat::default_resource())
      : thrust_exec_policy_nosync_t{
            hipmm::detail::thrust_policy_nosync(mr::thrust_allocator<char>{stream, std::move(resource)}, stream)}
  {
  }
};

} // namespace rmm

#endif
