/* SPDX-License-Identifier: MIT */
/* sample.c: a plugin with a row of every kind in its tables, so that what `hipmm` prints of them can be compared to the
 * letter whatever becomes of the real plugins. It forwards to its upstream. */
#include <hipmm/plugin.h>
#include <stdio.h>

struct sample_bin {
  uint64_t size;
  struct hipmm_resource *resource;
};

struct sample_options {
  uint64_t initial_size, maximum_size;
  int64_t count;
  double ratio;
  int64_t interval;
  uint32_t record, verbose;
  const char *file, *separator;
  const struct hipmm_failure_handler *callback;
  struct hipmm_list bins;
};

static const char *const sample_records[] = {"auto", "lazy", "on_free", NULL};
static const char *const sample_unlimited[] = {"unlimited", NULL};

static const struct hipmm_option sample_bin_fields[] = {
    {.name = "size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct sample_bin, size),
     .unit = "bytes",
     .doc = "The largest request that the bin takes"},
    {.name = "resource",
     .type = HIPMM_OPTION_RESOURCE,
     .offset = offsetof(struct sample_bin, resource),
     .doc = "What serves the bin"},
};

static const struct hipmm_option sample_table[] = {
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct sample_options, initial_size),
     .initial = "50%",
     .unit = "bytes",
     .doc = "What is taken from the upstream when the resource is made, so that nobody waits for the driver later on"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = offsetof(struct sample_options, maximum_size),
     .initial = "unlimited",
     .unit = "bytes",
     .doc = "The most that is taken",
     .at_least = "initial_size",
     .choices = sample_unlimited},
    {.name = "count",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct sample_options, count),
     .initial = "128",
     .unit = "blocks",
     .doc = "Blocks taken at once",
     .minimum = "1",
     .maximum = "65536"},
    {.name = "ratio",
     .type = HIPMM_OPTION_RATIO,
     .offset = offsetof(struct sample_options, ratio),
     .initial = "0.5",
     .flags = HIPMM_OPTION_RELOADABLE,
     .doc = "A share",
     .minimum = "0"},
    {.name = "interval",
     .type = HIPMM_OPTION_DURATION,
     .offset = offsetof(struct sample_options, interval),
     .initial = "10ms",
     .doc = "How often"},
    {.name = "record",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct sample_options, record),
     .initial = "auto",
     .doc = "When an event is recorded",
     .choices = sample_records},
    {.name = "verbose",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct sample_options, verbose),
     .initial = "false",
     .doc = "Whether it talks, in décibels – at 20 °C"},
    {.name = "file",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct sample_options, file),
     .doc = "Where it writes"},
    {.name = "separator",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct sample_options, separator),
     .initial = "\t",
     .doc = "What it writes between two columns"},
    {.name = "callback",
     .type = HIPMM_OPTION_OBJECT,
     .offset = offsetof(struct sample_options, callback),
     .unit = "failure",
     .doc = "What is asked when memory is short"},
    {.name = "bins",
     .type = HIPMM_OPTION_LIST,
     .offset = offsetof(struct sample_options, bins),
     .doc = "The bins",
     .fields = sample_bin_fields,
     .n_fields = 2,
     .field_bytes = sizeof(struct sample_bin)},
};

static const struct hipmm_feature sample_values[] = {{"reserved_bytes", "bytes", "Held from the upstream"},
                                                     {"blocks", "blocks", "Live blocks"}};
static const struct hipmm_feature sample_actions[] = {{"flush", NULL, "Writes what is buffered"}};

static enum hipmm_status sample_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  return hipmm_upstream_allocate(self, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status sample_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  return hipmm_upstream_deallocate(self, ptr, bytes, alignment, stream);
}

static enum hipmm_status sample_query(void *self, size_t index, int64_t *value_out)
{
  (void)self;
  *value_out = (int64_t)index;
  return HIPMM_OK;
}

static enum hipmm_status sample_perform(void *self, size_t index, int64_t *values_out)
{
  (void)self;
  (void)index;
  values_out[0] = values_out[1] = 0;
  return HIPMM_OK;
}

static enum hipmm_status sample_reconfigure(void *self, const char *option, const void *options)
{
  (void)self;
  (void)option;
  (void)options;
  return HIPMM_OK;
}

static enum hipmm_status sample_process_end(void *self, enum hipmm_process_end moment)
{
  (void)self;
  fprintf(stderr, "sample: the process %s\n", moment == HIPMM_PROCESS_EXITS ? "exits" : "has ended");
  return HIPMM_OK;
}

static const struct hipmm_ops sample_ops = {.struct_size = sizeof sample_ops,
                                            .allocate = sample_allocate,
                                            .deallocate = sample_deallocate,
                                            .query = sample_query,
                                            .perform = sample_perform,
                                            .reconfigure = sample_reconfigure,
                                            .process_end = sample_process_end};

static enum hipmm_status sample_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)services;
  (void)options;
  (void)n_upstreams;
  *self_out = upstreams[0];
  return HIPMM_OK;
}

static void sample_destroy(void *self)
{
  (void)self;
}

HIPMM_EXPORT const struct hipmm_plugin sample_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "sample",
    .version = "1.2.3",
    .doc = "Forwards to its upstream, and has options of every kind",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = sample_table,
    .n_options = sizeof sample_table / sizeof *sample_table,
    .options_bytes = sizeof(struct sample_options),
    .values = sample_values,
    .actions = sample_actions,
    .n_values = 2,
    .n_actions = 1,
    .ops = &sample_ops,
    .create = sample_create,
    .destroy = sample_destroy,
};
