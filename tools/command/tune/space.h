/* SPDX-License-Identifier: MIT */
/* space.h: the graphs among which `hipmm tune` searches: a choice has one value in each of a few dimensions, and gives one
 * graph. The values are made from the logs. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_SPACE_H
#define HIPMM_TOOLS_COMMAND_TUNE_SPACE_H

#include "../trace/trace.h"
#include <jansson.h>

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

#endif
