/* SPDX-License-Identifier: MIT */
/* claims.c: a plugin whose option table claims more rows than it has, and whose choices have no end. What follows the
 * rows is no row. */
#include <hipmm/plugin.h>

struct claims_options {
  uint32_t kind;
};

static const struct {
  const char *words[1];
  uint64_t no_end;
} claims_kinds = {{"one"}, 0x5a5a5a5a5a5a5a5a};

static enum hipmm_status claims_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams, (void)n_upstreams, (void)options;
  *self_out = NULL;
  return services->fail(services, HIPMM_E_INTERNAL, NULL, "was made");
}

static const struct hipmm_option claims_table[] = {
    {.name = "kind", .type = HIPMM_OPTION_ENUM, .doc = "A kind", .choices = claims_kinds.words},
};

HIPMM_EXPORT extern const struct hipmm_plugin claims_LTX_hipmm_plugin;

const struct hipmm_plugin claims_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "claims",
    .version = "1",
    .doc = "Claims more than it has",
    .role = HIPMM_ROLE_RUNTIME,
    .options = claims_table,
    .n_options = 1000000,
    .options_bytes = sizeof(struct claims_options),
    .create = claims_create,
};
