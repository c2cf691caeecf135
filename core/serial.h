/* SPDX-License-Identifier: MIT */
/* serial.h: one thread at a time for a resource whose plugin says that it is not thread-safe. */
#ifndef HIPMM_CORE_SERIAL_H
#define HIPMM_CORE_SERIAL_H

#include "stack.h"

/* Ops whose self is the instance; they call the plugin's ops under the instance's lock. */
extern const struct hipmm_ops serial_ops;

#endif
