/* SPDX-License-Identifier: MIT */
/* thread_safe.c: an adaptor that admits one thread at a time to its upstream. Every type of hipmm is thread-safe, and the
 * core serialises plugins that declare that they are not. So this is for a plugin with a wrong declaration, and for
 * locating a race. It protects only the calls that come through it. */
#include "../common/biased_lock.h"
#include "../common/descriptor.h"

struct thread_safe {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct biased_lock lock;
};

static enum hipmm_status thread_safe_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                              void **ptr_out)
{
  struct thread_safe *thread_safe = self;
  enum hipmm_status status = biased_lock_enter(&thread_safe->lock, thread_safe->services);
  if (status) return status;
  status = hipmm_upstream_allocate(thread_safe->upstream, bytes, alignment, stream, ptr_out);
  biased_lock_release(&thread_safe->lock);
  return status;
}

static enum hipmm_status thread_safe_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                hipmm_stream_t stream)
{
  struct thread_safe *thread_safe = self;
  enum hipmm_status status = biased_lock_enter(&thread_safe->lock, thread_safe->services);
  if (status) return status;
  status = hipmm_upstream_deallocate(thread_safe->upstream, ptr, bytes, alignment, stream);
  biased_lock_release(&thread_safe->lock);
  return status;
}

static enum hipmm_status thread_safe_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct thread_safe *thread_safe = self;
  enum hipmm_status status = biased_lock_enter(&thread_safe->lock, thread_safe->services);
  if (status) return status;
  status = thread_safe->services->find_below(thread_safe->services, ptr, block_out);
  biased_lock_release(&thread_safe->lock);
  return status;
}

static enum hipmm_status thread_safe_create(const struct hipmm_services *services, const void *options,
                                            struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                            void **self_out)
{
  (void)options, (void)n_upstreams; /* none, and one */
  struct thread_safe *thread_safe = services->host_allocate(services, sizeof *thread_safe);
  if (!thread_safe)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  thread_safe->services = services;
  thread_safe->upstream = upstreams[0];
  biased_lock_open(&thread_safe->lock);
  *self_out = thread_safe;
  return HIPMM_OK;
}

static void thread_safe_destroy(void *self)
{
  struct thread_safe *thread_safe = self;
  biased_lock_close(&thread_safe->lock);
  thread_safe->services->host_free(thread_safe->services, thread_safe, sizeof *thread_safe);
}

static const struct hipmm_ops thread_safe_ops = {
    .struct_size = sizeof thread_safe_ops,
    .allocate = thread_safe_allocate,
    .deallocate = thread_safe_deallocate,
    .find = thread_safe_find,
};

HIPMM_EXPORT extern const struct hipmm_plugin thread_safe_LTX_hipmm_plugin;

const struct hipmm_plugin thread_safe_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    .type = "thread_safe",
    .version = "1.0",
    .doc = "Admits one thread at a time to its upstream",
    .ops = &thread_safe_ops,
    .create = thread_safe_create,
    .destroy = thread_safe_destroy,
};
