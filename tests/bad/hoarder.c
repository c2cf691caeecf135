/* SPDX-License-Identifier: MIT */
/* hoarder.c: a sub-allocator as a third party may write it: it keeps the last block that was freed, gives nothing
 * back before it is destroyed since it has no trim, and holds its lock while it calls its upstream. Its values have names of
 * struct hipmm_statistics, and need the lock. */
#include <hipmm/plugin.h>
#include <pthread.h>

struct hoarder_options {
  const struct hipmm_failure_handler *failure;
  uint64_t initial_size;
};

static const struct hipmm_option hoarder_table[] = {
    {.name = "failure",
     .doc = "For tests",
     .offset = offsetof(struct hoarder_options, failure),
     .type = HIPMM_OPTION_OBJECT,
     .unit = "failure"},
    {.name = "initial_size",
     .doc = "For tests",
     .offset = offsetof(struct hoarder_options, initial_size),
     .type = HIPMM_OPTION_BYTES,
     .initial = "0"},
};

struct hoarder {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  pthread_mutex_t lock;
  void *kept;
  size_t kept_bytes;
};

/* A function of the program may be in a call of its upstream, in this thread or in another. */
static enum hipmm_status hoarder_enter(struct hoarder *hoarder)
{
  if (!pthread_mutex_trylock(&hoarder->lock)) return HIPMM_OK;
  enum hipmm_status status = hoarder->services->check_wait(hoarder->services);
  if (!status) pthread_mutex_lock(&hoarder->lock);
  return status;
}

static enum hipmm_status hoarder_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct hoarder *hoarder = self;
  enum hipmm_status status = hoarder_enter(hoarder);
  if (status) return status;
  if (hoarder->kept && hoarder->kept_bytes == bytes) {
    *ptr_out = hoarder->kept;
    hoarder->kept = NULL;
  } else {
    status = hipmm_upstream_allocate(hoarder->upstream, bytes, alignment, stream, ptr_out);
  }
  pthread_mutex_unlock(&hoarder->lock);
  return status;
}

static enum hipmm_status hoarder_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct hoarder *hoarder = self;
  enum hipmm_status status = hoarder_enter(hoarder);
  if (status) return status;
  if (!hoarder->kept && !hoarder->services->hip->StreamSynchronize(stream)) {
    hoarder->kept = ptr;
    hoarder->kept_bytes = bytes;
  } else {
    status = hipmm_upstream_deallocate(hoarder->upstream, ptr, bytes, alignment, stream);
  }
  pthread_mutex_unlock(&hoarder->lock);
  return status;
}

static const struct hipmm_feature hoarder_values[] = {{"peak_bytes", "bytes", "For tests"},
                                                      {"peak_count", "blocks", "For tests"}};

static enum hipmm_status hoarder_query(void *self, size_t index, int64_t *value_out)
{
  struct hoarder *hoarder = self;
  (void)index;
  enum hipmm_status status = hoarder_enter(hoarder);
  if (status) return status;
  *value_out = hoarder->kept != NULL;
  pthread_mutex_unlock(&hoarder->lock);
  return HIPMM_OK;
}

static enum hipmm_status hoarder_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct hoarder_options *given = options;
  (void)n_upstreams;
  struct hoarder *hoarder = services->host_allocate(services, sizeof *hoarder);
  if (!hoarder) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  hoarder->services = services;
  hoarder->upstream = upstreams[0];
  hoarder->kept_bytes = given->initial_size;
  enum hipmm_status status = HIPMM_OK;
  if (given->initial_size)
    status = hipmm_upstream_allocate(hoarder->upstream, hoarder->kept_bytes, HIPMM_ALIGNMENT, NULL, &hoarder->kept);
  if (status) {
    services->host_free(services, hoarder, sizeof *hoarder);
    return status;
  }
  pthread_mutex_init(&hoarder->lock, NULL);
  *self_out = hoarder;
  return HIPMM_OK;
}

static void hoarder_destroy(void *self)
{
  struct hoarder *hoarder = self;
  if (hoarder->kept)
    hipmm_upstream_deallocate(hoarder->upstream, hoarder->kept, hoarder->kept_bytes, HIPMM_ALIGNMENT, NULL);
  pthread_mutex_destroy(&hoarder->lock);
  hoarder->services->host_free(hoarder->services, hoarder, sizeof *hoarder);
}

static const struct hipmm_ops hoarder_ops = {.struct_size = sizeof hoarder_ops,
                                             .allocate = hoarder_allocate,
                                             .deallocate = hoarder_deallocate,
                                             .query = hoarder_query};

HIPMM_EXPORT extern const struct hipmm_plugin hoarder_LTX_hipmm_plugin;

const struct hipmm_plugin hoarder_LTX_hipmm_plugin = {HIPMM_PLUGIN_HEAD,
                                                      .type = "hoarder",
                                                      .version = "1.0",
                                                      .doc = "Keeps the last block that was freed",
                                                      .role = HIPMM_ROLE_SUB_ALLOCATOR,
                                                      .min_upstreams = 1,
                                                      .max_upstreams = 1,
                                                      .options = hoarder_table,
                                                      .n_options = sizeof hoarder_table / sizeof *hoarder_table,
                                                      .options_bytes = sizeof(struct hoarder_options),
                                                      .values = hoarder_values,
                                                      .n_values = sizeof hoarder_values / sizeof *hoarder_values,
                                                      .ops = &hoarder_ops,
                                                      .create = hoarder_create,
                                                      .destroy = hoarder_destroy};
