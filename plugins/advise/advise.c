/* SPDX-License-Identifier: MIT */
/* advise.c: an adaptor that advises HIP how managed memory will be used, at each allocation (hipMemAdvise). Other memory
 * gets no advice, nor does memory of a device without concurrent access to managed memory.
 *
 * Advice applies to pages and stays with them. Where a resource below reuses freed memory, advice is withdrawn when a
 * block is freed, from the pages that the block does not share with other blocks. */
#include "../common/descriptor.h"
#include "../common/memory_hint.h"
#include "plan.h"

#include <pthread.h>
#include <unistd.h>

struct advise {
  struct memory_hint hint;
  bool withdraws;        /* a resource below reuses freed memory */
  pthread_rwlock_t lock; /* all below */
  struct plan *plan;
  struct plan *given; /* the steps of all plans that were ever in force */
};

static enum hipmm_status advise_follow(struct advise *advise, const void *ptr, size_t bytes)
{
  const struct hipmm_services *services = advise->hint.services;
  enum hipmm_status status = HIPMM_OK;
  int previous = services->enter_device(services);
  pthread_rwlock_rdlock(&advise->lock);
  for (size_t i = 0; !status && i < advise->plan->count; i++) {
    struct plan_step step = advise->plan->steps[i];
    status = memory_hint_classify(&advise->hint, services->hip->MemAdvise(ptr, bytes, step.advice, step.device), bytes);
  }
  pthread_rwlock_unlock(&advise->lock);
  services->leave_device(services, previous);
  return status;
}

static enum hipmm_status advise_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  struct advise *advise = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(advise->hint.upstream, bytes, alignment, stream, &ptr);
  if (status) return status;
  if (ptr && advise->hint.is_on) status = advise_follow(advise, ptr, bytes);
  if (status) return memory_hint_release(&advise->hint, status, (struct hipmm_block){ptr, bytes}, alignment, stream);
  *ptr_out = ptr;
  return HIPMM_OK;
}

/* ---- Freeing ---- */

/* In HIP the number of an advice plus 1 withdraws it. If that fails, the memory is freed all the same. */
static void advise_withdraw(struct advise *advise, struct hipmm_block block)
{
  const struct hipmm_services *services = advise->hint.services;
  uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)block.ptr;
  uintptr_t first = (start + page_bytes - 1) / page_bytes * page_bytes;
  uintptr_t end = (start + block.bytes) / page_bytes * page_bytes;
  if (first >= end) return;
  int previous = services->enter_device(services);
  pthread_rwlock_rdlock(&advise->lock);
  for (size_t i = 0; i < advise->given->count; i++) {
    struct plan_step step = advise->given->steps[i];
    if (services->hip->MemAdvise((const void *)first, end - first, step.advice + 1, step.device))
      services->hip->GetLastError();
  }
  pthread_rwlock_unlock(&advise->lock);
  services->leave_device(services, previous);
}

/* Withdraws advice before the free, while the block still belongs to its owner, and only from a block that was found: a
 * wrong pointer may be in memory of others. */
static enum hipmm_status advise_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct advise *advise = self;
  const struct hipmm_services *services = advise->hint.services;
  struct hipmm_block block = {NULL, 0};
  bool is_advised = ptr && advise->withdraws && atomic_load_explicit(&advise->hint.given, memory_order_relaxed);
  if (is_advised) is_advised = !services->find_below(services, ptr, &block) && (!bytes || bytes == block.bytes);
  if (is_advised) advise_withdraw(advise, block);
  enum hipmm_status status = memory_hint_deallocate(self, ptr, bytes, alignment, stream);
  if (status && is_advised) advise_follow(advise, block.ptr, block.bytes); /* the block stays allocated */
  return status;
}

static const struct hipmm_feature advise_values[MEMORY_HINT_VALUES] = {
    [MEMORY_HINT_IS_ON] = {"is_on", "0 or 1", "1 if the device accepts advice; 0 if this resource only forwards"},
    [MEMORY_HINT_GIVEN] = {"advised_count", "calls",
                           "Calls of hipMemAdvise: one for each option and processor, at each allocation"},
    [MEMORY_HINT_GIVEN_BYTES] = {"advised_bytes", "bytes", "Sum of the sizes in these calls, as requested"},
    [MEMORY_HINT_IGNORED] = {"ignored_count", "calls", "Calls without effect, because the memory is not managed"},
};

/* ---- Life ---- */

static enum hipmm_status advise_reconfigure(void *self, const char *option, const void *options)
{
  struct advise *advise = self;
  const struct hipmm_services *services = advise->hint.services;
  struct plan *plan, *given, *old, *old_given;
  (void)option; /* the plan depends on all options */
  enum hipmm_status status = plan_make(services, options, advise->hint.is_on, &plan);
  if (status) return status;
  given = plan_join(services, advise->given, plan);
  if (!given) {
    plan_free(services, plan);
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the advice");
  }
  pthread_rwlock_wrlock(&advise->lock);
  old = advise->plan;
  old_given = advise->given;
  advise->plan = plan;
  advise->given = given;
  pthread_rwlock_unlock(&advise->lock);
  plan_free(services, old);
  plan_free(services, old_given);
  return HIPMM_OK;
}

static enum hipmm_status advise_open(struct advise *advise, const struct hipmm_services *services,
                                     const struct plan_options *options, struct hipmm_resource *upstream)
{
  enum hipmm_status status =
      memory_hint_open(&advise->hint, services, upstream, "hipMemAdvise", services->hip->MemAdvise != NULL);
  if (!status) status = plan_make(services, options, advise->hint.is_on, &advise->plan);
  if (status) return status;
  advise->given = plan_join(services, advise->plan, advise->plan);
  if (!advise->given) {
    plan_free(services, advise->plan);
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the advice");
  }
  advise->withdraws = advise->hint.is_on && services->is_kept_below(services);
  pthread_rwlock_init(&advise->lock, NULL);
  return HIPMM_OK;
}

static void advise_validate(const struct hipmm_validation *validation, const void *options)
{
  plan_validate(validation, options);
  memory_hint_validate(validation, "hipMemAdvise");
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
  plan_free(services, advise->given);
  pthread_rwlock_destroy(&advise->lock);
  services->host_free(services, advise, sizeof *advise);
}

static const struct hipmm_option advise_option_table[] = {
    {.name = "read_mostly",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, read_mostly),
     .initial = "false",
     .doc = "The memory is mostly read: each processor may keep its own copy until the next write"},
    {.name = "preferred_location",
     .type = HIPMM_OPTION_STRING,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, preferred_location),
     .doc = "Where the memory should stay: \"device\" (the resource's own), \"cpu\", or a device number such as \"0\""},
    {.name = "accessed_by",
     .type = HIPMM_OPTION_STRINGS,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, accessed_by),
     .doc = "Processors that access the memory in place, such as \"cpu\", so that it does not migrate; the same words "
            "as in "
            "preferred_location"},
    {.name = "coarse_grain",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct plan_options, coarse_grain),
     .initial = "false",
     .doc = "Processors see each other's writes only after synchronisation; faster on AMD, no effect on NVIDIA"},
};

static const struct hipmm_ops advise_ops = {
    .struct_size = sizeof advise_ops,
    .allocate = advise_allocate,
    .deallocate = advise_deallocate,
    .query = memory_hint_query,
    .reconfigure = advise_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin advise_LTX_hipmm_plugin;

const struct hipmm_plugin advise_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(advise_option_table, struct plan_options),
    .type = "advise",
    .version = "1.0",
    .doc = "Advises the driver how managed memory will be used, at each allocation (hipMemAdvise)",
    PLUGIN_VALUES(advise_values),
    .ops = &advise_ops,
    .create = advise_create,
    .destroy = advise_destroy,
    .validate = advise_validate,
};
