/* SPDX-License-Identifier: MIT */
/* monotonic.h: the resource, and the ops (hipmm/plugin.h) of allocate.c; `self` is a struct monotonic. */
#ifndef HIPMM_PLUGINS_MONOTONIC_MONOTONIC_H
#define HIPMM_PLUGINS_MONOTONIC_MONOTONIC_H

#include "../common/biased_lock.h"
#include "bump.h"
#include "uses.h"

struct monotonic {
  const struct hipmm_services *services;
  struct biased_lock lock; /* all below */
  struct bump bump;
  struct uses uses;
  int64_t rewinds;
};

enum hipmm_status monotonic_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status monotonic_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status monotonic_find(void *self, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status monotonic_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                  void *closure);
int monotonic_covers(void *self, const void *ptr);
enum hipmm_status monotonic_trim(void *self, size_t keep_bytes);
void monotonic_stream_retire(void *self, hipmm_stream_t stream);
void monotonic_stream_retain(void *self, hipmm_stream_t stream);

/* Frees unused chunks while more than `keep_bytes` are held, and gives back unused records. The caller holds the
 * lock. */
enum hipmm_status monotonic_release(struct monotonic *monotonic, uint64_t keep_bytes);

#endif
