/* SPDX-License-Identifier: MIT */
/* simple.h: calls that hipmm has little part in, the same for HIP and CUDA. */
#ifndef HIPMM_PRELOAD_SIMPLE_H
#define HIPMM_PRELOAD_SIMPLE_H

#include "hooks.h"
#include <hipmm/plugin.h>

int simple_create_stream(enum hook hook, hipStream_t *stream);
int simple_create_stream_with_flags(enum hook hook, hipStream_t *stream, unsigned flags);
int simple_create_stream_with_priority(enum hook hook, hipStream_t *stream, unsigned flags, int priority);

/* Notes which device the program goes on with. */
int simple_set_device(enum hook hook, int device);

int simple_last_error(enum hook hook, bool clear);

#endif
