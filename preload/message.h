/* SPDX-License-Identifier: MIT */
/* message.h: messages for the user, on standard error. */
#ifndef HIPMM_PRELOAD_MESSAGE_H
#define HIPMM_PRELOAD_MESSAGE_H

#include <hipmm/plugin.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Writes "hipmm: …" as one line, with one write(), control characters shown as "?". */
void message_write(const char *format, ...) HIPMM_PRINTF(1, 2);

/* The same, but only the first time that it is called with this flag, which starts as false. */
void message_write_once(atomic_bool *said, const char *format, ...) HIPMM_PRINTF(2, 3);

#endif
