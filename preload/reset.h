/* SPDX-License-Identifier: MIT */
/* reset.h: hipDeviceReset() and cudaDeviceReset(). */
#ifndef HIPMM_PRELOAD_RESET_H
#define HIPMM_PRELOAD_RESET_H

#include "hooks.h"

/* Gives everything back, then resets the device. Where hipmm serves other devices too, what the program has on this one
 * stays until it exits, since hipmm can only be closed as a whole; that is said once. As with the real function, no
 * other thread may use the device meanwhile. */
int reset_device(enum hook hook);

#endif
