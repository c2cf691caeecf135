/* SPDX-License-Identifier: MIT */
/* software.c: the descriptor of the software device, and how the options of a graph come into force. Read and called by
 * the core, once, before its first HIP call. A plugin of the role "runtime": it makes no resource. */
#include "internal.h"

static void software_validate(const struct hipmm_validation *validation, const void *given)
{
  const struct software_options *options = given;
  if (!software_options_has_valid_granularity(options))
    validation->error(validation, "granularity", "%llu bytes is not a power of two; write for example 2MiB",
                      (unsigned long long)options->granularity);
  for (size_t i = 0; i < options->fail.count; i++)
    if (!software_options_is_failure(options->fail.items[i]))
      validation->error(validation, "fail",
                        "\"%s\" is not a failure on schedule; write a HIP function that the software device exports, "
                        "the number of the call from 1, and optionally an error code: \"hipMalloc:3\" or "
                        "\"hipMalloc:3:hipErrorUnknown\"",
                        options->fail.items[i]);
}

static enum hipmm_status software_schedule_failures(const struct hipmm_services *services,
                                                    const struct hipmm_strings *fail)
{
  hipmm_software_fail_none();
  for (size_t i = 0; i < fail->count; i++) {
    if (software_options_schedule_failure(fail->items[i])) continue;
    hipmm_software_fail_none();
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, "fail", "no host memory for \"%s\"", fail->items[i]);
  }
  return HIPMM_OK;
}

static enum hipmm_status software_create(const struct hipmm_services *services, const void *given,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams;
  (void)n_upstreams;
  const struct software_options *options = given;
  struct software_config config = software_options_config(options);
  software_prepare(); /* first, as it schedules the failures that HIPMM_SOFTWARE names */
  enum hipmm_status status = software_schedule_failures(services, &options->fail);
  if (status != HIPMM_OK) return status;
  if (!software_configure(&config)) {
    hipmm_software_fail_none();
    return services->fail(services, HIPMM_E_STATE, NULL,
                          "the software device cannot be configured while memory is allocated from it; free it first");
  }
  *self_out = &software;
  return HIPMM_OK;
}

HIPMM_EXPORT extern const struct hipmm_plugin software_LTX_hipmm_plugin;
const struct hipmm_plugin software_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "software",
    .version = "1.0.0",
    .doc = "Runs the HIP API in host memory: devices, streams and events without a GPU",
    .role = HIPMM_ROLE_RUNTIME,
    .options = software_option_table,
    .n_options = SOFTWARE_N_OPTIONS,
    .options_bytes = sizeof(struct software_options),
    .create = software_create,
    .validate = software_validate,
};
