/* SPDX-License-Identifier: MIT */
/* streams.h: the streams on which `hipmm replay` and `hipmm bench` allocate. No other part of the command creates
 * streams. */
#ifndef HIPMM_TOOLS_COMMAND_PLAY_STREAMS_H
#define HIPMM_TOOLS_COMMAND_PLAY_STREAMS_H

#include <hipmm/hipmm.h>
#include <stdbool.h>

/* Creates `n` non-blocking streams on `device`, which becomes current, and retains them as a framework does. With
 * `handles`, those of a trace, HIP's own streams (NULL, 1 and 2) stay what they are. False: the reason was printed. */
bool streams_make(const uint64_t *handles, size_t n, int device, hipmm_stream_t **streams_out);

/* Waits for the device, then retires and destroys what streams_make() created with the same arguments. */
void streams_destroy(const uint64_t *handles, size_t n, int device, hipmm_stream_t *streams);

#endif
