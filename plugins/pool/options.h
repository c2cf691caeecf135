/* SPDX-License-Identifier: MIT */
/* options.h: the options of `pool`, for its own files and for fixed_buffer, which has a pool inside and sets all of them. */
#ifndef HIPMM_PLUGINS_POOL_OPTIONS_H
#define HIPMM_PLUGINS_POOL_OPTIONS_H

#include <hipmm/plugin.h>

enum growth { GROWTH_AUTO, GROWTH_MAPPED, GROWTH_SEGMENTS };

struct pool_options {
  uint64_t initial_size;
  uint64_t maximum_size;
  uint64_t slack;  /* SLACK_AUTO: auto (slack.c) */
  uint32_t growth; /* enum growth */
  uint32_t record; /* enum record (stream_order.h) */
};

HIPMM_EXPORT extern const struct hipmm_plugin pool_LTX_hipmm_plugin;

#endif
