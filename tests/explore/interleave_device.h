/* SPDX-License-Identifier: MIT */
/* interleave_device.h: what a sub-allocator depends on while interleave.h explores it: services, a runtime whose work
 * is over at once, and an upstream that gives addresses; and the blocks that a program has. The state is begun anew for
 * each run. */
#ifndef HIPMM_TESTS_EXPLORE_INTERLEAVE_DEVICE_H
#define HIPMM_TESTS_EXPLORE_INTERLEAVE_DEVICE_H

#include <hipmm/plugin.h>

#include <stdbool.h>

extern const struct hipmm_services device_services;

/* An upstream with so many bytes. */
struct hipmm_resource *device_begin(uint64_t bytes);

/* Whether events are not yet over when they are asked for; false when the state is begun. Waits for them end all the same. */
extern bool device_is_busy;

/* What the upstream has given out, and host memory that was not freed. */
uint64_t device_held_bytes(void);
int64_t device_host_bytes(void);

/* ---- The program's blocks ---- */

enum { DEVICE_BLOCKS = 16 };

/* Notes that the program has got the block in this place. False: it is no memory of the upstream, or a live block has part of it. */
bool device_keep(unsigned place, void *ptr, size_t bytes);

/* The block in the place, which the program has no more; NULL if there is none. */
void *device_take(unsigned place, size_t *bytes_out);

/* The blocks that the program has. */
unsigned device_live_count(void);

#endif
