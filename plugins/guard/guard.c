/* SPDX-License-Identifier: MIT */
/* guard.c: an adaptor that detects writes outside of blocks and writes after a free; device memory has no other
 * protection against them. It surrounds each block with zones of a known pattern and checks the zones when the block is
 * freed. It fills a freed block with another pattern, keeps it in a quarantine, and checks all of it before it frees it.
 *
 * It works for all memory that the runtime can copy: on a device, managed, pinned or pageable. A free waits for its stream,
 * and until the zones were filled, so all writes to the block have ended. Not detected:
 * writes of the pattern itself, writes beyond the zones, damage to a block freed on a captured stream, and damage to blocks
 * that "sample_interval" passes over. Damage to the zones of a block allocated on one is told as a doubt. */
#include "guard.h"
#include "../common/descriptor.h"

#include <stdio.h>

/* ---- Trimming ---- */

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
  struct check_result result = {0};
  if (verifying->status) return;
  verifying->status = check_block(verifying->guard, record, false, "it was verified", &result);
  verifying->damaged += check_is_damaged(&result);
}

/* Waits for the device twice: the second time with all blocks locked, so that no new work on them can follow; little is
 * left to wait for then. */
static enum hipmm_status guard_verify(struct guard *guard, uint64_t *damaged_out)
{
  struct guard_verifying verifying = {.guard = guard};
  enum hipmm_status status = memory_wait_for_device(&guard->memory);
  if (status) return status;
  live_blocks_lock(&guard->live);
  verifying.status = memory_wait_for_device(&guard->memory);
  pthread_mutex_lock(&guard->lock);
  live_blocks_each(&guard->live, guard_verify_one, &verifying);
  if (!verifying.status) verifying.status = quarantine_verify(guard, &verifying.damaged);
  pthread_mutex_unlock(&guard->lock);
  live_blocks_unlock(&guard->live);
  *damaged_out = verifying.damaged;
  return verifying.status;
}

/* ---- Finding and visiting ---- */

static enum hipmm_status guard_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct guard *guard = self;
  return live_blocks_find_block(&guard->live, ptr, block_out);
}

static enum hipmm_status guard_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                     void *closure)
{
  struct guard *guard = self;
  enum hipmm_status status = live_blocks_visit(&guard->live, visitor, closure);
  if (status) return status;
  pthread_mutex_lock(&guard->lock);
  quarantine_visit(guard, visitor, closure);
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
    [OVERRUNS] = {"overruns", "finds", "Blocks written past their end"},
    [UNDERRUNS] = {"underruns", "finds", "Blocks written before their start"},
    [WRITES_AFTER_FREE] = {"writes_after_free", "finds", "Blocks written after they were freed"},
    [DOUBLE_FREES] = {"double_frees", "frees", "Refused frees of blocks in the quarantine"},
    [GUARDED_BYTES] = {"guarded_bytes", "bytes", "Bytes allocated now, as requested"},
    [GUARDED_COUNT] = {"guarded_count", "blocks", "Blocks allocated now"},
    [QUARANTINE_BYTES] = {"quarantine_bytes", "bytes", "Memory of freed blocks in the quarantine, zones included"},
    [QUARANTINE_COUNT] = {"quarantine_count", "blocks", "Freed blocks in the quarantine"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for the records of blocks"},
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
  values_out[METADATA_BYTES] =
      counts.metadata_bytes + stack_traces_metadata_bytes(&guard->traces) +
      (int64_t)(quarantine->capacity * sizeof *quarantine->items + key_map_bytes(&quarantine->by_ptr));
  pthread_mutex_unlock(&guard->lock);
}

static enum hipmm_status guard_query(void *self, size_t index, int64_t *value_out)
{
  int64_t values[N_VALUES];
  guard_count(self, values);
  *value_out = values[index];
  return HIPMM_OK;
}

static enum hipmm_status guard_report(void *self, void (*write)(void *closure, const char *line), void *closure)
{
  struct guard *guard = self;
  int64_t values[N_VALUES];
  char line[300];
  guard_count(guard, values);
  snprintf(line, sizeof line,
           "device %d: %lld guarded blocks of %lld bytes, %lld freed blocks in a quarantine of %lld bytes",
           guard->services->device, (long long)values[GUARDED_COUNT], (long long)values[GUARDED_BYTES],
           (long long)values[QUARANTINE_COUNT], (long long)values[QUARANTINE_BYTES]);
  write(closure, line);
  snprintf(line, sizeof line, "overruns %lld, underruns %lld, writes after a free %lld, double frees %lld",
           (long long)values[OVERRUNS], (long long)values[UNDERRUNS], (long long)values[WRITES_AFTER_FREE],
           (long long)values[DOUBLE_FREES]);
  write(closure, line);
  return HIPMM_OK;
}

static const struct hipmm_feature guard_actions[] = {
    {.name = "verify",
     .doc = "Waits for the device and checks every block, allocated or in the quarantine; fails as a free would if "
            "`on_damage` is error"},
};

/* Checks every block, and fails as a free would. */
static enum hipmm_status guard_verify_all(struct guard *guard)
{
  const struct hipmm_services *services = guard->services;
  uint64_t damaged = 0;
  int previous = services->enter_device(services);
  enum hipmm_status status = guard_verify(guard, &damaged);
  services->leave_device(services, previous);
  if (status) return status;
  if (damaged && guard_is_on(&guard->options.on_damage))
    return services->refuse(services, HIPMM_E_SIZE,
                            damaged == 1 ? "a block was damaged; the log names it"
                                         : "{0} blocks were damaged; the log names them",
                            damaged, 0, 0);
  return HIPMM_OK;
}

/* There is one action. */
static enum hipmm_status guard_perform(void *self, size_t index, int64_t *values_out)
{
  (void)index;
  enum hipmm_status status = guard_verify_all(self);
  if (!status) guard_count(self, values_out);
  return status;
}

static enum hipmm_status guard_process_end(void *self, enum hipmm_process_end moment)
{
  return moment == HIPMM_PROCESS_EXITS ? guard_verify_all(self) : HIPMM_OK;
}

/* ---- Life ---- */

static void guard_set(struct guard *guard, const struct guard_options *given)
{
  __atomic_store_n(&guard->options.zone_size, given->zone_size, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.quarantine_size, given->quarantine_size, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.poison, given->poison, __ATOMIC_RELAXED);
  __atomic_store_n(&guard->options.on_damage, given->on_damage, __ATOMIC_RELAXED);
  stack_options_set(&guard->options.stack, &given->stack, guard->services);
  __atomic_store_n(&guard->options.sample_interval, given->sample_interval, __ATOMIC_RELAXED);
}

/* Live blocks keep their zones. */
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
  guard->quarantine.by_ptr.services = services;
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

static void guard_drop_mark(void *closure, void *record)
{
  memory_drop_mark(closure, ((const struct guard_record *)record)->filled);
}

/* Blocks that the application left allocated are checked but not freed, as in other adaptors. */
static void guard_destroy(void *self)
{
  struct guard *guard = self;
  uint64_t damaged;
  if (guard_verify(guard, &damaged) && guard_verify(guard, &damaged))
    guard->services->log(guard->services, HIPMM_LOG_WARNING, "the last check of all blocks failed: %s",
                         "the runtime refuses to copy or to wait");
  if (memory_wait(&guard->memory)) memory_wait(&guard->memory);
  live_blocks_each(&guard->live, guard_drop_mark, &guard->memory);
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
     .doc = "Size of the guard zone before and after each block; a write further away is not detected",
     .minimum = "1",
     .maximum = "1GiB"},
    {.name = "quarantine_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, quarantine_size),
     .initial = "64MiB",
     .unit = "bytes",
     .doc = "The most memory of freed blocks to keep for detecting later writes; 0: none. It is released when memory "
            "is short"},
    {.name = "poison",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, poison),
     .initial = "true",
     .doc = "Fill blocks in the quarantine with the byte 0xFB; without it, only writes into the zones are detected "
            "after a free"},
    {.name = "on_damage",
     .type = HIPMM_OPTION_ENUM,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, on_damage),
     .initial = "log",
     .doc = "Reaction to damage, besides the log: error also makes the free fail with HIPMM_E_SIZE; the block then "
            "stays allocated, its zones are restored, and the next free of it succeeds",
     .choices = guard_on_damage_words},
    STACK_OPTIONS(guard_options, HIPMM_OPTION_RELOADABLE, "0", "64", " and frees, for the report"),
    {.name = "sample_interval",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct guard_options, sample_interval),
     .initial = "1",
     .unit = "allocations",
     .doc = "Guards one in so many allocations, chosen at random; 1: all. The others pass as they are, for some "
            "nanoseconds each, so that programs in production can have a guard. The upstream then refuses pointers "
            "that nobody knows",
     .minimum = "1",
     .maximum = "1000000000"},
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
    .report = guard_report,
    .process_end = guard_process_end,
};

HIPMM_EXPORT extern const struct hipmm_plugin guard_LTX_hipmm_plugin;

const struct hipmm_plugin guard_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(guard_option_table, struct guard_options),
    .type = "guard",
    .version = "1.0",
    .doc = "Detects writes outside of blocks and writes after a free",
    .flags = HIPMM_PLUGIN_ACCESSES_MEMORY,
    PLUGIN_VALUES(guard_values),
    PLUGIN_ACTIONS(guard_actions),
    .ops = &guard_ops,
    .create = guard_create,
    .destroy = guard_destroy,
};
