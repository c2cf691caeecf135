/* SPDX-License-Identifier: MIT */
/* rmm/exec_policy.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/exec_policy.hpp>
