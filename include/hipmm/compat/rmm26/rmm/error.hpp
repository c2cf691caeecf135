/* SPDX-License-Identifier: MIT */
/* rmm/error.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/error.hpp>
