/* SPDX-License-Identifier: MIT */
/* zoo_descriptor.c: a plugin whose descriptor makes a mistake, chosen when it is compiled: -DZOO_OPTION='…' is a row of its
 * option table, ZOO_FIELDS what the descriptor says besides. tests/cmd/plugin.sh compiles it, once for each mistake. */
#include <hipmm/plugin.h>

struct zoo_descriptor_options {
  uint64_t size, more;
  int64_t number;
  uint32_t kind;
};

#define AT(field) .offset = offsetof(struct zoo_descriptor_options, field), .doc = "For tests"

#ifndef ZOO_OPTION
#define ZOO_OPTION                                                             \
  {                                                                            \
    .name = "number", .type = HIPMM_OPTION_INTEGER, AT(number), .initial = "1" \
  }
#endif
#ifndef ZOO_FIELDS
#define ZOO_FIELDS .unused = 0
#endif

static enum hipmm_status zoo_descriptor_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                                 void **ptr_out)
{
#ifdef ZOO_IMPORTS
  if (!hipmm_version()) return HIPMM_E_INTERNAL;
#endif
  return hipmm_upstream_allocate(self, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status zoo_descriptor_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                                   hipmm_stream_t stream)
{
  return hipmm_upstream_deallocate(self, ptr, bytes, alignment, stream);
}

static const struct hipmm_option zoo_descriptor_table[] = {
    {.name = "size", .type = HIPMM_OPTION_BYTES, AT(size), .initial = "1KiB"},
    ZOO_OPTION,
};

static const struct hipmm_feature zoo_descriptor_values[] = {{"of_zoo", NULL, "Nothing"}, {"of_zoo", NULL, "Nothing"}};

static const struct hipmm_ops zoo_descriptor_ops = {.struct_size = sizeof zoo_descriptor_ops,
                                                    .allocate = zoo_descriptor_allocate,
                                                    .deallocate = zoo_descriptor_deallocate};

static enum hipmm_status zoo_descriptor_create(const struct hipmm_services *services, const void *options,
                                               struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                               void **self_out)
{
  (void)services, (void)options, (void)n_upstreams, (void)zoo_descriptor_values;
  *self_out = upstreams[0];
  return HIPMM_OK;
}

static void zoo_descriptor_destroy(void *self)
{
  (void)self;
}

HIPMM_EXPORT extern const struct hipmm_plugin zoo_descriptor_LTX_hipmm_plugin;

const struct hipmm_plugin zoo_descriptor_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "zoo_descriptor",
    .version = "1",
    .doc = "Makes a mistake in its descriptor",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = zoo_descriptor_table,
    .n_options = sizeof zoo_descriptor_table / sizeof *zoo_descriptor_table,
    .options_bytes = sizeof(struct zoo_descriptor_options),
    .ops = &zoo_descriptor_ops,
    .create = zoo_descriptor_create,
    .destroy = zoo_descriptor_destroy,
    ZOO_FIELDS,
};
