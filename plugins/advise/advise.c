/* SPDX-License-Identifier: MIT */
/* advise.c: an adaptor that tells HIP how managed memory is going to be used, as soon as it is allocated
 * (hipMemAdvise). Other memory is left alone, and so is all memory on a device that cannot move it while it is in use.
 *
 * Advice is about pages and stays with the memory: what a sub-allocator below gives to others afterwards keeps it.
 * Above a source it is exact. */
#include "../hint.h"
#include "plan.h"

#include <pthread.h>

struct advise {
  struct hint hint;
  pthread_rwlock_t lock; /* plan */
  struct plan *plan;
};

static enum hipmm_status advise_follow(struct advise *advise, const void *ptr, size_t bytes)
{
  const struct hipmm_services *services = advise->hint.services;
  enum hipmm_status status = HIPMM_OK;
  int previous = services->enter_device(services);
  pthread_rwlock_rdlock(&advise->lock);
  for (size_t i = 0; !status && i < advise->plan->count; i++) {
    struct plan_step step = advise->plan->steps[i];
    status = hint_judge(&advise->hint, services->hip->MemAdvise(ptr, bytes, step.advice, step.device), bytes);
  }
  pthread_rwlock_unlock(&advise->lock);
  services->leave_device(services, previous);
  return status;
}

static enum hipmm_status advise_allocate(void *self, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out)
{
  struct advise *advise = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(advise->hint.upstream, bytes, alignment, stream, &ptr);
  if (status) return status;
  if (ptr && advise->hint.is_on) status = advise_follow(advise, ptr, bytes);
  if (status) return hint_give_back(&advise->hint, status, (struct hipmm_block){ptr, bytes}, alignment, stream);
  *ptr_out = ptr;
  return HIPMM_OK;
}

static const struct hipmm_feature advise_values[HINT_VALUES] = {
    [HINT_IS_ON] = {"is_on", "0 or 1", "1 where the device can be advised; 0: this resource only forwards"},
    [HINT_GIVEN] = {"advised_count", "calls",
                    "Pieces of advice given: one for each option and place, at each allocation"},
    [HINT_GIVEN_BYTES] = {"advised_bytes", "bytes", "The sizes that they were about, as requested"},
    [HINT_IGNORED] = {"ignored_count", "calls", "Pieces of advice that were none, the memory not being managed"},
};

/* ---- Life ---- */

static enum hipmm_status advise_reconfigure(void *self, const char *option, const void *options)
{
  struct advise *advise = self;
  struct plan *plan, *old;
  (void)option; /* the plan is made of all of them */
  enum hipmm_status status = plan_make(advise->hint.services, options, advise->hint.is_on, &plan);
  if (status) return status;
  pthread_rwlock_wrlock(&advise->lock);
  old = advise->plan;
  advise->plan = plan;
  pthread_rwlock_unlock(&advise->lock);
  plan_free(advise->hint.services, old);
  return HIPMM_OK;
}

static enum hipmm_status advise_open(struct advise *advise, const struct hipmm_services *services,
                                     const struct plan_options *options, struct hipmm_resource *upstream)
{
  enum hipmm_status status =
      hint_open(&advise->hint, services, upstream, "hipMemAdvise", services->hip->MemAdvise != NULL);
  if (!status) status = plan_make(services, options, advise->hint.is_on, &advise->plan);
  if (status) return status;
  if (!advise->plan->count)
    services->log(services, HIPMM_LOG_WARNING,
                  "advises nothing; give it read_mostly, preferred_location, accessed_by or coarse_grain");
  pthread_rwlock_init(&advise->lock, NULL);
  return HIPMM_OK;
}

static enum hipmm_status advise_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct advise *advise = services->host_allocate(services, sizeof *advise);
  if (!advise) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  enum hipmm_status status = advise_open(advise, services, options, upstreams[0]);
  if (status)
    services->host_free(services, advise, sizeof *advise);
  else
    *self_out = advise;
  return status;
}

static void advise_destroy(void *self)
{
  struct advise *advise = self;
  const struct hipmm_services *services = advise->hint.services;
  plan_free(services, advise->plan);
  pthread_rwlock_destroy(&advise->lock);
  services->host_free(services, advise, sizeof *advise);
}

static const struct hipmm_option advise_option_table[] = {
    {.name = "read_mostly",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, read_mostly),
     .initial = "false",
     .doc = "The memory is mostly read: each processor may keep a copy of its own until the next write"},
    {.name = "preferred_location",
     .type = HIPMM_OPTION_STRING,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, preferred_location),
     .doc = "Where the memory should stay: \"device\" (the resource's own), \"cpu\", or a device's number such as "
            "\"0\""},
    {.name = "accessed_by",
     .type = HIPMM_OPTION_STRINGS,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, accessed_by),
     .doc = "Who reaches the memory where it is, instead of having it moved: places as of preferred_location"},
    {.name = "coarse_grain",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, coarse_grain),
     .initial = "false",
     .doc = "Processors see each other's writes only where they synchronise, which is faster on AMD (no effect on "
            "NVIDIA)"},
};

static const struct hipmm_ops advise_ops = {
    .struct_size = sizeof advise_ops,
    .allocate = advise_allocate,
    .deallocate = hint_deallocate,
    .query = hint_query,
    .reconfigure = advise_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin advise_LTX_hipmm_plugin;

const struct hipmm_plugin advise_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "advise",
    .version = "1.0",
    .doc = "Tells how managed memory is going to be used when it is allocated (hipMemAdvise)",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = advise_option_table,
    .n_options = sizeof advise_option_table / sizeof *advise_option_table,
    .options_bytes = sizeof(struct plan_options),
    .values = advise_values,
    .n_values = HINT_VALUES,
    .ops = &advise_ops,
    .create = advise_create,
    .destroy = advise_destroy,
};
