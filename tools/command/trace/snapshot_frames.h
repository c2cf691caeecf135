/* SPDX-License-Identifier: MIT */
/* snapshot_frames.h: the call stacks of PyTorch's snapshots: lists of {"name": …, "filename": …, "line": …}. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SNAPSHOT_FRAMES_H
#define HIPMM_TOOLS_COMMAND_TRACE_SNAPSHOT_FRAMES_H

#include "tree.h"

/* The frames as lines, innermost first; the caller frees it. NULL: out of memory. */
char *snapshot_frames_text(const struct tree_value *frames);

#endif
