/* SPDX-License-Identifier: MIT */
/* streams.h: the streams of a benchmark, made and promised to last as a framework does. */
#ifndef HIPMM_CORE_CMD_BENCH_STREAMS_H
#define HIPMM_CORE_CMD_BENCH_STREAMS_H

#include <hipmm/hipmm.h>
#include <stdbool.h>

/* Makes non-blocking streams on the device, now current, and retains them. False: it is said why. */
bool bench_streams_make(size_t n, hipStream_t **streams_out);

/* Waits for them, retires and destroys them. */
void bench_streams_destroy(size_t n, hipStream_t *streams);

/* Retains streams that another made. False: it is said why. */
bool bench_streams_retain(size_t n, hipStream_t const *streams);

#endif
