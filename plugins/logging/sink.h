/* SPDX-License-Identifier: MIT */
/* sink.h: where the rows of one log go. Each thread notes its rows in a ring of its own, which costs it the reading
 * of a clock; a thread of the log's writes them into the file, all rings together in order of time, some
 * milliseconds later and at once when a ring is half full. When a ring is full, its thread writes the log itself, or
 * waits for who does: no row is dropped. What has not been written when the process exits is written then. A crash,
 * and _exit, lose the rows of the last SINK_DELAY_MS. */
#ifndef HIPMM_LOGGING_SINK_H
#define HIPMM_LOGGING_SINK_H

#include "../common/thread_cache.h"
#include "ring.h"

enum { SINK_DELAY_MS = 10 };

/* What who adds a row shall do besides. */
enum sink_wish {
  SINK_WAKE = 1, /* the writer sleeps until there is a row */
  SINK_WRITE = 2 /* each row is to be written at once */
};

/* The rest is in sink.c. */
struct sink {
  uint64_t serial;    /* of a log; never given twice */
  atomic_uint wishes; /* enum sink_wish */
};

/* Opens the file, empties it and writes the header. A regular file that another sink of this process writes is refused
 * with HIPMM_E_STATE and no report: `device_out` then says whose it is. Other failures are reported as of the option
 * "file". */
enum hipmm_status sink_open(const struct hipmm_services *services, const char *name, uint32_t auto_flush,
                            int32_t *device_out, struct sink **sink_out);

/* Writes what is left, and closes. */
void sink_close(struct sink *sink);

/* Hands all rows so far to the operating system. HIPMM_E_IO, reported, if rows were lost since the last flush. */
enum hipmm_status sink_flush(struct sink *sink);

struct sink_counts {
  int64_t rows, lost_rows, metadata_bytes;
};

struct sink_counts sink_count(struct sink *sink);

/* ---- Adding a row ---- */

/* Where there is no ring yet, or it is full. */
void sink_add_slowly(struct sink *sink, struct row row);

/* After a row was added: does what is wished, or wakes the writer as the ring is half full. */
void sink_attend(struct sink *sink);

static inline void sink_add(struct sink *sink, enum row_action action, const void *ptr, size_t bytes,
                            hipStream_t stream)
{
  const struct row row = {action, (uintptr_t)ptr, bytes, (uintptr_t)stream};
  struct ring *ring = thread_recall(sink->serial, sink);
  uint64_t head = ring ? ring_add(ring, row) : 0;
  if (__builtin_expect(!head, 0)) {
    sink_add_slowly(sink, row);
    return;
  }
  unsigned wishes = atomic_load_explicit(&sink->wishes, memory_order_relaxed);
  if (__builtin_expect(wishes || head % (RING_ROWS / 2) == 0, 0)) sink_attend(sink);
}

#endif
