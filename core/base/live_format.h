/* SPDX-License-Identifier: MIT */
/* live_format.h: the file in shared memory in which a process publishes the counters of its resources: LIVE_FOLDER/
 * hipmm.USER.NAMESPACE.PROCESS, readable for its user alone. Processes of several containers may share the folder and
 * have the same number: the number of the namespace of processes tells them apart. Written by core/inspect/publish.c, read
 * by `hipmm top` and `export`.
 *
 * The writer holds a write lock (F_OFD_SETLK) on the file as long as it lives, however it ends: a file without a lock is
 * left over. `sequence` is odd while rows are written. A reader looks at it before its copy and after it, and copies
 * again if it was odd or has changed.
 *
 * The structs may grow at their ends. A reader takes larger ones, by the sizes that the file tells, and refuses smaller ones. */
#ifndef HIPMM_CORE_BASE_LIVE_FORMAT_H
#define HIPMM_CORE_BASE_LIVE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define LIVE_FOLDER "/dev/shm"
#define LIVE_NAME   LIVE_FOLDER "/hipmm.%u.%llu.%ld"  /* the user, the namespace, the process */
#define LIVE_DRAFT  LIVE_FOLDER "/.hipmm.%u.%llu.%ld" /* until it is locked and whole */
#define LIVE_MAGIC  "HIPMMLV1"

enum { LIVE_ROWS = 256, LIVE_COMMAND_BYTES = 128, LIVE_PATH_BYTES = 160, LIVE_TYPE_BYTES = 32, LIVE_PERIOD_MS = 100 };

/* What a resource counts. LIVE_UNKNOWN: it does not. */
enum live_counter {
  LIVE_BYTES,         /* allocated */
  LIVE_BLOCKS,        /* allocated */
  LIVE_RESERVED,      /* bytes held from the upstream; of a device: from the runtime */
  LIVE_PEAK_RESERVED, /* the most of that */
  LIVE_PEAK_BYTES,    /* the most that was allocated */
  LIVE_TOTAL_BLOCKS,  /* allocated so far */
  LIVE_STREAM_WAITS,  /* times that a stream was made to wait */
  LIVE_METADATA,      /* bytes of host memory for records */
  LIVE_COUNTERS
};

#define LIVE_UNKNOWN INT64_MIN

/* The counters come first. */
struct live_row {
  int64_t counters[LIVE_COUNTERS];
  char path[LIVE_PATH_BYTES];       /* "devices/0" of a device, "devices/0/pool" of a resource */
  char type[LIVE_TYPE_BYTES];       /* "" of a device */
  int64_t size_bytes;               /* of a device: all its memory; else 0 */
  int64_t fragmented_bytes;         /* of a pool or arena: idle, and in pieces; as all below LIVE_UNKNOWN of others */
  int64_t pinned_bytes, file_bytes; /* of `spilling`: content in these tiers */
};

/* Where a counter is in a row, and what is there. */
#define LIVE_PLACE(counter) offsetof(struct live_row, counters[counter])

static inline int64_t live_row_at(const struct live_row *row, size_t place)
{
  return *(const int64_t *)((const char *)row + place);
}

struct live_file {
  char magic[8];
  uint32_t file_bytes, row_bytes; /* sizes of the file and of a row */
  uint32_t process, n_rows;       /* rows that are written */
  uint32_t n_wanted, rows_offset; /* rows that there would be with more room; where the first row is */
  int64_t started_ns, updated_ns; /* since 1970 */
  uint64_t sequence;
  char command[LIVE_COMMAND_BYTES];
  _Alignas(64) struct live_row rows[LIVE_ROWS];
};

#endif
