/* SPDX-License-Identifier: MIT */
/* race_detector.h: finds uses of memory that no stream order protects, in the calls of one run. It is told of work
 * on streams, of events and of waits by a runtime (plugins/runtimes/software/watch.c) or by the hooks of `hipmm run`
 * (tools/preload/checks.c), and of blocks by hipmm's core (core/base/memory_observer.h). Compiled into both.
 *
 * The detector records the last work of each stream on every block that the program has from the top of a stack, and
 * the last free of each address. So it finds
 *   - memory that a resource gives to a stream which is not ordered after the free before,
 *   - work on a stream which is not ordered after the allocation,
 *   - two streams that use the same bytes without order, where one of them writes,
 *   - memory that is freed on a stream which is not ordered after the work that uses the memory,
 *   - work on freed memory, a second free, memory that is given out twice, work past the end of a block,
 *   - and, where all work is known, bytes that are read and were never written.
 *
 * All functions are thread-safe and keep errno. They do nothing before races_start(). */
#ifndef HIPMM_PLUGINS_RACE_RACE_DETECTOR_H
#define HIPMM_PLUGINS_RACE_RACE_DETECTOR_H

#include "../../core/base/memory_observer.h"
#include "race_order.h"
#include <stddef.h>

/* What work reads or writes: the whole range, or rows of `width` bytes in it. */
struct race_access {
  void *start; /* NULL: none */
  size_t bytes;
  size_t width, pitch; /* pitch: from the start of a row to that of the next; 0: the whole range */
  bool is_hint;        /* a prefetch, which changes no bytes */
};

/* From here on, until the process ends. A child that is forked once something is known is not watched. `knows_all_work`: no
 * kernel or host thread writes to device memory unseen, so that reads of bytes that were never written can be told. */
void races_start(bool knows_all_work);
bool races_are_on(void);

/* ---- Work ---- */

/* A copy, a fill (`from` has no start) or a read (`to` has none). `call` lasts for ever. */
void races_work(const struct race_stream *stream, const char *call, struct race_access to, struct race_access from);
void races_record(const struct race_stream *stream, const void *event);
void races_wait(const struct race_stream *stream, const void *event);
void races_end_event(const void *event);
/* The first time that the stream is seen says what kind it is: this is for streams that were just created. */
void races_add_stream(const struct race_stream *stream);
void races_end_stream(const void *key);

/* The host has waited, or was told that the work is over. */
void races_host_after_event(const void *event);
void races_host_after_stream(const struct race_stream *stream);
void races_host_after_device(int device); /* -1: all */

/* ---- Memory ---- */

/* The runtime has given the range to hipmm or to the program, and has it back. Between the two, frees to a resource
 * are recorded. */
void races_driver_gave(const void *start, size_t bytes);
void races_driver_took(const void *start, size_t bytes); /* 0 bytes: the range that begins there */
/* Another process may write to the range, which was given. */
void races_share(const void *start, size_t bytes);

/* For the functions of struct memory_observer. The HIP calls of the thread between enter and leave are hipmm's own:
 * they order work, and their memory is not checked. enter returns whether it is the outermost. */
bool races_enter(void);
void races_leave(void);
void races_allocated(const struct memory_event *event, const struct race_stream *stream);
/* Before the free. What it returns is for races_freed(), after the free or its refusal. */
void *races_freeing(const struct memory_event *event, const struct race_stream *stream);
void races_freed(void *token, bool is_refused);
void races_destroyed(const void *owner);

/* ---- What was found ---- */

/* Each different report, as one text of several lines; NULL past the last. Valid until the process ends. */
const char *races_report(size_t index, const char **kind_out);
size_t races_count(void); /* with repeated ones; takes no lock, for a signal's handler too */
/* Writes one line to standard error if anything was found. Once. Waits for no lock for long. */
void races_summarise(void);

#endif
