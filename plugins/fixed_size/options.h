/* SPDX-License-Identifier: MIT */
/* options.h: the options of `fixed_size`. */
#ifndef HIPMM_PLUGINS_FIXED_SIZE_OPTIONS_H
#define HIPMM_PLUGINS_FIXED_SIZE_OPTIONS_H

#include <hipmm/plugin.h>

struct fixed_size_options {
  uint64_t block_size;
  int64_t blocks_per_chunk;
  int64_t blocks_to_preallocate;
  uint32_t record; /* enum record (stream_order.h) */
};

HIPMM_EXPORT extern const struct hipmm_plugin fixed_size_LTX_hipmm_plugin;

#endif
