/* SPDX-License-Identifier: MIT */
/* rmm/detail/export.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/detail/export.hpp>
