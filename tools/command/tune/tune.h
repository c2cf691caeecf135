/* SPDX-License-Identifier: MIT */
/* tune.h: what the files of `hipmm tune` share. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_TUNE_H
#define HIPMM_TOOLS_COMMAND_TUNE_TUNE_H

#include "../cmd.h"
#include "../play/call_counts.h"
#include "../trace/trace.h"

/* ---- costs.c ---------------------------------------------------------------------------------------------------- */

/* What the calls of a driver cost the host, for a model of time: the software device counts calls, and each costs
 * what a driver was measured to take. */

enum { COSTS_ROWS = 22 };

struct cost {
  const char *function; /* of HIP; "other": all that have no row */
  double ns;            /* a call */
};

struct costs {
  struct cost rows[COSTS_ROWS];
};

/* The measured costs; then those of the file, a JSON object as costs_json() makes it, if it is not NULL. False: the error was
 * printed. */
bool costs_read(struct costs *costs, const char *file);

/* An object with a key for each function. */
json_t *costs_json(const struct costs *costs);

/* Nanoseconds of so many calls. */
double costs_sum(const struct costs *costs, const struct call_counts *calls);

/* ---- space.c ---------------------------------------------------------------------------------------------------- */

/* The graphs among which `hipmm tune` searches: a choice has one value in each of a few dimensions, and gives one
 * graph. The values are made from the logs. */

enum allocator { ALLOCATOR_POOL, ALLOCATOR_SEGMENTS, ALLOCATOR_ARENA, N_ALLOCATORS };

enum dimension { DIMENSION_ALLOCATOR, DIMENSION_BINS, DIMENSION_INITIAL, DIMENSION_MAXIMUM, N_DIMENSIONS };

/* An index into the values of each dimension. All zero is the default stack, {"stack": ["pool", "device"]}. */
struct choice {
  uint8_t at[N_DIMENSIONS];
};

enum { SPACE_MOST_LEVELS = 20, SPACE_MOST_BINS = 8, SPACE_MOST_LIMITS = 4 };

/* Bins for all requests up to a limit. */
struct space_bins {
  uint64_t sizes[SPACE_MOST_BINS]; /* from the smallest to the largest */
  size_t n;                        /* 0: no binning */
  double share;                    /* of the requests */
};

struct space {
  uint64_t peak_bytes; /* the most that a log requests at once */
  size_t n_streams;    /* of the log that has most */
  struct space_bins bins[SPACE_MOST_LIMITS + 1];
  uint64_t levels[SPACE_MOST_LEVELS + 1]; /* bytes, rising, for initial_size and maximum_size; [0]: none is given */
  size_t sizes[N_DIMENSIONS];             /* values of each dimension */
};

/* `is_quick`: fewer values. False: out of memory. */
bool space_make(struct space *space, const struct trace *traces, size_t n_traces, bool is_quick);

/* Leaves out the levels that a device with so much memory does not have. */
void space_limit(struct space *space, uint64_t device_bytes);

/* Whether the values go together: an initial size is not above the maximum. */
bool space_allows(const struct space *space, struct choice choice);

/* The next of all choices that are allowed, from {0}; false after the last. */
bool space_next(const struct space *space, struct choice *choice);

/* The graph as a user would write it. NULL: out of memory. */
json_t *space_graph(const struct space *space, struct choice choice);

/* The largest level below so many bytes, and the smallest from so many on; 0: there is none. */
uint8_t space_level_below(const struct space *space, uint64_t bytes);
uint8_t space_level_from(const struct space *space, uint64_t bytes);

/* ---- bins.c ----------------------------------------------------------------------------------------------------- */

/* The bins for the requests of some logs: the sizes that waste least. Called by space.c. */

/* The bins for all requests up to `limit` bytes, at most `most` of them. None if there is no such request. False: out of
 * memory. */
bool bins_find(const struct trace *traces, size_t n_traces, uint64_t limit, size_t most, struct space_bins *out);

/* ---- search.c --------------------------------------------------------------------------------------------------- */

/* Plays the logs through graphs of a space, and keeps what came of each. What is measured is the same in every run:
 * bytes, and calls of the runtime with their costs. */

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

/* ---- tune.c ----------------------------------------------------------------------------------------------------- */

enum { TUNE_NUMBER = 32 };

enum goal { GOAL_BOTH, GOAL_MEMORY, GOAL_SPEED };

struct tune {
  enum goal goal;
  struct trace *traces; /* of each log */
  size_t n_traces, capacity;
  struct costs costs;
  struct space space;
  struct search search;
  uint64_t device_bytes; /* what a program's stack can have on the device; 0: not given */
  size_t winner;         /* index of the point */
  json_t *reasons;
};

/* ---- choose.c --------------------------------------------------------------------------------------------------- */

/* The best point for the goal: never one that is worse than the default stack at equal other, nor one that loses to it by the
 * host's own time. False: out of memory. */
bool tune_choose(struct tune *tune);

/* A sentence for each choice of the winner. */
bool tune_explain(struct tune *tune);

/* ---- print.c ---------------------------------------------------------------------------------------------------- */

/* The result, and the text that is made of it. */
json_t *tune_json(const struct tune *tune);
void tune_print(const json_t *result);

/* "2043", "0.52". Returns `buffer`, which has TUNE_NUMBER bytes. */
const char *tune_number(double number, char *buffer);

#endif
