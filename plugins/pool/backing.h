/* SPDX-License-Identifier: MIT */
/* backing.h: where a pool's memory comes from: granules under one range of addresses where the upstream can map, else
 * segments. The caller holds the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_BACKING_H
#define HIPMM_PLUGINS_POOL_BACKING_H

#include "granules.h"
#include "options.h"
#include "segments.h"

struct ground {
  bool mapped;         /* which of the two */
  uint64_t most_bytes; /* that were to be live at once when memory was looked for */
  struct granules granules;
  struct segments segments;
};

/* Chooses, and says in the log what and why. The maximum is rounded down to what can be had. On failure services->fail
 * has said why; ground_close is owed all the same. */
enum hipmm_status ground_open(struct ground *ground, struct heap *heap, const struct hipmm_services *services,
                              struct hipmm_resource *upstream, enum growth growth, uint64_t maximum_bytes);
void ground_close(struct ground *ground);

/* Whether there can be memory for the request, whatever is idle and wherever it lies. Fails as ground_take() would. */
enum hipmm_status ground_expect(struct ground *ground, const struct heap *heap, const struct request *request);

/* Takes a block for the request from memory that the pool holds already but has under other addresses, or that is had
 * for it. HIPMM_E_LIMIT when the maximum forbids it. */
enum hipmm_status ground_take(struct ground *ground, struct heap *heap, const struct request *request,
                              uint32_t *id_out);

/* Whether granules_take_again() and granules_note() are for the request. Of segments nothing is noted. */
static inline bool ground_has_history(const struct ground *ground, const struct heap *heap,
                                      const struct request *request)
{
  return ground->mapped && granules_have_history(&ground->granules, heap, request);
}

/* The memory that a pool starts with, clean. */
enum hipmm_status ground_fill(struct ground *ground, struct heap *heap, uint64_t bytes);

/* Gives memory back that clean blocks hold idle, while more than `keep_bytes` are held. */
enum hipmm_status ground_release_idle(struct ground *ground, struct heap *heap, uint64_t keep_bytes);

/* Less than is held means that nothing more is taken until it fits again. */
void ground_set_maximum(struct ground *ground, uint64_t maximum_bytes);

/* Where in [start, end), which lies in a free block, the first part without memory begins, and the first with memory;
 * `end` if there is none. */
uint64_t ground_first_vacant(const struct ground *ground, uint64_t start, uint64_t end);
uint64_t ground_first_backed(const struct ground *ground, uint64_t start, uint64_t end);

uint64_t ground_bytes(const struct ground *ground);
uint64_t ground_peak_bytes(const struct ground *ground);
uint64_t ground_maximum_bytes(const struct ground *ground);

/* The least that can be taken from the upstream. */
uint64_t ground_least_bytes(const struct ground *ground);

/* Segments, or granules. */
uint64_t ground_pieces(const struct ground *ground);

#endif
