/* SPDX-License-Identifier: MIT */
/* slack.h: how loosely a mapped pool may hold memory. While the device and the maximum have room, the pool grows in large
 * chunks and leaves idle memory where it is: mapping costs time, and nobody is short of memory. The slack is the idle memory
 * that the pool may hold beyond the peak of its live memory. It shrinks with the room, and so do new chunks: near the end of
 * the memory every chunk is a granule, and idle chunks move to where they are needed. Called by granules.c. The caller holds
 * the pool's lock. */
#ifndef HIPMM_PLUGINS_POOL_SLACK_H
#define HIPMM_PLUGINS_POOL_SLACK_H

#include "chunks.h"

/* The option's word `auto`. */
static const uint64_t SLACK_AUTO = UINT64_MAX;

struct slack {
  uint64_t wanted_bytes; /* the option */
  uint64_t peak_bytes;   /* the most that was to be live at once since idle memory was last released */
  uint64_t device_bytes; /* free on the device when it was last asked */
  uint64_t held_bytes;   /* held at that time */
  unsigned n_uses;       /* of that answer */
};

/* Before memory is added: `live_bytes` are to be live. Asks the device for its free memory, if the last answer is old. */
void slack_update(struct slack *slack, const struct chunks *chunks, uint64_t live_bytes);

/* Bytes that may be added although there is idle memory. */
uint64_t slack_growth(const struct slack *slack, const struct chunks *chunks);

/* Whether the slack, which is an option's or limited by the room, is not enough for four times the bytes: then idle memory is
 * worth some work. */
bool slack_is_low_on_memory(const struct slack *slack, const struct chunks *chunks, uint64_t bytes);

/* The most granules that a new chunk should have, at least 1. */
uint64_t slack_chunk_limit(const struct slack *slack, const struct chunks *chunks);

#endif
