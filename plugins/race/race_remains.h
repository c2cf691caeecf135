/* SPDX-License-Identifier: MIT */
/* race_remains.h: what is known of addresses that hold no block: that the runtime has given them, and the last free of
 * each. Compiled into the race detector (race_detector.h), whose lock is held. */
#ifndef HIPMM_PLUGINS_RACE_RACE_REMAINS_H
#define HIPMM_PLUGINS_RACE_RACE_REMAINS_H

#include "../../core/base/key_tree.h"
#include "race_order.h"
#include "race_report.h"

/* A call, and where it stands in its stream. */
struct race_use {
  struct race_point point;
  struct race_site site;
};

/* A range of a freed block; the range may be a part of it. */
struct race_remains {
  struct key_tree_node by_address;
  struct race_remains *older, *newer;
  struct race_use freed;
  uintptr_t block; /* the whole one */
  size_t block_bytes;
  const char *resource;
  bool is_returned; /* to the runtime: what is there now is not known */
};

/* The addresses of the range hold what a free has left, and nothing else. Without host memory they hold nothing. */
void race_remains_add(const struct race_remains *model, uintptr_t start, size_t bytes);
/* Forgets the range. Calls `visit` before, if there is one, for each part. */
void race_remains_cut(uintptr_t start, size_t bytes, void (*visit)(void *closure, const struct race_remains *remains),
                      void *closure);
/* The first in the range; NULL if there is none. */
const struct race_remains *race_remains_in(uintptr_t start, size_t bytes);

/* The range is the runtime's to give, and was given; or was given back. */
void race_remains_driver_gave(uintptr_t start, size_t bytes);
void race_remains_driver_took(uintptr_t start, size_t bytes);
/* Another process may write to the range from here on. */
void race_remains_share(uintptr_t start, size_t bytes);
bool race_remains_is_shared(uintptr_t address);
bool race_remains_is_given(uintptr_t address);
size_t race_remains_given_bytes(uintptr_t start); /* 0 if nothing was given there */

#endif
