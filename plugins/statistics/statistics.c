/* SPDX-License-Identifier: MIT */
/* statistics.c: an adaptor that counts requested bytes and allocations: now, at their peak, and in all, in scopes that
 * can be pushed and popped, as in RMM.
 *
 * An allocation counts after it has succeeded. A free counts before it is forwarded: otherwise another thread could
 * allocate the memory and count it first, and the peak would be too high. A free that the upstream refuses is undone.
 * All counters are exact under any number of threads (counters.h): the calls count in one order, which agrees with what
 * each thread does and sees; the peak is the largest `current` in that order; and a reader gets counters of one
 * moment. */
#include "../common/descriptor.h"
#include "counters.h"

enum statistics_value { CURRENT_BYTES, CURRENT_COUNT, PEAK_BYTES, PEAK_COUNT, TOTAL_BYTES, TOTAL_COUNT, N_VALUES };

/* An enclosing scope: its counters when the inner scope was pushed. */
struct scope {
  struct sums sums;
  struct amount most;
  struct scope *parent;
};

/* What is not constant changes while the counters are stopped. */
struct statistics {
  struct counters counters; /* of the innermost scope */
  struct amount most;       /* its peaks before they were reset; a scope ends with the peaks of all its time */
  struct scope *scopes;     /* the enclosing scopes, innermost first */
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
};

/* ---- Counting ---- */

static void statistics_count_allocation(struct statistics *statistics, size_t bytes)
{
  counters_add(&statistics->counters, (struct amount){(int64_t)bytes, 1}, true);
}

static void statistics_count_free(struct statistics *statistics, size_t bytes)
{
  counters_add(&statistics->counters, (struct amount){(int64_t)(0 - bytes), -1}, false);
}

/* The block was live all the time: together with what other threads allocated meanwhile it may be a peak. */
static void statistics_restore_free(struct statistics *statistics, size_t bytes)
{
  counters_add(&statistics->counters, (struct amount){(int64_t)bytes, 1}, false);
}

static enum hipmm_status statistics_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                             void **ptr_out)
{
  struct statistics *statistics = self;
  enum hipmm_status status = hipmm_upstream_allocate(statistics->upstream, bytes, alignment, stream, ptr_out);
  if (!status) statistics_count_allocation(statistics, bytes);
  return status;
}

/* An allocation of zero bytes gives NULL and counts, so the free of NULL counts too. */
static enum hipmm_status statistics_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                               hipmm_stream_t stream)
{
  struct statistics *statistics = self;
  struct hipmm_block block = {.ptr = ptr, .bytes = ptr ? bytes : 0};
  enum hipmm_status status = HIPMM_OK;
  if (ptr && !bytes) status = statistics->services->find_below(statistics->services, ptr, &block);
  if (status) return status;
  statistics_count_free(statistics, block.bytes);
  status = hipmm_upstream_deallocate(statistics->upstream, ptr, block.bytes, alignment, stream);
  if (status) statistics_restore_free(statistics, block.bytes);
  return status;
}

/* The locks of counters are held for a few instructions only. */
static int statistics_try_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct statistics *statistics = self;
  const struct hipmm_resource *upstream = statistics->upstream;
  if (!upstream->ops->try_allocate || !upstream->ops->try_allocate(upstream->self, bytes, alignment, stream, ptr_out))
    return 0;
  statistics_count_allocation(statistics, bytes);
  return 1;
}

static int statistics_try_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct statistics *statistics = self;
  const struct hipmm_resource *upstream = statistics->upstream;
  if (!ptr || !bytes || !upstream->ops->try_deallocate) return 0;
  statistics_count_free(statistics, bytes);
  int done = upstream->ops->try_deallocate(upstream->self, ptr, bytes, alignment, stream);
  if (!done) statistics_restore_free(statistics, bytes);
  return done;
}

/* ---- Values ---- */

static const struct hipmm_feature statistics_values[N_VALUES] = {
    [CURRENT_BYTES] = {"current_bytes", "bytes",
                       "Bytes allocated now; negative if blocks from before the scope were freed in it"},
    [CURRENT_COUNT] = {"current_count", "allocations", "Allocations live now"},
    [PEAK_BYTES] = {"peak_bytes", "bytes", "The most bytes allocated at once"},
    [PEAK_COUNT] = {"peak_count", "allocations", "The most allocations live at once"},
    [TOTAL_BYTES] = {"total_bytes", "bytes", "Sum of all allocations"},
    [TOTAL_COUNT] = {"total_count", "allocations", "Number of all allocations"},
};

static void statistics_values_of(struct sums sums, int64_t *values_out)
{
  values_out[CURRENT_BYTES] = sums.now.bytes;
  values_out[CURRENT_COUNT] = sums.now.count;
  values_out[PEAK_BYTES] = sums.peak.bytes;
  values_out[PEAK_COUNT] = sums.peak.count;
  values_out[TOTAL_BYTES] = sums.total.bytes;
  values_out[TOTAL_COUNT] = sums.total.count;
}

static enum hipmm_status statistics_query(void *self, size_t index, int64_t *value_out)
{
  struct statistics *statistics = self;
  int64_t values[N_VALUES];
  counters_stop(&statistics->counters);
  struct sums sums = counters_read(&statistics->counters);
  counters_resume(&statistics->counters);
  statistics_values_of(sums, values);
  *value_out = values[index];
  return HIPMM_OK;
}

/* ---- Scopes ---- */

enum statistics_action { PUSH, POP, RESET_PEAKS };

static const struct hipmm_feature statistics_actions[] = {
    [PUSH] = {.name = "push",
              .doc = "Starts a scope: all counters begin again at 0. Returns the counters of the enclosing scope"},
    [POP] = {.name = "pop",
             .doc = "Ends a scope: returns its counters, with the peaks of all its time, and adds them to the "
                    "enclosing scope"},
    [RESET_PEAKS] = {.name = "reset_peaks", .doc = "Starts both peaks of this scope again from what is allocated now"},
};

static enum hipmm_status statistics_push(struct statistics *statistics, int64_t *values_out)
{
  const struct hipmm_services *services = statistics->services;
  struct scope *scope = services->host_allocate(services, sizeof *scope);
  if (!scope) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for another scope");
  counters_stop(&statistics->counters);
  *scope = (struct scope){counters_read(&statistics->counters), statistics->most, statistics->scopes};
  statistics_values_of(scope->sums, values_out);
  statistics->scopes = scope;
  statistics->most = (struct amount){0, 0};
  counters_set(&statistics->counters, (struct sums){0});
  counters_resume(&statistics->counters);
  return HIPMM_OK;
}

static void statistics_raise(struct amount *peak, struct amount to)
{
  if (to.bytes > peak->bytes) peak->bytes = to.bytes;
  if (to.count > peak->count) peak->count = to.count;
}

/* The parent's current amount at the push plus the child's peak may be the parent's new peak. */
static struct sums statistics_merged(struct sums parent, struct sums child)
{
  statistics_raise(&parent.peak, amount_sum(parent.now, child.peak));
  parent.now = amount_sum(parent.now, child.now);
  parent.total = amount_sum(parent.total, child.total);
  return parent;
}

static enum hipmm_status statistics_pop(struct statistics *statistics, int64_t *values_out)
{
  const struct hipmm_services *services = statistics->services;
  counters_stop(&statistics->counters);
  struct scope *scope = statistics->scopes;
  if (scope) {
    struct sums sums = counters_read(&statistics->counters);
    statistics_raise(&sums.peak, statistics->most);
    statistics_values_of(sums, values_out);
    statistics->scopes = scope->parent;
    statistics->most = scope->most;
    counters_set(&statistics->counters, statistics_merged(scope->sums, sums));
  }
  counters_resume(&statistics->counters);
  if (!scope)
    return services->fail(services, HIPMM_E_STATE, NULL, "cannot pop the last counter pair: nothing was pushed");
  services->host_free(services, scope, sizeof *scope);
  return HIPMM_OK;
}

static enum hipmm_status statistics_reset_peaks(struct statistics *statistics, int64_t *values_out)
{
  counters_stop(&statistics->counters);
  struct sums sums = counters_read(&statistics->counters);
  statistics_values_of(sums, values_out);
  statistics_raise(&statistics->most, sums.peak);
  sums.peak = sums.now;
  counters_set(&statistics->counters, sums);
  counters_resume(&statistics->counters);
  return HIPMM_OK;
}

static enum hipmm_status statistics_perform(void *self, size_t index, int64_t *values_out)
{
  switch ((enum statistics_action)index) {
  case PUSH: return statistics_push(self, values_out);
  case POP: return statistics_pop(self, values_out);
  case RESET_PEAKS: return statistics_reset_peaks(self, values_out);
  }
  return HIPMM_E_INTERNAL;
}

/* ---- Life ---- */

static enum hipmm_status statistics_create(const struct hipmm_services *services, const void *options,
                                           struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)n_upstreams; /* none, and one */
  struct statistics *statistics = services->host_allocate(services, sizeof *statistics);
  if (!statistics)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  statistics->services = services;
  statistics->upstream = upstreams[0];
  counters_open(&statistics->counters);
  *self_out = statistics;
  return HIPMM_OK;
}

static void statistics_destroy(void *self)
{
  struct statistics *statistics = self;
  const struct hipmm_services *services = statistics->services;
  while (statistics->scopes) {
    struct scope *scope = statistics->scopes;
    statistics->scopes = scope->parent;
    services->host_free(services, scope, sizeof *scope);
  }
  services->host_free(services, statistics, sizeof *statistics);
}

static const struct hipmm_ops statistics_ops = {
    .struct_size = sizeof statistics_ops,
    .allocate = statistics_allocate,
    .deallocate = statistics_deallocate,
    .query = statistics_query,
    .perform = statistics_perform,
    .try_allocate = statistics_try_allocate,
    .try_deallocate = statistics_try_deallocate,
};

HIPMM_EXPORT extern const struct hipmm_plugin statistics_LTX_hipmm_plugin;

const struct hipmm_plugin statistics_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    .type = "statistics",
    .version = "1.0",
    .doc = "Counts requested bytes and allocations: now, at their peak, and in all",
    PLUGIN_VALUES(statistics_values),
    PLUGIN_ACTIONS(statistics_actions),
    .ops = &statistics_ops,
    .create = statistics_create,
    .destroy = statistics_destroy,
};
