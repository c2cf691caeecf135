/* SPDX-License-Identifier: MIT */
/* source.h: the common part of the sources: checks, the current device, the block map, and the wait for work before memory
 * is released. Compiled into each source, which provides two functions: one obtains memory, one releases it. */
#ifndef HIPMM_PLUGINS_COMMON_SOURCE_H
#define HIPMM_PLUGINS_COMMON_SOURCE_H

#include "../../core/base/key_tree.h"
#include "device_wait.h"

#include <hipmm/plugin.h>
#include <pthread.h>
#include <stdbool.h>

struct source;

/* Both report their failures. The source's device is current, and `bytes` is neither 0 nor near overflow; `release` gets
 * those of `obtain`. */
struct source_memory {
  enum hipmm_status (*obtain)(const struct source *source, size_t bytes, void **ptr_out);
  enum hipmm_status (*release)(const struct source *source, void *ptr, size_t bytes);

  /* Blocks may be aligned to more than HIPMM_ALIGNMENT: then more is obtained, and the block begins inside. */
  bool aligns_to_any;
};

/* An instance. It is a source's `self`, or the first member of it. */
struct source {
  const struct hipmm_services *services;
  const struct source_memory *memory;
  size_t self_bytes;
  pthread_mutex_t lock;          /* of `shifted` */
  struct key_tree_node *shifted; /* the blocks inside of more memory that was obtained */
};

/* `self_bytes` is the size of `self`, which is zeroed behind its first member. */
enum hipmm_status source_create(const struct hipmm_services *services, const struct source_memory *memory,
                                size_t self_bytes, void **self_out);

/* Releases the blocks that the application did not free, after a wait for the device. */
void source_destroy(void *self);

/* The ops of the same names. */
enum hipmm_status source_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status source_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status source_find(void *self, const void *ptr, struct hipmm_block *block_out);

/* The ops of a source without any of its own. */
extern const struct hipmm_ops source_ops;

/* Refuses sizes and alignments that no source can serve. */
enum hipmm_status source_check(const struct hipmm_services *services, size_t bytes, size_t alignment);

/* Called on creation: refuse a device that lacks something, and a runtime that lacks a function. `what` ends the sentence
 * "device 0 has no …". */
enum hipmm_status source_require_attribute(const struct hipmm_services *services, int attribute, const char *what);
enum hipmm_status source_require_function(const struct hipmm_services *services, int is_there, const char *name);

/* Refuses the number of a device, given in `option`, that does not exist. */
enum hipmm_status source_require_device(const struct hipmm_services *services, const char *option, int64_t device);

/* Host memory of the C library, aligned to HIPMM_ALIGNMENT. */
extern const struct source_memory source_host_memory;

#endif
