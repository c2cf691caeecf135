/* SPDX-License-Identifier: MIT */
/* drain.h: the rings of a log, and how they are written into its file: all rows up to a moment, in order of time.
 *
 * An allocation's row gets its time after the upstream gave the memory, a free's before the upstream took it. So
 * whatever threads a block passes through, the times of its rows are in true order, and so are its rows in the file. */
#ifndef HIPMM_LOGGING_DRAIN_H
#define HIPMM_LOGGING_DRAIN_H

#include "output.h"
#include "sink.h"

#include <pthread.h>

struct drain {
  const struct hipmm_services *services;
  struct ring *_Atomic rings; /* all that there ever were; new ones come in front, under the lock */
  pthread_mutex_t lock;       /* all below, and the tails of rings */
  struct output output;
  struct ring spare; /* for who can have no ring of his own */
};

/* Takes the file over. */
void drain_open(struct drain *drain, const struct hipmm_services *services, struct file file);

/* What was not written is lost. */
void drain_close(struct drain *drain);

/* Writes all rows that were added before the call. False if there were none. */
bool drain_write(struct drain *drain);
bool drain_write_locked(struct drain *drain);

bool drain_has_rows(struct drain *drain);

/* The calling thread's ring; NULL if there is no host memory for one. */
struct ring *drain_ring_of_thread(struct drain *drain);

/* This thread adds no more. */
void drain_end_thread(struct drain *drain, uint64_t thread);

/* Returns when the ring is no longer full. */
void drain_make_room(struct drain *drain, struct ring *ring);

/* Writes a row of the calling thread, and all before it. */
void drain_write_row(struct drain *drain, struct row row);

struct sink_counts drain_count(struct drain *drain);

/* errno of the first loss since the last call; 0: none. */
int drain_take_error(struct drain *drain);

#endif
