/* SPDX-License-Identifier: MIT */
/* Every adaptor over every sub-allocator over every source, and over every adaptor, under the random model
 * (tests/model), on both schedulers of the software device. The types are those whose plugins are found, so that a new
 * one joins by itself; what it cannot do without is in the table of requirements below. A combination that a plugin
 * refuses with HIPMM_E_NOT_SUPPORTED counts as not allowed; no type may be refused everywhere.
 *
 * HIPMM_TEST_SEED repeats a run with the seed that a failure named, HIPMM_TEST_ONLY those combinations whose name
 * contains it, and HIPMM_TEST_OPERATIONS makes runs longer or shorter. */
#include "../../core/plugin/plugin.h"
#include "../../tools/command/plugin/model.h"
#include "../support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TYPES = 64, MOST_BYTES = 65536, NARROW_BYTES = 256 * 1024, REGION_BYTES = 64 << 20 };

/* ---- What types require ---- */

struct requirement {
  const char *type;      /* with several rows it takes part once with each */
  const char *name;      /* of this variant in messages; NULL: the type */
  const char *options;   /* as they stand in the graph, each with a comma behind it; NULL: none */
  const char *forbidden; /* why the type has no place here; NULL: it has */
  bool may_fail;         /* short of memory is to be expected */
  bool is_single;        /* it cannot depend on another of its kind: both would have the same file */
};

static char log_option[600], record_option[600]; /* for files in a folder of our own */

static const struct requirement requirements[] = {
    {"advise", .options = "\"read_mostly\": true, \"preferred_location\": \"device\", \"accessed_by\": [\"cpu\"], "},
    {"aligned", .options = "\"alignment\": 4096, "},
    {"arena", .options = "\"arena_size\": \"64MiB\", "},
    {"async_import", .forbidden = "it allocates nothing by itself"},
    {"binning", .options = "\"bins\": [{\"size\": \"1KiB\"}, {\"size\": \"16KiB\"}], "},
    {"binning", .name = "binning that is filled",
     .options = "\"bins\": [{\"size\": \"2KiB\"}, {\"size\": \"64KiB\"}], \"blocks_to_preallocate\": 8, "},
    {"no_wait_plugin", .forbidden = "it makes mistakes on purpose"},
    {"callback", .options = "\"allocator\": \"program\", "},
    {"failure_callback", .options = "\"callback\": \"matrix\", "},
    {"fault", .options = "\"every\": 9, ", .may_fail = true},
    {"fixed_buffer", .options = "\"region\": \"region\", "},
    {"fixed_size", .options = "\"block_size\": \"128KiB\", \"blocks_per_chunk\": 16, "},
    {"fixed_size", .name = "fixed_size that is filled",
     .options = "\"block_size\": \"128KiB\", \"blocks_per_chunk\": 16, \"blocks_to_preallocate\": 16, "},
    {"hooks", .options = "\"hooks\": \"program\", "},
    {"limiting", .options = "\"limit\": \"128MiB\", "},
    {"logging", .options = log_option, .is_single = true},
    {.type = "monotonic"},
    {"monotonic", .name = "monotonic that is filled", .options = "\"initial_size\": \"1MiB\", "},
    {.type = "pool"},
    {"pool", .name = "pool that is filled", .options = "\"initial_size\": \"1MiB\", \"growth\": \"segments\", "},
    {"recording", .options = record_option, .is_single = true},
    {"reserving", .options = "\"limit\": \"128MiB\", "},
    {"sam_headroom", .options = "\"headroom\": \"1MiB\", "},
    {"served", .forbidden = "its memory needs a server"},
};

/* ---- Types ---- */

struct type {
  const struct hipmm_plugin *plugin;
  const struct requirement *requirement;
  unsigned runs;
};

static struct types {
  struct type items[MOST_TYPES];
  size_t count;
} sources, sub_allocators, adaptors;

static struct types *types_of_role(uint32_t role)
{
  if (role == HIPMM_ROLE_SOURCE) return &sources;
  if (role == HIPMM_ROLE_SUB_ALLOCATOR) return &sub_allocators;
  return role == HIPMM_ROLE_ADAPTOR ? &adaptors : NULL;
}

static void add_type(const struct hipmm_plugin *plugin, const struct requirement *requirement)
{
  struct types *types = types_of_role(plugin->role);
  if (!types || types->count == MOST_TYPES || requirement->forbidden) return;
  types->items[types->count++] = (struct type){.plugin = plugin, .requirement = requirement};
}

static void discover(void *closure, const struct plugin_candidate *candidate)
{
  static const struct requirement none = {.type = ""};
  bool has_row = false;
  (void)closure;
  if (!candidate->plugin || candidate->shadowed) return;
  const struct hipmm_plugin *plugin = &candidate->plugin->descriptor;
  for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
    if (strcmp(requirements[i].type, plugin->type) != 0) continue;
    add_type(plugin, &requirements[i]);
    has_row = true;
  }
  if (!has_row) add_type(plugin, &none);
}

static const char *name_of(const struct type *type)
{
  return type->requirement->name ? type->requirement->name : type->plugin->type;
}

/* ---- Combinations ---- */

/* From the top; adaptors and sub-allocator NULL: there is none. */
struct combination {
  struct type *adaptor, *second_adaptor, *sub_allocator, *source;
  char name[200], resources[1000];
  bool may_fail;
};

static void add_layer(struct combination *combination, const struct type *type, const char *name, const char *upstream)
{
  size_t used = strlen(combination->resources), named = strlen(combination->name);
  snprintf(combination->resources + used, sizeof combination->resources - used, "%s\"%s\": {%s%s%s\"type\": \"%s\"}",
           used > 1 ? ", " : "", name, type->requirement->options ? type->requirement->options : "",
           upstream ? "\"upstream\": " : "", upstream ? upstream : "", type->plugin->type);
  snprintf(combination->name + named, sizeof combination->name - named, "%s%s", named ? " over " : "", name_of(type));
  combination->may_fail |= type->requirement->may_fail;
}

/* What takes several upstreams gets one that soon says no, and the one that all others get. */
static void add_adaptor(struct combination *combination, const struct type *adaptor, const char *name,
                        const char *below)
{
  bool is_single = adaptor->plugin->min_upstreams < 2;
  char upstream[100];
  snprintf(upstream, sizeof upstream, is_single ? "\"%s\", " : "[\"narrow-%s\", \"%s\"], ", is_single ? below : name,
           below);
  add_layer(combination, adaptor, name, upstream);
  size_t used = strlen(combination->resources);
  if (!is_single)
    snprintf(combination->resources + used, sizeof combination->resources - used,
             ", \"narrow-%s\": {\"type\": \"limiting\", \"limit\": %d, \"upstream\": \"%s\"}", name, NARROW_BYTES,
             below);
}

static void compose(struct combination *combination)
{
  const char *below = combination->sub_allocator ? "middle" : "bottom";
  combination->name[0] = '\0';
  snprintf(combination->resources, sizeof combination->resources, "{");
  if (combination->adaptor)
    add_adaptor(combination, combination->adaptor, "top", combination->second_adaptor ? "second" : below);
  if (combination->second_adaptor) add_adaptor(combination, combination->second_adaptor, "second", below);
  if (combination->sub_allocator) add_layer(combination, combination->sub_allocator, "middle", "\"bottom\", ");
  add_layer(combination, combination->source, "bottom", NULL);
  size_t used = strlen(combination->resources);
  snprintf(combination->resources + used, sizeof combination->resources - used, "}");
}

/* ---- Runs ---- */

static const char runtime_options[] = "\"pageable_memory_access\": true, ";

static const struct model programs[] = {
    {.scheduler = "stepped", .threads = 1, .streams = 4, .operations = 200},
    {.scheduler = "threads", .threads = 2, .streams = 4, .operations = 80},
};

/* False if the combination is not allowed. */
static bool run(const struct combination *combination, const struct model *program, char *failures, size_t size)
{
  struct model model = *program;
  uint64_t seed = number_from_environment("HIPMM_TEST_SEED", 1);
  model.operations = (unsigned)number_from_environment("HIPMM_TEST_OPERATIONS", model.operations);
  model.resources = combination->resources;
  model.runtime = runtime_options;
  model.most_bytes = MOST_BYTES;
  model.may_fail = combination->may_fail;
  model.may_align = true;
  model.by_host = combination->source->plugin->flags & HIPMM_PLUGIN_HOST_MEMORY;
  model.region_bytes = REGION_BYTES;
  struct model_result result = model_run(&model, seed);
  if (result.status == HIPMM_E_NOT_SUPPORTED) return false;
  size_t used = strlen(failures);
  if (result.failure[0])
    snprintf(failures + used, size - used, "\n  %s, %s, HIPMM_TEST_SEED=%llu: %s", combination->name, model.scheduler,
             (unsigned long long)seed, result.failure);
  else if (!result.allocations)
    snprintf(failures + used, size - used, "\n  %s, %s: it allocates nothing", combination->name, model.scheduler);
  return true;
}

static bool is_wanted(const struct combination *combination)
{
  const char *only = getenv("HIPMM_TEST_ONLY");
  return !only || strstr(combination->name, only);
}

static void count_run(struct type *type)
{
  if (type) type->runs++;
}

static void run_combination(struct combination combination, char *failures, size_t size)
{
  compose(&combination);
  if (!is_wanted(&combination)) return;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    if (!run(&combination, &programs[i], failures, size)) continue;
    count_run(combination.adaptor);
    count_run(combination.sub_allocator);
    count_run(combination.source);
  }
}

/* ---- Tests ---- */

/* The state is the adaptor; NULL: none. */
static void agrees_with_the_model_over_everything(void **state)
{
  char failures[4000] = "";
  for (size_t source = 0; source < sources.count; source++) {
    struct combination combination = {.adaptor = *state, .source = &sources.items[source]};
    run_combination(combination, failures, sizeof failures);
    for (size_t i = 0; i < sub_allocators.count; i++) {
      combination.sub_allocator = &sub_allocators.items[i];
      run_combination(combination, failures, sizeof failures);
    }
  }
  if (failures[0]) fail_msg("%s", failures);
}

static struct type *find_type(struct types *types, const char *type)
{
  for (size_t i = 0; i < types->count; i++)
    if (!strcmp(types->items[i].plugin->type, type)) return &types->items[i];
  return NULL;
}

static void agrees_with_the_model_over_every_adaptor(void **state)
{
  char failures[4000] = "";
  struct combination combination = {
      .adaptor = *state, .sub_allocator = find_type(&sub_allocators, "pool"), .source = find_type(&sources, "device")};
  assert_non_null(combination.source);
  for (size_t i = 0; i < adaptors.count; i++) {
    combination.second_adaptor = &adaptors.items[i];
    if (combination.second_adaptor == *state && combination.adaptor->requirement->is_single) continue;
    run_combination(combination, failures, sizeof failures);
  }
  if (failures[0]) fail_msg("%s", failures);
}

static void expect_runs(const struct types *types)
{
  for (size_t i = 0; i < types->count; i++)
    if (!types->items[i].runs) fail_msg("%s is refused in every combination", name_of(&types->items[i]));
}

static void lets_every_type_take_part(void **state)
{
  (void)state;
  if (getenv("HIPMM_TEST_ONLY")) return;
  assert_in_range(sources.count, 5, MOST_TYPES - 1);
  assert_in_range(sub_allocators.count, 3, MOST_TYPES - 1);
  assert_in_range(adaptors.count, 8, MOST_TYPES - 1);
  expect_runs(&sources);
  expect_runs(&sub_allocators);
  expect_runs(&adaptors);
}

static struct CMUnitTest test_of(struct type *adaptor, CMUnitTestFunction function, const char *below)
{
  static char names[2 * MOST_TYPES + 1][100];
  static size_t n;
  char *name = names[n++];
  snprintf(name, sizeof names[0], "%s over %s agrees with the model", adaptor ? name_of(adaptor) : "nothing", below);
  return (struct CMUnitTest){.name = name, .test_func = function, .initial_state = adaptor};
}

static int give_up(void *argument, size_t bytes)
{
  (void)argument, (void)bytes;
  return 0;
}

int main(void)
{
  const struct hipmm_failure_handler failure = {sizeof failure, give_up, NULL};
  struct CMUnitTest tests[2 * MOST_TYPES + 2] = {{0}};
  size_t n = 0;
  char *folder = new_folder(), *file = path_in(folder, "log.csv");
  snprintf(log_option, sizeof log_option, "\"file\": \"%s\", ", file);
  snprintf(record_option, sizeof record_option, "\"file\": \"%s.record\", \"stacks\": \"all\", ", file);
  log_to_file("error");
  if (hipmm_failure_handler_register("matrix", &failure)) return 1;
  plugin_scan(NULL, discover, NULL);
  tests[n++] = test_of(NULL, agrees_with_the_model_over_everything, "everything");
  for (size_t i = 0; i < adaptors.count; i++) {
    struct type *adaptor = &adaptors.items[i];
    tests[n++] = test_of(adaptor, agrees_with_the_model_over_everything, "everything");
    tests[n++] = test_of(adaptor, agrees_with_the_model_over_every_adaptor, "every adaptor");
  }
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(lets_every_type_take_part);
  int failed = _cmocka_run_group_tests("matrix", tests, n, NULL, NULL);
  remove_folder(folder);
  free(file);
  return failed;
}
