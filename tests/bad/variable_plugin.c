/* SPDX-License-Identifier: MIT */
/* variable_plugin.c: an adaptor that takes registered objects of every kind, whose options can be set while it is in
 * use, and that shows extents as an option says. What it was given can be read as values. */
#include <hipmm/plugin.h>
#include <stdatomic.h>
#include <string.h>

/* Written by tests as {"at": 4096, "bytes": 256, "state": "live", "stream": 1}. */
struct variable_plugin_extent {
  int64_t at, bytes, stream;
  uint32_t state, apart, movable;
};

struct variable_plugin_rule {
  const struct hipmm_region *region;
};

struct variable_plugin_options {
  const struct hipmm_allocator *allocator;
  const struct hipmm_failure_handler *failure;
  const struct hipmm_region *region;
  const struct hipmm_mempool *mempool;
  struct hipmm_list rules, extents;
  int64_t level;
  uint64_t size, floor;
  const char *label;
  uint32_t stubborn, fixed, calls;
};

enum variable_plugin_value {
  PLIABLE_ALLOCATOR,
  PLIABLE_FAILURE,
  PLIABLE_REGION,
  PLIABLE_MEMPOOL,
  PLIABLE_RULES,
  PLIABLE_LEVEL,
  PLIABLE_SIZE,
  PLIABLE_LABEL,
  PLIABLE_SET,
  PLIABLE_N
};

struct variable_plugin {
  const struct hipmm_services *services;
  const struct variable_plugin_options *_Atomic options;
  struct hipmm_resource *upstream;
  atomic_int_fast64_t set;
};

static const char *const variable_plugin_states[] = {"live", "free", "pending", "cached", "later", NULL};

static const struct hipmm_option variable_plugin_rule_fields[] = {
    {.name = "region",
     .type = HIPMM_OPTION_OBJECT,
     .offset = offsetof(struct variable_plugin_rule, region),
     .unit = "region",
     .doc = "A region"}};

#define EXTENT(field) .name = #field, .doc = "Of an extent", .offset = offsetof(struct variable_plugin_extent, field)

static const struct hipmm_option variable_plugin_extent_fields[] = {
    {EXTENT(at), .type = HIPMM_OPTION_INTEGER},
    {EXTENT(bytes), .type = HIPMM_OPTION_INTEGER},
    {EXTENT(stream), .type = HIPMM_OPTION_INTEGER, .initial = "0"},
    {EXTENT(state), .type = HIPMM_OPTION_ENUM, .initial = "live", .choices = variable_plugin_states},
    {EXTENT(apart), .type = HIPMM_OPTION_BOOL, .initial = "false"},
    {EXTENT(movable), .type = HIPMM_OPTION_BOOL, .initial = "false"},
};

#define ROW(field) .name = #field, .doc = "For tests", .offset = offsetof(struct variable_plugin_options, field)

static const struct hipmm_option variable_plugin_table[] = {
    {ROW(allocator), .type = HIPMM_OPTION_OBJECT, .unit = "allocator"},
    {ROW(failure), .type = HIPMM_OPTION_OBJECT, .unit = "failure", .flags = HIPMM_OPTION_RELOADABLE},
    {ROW(region), .type = HIPMM_OPTION_OBJECT, .unit = "region"},
    {ROW(mempool), .type = HIPMM_OPTION_OBJECT, .unit = "mempool"},
    {ROW(rules), .type = HIPMM_OPTION_LIST, .fields = variable_plugin_rule_fields, .n_fields = 1,
     .field_bytes = sizeof(struct variable_plugin_rule)},
    {ROW(extents), .type = HIPMM_OPTION_LIST, .fields = variable_plugin_extent_fields, .n_fields = 6,
     .field_bytes = sizeof(struct variable_plugin_extent)},
    {ROW(level), .type = HIPMM_OPTION_INTEGER, .initial = "5", .minimum = "0", .maximum = "100",
     .flags = HIPMM_OPTION_RELOADABLE},
    {ROW(size), .type = HIPMM_OPTION_BYTES, .initial = "50%", .at_least = "floor",
     .flags = HIPMM_OPTION_RELOADABLE | HIPMM_OPTION_PERCENT},
    {ROW(floor), .type = HIPMM_OPTION_BYTES, .initial = "0"},
    {ROW(label), .type = HIPMM_OPTION_STRING, .flags = HIPMM_OPTION_RELOADABLE},
    {ROW(stubborn), .type = HIPMM_OPTION_BOOL, .initial = "false", .flags = HIPMM_OPTION_RELOADABLE},
    {ROW(fixed), .type = HIPMM_OPTION_BOOL, .initial = "false"},
    {ROW(calls), .type = HIPMM_OPTION_BOOL, .initial = "false"}, /* its failure callback, as it is made and set */
};

#define VALUE(name)                 \
  {                                 \
    name, NULL, "What it was given" \
  }

static const struct hipmm_feature variable_plugin_values[] = {
    [PLIABLE_ALLOCATOR] = VALUE("allocator_arg"), [PLIABLE_FAILURE] = VALUE("failure_arg"),
    [PLIABLE_REGION] = VALUE("region_bytes"),     [PLIABLE_MEMPOOL] = VALUE("mempool_handle"),
    [PLIABLE_RULES] = VALUE("rules_bytes"),       [PLIABLE_LEVEL] = VALUE("level_now"),
    [PLIABLE_SIZE] = VALUE("size_now"),           [PLIABLE_LABEL] = VALUE("label_length"),
    [PLIABLE_SET] = VALUE("times_set"),
};

static enum hipmm_status variable_plugin_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                                  void **ptr_out)
{
  struct variable_plugin *variable_plugin = self;
  return hipmm_upstream_allocate(variable_plugin->upstream, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status variable_plugin_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                    hipmm_stream_t stream)
{
  struct variable_plugin *variable_plugin = self;
  return hipmm_upstream_deallocate(variable_plugin->upstream, ptr, bytes, alignment, stream);
}

static int64_t variable_plugin_number(const void *pointer)
{
  return (int64_t)(uintptr_t)pointer;
}

static enum hipmm_status variable_plugin_query(void *self, size_t index, int64_t *value_out)
{
  struct variable_plugin *variable_plugin = self;
  const struct variable_plugin_options *options = variable_plugin->options;
  int64_t values[PLIABLE_N] = {
      [PLIABLE_ALLOCATOR] = options->allocator ? variable_plugin_number(options->allocator->arg) : -1,
      [PLIABLE_FAILURE] = options->failure ? variable_plugin_number(options->failure->arg) : -1,
      [PLIABLE_REGION] = options->region ? (int64_t)options->region->bytes : -1,
      [PLIABLE_MEMPOOL] = options->mempool ? variable_plugin_number(options->mempool->handle) : -1,
      [PLIABLE_LEVEL] = options->level,
      [PLIABLE_SIZE] = (int64_t)options->size,
      [PLIABLE_LABEL] = options->label ? (int64_t)strlen(options->label) : -1,
      [PLIABLE_SET] = variable_plugin->set,
  };
  const struct variable_plugin_rule *rules = options->rules.items;
  for (size_t i = 0; i < options->rules.count; i++)
    values[PLIABLE_RULES] += rules[i].region ? (int64_t)rules[i].region->bytes : 0;
  *value_out = values[index];
  return HIPMM_OK;
}

static void variable_plugin_call(const struct variable_plugin_options *options)
{
  if (options->calls && options->failure) options->failure->callback(options->failure->arg, 0);
}

static enum hipmm_status variable_plugin_reconfigure(void *self, const char *option, const void *options)
{
  struct variable_plugin *variable_plugin = self;
  if (!strcmp(option, "stubborn") && !((const struct variable_plugin_options *)options)->stubborn)
    return HIPMM_CALL_AGAIN; /* and has asked nothing */
  if (!strcmp(option, "stubborn"))
    return variable_plugin->services->fail(variable_plugin->services, HIPMM_E_ARGUMENT, option, "will not be moved");
  variable_plugin->options = options;
  variable_plugin->set++;
  variable_plugin_call(options);
  return HIPMM_OK;
}

static enum hipmm_status variable_plugin_visit(void *self,
                                               void (*see)(void *closure, const struct hipmm_extent *extent),
                                               void *closure)
{
  struct variable_plugin *variable_plugin = self;
  const struct variable_plugin_options *options = variable_plugin->options;
  const struct variable_plugin_extent *extents = options->extents.items;
  for (size_t i = 0; i < options->extents.count; i++)
    see(closure, &(struct hipmm_extent){.ptr = (void *)(uintptr_t)extents[i].at,
                                        .bytes = (size_t)extents[i].bytes,
                                        .state = extents[i].state + HIPMM_EXTENT_LIVE,
                                        .flags = (extents[i].apart ? HIPMM_EXTENT_BARRIER : 0u) |
                                                 (extents[i].movable ? HIPMM_EXTENT_MOVABLE : 0u),
                                        .stream = (hipmm_stream_t)(uintptr_t)extents[i].stream});
  return HIPMM_OK;
}

static const struct hipmm_ops variable_plugin_ops = {.struct_size = sizeof variable_plugin_ops,
                                                     .allocate = variable_plugin_allocate,
                                                     .deallocate = variable_plugin_deallocate,
                                                     .query = variable_plugin_query,
                                                     .reconfigure = variable_plugin_reconfigure,
                                                     .visit = variable_plugin_visit};

static enum hipmm_status variable_plugin_create(const struct hipmm_services *services, const void *options,
                                                struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                                void **self_out)
{
  (void)n_upstreams;
  struct variable_plugin *variable_plugin = services->host_allocate(services, sizeof *variable_plugin);
  if (!variable_plugin) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  variable_plugin->services = services;
  variable_plugin->upstream = upstreams[0];
  variable_plugin->options = options;
  variable_plugin_call(options);
  *self_out = variable_plugin;
  return HIPMM_OK;
}

static void variable_plugin_destroy(void *self)
{
  struct variable_plugin *variable_plugin = self;
  variable_plugin->services->host_free(variable_plugin->services, variable_plugin, sizeof *variable_plugin);
}

HIPMM_EXPORT extern const struct hipmm_plugin variable_plugin_LTX_hipmm_plugin;

const struct hipmm_plugin variable_plugin_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "variable_plugin",
    .version = "1",
    .doc = "Takes objects, and what is set while it is in use",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = variable_plugin_table,
    .n_options = sizeof variable_plugin_table / sizeof *variable_plugin_table,
    .options_bytes = sizeof(struct variable_plugin_options),
    .values = variable_plugin_values,
    .n_values = PLIABLE_N,
    .ops = &variable_plugin_ops,
    .create = variable_plugin_create,
    .destroy = variable_plugin_destroy,
};
