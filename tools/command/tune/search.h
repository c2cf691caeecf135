/* SPDX-License-Identifier: MIT */
/* search.h: plays the logs through graphs of a space, and keeps the results. The measured figures are the same in every
 * run: bytes, and calls of the runtime with their costs. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_SEARCH_H
#define HIPMM_TOOLS_COMMAND_TUNE_SEARCH_H

#include "../cmd.h"
#include "costs.h"
#include "space.h"

/* A graph that was tried. */
struct point {
  struct choice choice;
  bool is_good;        /* all logs ran */
  bool is_expanded;    /* its neighbours were tried */
  bool is_slow;        /* the host's own time takes more than it gains */
  uint64_t held_bytes; /* at most, in the log where that is most */
  uint64_t calls;      /* of the runtime */
  double driver_ns;    /* an event, for these calls; the mean over all logs */
  double host_ns;      /* an event, of the host without these; 0: not measured */
  uint32_t line;       /* where the first log that failed did so; 0: not there */
  char reason[256];
};

struct search {
  const struct trace *traces;
  size_t n_traces;
  const struct space *space;
  const struct costs *costs;
  long passes;
  struct point *points; /* in the order in which they were tried */
  size_t n_points, capacity;
  uint64_t replays;
  bool is_out_of_time, is_out_of_memory;

  int64_t start_ns, end_ns; /* of cmd_now_ns(): when the search starts and stops */
  struct progress progress;
  char label[64];
};

/* Starts the time and the progress bar, which ends with close. What is found stays until search_clear(). */
void search_open(struct search *search, long seconds);
void search_close(struct search *search);

/* The point of a choice, which is played if it was not before. NULL: out of memory. Valid until the next call. */
const struct point *search_try(struct search *search, struct choice choice);

/* Tries choices until no neighbour of the front is better, or time is over. The first point is the default stack. False: out of
 * memory; is_out_of_time tells the other case. */
bool search_run(struct search *search);

/* Tries all choices of the space. */
bool search_run_all(struct search *search);
void search_clear(struct search *search);

/* Whether a point is better than another in memory or time, and worse in neither; of equals, the one that was tried first. */
bool search_beats(const struct point *point, const struct point *other);

/* Whether no point beats it, and it is good. */
bool search_is_on_front(const struct search *search, const struct point *point);

/* Nanoseconds of the host for an event: the least of several replays of the graph. False: a replay failed. */
bool search_measure_host(struct search *search, struct choice choice, double *ns_out);

#endif
