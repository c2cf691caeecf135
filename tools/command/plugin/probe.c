/* SPDX-License-Identifier: MIT */
/* probe.c: the resource directly below the tested one: an adaptor that records what it was asked for, and fails when it is
 * told to. It leaves refusals to its own upstream. */
#include "kit.h"
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

struct kit_probe_call kit_probe_allocated, kit_probe_freed;
uint64_t kit_probe_allocations, kit_probe_frees, kit_probe_tries, kit_probe_fails_at;
size_t kit_probe_alignment;
const char *kit_probe_breach;

struct probe_adaptor {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
};

static struct ranges probe_live = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct kit_probe_use kit_probe_use;

size_t kit_probe_live(void)
{
  return probe_live.count;
}

uint64_t kit_probe_live_bytes(void)
{
  return probe_live.bytes;
}

/* The upstream may give the memory to whoever comes next on the stream of the free. So the work on it must be over by the
 * time that this stream comes to the free. */
static void probe_check_use(const struct hipmm_hip *hip, const struct hipmm_block *block, hipmm_stream_t stream)
{
  uintptr_t offset = (uintptr_t)kit_probe_use.ptr - (uintptr_t)block->ptr;
  if (!kit_probe_use.ptr || offset >= block->bytes || hipmm_stream_is_captured(hip, stream)) return;
  if (!hip->StreamSynchronize(stream) && !atomic_load(&kit_probe_use.is_over))
    kit_fail("the upstream gets %zu bytes back on a stream that does not wait for the work on them, which a stream "
             "was given before the free",
             block->bytes);
}

static enum hipmm_status probe_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  struct probe_adaptor *probe = self;
  struct range other;
  void *ptr = NULL;
  __atomic_store_n(&kit_probe_alignment, alignment, __ATOMIC_RELAXED);
  if (alignment < HIPMM_ALIGNMENT || alignment & (alignment - 1)) kit_probe_breach = "an alignment that is none";
  if (__atomic_add_fetch(&kit_probe_tries, 1, __ATOMIC_RELAXED) == kit_probe_fails_at)
    return probe->services->refuse(probe->services, HIPMM_E_OUT_OF_MEMORY, "refuses {0:bytes}, as a test", bytes, 0, 0);
  enum hipmm_status status = hipmm_upstream_allocate(probe->upstream, bytes, alignment, stream, &ptr);
  if (status) return status;
  if (ptr) ranges_add(&probe_live, (uintptr_t)ptr, bytes, &other);
  kit_probe_allocated = (struct kit_probe_call){ptr, bytes, alignment, stream};
  __atomic_add_fetch(&kit_probe_allocations, 1, __ATOMIC_RELAXED);
  *ptr_out = ptr;
  return HIPMM_OK;
}

/* The range is dropped first: another thread may get the address as soon as it is free. */
static enum hipmm_status probe_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct probe_adaptor *probe = self;
  struct hipmm_block block = {ptr, bytes};
  struct range other;
  bool is_known = ptr && !probe->services->find_below(probe->services, ptr, &block) &&
                  ranges_remove(&probe_live, (uintptr_t)ptr, block.bytes);
  if (is_known) probe_check_use(probe->services->hip, &block, stream);
  enum hipmm_status status = hipmm_upstream_deallocate(probe->upstream, ptr, bytes, alignment, stream);
  if (status && is_known) ranges_add(&probe_live, (uintptr_t)ptr, block.bytes, &other);
  if (status) return status;
  kit_probe_freed = (struct kit_probe_call){ptr, bytes, alignment, stream};
  __atomic_add_fetch(&kit_probe_frees, 1, __ATOMIC_RELAXED);
  return HIPMM_OK;
}

static enum hipmm_status probe_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)n_upstreams; /* one, as the descriptor says */
  struct probe_adaptor *probe = calloc(1, sizeof *probe);
  if (!probe) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  *probe = (struct probe_adaptor){services, upstreams[0]};
  *self_out = probe;
  return HIPMM_OK;
}

static void probe_destroy(void *self)
{
  free(self);
}

static const struct hipmm_ops probe_ops = {
    .struct_size = sizeof probe_ops, .allocate = probe_allocate, .deallocate = probe_deallocate};

const struct hipmm_plugin kit_probe = {
    HIPMM_PLUGIN_HEAD,          .type = "kit_probe",
    .version = "1.0",           .doc = "Notes what it is asked for, and fails when it is told to",
    .role = HIPMM_ROLE_ADAPTOR, .min_upstreams = 1,
    .max_upstreams = 1,         .ops = &probe_ops,
    .create = probe_create,     .destroy = probe_destroy,
};
