/* SPDX-License-Identifier: MIT */
/* limiting.c: an adaptor that limits the memory allocated through it at once. Sizes count rounded up to 256 bytes, as in
 * RMM. Allocations that other resources make from the same upstream do not count.
 *
 * A request acquires its bytes in one step (credit.h), so a request that is too large never makes a request of another
 * thread fail. The bytes are released after the upstream has freed the block. */
#include "../common/descriptor.h"
#include "../common/sizes.h"
#include "credit.h"

struct limiting_options {
  uint64_t limit;
};

struct limiting {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct credit credit;
};

static __attribute__((noinline)) enum hipmm_status limiting_refuse(const struct limiting *limiting, size_t bytes,
                                                                   const struct credit_state *state)
{
  return limiting->services->refuse(limiting->services, HIPMM_E_LIMIT,
                                    "cannot allocate {0:bytes}: {1:bytes} of the limit of {2:bytes} are in use; free "
                                    "some, or set a higher \"limit\"",
                                    bytes, state->used_bytes, state->limit_bytes);
}

static enum hipmm_status limiting_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct limiting *limiting = self;
  uint64_t counted = sizes_counted(bytes);
  struct credit_state state;
  if (!credit_acquire(&limiting->credit, counted, &state)) return limiting_refuse(limiting, bytes, &state);
  enum hipmm_status status = hipmm_upstream_allocate(limiting->upstream, bytes, alignment, stream, ptr_out);
  if (status) credit_release(&limiting->credit, counted);
  return status;
}

static enum hipmm_status limiting_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                             hipmm_stream_t stream)
{
  struct limiting *limiting = self;
  struct hipmm_block block = {.ptr = ptr, .bytes = bytes};
  enum hipmm_status status = HIPMM_OK;
  if (!ptr) block.bytes = 0; /* NULL was never counted */
  if (ptr && !bytes) status = limiting->services->find_below(limiting->services, ptr, &block);
  if (!status) status = hipmm_upstream_deallocate(limiting->upstream, ptr, block.bytes, alignment, stream);
  if (!status) credit_release(&limiting->credit, sizes_counted(block.bytes));
  return status;
}

enum limiting_value { ALLOCATED_BYTES, LIMIT_BYTES };

static const struct hipmm_feature limiting_values[] = {
    [ALLOCATED_BYTES] = {"allocated_bytes", "bytes", "Memory allocated now, each size rounded up to 256 bytes"},
    [LIMIT_BYTES] = {"limit_bytes", "bytes", "The limit in force"},
};

static enum hipmm_status limiting_query(void *self, size_t index, int64_t *value_out)
{
  struct limiting *limiting = self;
  struct credit_state state = credit_read(&limiting->credit);
  *value_out = (int64_t)(index == ALLOCATED_BYTES ? state.used_bytes : state.limit_bytes);
  return HIPMM_OK;
}

/* There is one option. Blocks above a lower limit stay allocated; new requests fail until the sum is below it. */
static enum hipmm_status limiting_reconfigure(void *self, const char *option, const void *options)
{
  struct limiting *limiting = self;
  const struct limiting_options *given = options;
  (void)option;
  credit_set_limit(&limiting->credit, given->limit);
  return HIPMM_OK;
}

static void limiting_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct limiting_options *given = options;
  if (!given->limit && !validation->is_unknown(validation, "limit"))
    validation->warn(validation, "limit", "is 0, so every allocation fails; write the most bytes, such as \"8GiB\"");
}

static enum hipmm_status limiting_create(const struct hipmm_services *services, const void *options,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct limiting_options *given = options;
  (void)n_upstreams; /* one, as the descriptor says */
  struct limiting *limiting = services->host_allocate(services, sizeof *limiting);
  if (!limiting) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  limiting->services = services;
  limiting->upstream = upstreams[0];
  credit_open(&limiting->credit, given->limit);
  *self_out = limiting;
  return HIPMM_OK;
}

static void limiting_destroy(void *self)
{
  struct limiting *limiting = self;
  credit_close(&limiting->credit);
  limiting->services->host_free(limiting->services, limiting, sizeof *limiting);
}

static const struct hipmm_option limiting_option_table[] = {
    {.name = "limit",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED | HIPMM_OPTION_PERCENT | HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct limiting_options, limit),
     .unit = "bytes",
     .doc = "The most memory allocated through this resource at once; after a reduction below what is allocated, "
            "allocations fail until enough has been freed"},
};

static const struct hipmm_ops limiting_ops = {
    .struct_size = sizeof limiting_ops,
    .allocate = limiting_allocate,
    .deallocate = limiting_deallocate,
    .query = limiting_query,
    .reconfigure = limiting_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin limiting_LTX_hipmm_plugin;

const struct hipmm_plugin limiting_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(limiting_option_table, struct limiting_options),
    .type = "limiting",
    .version = "1.0",
    .doc = "Limits the memory that is allocated through it at once",
    PLUGIN_VALUES(limiting_values),
    .ops = &limiting_ops,
    .create = limiting_create,
    .destroy = limiting_destroy,
    .validate = limiting_validate,
};
