/* SPDX-License-Identifier: MIT */
/* fails.c: an adaptor whose create fails, in the way that its option asks for, or says that it succeeded and gives
 * nothing. */
#include <hipmm/plugin.h>

enum fails_how { FAILS_WITH_WORDS, FAILS_AT_AN_OPTION, FAILS_SILENTLY, FAILS_WITHOUT_SELF };

struct fails_options {
  uint32_t how;
};

static const char *const fails_ways[] = {"with_words", "at_an_option", "silently", "without_self", NULL};

static const struct hipmm_option fails_table[] = {
    {.name = "how",
     .type = HIPMM_OPTION_ENUM,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct fails_options, how),
     .doc = "How it fails",
     .choices = fails_ways},
};

static enum hipmm_status fails_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                        void **ptr_out)
{
  return hipmm_upstream_allocate(self, bytes, alignment, stream, ptr_out);
}

static enum hipmm_status fails_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  return hipmm_upstream_deallocate(self, ptr, bytes, alignment, stream);
}

static const struct hipmm_ops fails_ops = {
    .struct_size = sizeof fails_ops, .allocate = fails_allocate, .deallocate = fails_deallocate};

static enum hipmm_status fails_create(const struct hipmm_services *services, const void *options,
                                      struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct fails_options *wanted = options;
  (void)upstreams, (void)n_upstreams, (void)self_out;
  switch ((enum fails_how)wanted->how) {
  case FAILS_WITH_WORDS: return services->fail(services, HIPMM_E_HIP, NULL, "it is %d o'clock", 5);
  case FAILS_AT_AN_OPTION: return services->fail(services, HIPMM_E_CONFIG, "how", "not like this");
  case FAILS_SILENTLY: return HIPMM_E_LIMIT;
  case FAILS_WITHOUT_SELF: break;
  }
  return HIPMM_OK;
}

static void fails_destroy(void *self)
{
  (void)self;
}

HIPMM_EXPORT extern const struct hipmm_plugin fails_LTX_hipmm_plugin;

const struct hipmm_plugin fails_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "fails",
    .version = "1",
    .doc = "Cannot be created",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = fails_table,
    .n_options = 1,
    .options_bytes = sizeof(struct fails_options),
    .ops = &fails_ops,
    .create = fails_create,
    .destroy = fails_destroy,
};
