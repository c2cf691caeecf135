/* SPDX-License-Identifier: MIT */
/* rmm/logger_macros.hpp of RMM since 25.02: RMM_LOG_INFO() and its like. */
#ifndef HIPMM_COMPAT_RMM_LOGGER_MACROS_HPP
#define HIPMM_COMPAT_RMM_LOGGER_MACROS_HPP
#include "logger.hpp"
#endif
