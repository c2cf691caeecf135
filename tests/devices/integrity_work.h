/* SPDX-License-Identifier: MIT */
/* integrity_work.h: what the threads of integrity.c do with blocks and streams, and what they find. */
#ifndef HIPMM_TESTS_GPU_INTEGRITY_WORK_H
#define HIPMM_TESTS_GPU_INTEGRITY_WORK_H

#include "../support/support.h"
#include "order.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST_THREADS = 64, SHARED = 16, KIB = 1024 };

struct row {
  const char *name, *stack;
  size_t most_bytes;
  bool retains; /* promises that streams last */
  bool renews;  /* destroys streams while they have work, and makes others */
  bool breaks;  /* --break-waits takes something away from this one */
  bool moves;   /* memory that is unmapped too early is a fault, after which a device does no more */
  bool hides;   /* keeps its order where order.h does not see it */
};

/* A block in somebody's hands; `stream` is the stream of its last use. */
struct held {
  char *ptr;
  size_t bytes;
  unsigned stream;
  unsigned char tag;
};

/* All that the threads share. The caller sets up the row, the runtime, the streams, the scratch and how long. */
struct world {
  const struct row *row;
  struct hipmm_hip hip; /* with all its waits */
  hipmm_stream_t streams[STREAMS];
  pthread_rwlock_t streams_lock; /* written while a stream is made anew */
  pthread_mutex_t shared_lock;
  struct held shared[SHARED];
  char *scratch; /* for long fills, a part for each stream */
  size_t scratch_bytes;
  double seconds;
  unsigned threads;
  atomic_ullong allocations, refusals, moved, looks, looked_bytes, lost, unordered, failed;
};

extern struct world world;

/* Whether the call went well; if not it is counted, and the first few are said. */
bool expect(const char *call, int code);
bool expect_ok(const char *call, enum hipmm_status status);

/* Has the threads work until the time is over, then gives back what they hold. */
void run_threads(void);

#endif
