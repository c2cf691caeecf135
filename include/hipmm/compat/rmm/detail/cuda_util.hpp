/* SPDX-License-Identifier: MIT */
/* rmm/detail/cuda_util.hpp of RMM 23.12: rmm::detail::available_device_memory(). */
#ifndef HIPMM_COMPAT_RMM_DETAIL_CUDA_UTIL_HPP
#define HIPMM_COMPAT_RMM_DETAIL_CUDA_UTIL_HPP
#include "../cuda_device.hpp"
#endif
