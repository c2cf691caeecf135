/* SPDX-License-Identifier: MIT */
/* ring.h: the rows that one thread has noted for one log and that are not yet in the file. The thread adds at the head,
 * whoever writes the log takes from the tail.
 *
 * A row's time is read while the ring's lock is held. So whoever has read the clock, and after that has held the
 * lock of a ring, knows all rows of that ring up to the time that he read. Nobody else wants the lock but for that
 * moment. */
#ifndef HIPMM_LOGGING_RING_H
#define HIPMM_LOGGING_RING_H

#include "../common/spin_lock.h"
#include "row.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { RING_ROWS = 1 << 13, RING_LINE_BYTES = 128 };

struct ring {
  /* The thread's. */
  _Alignas(RING_LINE_BYTES) atomic_flag busy;
  uint64_t head;      /* rows ever added; under `busy` */
  uint64_t tail_seen; /* `tail` when it was last looked at; under `busy` */

  /* The writer's. */
  _Alignas(RING_LINE_BYTES) atomic_uint_fast64_t tail; /* rows ever written */
  uint64_t end;                                        /* rows to write this time */
  struct ring *left, *right;                           /* while rings are merged */
  struct row_thread thread;
  atomic_uint_fast64_t owner; /* the thread's number (../threads.h); 0: that thread has ended */
  struct ring *_Atomic next;  /* of all rings of the log */

  struct row rows[RING_ROWS];
};

/* How many rows there have been, this one included; 0 and nothing done if the ring is full. The row's time is filled
 * in, the action is there. */
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

/* Rows ever added. What the clock showed before the call, all rows up to then are among them. */
static inline uint64_t ring_head(struct ring *ring)
{
  spin_lock(&ring->busy);
  uint64_t head = ring->head;
  spin_unlock(&ring->busy);
  return head;
}

/* ---- Merging; of rings with rows to write. A heap of rings, that with the earliest row on top; NULL is the empty one.
 * ---- */

static inline const struct row *ring_first(const struct ring *ring)
{
  return &ring->rows[atomic_load_explicit(&ring->tail, memory_order_relaxed) % RING_ROWS];
}

static inline bool ring_has_rows(const struct ring *ring)
{
  return atomic_load_explicit(&ring->tail, memory_order_relaxed) != ring->end;
}

struct ring *rings_meld(struct ring *one, struct ring *other);

/* The time of the earliest row that is not the top ring's; UINT64_MAX if there is none. */
uint64_t rings_second_time(const struct ring *top);

#endif
