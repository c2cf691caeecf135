/* SPDX-License-Identifier: MIT */
/* stager.h: copies content between a device and the host in pieces, which threads take in turn, each with a stream of its own. Used
 * by a pool that is suspended, and by `spilling`. */
#ifndef HIPMM_PLUGINS_COMMON_STAGER_H
#define HIPMM_PLUGINS_COMMON_STAGER_H

#include <hipmm/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

enum { STAGER_MOST_THREADS = 16 };

/* What the threads of one direction share. The user sets the fields up to n_pieces, and clears the others. */
struct stager {
  const struct hipmm_services *services;

  /* Copies a piece, or gives the stream its copies. `thread` counts from 0; calls of one thread come one after the other. False
   * after a failure, which ends the work of all threads. */
  bool (*copy_piece)(struct stager *stager, uint64_t piece, unsigned thread, hipmm_stream_t stream);
  uint64_t n_pieces;

  atomic_uint_fast64_t next_piece;
  atomic_bool has_failed;
  atomic_uint n_threads;
  const char *call; /* of HIP, the first that failed; NULL: none did */
  int code;
  uint64_t bytes;
};

/* Returns whether a HIP call succeeded. `bytes`: its size; 0: it has none. */
bool stager_check(struct stager *stager, const char *call, int code, uint64_t bytes);

/* Runs the pieces in the calling thread and as many more as can be had, up to `most_threads`, and waits for the copies. Whether all
 * succeeded. */
bool stager_run(struct stager *stager, unsigned most_threads);

#endif
