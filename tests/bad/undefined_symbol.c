/* SPDX-License-Identifier: MIT */
/* undefined_symbol.c: calls a function that nobody has, where lazy binding would notice at the first call only. */
#include <hipmm/plugin.h>

void nobody_has_this(void *self);

static enum hipmm_status undefined_create(const struct hipmm_services *services, const void *options,
                                          struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)services, (void)options, (void)upstreams, (void)n_upstreams;
  nobody_has_this(self_out);
  return HIPMM_OK;
}

HIPMM_EXPORT extern const struct hipmm_plugin undefined_symbol_LTX_hipmm_plugin;

const struct hipmm_plugin undefined_symbol_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,        .type = "undefined_symbol", .version = "1",
    .doc = "Cannot be bound", .role = HIPMM_ROLE_RUNTIME, .create = undefined_create,
};
