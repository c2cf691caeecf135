/* SPDX-License-Identifier: MIT */
/* peer_access.h: which devices hipmm itself let use the memory of others, with hipDeviceEnablePeerAccess, for a graph. The
 * state is the process's and stays when the stack is gone; `hipmm run` keeps the program's own apart from it.
 * Thread-safe. Devices from 64 on are not noted. */
#ifndef HIPMM_CORE_RUNTIME_PEER_ACCESS_H
#define HIPMM_CORE_RUNTIME_PEER_ACCESS_H

#include <stdbool.h>

void peer_access_note(int device, int peer);

/* Whether `device` was let use the memory of `peer`. */
bool peer_access_is_noted(int device, int peer);

/* The device was reset: it has no access any more, nor has another to its memory. */
void peer_access_forget(int device);

#endif
