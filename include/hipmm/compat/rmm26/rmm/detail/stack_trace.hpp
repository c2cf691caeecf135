/* SPDX-License-Identifier: MIT */
/* rmm/detail/stack_trace.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/detail/stack_trace.hpp>
