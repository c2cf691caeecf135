/* SPDX-License-Identifier: MIT */
/* software.c: the descriptor of the software device, its options, and how they come into force. Read and called by the
 * core, once, before its first HIP call. A plugin of the role "runtime": it makes no resource. */
#include "internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct software_options {
  int64_t devices;
  uint64_t memory, host_memory;
  uint32_t scheduler;
  int64_t seed;
  struct hipmm_strings fail;
  uint32_t virtual_memory, memory_pools, managed_memory, pageable_memory_access, host_access;
  uint64_t granularity;
  int64_t peer_group;
};

/* In the order of enum software_scheduler. */
static const char *const software_schedulers[] = {"threads", "stepped", NULL};

static const struct hipmm_option software_option_table[] = {
    {.name = "devices",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct software_options, devices),
     .initial = "1",
     .unit = "devices",
     .minimum = "1",
     .maximum = "64",
     .doc = "Number of devices"},
    {.name = "memory",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct software_options, memory),
     .initial = "16GiB",
     .unit = "bytes",
     .minimum = "1MiB",
     .maximum = "64TiB",
     .doc = "Memory of each device; a page of the host is used up when it is first touched"},
    {.name = "host_memory",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct software_options, host_memory),
     .initial = "64GiB",
     .unit = "bytes",
     .minimum = "1MiB",
     .maximum = "64TiB",
     .doc = "Memory of the host for pinned and managed memory, of all devices together; a page is used up when it is "
            "first touched"},
    {.name = "scheduler",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct software_options, scheduler),
     .initial = "threads",
     .choices = software_schedulers,
     .doc = "How streams run: threads gives each its own thread, stepped runs them as late as possible, in an order "
            "drawn from the seed"},
    {.name = "seed",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct software_options, seed),
     .initial = "0",
     .doc = "Seed of the stepped scheduler"},
    {.name = "fail",
     .type = HIPMM_OPTION_STRINGS,
     .offset = offsetof(struct software_options, fail),
     .doc = "Calls that fail on schedule: \"hipMalloc:3\" is the third call from now, \"hipMalloc:3:hipErrorUnknown\" "
            "says with which code"},
    {.name = "virtual_memory",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, virtual_memory),
     .initial = "true",
     .doc = "Whether devices have virtual memory management"},
    {.name = "memory_pools",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, memory_pools),
     .initial = "true",
     .doc = "Whether devices have stream-ordered pools"},
    {.name = "managed_memory",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, managed_memory),
     .initial = "true",
     .doc = "Whether devices have managed memory"},
    {.name = "pageable_memory_access",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, pageable_memory_access),
     .initial = "false",
     .doc = "Whether devices reach the application's own memory"},
    {.name = "host_access",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, host_access),
     .initial = "true",
     .doc = "Whether the application may touch device memory itself; without, it dies when it does, as it would with "
            "most GPUs"},
    {.name = "granularity",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct software_options, granularity),
     .initial = "2MiB",
     .unit = "bytes",
     .minimum = "4KiB",
     .maximum = "1GiB",
     .doc = "Granularity of virtual memory management, a power of two"},
    {.name = "peer_group",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct software_options, peer_group),
     .initial = "64",
     .unit = "devices",
     .minimum = "1",
     .maximum = "64",
     .doc = "Devices that reach each other's memory: so many from 0 on, the next so many, and so forth; with 1, none "
            "reaches another's"},
};

static bool software_is_number(const char *text)
{
  return *text >= '0' && *text <= '9';
}

/* One failure on schedule, "name:nth" or "name:nth:code"; false if it is not one. */
static bool software_fail_on_schedule(const char *text)
{
  char name[64];
  const char *colon = strchr(text, ':');
  if (!colon || (size_t)(colon - text) >= sizeof name || !software_is_number(colon + 1)) return false;
  memcpy(name, text, (size_t)(colon - text));
  name[colon - text] = '\0';
  char *end;
  errno = 0;
  unsigned long long nth = strtoull(colon + 1, &end, 10);
  hipError_t code = hipSuccess;
  if (errno || (*end != '\0' && *end != ':')) return false;
  if (*end == ':' && !software_error_parse(end + 1, &code)) return false;
  return hipmm_software_fail(name, nth, (int)code);
}

static enum hipmm_status software_schedule_failures(const struct hipmm_services *services,
                                                    const struct hipmm_strings *fail)
{
  hipmm_software_fail_none();
  for (size_t i = 0; i < fail->count; i++) {
    if (software_fail_on_schedule(fail->items[i])) continue;
    hipmm_software_fail_none();
    return services->fail(services, HIPMM_E_CONFIG, "fail",
                          "\"%s\" is not a failure on schedule; write a HIP function that the software device exports, "
                          "which call of it from 1, and if you like an error code: \"hipMalloc:3\" or "
                          "\"hipMalloc:3:hipErrorUnknown\"",
                          fail->items[i]);
  }
  return HIPMM_OK;
}

static struct software_config software_config_of(const struct software_options *options)
{
  return (struct software_config){.devices = (int)options->devices,
                                  .memory_bytes = options->memory & ~(SOFTWARE_PAGE_BYTES - 1),
                                  .host_memory_bytes = options->host_memory & ~(SOFTWARE_PAGE_BYTES - 1),
                                  .scheduler = (enum software_scheduler)options->scheduler,
                                  .seed = (uint64_t)options->seed,
                                  .virtual_memory = options->virtual_memory,
                                  .memory_pools = options->memory_pools,
                                  .managed_memory = options->managed_memory,
                                  .pageable_memory_access = options->pageable_memory_access,
                                  .closed = !options->host_access,
                                  .granularity_bytes = options->granularity,
                                  .peer_group = (int)options->peer_group};
}

static bool software_granularity_is_valid(const struct software_options *options)
{
  return (options->granularity & (options->granularity - 1)) == 0;
}

bool software_read_environment(const char *text, struct software_config *config_out, char *wrong_out,
                               size_t wrong_bytes)
{
  const size_t n = sizeof software_option_table / sizeof *software_option_table;
  struct software_options options = {.fail = {.count = 0}};
  software_environment_default(software_option_table, n, &options);
  bool is_valid = software_environment_read(software_option_table, n, text, &options, wrong_out, wrong_bytes);
  if (is_valid && !software_granularity_is_valid(&options)) {
    is_valid = false;
    snprintf(wrong_out, wrong_bytes, "granularity is no power of two");
  }
  for (size_t i = 0; i < options.fail.count && is_valid; i++) {
    is_valid = software_fail_on_schedule(options.fail.items[i]);
    if (!is_valid) snprintf(wrong_out, wrong_bytes, "fail=%s", options.fail.items[i]);
  }
  if (is_valid) *config_out = software_config_of(&options);
  software_environment_free(software_option_table, n, &options);
  return is_valid;
}

static enum hipmm_status software_create(const struct hipmm_services *services, const void *given,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams;
  (void)n_upstreams;
  const struct software_options *options = given;
  struct software_config config = software_config_of(options);
  software_prepare(); /* first, as it schedules the failures that HIPMM_SOFTWARE names */
  if (!software_granularity_is_valid(options))
    return services->fail(services, HIPMM_E_CONFIG, "granularity", "%llu bytes is not a power of two; write 2MiB, say",
                          (unsigned long long)options->granularity);
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
    .n_options = sizeof software_option_table / sizeof *software_option_table,
    .options_bytes = sizeof(struct software_options),
    .create = software_create,
};
