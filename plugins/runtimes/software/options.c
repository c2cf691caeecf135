/* SPDX-License-Identifier: MIT */
/* options.c: the options of the software device: their table, the configuration that they describe, and the options in
 * HIPMM_SOFTWARE. Called by call.c before the first HIP call, and by software.c, which gets the options of a graph. */
#include "internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of enum software_scheduler. */
static const char *const options_schedulers[] = {"threads", "stepped", NULL};

/* The releases that differ, and the version of each; the first stands for that of the program. */
static const char *const options_hips[] = {"program", "5.2", "5.7", "6.4", "7.0", "7.1", NULL};
static const int options_hip_versions[] = {0, 50200000, 50700000, 60400000, 70000000, 70100000};

const struct hipmm_option software_option_table[SOFTWARE_N_OPTIONS] = {
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
     .doc = "Memory of each device; it takes a page of the host when that page is first touched"},
    {.name = "host_memory",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct software_options, host_memory),
     .initial = "64GiB",
     .unit = "bytes",
     .minimum = "1MiB",
     .maximum = "64TiB",
     .doc = "Memory of the host for pinned and managed memory, of all devices together; it takes a page of the host "
            "when that page is first touched"},
    {.name = "scheduler",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct software_options, scheduler),
     .initial = "threads",
     .choices = options_schedulers,
     .doc = "How streams run: with threads, each stream has its own thread; with stepped, streams run as late as "
            "possible, in a random order that the seed determines"},
    {.name = "seed",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct software_options, seed),
     .initial = "0",
     .doc = "Seed of the stepped scheduler"},
    {.name = "fail",
     .type = HIPMM_OPTION_STRINGS,
     .offset = offsetof(struct software_options, fail),
     .doc = "Calls that fail on schedule: \"hipMalloc:3\" is the third call from now, \"hipMalloc:3:hipErrorUnknown\" "
            "adds the error code"},
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
     .doc = "Whether devices can access ordinary memory of the application"},
    {.name = "host_access",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, host_access),
     .initial = "true",
     .doc = "Whether the application can access device memory directly; if false, such an access ends the program, as "
            "with most GPUs"},
    {.name = "check_streams",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, check_streams),
     .initial = "false",
     .doc = "Whether to find races between streams (memory that is used, freed or given out by a stream that is not "
            "ordered after earlier work on it), use after free, double free, copies past the end of a block and, with "
            "host_access=false, reads of bytes that were never written. Each is reported once, on standard error"},
    {.name = "granularity",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct software_options, granularity),
     .initial = "2MiB",
     .unit = "bytes",
     .minimum = "4KiB",
     .maximum = "1GiB",
     .doc = "Granularity of virtual memory management, a power of two"},
    {.name = "hip",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct software_options, hip),
     .initial = "program",
     .choices = options_hips,
     .doc =
         "The release of HIP in whose numbers and structs the device answers; program: that of the libamdhip64.so.5, "
         ".6 or .7 that the program is linked to, else the latest"},
    {.name = "peer_group",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct software_options, peer_group),
     .initial = "64",
     .unit = "devices",
     .minimum = "1",
     .maximum = "64",
     .doc = "Number of devices in a group, counted from device 0; devices of one group can access each other's memory; "
            "with 1, no device can access the memory of another"},
    {.name = "rocm_mapping",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct software_options, rocm_mapping),
     .initial = "false",
     .doc =
         "Whether virtual memory behaves as that of ROCm 7.14: hipMemCreate takes a file descriptor for as long as the "
         "memory lives, and fails with hipErrorOutOfMemory when the process can open no file; access that "
         "hipMemSetAccess gives to another device takes away that of the memory's own"},
};

/* A failure on schedule. */
struct failure {
  char name[64];
  unsigned long long nth;
  hipError_t code;
};

/* Reads "name:nth" or "name:nth:code"; false if it is not one. */
static bool options_read_failure(const char *text, struct failure *failure)
{
  const char *colon = strchr(text, ':');
  if (!colon || (size_t)(colon - text) >= sizeof failure->name || colon[1] < '0' || colon[1] > '9') return false;
  memcpy(failure->name, text, (size_t)(colon - text));
  failure->name[colon - text] = '\0';
  char *end;
  errno = 0;
  failure->nth = strtoull(colon + 1, &end, 10);
  failure->code = hipSuccess;
  if (errno || (*end != '\0' && *end != ':')) return false;
  return *end != ':' || software_error_parse(end + 1, &failure->code);
}

bool software_options_is_failure(const char *text)
{
  struct failure failure;
  return options_read_failure(text, &failure) && failure.nth && software_has_call(failure.name);
}

bool software_options_schedule_failure(const char *text)
{
  struct failure failure;
  return options_read_failure(text, &failure) && hipmm_software_fail(failure.name, failure.nth, (int)failure.code);
}

struct software_config software_options_config(const struct software_options *options)
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
                                  .no_host_access = !options->host_access,
                                  .check_streams = options->check_streams,
                                  .granularity_bytes = options->granularity,
                                  .hip_version = options_hip_versions[options->hip],
                                  .peer_group = (int)options->peer_group,
                                  .rocm_mapping = options->rocm_mapping};
}

bool software_options_has_valid_granularity(const struct software_options *options)
{
  return (options->granularity & (options->granularity - 1)) == 0;
}

bool software_options_read(const char *text, struct software_config *config_out, char *wrong_out, size_t wrong_bytes)
{
  const size_t n = SOFTWARE_N_OPTIONS;
  struct software_options options = {.fail = {.count = 0}};
  software_environment_default(software_option_table, n, &options);
  bool is_valid = software_environment_read(software_option_table, n, text, &options, wrong_out, wrong_bytes);
  if (is_valid && !software_options_has_valid_granularity(&options)) {
    is_valid = false;
    snprintf(wrong_out, wrong_bytes, "granularity is no power of two");
  }
  for (size_t i = 0; i < options.fail.count && is_valid; i++) {
    is_valid = software_options_schedule_failure(options.fail.items[i]);
    if (!is_valid) snprintf(wrong_out, wrong_bytes, "fail=%s", options.fail.items[i]);
  }
  if (is_valid) *config_out = software_options_config(&options);
  software_environment_free(software_option_table, n, &options);
  return is_valid;
}

/* ---- HIPMM_SOFTWARE -------------------------------------------------------------------------------------------- */

static char options_wrong[160]; /* the part of HIPMM_SOFTWARE that is not valid */
static atomic_bool options_reported;

void software_options_initialise(void)
{
  struct software_config config = software_defaults;
  const char *text = secure_getenv("HIPMM_SOFTWARE");
  bool is_read = !text || software_options_read(text, &config, options_wrong, sizeof options_wrong);
  atomic_store(&software.is_misconfigured, !is_read);
  software_state_configure(&config);
  software_watch_configure(&config);
}

/* A program that configures the device must be told when it does not get that device. */
bool software_is_misconfigured(void)
{
  if (!atomic_load_explicit(&software.is_misconfigured, memory_order_relaxed)) return false;
  if (!atomic_exchange(&options_reported, true))
    fprintf(stderr,
            "hipmm software device: HIPMM_SOFTWARE: \"%s\" is not a setting with a valid value, so all calls fail; see "
            "`hipmm describe software`\n",
            options_wrong);
  return true;
}
