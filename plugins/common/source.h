/* SPDX-License-Identifier: MIT */
/* source.h: what the sources have in common: the checks, the device, the block_map, and the wait for work before memory
 * goes back. Compiled into each source, which brings two functions: one gets memory, one gives it back. */
#ifndef HIPMM_PLUGINS_COMMON_SOURCE_H
#define HIPMM_PLUGINS_COMMON_SOURCE_H

#include <hipmm/plugin.h>

struct source;

/* Both report their failures. The source's device is current, `bytes` is not 0, and far from overflow. */
struct source_memory {
  enum hipmm_status (*obtain)(const struct source *source, size_t bytes, void **ptr_out);
  enum hipmm_status (*give_back)(const struct source *source, void *ptr, size_t bytes);
};

/* An instance. A source that needs no more than this uses it as its `self`; one that does has it as its first
 * member. */
struct source {
  const struct hipmm_services *services;
  const struct source_memory *memory;
  size_t self_bytes;
};

/* `self_bytes` is the size of the whole, zeroed but for the first member. */
enum hipmm_status source_create(const struct hipmm_services *services, const struct source_memory *memory,
                                size_t self_bytes, void **self_out);

/* Waits for the device and gives back what the application left. */
void source_destroy(void *self);

/* Waits for the device before memory goes back whatever comes of it; a broken device gives it back all the same. */
void source_wait_at_end(const struct hipmm_services *services);

/* The ops of the same names. */
enum hipmm_status source_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out);
enum hipmm_status source_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);
enum hipmm_status source_find(void *self, const void *ptr, struct hipmm_block *block_out);

/* Refuses sizes and alignments that no source can serve. */
enum hipmm_status source_check(const struct hipmm_services *services, size_t bytes, size_t alignment);

/* For create: refuses a device that lacks something, and a runtime that lacks a function. `what` ends the sentence
 * "device 0 has no …". */
enum hipmm_status source_require_attribute(const struct hipmm_services *services, int attribute, const char *what);
enum hipmm_status source_require_function(const struct hipmm_services *services, int is_there, const char *name);

/* The same of a device that `option` names, by its number. */
enum hipmm_status source_require_device(const struct hipmm_services *services, const char *option, int64_t device);

/* Plain host memory, aligned to HIPMM_ALIGNMENT, for sources that deal in it. */
extern const struct source_memory source_host_memory;

#endif
