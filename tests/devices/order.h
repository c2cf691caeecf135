/* SPDX-License-Identifier: MIT */
/* order.h: which work comes after which, as the program and the plugins asked the runtime for it: a clock for each
 * stream, one for each event as it was recorded, and one of what the host has waited for. So memory that a stream gets
 * while another may still use it is known at once, whatever the device happens to do first. Streams are numbers here,
 * as in integrity_work.h. Thread-safe. */
#ifndef HIPMM_TESTS_GPU_ORDER_H
#define HIPMM_TESTS_GPU_ORDER_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum { STREAMS = 8 };

/* From now on the calls of the table that order work, or wait for it, are followed. */
void order_follow(struct hipmm_hip *table);

/* The stream's handle. The work of the one that it had before comes first. */
void order_set_handle(unsigned stream, hipmm_stream_t handle);

/* All that was put on the stream so far has used the bytes, and nothing else will. */
void order_used(unsigned stream, const void *ptr, size_t bytes);

/* The stream that used the first of the bytes last; STREAMS if none has. */
unsigned order_last_user(const void *ptr);

/* Whether what is put on the stream from now on comes after all that used the bytes. */
bool order_is_after(unsigned stream, const void *ptr, size_t bytes);

#endif
