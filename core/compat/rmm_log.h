/* SPDX-License-Identifier: MIT */
/* rmm_log.h: the log of RMM 0.12: events in host memory, written as CSV on request. Thread-safe. */
#ifndef HIPMM_CORE_COMPAT_RMM_LOG_H
#define HIPMM_CORE_COMPAT_RMM_LOG_H

#include <hipmm/hipmm.h>
#include <stdbool.h>

enum rmm_event { RMM_EVENT_ALLOC, RMM_EVENT_REALLOC, RMM_EVENT_FREE };

struct rmm_log_entry {
  enum rmm_event event;
  int device;
  void *ptr;
  size_t bytes;
  hipmm_stream_t stream;
  int64_t start_ns, end_ns; /* rmm_log_now() */
  int64_t live;             /* allocations, after the event */
  char *file;               /* a copy; NULL: none */
  unsigned line;
};

/* Nanoseconds since its first call. */
int64_t rmm_log_now(void);

/* Adds an event and copies its file. `change` of live allocations: 1, 0 or -1. Without host memory the event is lost. */
void rmm_log_add(struct rmm_log_entry entry, int change);

void rmm_log_clear(void);

/* The log as CSV, which the caller frees; NULL without host memory. */
char *rmm_log_text(size_t *bytes_out);

#endif
