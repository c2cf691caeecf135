/* SPDX-License-Identifier: MIT */
/* peer_access.h: which peer accesses hipmm enabled with hipDeviceEnablePeerAccess() for a graph. The access is a state
 * of the process and outlives the stack; the preload object keeps the program's own accesses apart from it. Thread-safe.
 * Devices from 64 on are not recorded. */
#ifndef HIPMM_CORE_RUNTIME_PEER_ACCESS_H
#define HIPMM_CORE_RUNTIME_PEER_ACCESS_H

#include <stdbool.h>

/* hipmm enabled `device` to use the memory of `peer`. */
void peer_access_record(int device, int peer);

/* Whether hipmm did so. */
bool peer_access_is_recorded(int device, int peer);

/* The device was reset: it has lost its accesses, and other devices have lost theirs to its memory. */
void peer_access_forget(int device);

#endif
