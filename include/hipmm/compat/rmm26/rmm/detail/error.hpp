/* SPDX-License-Identifier: MIT */
/* rmm/detail/error.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/detail/error.hpp>
