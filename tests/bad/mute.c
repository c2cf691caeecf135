/* SPDX-License-Identifier: MIT */
/* mute.c: a source as a third party may write it, with what is required alone: it tells nothing of its blocks. */
#include <hipmm/plugin.h>

static enum hipmm_status mute_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                       void **ptr_out)
{
  const struct hipmm_services *services = self;
  (void)alignment, (void)stream;
  *ptr_out = NULL;
  return bytes && services->hip->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static enum hipmm_status mute_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  const struct hipmm_services *services = self;
  (void)bytes, (void)alignment, (void)stream;
  return ptr && services->hip->Free(ptr) ? HIPMM_E_POINTER : HIPMM_OK;
}

static const struct hipmm_ops mute_ops = {
    .struct_size = sizeof mute_ops, .allocate = mute_allocate, .deallocate = mute_deallocate};

static enum hipmm_status mute_create(const struct hipmm_services *services, const void *options,
                                     struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)upstreams, (void)n_upstreams;
  *self_out = (void *)(uintptr_t)services;
  return HIPMM_OK;
}

static void mute_destroy(void *self)
{
  (void)self;
}

HIPMM_EXPORT extern const struct hipmm_plugin mute_LTX_hipmm_plugin;

const struct hipmm_plugin mute_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,         .type = "mute",   .version = "1",        .doc = "Tells nothing of its blocks",
    .role = HIPMM_ROLE_SOURCE, .ops = &mute_ops, .create = mute_create, .destroy = mute_destroy,
};
