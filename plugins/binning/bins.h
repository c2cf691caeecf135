/* SPDX-License-Identifier: MIT */
/* bins.h: the bins of `binning`, in order of size: read from its options, opened, and found by the size of a
 * request. */
#ifndef HIPMM_BINNING_BINS_H
#define HIPMM_BINNING_BINS_H

#include "../fixed_size/fixed.h"

/* A row of the option "bins". */
struct bins_option {
  uint64_t size;
  struct hipmm_resource *resource;
};

struct bins_options {
  struct hipmm_list bins; /* of struct bins_option */
  int64_t min_size_exponent, max_size_exponent;
  int64_t blocks_per_chunk;
  uint32_t record;
};

struct bin {
  uint64_t bytes;                  /* the largest request, a multiple of HIPMM_ALIGNMENT */
  struct hipmm_resource *resource; /* NULL: `blocks` */
  struct fixed blocks;
};

struct bins {
  const struct hipmm_services *services;
  size_t count, capacity;
  struct bin *items; /* in order of size */
};

/* On failure nothing is left behind, and services->fail has said why. */
enum hipmm_status bins_open(struct bins *bins, const struct hipmm_services *services,
                            const struct bins_options *options, struct hipmm_resource *upstream);

/* The device is current. */
void bins_close(struct bins *bins);

/* The smallest bin for a request of `bytes`; NULL if all are too small. */
struct bin *bins_find(const struct bins *bins, size_t bytes);

/* Whether a block of a bin without a resource, live or free, starts at `ptr`. */
bool bins_have_start(const struct bins *bins, const void *ptr);

#endif
