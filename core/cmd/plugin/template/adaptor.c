/* @NAME@.c: a resource type for hipmm: an adaptor, which passes every request on to the resource below it and counts.
 * Change it to what you need; <hipmm/plugin.h> describes every function. `make check` tests it. */
#include <hipmm/plugin.h>
#include <stdatomic.h>

/* One field for each option, filled from the table below. */
struct @NAME@_options {
  uint64_t log_above;
};

struct @NAME@_self {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  uint64_t log_above;
  atomic_int_least64_t allocations;
};

static enum hipmm_status @NAME@_allocate(void *self_, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  struct @NAME@_self *self = self_;
  enum hipmm_status status = hipmm_upstream_allocate(self->upstream, bytes, alignment, stream, ptr_out);
  if (status != HIPMM_OK) return status; /* the upstream has reported the reason */
  atomic_fetch_add_explicit(&self->allocations, 1, memory_order_relaxed);
  if (bytes > self->log_above) self->services->log(self->services, HIPMM_LOG_INFO, "%zu bytes allocated", bytes);
  return HIPMM_OK;
}

/* The upstream refuses what is not live, and wrong sizes. */
static enum hipmm_status @NAME@_deallocate(void *self_, void *ptr, size_t bytes, size_t alignment,
                                           hipmm_stream_t stream)
{
  struct @NAME@_self *self = self_;
  return hipmm_upstream_deallocate(self->upstream, ptr, bytes, alignment, stream);
}

static enum hipmm_status @NAME@_query(void *self_, size_t index, int64_t *value_out)
{
  struct @NAME@_self *self = self_;
  (void)index; /* there is one value */
  *value_out = atomic_load_explicit(&self->allocations, memory_order_relaxed);
  return HIPMM_OK;
}

static enum hipmm_status @NAME@_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct @NAME@_options *given = options;
  struct @NAME@_self *self = services->host_allocate(services, sizeof *self);
  (void)n_upstreams; /* one, as the descriptor says */
  if (!self) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  self->services = services;
  self->upstream = upstreams[0];
  self->log_above = given->log_above;
  *self_out = self;
  return HIPMM_OK;
}

static void @NAME@_destroy(void *self_)
{
  struct @NAME@_self *self = self_;
  self->services->host_free(self->services, self, sizeof *self);
}

static const struct hipmm_option @NAME@_option_table[] = {
    {.name = "log_above",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct @NAME@_options, log_above),
     .initial = "1GiB",
     .unit = "bytes",
     .doc = "Larger allocations are written to the log (HIPMM_LOG=info shows them)"},
};

static const struct hipmm_feature @NAME@_values[] = {
    {.name = "@NAME@_allocations", .unit = "allocations", .doc = "Allocations since creation"},
};

static const struct hipmm_ops @NAME@_ops = {
    .struct_size = sizeof @NAME@_ops,
    .allocate = @NAME@_allocate,
    .deallocate = @NAME@_deallocate,
    .query = @NAME@_query,
};

/* The one symbol that the plugin exports: the file's stem, then _LTX_hipmm_plugin. */
HIPMM_EXPORT extern const struct hipmm_plugin @NAME@_LTX_hipmm_plugin;

const struct hipmm_plugin @NAME@_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "@NAME@",
    .version = "0.1",
    .doc = "Counts allocations",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = @NAME@_option_table,
    .n_options = sizeof @NAME@_option_table / sizeof *@NAME@_option_table,
    .options_bytes = sizeof(struct @NAME@_options),
    .values = @NAME@_values,
    .n_values = sizeof @NAME@_values / sizeof *@NAME@_values,
    .ops = &@NAME@_ops,
    .create = @NAME@_create,
    .destroy = @NAME@_destroy,
};
