/* SPDX-License-Identifier: MIT */
/* options.h: the options of `arena`, for its own files and for the pool, which has an arena inside and sets all of them. */
#ifndef HIPMM_PLUGINS_ARENA_OPTIONS_H
#define HIPMM_PLUGINS_ARENA_OPTIONS_H

#include <hipmm/plugin.h>

struct arena_options {
  uint64_t arena_size;
  uint64_t maximum_size;
  uint32_t dump_log_on_failure;
  const char *dump_log_file;
  uint32_t record; /* enum record (stream_order.h) */
  /* No options of the type: larger blocks come from the global arena (0: ARENA_SMALL_BYTES); and where the memory is on loan,
   * what takes a chunk back that work of the stream may still use. */
  uint64_t small_bytes;
  enum hipmm_status (*take_back)(void *self, void *ptr, size_t bytes, hipmm_stream_t stream);
};

/* What is idle in an arena whose memory is on loan goes back, without a wait. */
void arena_give_back_idle(void *self);

HIPMM_EXPORT extern const struct hipmm_plugin arena_LTX_hipmm_plugin;

#endif
