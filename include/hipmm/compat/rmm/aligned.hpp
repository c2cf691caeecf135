/* SPDX-License-Identifier: MIT */
/* rmm/aligned.hpp of RMM since 24.02. */
#ifndef HIPMM_COMPAT_RMM_ALIGNED_HPP
#define HIPMM_COMPAT_RMM_ALIGNED_HPP
#include "detail/aligned.hpp"
#endif
