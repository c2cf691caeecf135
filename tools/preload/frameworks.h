/* SPDX-License-Identifier: MIT */
/* frameworks.h: what PyTorch, CuPy, Numba and RMM allocate in a process of `hipmm run`, for the report. */
#ifndef HIPMM_TOOLS_PRELOAD_FRAMEWORKS_H
#define HIPMM_TOOLS_PRELOAD_FRAMEWORKS_H

#include "hooks.h"

/* The functions that frameworks call, as further rows of the report. */
enum frameworks_row {
  FRAMEWORK_TORCH_MALLOC,
  FRAMEWORK_TORCH_FREE,
  FRAMEWORK_CUPY_MALLOC,
  FRAMEWORK_CUPY_FREE,
  FRAMEWORK_NUMBA_MALLOC,
  FRAMEWORK_NUMBA_FREE,
  FRAMEWORK_RMM_MALLOC,
  FRAMEWORK_RMM_FREE,
  FRAMEWORK_ROWS
};

const char *frameworks_name(enum frameworks_row row);
struct hook_counts frameworks_counts(enum frameworks_row row);

#endif
