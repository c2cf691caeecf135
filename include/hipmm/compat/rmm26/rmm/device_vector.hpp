/* SPDX-License-Identifier: MIT */
/* rmm/device_vector.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/device_vector.hpp>
