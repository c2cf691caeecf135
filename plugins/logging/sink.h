/* SPDX-License-Identifier: MIT */
/* sink.h: the destination of a log's rows. Each thread adds its rows to its own ring, at the cost of reading a clock. A
 * writer thread of the log writes all rings to the file in order of time, some milliseconds later, or at once when a ring
 * is half full. When a ring is full, its thread writes the log itself or waits for the thread that does: no row is
 * dropped. Rows not yet written at exit are written then. A crash, and _exit, lose the rows of the last SINK_DELAY_MS. */
#ifndef HIPMM_PLUGINS_LOGGING_SINK_H
#define HIPMM_PLUGINS_LOGGING_SINK_H

#include "../common/spin_lock.h"
#include "../common/thread_cache.h"
#include "output.h"
#include "row.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- Rings ----
 *
 * The rows of one thread for one log that are not yet in the file. The thread adds at the head; the writer of the log removes
 * from the tail.
 *
 * A row gets its time under the ring's lock. So a reader that reads the clock and then takes the lock sees all rows of
 * the ring up to that time. Only such readers and the thread itself take the lock, each for a moment. */

enum { RING_ROWS = 1 << 13, RING_LINE_BYTES = 128 };

struct ring {
  /* Written by the thread. */
  _Alignas(RING_LINE_BYTES) atomic_flag busy;
  uint64_t head;      /* rows ever added; under `busy` */
  uint64_t tail_seen; /* `tail` when it was last looked at; under `busy` */

  /* Written by the writer of the log. */
  _Alignas(RING_LINE_BYTES) atomic_uint_fast64_t tail; /* rows ever written */
  uint64_t end;                                        /* rows to write this time */
  struct ring *left, *right;                           /* while rings are merged */
  struct row_thread thread;
  atomic_uint_fast64_t owner; /* the thread's number (thread_cache.h); 0: that thread has ended */
  struct ring *_Atomic next;  /* of all rings of the log */

  struct row rows[RING_ROWS];
};

/* Adds a row, whose action is set, with the time of now. Returns the number of rows ever added, or 0 if the ring is
 * full. */
static inline uint64_t ring_add(struct ring *ring, struct row row)
{
  spin_lock(&ring->busy);
  uint64_t head = ring->head;
  if (__builtin_expect(head - ring->tail_seen == RING_ROWS, 0))
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
  bool has_room = head - ring->tail_seen < RING_ROWS;
  if (__builtin_expect(has_room, 1)) {
    row.time_and_action |= monotonic_ns() << 2;
    ring->rows[head % RING_ROWS] = row;
    ring->head = ++head;
  }
  spin_unlock(&ring->busy);
  return has_room ? head : 0;
}

/* The number of rows ever added, with every row older than the call among them. */
static inline uint64_t ring_head(struct ring *ring)
{
  spin_lock(&ring->busy);
  uint64_t head = ring->head;
  spin_unlock(&ring->busy);
  return head;
}

/* ---- For rings with rows to write ---- */

static inline const struct row *ring_first(const struct ring *ring)
{
  return &ring->rows[atomic_load_explicit(&ring->tail, memory_order_relaxed) % RING_ROWS];
}

static inline bool ring_has_rows(const struct ring *ring)
{
  return atomic_load_explicit(&ring->tail, memory_order_relaxed) != ring->end;
}

/* ---- The sink (sink.c) ---- */

enum { SINK_DELAY_MS = 10 };

/* What a thread must do after it added a row. */
enum sink_request {
  SINK_WAKE = 1, /* wake the writer, which sleeps until there is a row */
  SINK_WRITE = 2 /* write the row at once */
};

/* The first part of a log; the rest is private to sink.c. */
struct sink {
  uint64_t serial;      /* unique number of the log */
  atomic_uint requests; /* enum sink_request */
};

/* Opens the file, empties it unless it is to be appended to, and writes the header. A regular file that another sink
 * writes is refused with HIPMM_E_STATE and no report; *clash_out then says which. Several processes may append to one
 * file that is not rotated. Other failures are reported for the option "file". */
enum hipmm_status sink_open(const struct hipmm_services *services, const struct log_file_spec *spec,
                            uint32_t auto_flush, enum log_file_clash *clash_out, struct sink **sink_out);

/* Writes the remaining rows and closes the file. */
void sink_close(struct sink *sink);

/* Writes all rows so far. HIPMM_E_IO, reported, if rows were lost since the last flush. */
enum hipmm_status sink_flush(struct sink *sink);

struct sink_counts {
  int64_t rows, lost_rows, metadata_bytes;
};

struct sink_counts sink_count(struct sink *sink);

/* ---- Adding a row ---- */

/* If the thread has no ring yet, or its ring is full. */
void sink_add_slow(struct sink *sink, struct row row);

/* After a row was added: does what is requested, or wakes the writer because the ring is half full. */
void sink_serve_requests(struct sink *sink);

static inline void sink_add(struct sink *sink, enum row_action action, const void *ptr, size_t bytes,
                            hipmm_stream_t stream)
{
  const struct row row = {action, (uintptr_t)ptr, bytes, (uintptr_t)stream};
  struct ring *ring = thread_recall(sink->serial, sink);
  uint64_t head = ring ? ring_add(ring, row) : 0;
  if (__builtin_expect(!head, 0)) {
    sink_add_slow(sink, row);
    return;
  }
  unsigned requests = atomic_load_explicit(&sink->requests, memory_order_relaxed);
  if (__builtin_expect(requests || head % (RING_ROWS / 2) == 0, 0)) sink_serve_requests(sink);
}

/* ---- The rings of a log, and how they are written to its file: all rows up to a moment, in order of time (drain.c) ----
 *
 * The row of an allocation gets its time after the upstream returned the memory, the row of a free before the upstream
 * gets it. So whatever threads a block passes through, its rows have times in true order, and so has the file. */

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
