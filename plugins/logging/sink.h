/* SPDX-License-Identifier: MIT */
/* sink.h: the destination of a log's rows. Each thread adds its rows to its own ring, at the cost of reading a clock. A
 * writer thread of the log writes all rings to the file in order of time, some milliseconds later, or at once when a ring
 * is half full. When a ring is full, its thread writes the log itself or waits for the thread that does: no row is
 * dropped. Rows not yet written at exit are written then. A crash, and _exit, lose the rows of the last SINK_DELAY_MS. */
#ifndef HIPMM_PLUGINS_LOGGING_SINK_H
#define HIPMM_PLUGINS_LOGGING_SINK_H

#include "../common/thread_cache.h"
#include "output.h"
#include "ring.h"

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

#endif
