/* SPDX-License-Identifier: MIT */
/* prefetch.c: an adaptor that prefetches managed memory to the resource's device at each allocation, in the order of the
 * allocation's stream (hipMemPrefetchAsync). Other memory is not prefetched, nor is memory of a device without
 * concurrent access to managed memory. Nothing is prefetched on a captured stream, since that would end the capture. */
#include "../common/descriptor.h"
#include "../common/memory_hint.h"

static enum hipmm_status prefetch_start(struct memory_hint *prefetch, const void *ptr, size_t bytes,
                                        hipmm_stream_t stream)
{
  const struct hipmm_services *services = prefetch->services;
  enum hipmm_status status = HIPMM_OK;
  int previous = services->enter_device(services); /* the default stream is the current device's */
  if (!hipmm_stream_is_captured(services->hip, stream))
    status =
        memory_hint_classify(prefetch, services->hip->MemPrefetchAsync(ptr, bytes, services->device, stream), bytes);
  services->leave_device(services, previous);
  return status;
}

static enum hipmm_status prefetch_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct memory_hint *prefetch = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(prefetch->upstream, bytes, alignment, stream, &ptr);
  if (status) return status;
  if (ptr && prefetch->is_on) status = prefetch_start(prefetch, ptr, bytes, stream);
  if (status) return memory_hint_release(prefetch, status, (struct hipmm_block){ptr, bytes}, alignment, stream);
  *ptr_out = ptr;
  return HIPMM_OK;
}

static const struct hipmm_feature prefetch_values[MEMORY_HINT_VALUES] = {
    [MEMORY_HINT_IS_ON] = {"is_on", "0 or 1", "1 if the device can prefetch; 0 if this resource only forwards"},
    [MEMORY_HINT_GIVEN] = {"prefetched_count", "allocations", "Allocations that were prefetched"},
    [MEMORY_HINT_GIVEN_BYTES] = {"prefetched_bytes", "bytes", "Sum of their sizes, as requested"},
    [MEMORY_HINT_IGNORED] = {"ignored_count", "allocations",
                             "Allocations that were not prefetched, because their memory is not managed"},
};

static void prefetch_validate(const struct hipmm_validation *validation, const void *options)
{
  (void)options; /* it has none */
  memory_hint_validate(validation, "hipMemPrefetchAsync");
}

static enum hipmm_status prefetch_create(const struct hipmm_services *services, const void *options,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)n_upstreams; /* none, and one */
  struct memory_hint *prefetch = services->host_allocate(services, sizeof *prefetch);
  if (!prefetch) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  enum hipmm_status status = memory_hint_open(prefetch, services, upstreams[0], "hipMemPrefetchAsync",
                                              services->hip->MemPrefetchAsync != NULL);
  if (status)
    services->host_free(services, prefetch, sizeof *prefetch);
  else
    *self_out = prefetch;
  return status;
}

static void prefetch_destroy(void *self)
{
  struct memory_hint *prefetch = self;
  prefetch->services->host_free(prefetch->services, prefetch, sizeof *prefetch);
}

static const struct hipmm_ops prefetch_ops = {
    .struct_size = sizeof prefetch_ops,
    .allocate = prefetch_allocate,
    .deallocate = memory_hint_deallocate,
    .query = memory_hint_query,
};

HIPMM_EXPORT extern const struct hipmm_plugin prefetch_LTX_hipmm_plugin;

const struct hipmm_plugin prefetch_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    .type = "prefetch",
    .version = "1.0",
    .doc = "Prefetches managed memory to the device at each allocation (hipMemPrefetchAsync)",
    PLUGIN_VALUES(prefetch_values),
    .ops = &prefetch_ops,
    .create = prefetch_create,
    .destroy = prefetch_destroy,
    .validate = prefetch_validate,
};
