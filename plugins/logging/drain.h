/* SPDX-License-Identifier: MIT */
/* drain.h: the rings of a log, and how they are written to its file: all rows up to a moment, in order of time.
 *
 * The row of an allocation gets its time after the upstream returned the memory, the row of a free before the upstream
 * gets it. So whatever threads a block passes through, its rows have times in true order, and so has the file. */
#ifndef HIPMM_PLUGINS_LOGGING_DRAIN_H
#define HIPMM_PLUGINS_LOGGING_DRAIN_H

#include "output.h"
#include "sink.h"

#include <pthread.h>

struct drain {
  const struct hipmm_services *services;
  struct ring *_Atomic rings; /* all rings ever created; new ones are added in front, under the lock */
  pthread_mutex_t lock;       /* all below, and the tails of rings */
  struct output output;
  struct ring spare; /* for a thread without a ring of its own */
};

/* Takes the file over. False without host memory; drain_close() is due all the same. */
bool drain_open(struct drain *drain, const struct hipmm_services *services, struct log_file file,
                const struct log_file_spec *spec);

/* Rows not yet written are lost. */
void drain_close(struct drain *drain);

/* Writes all rows that were added before the call. False if there were none. */
bool drain_write(struct drain *drain);
bool drain_write_locked(struct drain *drain);

bool drain_has_rows(struct drain *drain);

/* The calling thread's ring; NULL if there is no host memory for one. */
struct ring *drain_ring_of_thread(struct drain *drain);

/* The thread has ended: its ring may go to another thread. */
void drain_end_thread(struct drain *drain, uint64_t thread);

/* Returns when the ring is no longer full. */
void drain_make_room(struct drain *drain, struct ring *ring);

/* Writes a row of the calling thread, and all before it. */
void drain_write_row(struct drain *drain, struct row row);

struct sink_counts drain_count(struct drain *drain);

/* errno of the first loss since the last call; 0: none. */
int drain_take_error(struct drain *drain);

#endif
