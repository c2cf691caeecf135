/* SPDX-License-Identifier: MIT */
/* frameworks.h: Python in a process of `hipmm run`: what PyTorch, CuPy and Numba allocate, for the report, and whether the
 * hook that serves them (sitecustomize.py) is there. */
#ifndef HIPMM_PRELOAD_FRAMEWORKS_H
#define HIPMM_PRELOAD_FRAMEWORKS_H

#include "hooks.h"

/* The functions that frameworks call, as further rows of the report. */
enum framework_row {
  FRAMEWORK_TORCH_MALLOC,
  FRAMEWORK_TORCH_FREE,
  FRAMEWORK_CUPY_MALLOC,
  FRAMEWORK_CUPY_FREE,
  FRAMEWORK_NUMBA_MALLOC,
  FRAMEWORK_NUMBA_FREE,
  FRAMEWORK_ROWS
};

const char *frameworks_name(enum framework_row row);
struct hook_counts frameworks_counts(enum framework_row row);
void frameworks_reset_counts(void);

/* Called when the program first uses the runtime: a message if this is a Python that the hook was to reach, and did not. */
void frameworks_check_hook(void);

#endif
