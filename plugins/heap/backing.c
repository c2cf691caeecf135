/* SPDX-License-Identifier: MIT */
/* backing.c: the choice between granules and segments, which is made when the pool is created. */
#include "backing.h"

static const char *backing_reason_not_mapped(const struct hipmm_resource *upstream, enum hipmm_status status)
{
  if (!upstream->ops->mapping) return "the upstream has no virtual memory";
  if (status == HIPMM_E_LIMIT) return "maximum_size is less than the smallest chunk that can be mapped";
  return status == HIPMM_E_NOT_SUPPORTED ? "this runtime or device has no virtual memory management"
                                         : "virtual memory management fails";
}

enum hipmm_status backing_open(struct backing *backing, struct heap *heap, const struct hipmm_services *services,
                               struct hipmm_resource *upstream, const struct pool_options *options)
{
  enum growth growth = options->ipc == IPC_LEGACY ? GROWTH_SEGMENTS : (enum growth)options->growth;
  *backing = (struct backing){.ops = NULL};
  if (options->ipc == IPC_LEGACY && (options->growth == GROWTH_MAPPED || options->exportable))
    return services->fail(services, HIPMM_E_CONFIG, "ipc",
                          "\"legacy\" needs segments, for the driver has no handles of mapped memory; remove "
                          "\"growth\": \"mapped\" and \"exportable\"");
  const char *reason = growth == GROWTH_AUTO ? chunks_discouraged_reason(upstream) : NULL;
  if (reason) services->log(services, HIPMM_LOG_INFO, "growth segments: %s; \"growth\": \"mapped\" uses it", reason);
  if (growth != GROWTH_SEGMENTS && !reason) {
    enum hipmm_status status = granules_open(&backing->granules, heap, services, upstream, options);
    if (!status) {
      backing->ops = &granules_ops;
      backing->self = &backing->granules;
      backing->held = &backing->granules.chunks.held;
      services->log(services, HIPMM_LOG_INFO, "growth mapped: chunks of %llu bytes and more",
                    (unsigned long long)backing->granules.chunks.addresses.granule_bytes);
      return HIPMM_OK;
    }
    reason = backing_reason_not_mapped(upstream, status);
    if (growth == GROWTH_MAPPED && status != HIPMM_E_NOT_SUPPORTED && status != HIPMM_E_LIMIT) return status;
    if (growth == GROWTH_MAPPED)
      return services->fail(services, HIPMM_E_NOT_SUPPORTED, "growth",
                            "\"mapped\" is not possible here: %s; write \"auto\"", reason);
    services->log(services, HIPMM_LOG_INFO, "growth segments: %s", reason);
  }
  if (!backing_open_segments(backing, heap, services, upstream, options->maximum_size, options->slack))
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory left for the pool's records");
  return HIPMM_OK;
}
