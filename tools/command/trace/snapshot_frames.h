/* SPDX-License-Identifier: MIT */
/* snapshot_frames.h: the call stacks of PyTorch's snapshots: lists of {"name": …, "filename": …, "line": …}. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SNAPSHOT_FRAMES_H
#define HIPMM_TOOLS_COMMAND_TRACE_SNAPSHOT_FRAMES_H

#include "stack_texts.h"
#include "tree.h"

/* The number of a stack, its frames innermost first. `lines` has the lines of frames that were added before, by their addresses.
 * False: out of memory. */
bool snapshot_frames_add(struct stack_texts *texts, struct key_map *lines, const struct tree_value *frames,
                         uint32_t *number_out);

#endif
