/* SPDX-License-Identifier: MIT */
/* rmm/error.hpp of RMM since 24.12. */
#ifndef HIPMM_COMPAT_RMM_ERROR_HPP
#define HIPMM_COMPAT_RMM_ERROR_HPP
#include "detail/error.hpp"
#endif
