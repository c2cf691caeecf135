/* SPDX-License-Identifier: MIT */
/* drain.c: see sink.h. */
#include "sink.h"

/* The writer publishes its progress after so many rows, so that a thread waiting for room can continue. */
enum { PUBLISHED_ROWS = 256 };

/* ---- Rings ---- */

static struct ring *drain_first_ring(const struct drain *drain)
{
  return atomic_load_explicit(&drain->rings, memory_order_acquire);
}

static struct ring *drain_next_ring(const struct ring *ring)
{
  return atomic_load_explicit(&ring->next, memory_order_relaxed);
}

static uint64_t drain_tail_of(const struct ring *ring)
{
  return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

bool drain_has_rows(struct drain *drain)
{
  for (struct ring *ring = drain_first_ring(drain); ring; ring = drain_next_ring(ring))
    if (ring_head(ring) != drain_tail_of(ring)) return true;
  return false;
}

/* The ring of the thread, or else an empty ring whose thread has ended. */
static struct ring *drain_find_ring(struct drain *drain, uint64_t thread)
{
  struct ring *unused = NULL;
  for (struct ring *ring = drain_first_ring(drain); ring; ring = drain_next_ring(ring)) {
    uint64_t owner = atomic_load_explicit(&ring->owner, memory_order_acquire);
    if (owner == thread) return ring;
    if (!owner && ring_head(ring) == drain_tail_of(ring)) unused = ring;
  }
  return unused;
}

/* Under the lock. */
static struct ring *drain_new_ring(struct drain *drain)
{
  struct ring *ring = drain->services->host_allocate(drain->services, sizeof *ring);
  if (!ring) return NULL;
  atomic_store_explicit(&ring->next, drain_first_ring(drain), memory_order_relaxed);
  atomic_store_explicit(&drain->rings, ring, memory_order_release);
  return ring;
}

struct ring *drain_ring_of_thread(struct drain *drain)
{
  uint64_t thread = thread_number();
  pthread_mutex_lock(&drain->lock);
  struct ring *ring = drain_find_ring(drain, thread);
  if (!ring) ring = drain_new_ring(drain);
  if (ring && atomic_load_explicit(&ring->owner, memory_order_relaxed) != thread) {
    ring->thread = row_thread_now();
    atomic_store_explicit(&ring->owner, thread, memory_order_release);
  }
  pthread_mutex_unlock(&drain->lock);
  return ring;
}

/* Takes no lock, so that an ending thread need not wait for the disk. */
void drain_end_thread(struct drain *drain, uint64_t thread)
{
  for (struct ring *ring = drain_first_ring(drain); ring; ring = drain_next_ring(ring)) {
    uint_fast64_t owner = thread;
    atomic_compare_exchange_strong_explicit(&ring->owner, &owner, 0, memory_order_release, memory_order_relaxed);
  }
}

/* ---- Merging: a skew heap of rings, the ring with the earliest row on top; NULL is the empty heap. It needs no memory ---- */

static struct ring *drain_meld(struct ring *one, struct ring *other)
{
  struct ring *top = NULL, **link = &top;
  while (one && other) {
    if (row_time(ring_first(other)) < row_time(ring_first(one))) {
      struct ring *swapped = one;
      one = other;
      other = swapped;
    }
    *link = one;
    link = &one->left;
    struct ring *right = one->right;
    one->right = one->left;
    one = right;
  }
  *link = one ? one : other;
  return top;
}

static uint64_t drain_second_time(const struct ring *top)
{
  uint64_t left = top->left ? row_time(ring_first(top->left)) : UINT64_MAX;
  uint64_t right = top->right ? row_time(ring_first(top->right)) : UINT64_MAX;
  return left < right ? left : right;
}

/* ---- Writing; the lock is held ---- */

/* A heap of all rings with rows up to `now`. Later rows must wait: an earlier row could still be added to a ring that was
 * read before. */
static struct ring *drain_gather(struct drain *drain, uint64_t now)
{
  struct ring *top = NULL;
  for (struct ring *ring = drain_first_ring(drain); ring; ring = drain_next_ring(ring)) {
    ring->end = ring_head(ring);
    ring->left = ring->right = NULL;
    if (ring_has_rows(ring) && row_time(ring_first(ring)) <= now) top = drain_meld(top, ring);
  }
  return top;
}

/* Writes the ring's rows up to a time. */
static void drain_write_run(struct drain *drain, struct ring *ring, uint64_t until)
{
  uint64_t tail = drain_tail_of(ring);
  const struct row *row = &ring->rows[tail % RING_ROWS];
  do {
    output_row(&drain->output, &ring->thread, row);
    row = &ring->rows[++tail % RING_ROWS];
    if (tail % PUBLISHED_ROWS == 0) atomic_store_explicit(&ring->tail, tail, memory_order_release);
  } while (tail != ring->end && row_time(row) <= until);
  atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

bool drain_write_locked(struct drain *drain)
{
  uint64_t now = monotonic_ns();
  struct ring *top = drain_gather(drain, now);
  bool any = top != NULL;
  row_clock_set(&drain->output.clock);
  while (top) {
    struct ring *ring = top;
    uint64_t second = drain_second_time(top);
    top = drain_meld(top->left, top->right);
    drain_write_run(drain, ring, second < now ? second : now);
    ring->left = ring->right = NULL;
    if (ring_has_rows(ring) && row_time(ring_first(ring)) <= now) top = drain_meld(top, ring);
  }
  output_flush(&drain->output);
  return any;
}

bool drain_write(struct drain *drain)
{
  pthread_mutex_lock(&drain->lock);
  bool any = drain_write_locked(drain);
  pthread_mutex_unlock(&drain->lock);
  return any;
}

void drain_make_room(struct drain *drain, struct ring *ring)
{
  pthread_mutex_lock(&drain->lock);
  if (ring_head(ring) - drain_tail_of(ring) == RING_ROWS) drain_write_locked(drain);
  pthread_mutex_unlock(&drain->lock);
}

void drain_write_row(struct drain *drain, struct row row)
{
  pthread_mutex_lock(&drain->lock);
  drain->spare.thread = row_thread_now();
  ring_add(&drain->spare, row); /* the spare ring is empty */
  drain_write_locked(drain);
  pthread_mutex_unlock(&drain->lock);
}

/* ---- Counts ---- */

struct sink_counts drain_count(struct drain *drain)
{
  struct sink_counts counts = {.metadata_bytes = OUTPUT_BYTES};
  pthread_mutex_lock(&drain->lock);
  for (struct ring *ring = drain_first_ring(drain); ring; ring = drain_next_ring(ring)) {
    counts.rows += (int64_t)ring_head(ring);
    if (ring != &drain->spare) counts.metadata_bytes += (int64_t)sizeof *ring;
  }
  counts.lost_rows = drain->output.lost_rows;
  pthread_mutex_unlock(&drain->lock);
  return counts;
}

int drain_take_error(struct drain *drain)
{
  pthread_mutex_lock(&drain->lock);
  int code = drain->output.write_error;
  drain->output.write_error = 0;
  pthread_mutex_unlock(&drain->lock);
  return code;
}

/* ---- Life ---- */

bool drain_open(struct drain *drain, const struct hipmm_services *services, struct log_file file,
                const struct log_file_spec *spec)
{
  drain->services = services;
  pthread_mutex_init(&drain->lock, NULL);
  atomic_store_explicit(&drain->spare.owner, UINT64_MAX, memory_order_relaxed); /* no thread's */
  atomic_init(&drain->rings, &drain->spare);
  return output_open(&drain->output, services, file, spec);
}

void drain_close(struct drain *drain)
{
  for (struct ring *ring = drain_first_ring(drain), *next; ring; ring = next) {
    next = drain_next_ring(ring);
    if (ring != &drain->spare) drain->services->host_free(drain->services, ring, sizeof *ring);
  }
  output_close(&drain->output);
  pthread_mutex_destroy(&drain->lock);
}
