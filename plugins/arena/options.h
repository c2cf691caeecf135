/* SPDX-License-Identifier: MIT */
/* options.h: the options of `arena`. */
#ifndef HIPMM_PLUGINS_ARENA_OPTIONS_H
#define HIPMM_PLUGINS_ARENA_OPTIONS_H

#include <hipmm/plugin.h>

struct arena_options {
  uint64_t arena_size;
  uint64_t maximum_size;
  uint32_t dump_log_on_failure;
  const char *dump_log_file;
  uint32_t record; /* enum record (stream_order.h) */
};

HIPMM_EXPORT extern const struct hipmm_plugin arena_LTX_hipmm_plugin;

#endif
