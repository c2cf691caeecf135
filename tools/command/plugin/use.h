/* SPDX-License-Identifier: MIT */
/* use.h: work on a stream that fills memory, or copies it to where the test looks at it. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_USE_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_USE_H

#include <hipmm/plugin.h>
#include <stdbool.h>

struct use {
  void *to;
  const void *from; /* NULL: `to` is filled with `pattern` */
  size_t bytes;
  int pattern;
};

/* Returns HIP's code. `by_host`: by a host function, for memory whose copies do not wait for their turn on the
 * stream. */
int use_submit(const struct hipmm_hip *hip, bool by_host, struct use use, hipmm_stream_t stream);

#endif
