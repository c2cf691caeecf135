/* SPDX-License-Identifier: MIT */
/* bins.c: see bins.h. */
#include "bins.h"

#include <stdio.h>
#include <string.h>

enum { MOST_POWERS = 64 };

/* ---- Finding ---- */

size_t bins_find(const struct bins_table *table, size_t bytes)
{
  size_t low = 0, high = table->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (table->items[middle]->bytes < bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct bin *bins_with_start(const struct bins_table *table, const void *ptr)
{
  for (size_t i = 0; i < table->count; i++)
    if (!table->items[i]->resource && fixed_covers(&table->items[i]->blocks, ptr)) return table->items[i];
  return NULL;
}

/* Whether `other`, the upstream or the resource of a bin, has the block, and got memory of `resource` for it. */
static bool bins_is_cut_up_by(const struct bins *bins, const struct hipmm_resource *other,
                              const struct hipmm_resource *resource, const void *ptr)
{
  const struct hipmm_services *services = bins->services;
  struct hipmm_block block;
  return other && other != resource && services->may_cut_up(services, other, resource) &&
         !services->find_in(services, other, ptr, &block);
}

/* Whether the resource of a bin has the block, as a block and not as a chunk of others. */
static bool bins_resource_has(const struct bins *bins, const struct bins_table *table, const struct bin *bin,
                              size_t bytes, const void *ptr)
{
  struct hipmm_block block;
  if (bins->services->find_in(bins->services, bin->resource, ptr, &block) || block.bytes != bytes) return false;
  if (!atomic_load_explicit(&bin->has_chunks, memory_order_relaxed)) return !bins_with_start(table, ptr);
  bool is_chunk = bins_with_start(table, ptr) || bins_is_cut_up_by(bins, bins->upstream, bin->resource, ptr);
  for (size_t i = 0; i < table->count && !is_chunk; i++)
    is_chunk = bins_is_cut_up_by(bins, table->items[i]->resource, bin->resource, ptr);
  return !is_chunk;
}

/* Before a bin was added, its requests went to the next larger bin. A bin that was there from the beginning ends the
 * search. */
struct bin *bins_find_of(const struct bins *bins, size_t bytes, const void *ptr)
{
  const struct bins_table *table = bins_table(bins);
  for (size_t i = bins_find(table, bytes); i < table->count; i++) {
    struct bin *bin = table->items[i];
    if (!bin->is_added) return bin;
    if (bin->resource ? bins_resource_has(bins, table, bin, bytes, ptr) : fixed_covers(&bin->blocks, ptr)) return bin;
  }
  return NULL;
}

bool bins_may_find_resource(const struct bins_table *table, size_t bytes)
{
  size_t i = bins_find(table, bytes);
  while (i < table->count && !table->items[i]->resource && table->items[i]->is_added) i++;
  return i < table->count && table->items[i]->resource;
}

/* ---- Validating the options ---- */

static void bins_validate_size(const struct hipmm_validation *validation, const struct bins_option *options, size_t i)
{
  char option[40], resource[40];
  uint64_t bytes = sizes_round_up(options[i].size, HIPMM_ALIGNMENT), block_bytes;
  uint64_t before = i ? sizes_round_up(options[i - 1].size, HIPMM_ALIGNMENT) : 0;
  snprintf(option, sizeof option, "bins/%zu/size", i);
  snprintf(resource, sizeof resource, "bins/%zu/resource", i);
  if (bytes <= before)
    validation->error(validation, option,
                      "%llu bytes is not above the size of the bin before (%llu); list bins from the smallest to the "
                      "largest, at least 256 bytes apart",
                      (unsigned long long)bytes, (unsigned long long)before);
  if (validation->bytes_of(validation, resource, "block_size", &block_bytes) &&
      sizes_round_up(block_bytes, HIPMM_ALIGNMENT) < bytes)
    validation->warn(validation, option,
                     "requests of up to %llu bytes go to a resource that refuses those above its block_size, %llu; "
                     "write the same size in both",
                     (unsigned long long)bytes, (unsigned long long)block_bytes);
}

static void bins_validate_powers(const struct hipmm_validation *validation, int64_t first, int64_t last)
{
  if ((first < 0) != (last < 0))
    validation->error(validation, first < 0 ? "min_size_exponent" : "max_size_exponent",
                      "is missing; give both exponents, or neither");
  else if (first > last)
    validation->error(validation, "max_size_exponent", "%lld is below min_size_exponent (%lld)", (long long)last,
                      (long long)first);
}

void bins_validate(const struct hipmm_validation *validation, const void *given)
{
  const struct bins_options *options = given;
  for (size_t i = 0; i < options->bins.count; i++) bins_validate_size(validation, options->bins.items, i);
  bins_validate_powers(validation, options->min_size_exponent, options->max_size_exponent);
  if (!options->bins.count && !options->extra_bins.count && options->min_size_exponent < 0 &&
      options->max_size_exponent < 0)
    validation->warn(validation, NULL,
                     "has no bins, so every request goes to its upstream; write \"bins\": [{\"size\": \"64KiB\"}]");
}

/* ---- Reading the options ---- */

/* Sizes and resources of bins that are not opened yet, in order of size. */
struct plan {
  const struct hipmm_services *services;
  size_t count, capacity;
  struct bins_option *items;
};

/* The sizes rise: bins_validate() has refused all others. */
static void bins_plan_list(struct plan *plan, const struct hipmm_list *list)
{
  const struct bins_option *options = list->items;
  for (size_t i = 0; i < list->count; i++)
    plan->items[plan->count++] =
        (struct bins_option){sizes_round_up(options[i].size, HIPMM_ALIGNMENT), options[i].resource};
}

/* Index of a size in the plan, or where it would be inserted. */
static size_t bins_plan_find(const struct plan *plan, uint64_t bytes)
{
  size_t at = 0;
  while (at < plan->count && plan->items[at].size < bytes) at++;
  return at;
}

static bool bins_plan_has(const struct plan *plan, uint64_t bytes)
{
  size_t at = bins_plan_find(plan, bytes);
  return at < plan->count && plan->items[at].size == bytes;
}

/* Adds a size unless the plan has it; false if the plan has it with another resource. */
static bool bins_plan_size(struct plan *plan, struct bins_option wanted)
{
  uint64_t bytes = sizes_round_up(wanted.size, HIPMM_ALIGNMENT);
  size_t at = bins_plan_find(plan, bytes);
  if (bins_plan_has(plan, bytes)) return !wanted.resource || wanted.resource == plan->items[at].resource;
  memmove(plan->items + at + 1, plan->items + at, (plan->count - at) * sizeof *plan->items);
  plan->items[at] = (struct bins_option){bytes, wanted.resource};
  plan->count++;
  return true;
}

static enum hipmm_status bins_plan_extra(struct plan *plan, const struct hipmm_list *list)
{
  const struct bins_option *options = list->items;
  char option[48];
  for (size_t i = 0; i < list->count; i++) {
    if (bins_plan_size(plan, options[i])) continue;
    snprintf(option, sizeof option, "extra_bins/%zu/resource", i);
    return plan->services->fail(plan->services, HIPMM_E_CONFIG, option,
                                "the bin of %llu bytes is listed before without this resource; list each size once",
                                (unsigned long long)sizes_round_up(options[i].size, HIPMM_ALIGNMENT));
  }
  return HIPMM_OK;
}

static void bins_plan_powers(struct plan *plan, int64_t first, int64_t last)
{
  for (int64_t exponent = first; exponent >= 0 && exponent <= last; exponent++)
    bins_plan_size(plan, (struct bins_option){.size = UINT64_C(1) << exponent});
}

static enum hipmm_status bins_refuse_host_memory(const struct hipmm_services *services)
{
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the bins");
}

static void bins_plan_discard(struct plan *plan)
{
  plan->services->host_free(plan->services, plan->items, plan->capacity * sizeof *plan->items);
}

/* On success, bins_plan_discard() must be called. */
static enum hipmm_status bins_plan_read(struct plan *plan, const struct hipmm_services *services,
                                        const struct bins_options *options)
{
  *plan =
      (struct plan){.services = services, .capacity = options->bins.count + options->extra_bins.count + MOST_POWERS};
  plan->items = services->host_allocate(services, plan->capacity * sizeof *plan->items);
  if (!plan->items) return bins_refuse_host_memory(services);
  bins_plan_list(plan, &options->bins);
  enum hipmm_status status = bins_plan_extra(plan, &options->extra_bins);
  if (status)
    bins_plan_discard(plan);
  else
    bins_plan_powers(plan, options->min_size_exponent, options->max_size_exponent);
  return status;
}

/* ---- Tables ---- */

static size_t bins_table_bytes(size_t count)
{
  return sizeof(struct bins_table) + count * sizeof(struct bin *);
}

static void bins_discard_table(const struct hipmm_services *services, struct bins_table *table)
{
  services->host_free(services, table, bins_table_bytes(table->count));
}

static void bins_close_bin(const struct hipmm_services *services, struct bin *bin)
{
  if (!bin->resource) fixed_close(&bin->blocks);
  services->host_free(services, bin, sizeof *bin);
}

static enum hipmm_status bins_open_bin(const struct bins *bins, const struct bins_options *options,
                                       const struct bins_option *wanted, struct bin **bin_out)
{
  const struct hipmm_services *services = bins->services;
  struct bin *bin = services->host_allocate(services, sizeof *bin);
  if (!bin) return bins_refuse_host_memory(services);
  *bin = (struct bin){.bytes = wanted->size, .resource = wanted->resource, .is_added = bins_table(bins) != NULL};
  struct fixed_size_options of_blocks = options->of_blocks;
  of_blocks.block_size = bin->bytes;
  enum hipmm_status status = bin->resource ? HIPMM_OK : fixed_open(&bin->blocks, services, bins->upstream, &of_blocks);
  if (status)
    services->host_free(services, bin, sizeof *bin);
  else
    *bin_out = bin;
  return status;
}

static struct bin *bins_bin_of_size(const struct bins_table *table, uint64_t bytes)
{
  size_t at = table ? bins_find(table, bytes) : 0;
  return table && at < table->count && table->items[at]->bytes == bytes ? table->items[at] : NULL;
}

/* Copies the bins of the older table and opens the others. */
static enum hipmm_status bins_fill_table(const struct bins *bins, const struct bins_options *options,
                                         const struct plan *plan, struct bins_table *table)
{
  for (size_t i = 0; i < plan->count; i++) {
    table->items[i] = bins_bin_of_size(table->older, plan->items[i].size);
    enum hipmm_status status =
        table->items[i] ? HIPMM_OK : bins_open_bin(bins, options, &plan->items[i], &table->items[i]);
    if (!status) continue;
    while (i-- > 0)
      if (!bins_bin_of_size(table->older, table->items[i]->bytes)) bins_close_bin(bins->services, table->items[i]);
    return status;
  }
  return HIPMM_OK;
}

/* Whether a live block of `resource` may be a chunk of the upstream, or of the resource of another bin. */
static bool bins_has_chunks(const struct bins *bins, const struct bins_table *table,
                            const struct hipmm_resource *resource)
{
  const struct hipmm_services *services = bins->services;
  for (size_t i = 0; i < table->count; i++) {
    const struct hipmm_resource *other = table->items[i]->resource;
    if (other && other != resource && services->may_cut_up(services, other, resource)) return true;
  }
  return bins->upstream != resource && services->may_cut_up(services, bins->upstream, resource);
}

/* Before the table is in force: what was no chunk without the new bins may be one with them. */
static void bins_mark_chunks(struct bins *bins, const struct bins_table *table)
{
  for (size_t i = 0; i < table->count; i++)
    if (table->items[i]->resource)
      atomic_store(&table->items[i]->has_chunks, bins_has_chunks(bins, table, table->items[i]->resource));
  atomic_store(&bins->upstream_has_chunks, bins_has_chunks(bins, table, bins->upstream));
}

static enum hipmm_status bins_set_table(struct bins *bins, const struct bins_options *options, const struct plan *plan)
{
  const struct hipmm_services *services = bins->services;
  struct bins_table *table = services->host_allocate(services, bins_table_bytes(plan->count));
  if (!table) return bins_refuse_host_memory(services);
  table->count = plan->count;
  table->older = atomic_load_explicit(&bins->table, memory_order_relaxed);
  enum hipmm_status status = bins_fill_table(bins, options, plan, table);
  if (status) {
    bins_discard_table(services, table);
    return status;
  }
  bins_mark_chunks(bins, table);
  atomic_store_explicit(&bins->table, table, memory_order_release);
  return HIPMM_OK;
}

/* ---- Life ---- */

enum hipmm_status bins_open(struct bins *bins, const struct hipmm_services *services,
                            const struct bins_options *options, struct hipmm_resource *upstream)
{
  struct plan plan;
  bins->services = services;
  bins->upstream = upstream;
  enum hipmm_status status = bins_plan_read(&plan, services, options);
  if (status) return status;
  status = bins_set_table(bins, options, &plan);
  bins_plan_discard(&plan);
  return status;
}

void bins_close(struct bins *bins)
{
  struct bins_table *table = atomic_load_explicit(&bins->table, memory_order_relaxed);
  for (size_t i = 0; i < table->count; i++) bins_close_bin(bins->services, table->items[i]);
  for (struct bins_table *older; table; table = older) {
    older = table->older;
    bins_discard_table(bins->services, table);
  }
}

/* ---- Adding ---- */

static enum hipmm_status bins_check_kept(const struct bins_table *table, const struct plan *plan)
{
  for (size_t i = 0; i < table->count; i++) {
    const struct bin *bin = table->items[i];
    bool is_kept = bins_plan_has(plan, bin->bytes);
    if (is_kept && plan->items[bins_plan_find(plan, bin->bytes)].resource == bin->resource) continue;
    return plan->services->fail(plan->services, HIPMM_E_CONFIG, "extra_bins",
                                is_kept ? "the bin of %llu bytes may be in use, so that its resource cannot be changed"
                                        : "the bin of %llu bytes may be in use and cannot be removed; list it again",
                                (unsigned long long)bin->bytes);
  }
  return HIPMM_OK;
}

/* Whether blocks of one of the two may be live blocks of the other, at the same addresses: then nothing tells, once a bin
 * was added, from which of them a block is. */
static bool bins_share_blocks(const struct bins *bins, const struct hipmm_resource *one,
                              const struct hipmm_resource *other)
{
  const struct hipmm_services *services = bins->services;
  return other && one != other && services->may_cut_up(services, one, other) &&
         services->may_cut_up(services, other, one);
}

static enum hipmm_status bins_check_added(const struct bins *bins, const struct bins_table *table,
                                          const struct plan *plan)
{
  for (size_t i = 0; i < plan->count; i++) {
    const struct hipmm_resource *resource = plan->items[i].resource;
    if (!resource || bins_bin_of_size(table, plan->items[i].size)) continue;
    bool shares = bins_share_blocks(bins, resource, bins->upstream);
    for (size_t k = 0; k < plan->count; k++) shares |= bins_share_blocks(bins, resource, plan->items[k].resource);
    if (shares)
      return plan->services->fail(
          plan->services, HIPMM_E_CONFIG, "extra_bins",
          "the resource of the bin of %llu bytes passes on blocks of the upstream or of another "
          "bin, or they pass on its blocks; name the resource itself, or one that divides memory",
          (unsigned long long)plan->items[i].size);
  }
  return HIPMM_OK;
}

enum hipmm_status bins_add(struct bins *bins, const struct bins_options *options)
{
  struct plan plan;
  const struct bins_table *table = bins_table(bins);
  enum hipmm_status status = bins_plan_read(&plan, bins->services, options);
  if (status) return status;
  status = bins_check_kept(table, &plan);
  if (!status) status = bins_check_added(bins, table, &plan);
  if (!status && plan.count > table->count) status = bins_set_table(bins, options, &plan);
  bins_plan_discard(&plan);
  return status;
}
