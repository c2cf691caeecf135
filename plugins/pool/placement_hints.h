/* SPDX-License-Identifier: MIT */
/* placement_hints.h: the addresses that large requests got. A periodic workload, such as a training, has the same blocks
 * live whenever it makes the same request again. If the request gets the same address again, every block soon lies where
 * it lay one iteration before, and its chunks with it: no chunk must move any more. First fit alone finds other
 * addresses in each iteration, for good. Called by granules.c. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_PLACEMENT_HINTS_H
#define HIPMM_PLUGINS_POOL_PLACEMENT_HINTS_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum { PLACEMENT_HINT_ADDRESSES = 2, PLACEMENT_HINTS = 1 << 14 };

/* The hint for one request. Its key stands for the size of the request and for the moment: what was live, and what was
 * allocated and freed last. Two requests with the same key by chance do no harm. `addresses` has the last address first,
 * then the last address that differs, 0 if there is none: where the next block is requested before the last one is
 * freed, two addresses alternate. */
struct placement_hint {
  uint64_t key; /* 0: none */
  uint64_t addresses[PLACEMENT_HINT_ADDRESSES];
};

struct placement_hint_set;

struct placement_hints {
  struct placement_hint *items;    /* a ring, in the order of their first record: the oldest is replaced first */
  struct placement_hint_set *sets; /* finds items by key */
  uint32_t count;                  /* items ever recorded, in all turns of the ring */
  uint32_t next;                   /* the next item of a periodic workload, which then needs no search */
  uint32_t found;                  /* item of the current request; PLACEMENT_HINTS: it has none */
  uint64_t key;                    /* of the current request */
  uint64_t age;                    /* how often all hints were forgotten */
};

/* False when host memory is short. */
bool placement_hints_open(struct placement_hints *hints, const struct hipmm_services *services);
void placement_hints_close(struct placement_hints *hints, const struct hipmm_services *services);

/* The addresses that this request got before, with the same bytes live and the same recent allocations and frees; NULL
 * if there is no hint. The request becomes the current one. */
const uint64_t *placement_hints_find(struct placement_hints *hints, uint64_t bytes, uint64_t live_bytes,
                                     uint64_t recent_hash);

/* Records the address that the current request got. */
void placement_hints_record(struct placement_hints *hints, uint64_t address);

/* Forgets all hints: the workload has changed. */
void placement_hints_forget(struct placement_hints *hints);

/* The most host memory that the hints take, in bytes. */
uint64_t placement_hints_metadata_bytes(void);

#endif
