/* SPDX-License-Identifier: MIT */
/* contexts.h: which device is current, and the contexts of NVIDIA's driver. A device's primary context is the one that
 * runtimes use, and hipmm; hipmm serves no other context, whose memory ends with it. */
#ifndef HIPMM_TOOLS_PRELOAD_CONTEXTS_H
#define HIPMM_TOOLS_PRELOAD_CONTEXTS_H

#include "hooks.h"

/* The current device of the family's runtime; 0 if the runtime returns an error. -1 if the driver's current context is not
 * the primary one of its device, and for the driver also if there is none. */
int contexts_current_device(enum family family);

/* Whether a call of the driver for this stream is about a primary context: the stream's and the current one must be. */
bool contexts_are_primary(hipmm_stream_t stream);

/* The device of a primary context; -1 for another context, and for NULL. */
int contexts_device_of(const void *context);

/* The primary context of a device. NULL if there is no such device, or no driver. */
void *contexts_primary(int device);

/* Makes the primary context of a device current if no primary context is, so that hipmm can work in a thread that has
 * another context or none, and waits for the work in that other one. Returns what contexts_leave() then makes current
 * again. Nothing happens without NVIDIA's driver. */
struct context_switch {
  void *previous;
  bool is_switched;
};

struct context_switch contexts_enter(enum family family, int device);
void contexts_leave(struct context_switch before);

#endif
