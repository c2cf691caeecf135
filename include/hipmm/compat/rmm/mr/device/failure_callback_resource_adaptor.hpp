/* SPDX-License-Identifier: MIT */
/* rmm/mr/device/failure_callback_resource_adaptor.hpp of RMM 23.12: a function of the program when the upstream fails. */
#ifndef HIPMM_COMPAT_RMM_MR_DEVICE_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_DEVICE_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP

#include <hipmm/compat/detail/adaptor.hpp>
#include <hipmm/compat/detail/adaptor_parts.hpp>

#include <memory>
#include <utility>

namespace rmm::mr
{

/* Returns whether to try again. The function may throw. */
using failure_callback_t = hipmm::compat::failure_function;

/* Calls the function when an allocation of the upstream ends with an ExceptionType. */
template <typename Upstream, typename ExceptionType = rmm::out_of_memory>
class failure_callback_resource_adaptor final
    : public hipmm::compat::adaptor<failure_callback_resource_adaptor<Upstream, ExceptionType>, Upstream>
{
  using base = hipmm::compat::adaptor<failure_callback_resource_adaptor<Upstream, ExceptionType>, Upstream>;

public:
  using exception_type = ExceptionType;

  failure_callback_resource_adaptor(Upstream *upstream, failure_callback_t callback, void *callback_arg)
      : base{upstream, make(upstream, std::move(callback), callback_arg)}
  {
  }
  failure_callback_resource_adaptor(Upstream &upstream, failure_callback_t callback, void *callback_arg)
      : failure_callback_resource_adaptor{std::addressof(upstream), std::move(callback), callback_arg}
  {
  }
  failure_callback_resource_adaptor(const failure_callback_resource_adaptor &) = delete;
  failure_callback_resource_adaptor &operator=(const failure_callback_resource_adaptor &) = delete;
  failure_callback_resource_adaptor(failure_callback_resource_adaptor &&) noexcept = default;
  failure_callback_resource_adaptor &operator=(failure_callback_resource_adaptor &&) noexcept = default;

private:
  static hipmm::compat::backing make(Upstream *upstream, failure_callback_t callback, void *callback_arg)
  {
    const typename base::below below{upstream};
    return hipmm::compat::failure_state<ExceptionType>::make(below.device, below.upstream, std::move(callback),
                                                             callback_arg);
  }
};

} // namespace rmm::mr

#endif
