/* SPDX-License-Identifier: MIT */
/* guard.c: an adaptor that finds writes outside of blocks and writes after a free, which device memory has no other
 * guard against. Round each block it lays zones of a known pattern, and looks at them when the block is freed; freed
 * blocks it fills with another pattern and keeps back for a while, and looks at all of them before they go on.
 *
 * It works for all memory that the runtime copies from: on a device, managed, pinned or plain. A free waits for its
 * stream (for the device, if the block was allocated on another), so that all that wrote to the block has written.
 * Writes of the very pattern, and beyond the zones, are not found; nor what a free on a stream that is captured would
 * have to wait for. */
#include "../../core/base/cancel.h"
#include "blocks.h"
#include "check.h"
#include "quarantine.h"

/* ---- Giving back ---- */

static enum hipmm_status guard_trim(void *self, size_t keep_bytes)
{
  struct guard *guard = self;
  int previous = guard->services->enter_device(guard->services);
  enum hipmm_status status = quarantine_shrink(guard, keep_bytes, NULL);
  guard->services->leave_device(guard->services, previous);
  live_blocks_trim(&guard->live);
  return status;
}

/* ---- Verifying all ---- */

struct guard_verifying {
  struct guard *guard;
  enum hipmm_status status;
  uint64_t damaged;
};

static void guard_verify_one(void *closure, void *record)
{
  struct guard_verifying *verifying = closure;
  struct check_finds finds = {0};
  if (verifying->status) return;
  verifying->status = check_block(verifying->guard, record, false, "it was verified", &finds);
  verifying->damaged += check_found(&finds);
}

/* The device is waited for twice: the second time nothing more comes, and there is little to wait for while all others
 * must. */
static enum hipmm_status guard_verify(struct guard *guard, uint64_t *damaged_out)
{
  struct guard_verifying verifying = {.guard = guard};
  enum hipmm_status status = memory_wait_for_device(&guard->memory);
  if (status) return status;
  int cancel = cancel_forbid();
  live_blocks_lock(&guard->live);
  verifying.status = memory_wait_for_device(&guard->memory);
  pthread_mutex_lock(&guard->lock);
  live_blocks_each(&guard->live, guard_verify_one, &verifying);
  if (!verifying.status) verifying.status = quarantine_verify(guard, &verifying.damaged);
  pthread_mutex_unlock(&guard->lock);
  live_blocks_unlock(&guard->live);
  cancel_allow(cancel);
  *damaged_out = verifying.damaged;
  return verifying.status;
}

/* ---- Looking ---- */

static enum hipmm_status guard_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct guard *guard = self;
  return live_blocks_find_block(&guard->live, ptr, block_out);
}

static enum hipmm_status guard_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent),
                                     void *closure)
{
  struct guard *guard = self;
  enum hipmm_status status = live_blocks_visit(&guard->live, see, closure);
  if (status) return status;
  pthread_mutex_lock(&guard->lock);
  quarantine_visit(guard, see, closure);
  pthread_mutex_unlock(&guard->lock);
  return HIPMM_OK;
}

/* ---- Values and actions ---- */

enum guard_value {
  OVERRUNS,
  UNDERRUNS,
  WRITES_AFTER_FREE,
  DOUBLE_FREES,
  GUARDED_BYTES,
  GUARDED_COUNT,
  QUARANTINE_BYTES,
  QUARANTINE_COUNT,
  METADATA_BYTES,
  N_VALUES
};

static const struct hipmm_feature guard_values[N_VALUES] = {
    [OVERRUNS] = {"overruns", "finds", "Blocks that were found written past their end"},
    [UNDERRUNS] = {"underruns", "finds", "Blocks that were found written before their start"},
    [WRITES_AFTER_FREE] = {"writes_after_free", "finds", "Blocks that were found written after they were freed"},
    [DOUBLE_FREES] = {"double_frees", "frees", "Frees that were refused of blocks still kept back"},
    [GUARDED_BYTES] = {"guarded_bytes", "bytes", "Allocated now, as requested"},
    [GUARDED_COUNT] = {"guarded_count", "blocks", "Allocated now"},
    [QUARANTINE_BYTES] = {"quarantine_bytes", "bytes", "Memory of freed blocks that are kept back, zones included"},
    [QUARANTINE_COUNT] = {"quarantine_count", "blocks", "Freed blocks that are kept back"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for what is known about blocks"},
};

static void guard_count(struct guard *guard, int64_t *values_out)
{
  struct live_blocks_counts counts = live_blocks_count(&guard->live);
  const struct quarantine *quarantine = &guard->quarantine;
  pthread_mutex_lock(&guard->lock);
  values_out[OVERRUNS] = guard->overruns;
  values_out[UNDERRUNS] = guard->underruns;
  values_out[WRITES_AFTER_FREE] = guard->writes_after_free;
  values_out[DOUBLE_FREES] = guard->double_frees;
  values_out[GUARDED_BYTES] = counts.bytes;
  values_out[GUARDED_COUNT] = counts.count;
  values_out[QUARANTINE_BYTES] = (int64_t)quarantine->bytes;
  values_out[QUARANTINE_COUNT] = (int64_t)quarantine->count;
  values_out[METADATA_BYTES] = counts.metadata_bytes + stack_traces_metadata_bytes(&guard->traces) +
                               (int64_t)(quarantine->capacity * sizeof *quarantine->items);
  pthread_mutex_unlock(&guard->lock);
}

static enum hipmm_status guard_query(void *self, size_t index, int64_t *value_out)
{
  int64_t values[N_VALUES];
  guard_count(self, values);
  *value_out = values[index];
  return HIPMM_OK;
}

static const struct hipmm_feature guard_actions[] = {
    {.name = "verify",
     .doc =
         "Waits for the device and looks at every block, allocated or kept back; fails as a free would if `on_damage` "
         "says so"},
};

/* There is one action. */
static enum hipmm_status guard_perform(void *self, size_t index, int64_t *values_out)
{
  struct guard *guard = self;
  const struct hipmm_services *services = guard->services;
  uint64_t damaged = 0;
  (void)index;
  int previous = services->enter_device(services);
  enum hipmm_status status = guard_verify(guard, &damaged);
  services->leave_device(services, previous);
  if (status) return status;
  if (damaged && guard_is_on(&guard->options.on_damage))
    return services->refuse(services, HIPMM_E_SIZE,
                            "{0} blocks were written where they must not be; the log names them", damaged, 0, 0);
  guard_count(guard, values_out);
  return HIPMM_OK;
}

/* ---- Life ---- */

static void guard_set(struct guard *guard, const struct guard_options *given)
{
  __atomic_store_n(&guard->options.zone_size, given->zone_size, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.quarantine_size, given->quarantine_size, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.poison, given->poison, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.on_damage, given->on_damage, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.capture_stacks, given->capture_stacks, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.stack_depth, given->stack_depth, __ATOMIC_RELAXED);
}

/* Blocks that are allocated keep the zones that they have. */
static enum hipmm_status guard_reconfigure(void *self, const char *option, const void *options)
{
  (void)option;
  guard_set(self, options);
  return HIPMM_OK;
}

static enum hipmm_status guard_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct guard *guard = services->host_allocate(services, sizeof *guard);
  if (!guard) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  guard->services = services;
  guard->upstream = upstreams[0];
  guard_set(guard, options);
  enum hipmm_status status = memory_open(&guard->memory, services);
  if (status) {
    services->host_free(services, guard, sizeof *guard);
    return status;
  }
  live_blocks_open(&guard->live, services, sizeof(struct guard_record));
  stack_traces_open(&guard->traces, services);
  pthread_mutex_init(&guard->lock, NULL);
  *self_out = guard;
  return HIPMM_OK;
}

/* What the application left allocated is looked at, and left to the upstream, as other adaptors do. */
static void guard_destroy(void *self)
{
  struct guard *guard = self;
  uint64_t damaged;
  if (guard_verify(guard, &damaged) && guard_verify(guard, &damaged))
    guard->services->log(guard->services, HIPMM_LOG_WARNING, "the last look at all blocks failed: %s",
                         "the runtime refuses to copy or to wait");
  if (memory_wait(&guard->memory)) memory_wait(&guard->memory);
  quarantine_close(guard);
  memory_close(&guard->memory);
  stack_traces_close(&guard->traces);
  live_blocks_close(&guard->live);
  pthread_mutex_destroy(&guard->lock);
  guard->services->host_free(guard->services, guard, sizeof *guard);
}

static const char *const guard_on_damage_words[] = {[GUARD_LOG] = "log", [GUARD_ERROR] = "error", NULL};

static const struct hipmm_option guard_option_table[] = {
    {.name = "zone_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, zone_size),
     .initial = "256",
     .unit = "bytes",
     .doc = "The zone before and after each block: how far a write may go wrong and still be found",
     .minimum = "1",
     .maximum = "1GiB"},
    {.name = "quarantine_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, quarantine_size),
     .initial = "64MiB",
     .unit = "bytes",
     .doc = "The most memory of freed blocks that is kept back to find writes after the free; 0 for none; it goes back "
            "when memory is short"},
    {.name = "poison",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, poison),
     .initial = "true",
     .doc = "Fill freed blocks with a pattern (0xFB); without it, of writes after the free only those into zones are "
            "found"},
    {.name = "on_damage",
     .type = HIPMM_OPTION_ENUM,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, on_damage),
     .initial = "log",
     .doc = "What a find does beside its lines in the log: `error` makes the free fail too, with the status of a wrong "
            "size (HIPMM_E_SIZE); the block then stays allocated, mended, and freeing it again succeeds",
     .choices = guard_on_damage_words},
    {.name = "capture_stacks",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, capture_stacks),
     .initial = "false",
     .doc =
         "Take a stack trace of each allocation and each free, to say with a find who they were; costs microseconds"},
    {.name = "stack_depth",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, stack_depth),
     .initial = "64",
     .unit = "frames",
     .doc = "The most frames of a trace, innermost first",
     .minimum = "1",
     .maximum = "64"},
};

static const struct hipmm_ops guard_ops = {
    .struct_size = sizeof guard_ops,
    .allocate = blocks_allocate,
    .deallocate = blocks_deallocate,
    .trim = guard_trim,
    .query = guard_query,
    .perform = guard_perform,
    .find = guard_find,
    .reconfigure = guard_reconfigure,
    .visit = guard_visit,
};

HIPMM_EXPORT extern const struct hipmm_plugin guard_LTX_hipmm_plugin;

const struct hipmm_plugin guard_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "guard",
    .version = "1.0",
    .doc = "Finds writes outside of blocks and after their free",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = guard_option_table,
    .n_options = sizeof guard_option_table / sizeof *guard_option_table,
    .options_bytes = sizeof(struct guard_options),
    .values = guard_values,
    .n_values = N_VALUES,
    .actions = guard_actions,
    .n_actions = sizeof guard_actions / sizeof *guard_actions,
    .ops = &guard_ops,
    .create = guard_create,
    .destroy = guard_destroy,
};
