/* SPDX-License-Identifier: MIT */
/* rmm/logger.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/logger.hpp>
