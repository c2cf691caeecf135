/* SPDX-License-Identifier: MIT */
/* bins.h: the bins of `binning`, in order of size: read from its options, opened, found by the size of a request, and
 * added to while in use. Bins are in a table that never changes: with a bin more there is another table, and who looks
 * needs no lock. */
#ifndef HIPMM_BINNING_BINS_H
#define HIPMM_BINNING_BINS_H

#include "../fixed_size/fixed.h"

/* A row of the option "bins". */
struct bins_option {
  uint64_t size;
  struct hipmm_resource *resource;
};

struct bins_options {
  struct hipmm_list bins;       /* of struct bins_option */
  struct hipmm_list extra_bins; /* of uint64_t, sizes */
  int64_t min_size_exponent, max_size_exponent;
  int64_t blocks_per_chunk;
  int64_t blocks_to_preallocate;
  uint32_t record;
};

struct bin {
  uint64_t bytes;                  /* the largest request, a multiple of HIPMM_ALIGNMENT */
  struct hipmm_resource *resource; /* NULL: `blocks` */
  bool has_chunks;                 /* `resource` may have given chunks to other bins' resources, or to the upstream */
  bool is_added;                   /* while in use: what it would have now may be elsewhere; it has no resource */
  struct fixed blocks;
};

struct bins_table {
  struct bins_table *older; /* somebody may be looking at it still */
  size_t count;
  struct bin *items[]; /* in order of size */
};

struct bins {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  bool upstream_has_chunks; /* as of a bin */
  struct bins_table *_Atomic table;
};

/* On failure nothing is left behind, and services->fail has said why. */
enum hipmm_status bins_open(struct bins *bins, const struct hipmm_services *services,
                            const struct bins_options *options, struct hipmm_resource *upstream);

/* The device is current. */
void bins_close(struct bins *bins);

/* Adds those bins of the options that there are not. All that there are must be among them. On failure nothing is
 * changed, and services->fail has said why. One caller at a time. */
enum hipmm_status bins_add(struct bins *bins, const struct bins_options *options);

static inline const struct bins_table *bins_table(const struct bins *bins)
{
  return atomic_load_explicit(&bins->table, memory_order_acquire);
}

/* Which bin a request of `bytes` is for; the number of bins if all are too small. */
size_t bins_find(const struct bins_table *table, size_t bytes);

/* Where an allocation of `bytes` at `ptr` went: NULL: to the upstream. */
struct bin *bins_find_of(const struct bins_table *table, size_t bytes, const void *ptr);

/* The bin without a resource of which a block, live or free, starts at `ptr`; NULL if there is none. */
struct bin *bins_with_start(const struct bins_table *table, const void *ptr);

#endif
