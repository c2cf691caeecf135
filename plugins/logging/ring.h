/* SPDX-License-Identifier: MIT */
/* ring.h: the rows of one thread for one log that are not yet in the file. The thread adds at the head; the writer of the
 * log removes from the tail.
 *
 * A row gets its time under the ring's lock. So a reader that reads the clock and then takes the lock sees all rows of
 * the ring up to that time. Only such readers and the thread itself take the lock, each for a moment. */
#ifndef HIPMM_PLUGINS_LOGGING_RING_H
#define HIPMM_PLUGINS_LOGGING_RING_H

#include "../common/spin_lock.h"
#include "row.h"

#include <stdatomic.h>
#include <stdbool.h>

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
    row.time_and_action |= row_now() << 2;
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

#endif
