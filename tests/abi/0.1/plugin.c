/* SPDX-License-Identifier: MIT */
/* plugin.c: a plugin of version 0.1, `older`, compiled from the headers of that version: an adaptor that uses each kind of
 * row and each service that an adaptor has use for. See client.c. */
#include <hipmm/plugin.h>
#include <stdatomic.h>

struct older_options {
  int64_t level;
  uint32_t is_on, choice;
  uint64_t bytes;
  double ratio;
  int64_t duration_ns;
  const char *text;
  struct hipmm_strings strings;
};

struct older {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  atomic_int_least64_t allocations, level;
};

static enum hipmm_status older_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  struct older *older = self;
  enum hipmm_status status = hipmm_upstream_allocate(older->upstream, bytes, alignment, stream, ptr_out);
  if (!status) atomic_fetch_add(&older->allocations, 1);
  if (hipmm_is_out_of_memory(status))
    return older->services->explain(older->services, status, "{0:bytes} were wanted", bytes, 0, 0, 0);
  return status;
}

static enum hipmm_status older_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct older *older = self;
  return hipmm_upstream_deallocate(older->upstream, ptr, bytes, alignment, stream);
}

static enum hipmm_status older_query(void *self, size_t index, int64_t *value_out)
{
  struct older *older = self;
  *value_out = atomic_load(index ? &older->level : &older->allocations);
  return HIPMM_OK;
}

static enum hipmm_status older_perform(void *self, size_t index, int64_t *values_out)
{
  struct older *older = self;
  (void)index; /* there is one action */
  values_out[0] = atomic_exchange(&older->allocations, 0);
  values_out[1] = atomic_load(&older->level);
  return HIPMM_OK;
}

static enum hipmm_status older_reconfigure(void *self, const char *option, const void *options)
{
  struct older *older = self;
  const struct older_options *given = options;
  older->services->log(older->services, HIPMM_LOG_DEBUG, "%s is new", option);
  atomic_store(&older->level, given->level);
  return HIPMM_OK;
}

static enum hipmm_status older_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct older_options *given = options;
  int count = 0;
  if (n_upstreams != 1 || services->struct_size < sizeof *services || services->hip->GetDeviceCount(&count) || !count)
    return services->fail(services, HIPMM_E_INTERNAL, NULL, "the core does not give what version 0.1 promised");
  if (given->choice != 1 || given->bytes != 2 << 20 || given->ratio != 0.5 || given->duration_ns != 10000000 ||
      given->text || given->strings.count || !given->is_on)
    return services->fail(services, HIPMM_E_INTERNAL, NULL, "defaults are read in another way than in version 0.1");
  struct older *older = services->host_allocate(services, sizeof *older);
  if (!older) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  older->services = services;
  older->upstream = upstreams[0];
  atomic_store(&older->level, given->level);
  *self_out = older;
  return HIPMM_OK;
}

static void older_destroy(void *self)
{
  struct older *older = self;
  older->services->host_free(older->services, older, sizeof *older);
}

static const char *const older_choices[] = {"first", "second", NULL};

#define FIELD(name) offsetof(struct older_options, name)

static const struct hipmm_option older_table[] = {
    {.name = "level",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = FIELD(level),
     .initial = "1",
     .minimum = "0",
     .maximum = "9",
     .doc = "A number"},
    {.name = "is_on", .type = HIPMM_OPTION_BOOL, .offset = FIELD(is_on), .initial = "true", .doc = "A switch"},
    {.name = "choice",
     .type = HIPMM_OPTION_ENUM,
     .offset = FIELD(choice),
     .initial = "second",
     .choices = older_choices,
     .doc = "A word"},
    {.name = "bytes", .type = HIPMM_OPTION_BYTES, .offset = FIELD(bytes), .initial = "2MiB", .doc = "A size"},
    {.name = "ratio", .type = HIPMM_OPTION_RATIO, .offset = FIELD(ratio), .initial = "0.5", .doc = "A ratio"},
    {.name = "duration",
     .type = HIPMM_OPTION_DURATION,
     .offset = FIELD(duration_ns),
     .initial = "10ms",
     .doc = "A time"},
    {.name = "text", .type = HIPMM_OPTION_STRING, .offset = FIELD(text), .doc = "A text"},
    {.name = "strings", .type = HIPMM_OPTION_STRINGS, .offset = FIELD(strings), .doc = "Texts"},
};

static const struct hipmm_feature older_values[] = {
    {.name = "allocations", .unit = "blocks", .doc = "Allocations that succeeded"},
    {.name = "level_now", .unit = NULL, .doc = "The level in force"},
};

static const struct hipmm_feature older_actions[] = {
    {.name = "forget", .doc = "Sets the count of allocations to zero"},
};

static const struct hipmm_ops older_ops = {
    .struct_size = sizeof older_ops,
    .allocate = older_allocate,
    .deallocate = older_deallocate,
    .query = older_query,
    .perform = older_perform,
    .reconfigure = older_reconfigure,
};

HIPMM_EXPORT const struct hipmm_plugin older_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "older",
    .version = "0.1",
    .doc = "Counts allocations",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = older_table,
    .n_options = sizeof older_table / sizeof *older_table,
    .options_bytes = sizeof(struct older_options),
    .values = older_values,
    .actions = older_actions,
    .n_values = sizeof older_values / sizeof *older_values,
    .n_actions = sizeof older_actions / sizeof *older_actions,
    .ops = &older_ops,
    .create = older_create,
    .destroy = older_destroy,
};
