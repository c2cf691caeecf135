/* SPDX-License-Identifier: MIT */
/* spaces.h: whose memory the rows of logs are of: of which process, and of which device or the host. Equal addresses of
 * different spaces are different memory, so no command adds spaces up: it takes those that --device and --process choose, shows
 * each, or asks for a choice. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_SPACES_H
#define HIPMM_TOOLS_COMMAND_TRACE_SPACES_H

#include "rows.h"

enum { TRACE_MOST_SPACES = 1024 };

/* The spaces of some logs, in the order of their first rows. */
struct trace_spaces {
  struct trace_space *items;
  size_t n, capacity, last; /* last: that was found last */
};

/* The index of a space; a new one gets a new index. False: out of memory, or more than TRACE_MOST_SPACES. */
bool trace_spaces_find(struct trace_spaces *spaces, const struct trace_space *space, size_t *index_out);

/* Whether they have the memory of more than one device; managed and host memory do not count. */
bool trace_spaces_have_several_devices(const struct trace_spaces *spaces);

void trace_spaces_clear(struct trace_spaces *spaces);

#endif
