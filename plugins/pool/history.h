/* SPDX-License-Identifier: MIT */
/* history.h: where large blocks went. A program that does the same over and over, such as a training, has as much live
 * as before whenever it asks for the same again. If it gets the same address then, all blocks soon lie where they lay a
 * round before, and so does the memory under them: none has to be moved any more. First fit alone finds other addresses
 * in each round, for good. The caller holds the pool's lock. */
#ifndef HIPMM_POOL_HISTORY_H
#define HIPMM_POOL_HISTORY_H

#include <hipmm/plugin.h>

#include <stdbool.h>

/* What was asked for, at which moment, and what came of it last. */
struct past {
  uint64_t bytes, moment;
  uint64_t address;
};

struct history {
  struct past *items; /* by hash; what comes last takes the place */
  uint64_t age;       /* times that all was forgotten */
  uint64_t moment;    /* of the request under way */
};

/* False when host memory is short. */
bool history_open(struct history *history, const struct hipmm_services *services);
void history_close(struct history *history, const struct hipmm_services *services);

/* What the request got before, when as much was live and the same had come and gone lately; 0 if that is not known. */
uint64_t history_find(struct history *history, uint64_t bytes, uint64_t live_bytes, uint64_t lately);

/* What it got this time. */
void history_note(struct history *history, uint64_t bytes, uint64_t address);

/* Forgets all: it was for other times. */
void history_forget(struct history *history);

/* Host memory that it takes at most, in bytes. */
uint64_t history_metadata_bytes(void);

#endif
