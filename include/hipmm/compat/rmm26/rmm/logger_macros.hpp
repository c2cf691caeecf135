/* SPDX-License-Identifier: MIT */
/* rmm/logger_macros.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/logger_macros.hpp>
