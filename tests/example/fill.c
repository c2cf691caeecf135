/* SPDX-License-Identifier: MIT */
/* fill.c: a plugin as a third party writes one. It needs hipmm's installed headers and nothing else:
 *
 *     cc -std=gnu11 -shared -fPIC $(pkg-config --cflags hipmm) -o fill.so fill.c
 *     HIPMM_PLUGIN_PATH=$PWD hipmm describe fill
 *
 * `fill` is an adaptor that writes a pattern into every block before the program gets it, so that a program that reads
 * memory which it never wrote shows it at once. tests/install.sh builds it, outside the build of hipmm, and uses it
 * beside our plugins. */
#include <hipmm/plugin.h>
#include <stdatomic.h>

/* One field per option, filled from the table below. */
struct fill_options {
  int64_t byte;
};

struct fill {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  int byte;
  atomic_int_least64_t filled_bytes;
};

/* Writes the pattern as work on the stream, so that it comes before whatever the program does with the block there. */
static enum hipmm_status fill_block(struct fill *self, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  int previous = self->services->enter_device(self->services);
  int code = self->services->hip->MemsetAsync(ptr, self->byte, bytes, stream);
  self->services->leave_device(self->services, previous);
  if (code != HIPMM_HIP_SUCCESS) return self->services->refuse_hip(self->services, "hipMemsetAsync", code, bytes);
  atomic_fetch_add_explicit(&self->filled_bytes, (int64_t)bytes, memory_order_relaxed);
  return HIPMM_OK;
}

static enum hipmm_status fill_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                       void **ptr_out)
{
  struct fill *fill = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(fill->upstream, bytes, alignment, stream, &ptr);
  if (status == HIPMM_OK && ptr) {
    status = fill_block(fill, ptr, bytes, stream);
    /* The fill is what failed and what the caller hears of; the block is not lost. */
    if (status != HIPMM_OK) hipmm_upstream_deallocate(fill->upstream, ptr, bytes, alignment, stream);
  }
  if (status == HIPMM_OK) *ptr_out = ptr;
  return status;
}

static enum hipmm_status fill_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct fill *fill = self;
  return hipmm_upstream_deallocate(fill->upstream, ptr, bytes, alignment, stream);
}

static enum hipmm_status fill_query(void *self, size_t index, int64_t *value_out)
{
  struct fill *fill = self;
  (void)index; /* there is one value */
  *value_out = atomic_load_explicit(&fill->filled_bytes, memory_order_relaxed);
  return HIPMM_OK;
}

static enum hipmm_status fill_create(const struct hipmm_services *services, const void *options,
                                     struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct fill_options *given = options;
  (void)n_upstreams; /* one, as the descriptor says */
  if (!services->hip->MemsetAsync)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL, "the runtime has no hipMemsetAsync, which fill needs");
  struct fill *fill = services->host_allocate(services, sizeof *fill);
  if (!fill) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  fill->services = services;
  fill->upstream = upstreams[0];
  fill->byte = (int)given->byte;
  *self_out = fill;
  return HIPMM_OK;
}

static void fill_destroy(void *self)
{
  struct fill *fill = self;
  fill->services->host_free(fill->services, fill, sizeof *fill);
}

static const struct hipmm_option fill_option_table[] = {
    {.name = "byte",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct fill_options, byte),
     .initial = "165",
     .minimum = "0",
     .maximum = "255",
     .doc = "What every byte of a new block is set to"},
};

static const struct hipmm_feature fill_values[] = {
    {.name = "filled_bytes", .unit = "bytes", .doc = "Bytes that were filled since creation"},
};

static const struct hipmm_ops fill_ops = {
    .struct_size = sizeof fill_ops,
    .allocate = fill_allocate,
    .deallocate = fill_deallocate,
    .query = fill_query,
};

/* The one symbol that a plugin exports: the file's stem, then _LTX_hipmm_plugin. */
HIPMM_EXPORT const struct hipmm_plugin fill_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "fill",
    .version = "1.0",
    .doc = "Writes a pattern into every new block, to show reads of memory that was never written",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = fill_option_table,
    .n_options = sizeof fill_option_table / sizeof *fill_option_table,
    .options_bytes = sizeof(struct fill_options),
    .values = fill_values,
    .n_values = sizeof fill_values / sizeof *fill_values,
    .ops = &fill_ops,
    .create = fill_create,
    .destroy = fill_destroy,
};
