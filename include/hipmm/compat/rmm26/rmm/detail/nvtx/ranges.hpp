/* SPDX-License-Identifier: MIT */
/* rmm/detail/nvtx/ranges.hpp of RMM 26, as RMM has it without RMM_NVTX: no range is made. */
#ifndef HIPMM_COMPAT_RMM26_DETAIL_NVTX_RANGES_HPP
#define HIPMM_COMPAT_RMM26_DETAIL_NVTX_RANGES_HPP

#define RMM_FUNC_RANGE()

#endif
