/* SPDX-License-Identifier: MIT */
/* peers.h: hipDeviceEnablePeerAccess() and its opposite, and cudaDevice…: a process has one such state, which the graph's
 * option "peers" changes too. The program finds its own: what the graph gave it neither finds enabled nor can take
 * away. */
#ifndef HIPMM_PRELOAD_PEERS_H
#define HIPMM_PRELOAD_PEERS_H

#include "hooks.h"

int peers_enable(enum hook hook, int peer, unsigned flags);
int peers_disable(enum hook hook, int peer);

/* The program has reset the device, which is current: what it enabled is gone, and taken away where the reset was not
 * really made, since hipmm's memory stays. */
void peers_reset(enum family family, int device, bool is_real);

#endif
