/* SPDX-License-Identifier: MIT */
/* rmm/resource_ref.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/resource_ref.hpp>
