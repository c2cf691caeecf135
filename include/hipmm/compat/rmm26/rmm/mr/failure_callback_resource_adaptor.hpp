/* SPDX-License-Identifier: MIT */
/* rmm/mr/failure_callback_resource_adaptor.hpp of RMM 26: a function of the program when the upstream fails. */
#ifndef HIPMM_COMPAT_RMM_MR_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP
#define HIPMM_COMPAT_RMM_MR_FAILURE_CALLBACK_RESOURCE_ADAPTOR_HPP

#include "failure_callback_t.hpp"

#include <utility>

namespace rmm::mr
{
inline namespace of_26
{

/* Calls the function when an allocation of the upstream ends with an ExceptionType. */
template <typename ExceptionType = rmm::out_of_memory>
class failure_callback_resource_adaptor
    : public hipmm::compat::value_over<failure_callback_resource_adaptor<ExceptionType>>
{
  using base = hipmm::compat::value_over<failure_callback_resource_adaptor<ExceptionType>>;

public:
  using exception_type = ExceptionType;

  failure_callback_resource_adaptor(hipmm::compat::any_device upstream, failure_callback_t callback, void *callback_arg)
      : base{upstream, make(upstream, std::move(callback), callback_arg)}
  {
  }

private:
  static hipmm::compat::backing make(const hipmm::compat::any_device &upstream, failure_callback_t callback,
                                     void *callback_arg)
  {
    const hipmm::compat::below below{upstream};
    return hipmm::compat::failure_state<ExceptionType>::make(below.device, below.upstream, std::move(callback),
                                                             callback_arg);
  }
};

} // namespace of_26
} // namespace rmm::mr

#endif
