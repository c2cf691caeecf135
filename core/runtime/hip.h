/* SPDX-License-Identifier: MIT */
/* hip.h: the runtime in use. A process uses one for its whole life, since its memory and streams belong to it.
 * Functions other than hip_open() are thread-safe after hip_open(). */
#ifndef HIPMM_CORE_RUNTIME_HIP_H
#define HIPMM_CORE_RUNTIME_HIP_H

#include <hipmm/plugin.h>

#include <stdbool.h>

struct graph;

/* Opens the runtime that HIPMM_RUNTIME or else the graph names, and logs the choice and its reason. HIPMM_E_STATE if the
 * process uses another runtime already. `is_in_use`: a stack of another graph uses the runtime, which is not configured
 * again. */
enum hipmm_status hip_open(const struct graph *graph, bool is_in_use);

/* HIPMM_E_STATE if the process uses another runtime than the one that hip_open() would open. */
enum hipmm_status hip_check(const struct graph *graph);

/* The number of devices of the runtime in use, at least 1; 0 before hip_open(). */
int hip_device_count(void);

/* The table of the runtime in use; complete after hip_open(), constant from then on. */
const struct hipmm_hip *hip_table(void);

/* The symbol of that name in the runtime's library itself, where the table may have a wrapper of the core; NULL if
 * there is none, and before hip_open(). */
void *hip_symbol(const char *name);

/* What a race detector has to be told of blocks; NULL if there is none (../base/memory_observer.h). */
const struct memory_observer *hip_observer(void);
/* Around a call of a plugin. Whether there is a detector, and the program itself makes the call. */
bool hip_observer_enter(void);
void hip_observer_leave(void);

/* "amd", "nvidia", "software" or the library's path; NULL before hip_open(). */
const char *hip_name(void);

/* Makes a device current and returns the previous one; leave makes that one current again. Both try a failed call
 * twice, since later calls would use the wrong device. */
int hip_enter_device(int device);
void hip_leave_device(int device, int previous);

/* hipmm_stream_is_captured() of a stream of the device: a default stream is that of the current device. */
bool hip_is_captured(int device, hipmm_stream_t stream);

/* The table's DeviceSynchronize asks `any_captured` first, and does not wait if a stream of the device is captured. */
void hip_guard_waits(bool (*any_captured)(int device));

/* The table's functions that take physical memory of the current device first ask `claim` for so many bytes, and are out of
 * memory if it returns false. After a failure they tell it -1. NULL: they do not ask. */
void hip_guard_memory(bool (*claim)(int device, int64_t bytes));

/* The status for a HIP error code. */
enum hipmm_status hip_status(int code);

/* Reports that a HIP call returned `code` when asked for `bytes` (0 if it has no size), and clears HIP's own record.
 * `resource`: the name of the resource that called; NULL for the core. */
enum hipmm_status hip_refuse(const char *resource, const char *call, int code, size_t bytes);

/* ---- runtime_library.c: the shared library of a runtime, which is configured if it is one of ours ---- */

/* Whether there is anything that can be loaded for the runtime, be it good or bad: for "amd" a library of ROCm's, for
 * another name a plugin. */
bool runtime_library_exists(const struct graph *graph, const char *name);

/* `name`: "amd", a plugin with the role of a runtime ("software", "nvidia"), or a library's path. The library stays
 * open for the process's life. */
enum hipmm_status runtime_library_load(const struct graph *graph, const char *name, void **library_out);

/* ---- hip_table.c: the table of HIP functions. For hip.c and tests; other files use hip_table(). ---- */

/* Filled by hip_table_find(); constant once a runtime is in use. */
extern struct hipmm_hip hip_table_functions;

/* Fills the table from the library. Returns the name of the first required function that is missing, NULL if none
 * is. */
const char *hip_table_find(void *library);

/* Asks the runtime for its version, which decides on the layout of structs; returns HIP's code. And that version. */
int hip_table_read_version(void);
int hip_table_version(void);

#endif
