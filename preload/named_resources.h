/* SPDX-License-Identifier: MIT */
/* named_resources.h: the resources that serve managed and pinned memory: those that the graph calls "managed" and "pinned". */
#ifndef HIPMM_PRELOAD_NAMED_RESOURCES_H
#define HIPMM_PRELOAD_NAMED_RESOURCES_H

#include "devices.h"

/* Finds them for a device that is being opened. What the graph does not have, or has with memory of another kind, stays
 * with the real functions; the latter is said. */
void named_resources_open(struct served_device *served);
void named_resources_close(struct served_device *served);

#endif
