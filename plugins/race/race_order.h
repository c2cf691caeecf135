/* SPDX-License-Identifier: MIT */
/* race_order.h: what is ordered before what, as the calls of a program say it: vector clocks of streams, events and
 * the host. Compiled into the race detector (race_detector.h), whose lock is held.
 *
 * A stream has a tick for each piece of its work. Its clock says up to which tick the work of each other stream is
 * over before the next work of this one. The host is one clock for all threads: how threads of a program order
 * themselves cannot be seen, so what one thread has waited for counts as over for all. Only calls count, never the
 * time at which work happens to run: one run of a program shows a missing wait, whatever the schedule was. */
#ifndef HIPMM_PLUGINS_RACE_RACE_ORDER_H
#define HIPMM_PLUGINS_RACE_RACE_ORDER_H

#include "../../core/base/key_tree.h"
#include <stdbool.h>

enum race_stream_kind {
  RACE_STREAM_LEGACY,   /* a device's default stream */
  RACE_STREAM_BLOCKING, /* ordered with the default stream of its device */
  RACE_STREAM_APART     /* non-blocking */
};

/* A stream as a call names it. */
struct race_stream {
  const void *key; /* unique while the stream lives */
  void *handle;    /* as the program knows it: NULL and 1: the default stream; 2: the thread's own */
  int device;
  enum race_stream_kind kind;
  bool is_captured; /* its work becomes nodes of a graph */
};

struct race_clock {
  uint64_t *ticks; /* by the number of a stream */
  uint32_t count;
};

/* A moment of a stream: its work up to this tick. */
struct race_point {
  uint32_t stream;
  uint64_t tick;
};

/* A stream as the detector knows it. */
struct race_line {
  struct key_tree_node by_key; /* major: the key */
  uint32_t number;
  int device;
  enum race_stream_kind kind;
  bool is_gone;
  bool is_ahead; /* its clock may have what the host's has not */
  uint64_t tick;
  uint64_t host_seen; /* the version of the host's clock that is in `clock` */
  struct race_clock clock;
};

/* NULL when there is no host memory. */
struct race_line *race_order_line(const struct race_stream *stream);
/* The stream is destroyed; its work goes on. */
void race_order_end_stream(const void *key);

/* The next piece of work of the stream. */
struct race_point race_order_advance(struct race_line *line);
/* Whether the next work of the stream comes after the point. */
bool race_order_is_before(struct race_point point, const struct race_line *line);
/* Whether the host has waited for the point. */
bool race_order_is_over(struct race_point point);

void race_order_record(struct race_line *line, const void *event);
/* An event that was never recorded counts as one after all work: its record may have been out of sight. */
void race_order_wait(struct race_line *line, const void *event);
void race_order_end_event(const void *event);

/* The host has waited for an event, a stream, or a device (-1: all). */
void race_order_host_after_event(const void *event);
void race_order_host_after_stream(struct race_line *line);
void race_order_host_after_device(int device);

/* Whether host memory was missing, so that the order is not known any more. */
bool race_order_is_lost(void);

#endif
