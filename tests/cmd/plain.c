/* SPDX-License-Identifier: MIT */
/* plain.c: the smallest source there can be, without options, so that trees and messages in these tests do not depend
 * on what the real sources say of themselves. */
#include <hipmm/plugin.h>

static enum hipmm_status plain_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  const struct hipmm_services *services = self;
  void *ptr = NULL;
  (void)alignment;
  (void)stream;
  if (bytes > 0) {
    int code = services->hip->Malloc(&ptr, bytes);
    if (code != HIPMM_HIP_SUCCESS) return services->refuse_hip(services, "hipMalloc", code, bytes);
    enum hipmm_status status = services->track(services, ptr, bytes);
    if (status != HIPMM_OK) return services->hip->Free(ptr), status;
  }
  *ptr_out = ptr;
  return HIPMM_OK;
}

static enum hipmm_status plain_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  const struct hipmm_services *services = self;
  size_t held;
  (void)alignment;
  (void)stream;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = services->untrack(services, ptr, bytes, &held);
  if (status == HIPMM_OK) services->hip->Free(ptr);
  return status;
}

static const struct hipmm_ops plain_ops = {
    .struct_size = sizeof plain_ops, .allocate = plain_allocate, .deallocate = plain_deallocate};

static enum hipmm_status plain_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options;
  (void)upstreams;
  (void)n_upstreams;
  *self_out = (void *)(uintptr_t)services;
  return HIPMM_OK;
}

static void plain_destroy(void *self)
{
  (void)self;
}

HIPMM_EXPORT const struct hipmm_plugin plain_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "plain",
    .version = "1.0.0",        .doc = "Memory of the device and nothing else",
    .role = HIPMM_ROLE_SOURCE, .ops = &plain_ops,
    .create = plain_create,    .destroy = plain_destroy,
};
