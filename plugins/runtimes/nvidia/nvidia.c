/* SPDX-License-Identifier: MIT */
/* nvidia.c: the descriptor of the nvidia runtime, and how it comes into force. Read and called by the core, once,
 * before its first HIP call. A plugin of the role "runtime": it makes no resource. */
#include "nvidia.h"
#include "../../common/descriptor.h"

#include <string.h>

struct nvidia_options {
  const char *library;
};

static const struct hipmm_option nvidia_option_table[] = {
    {.name = "library",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct nvidia_options, library),
     .initial = NVIDIA_DEFAULT_LIBRARY,
     .doc = "The library of NVIDIA's driver, as a name that the system finds or as a path"},
};

/* Loads the driver at once, since an error has the best message here. */
static enum hipmm_status nvidia_create(const struct hipmm_services *services, const void *given,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams;
  (void)n_upstreams;
  const struct nvidia_options *options = given;
  if (!options->library || !*options->library)
    return services->fail(services, HIPMM_E_CONFIG, "library", "is empty; leave it out, or name NVIDIA's libcuda.so.1");
  if (!nvidia_configure(options->library, services))
    return services->fail(services, HIPMM_E_STATE, "library",
                          "\"%s\" cannot be used: the name is too long, or the driver is in use under another",
                          options->library);
  hipError_t error = nvidia_load();
  if (error != hipSuccess) {
    hipGetLastError();
    const char *failure = nvidia_load_failure();
    const char *culprit = strcmp(options->library, NVIDIA_DEFAULT_LIBRARY) != 0 ? "library" : NULL;
    return services->fail(services, HIPMM_E_NO_DEVICE, culprit, "%s", failure ? failure : hipGetErrorString(error));
  }
  *self_out = &nvidia_cuda;
  return HIPMM_OK;
}

HIPMM_EXPORT extern const struct hipmm_plugin nvidia_LTX_hipmm_plugin;
const struct hipmm_plugin nvidia_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(nvidia_option_table, struct nvidia_options),
    .type = "nvidia",
    .version = "1.0.0",
    .doc = "Runs the HIP API on NVIDIA's driver",
    .role = HIPMM_ROLE_RUNTIME,
    .create = nvidia_create,
};
