/* SPDX-License-Identifier: MIT */
/* program.h: what a program brings to stacks that ask for it: functions that allocate ("program", for `callback`), one
 * that is told of failures (of the same name, for `failure_callback`), and a region of device memory ("region", for
 * `fixed_buffer`). */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_PROGRAM_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_PROGRAM_H

#include <stddef.h>

/* After initialisation, and before the stack is built. The region lies on the current device. */
void program_begin(size_t region_bytes);

/* After finalisation. */
void program_end(void);

#endif
