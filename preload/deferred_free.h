/* SPDX-License-Identifier: MIT */
/* deferred_free.h: blocks that the program has freed and that could not be given back, since the device cannot be waited for
 * while a stream is being captured. */
#ifndef HIPMM_PRELOAD_DEFERRED_FREE_H
#define HIPMM_PRELOAD_DEFERRED_FREE_H

#include "blocks.h"

/* Takes a block over. */
void deferred_free_put(struct block *block);

bool deferred_free_is_there(void);

/* Waits for all work on the devices that the program works on, then gives back what was deferred before. A HIP error
 * code; on failure everything stays. */
int deferred_free_synchronize(void);

#endif
