/* SPDX-License-Identifier: MIT */
/* checks.h: reports to the race detector (plugins/race/race_detector.h) for `hipmm run --check-streams`: the program's
 * work, events and waits, from the hooks of hooks.h, and hipmm's own, from its table of HIP functions. The software
 * device has a detector of its own, which sees more; with it, this one stays off.
 *
 * It cannot see how kernels use memory, nor the work of functions that have no hook. */
#ifndef HIPMM_TOOLS_PRELOAD_CHECKS_H
#define HIPMM_TOOLS_PRELOAD_CHECKS_H

#include "../../plugins/race/race_detector.h"
#include "hooks.h"

bool checks_are_on(void);

/* ---- Of hooks; nothing while it is off ---- */

void checks_copy(enum hook hook, void *to, const void *from, size_t bytes,
                 hipmm_stream_t stream); /* from NULL: a fill */
void checks_copy_rows(enum hook hook, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height, hipmm_stream_t stream);
void checks_record(enum hook hook, hipmm_hip_event_t event, hipmm_stream_t stream);
void checks_wait(enum hook hook, hipmm_stream_t stream, hipmm_hip_event_t event);
void checks_end_event(hipmm_hip_event_t event);
void checks_host_after_event(hipmm_hip_event_t event);
void checks_host_after_events(hipmm_hip_event_t event, hipmm_hip_event_t other);
void checks_host_after_stream(enum hook hook, hipmm_stream_t stream);
/* A copy to memory of the host that the runtime does not know has waited, whatever its name says. */
void checks_host_after_copy(enum hook hook, void *to, hipmm_stream_t stream);
void checks_host_after_device(enum hook hook);

void checks_add_stream(int device, hipmm_stream_t stream, unsigned flags);
void checks_end_stream(hipmm_stream_t stream);

/* ---- Of hipmm itself ---- */

/* A stream as hipmm's core names it, on `device`. */
struct race_stream checks_stream(int device, hipmm_stream_t stream);

/* ---- What was found, by the detector that is on ---- */

const char *checks_report(size_t index, const char **kind_out);
/* Finds what checks_finish() calls, since _exit() in a signal's handler may look for nothing. For when hipmm is ready. */
void checks_find_end(void);
/* The summary, where this detector is the one, and then the exit status of the process that was to exit with `status`. */
int checks_finish(int status);

#endif
