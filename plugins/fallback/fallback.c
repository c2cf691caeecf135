/* SPDX-License-Identifier: MIT */
/* fallback.c: an adaptor over several upstreams in order: the first upstream that is neither out of memory nor at its
 * limit serves a request. Any other failure is passed on at once.
 *
 * A free must find the upstream of its block. Only blocks that did not come from the first upstream have records
 * (owners.h). If another upstream allocates from the same memory, the first could take one of its chunks for a block:
 * once a request has fallen back, a block without a record is looked up before it is freed. */
#include "../common/descriptor.h"
#include "../common/refusals.h"
#include "../common/thread_slot.h"
#include "owners.h"

#include <string.h>

enum { MOST_UPSTREAMS = 8 };

struct tally {
  _Alignas(THREAD_SLOT_LINE_BYTES) atomic_uint_fast64_t count;
};

struct fallback {
  const struct hipmm_services *services;
  struct hipmm_resource *const *upstreams;
  size_t n_upstreams;
  bool has_chunks; /* another upstream may divide blocks of the first */
  struct owners owners;
  struct tally firsts[THREAD_SLOTS];                /* allocations from the first upstream, by thread */
  atomic_uint_fast64_t allocations[MOST_UPSTREAMS]; /* of the others */
  atomic_uint_fast64_t failures;
};

static void fallback_count(atomic_uint_fast64_t *counter)
{
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- Allocating ---- */

static enum hipmm_status fallback_add_owner(struct fallback *fallback, const struct owner *owner, size_t alignment)
{
  const struct live_block *block = &owner->block;
  if (!block->ptr || owners_add(&fallback->owners, owner)) return HIPMM_OK;
  if (hipmm_upstream_deallocate(fallback->upstreams[owner->upstream], block->ptr, block->bytes, alignment,
                                block->stream))
    fallback->services->log(fallback->services, HIPMM_LOG_ERROR, "%p could be neither recorded nor freed: it is lost",
                            block->ptr);
  return HIPMM_E_OUT_OF_MEMORY;
}

/* After the first upstream has failed with `status`, perhaps for want of memory. An upstream that does not support the
 * alignment is skipped: the failure remains a lack of memory. */
static __attribute__((noinline)) enum hipmm_status fallback_fall_back(struct fallback *fallback,
                                                                      enum hipmm_status status, size_t bytes,
                                                                      size_t alignment, hipmm_stream_t stream,
                                                                      void **ptr_out)
{
  if (!hipmm_is_out_of_memory(status) || hipmm_is_tried_again(fallback->services, status)) return status;
  for (size_t i = 1; i < fallback->n_upstreams; i++) {
    struct owner owner = {.block = {.bytes = bytes, .stream = stream}, .upstream = i};
    status = hipmm_upstream_allocate(fallback->upstreams[i], bytes, alignment, stream, &owner.block.ptr);
    if (!status) status = fallback_add_owner(fallback, &owner, alignment);
    if (!status) {
      fallback_count(&fallback->allocations[i]);
      *ptr_out = owner.block.ptr;
      return HIPMM_OK;
    }
    if (!hipmm_is_out_of_memory(status) && status != HIPMM_E_ARGUMENT) break;
  }
  fallback_count(&fallback->failures);
  if (status != HIPMM_E_ARGUMENT) return status;
  return fallback->services->refuse(fallback->services, HIPMM_E_OUT_OF_MEMORY,
                                    "cannot allocate {0:bytes}: the upstreams that align to {1:bytes} are short of "
                                    "memory",
                                    bytes, alignment, 0);
}

static enum hipmm_status fallback_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct fallback *fallback = self;
  enum hipmm_status status = hipmm_upstream_allocate(fallback->upstreams[0], bytes, alignment, stream, ptr_out);
  if (__builtin_expect(status != HIPMM_OK, 0))
    return fallback_fall_back(fallback, status, bytes, alignment, stream, ptr_out);
  fallback_count(&fallback->firsts[thread_slot_now()].count);
  return status;
}

/* ---- Freeing ---- */

/* The caller has removed the record, since the next block at this address may come from any upstream. */
static enum hipmm_status fallback_free(struct fallback *fallback, const struct owner *owner, size_t alignment,
                                       hipmm_stream_t stream)
{
  enum hipmm_status status = hipmm_upstream_deallocate(fallback->upstreams[owner->upstream], owner->block.ptr,
                                                       owner->block.bytes, alignment, stream);
  if (status)
    live_blocks_restore(&fallback->owners.live, owner);
  else
    owners_remove(&fallback->owners, owner);
  return status;
}

/* Frees a block without a record. */
static enum hipmm_status fallback_deallocate_in_first(struct fallback *fallback, void *ptr, size_t bytes,
                                                      size_t alignment, hipmm_stream_t stream)
{
  const struct hipmm_services *services = fallback->services;
  struct hipmm_block block = {.bytes = bytes};
  if (ptr && fallback->has_chunks && owners_are_used(&fallback->owners)) {
    enum hipmm_status status = services->find_below(services, ptr, &block);
    if (status && status != HIPMM_E_NOT_SUPPORTED) return status;
    if (!status && bytes && bytes != block.bytes) return refuse_size(services, ptr, bytes, block.bytes);
  }
  return hipmm_upstream_deallocate(fallback->upstreams[0], ptr, bytes ? bytes : block.bytes, alignment, stream);
}

static enum hipmm_status fallback_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                             hipmm_stream_t stream)
{
  struct fallback *fallback = self;
  struct owner owner;
  enum hipmm_status status = HIPMM_E_POINTER;
  if (owners_may_have(&fallback->owners, ptr))
    status = live_blocks_try_extract(&fallback->owners.live, ptr, bytes, &owner);
  if (status == HIPMM_E_POINTER) return fallback_deallocate_in_first(fallback, ptr, bytes, alignment, stream);
  return status ? status : fallback_free(fallback, &owner, alignment, stream);
}

/* The core looks below for a block without a record (HIPMM_PLUGIN_HANDS_ON). */
static enum hipmm_status fallback_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct fallback *fallback = self;
  struct owner owner;
  if (owners_may_have(&fallback->owners, ptr) && live_blocks_find(&fallback->owners.live, ptr, &owner)) {
    *block_out = (struct hipmm_block){owner.block.ptr, owner.block.bytes};
    return HIPMM_OK;
  }
  return refuse_pointer(fallback->services, ptr);
}

static enum hipmm_status fallback_trim(void *self, size_t keep_bytes)
{
  struct fallback *fallback = self;
  (void)keep_bytes; /* of device memory, which the upstreams hold */
  live_blocks_trim(&fallback->owners.live);
  return HIPMM_OK;
}

/* ---- Values ---- */

enum fallback_value {
  FALLBACKS,
  FAILURES,
  LIVE_COUNT,
  LIVE_BYTES,
  METADATA_BYTES,
  ALLOCATIONS,
  N_VALUES = ALLOCATIONS + MOST_UPSTREAMS
};

static const struct hipmm_feature fallback_values[N_VALUES] = {
    [FALLBACKS] = {"fallbacks", "allocations", "Allocations served by another upstream than the first"},
    [FAILURES] = {"failures", "allocations", "Allocations that no upstream could serve"},
    [LIVE_COUNT] = {"live_fallback_count", "allocations", "Live allocations from other upstreams than the first"},
    [LIVE_BYTES] = {"live_fallback_bytes", "bytes", "Sum of their sizes, as requested"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for the records of these allocations"},
    [ALLOCATIONS] = {"allocations_1", "allocations", "Allocations served by the first upstream"},
    [ALLOCATIONS + 1] = {"allocations_2", "allocations", "Allocations served by the second upstream"},
    [ALLOCATIONS + 2] = {"allocations_3", "allocations", "Allocations served by the third upstream"},
    [ALLOCATIONS + 3] = {"allocations_4", "allocations", "Allocations served by the fourth upstream"},
    [ALLOCATIONS + 4] = {"allocations_5", "allocations", "Allocations served by the fifth upstream"},
    [ALLOCATIONS + 5] = {"allocations_6", "allocations", "Allocations served by the sixth upstream"},
    [ALLOCATIONS + 6] = {"allocations_7", "allocations", "Allocations served by the seventh upstream"},
    [ALLOCATIONS + 7] = {"allocations_8", "allocations", "Allocations served by the eighth upstream"},
};

static uint64_t fallback_allocations_of(struct fallback *fallback, size_t upstream)
{
  uint64_t sum = atomic_load_explicit(&fallback->allocations[upstream], memory_order_relaxed);
  for (size_t i = 0; upstream == 0 && i < THREAD_SLOTS; i++)
    sum += atomic_load_explicit(&fallback->firsts[i].count, memory_order_relaxed);
  return sum;
}

static uint64_t fallback_fallbacks_of(struct fallback *fallback)
{
  uint64_t sum = 0;
  for (size_t i = 1; i < MOST_UPSTREAMS; i++) sum += fallback_allocations_of(fallback, i);
  return sum;
}

static enum hipmm_status fallback_query(void *self, size_t index, int64_t *value_out)
{
  struct fallback *fallback = self;
  uint64_t value;
  switch (index) {
  case FALLBACKS: value = fallback_fallbacks_of(fallback); break;
  case FAILURES: value = atomic_load_explicit(&fallback->failures, memory_order_relaxed); break;
  case LIVE_COUNT: value = (uint64_t)live_blocks_count(&fallback->owners.live).count; break;
  case LIVE_BYTES: value = (uint64_t)live_blocks_count(&fallback->owners.live).bytes; break;
  case METADATA_BYTES: value = (uint64_t)live_blocks_count(&fallback->owners.live).metadata_bytes; break;
  default: value = fallback_allocations_of(fallback, index - ALLOCATIONS);
  }
  *value_out = (int64_t)value;
  return HIPMM_OK;
}

/* ---- Life ---- */

static enum hipmm_status fallback_check_upstreams(const struct hipmm_services *services,
                                                  struct hipmm_resource *const *upstreams, size_t n_upstreams)
{
  for (size_t i = 0; i < n_upstreams; i++)
    for (size_t other = 0; other < i; other++)
      if (upstreams[i] == upstreams[other])
        return services->fail(services, HIPMM_E_CONFIG, "upstream",
                              "upstreams %zu and %zu are the same; name each resource once", other + 1, i + 1);
  return HIPMM_OK;
}

/* In a graph; of upstreams that a program gives, creation knows more. */
static void fallback_validate(const struct hipmm_validation *validation, const void *options)
{
  const char *name, *other_name;
  (void)options; /* it has none */
  for (size_t i = 0; (name = validation->upstream(validation, i)); i++)
    for (size_t other = 0; other < i && (other_name = validation->upstream(validation, other)); other++)
      if (!strcmp(name, other_name))
        validation->error(validation, "upstream", "upstreams %zu and %zu are the same; name each resource once",
                          other + 1, i + 1);
}

static enum hipmm_status fallback_create(const struct hipmm_services *services, const void *options,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options; /* it has none */
  enum hipmm_status status = fallback_check_upstreams(services, upstreams, n_upstreams);
  if (status) return status;
  struct fallback *fallback = services->host_allocate(services, sizeof *fallback);
  if (!fallback || !owners_open(&fallback->owners, services)) {
    services->host_free(services, fallback, sizeof *fallback);
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  }
  fallback->services = services;
  fallback->upstreams = upstreams;
  fallback->n_upstreams = n_upstreams;
  for (size_t i = 1; i < n_upstreams; i++)
    fallback->has_chunks |= services->may_cut_up(services, upstreams[i], upstreams[0]) != 0;
  *self_out = fallback;
  return HIPMM_OK;
}

static void fallback_destroy(void *self)
{
  struct fallback *fallback = self;
  owners_close(&fallback->owners);
  fallback->services->host_free(fallback->services, fallback, sizeof *fallback);
}

static const struct hipmm_ops fallback_ops = {
    .struct_size = sizeof fallback_ops,
    .allocate = fallback_allocate,
    .deallocate = fallback_deallocate,
    .trim = fallback_trim,
    .query = fallback_query,
    .find = fallback_find,
};

HIPMM_EXPORT extern const struct hipmm_plugin fallback_LTX_hipmm_plugin;

const struct hipmm_plugin fallback_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "fallback",
    .version = "1.0",
    .doc = "Allocates from the first upstream that is neither out of memory nor at its limit",
    .role = HIPMM_ROLE_ADAPTOR,
    .flags = HIPMM_PLUGIN_HANDS_ON,
    .min_upstreams = 2,
    .max_upstreams = MOST_UPSTREAMS,
    PLUGIN_VALUES(fallback_values),
    .ops = &fallback_ops,
    .create = fallback_create,
    .destroy = fallback_destroy,
    .validate = fallback_validate,
};
