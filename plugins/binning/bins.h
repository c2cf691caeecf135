/* SPDX-License-Identifier: MIT */
/* bins.h: the bins of `binning`, in order of size: read from the options, opened, found by the size of a request, and
 * added while in use. A table of bins never changes: another bin means another table, so that readers need no lock. */
#ifndef HIPMM_PLUGINS_BINNING_BINS_H
#define HIPMM_PLUGINS_BINNING_BINS_H

#include "../fixed_size/fixed.h"

/* A row of the option "bins". */
struct bins_option {
  uint64_t size;
  struct hipmm_resource *resource;
};

struct bins_options {
  struct hipmm_list bins;       /* of struct bins_option */
  struct hipmm_list extra_bins; /* likewise */
  int64_t min_size_exponent, max_size_exponent;
  struct fixed_size_options of_blocks; /* of each bin without a resource, but for block_size */
};

struct bin {
  uint64_t bytes;                  /* the largest request, a multiple of HIPMM_ALIGNMENT */
  struct hipmm_resource *resource; /* NULL: `blocks` */
  atomic_bool has_chunks; /* live blocks of `resource` may be chunks of other bins' resources, or of the upstream */
  bool is_added;          /* while in use: blocks of its sizes may be in larger bins */
  struct fixed blocks;
};

struct bins_table {
  struct bins_table *older; /* a thread may still be reading it */
  size_t count;
  struct bin *items[]; /* in order of size */
};

struct bins {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  atomic_bool upstream_has_chunks; /* as `has_chunks` of a bin */
  struct bins_table *_Atomic table;
};

/* As validate of a plugin. The functions below get only options without an error. */
void bins_validate(const struct hipmm_validation *validation, const void *options);

/* On failure nothing is left behind, and services->fail has the reason. */
enum hipmm_status bins_open(struct bins *bins, const struct hipmm_services *services,
                            const struct bins_options *options, struct hipmm_resource *upstream);

/* The device is current. */
void bins_close(struct bins *bins);

/* Adds the bins of the options that do not exist yet. Every existing bin must be among them. On failure nothing
 * changes, and services->fail has the reason. One caller at a time. */
enum hipmm_status bins_add(struct bins *bins, const struct bins_options *options);

static inline const struct bins_table *bins_table(const struct bins *bins)
{
  return atomic_load_explicit(&bins->table, memory_order_acquire);
}

/* Index of the bin for a request of `bytes`; `count` if all bins are too small. */
size_t bins_find(const struct bins_table *table, size_t bytes);

/* The bin that has the allocation of `bytes` at `ptr`; NULL: the upstream. */
struct bin *bins_find_of(const struct bins *bins, size_t bytes, const void *ptr);

/* Whether bins_find_of() may return a bin with a resource for a block of the upstream. Bins that are added later do not
 * change this: they have such a block only if the address says so. */
bool bins_may_find_resource(const struct bins_table *table, size_t bytes);

/* The bin without a resource that has a block, live or free, at `ptr`; NULL if there is none. */
struct bin *bins_with_start(const struct bins_table *table, const void *ptr);

#endif
