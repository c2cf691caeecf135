/* SPDX-License-Identifier: MIT */
/* physical.h: the physical memory of each device that this process holds: what the sources of all stacks have from the
 * runtime, and what the program was seen to create beside them, past hipmm (`hipmm run`). "limit_physical" of the graph in
 * use bounds the sum: a call of the runtime that would exceed it is out of memory. */
#ifndef HIPMM_CORE_STACK_PHYSICAL_H
#define HIPMM_CORE_STACK_PHYSICAL_H

#include <stdbool.h>
#include <stdint.h>

struct graph;
struct instance;

/* Within a change: the limit of this graph holds from now on. NULL: none does. */
void physical_set_limit(const struct graph *graph);

/* The limit in bytes; HIPMM_UNLIMITED: none. While it is open, it is a percentage, and the first question makes bytes of it:
 * of what the runtime says is free, which begins to use the device. */
uint64_t physical_limit(int device);
bool physical_limit_is_open(int device);

/* The same without a question: while it is open, of `total`. */
uint64_t physical_expected_limit(int device, uint64_t total);

/* What the limit is compared with. */
uint64_t physical_held_bytes(int device);

/* The source holds `bytes` more. */
void physical_count(const struct instance *source, int64_t bytes);

/* ---- Calls that take memory ---- */

/* Before a call that takes memory of the device: false if the limit forbids it. `bytes` below 0: the thread's call has failed. */
bool physical_claim(int device, int64_t bytes);

/* The thread's call has succeeded, and what it claimed was created past hipmm. */
void physical_add_past(int device, uint64_t bytes);
void physical_remove_past(int device, uint64_t bytes);

struct physical_past {
  uint64_t bytes, peak_bytes, count;
};
struct physical_past physical_past(int device);

#endif
