/* SPDX-License-Identifier: MIT */
/* pages.h: how a log's live blocks are spread over pages of 2 MiB, the granularity of GPU memory: a page that holds any live
 * block cannot be used by the device for anything else, whatever the allocator. Called by summary.c. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_PAGES_H
#define HIPMM_TOOLS_COMMAND_REPORT_PAGES_H

#include "../trace/blocks.h"

enum { PAGES_SHIFT = 21 };

struct pages_result {
  uint64_t peak_bytes;                    /* of the pages with live blocks */
  uint64_t worst_bytes, worst_live_bytes; /* when the difference of these two was greatest */
  uint32_t worst_event;
};

/* Counts the bytes of pages after each event; `notify` may be NULL. False: out of memory. */
bool pages_count(const struct blocks *blocks, void (*notify)(void *closure, uint32_t event, uint64_t bytes),
                 void *closure, struct pages_result *out);

#endif
