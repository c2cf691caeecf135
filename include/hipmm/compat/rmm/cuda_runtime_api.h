/* SPDX-License-Identifier: MIT */
/* rmm/cuda_runtime_api.h of hipMM: the runtime's functions by CUDA's names. */
#ifndef HIPMM_COMPAT_RMM_CUDA_RUNTIME_API_H
#define HIPMM_COMPAT_RMM_CUDA_RUNTIME_API_H
#include <hipmm/compat/detail/runtime.hpp>
#endif
