/* SPDX-License-Identifier: MIT */
/* software.h: what the software device exports beside the HIP API, for tests and for the hipmm command.
 *
 * The software device is a runtime: software.so exports HIP's C functions, in host memory. The functions here inspect and
 * control it: they count calls, make calls fail on schedule, run streams step by step, and reset everything. They are
 * found with dlsym() or by linking the sources of the device; they are never counted and never fail on schedule.
 *
 * HIPMM_SOFTWARE=devices=2,memory=16GiB configures the device when it is first called, with or without hipmm;
 * `hipmm describe software` lists the settings. While the variable is not valid every call fails.
 *
 * A program of HIP 5, 6 or 7 gets the numbers and structs of its HIP, whatever headers the device was compiled with: the name
 * of the libamdhip64.so.5, .6 or .7 that the program is linked to tells which, or the setting "hip".
 *
 * How the device differs from a GPU, where a test must know it:
 *   - Device memory can be read and written by the host, at the same address.
 *   - hipMalloc rounds to 4 KiB and aligns to 4 KiB; hipMemGetInfo counts rounded bytes. A device never runs out of memory
 *     through fragmentation.
 *   - A copy or fill that executes on memory which was freed or unmapped since the call is a fault: a line on stderr,
 *     and hipErrorIllegalAddress from every later call that concerns that device.
 *   - A copy of another device's memory runs in that device's default stream, as with ROCm. With the stepped scheduler,
 *     hipMemset, and hipMemcpy within a device, return before they have run, as HIP may.
 *   - A launch of a graph runs in one stream. With the stepped scheduler its nodes run in an order that is drawn anew each time,
 *     of those that the dependencies allow. hipGraphLaunch into a stream that captures is refused.
 *   - hipMemGetHandleForAddressRange gives a file, positioned at the range, where a GPU gives a dma-buf, whose range begins at 0.
 *   - Handles are reused last in, first out: a new stream has the address of the stream destroyed last.
 */
#ifndef HIPMM_PLUGINS_RUNTIMES_SOFTWARE_SOFTWARE_H
#define HIPMM_PLUGINS_RUNTIMES_SOFTWARE_SOFTWARE_H

#include <hipmm/plugin.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of a HIP function by its name ("hipMalloc") since the last reset; 0 for a name that is not exported. */
HIPMM_EXPORT uint64_t hipmm_software_calls(const char *name);

/* The name and the count of row `index` of all functions, from 0; NULL past the last. `count_out` may be NULL. */
HIPMM_EXPORT const char *hipmm_software_call(size_t index, uint64_t *count_out);
HIPMM_EXPORT void hipmm_software_reset_calls(void);

/* Makes the `nth` call of `name` from now on (1 is the next) fail with `code`, once; code 0 means hipErrorOutOfMemory
 * for a function that allocates, else hipErrorUnknown. The call then does nothing else. False for an unknown name, for
 * nth 0, and when there is no memory. hipmm_software_fail_none() cancels the failures that have not happened yet. */
HIPMM_EXPORT bool hipmm_software_fail(const char *name, uint64_t nth, int code);
HIPMM_EXPORT void hipmm_software_fail_none(void);

/* Resets everything to the start, with the configuration in force: waits for all work, then frees allocations, streams,
 * events and pools, and clears faults, counts and scheduled failures. No other thread may be in a call. */
HIPMM_EXPORT void hipmm_software_reset(void);

/* What is allocated on `device` and not freed: blocks of every kind and VMM handles, with their requested bytes. Memory
 * that a pool holds in reserve is not counted. False for a device that does not exist. */
HIPMM_EXPORT bool hipmm_software_live(int device, uint64_t *count_out, uint64_t *bytes_out);

/* Faults of `device` since the last reset. */
HIPMM_EXPORT uint64_t hipmm_software_faults(int device);

/* Operations submitted that have not finished, on all devices. */
HIPMM_EXPORT uint64_t hipmm_software_pending(void);

/* With the stepped scheduler: runs up to `limit` operations in the order of the seed; returns how many ran. */
HIPMM_EXPORT uint64_t hipmm_software_step(uint64_t limit);

/* Decides in place of the seed of the stepped scheduler: `choose` returns a number below `limit`, which is above 1. It may be
 * called by any thread that calls HIP, and must call nothing itself. NULL: the seed decides again. */
HIPMM_EXPORT void hipmm_software_choose(uint64_t (*choose)(void *arg, uint64_t limit), void *arg);

/* With "check_streams": the text of report `index` of the race detector, from 0; NULL past the last. `kind_out` gets its kind
 * in one word and may be NULL. */
HIPMM_EXPORT const char *hipmm_software_race(size_t index, const char **kind_out);

/* How often the detector has found something. Takes no lock, so that a signal's handler may call it. */
HIPMM_EXPORT size_t hipmm_software_race_count(void);

/* For hipmm's core: what to tell of the blocks of resources, or NULL. */
struct memory_observer;
HIPMM_EXPORT const struct memory_observer *hipmm_software_observer(void);

#ifdef __cplusplus
}
#endif
#endif
