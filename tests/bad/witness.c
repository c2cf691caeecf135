/* SPDX-License-Identifier: MIT */
/* witness.c: a good adaptor that remembers how the core treated it: on which device it was created, how often each op
 * was called, in which turn it was trimmed. It can call a function of the program for each stream that it is told of. */
#include <hipmm/plugin.h>
#include <stdatomic.h>

enum witness_value {
  WITNESS_CREATE_DEVICE,
  WITNESS_TRIM_TURN,
  WITNESS_TRIM_BYTES,
  WITNESS_ALIGNMENT,
  WITNESS_RETIRED,
  WITNESS_RETAINED,
  WITNESS_ACTIONS,
  WITNESS_N
};

struct witness_options {
  const struct hipmm_failure_handler *when_retained;
};

static const struct hipmm_option witness_options[] = {
    {.name = "when_retained",
     .type = HIPMM_OPTION_OBJECT,
     .offset = offsetof(struct witness_options, when_retained),
     .unit = "failure",
     .doc = "What it calls for each stream that is retained"},
};

struct witness {
  const struct hipmm_services *services;
  const struct hipmm_failure_handler *when_retained; /* NULL: none */
  struct hipmm_resource *upstream;
  atomic_int_fast64_t values[WITNESS_N];
};

static atomic_int_fast64_t witness_turns;

static const struct hipmm_feature witness_values[] = {
    [WITNESS_CREATE_DEVICE] = {"create_device", NULL, "The current device during create"},
    [WITNESS_TRIM_TURN] = {"trim_turn", NULL, "When it was trimmed last, among all instances"},
    [WITNESS_TRIM_BYTES] = {"trim_bytes", "bytes", "What it was trimmed to last"},
    [WITNESS_ALIGNMENT] = {"alignment", "bytes", "The alignment of the last allocation"},
    [WITNESS_RETIRED] = {"retired", NULL, "Streams retired"},
    [WITNESS_RETAINED] = {"retained", NULL, "Streams retained"},
    [WITNESS_ACTIONS] = {"actions", NULL, "Actions done"},
};

static const struct hipmm_feature witness_actions[] = {{"act", NULL, "Counts"}, {"refuse", NULL, "Fails"}};

static enum hipmm_status witness_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct witness *witness = self;
  witness->values[WITNESS_ALIGNMENT] = (int64_t)alignment;
  return hipmm_upstream_allocate(witness->upstream, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status witness_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct witness *witness = self;
  return hipmm_upstream_deallocate(witness->upstream, ptr, bytes, alignment, stream);
}

static enum hipmm_status witness_trim(void *self, size_t keep_bytes)
{
  struct witness *witness = self;
  witness->values[WITNESS_TRIM_TURN] = ++witness_turns;
  witness->values[WITNESS_TRIM_BYTES] = (int64_t)keep_bytes;
  return HIPMM_OK;
}

static enum hipmm_status witness_query(void *self, size_t index, int64_t *value_out)
{
  struct witness *witness = self;
  *value_out = witness->values[index];
  return HIPMM_OK;
}

static enum hipmm_status witness_perform(void *self, size_t index, int64_t *values_out)
{
  struct witness *witness = self;
  if (index == 1) return witness->services->refuse(witness->services, HIPMM_E_STATE, "not {0}", 42, 0, 0);
  witness->values[WITNESS_ACTIONS]++;
  for (int i = 0; i < WITNESS_N; i++) values_out[i] = witness->values[i];
  return HIPMM_OK;
}

static void witness_stream_retire(void *self, hipmm_stream_t stream)
{
  struct witness *witness = self;
  (void)stream;
  witness->values[WITNESS_RETIRED]++;
}

static void witness_stream_retain(void *self, hipmm_stream_t stream)
{
  struct witness *witness = self;
  (void)stream;
  witness->values[WITNESS_RETAINED]++;
  if (witness->when_retained) witness->when_retained->callback(witness->when_retained->arg, 0);
}

static const struct hipmm_ops witness_ops = {.struct_size = sizeof witness_ops,
                                             .allocate = witness_allocate,
                                             .deallocate = witness_deallocate,
                                             .trim = witness_trim,
                                             .query = witness_query,
                                             .perform = witness_perform,
                                             .stream_retire = witness_stream_retire,
                                             .stream_retain = witness_stream_retain};

static enum hipmm_status witness_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  int device = -1;
  (void)n_upstreams;
  struct witness *witness = services->host_allocate(services, sizeof *witness);
  if (!witness) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  services->hip->GetDevice(&device);
  witness->services = services;
  witness->upstream = upstreams[0];
  witness->when_retained = ((const struct witness_options *)options)->when_retained;
  witness->values[WITNESS_CREATE_DEVICE] = device;
  *self_out = witness;
  return HIPMM_OK;
}

static void witness_destroy(void *self)
{
  struct witness *witness = self;
  const struct hipmm_services *services = witness->services;
  int device = -1;
  services->hip->GetDevice(&device);
  services->log(services, HIPMM_LOG_INFO, "destroyed on device %d", device);
  services->host_free(services, witness, sizeof *witness);
}

HIPMM_EXPORT extern const struct hipmm_plugin witness_LTX_hipmm_plugin;

const struct hipmm_plugin witness_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "witness",
    .version = "1",
    .doc = "Remembers how it was treated",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = witness_options,
    .n_options = 1,
    .options_bytes = sizeof(struct witness_options),
    .values = witness_values,
    .n_values = WITNESS_N,
    .actions = witness_actions,
    .n_actions = 2,
    .ops = &witness_ops,
    .create = witness_create,
    .destroy = witness_destroy,
};
