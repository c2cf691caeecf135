/* SPDX-License-Identifier: MIT */
/* fake_plugins.c: a loader over a table. Descriptors are as short as the checks of graphs allow; "mirror" has several
 * upstreams and an option that names a resource, "chain" an optional upstream, "curious" asks all that a plugin may ask, and
 * "broken" is found but refused. */
#include "fake_plugins.h"
#include "../../core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plugin_path fake_plugins_path;
unsigned fake_plugins_searches, fake_plugins_failures;

/* Room for every option struct below: the fakes only need distinct offsets. */
enum { OPTIONS_BYTES = 256, FIRST = 0, SECOND = 16, THIRD = 32, FOURTH = 48, FIFTH = 64 };

static const char *const unlimited[] = {"unlimited", NULL};
static const char *const growths[] = {"auto", "mapped", "segments", NULL};
static const char *const schedulers[] = {"threads", "stepped", NULL};

static const struct hipmm_option pool_options[] = {
    {.name = "initial_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = FIRST,
     .initial = "0",
     .doc = "Taken from the upstream at creation"},
    {.name = "maximum_size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = SECOND,
     .initial = "unlimited",
     .choices = unlimited,
     .at_least = "initial_size",
     .doc = "Most that is ever held"},
    {.name = "growth",
     .type = HIPMM_OPTION_ENUM,
     .offset = THIRD,
     .initial = "auto",
     .choices = growths,
     .doc = "How the pool grows"},
};

static const struct hipmm_option fixed_size_options[] = {
    {.name = "block_size",
     .type = HIPMM_OPTION_BYTES,
     .offset = FIRST,
     .initial = "1MiB",
     .minimum = "1",
     .doc = "Size of every block"},
    {.name = "preallocate",
     .type = HIPMM_OPTION_INTEGER,
     .offset = SECOND,
     .initial = "128",
     .minimum = "1",
     .unit = "blocks",
     .doc = "Blocks per growth"},
};

static const struct hipmm_option bin_fields[] = {
    {.name = "size",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = FIRST,
     .minimum = "1",
     .doc = "Largest request that the bin serves"},
    {.name = "resource", .type = HIPMM_OPTION_RESOURCE, .offset = SECOND, .doc = "Who serves it"},
};

static const struct hipmm_option binning_options[] = {
    {.name = "bins",
     .type = HIPMM_OPTION_LIST,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = FIRST,
     .fields = bin_fields,
     .n_fields = 2,
     .field_bytes = 32,
     .doc = "The bins"},
};

static const struct hipmm_option logging_options[] = {
    {.name = "file", .type = HIPMM_OPTION_STRING, .offset = FIRST, .doc = "Where the log goes"},
    {.name = "flush",
     .type = HIPMM_OPTION_BOOL,
     .offset = SECOND,
     .initial = "false",
     .doc = "Write every row at once"},
};

static const struct hipmm_option limiting_options[] = {
    {.name = "limit",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_REQUIRED | HIPMM_OPTION_PERCENT,
     .offset = FIRST,
     .doc = "Most bytes that may be live"},
};

static const struct hipmm_option mirror_options[] = {
    {.name = "spare", .type = HIPMM_OPTION_RESOURCE, .offset = FIRST, .doc = "Who helps out"},
    {.name = "ratio",
     .type = HIPMM_OPTION_RATIO,
     .offset = SECOND,
     .initial = "0.5",
     .minimum = "0",
     .maximum = "1",
     .doc = "Share of the first"},
    {.name = "period", .type = HIPMM_OPTION_DURATION, .offset = THIRD, .initial = "10ms", .doc = "How often"},
};

static const struct hipmm_option curious_options[] = {
    {.name = "peer", .type = HIPMM_OPTION_RESOURCE, .offset = FIRST, .doc = "Whose options it asks for"},
    {.name = "label", .type = HIPMM_OPTION_STRING, .offset = SECOND, .doc = "What no other should have"},
    {.name = "share",
     .type = HIPMM_OPTION_BYTES,
     .flags = HIPMM_OPTION_PERCENT,
     .offset = THIRD,
     .initial = "0",
     .doc = "Of the device"},
};

/* The size in an option of the resource that `peer` names; -1 if it is not known. */
static long long curious_size(const struct hipmm_validation *validation, const char *peer, const char *option)
{
  uint64_t bytes = 0;
  return validation->bytes_of(validation, peer, option, &bytes) ? (long long)bytes : -1;
}

static long long curious_peer(const struct hipmm_validation *validation, const char *option)
{
  return curious_size(validation, "peer", option);
}

/* All that it hears is a warning. */
static void curious_validate(const struct hipmm_validation *validation, const void *options)
{
  const char *upstream = validation->upstream(validation, 0), *same = validation->same_as(validation, "label");
  char endless[1000] = "";
  memset(endless, 'x', sizeof endless - 1);
  (void)options;
  if (curious_size(validation, endless, "block_size") >= 0)
    validation->error(validation, NULL, "nothing has this name");
  validation->warn(validation, NULL,
                   "on %s, device memory %d, label of %s, share unknown %d %d, peer %lld %lld %lld %lld",
                   upstream ? upstream : "none", validation->is_device_memory(validation), same ? same : "none",
                   validation->is_unknown(validation, "share"), validation->is_unknown(validation, "nothing"),
                   curious_peer(validation, "block_size"), curious_peer(validation, "initial_size"),
                   curious_peer(validation, "preallocate"), curious_peer(validation, "nothing"));
}

static const struct hipmm_option software_options[] = {
    {.name = "devices",
     .type = HIPMM_OPTION_INTEGER,
     .offset = FIRST,
     .initial = "1",
     .minimum = "1",
     .maximum = "64",
     .doc = "Number of devices"},
    {.name = "memory", .type = HIPMM_OPTION_BYTES, .offset = SECOND, .initial = "16GiB", .doc = "Of each device"},
    {.name = "scheduler",
     .type = HIPMM_OPTION_ENUM,
     .offset = THIRD,
     .initial = "threads",
     .choices = schedulers,
     .doc = "When streams run"},
    {.name = "seed", .type = HIPMM_OPTION_INTEGER, .offset = FOURTH, .initial = "0", .doc = "Of the stepped order"},
    {.name = "fail", .type = HIPMM_OPTION_STRINGS, .offset = FIFTH, .doc = "Calls to fail"},
};

#define FAKE(type_, role_, min, max, ...) \
  {                                       \
    .descriptor = {                       \
      HIPMM_PLUGIN_HEAD,                  \
      .type = type_,                      \
      .version = "1",                     \
      .doc = "For tests",                 \
      .role = HIPMM_ROLE_##role_,         \
      .min_upstreams = min,               \
      .max_upstreams = max,               \
      .options_bytes = OPTIONS_BYTES,     \
      __VA_ARGS__                         \
    }                                     \
  }
#define OPTIONS(table) .options = table, .n_options = sizeof table / sizeof *table

/* Sorted by type. */
static const struct plugin plugins[] = {
    FAKE("async", SOURCE, 0, 0, .n_options = 0),
    FAKE("binning", SUB_ALLOCATOR, 1, 1, OPTIONS(binning_options)),
    FAKE("chain", ADAPTOR, 0, 1, .n_options = 0),
    FAKE("curious", ADAPTOR, 0, 2, OPTIONS(curious_options), .validate = curious_validate),
    FAKE("device", SOURCE, 0, 0, .flags = HIPMM_PLUGIN_DEVICE_MEMORY),
    FAKE("fixed_size", SUB_ALLOCATOR, 1, 1, OPTIONS(fixed_size_options)),
    FAKE("limiting", ADAPTOR, 1, 1, OPTIONS(limiting_options)),
    FAKE("logging", ADAPTOR, 1, 1, OPTIONS(logging_options)),
    FAKE("managed", SOURCE, 0, 0, .n_options = 0),
    FAKE("mirror", ADAPTOR, 2, 3, OPTIONS(mirror_options)),
    FAKE("pool", SUB_ALLOCATOR, 1, 1, OPTIONS(pool_options)),
    FAKE("software", RUNTIME, 0, 0, OPTIONS(software_options)),
    FAKE("statistics", ADAPTOR, 1, 1, .n_options = 0),
};
enum { N_PLUGINS = sizeof plugins / sizeof *plugins };

static const struct plugin *find_fake(const char *type)
{
  for (size_t i = 0; i < N_PLUGINS; i++)
    if (!strcmp(plugins[i].descriptor.type, type)) return &plugins[i];
  return NULL;
}

enum hipmm_status plugin_get(const struct plugin_path *path, const char *type, const struct plugin **plugin_out)
{
  const struct plugin *found = find_fake(type);
  fake_plugins_path = *path;
  fake_plugins_searches++;
  if (fake_plugins_failures && fake_plugins_failures--) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  if (!strcmp(type, "broken")) return error_set(HIPMM_E_PLUGIN_ABI, "broken.so: no plugin descriptor");
  if (!found) return error_set(HIPMM_E_PLUGIN, "no plugin %.64s.so in /plugins", type);
  *plugin_out = found;
  return HIPMM_OK;
}

void plugin_scan(const struct plugin_path *path, void (*visit)(void *closure, const struct plugin_candidate *candidate),
                 void *closure)
{
  (void)path;
  visit(closure, &(struct plugin_candidate){.type = "broken", .refusal = "no plugin descriptor"});
  for (size_t i = 0; i < N_PLUGINS; i++)
    visit(closure, &(struct plugin_candidate){.type = plugins[i].descriptor.type, .plugin = &plugins[i]});
}

bool plugin_exists(const struct plugin_path *path, const char *type)
{
  (void)path;
  return !strcmp(type, "broken") || find_fake(type);
}

const struct plugin **plugin_all(const struct plugin_path *path, size_t *count_out)
{
  (void)path;
  const struct plugin **all = calloc(N_PLUGINS, sizeof *all);
  for (size_t i = 0; all && i < N_PLUGINS; i++) all[i] = &plugins[i];
  *count_out = all ? N_PLUGINS : 0;
  return all;
}
