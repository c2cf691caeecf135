/* SPDX-License-Identifier: MIT */
/* rmm/detail/aligned.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/detail/aligned.hpp>
