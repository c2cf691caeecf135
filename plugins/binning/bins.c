/* SPDX-License-Identifier: MIT */
/* bins.c: see bins.h. */
#include "bins.h"

#include <stdio.h>
#include <string.h>

/* ---- Finding ---- */

struct bin *bins_find(const struct bins *bins, size_t bytes)
{
  size_t low = 0, high = bins->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (bins->items[middle].bytes < bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low < bins->count ? &bins->items[low] : NULL;
}

bool bins_have_start(const struct bins *bins, const void *ptr)
{
  for (size_t i = 0; i < bins->count; i++)
    if (!bins->items[i].resource && fixed_starts_at(&bins->items[i].blocks, ptr)) return true;
  return false;
}

/* ---- Reading the options ---- */

static uint64_t round_up(uint64_t bytes)
{
  return (bytes + HIPMM_ALIGNMENT - 1) / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
}

static enum hipmm_status add_listed(struct bins *bins, const struct hipmm_list *list)
{
  const struct bins_option *options = list->items;
  for (size_t i = 0; i < list->count; i++) {
    uint64_t bytes = round_up(options[i].size);
    char option[40];
    snprintf(option, sizeof option, "bins/%zu/size", i);
    if (i && bytes <= bins->items[i - 1].bytes)
      return bins->services->fail(bins->services, HIPMM_E_CONFIG, option,
                                  "%llu bytes is not above the size of the bin before (%llu); list bins from the "
                                  "smallest to the largest, at least 256 bytes apart",
                                  (unsigned long long)bytes, (unsigned long long)bins->items[i - 1].bytes);
    bins->items[bins->count++] = (struct bin){.bytes = bytes, .resource = options[i].resource};
  }
  return HIPMM_OK;
}

static void add_size(struct bins *bins, uint64_t bytes)
{
  struct bin *after = bins_find(bins, bytes);
  size_t at = after ? (size_t)(after - bins->items) : bins->count;
  if (after && after->bytes == bytes) return;
  memmove(bins->items + at + 1, bins->items + at, (bins->count - at) * sizeof *bins->items);
  bins->items[at] = (struct bin){.bytes = bytes};
  bins->count++;
}

static enum hipmm_status add_powers(struct bins *bins, int64_t first, int64_t last)
{
  const struct hipmm_services *services = bins->services;
  if (first < 0 && last < 0) return HIPMM_OK;
  if (first < 0 || last < 0)
    return services->fail(services, HIPMM_E_CONFIG, first < 0 ? "min_size_exponent" : "max_size_exponent",
                          "is missing; give both exponents, or neither");
  if (first > last)
    return services->fail(services, HIPMM_E_CONFIG, "max_size_exponent", "%lld is below min_size_exponent (%lld)",
                          (long long)last, (long long)first);
  for (int64_t exponent = first; exponent <= last; exponent++) add_size(bins, round_up(1ull << exponent));
  return HIPMM_OK;
}

/* ---- Life ---- */

static void discard(struct bins *bins)
{
  bins->services->host_free(bins->services, bins->items, bins->capacity * sizeof *bins->items);
}

/* Closes the first `count`. */
static void close_blocks(struct bins *bins, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (!bins->items[i].resource) fixed_close(&bins->items[i].blocks);
}

static enum hipmm_status open_blocks(struct bins *bins, const struct bins_options *options,
                                     struct hipmm_resource *upstream)
{
  for (size_t i = 0; i < bins->count; i++) {
    struct bin *bin = &bins->items[i];
    if (bin->resource) continue;
    enum hipmm_status status = fixed_open(&bin->blocks, bins->services, upstream, bin->bytes,
                                          (uint32_t)options->blocks_per_chunk, (enum record)options->record);
    if (!status) continue;
    close_blocks(bins, i);
    return status;
  }
  return HIPMM_OK;
}

enum hipmm_status bins_open(struct bins *bins, const struct hipmm_services *services,
                            const struct bins_options *options, struct hipmm_resource *upstream)
{
  *bins = (struct bins){.services = services, .capacity = options->bins.count + 64}; /* powers of two are fewer */
  bins->items = services->host_allocate(services, bins->capacity * sizeof *bins->items);
  if (!bins->items) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the bins");
  enum hipmm_status status = add_listed(bins, &options->bins);
  if (!status) status = add_powers(bins, options->min_size_exponent, options->max_size_exponent);
  if (!status) status = open_blocks(bins, options, upstream);
  if (status) discard(bins);
  return status;
}

void bins_close(struct bins *bins)
{
  close_blocks(bins, bins->count);
  discard(bins);
}
