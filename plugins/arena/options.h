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
  uint32_t record;      /* enum record (stream_order.h) */
  uint64_t small_bytes; /* larger blocks come from the global arena; 0: ARENA_SMALL_BYTES. No option of the type */
};

HIPMM_EXPORT extern const struct hipmm_plugin arena_LTX_hipmm_plugin;

#endif
