/* SPDX-License-Identifier: MIT */
/* fault.c: an adaptor that makes allocations fail, to test how a program handles it: every n-th, at random, large ones,
 * or all after a total. Each fails as if memory were short.
 *
 * Allocations are numbered over all threads, from 1; requests of zero bytes are not. Whether one fails at random depends
 * on its number and the seed alone, so a program that allocates in a fixed order fails in the same places each time. */
#include "../common/descriptor.h"

#include <stdbool.h>

struct fault_options {
  int64_t every;
  double probability;
  int64_t seed;
  uint64_t above;
  uint64_t after_total;
  int64_t most_failures;
};

struct fault {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct fault_options options; /* may change while in use: read and written atomically */
  _Alignas(128) uint64_t allocations;
  uint64_t failures;
  uint64_t passed_bytes; /* of requests that succeeded or are in progress */
};

/* ---- Deciding ---- */

static uint64_t fault_mix(uint64_t number)
{
  number += 0x9E3779B97F4A7C15ull;
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9ull;
  number = (number ^ number >> 27) * 0x94D049BB133111EBull;
  return number ^ number >> 31;
}

static bool fault_is_random(struct fault *fault, uint64_t number)
{
  double probability;
  __atomic_load(&fault->options.probability, &probability, __ATOMIC_RELAXED);
  uint64_t seed = (uint64_t)__atomic_load_n(&fault->options.seed, __ATOMIC_RELAXED);
  double drawn = (double)(fault_mix(fault_mix(seed) ^ number) >> 11) * 0x1p-53; /* in [0, 1) */
  return drawn < probability;
}

/* Adds the bytes unless they exceed the total. */
static bool fault_exceeds_total(struct fault *fault, size_t bytes)
{
  uint64_t most = __atomic_load_n(&fault->options.after_total, __ATOMIC_RELAXED);
  uint64_t passed = __atomic_load_n(&fault->passed_bytes, __ATOMIC_RELAXED);
  do {
    if (passed > most || bytes > most - passed) return true;
  } while (!__atomic_compare_exchange_n(&fault->passed_bytes, &passed, passed + bytes, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return false;
}

/* Never below zero: the action `restart` may have run meanwhile. */
static void fault_uncount(struct fault *fault, size_t bytes)
{
  uint64_t passed = __atomic_load_n(&fault->passed_bytes, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&fault->passed_bytes, &passed, passed > bytes ? passed - bytes : 0, true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

/* Counts a failure if `most_failures` allows one more. */
static bool fault_count_failure(struct fault *fault)
{
  uint64_t most = (uint64_t)__atomic_load_n(&fault->options.most_failures, __ATOMIC_RELAXED);
  uint64_t failures = __atomic_load_n(&fault->failures, __ATOMIC_RELAXED);
  do {
    if (most && failures >= most) return false;
  } while (!__atomic_compare_exchange_n(&fault->failures, &failures, failures + 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return true;
}

/* Why this allocation fails, as a message; NULL if it does not. */
static const char *fault_reason(struct fault *fault, uint64_t number, size_t bytes)
{
  uint64_t every = (uint64_t)__atomic_load_n(&fault->options.every, __ATOMIC_RELAXED);
  if (every && number % every == 0) return "allocation {0} of {1:bytes} was made to fail: one in {2} is";
  if (bytes > __atomic_load_n(&fault->options.above, __ATOMIC_RELAXED))
    return "allocation {0} of {1:bytes} was made to fail: it is above a size";
  if (fault_is_random(fault, number)) return "allocation {0} of {1:bytes} was made to fail: at random";
  if (fault_exceeds_total(fault, bytes)) return "allocation {0} of {1:bytes} was made to fail: after a total";
  return NULL;
}

/* ---- Allocating and freeing ---- */

static enum hipmm_status fault_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  struct fault *fault = self;
  if (!bytes) return hipmm_upstream_allocate(fault->upstream, bytes, alignment, stream, ptr_out);
  uint64_t number = __atomic_add_fetch(&fault->allocations, 1, __ATOMIC_RELAXED);
  const char *reason = fault_reason(fault, number, bytes);
  if (reason && fault_count_failure(fault))
    return fault->services->refuse(fault->services, HIPMM_E_OUT_OF_MEMORY, reason, number, bytes,
                                   (uint64_t)__atomic_load_n(&fault->options.every, __ATOMIC_RELAXED));
  if (reason) __atomic_add_fetch(&fault->passed_bytes, bytes, __ATOMIC_RELAXED);
  enum hipmm_status status = hipmm_upstream_allocate(fault->upstream, bytes, alignment, stream, ptr_out);
  if (status) fault_uncount(fault, bytes);
  return status;
}

static enum hipmm_status fault_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct fault *fault = self;
  return hipmm_upstream_deallocate(fault->upstream, ptr, bytes, alignment, stream);
}

/* ---- Values and actions ---- */

enum fault_value { ALLOCATIONS, FAILURES, PASSED_BYTES, N_VALUES };

static const struct hipmm_feature fault_values[N_VALUES] = {
    [ALLOCATIONS] = {"allocations", "allocations",
                     "Allocations so far, including those made to fail; requests of zero bytes do not count"},
    [FAILURES] = {"failures", "allocations", "Allocations made to fail so far"},
    [PASSED_BYTES] = {"passed_bytes", "bytes", "Sum of the sizes forwarded so far; compared with after_total"},
};

static uint64_t *fault_counter(struct fault *fault, size_t index)
{
  return index == ALLOCATIONS ? &fault->allocations : index == FAILURES ? &fault->failures : &fault->passed_bytes;
}

static enum hipmm_status fault_query(void *self, size_t index, int64_t *value_out)
{
  *value_out = (int64_t)__atomic_load_n(fault_counter(self, index), __ATOMIC_RELAXED);
  return HIPMM_OK;
}

static const struct hipmm_feature fault_actions[] = {
    {.name = "restart",
     .doc = "Counts from zero again: the next allocation has the number 1, and no failure has happened"},
};

/* There is one action. */
static enum hipmm_status fault_perform(void *self, size_t index, int64_t *values_out)
{
  (void)index;
  for (size_t value = 0; value < N_VALUES; value++)
    values_out[value] = (int64_t)__atomic_exchange_n(fault_counter(self, value), 0, __ATOMIC_RELAXED);
  return HIPMM_OK;
}

/* ---- Life ---- */

static void fault_set(struct fault *fault, const struct fault_options *given)
{
  double probability = given->probability;
  __atomic_store_n(&fault->options.every, given->every, __ATOMIC_RELAXED);
  __atomic_store(&fault->options.probability, &probability, __ATOMIC_RELAXED);
  __atomic_store_n(&fault->options.seed, given->seed, __ATOMIC_RELAXED);
  __atomic_store_n(&fault->options.above, given->above, __ATOMIC_RELAXED);
  __atomic_store_n(&fault->options.after_total, given->after_total, __ATOMIC_RELAXED);
  __atomic_store_n(&fault->options.most_failures, given->most_failures, __ATOMIC_RELAXED);
}

static enum hipmm_status fault_reconfigure(void *self, const char *option, const void *options)
{
  (void)option;
  fault_set(self, options);
  return HIPMM_OK;
}

static void fault_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct fault_options *given = options;
  if (!given->every && given->probability <= 0 && given->above == HIPMM_UNLIMITED &&
      given->after_total == HIPMM_UNLIMITED)
    validation->warn(validation, NULL, "lets no allocation fail; set every, probability, above or after_total");
}

static enum hipmm_status fault_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct fault *fault = services->host_allocate(services, sizeof *fault);
  if (!fault) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  fault->services = services;
  fault->upstream = upstreams[0];
  fault_set(fault, options);
  *self_out = fault;
  return HIPMM_OK;
}

static void fault_destroy(void *self)
{
  struct fault *fault = self;
  fault->services->host_free(fault->services, fault, sizeof *fault);
}

static const char *const fault_unlimited[] = {"unlimited", NULL};

static const struct hipmm_option fault_option_table[] = {
    {.name = "every",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct fault_options, every),
     .initial = "0",
     .unit = "allocations",
     .doc = "Fails each allocation whose number is a multiple of this value; 0: none",
     .minimum = "0"},
    {.name = "probability",
     .type = HIPMM_OPTION_RATIO,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct fault_options, probability),
     .initial = "0",
     .doc = "Fails this share of all allocations, drawn from `seed` and the number of the allocation",
     .minimum = "0",
     .maximum = "1"},
    {.name = "seed",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct fault_options, seed),
     .initial = "1",
     .doc = "Selects the allocations that `probability` fails: an equal seed selects equal ones"},
    {.name = "above",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct fault_options, above),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "Fails each allocation larger than this",
     .choices = fault_unlimited},
    {.name = "after_total",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct fault_options, after_total),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "Fails each allocation that would raise the sum of all sizes so far, freed blocks included, above this",
     .choices = fault_unlimited},
    {.name = "most_failures",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct fault_options, most_failures),
     .initial = "0",
     .unit = "allocations",
     .doc = "Fails at most this many allocations; 0: no limit",
     .minimum = "0"},
};

static const struct hipmm_ops fault_ops = {
    .struct_size = sizeof fault_ops,
    .allocate = fault_allocate,
    .deallocate = fault_deallocate,
    .query = fault_query,
    .perform = fault_perform,
    .reconfigure = fault_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin fault_LTX_hipmm_plugin;

const struct hipmm_plugin fault_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(fault_option_table, struct fault_options),
    .type = "fault",
    .version = "1.0",
    .doc = "Makes allocations fail, to test how a program handles it",
    PLUGIN_VALUES(fault_values),
    PLUGIN_ACTIONS(fault_actions),
    .ops = &fault_ops,
    .create = fault_create,
    .destroy = fault_destroy,
    .validate = fault_validate,
};
