/* SPDX-License-Identifier: MIT */
/* rmm/mr/failure_callback_t.hpp of RMM 26: a function of the program when an allocation fails. */
#ifndef HIPMM_COMPAT_RMM_MR_FAILURE_CALLBACK_T_HPP
#define HIPMM_COMPAT_RMM_MR_FAILURE_CALLBACK_T_HPP

#include <hipmm/compat/detail/adaptor_parts.hpp>
#include <hipmm/compat/detail/value.hpp>

namespace rmm::mr
{
inline namespace of_26
{

/* Gets the size and the argument, and returns whether to try again. The function may throw. */
using failure_callback_t = hipmm::compat::failure_function;

} // namespace of_26
} // namespace rmm::mr

#endif
