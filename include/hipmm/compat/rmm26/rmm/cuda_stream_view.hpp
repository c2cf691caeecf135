/* SPDX-License-Identifier: MIT */
/* rmm/cuda_stream_view.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/cuda_stream_view.hpp>
