/* SPDX-License-Identifier: MIT */
/* spilling.c: an adaptor with movable buffers (spilling.h). Other allocations go to its upstream as they are. */
#include "spilling.h"
#include "../common/descriptor.h"

static enum hipmm_status spilling_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  return movables_obtain(self, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status spilling_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                             hipmm_stream_t stream)
{
  return hipmm_upstream_deallocate(((struct spilling *)self)->upstream, ptr, bytes, alignment, stream);
}

/* To move a buffer is to wait for work. What must be freed for an allocation that failed is not known where others hold much: an
 * eighth is tried before all that can go. */
static enum hipmm_status spilling_trim(void *self, size_t keep_bytes)
{
  struct spilling *spilling = self;
  enum hipmm_reclaim_level level = spilling->services->reclaim_level(spilling->services, HIPMM_OK);
  if (level == HIPMM_RECLAIM_IDLE) return HIPMM_OK;
  pthread_mutex_lock(&spilling->lock);
  uint64_t held = spilling->bytes[TIER_DEVICE];
  pthread_mutex_unlock(&spilling->lock);
  uint64_t excess = held > keep_bytes ? held - keep_bytes : level == HIPMM_RECLAIM_WAIT ? held / 8 : 0;
  if (excess) movables_spill(spilling, excess, NULL);
  return HIPMM_OK;
}

/* ---- Values ---- */

enum spilling_value {
  LIVE_BYTES,
  DEVICE_BYTES,
  PINNED_BYTES,
  FILE_BYTES,
  SPILLS,
  DEMOTIONS,
  RESTORES,
  SPILLED_BYTES,
  RESTORED_BYTES,
  SPILLING_VALUES
};

static const struct hipmm_feature spilling_values[SPILLING_VALUES] = {
    [LIVE_BYTES] = {"live_bytes", "bytes", "Movable buffers with content, wherever it is"},
    [DEVICE_BYTES] = {"device_bytes", "bytes", "Movable buffers in device memory"},
    [PINNED_BYTES] = {"pinned_bytes", "bytes", "Movable buffers in pinned host memory"},
    [FILE_BYTES] = {"file_bytes", "bytes", "Movable buffers in the file"},
    [SPILLS] = {"spills", "buffers", "Times that a buffer was moved out of device memory"},
    [DEMOTIONS] = {"demotions", "buffers", "Times that a buffer was moved from pinned memory to the file"},
    [RESTORES] = {"restores", "buffers", "Times that a buffer was moved back"},
    [SPILLED_BYTES] = {"spilled_bytes", "bytes", "What was moved out, together"},
    [RESTORED_BYTES] = {"restored_bytes", "bytes", "What was moved back, together"},
};

static enum hipmm_status spilling_query(void *self, size_t index, int64_t *value_out)
{
  struct spilling *spilling = self;
  pthread_mutex_lock(&spilling->lock);
  const uint64_t *bytes = spilling->bytes;
  const uint64_t values[SPILLING_VALUES] = {[LIVE_BYTES] = spilling->live_bytes,
                                            [DEVICE_BYTES] = bytes[TIER_DEVICE],
                                            [PINNED_BYTES] = bytes[TIER_PINNED],
                                            [FILE_BYTES] = bytes[TIER_FILE],
                                            [SPILLS] = spilling->spills,
                                            [DEMOTIONS] = spilling->demotions,
                                            [RESTORES] = spilling->restores,
                                            [SPILLED_BYTES] = spilling->spilled_bytes,
                                            [RESTORED_BYTES] = spilling->restored_bytes};
  pthread_mutex_unlock(&spilling->lock);
  *value_out = (int64_t)values[index];
  return HIPMM_OK;
}

/* ---- Its life ---- */

static void spilling_stop_thread(struct spilling *spilling)
{
  if (!spilling->has_thread) return;
  pthread_mutex_lock(&spilling->lock);
  spilling->is_ending = true;
  pthread_cond_broadcast(&spilling->changed);
  pthread_mutex_unlock(&spilling->lock);
  pthread_join(spilling->thread, NULL);
}

/* No movable buffer is left: each refers to the stack. */
static void spilling_destroy(void *self)
{
  struct spilling *spilling = self;
  const struct hipmm_services *services = spilling->services;
  spilling_stop_thread(spilling);
  if (spilling->stream && services->hip->StreamDestroy(spilling->stream)) services->hip->GetLastError();
  if (spilling->frees && services->hip->StreamDestroy(spilling->frees)) services->hip->GetLastError();
  content_file_close(&spilling->file.file);
  pthread_cond_destroy(&spilling->changed);
  pthread_mutex_destroy(&spilling->lock);
  services->host_free(services, spilling, sizeof *spilling);
}

static enum hipmm_status spilling_start(struct spilling *spilling)
{
  const struct hipmm_services *services = spilling->services;
  int code = services->hip->StreamCreateWithFlags(&spilling->stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (!code) code = services->hip->StreamCreateWithFlags(&spilling->frees, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (code) return services->refuse_hip(services, "hipStreamCreateWithFlags", code, 0);
  if (spilling->options->high_water == HIPMM_UNLIMITED) return HIPMM_OK;
  if (movables_start_thread(spilling)) return HIPMM_OK;
  return services->fail(services, HIPMM_E_OUT_OF_MEMORY, "high_water",
                        "no thread could be started; leave the option out, or raise the limit of threads (ulimit -u)");
}

static enum hipmm_status spilling_create(const struct hipmm_services *services, const void *options,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  const struct hipmm_hooks *policy = ((const struct spilling_options *)options)->policy;
  if (policy && policy->kinds && !(policy->kinds >> HIPMM_EVENT_RANK & 1))
    return services->fail(services, HIPMM_E_CONFIG, "policy",
                          "its kinds leave HIPMM_EVENT_RANK out; add 1 << HIPMM_EVENT_RANK, or set kinds to 0");
  struct spilling *spilling = services->host_allocate(services, sizeof *spilling);
  if (!spilling) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  spilling->services = services;
  spilling->options = options;
  spilling->upstream = upstreams[0];
  enum hipmm_status status = spilling->options->folder
                                 ? content_file_open(&spilling->file.file, services, spilling->options->folder)
                                 : HIPMM_OK;
  if (status) {
    services->host_free(services, spilling, sizeof *spilling);
    return status;
  }
  pthread_mutex_init(&spilling->lock, NULL);
  pthread_cond_init(&spilling->changed, NULL);
  status = spilling_start(spilling);
  if (status)
    spilling_destroy(spilling);
  else
    *self_out = spilling;
  return status;
}

static const char *const spilling_unlimited[] = {"unlimited", NULL};
static const char *const spilling_off[] = {"off", NULL};

static const struct hipmm_option spilling_option_table[] = {
    {.name = "pinned",
     .type = HIPMM_OPTION_RESOURCE,
     .offset = offsetof(struct spilling_options, pinned),
     .doc = "A resource of pinned host memory to which buffers are moved first, such as \"staging\" if that is a pool "
            "over `pinned`"},
    {.name = "pinned_limit",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct spilling_options, pinned_limit),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "The most bytes of buffers in pinned memory",
     .choices = spilling_unlimited},
    {.name = "folder",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct spilling_options, folder),
     .doc = "A folder on a fast disk, such as \"/tmp\". A file there, without a name, gets the coldest buffers when "
            "pinned memory is full"},
    {.name = "file_limit",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct spilling_options, file_limit),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "The most bytes that the file has",
     .choices = spilling_unlimited},
    {.name = "high_water",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct spilling_options, high_water),
     .initial = "off",
     .unit = "bytes",
     .doc = "Above so many bytes of buffers in device memory a thread moves idle ones out, ahead of need",
     .choices = spilling_off},
    {.name = "policy",
     .type = HIPMM_OPTION_OBJECT,
     .offset = offsetof(struct spilling_options, policy),
     .unit = "hooks",
     .doc =
         "Name of the function that the program registered with hipmm_hooks_register(), which ranks the buffers that "
         "may be moved (HIPMM_EVENT_RANK); without one, the buffer that was unpinned longest ago goes first"},
};

static void spilling_validate(const struct hipmm_validation *validation, const void *options)
{
  (void)options;
  if (validation->has_device_memory(validation, "pinned"))
    validation->error(validation, "pinned",
                      "this resource has memory that the host cannot access; name one of host memory, such as a pool "
                      "over \"pinned\"");
}

static const struct hipmm_ops spilling_ops = {
    .struct_size = sizeof spilling_ops,
    .allocate = spilling_allocate,
    .deallocate = spilling_deallocate,
    .trim = spilling_trim,
    .query = spilling_query,
    .moving = &movables_functions,
};

HIPMM_EXPORT extern const struct hipmm_plugin spilling_LTX_hipmm_plugin;

const struct hipmm_plugin spilling_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(spilling_option_table, struct spilling_options),
    .type = "spilling",
    .version = "1.0",
    .doc = "Has movable buffers (hipmm_movable_create()), and moves those that are not in use to the host or to a file",
    .flags = HIPMM_PLUGIN_ACCESSES_MEMORY,
    PLUGIN_VALUES(spilling_values),
    .ops = &spilling_ops,
    .create = spilling_create,
    .destroy = spilling_destroy,
    .validate = spilling_validate,
};
