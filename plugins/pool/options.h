/* SPDX-License-Identifier: MIT */
/* options.h: the options of `pool`, for its own files and for fixed_buffer, which has a pool inside and sets all of them. */
#ifndef HIPMM_PLUGINS_POOL_OPTIONS_H
#define HIPMM_PLUGINS_POOL_OPTIONS_H

#include <hipmm/plugin.h>

/* Whose handles of memory other processes open. */
enum ipc { IPC_HIPMM, IPC_LEGACY };

enum growth { GROWTH_AUTO, GROWTH_MAPPED, GROWTH_SEGMENTS };

/* Where the content lies while the pool is suspended, and whether that memory stays for the next time. */
enum save_to { SAVE_TO_PINNED, SAVE_TO_PINNED_KEPT, SAVE_TO_PAGEABLE, SAVE_TO_FILE /* where `folder` is set */ };

struct pool_options {
  uint64_t initial_size;
  uint64_t maximum_size;
  uint64_t slack;  /* SLACK_AUTO: auto (../heap/slack.c) */
  uint32_t growth; /* enum growth */
  uint32_t record; /* enum record (stream_order.h) */
  uint32_t exportable;
  uint32_t ipc;       /* enum ipc */
  uint32_t save_to;   /* enum save_to */
  const char *folder; /* NULL: no file */
};

HIPMM_EXPORT extern const struct hipmm_plugin pool_LTX_hipmm_plugin;

#endif
