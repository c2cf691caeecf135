/* SPDX-License-Identifier: MIT */
/* placement_hints.h: where large blocks went. A program that does the same over and over, such as a training, has as much live
 * as before whenever it asks for the same again. If it gets the same address then, all blocks soon lie where they lay a
 * round before, and so does the memory under them: none has to be moved any more. First fit alone finds other addresses
 * in each round, for good. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_PLACEMENT_HINTS_H
#define HIPMM_PLUGINS_POOL_PLACEMENT_HINTS_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum { PLACEMENT_HINT_ADDRESSES = 2, PLACEMENT_HINTS = 1 << 14 };

/* What is known of a request. A key stands for how much was asked for and at which moment: two that are the same by
 * chance do no harm. Addresses: the last first, then the last other one, 0 if there is none. A block that is still live
 * when its successor is asked for makes that go elsewhere: two addresses take turns. */
struct placement_hint {
  uint64_t key; /* 0: none */
  uint64_t addresses[PLACEMENT_HINT_ADDRESSES];
};

struct placement_hint_set;

struct hints {
  struct placement_hint *items;    /* a ring, in the order in which they were first noted: the oldest goes first */
  struct placement_hint_set *sets; /* where to find items by key */
  uint32_t count;                  /* items ever noted, in all rounds of the ring */
  uint32_t next;  /* what is asked for next if all goes as before, so that it need not be searched for */
  uint32_t found; /* of the request under way; PLACEMENT_HINTS: it is not known */
  uint64_t key;   /* its key */
  uint64_t age;   /* times that all was forgotten */
};

/* False when host memory is short. */
bool placement_hints_open(struct hints *hints, const struct hipmm_services *services);
void placement_hints_close(struct hints *hints, const struct hipmm_services *services);

/* The addresses that the request got before, when as much was live and the same had come and gone lately; NULL if that
 * is not known. */
const uint64_t *placement_hints_find(struct hints *hints, uint64_t bytes, uint64_t live_bytes, uint64_t recent_hash);

/* What it got this time: the request that was last looked for. */
void placement_hints_record(struct hints *hints, uint64_t address);

/* Forgets all: it was for other times. */
void placement_hints_forget(struct hints *hints);

/* Host memory that it takes at most, in bytes. */
uint64_t placement_hints_metadata_bytes(void);

#endif
