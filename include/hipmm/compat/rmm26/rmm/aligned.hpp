/* SPDX-License-Identifier: MIT */
/* rmm/aligned.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/aligned.hpp>
