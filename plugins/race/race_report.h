/* SPDX-License-Identifier: MIT */
/* race_report.h: what the race detector has found, as text: each pair of call stacks once, and not more of them than a
 * person reads. Compiled into the race detector (race_detector.h), whose lock is held. */
#ifndef HIPMM_PLUGINS_RACE_RACE_REPORT_H
#define HIPMM_PLUGINS_RACE_RACE_REPORT_H

#include <stddef.h>
#include <stdint.h>

enum race_kind {
  RACE_REUSE,          /* given to a stream that is not ordered after the free before */
  RACE_EARLY_USE,      /* used by a stream that is not ordered after the free before */
  RACE_FREE_IN_USE,    /* freed on a stream that is not ordered after work on the memory */
  RACE_USE_AFTER_FREE, /* work on freed memory */
  RACE_DOUBLE_FREE,
  RACE_OVERLAP,       /* given out while it is in use */
  RACE_PAST_END,      /* work past the end of a block */
  RACE_NEVER_WRITTEN, /* bytes are read that were never written */
  RACE_KINDS
};

/* A call of the program. */
struct race_site {
  const char *call;
  void *stream; /* as the program knows it */
  int device;
  uint32_t trace; /* of the call stack; 0: not known */
};

struct race_finding {
  enum race_kind kind;
  uintptr_t start; /* the bytes that the call is about */
  size_t bytes;
  uintptr_t block; /* the block that they are of, or were of */
  size_t block_bytes;
  const char *resource;
  struct race_site now, before;
};

void race_report_open(void);
/* The call stack of the calling thread. */
uint32_t race_report_trace(void);
void race_report_add(const struct race_finding *finding);
size_t race_report_count(void); /* without the lock too */
/* In a forked child: the reports are the parent's. */
void race_report_forget(void);
const char *race_report_text(size_t index, const char **kind_out);
/* One line of how many reports of each kind there are. */
void race_report_summary(char *text, size_t bytes);

#endif
