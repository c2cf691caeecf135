/* SPDX-License-Identifier: MIT */
/* rmm/cuda_device.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/cuda_device.hpp>
