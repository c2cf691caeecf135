/* SPDX-License-Identifier: MIT */
/* statistics.c: an adaptor that counts requested bytes and allocations: now, at their peak, and in all, in scopes
 * that can be pushed and popped, as RMM does.
 *
 * An allocation is counted after it succeeded, a free before it is passed on (or another thread could be given the
 * memory and count it first, and the peak would lie); a free that the upstream refuses is taken back and leaves no
 * trace. All six counters of a scope change together under a lock of a few instructions, so totals are exact, a
 * reader sees counters that belong together, and the peak is the largest `current` that there was in the order in
 * which threads took the lock. */
#include <hipmm/plugin.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum statistics_value { CURRENT_BYTES, CURRENT_COUNT, PEAK_BYTES, PEAK_COUNT, TOTAL_BYTES, TOTAL_COUNT, N_VALUES };

enum { SPINS_BEFORE_YIELD = 64 };

/* `parent` is NULL in the outermost. */
struct scope {
  int64_t values[N_VALUES];
  struct scope *parent;
};

struct statistics {
  struct scope *scope; /* the innermost */
  atomic_flag lock;    /* scopes and their values */
  struct scope outermost;
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
};

/* ---- The lock: an exchange and a store when nobody else wants it. Nothing is called while it is held. ---- */

static void statistics_lock(struct statistics *statistics)
{
  for (int spins = 0; atomic_flag_test_and_set_explicit(&statistics->lock, memory_order_acquire); spins++)
    if (spins >= SPINS_BEFORE_YIELD) sched_yield(); /* its holder may have lost the processor */
}

static void statistics_unlock(struct statistics *statistics)
{
  atomic_flag_clear_explicit(&statistics->lock, memory_order_release);
}

/* ---- Counting ---- */

static void raise_to(int64_t *peak, int64_t value)
{
  if (value > *peak) *peak = value;
}

static void count_allocation(struct statistics *statistics, int64_t bytes)
{
  statistics_lock(statistics);
  int64_t *values = statistics->scope->values;
  values[CURRENT_BYTES] += bytes;
  values[CURRENT_COUNT] += 1;
  values[TOTAL_BYTES] += bytes;
  values[TOTAL_COUNT] += 1;
  raise_to(&values[PEAK_BYTES], values[CURRENT_BYTES]);
  raise_to(&values[PEAK_COUNT], values[CURRENT_COUNT]);
  statistics_unlock(statistics);
}

/* A free, or with -1 a free taken back, which is no allocation: totals and peaks stay. */
static void count_free(struct statistics *statistics, int64_t bytes, int64_t times)
{
  statistics_lock(statistics);
  statistics->scope->values[CURRENT_BYTES] -= times * bytes;
  statistics->scope->values[CURRENT_COUNT] -= times;
  statistics_unlock(statistics);
}

static enum hipmm_status statistics_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream,
                                             void **ptr_out)
{
  struct statistics *statistics = self;
  enum hipmm_status status = hipmm_upstream_allocate(statistics->upstream, bytes, alignment, stream, ptr_out);
  if (!status) count_allocation(statistics, (int64_t)bytes);
  return status;
}

/* NULL is what an allocation of zero bytes gave, and counts as one. */
static enum hipmm_status statistics_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                               hipStream_t stream)
{
  struct statistics *statistics = self;
  struct hipmm_block block = {.ptr = ptr, .bytes = ptr ? bytes : 0};
  enum hipmm_status status = HIPMM_OK;
  if (ptr && !bytes) status = statistics->services->find_below(statistics->services, ptr, &block);
  if (status) return status;
  count_free(statistics, (int64_t)block.bytes, 1);
  status = hipmm_upstream_deallocate(statistics->upstream, ptr, block.bytes, alignment, stream);
  if (status) count_free(statistics, (int64_t)block.bytes, -1);
  return status;
}

/* ---- Values ---- */

static const struct hipmm_feature statistics_values[N_VALUES] = {
    [CURRENT_BYTES] = {"current_bytes", "bytes", "Allocated now; negative where older memory was freed in this scope"},
    [CURRENT_COUNT] = {"current_count", "allocations", "Allocations live now"},
    [PEAK_BYTES] = {"peak_bytes", "bytes", "The most that was allocated at once"},
    [PEAK_COUNT] = {"peak_count", "allocations", "The most allocations that were live at once"},
    [TOTAL_BYTES] = {"total_bytes", "bytes", "Sum of all allocations"},
    [TOTAL_COUNT] = {"total_count", "allocations", "Number of all allocations"},
};

static enum hipmm_status statistics_query(void *self, size_t index, int64_t *value_out)
{
  struct statistics *statistics = self;
  statistics_lock(statistics);
  *value_out = statistics->scope->values[index];
  statistics_unlock(statistics);
  return HIPMM_OK;
}

/* ---- Scopes ---- */

enum statistics_action { PUSH, POP };

static const struct hipmm_feature statistics_actions[] = {
    [PUSH] = {.name = "push", .doc = "Starts a scope: all counters begin again at 0; gives those of the scope before"},
    [POP] = {.name = "pop", .doc = "Ends a scope: gives its counters and adds them to those of the scope before"},
};

static enum hipmm_status push(struct statistics *statistics, int64_t *values_out)
{
  const struct hipmm_services *services = statistics->services;
  struct scope *scope = services->host_allocate(services, sizeof *scope);
  if (!scope) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for another scope");
  statistics_lock(statistics);
  memcpy(values_out, statistics->scope->values, sizeof statistics->scope->values);
  scope->parent = statistics->scope;
  statistics->scope = scope;
  statistics_unlock(statistics);
  return HIPMM_OK;
}

/* What the child reached at its peak came on top of what the parent had when it was pushed. */
static void merge(int64_t *parent, const int64_t *child)
{
  raise_to(&parent[PEAK_BYTES], parent[CURRENT_BYTES] + child[PEAK_BYTES]);
  raise_to(&parent[PEAK_COUNT], parent[CURRENT_COUNT] + child[PEAK_COUNT]);
  parent[CURRENT_BYTES] += child[CURRENT_BYTES];
  parent[CURRENT_COUNT] += child[CURRENT_COUNT];
  parent[TOTAL_BYTES] += child[TOTAL_BYTES];
  parent[TOTAL_COUNT] += child[TOTAL_COUNT];
}

static enum hipmm_status pop(struct statistics *statistics, int64_t *values_out)
{
  const struct hipmm_services *services = statistics->services;
  statistics_lock(statistics);
  struct scope *scope = statistics->scope;
  if (scope->parent) {
    memcpy(values_out, scope->values, sizeof scope->values);
    merge(scope->parent->values, scope->values);
    statistics->scope = scope->parent;
  }
  statistics_unlock(statistics);
  if (scope == &statistics->outermost)
    return services->fail(services, HIPMM_E_STATE, NULL, "cannot pop the last counter pair: nothing was pushed");
  services->host_free(services, scope, sizeof *scope);
  return HIPMM_OK;
}

static enum hipmm_status statistics_perform(void *self, size_t index, int64_t *values_out)
{
  return index == PUSH ? push(self, values_out) : pop(self, values_out);
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
  statistics->scope = &statistics->outermost;
  atomic_flag_clear(&statistics->lock);
  *self_out = statistics;
  return HIPMM_OK;
}

static void statistics_destroy(void *self)
{
  struct statistics *statistics = self;
  const struct hipmm_services *services = statistics->services;
  while (statistics->scope->parent) {
    struct scope *scope = statistics->scope;
    statistics->scope = scope->parent;
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
};

HIPMM_EXPORT extern const struct hipmm_plugin statistics_LTX_hipmm_plugin;

const struct hipmm_plugin statistics_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "statistics",
    .version = "1.0",
    .doc = "Counts requested bytes and allocations: now, at their peak, and in all",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .values = statistics_values,
    .n_values = N_VALUES,
    .actions = statistics_actions,
    .n_actions = sizeof statistics_actions / sizeof *statistics_actions,
    .ops = &statistics_ops,
    .create = statistics_create,
    .destroy = statistics_destroy,
};
