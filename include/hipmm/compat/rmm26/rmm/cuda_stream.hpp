/* SPDX-License-Identifier: MIT */
/* rmm/cuda_stream.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/cuda_stream.hpp>
