/* SPDX-License-Identifier: MIT */
/* streams.h: the streams on which `hipmm replay` plays a trace. With bench_streams.c the only part of the command
 * that calls HIP. */
#ifndef HIPMM_CMD_STREAMS_H
#define HIPMM_CMD_STREAMS_H

#include "trace/trace.h"
#include <hipmm/hipmm.h>

/* Makes a stream on `device`, now current, for each of the trace's, and makes NULL, 1 and 2 of the handles that mean
 * HIP's own. False: it is said why. */
bool streams_make(const struct trace *trace, int device, hipStream_t **streams_out);

/* Waits for them, tells the stacks of the device, and destroys what streams_make made. */
void streams_destroy(const struct trace *trace, int device, hipStream_t *streams);

#endif
