/* SPDX-License-Identifier: MIT */
/* hip.h: the runtime in use. A process uses one for its whole life, since its memory and streams belong to it. */
#ifndef HIPMM_CORE_RUNTIME_HIP_H
#define HIPMM_CORE_RUNTIME_HIP_H

#include <hipmm/plugin.h>

struct graph;

/* Opens the runtime that HIPMM_RUNTIME or else the graph asks for. Says in the log what was chosen and why. Gives the
 * number of its devices. */
enum hipmm_status hip_open(const struct graph *graph, int *count_out);

/* The table of the runtime in use; complete after hip_open, constant from then on. */
const struct hipmm_hip *hip_table(void);

/* What the runtime's library itself exports by a name, where the table may have a function of the core's in front of it;
 * NULL if there is no such name, and before hip_open. */
void *hip_symbol(const char *name);

/* "amd", "nvidia", "software" or the library's path; NULL before hip_open. */
const char *hip_name(void);

/* Makes a device current and returns the one that was; leave makes that one current again. A call that fails is tried
 * again: what follows would else happen on the wrong device. */
int hip_enter_device(int device);
void hip_leave_device(int device, int previous);

/* The status that fits a HIP error code. */
enum hipmm_status hip_status(int code);

/* Reports that a HIP call returned `code` when asked for `bytes` (0 if it has no size), and clears HIP's own record.
 * `resource`: whose call it was; NULL for the core's. */
enum hipmm_status hip_refuse(const char *resource, const char *call, int code, size_t bytes);

#endif
