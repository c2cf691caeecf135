/* SPDX-License-Identifier: MIT */
/* monotonic.c: the resource `monotonic`, a sub-allocator for work that is freed as a whole: options, values, create and
 * destroy. Allocations follow one another; a free only checks and counts; when the last block is freed, all memory is
 * available again, in the order of the streams that used it. allocate.c has the ops, bump.c the memory, uses.c the
 * order of streams. */
#include "monotonic.h"
#include "../../core/base/text.h"
#include "../common/descriptor.h"

struct monotonic_options {
  uint64_t initial_size;
  uint64_t chunk_size;
  double growth_factor;
  uint64_t maximum_size;
  uint32_t record;
};

/* ---- Values and actions ---- */

enum monotonic_value {
  RESERVED_BYTES,
  PEAK_RESERVED_BYTES,
  LIVE_BYTES,
  LIVE_COUNT,
  USED_BYTES,
  FREE_BYTES,
  CHUNKS,
  REWINDS,
  STREAM_WAITS,
  METADATA_BYTES,
  N_VALUES
};

static const struct hipmm_feature monotonic_values[N_VALUES] = {
    [RESERVED_BYTES] = {"reserved_bytes", "bytes", "Memory held from the upstream"},
    [PEAK_RESERVED_BYTES] = {"peak_reserved_bytes", "bytes", "The most that was held from the upstream"},
    [LIVE_BYTES] = {"live_bytes", "bytes", "Allocated memory, as requested"},
    [LIVE_COUNT] = {"live_count", "blocks", "Allocated blocks"},
    [USED_BYTES] = {"used_bytes", "bytes", "Memory allocated or skipped since the last rewind"},
    [FREE_BYTES] = {"free_bytes", "bytes", "Held memory that can still be allocated"},
    [CHUNKS] = {"chunks", "chunks", "Chunks held from the upstream"},
    [REWINDS] = {"rewinds", "times", "Times that the last block was freed and all memory became available again"},
    [STREAM_WAITS] = {"stream_waits", "waits", "Times that a stream was made to wait for another one"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for what is known about blocks and streams"},
};

enum monotonic_action { RELEASE, RESET_PEAKS, N_ACTIONS };

static const struct hipmm_feature monotonic_actions[N_ACTIONS] = {
    [RELEASE] = {"release", NULL, "Returns all memory to the upstream; refused while anything is allocated"},
    [RESET_PEAKS] = {"reset_peaks", NULL, "Starts peak_reserved_bytes again from what is held now"},
};

static int64_t monotonic_value_of(const struct monotonic *monotonic, enum monotonic_value value)
{
  const struct bump *bump = &monotonic->bump;
  uint64_t used = bump->used_bytes + bump->offset;
  switch (value) {
  case RESERVED_BYTES: return (int64_t)bump->bytes;
  case PEAK_RESERVED_BYTES: return (int64_t)bump->peak_bytes;
  case LIVE_BYTES: return bump->live_bytes;
  case LIVE_COUNT: return bump->live_count;
  case USED_BYTES: return (int64_t)used;
  case FREE_BYTES: return (int64_t)(bump->bytes - used);
  case CHUNKS: return bump->n_chunks;
  case REWINDS: return monotonic->rewinds;
  case STREAM_WAITS: return (int64_t)monotonic->uses.streams.waits;
  case METADATA_BYTES:
    return (int64_t)(sizeof *monotonic + bump_metadata_bytes(bump) + uses_metadata_bytes(&monotonic->uses));
  case N_VALUES: break;
  }
  return 0;
}

static enum hipmm_status monotonic_query(void *self, size_t index, int64_t *value_out)
{
  struct monotonic *monotonic = self;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  *value_out = monotonic_value_of(monotonic, (enum monotonic_value)index);
  biased_lock_release(&monotonic->lock);
  return HIPMM_OK;
}

/* The caller holds the lock. */
static enum hipmm_status monotonic_perform_action(struct monotonic *monotonic, enum monotonic_action action,
                                                  int64_t *values_out)
{
  struct bump *bump = &monotonic->bump;
  int64_t values[N_VALUES];
  enum hipmm_status status = HIPMM_OK;
  if (action == RELEASE && bump->live_count)
    return monotonic->services->refuse(monotonic->services, HIPMM_E_STATE,
                                       "cannot release: {0} blocks ({1:bytes}) are allocated; free them first",
                                       (uint64_t)bump->live_count, (uint64_t)bump->live_bytes, 0);
  for (int i = 0; i < N_VALUES; i++) values[i] = monotonic_value_of(monotonic, (enum monotonic_value)i);
  if (action == RELEASE) status = monotonic_release(monotonic, 0);
  if (action == RESET_PEAKS) bump->peak_bytes = bump->bytes;
  for (int i = 0; !status && i < N_VALUES; i++) values_out[i] = values[i];
  return status;
}

static enum hipmm_status monotonic_perform(void *self, size_t index, int64_t *values_out)
{
  struct monotonic *monotonic = self;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  status = monotonic_perform_action(monotonic, (enum monotonic_action)index, values_out);
  biased_lock_release(&monotonic->lock);
  return status;
}

/* ---- Life ---- */

static void monotonic_destroy(void *self)
{
  struct monotonic *monotonic = self;
  const struct hipmm_services *services = monotonic->services;
  const struct bump *bump = &monotonic->bump;
  if (bump->live_count)
    services->log(services, HIPMM_LOG_WARNING, "destroyed with %lld block%s (%lld byte%s) still allocated",
                  (long long)bump->live_count, text_plural((uint64_t)bump->live_count), (long long)bump->live_bytes,
                  text_plural((uint64_t)bump->live_bytes));
  device_wait_at_end(services);
  bump_close(&monotonic->bump);
  uses_close(&monotonic->uses);
  biased_lock_close(&monotonic->lock);
  services->host_free(services, monotonic, sizeof *monotonic);
}

/* The memory is ready on the default stream at first, and on every stream after the device was waited for. */
static enum hipmm_status monotonic_fill(struct monotonic *monotonic, uint64_t bytes)
{
  const struct hipmm_services *services = monotonic->services;
  bytes = bytes / HIPMM_ALIGNMENT * HIPMM_ALIGNMENT;
  if (!bytes) return HIPMM_OK;
  enum hipmm_status status = bump_add_chunk(&monotonic->bump, bytes, NULL);
  if (hipmm_is_out_of_memory(status))
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, "initial_size",
                          "the upstream does not have %llu bytes; ask for less (a percentage is of what is free)",
                          (unsigned long long)bytes);
  return status ? status : uses_synchronize(&monotonic->uses, STREAM_READY);
}

static void monotonic_set_growth(struct monotonic *monotonic, const struct monotonic_options *wanted)
{
  monotonic->bump.maximum_bytes = wanted->maximum_size;
  monotonic->bump.growth_factor = wanted->growth_factor;
}

static enum hipmm_status monotonic_create(const struct hipmm_services *services, const void *options,
                                          struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct monotonic_options *wanted = options;
  enum hipmm_status status = HIPMM_OK;
  (void)n_upstreams; /* one, as the descriptor says */
  struct monotonic *monotonic = services->host_allocate(services, sizeof *monotonic);
  if (!monotonic)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  monotonic->services = services;
  biased_lock_open(&monotonic->lock);
  bool opened = bump_open(&monotonic->bump, services, upstreams[0]);
  if (!uses_open(&monotonic->uses, services, (enum record)wanted->record) || !opened)
    status = services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the records of blocks");
  monotonic_set_growth(monotonic, wanted);
  monotonic->bump.next_bytes = sizes_round_up(wanted->chunk_size, HIPMM_ALIGNMENT);
  if (!status) status = monotonic_fill(monotonic, wanted->initial_size);
  if (status)
    monotonic_destroy(monotonic);
  else
    *self_out = monotonic;
  return status;
}

/* A maximum below the held bytes frees nothing. */
static enum hipmm_status monotonic_reconfigure(void *self, const char *option, const void *options)
{
  struct monotonic *monotonic = self;
  (void)option;
  enum hipmm_status status = biased_lock_enter(&monotonic->lock, monotonic->services);
  if (status) return status;
  monotonic_set_growth(monotonic, options);
  biased_lock_release(&monotonic->lock);
  return HIPMM_OK;
}

/* ---- The descriptor ---- */

static const char *const monotonic_unlimited[] = {"unlimited", NULL};

static const struct hipmm_option monotonic_option_table[] = {
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct monotonic_options, initial_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "Memory allocated from the upstream at creation"},
    {.name = "chunk_size",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct monotonic_options, chunk_size),
     .initial = "2MiB",
     .unit = "bytes",
     .doc = "Size of the first chunk that is added when memory runs out; larger if a request needs it",
     .minimum = "256",
     .maximum = "1024GiB"},
    {.name = "growth_factor",
     .type = HIPMM_OPTION_RATIO,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct monotonic_options, growth_factor),
     .initial = "2",
     .doc = "How many times as large each further chunk is, up to 1 GiB; 1 for chunks of one size",
     .minimum = "1",
     .maximum = "16"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct monotonic_options, maximum_size),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "The most that is ever held from the upstream",
     .at_least = "initial_size",
     .choices = monotonic_unlimited},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct monotonic_options, record),
     .initial = "auto",
     .doc = "When the event is recorded that another stream waits for before it uses freed memory, as in pool",
     .choices = record_words},
};

static const struct hipmm_ops monotonic_ops = {
    .struct_size = sizeof monotonic_ops,
    .allocate = monotonic_allocate,
    .deallocate = monotonic_deallocate,
    .trim = monotonic_trim,
    .query = monotonic_query,
    .perform = monotonic_perform,
    .find = monotonic_find,
    .stream_retire = monotonic_stream_retire,
    .stream_retain = monotonic_stream_retain,
    .reconfigure = monotonic_reconfigure,
    .visit = monotonic_visit,
    .covers = monotonic_covers,
};

HIPMM_EXPORT extern const struct hipmm_plugin monotonic_LTX_hipmm_plugin;

const struct hipmm_plugin monotonic_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(monotonic_option_table, struct monotonic_options),
    .type = "monotonic",
    .version = "1.0",
    .doc = "Allocates memory from front to back, and from the front again once nothing is allocated",
    .role = HIPMM_ROLE_SUB_ALLOCATOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    PLUGIN_VALUES(monotonic_values),
    PLUGIN_ACTIONS(monotonic_actions),
    .ops = &monotonic_ops,
    .create = monotonic_create,
    .destroy = monotonic_destroy,
};
