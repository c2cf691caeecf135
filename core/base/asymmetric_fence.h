/* SPDX-License-Identifier: MIT */
/* asymmetric_fence.h: an order between one thread that stores and loads all the time, and others that do so rarely. The
 * frequent side pays nothing; the rare side calls membarrier(2), which makes the kernel run a memory barrier on every
 * processor that runs a thread of the process, and takes microseconds. This is Dekker's algorithm with an asymmetric
 * fence: Dice, Huang and Yang, "Asymmetric Dekker Synchronization", Sun Microsystems, 2001.
 *
 * Compiled into libhipmm and into the plugins that need it. */
#ifndef HIPMM_CORE_BASE_ASYMMETRIC_FENCE_H
#define HIPMM_CORE_BASE_ASYMMETRIC_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>

/* Registers the process. Called before the other functions; further calls do nothing. */
void asymmetric_fence_prepare(void);

/* Whether the system has membarrier(2). Otherwise the frequent side must run a full barrier itself. */
extern atomic_bool asymmetric_fence_is_light;

/* The frequent side, between its store and its load: keeps the compiler from reordering the two. The processor is kept
 * from it by asymmetric_fence_heavy() of the rare side. */
static inline void asymmetric_fence_light(void)
{
  atomic_signal_fence(memory_order_seq_cst);
}

/* The rare side, between its store and its load. */
void asymmetric_fence_heavy(void);

/* The rare side, while it waits for the frequent one; `turn` counts the calls from 0. Yields at first, then sleeps: the
 * other thread may be in the driver, or wait for work of the device. */
void asymmetric_fence_pause(unsigned turn);

#endif
