/* SPDX-License-Identifier: MIT */
/* driver_pool.h: a pool of the driver (hipMemPool_t) as a resource: the common part of async, async_view, async_managed and
 * async_import. Each of them provides the pool; everything else is in driver_pool.c and driver_share.c. Allocation and free
 * are work on their stream; only trim waits. */
#ifndef HIPMM_PLUGINS_COMMON_DRIVER_POOL_H
#define HIPMM_PLUGINS_COMMON_DRIVER_POOL_H

#include "source.h"

#include <pthread.h>
#include <stdbool.h>

/* Recorded, since a driver imports the same pointer twice at the same address, and fails at the second free. */
struct driver_import {
  void *ptr;
  unsigned char data[HIPMM_HIP_POINTER_BYTES];
};

/* `self` of the plugins. */
struct driver_pool {
  const struct hipmm_services *services;
  hipmm_hip_mempool_t pool; /* NULL until there is one */
  bool is_ours;             /* the resource destroys it */
  bool is_imported;         /* another process allocates from it */
  bool is_managed;          /* its memory moves between host and devices by itself */
  bool is_of_host;          /* its memory is the host's */
  bool is_exportable;       /* has a handle type, or may have one */
  bool counts_reserve;      /* the stack counts what the pool reserves, not what is allocated */
  int exported_fd;          /* the driver's; others get copies of it; -1: none yet */
  pthread_mutex_t lock;     /* of the fields below, and of exported_fd */
  uint64_t counted_bytes;   /* what the stack counts for the reserve */
  struct driver_import *imports;
  size_t n_imports, most_imports;
};

/* Options of the pools that are made here; the first member of a plugin's option struct. */
struct driver_pool_options {
  uint64_t initial_pool_size;
  uint64_t release_threshold;
  uint32_t reuse_follow_event_dependencies;
  uint32_t reuse_allow_opportunistic;
  uint32_t reuse_allow_internal_dependencies;
};

/* A row of the option `peers`. */
struct driver_pool_peer {
  int64_t device;
  uint32_t mode; /* index into read_write, read */
};

extern const struct hipmm_option driver_pool_peer_fields[2];
extern const char *const driver_pool_unlimited[];

/* The rows of struct driver_pool_options, as first member of a plugin's option struct. */
#define DRIVER_POOL_OPTIONS                                                                                   \
  {.name = "initial_pool_size",                                                                               \
   .type = HIPMM_OPTION_BYTES,                                                                                \
   .flags = HIPMM_OPTION_PERCENT,                                                                             \
   .offset = offsetof(struct driver_pool_options, initial_pool_size),                                         \
   .initial = "0",                                                                                            \
   .unit = "bytes",                                                                                           \
   .doc = "Memory that the driver's pool takes at once, if release_threshold lets it "                        \
          "keep that; it grows by itself"},                                                                   \
      {.name = "release_threshold",                                                                           \
       .type = HIPMM_OPTION_BYTES,                                                                            \
       .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,                                               \
       .offset = offsetof(struct driver_pool_options, release_threshold),                                     \
       .initial = "unlimited",                                                                                \
       .unit = "bytes",                                                                                       \
       .doc = "Idle memory above this is given back at synchronisations",                                     \
       .choices = driver_pool_unlimited},                                                                     \
      {.name = "reuse_follow_event_dependencies",                                                             \
       .type = HIPMM_OPTION_BOOL,                                                                             \
       .flags = HIPMM_OPTION_RELOADABLE,                                                                      \
       .offset = offsetof(struct driver_pool_options, reuse_follow_event_dependencies),                       \
       .initial = "true",                                                                                     \
       .doc = "Reuse memory freed on another stream that the allocating stream already waits for"},           \
      {.name = "reuse_allow_opportunistic",                                                                   \
       .type = HIPMM_OPTION_BOOL,                                                                             \
       .flags = HIPMM_OPTION_RELOADABLE,                                                                      \
       .offset = offsetof(struct driver_pool_options, reuse_allow_opportunistic),                             \
       .initial = "true",                                                                                     \
       .doc = "Reuse memory freed on another stream once that free has happened"},                            \
  {                                                                                                           \
    .name = "reuse_allow_internal_dependencies", .type = HIPMM_OPTION_BOOL, .flags = HIPMM_OPTION_RELOADABLE, \
    .offset = offsetof(struct driver_pool_options, reuse_allow_internal_dependencies), .initial = "true",     \
    .doc = "Let the allocating stream wait for another one in order to reuse its memory"                      \
  }

/* ---- Life ---- */

/* Called on creation. `open` provides the pool, by the plugin's own options; if it fails, nothing remains. Refuses a runtime
 * or a device without pools. */
enum hipmm_status driver_pool_create(const struct hipmm_services *services,
                                     enum hipmm_status (*open)(struct driver_pool *pool, const void *options),
                                     const void *options, void **self_out);
void driver_pool_destroy(void *self);

/* Puts the options in force on the new pool, and fills it. */
enum hipmm_status driver_pool_prepare(struct driver_pool *pool, const struct driver_pool_options *options);

/* Gives other devices access: as the rows of struct driver_pool_peer say, and to all other devices that can reach the memory
 * read and write access, as with memory of hipMalloc. */
enum hipmm_status driver_pool_allow(struct driver_pool *pool, const struct hipmm_list *peers);

/* Makes sure that the resource's own device has access. */
enum hipmm_status driver_pool_allow_own(struct driver_pool *pool);

/* ---- The ops of the same names, and the tables that go with them ---- */

enum hipmm_status driver_pool_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                       void **ptr_out);
enum hipmm_status driver_pool_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
enum hipmm_status driver_pool_find(void *self, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status driver_pool_trim(void *self, size_t keep_bytes);
enum hipmm_status driver_pool_query(void *self, size_t index, int64_t *value_out);
enum hipmm_status driver_pool_perform(void *self, size_t index, int64_t *values_out);
enum hipmm_status driver_pool_reconfigure(void *self, const char *option, const void *options);

/* All of them, for a pool that is not shared with other processes. */
extern const struct hipmm_ops driver_pool_ops;

enum { DRIVER_POOL_VALUES = 9, DRIVER_POOL_ACTIONS = 1 };
extern const struct hipmm_feature driver_pool_values[DRIVER_POOL_VALUES];
extern const struct hipmm_feature driver_pool_actions[DRIVER_POOL_ACTIONS];

/* ---- Between processes: driver_share.c ---- */

extern const struct hipmm_sharing driver_pool_sharing;

/* The record of an imported block, under the lock; NULL if it is none. */
struct driver_import *driver_pool_import_of(const struct driver_pool *pool, const void *ptr);

/* Adds a block to the block map, with or without counting its bytes. */
enum hipmm_status driver_pool_track(const struct driver_pool *pool, void *ptr, size_t bytes);

#endif
