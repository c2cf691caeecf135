/* SPDX-License-Identifier: MIT */
/* Tests of core/call/resource_create.c and of what it needs of stack.c and device_table.c: resources made in code are
 * as those of a graph, keep alive what they depend on, and are refused with the place of the error. */
#include "../../core/runtime/hip.h"
#include "../../core/stack/stack.h"
#include "../support/fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int start(void **state)
{
  fixture_setup(state);
  return hipmm_init_from_string(
      "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"256MiB\"}, \"stack\": [\"statistics\", "
      "{\"type\": \"pool\", \"initial_size\": \"8MiB\", \"growth\": \"segments\"}, \"device\"]}");
}

static struct hipmm_resource *create(const char *type, const char *options, struct hipmm_resource *upstream)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_create(0, type, options, &upstream, upstream ? 1 : 0, &resource));
  assert_non_null(resource);
  return resource;
}

/* ---- Good ones ---- */

static void makes_a_stack_bottom_up(void **state)
{
  (void)state;
  void *memory;
  struct hipmm_resource *device = create("device", NULL, NULL);
  struct hipmm_resource *pool = create("pool", "{\"initial_size\": \"4MiB\", \"growth\": \"segments\"}", device);
  struct hipmm_resource *top = create("statistics", "{}", pool);
  assert_int_equal(live_on(0), 1); /* of the pool made here: the graph's own stack is not built */
  assert_string_equal(hipmm_resource_name(top), "statistics");
  assert_string_equal(hipmm_resource_type(top), "statistics");
  assert_int_equal(hipmm_resource_device(top), 0);
  assert_ok(hipmm_allocate(top, 1000, NULL, &memory));
  assert_int_equal(resource_value(top, "current_bytes"), 1000);
  assert_int_equal(resource_value(top, "reserved_bytes"), 4 * MIB); /* the pool's, found below, in another stack */
  assert_ok(hipmm_deallocate(top, memory, 0, NULL));                /* the size too */
  assert_int_equal(resource_value(top, "current_bytes"), 0);
  hipmm_resource_release(device);
  hipmm_resource_release(pool);
  assert_ok(hipmm_allocate(top, 1000, NULL, &memory)); /* what it depends on is still there */
  assert_ok(hipmm_deallocate(top, memory, 1000, NULL));
  assert_ok(hipmm_resource_trim(top, 0));
  assert_int_equal(live_on(0), 0);
  hipmm_resource_release(top);
}

static void depends_on_resources_of_the_graph(void **state)
{
  (void)state;
  void *memory;
  struct hipmm_resource *top = NULL;
  assert_ok(hipmm_resource_get_by_name(0, "pool", &top));
  struct hipmm_resource *limiting = create("limiting", "{\"limit\": \"1MiB\"}", top);
  hipmm_resource_release(top);
  assert_status(hipmm_allocate(limiting, 2 * MIB, NULL, &memory), HIPMM_E_LIMIT);
  assert_ok(hipmm_allocate(limiting, 1000, NULL, &memory));
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_deallocate(limiting, memory, 1000, NULL)); /* the graph's stack lives on below it */
  assert_int_equal(live_on(0), 1);
  hipmm_resource_release(limiting);
  assert_int_equal(live_on(0), 0);
}

static void is_destroyed_with_its_last_reference_on_its_device(void **state)
{
  (void)state;
  struct hipmm_resource *witness = NULL, *device = NULL;
  assert_ok(hipmm_resource_create(1, "device", NULL, NULL, 0, &device));
  assert_ok(hipmm_resource_create(1, "witness", NULL, &device, 1, &witness));
  assert_int_equal(resource_value(witness, "create_device"), 1);
  hipmm_resource_release(device);
  hipmm_resource_retain(witness);
  hipmm_resource_release(witness);
  logged();
  assert_int_equal(resource_value(witness, "create_device"), 1);
  hipmm_resource_release(witness);
  assert_contains(logged(), "witness: destroyed on device 1");
  int current = -1;
  hip_table()->GetDevice(&current);
  assert_int_equal(current, 0);
}

static void is_made_current_without_building_the_graphs_stack(void **state)
{
  (void)state;
  struct hipmm_resource *previous = NULL, *device = create("device", NULL, NULL), *got = NULL;
  assert_ok(hipmm_resource_set_for_device(0, device, NULL));
  hipmm_resource_release(device);
  assert_int_equal(live_on(0), 0);
  void *memory = fixture_allocate(1000, NULL);
  assert_int_equal(live_on(0), 1);
  fixture_free(memory, 1000, NULL);
  assert_ok(hipmm_resource_get_current(&got));
  assert_ptr_equal(got, device);
  hipmm_resource_release(got);
  assert_ok(hipmm_resource_set_current(NULL, &previous));
  assert_ptr_equal(previous, device);
  hipmm_resource_release(previous);
  assert_int_equal(live_on(0), 0);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL); /* now it is built */
  assert_int_equal(live_on(0), 1);
  assert_ok(hipmm_resource_get_current(&got));
  assert_string_equal(hipmm_resource_name(got), "statistics");
  hipmm_resource_release(got);
}

static void is_made_current_over_the_graphs_own(void **state)
{
  (void)state;
  struct hipmm_resource *top = NULL, *previous = NULL;
  assert_ok(hipmm_resource_get_current(&top));
  struct hipmm_resource *witness = create("witness", NULL, top);
  assert_ok(hipmm_resource_set_current(witness, &previous));
  assert_ptr_equal(previous, top);
  hipmm_resource_release(previous);
  hipmm_resource_release(witness);
  void *memory = fixture_allocate(1000, NULL);
  assert_int_equal(resource_value(top, "current_bytes"), 1000);
  fixture_free(memory, 1000, NULL);
  assert_ok(hipmm_resource_reset_current());
  hipmm_resource_release(top);
}

static void takes_options_one_by_one(void **state)
{
  (void)state;
  const struct hipmm_setting settings[] = {
      {"initial_size", "2MiB"}, {"growth", "\"segments\""}, {"maximum_size", "16777216"}};
  struct hipmm_resource *device = create("device", NULL, NULL), *pool = NULL;
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe + 64, /* a later program's */
                                .type = "pool",
                                .options = "{\"initial_size\": \"4MiB\"}",
                                .settings = settings,
                                .n_settings = 3,
                                .upstreams = &device,
                                .n_upstreams = 1};
  void *memory;
  assert_ok(hipmm_resource_create_from(0, &recipe, &pool));
  assert_int_equal(resource_value(pool, "reserved_bytes"), 2 * MIB);
  assert_status(hipmm_allocate(pool, 17 * MIB, NULL, &memory), HIPMM_E_OUT_OF_MEMORY);
  hipmm_resource_release(pool);
  hipmm_resource_release(device);
}

static void takes_percentages_of_what_is_free_now(void **state)
{
  (void)state;
  size_t free_bytes, total_bytes;
  struct hipmm_resource *device = create("device", NULL, NULL);
  hip_table()->MemGetInfo(&free_bytes, &total_bytes);
  struct hipmm_resource *limiting = create("limiting", "{\"limit\": \"25%\"}", device);
  assert_int_equal(resource_value(limiting, "limit_bytes"), free_bytes / 4);
  hipmm_resource_release(limiting);
  hipmm_resource_release(device);
}

/* A binning resource whose bin is served by a resource that is named in its options. */
static void takes_resources_that_options_name(void **state)
{
  (void)state;
  void *memory;
  struct hipmm_resource *device = create("device", NULL, NULL), *bins = NULL, *small = NULL;
  struct hipmm_recipe of_small = {.struct_size = sizeof of_small,
                                  .type = "fixed_size",
                                  .name = "small",
                                  .options = "{\"block_size\": \"64KiB\", \"blocks_per_chunk\": 4}",
                                  .upstreams = &device,
                                  .n_upstreams = 1};
  assert_ok(hipmm_resource_create_from(0, &of_small, &small));
  struct hipmm_recipe of_bins = {.struct_size = sizeof of_bins,
                                 .type = "binning",
                                 .options = "{\"bins\": [{\"size\": \"64KiB\", \"resource\": \"small\"}]}",
                                 .upstreams = &device,
                                 .n_upstreams = 1,
                                 .named_resources = &small,
                                 .n_named_resources = 1};
  assert_ok(hipmm_resource_create_from(0, &of_bins, &bins));
  assert_ok(hipmm_allocate(bins, 1000, NULL, &memory));
  assert_int_equal(resource_value(small, "live_count"), 1);
  hipmm_resource_release(small);
  hipmm_resource_release(device);
  assert_int_equal(resource_value(bins, "live_count"), 1);
  assert_ok(hipmm_deallocate(bins, memory, 0, NULL));
  assert_ok(hipmm_resource_trim(bins, 0));
  assert_int_equal(live_on(0), 0);
  hipmm_resource_release(bins);
}

static void reads_an_option_of_another_resources_name_as_that_resource_only_if_it_is_given(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL), *bins = NULL;
  static const char *const options[] = {"{\"bins\": [{\"size\": \"64KiB\", \"resource\": \"divice\"}]}",
                                        "{\"bins\": [{\"size\": \"64KiB\", \"resource\": \"binning\"}]}"};
  static const char *const said[] = {
      "<options>: /bins/0/resource: no resource is called \"divice\"; did you mean \"device\"?",
      "<options>: /bins/0/resource: no resource is called \"binning\" among those given as upstreams and "
      "named_resources"};
  for (int i = 0; i < 2; i++) {
    assert_status(hipmm_resource_create(0, "binning", options[i], &device, 1, &bins), HIPMM_E_CONFIG);
    assert_string_equal(hipmm_last_error_message(), said[i]);
  }
  hipmm_resource_release(device);
}

/* ---- Names ---- */

static void numbers_those_of_one_type(void **state)
{
  (void)state;
  struct hipmm_resource *devices[4];
  for (int i = 0; i < 4; i++) devices[i] = create("device", NULL, NULL);
  assert_string_equal(hipmm_resource_name(devices[0]), "device");
  assert_string_equal(hipmm_resource_name(devices[1]), "device.2");
  assert_string_equal(hipmm_resource_name(devices[3]), "device.4");
  hipmm_resource_release(devices[0]);
  struct hipmm_resource *again = create("device", NULL, NULL);
  assert_string_equal(hipmm_resource_name(again), "device");
  for (int i = 1; i < 4; i++) hipmm_resource_release(devices[i]);
  hipmm_resource_release(again);
}

/* Names that the program chose count, unless their number has a zero in front, and come in any order. */
static void numbers_on_from_the_highest_number_that_is_held(void **state)
{
  (void)state;
  static const char *const chosen[] = {"device",   "device.9", "device.5", "device.12",
                                       "device.x", "device.7", "device.1", "device.05"};
  enum { CHOSEN = sizeof chosen / sizeof *chosen };
  struct hipmm_resource *held[CHOSEN];
  for (int i = 0; i < CHOSEN; i++) {
    const struct hipmm_recipe recipe = {.struct_size = sizeof recipe, .type = "device", .name = chosen[i]};
    assert_ok(hipmm_resource_create_from(0, &recipe, &held[i]));
  }
  static const struct {
    int released;
    const char *next;
  } steps[] = {{4, "device.13"}, {1, "device.13"}, {3, "device.8"}, {5, "device.6"},
               {2, "device.2"},  {6, "device.2"},  {7, "device.2"}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    hipmm_resource_release(held[steps[i].released]);
    struct hipmm_resource *next = create("device", NULL, NULL);
    assert_string_equal(hipmm_resource_name(next), steps[i].next);
    hipmm_resource_release(next);
  }
  hipmm_resource_release(held[0]);
}

/* A name with the largest number that is counted, and one with a larger number. */
static void numbers_below_the_largest_number(void **state)
{
  (void)state;
  static const char *const chosen[] = {"device", "device.999999999999999999", "device.999999999999999997",
                                       "device.99999999999999999999"};
  static const char *const next[] = {"device.999999999999999998", "device.999999999999999996"};
  struct hipmm_resource *held[4], *made[2];
  for (int i = 0; i < 4; i++) {
    const struct hipmm_recipe recipe = {.struct_size = sizeof recipe, .type = "device", .name = chosen[i]};
    assert_ok(hipmm_resource_create_from(0, &recipe, &held[i]));
  }
  for (int i = 0; i < 2; i++) {
    made[i] = create("device", NULL, NULL);
    assert_string_equal(hipmm_resource_name(made[i]), next[i]);
  }
  for (int i = 0; i < 4; i++) hipmm_resource_release(held[i]);
  for (int i = 0; i < 2; i++) hipmm_resource_release(made[i]);
}

enum { MANY = 6000, BATCH = 20 };

static struct hipmm_resource *many[MANY], *below_many;
static size_t n_many;

/* "host" begins "host_x", and is a name of its own. */
static void numbers_each_name_by_itself(void **state)
{
  (void)state;
  struct hipmm_resource *made[4] = {NULL};
  const struct hipmm_recipe chosen = {.struct_size = sizeof chosen, .type = "host", .name = "host_x.7"};
  assert_ok(hipmm_resource_create_from(0, &chosen, &made[0]));
  for (int i = 1; i < 4; i++) made[i] = create("host", NULL, NULL);
  assert_string_equal(hipmm_resource_name(made[2]), "host.2");
  assert_string_equal(hipmm_resource_name(made[3]), "host.3");
  for (int i = 0; i < 4; i++) hipmm_resource_release(made[i]);
}

static void create_some(void)
{
  for (int i = 0; i < BATCH; i++) many[n_many++] = create("statistics", NULL, below_many);
}

static void read_some(void)
{
  int64_t value = -1;
  for (int i = 0; i < BATCH; i++) assert_ok(hipmm_query("created/statistics.30/current_bytes", &value));
  assert_int_equal(value, 0);
}

static void is_made_and_found_as_fast_among_thousands(void **state)
{
  (void)state;
  below_many = create("device", NULL, NULL);
  uint64_t made = least_time(10, create_some), found = least_time(10, read_some);
  while (n_many < MANY - 10 * BATCH) create_some();
  assert_in_range(least_time(10, create_some), 1, 6 * made);
  assert_in_range(least_time(10, read_some), 1, 6 * found);
  while (n_many) hipmm_resource_release(many[--n_many]);
  hipmm_resource_release(below_many);
}

static void refuses_a_given_name_that_is_taken(void **state)
{
  (void)state;
  struct hipmm_resource *first = NULL, *second = NULL;
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe, .type = "device", .name = "mine"};
  assert_ok(hipmm_resource_create_from(0, &recipe, &first));
  assert_string_equal(hipmm_resource_name(first), "mine");
  assert_status(hipmm_resource_create_from(1, &recipe, &second), HIPMM_E_ARGUMENT);
  assert_message("a resource called \"mine\" was created before and is still held");
  hipmm_resource_release(first);
  assert_ok(hipmm_resource_create_from(1, &recipe, &second));
  hipmm_resource_release(second);
  recipe.name = "no name";
  assert_status(hipmm_resource_create_from(0, &recipe, &first), HIPMM_E_ARGUMENT);
  assert_message("\"no name\" is not a name; write at most 100 letters");
}

/* ---- Wrong calls ---- */

struct wrong {
  const char *type, *options;
  enum hipmm_status status;
  const char *path, *message;
};

static const struct wrong wrongs[] = {
    {"pool", "{\"inital_size\": 1}", HIPMM_E_CONFIG, "/inital_size",
     "<options>: /inital_size: unknown option \"inital_size\" of pool; did you mean \"initial_size\"?"},
    {"pool", "{\"initial_size\": \"1 gigs\"}", HIPMM_E_CONFIG, "/initial_size",
     "<options>: /initial_size: \"1 gigs\" is not a size; write bytes, \"512MiB\", \"2GB\", \"50%\", \"50% of total\" "
     "or \"share\""},
    {"pool", "{\"type\": \"pool\", \"growth\": 1}", HIPMM_E_CONFIG, "/type",
     "<options>: /type: unknown option \"type\" of pool; it has "},
    {"pool", "{\"initial_size\": 1", HIPMM_E_SYNTAX, "", "<options>:1:18: "},
    {"pool", "{\"growth\": \"auto\", \"growth\": \"auto\"}", HIPMM_E_SYNTAX, "", "<options>:1:"},
    {"pool", " ", HIPMM_E_SYNTAX, "", "<options>:1:1: is empty; write {} for no options"},
    {"pool", "[]", HIPMM_E_CONFIG, "", "<options>: options are an object, not a list"},
    {"limiting", NULL, HIPMM_E_CONFIG, "", "<options>: limiting needs \"limit\"; write \"limit\": "},
    {"fails", "{\"how\": \"with_words\"}", HIPMM_E_HIP, "", "<options>: fails: it is 5 o'clock"},
    {"pol", NULL, HIPMM_E_CONFIG, "", "unknown type \"pol\"; did you mean \"pool\"?"},
    {"software", NULL, HIPMM_E_CONFIG, "", "software is a runtime, not a resource"},
    {"other_abi", NULL, HIPMM_E_PLUGIN_ABI, "", "speaks plugin ABI"},
    {NULL, NULL, HIPMM_E_ARGUMENT, "", "type is NULL; `hipmm plugins` lists the types"},
};

static void says_where_the_error_is(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL), *untouched = device;
  for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
    struct hipmm_error error = {.struct_size = sizeof error};
    const struct wrong *row = &wrongs[i];
    assert_status(hipmm_resource_create(0, row->type, row->options, &device, 1, &untouched), row->status);
    assert_message(row->message);
    hipmm_last_error(&error);
    assert_string_equal(error.path, row->path);
    if (row->message[0] == '<') assert_string_equal(error.file, "<options>");
    assert_ptr_equal(untouched, device);
    assert_int_equal(live_on(0), 0);
  }
  hipmm_resource_release(device);
}

static void refuses_wrong_upstreams(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL), *far = NULL, *made = NULL;
  assert_ok(hipmm_resource_create(1, "device", NULL, NULL, 0, &far));
  struct hipmm_resource *two[] = {device, device}, *hole[] = {NULL};
  assert_status(hipmm_resource_create(0, "pool", NULL, &far, 1, &made), HIPMM_E_ARGUMENT);
  assert_message("upstreams[0], device.2, serves device 1; a resource of device 0 stands on its own");
  assert_status(hipmm_resource_create(0, "pool", NULL, two, 2, &made), HIPMM_E_ARGUMENT);
  assert_message("pool takes 1 upstream, not 2");
  assert_status(hipmm_resource_create(0, "pool", NULL, NULL, 0, &made), HIPMM_E_ARGUMENT);
  assert_message("pool takes 1 upstream, not 0");
  assert_status(hipmm_resource_create(0, "device", NULL, &device, 1, &made), HIPMM_E_ARGUMENT);
  assert_message("device takes no upstream, not 1");
  assert_status(hipmm_resource_create(0, "pool", NULL, hole, 1, &made), HIPMM_E_ARGUMENT);
  assert_message("upstreams[0] is NULL");
  assert_status(hipmm_resource_create(0, "pool", NULL, NULL, 1, &made), HIPMM_E_ARGUMENT);
  assert_message("upstreams is NULL, but there should be 1");
  assert_status(hipmm_resource_create(2, "device", NULL, NULL, 0, &made), HIPMM_E_NO_DEVICE);
  assert_message("device 2 does not exist");
  assert_status(hipmm_resource_create(-1, "device", NULL, NULL, 0, &made), HIPMM_E_NO_DEVICE);
  assert_status(hipmm_resource_create(0, "device", NULL, NULL, 0, NULL), HIPMM_E_ARGUMENT);
  assert_message("resource_out is NULL");
  assert_null(made);
  hipmm_resource_release(device);
  hipmm_resource_release(far);
}

/* ---- Objects ---- */

static enum hipmm_status allocate_host_memory(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                              void **ptr_out)
{
  (void)stream;
  ++*(int *)arg;
  *ptr_out = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

static void free_host_memory(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)bytes, (void)alignment, (void)stream;
  --*(int *)arg;
  free(ptr);
}

static int refuse_to_help(void *arg, size_t bytes)
{
  (void)bytes;
  ++*(int *)arg;
  return 0;
}

static enum hipmm_status create_with(const char *type, const char *options, const char *option, const void *object,
                                     struct hipmm_resource *upstream, struct hipmm_resource **resource_out)
{
  const struct hipmm_object objects[] = {{option, object}};
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = type,
                                      .options = options,
                                      .upstreams = &upstream,
                                      .n_upstreams = upstream ? 1 : 0,
                                      .objects = objects,
                                      .n_objects = 1};
  return hipmm_resource_create_from(0, &recipe, resource_out);
}

/* Without a name of the program's: two resources with one object each do not meet. */
static void takes_objects_themselves(void **state)
{
  (void)state;
  int first_count = 0, second_count = 0, asked = 0;
  void *ptr = NULL, *region_memory = NULL, *none = NULL;
  struct hipmm_allocator allocator = {sizeof allocator, allocate_host_memory, free_host_memory, &first_count};
  struct hipmm_failure_handler handler = {sizeof handler, refuse_to_help, &asked};
  struct hipmm_resource *first = NULL, *second = NULL, *above = NULL, *region = NULL, *view = NULL;
  assert_ok(create_with("callback", NULL, "allocator", &allocator, NULL, &first));
  allocator.arg = &second_count;
  assert_ok(create_with("callback", "{}", "allocator", &allocator, NULL, &second));
  assert_ok(hipmm_allocate(first, 1000, NULL, &ptr));
  assert_int_equal(first_count * 10 + second_count, 10);
  assert_ok(hipmm_deallocate(first, ptr, 1000, NULL));
  assert_int_equal(first_count, 0);
  hipmm_resource_release(first);
  assert_ok(create_with("failure_callback", NULL, "callback", &handler, second, &above));
  assert_status(hipmm_allocate(above, SIZE_MAX / 2, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(asked, 1);
  /* Another object by name takes its place, and the resource forgets the first one in its time. */
  assert_ok(hipmm_failure_handler_register("other", &handler));
  assert_ok(hipmm_set("created/failure_callback/callback", "other"));
  assert_ok(hipmm_failure_handler_register("other", NULL));
  hipmm_resource_release(above);
  hipmm_resource_release(second);
  assert_int_equal(fixture_hip()->Malloc(&region_memory, 4 * MIB), 0);
  const struct hipmm_region memory = {sizeof memory, region_memory, 4 * MIB};
  assert_ok(create_with("fixed_buffer", NULL, "region", &memory, NULL, &region));
  assert_ok(hipmm_allocate(region, 1000, NULL, &ptr));
  assert_in_range((uintptr_t)ptr, (uintptr_t)region_memory, (uintptr_t)region_memory + 4 * MIB);
  assert_ok(hipmm_deallocate(region, ptr, 1000, NULL));
  hipmm_resource_release(region);
  assert_int_equal(fixture_hip()->Free(region_memory), 0);
  void *pool = NULL;
  assert_int_equal(fixture_hip()->DeviceGetDefaultMemPool(&pool, 0), 0);
  const struct hipmm_mempool mempool = {sizeof mempool, pool};
  assert_ok(create_with("async_view", NULL, "pool_handle", &mempool, NULL, &view));
  hipmm_resource_release(view);
}

static void refuses_wrong_objects(void **state)
{
  (void)state;
  int count = 0;
  struct hipmm_resource *resource = NULL;
  struct hipmm_allocator allocator = {sizeof allocator, allocate_host_memory, free_host_memory, &count};
  assert_status(create_with("callback", NULL, "alocator", &allocator, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_message("objects[0]: callback has no option alocator that takes an object");
  assert_status(create_with("pool", NULL, "growth", &allocator, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_status(create_with("callback", NULL, NULL, &allocator, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_message("objects[0] has no option");
  assert_status(create_with("callback", NULL, "allocator", NULL, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_status(create_with("callback", "{\"allocator\": \"mine\"}", "allocator", &allocator, NULL, &resource),
                HIPMM_E_ARGUMENT);
  assert_message("the option allocator is given twice");
  allocator.allocate = NULL;
  assert_status(create_with("callback", NULL, "allocator", &allocator, NULL, &resource), HIPMM_E_ARGUMENT);
  assert_message("allocate is NULL");
  /* Private names are nobody's: those of resources that are gone are unknown. */
  assert_status(hipmm_resource_create(0, "callback", "{\"allocator\": \"#1\"}", NULL, 0, &resource), HIPMM_E_CONFIG);
  assert_message("no allocator is registered as");
  assert_null(resource);
}

static void refuses_a_wrong_recipe(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL), *made = NULL;
  const struct hipmm_setting no_value[] = {{"growth", "auto"}, {"record", NULL}}, no_name[] = {{NULL, "auto"}},
                             not_text[] = {{"growth", "\xff"}}, unknown[] = {{"grwth", "auto"}};
  struct hipmm_recipe good = {
      .struct_size = sizeof good, .type = "pool", .upstreams = &device, .n_upstreams = 1, .n_settings = 1};
  struct hipmm_recipe recipe = good;
  assert_status(hipmm_resource_create_from(0, NULL, &made), HIPMM_E_ARGUMENT);
  recipe.struct_size = 8;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("struct_size of the recipe is 8; set it to sizeof(struct hipmm_recipe)");
  recipe = good;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("settings is NULL, but there should be 1");
  recipe.settings = no_value, recipe.n_settings = 2;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("settings[1] has no value");
  recipe.settings = no_name, recipe.n_settings = 1;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("settings[0] has no name");
  recipe.settings = not_text;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("settings[0] is not valid UTF-8");
  recipe.settings = unknown;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_CONFIG);
  assert_message("<options>: /grwth: unknown option \"grwth\" of pool; did you mean \"growth\"?");
  recipe = good, recipe.n_settings = 0, recipe.named_resources = &device, recipe.n_named_resources = 1;
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_ARGUMENT);
  assert_message("named_resources[0], device, is named by no option");
  assert_null(made);
  hipmm_resource_release(device);
}

/* Two resources of one name can only be told apart by an option where one of them comes from the graph. */
static void refuses_an_ambiguous_name(void **state)
{
  (void)state;
  struct hipmm_resource *of_the_graph = NULL, *made = NULL, *device = create("device", NULL, NULL);
  assert_ok(hipmm_resource_get_by_name(0, "device", &of_the_graph));
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                .type = "binning",
                                .options = "{\"bins\": [{\"size\": \"64KiB\", \"resource\": \"device\"}]}",
                                .upstreams = &device,
                                .n_upstreams = 1,
                                .named_resources = &of_the_graph,
                                .n_named_resources = 1};
  assert_status(hipmm_resource_create_from(0, &recipe, &made), HIPMM_E_CONFIG);
  assert_message("<options>: /bins/0/resource: two of the resources given are called \"device\"");
  hipmm_resource_release(of_the_graph);
  hipmm_resource_release(device);
}

static void is_at_most_so_deep(void **state)
{
  (void)state;
  struct hipmm_resource *top = create("device", NULL, NULL), *above = NULL;
  for (int i = 0; i < 99; i++) {
    assert_ok(hipmm_resource_create(0, "witness", NULL, &top, 1, &above));
    hipmm_resource_release(top);
    top = above;
  }
  above = NULL;
  assert_status(hipmm_resource_create(0, "witness", NULL, &top, 1, &above), HIPMM_E_ARGUMENT);
  assert_message("witness.100: depends on more than 99 resources");
  assert_null(above);
  assert_ok(hipmm_resource_trim(top, 77));
  int64_t bytes;
  assert_ok(hipmm_resource_query(top, "trim_bytes", &bytes));
  assert_int_equal(bytes, 77);
  hipmm_resource_release(top); /* and with it all */
  assert_null(stack_next(NULL));
}

/* ---- Trims and streams go through all stacks ---- */

static void trims_all_below_once_from_the_top_down(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL), *shared = create("witness", NULL, device), *small,
                        *bins;
  struct hipmm_recipe of_small = {
      .struct_size = sizeof of_small, .type = "witness", .name = "small", .upstreams = &shared, .n_upstreams = 1};
  assert_ok(hipmm_resource_create_from(0, &of_small, &small));
  struct hipmm_recipe of_bins = {.struct_size = sizeof of_bins,
                                 .type = "binning",
                                 .options = "{\"bins\": [{\"size\": \"64KiB\", \"resource\": \"small\"}]}",
                                 .upstreams = &shared,
                                 .n_upstreams = 1,
                                 .named_resources = &small,
                                 .n_named_resources = 1};
  assert_ok(hipmm_resource_create_from(0, &of_bins, &bins));
  assert_ok(hipmm_resource_trim(bins, 4321));
  assert_int_equal(resource_value(shared, "trim_turn"), resource_value(small, "trim_turn") + 1);
  assert_int_equal(resource_value(shared, "trim_bytes"), 4321);
  struct hipmm_resource *all[] = {device, shared, small, bins};
  for (int i = 0; i < 4; i++) hipmm_resource_release(all[i]);
}

static void hears_of_streams_of_its_device(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL), *near = create("witness", NULL, device), *far, *below;
  assert_ok(hipmm_resource_create(1, "device", NULL, NULL, 0, &below));
  assert_ok(hipmm_resource_create(1, "witness", NULL, &below, 1, &far));
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retain(0, stream));
  assert_int_equal(resource_value(near, "retained"), 1);
  assert_int_equal(resource_value(far, "retained"), 0);
  assert_ok(hipmm_stream_retire(0, stream));
  assert_int_equal(resource_value(near, "retired"), 1);
  assert_int_equal(resource_value(far, "retired"), 0);
  fixture_drop_stream(stream);
  struct hipmm_resource *all[] = {device, near, far, below};
  for (int i = 0; i < 4; i++) hipmm_resource_release(all[i]);
}

/* ---- States ---- */

static void needs_hipmm_to_be_there(void **state)
{
  (void)state;
  struct hipmm_resource *made = NULL;
  assert_ok(hipmm_finalize());
  assert_status(hipmm_resource_create(0, "device", NULL, NULL, 0, &made), HIPMM_E_STATE);
  assert_null(made);
}

/* A library's own stack has plugins for what depends on it. */
static void needs_hipmm_or_what_it_depends_on(void **state)
{
  (void)state;
  struct hipmm_resource *made = NULL, *none = (struct hipmm_resource *)(void *)&made, *own = NULL;
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_stack_build_from_string(0, NULL, "{\"runtime\": \"software\", \"stack\": [\"device\"]}", &own));
  assert_status(hipmm_resource_create(0, "device", NULL, NULL, 0, &made), HIPMM_E_STATE);
  assert_status(hipmm_resource_create(0, "statistics", NULL, &none, 1, &made), HIPMM_E_ARGUMENT);
  assert_status(hipmm_resource_create(77, "statistics", NULL, &own, 1, &made), HIPMM_E_NO_DEVICE);
  assert_null(made);
  assert_ok(hipmm_resource_create(0, "statistics", NULL, &own, 1, &made));
  hipmm_resource_release(made);
  hipmm_resource_release(own);
}

static void outlives_finalisation(void **state)
{
  (void)state;
  void *memory;
  struct hipmm_resource *device = create("device", NULL, NULL), *top = create("statistics", NULL, device), *made;
  assert_ok(hipmm_resource_set_for_device(0, top, NULL));
  assert_ok(hipmm_allocate(top, 1000, NULL, &memory));
  assert_ok(hipmm_finalize());
  assert_int_equal(resource_value(top, "current_bytes"), 1000);
  assert_ok(hipmm_deallocate(top, memory, 1000, NULL));
  fixture_start("'stack': ['device']");
  assert_ok(hipmm_resource_create(0, "witness", NULL, &top, 1, &made)); /* over one of before */
  hipmm_resource_release(top);
  hipmm_resource_release(device);
  assert_ok(hipmm_allocate(made, 1000, NULL, &memory));
  assert_ok(hipmm_deallocate(made, memory, 1000, NULL));
  hipmm_resource_release(made);
}

static int create_in_child(const void *upstream)
{
  struct hipmm_resource *made, *below = (struct hipmm_resource *)(uintptr_t)upstream;
  alarm(20);
  if (hipmm_resource_create(0, "witness", NULL, &below, 1, &made) != HIPMM_E_STATE) return 1;
  hipmm_resource_release(below);
  return 0;
}

static void is_refused_in_the_child_of_a_fork(void **state)
{
  (void)state;
  struct hipmm_resource *device = create("device", NULL, NULL);
  assert_int_equal(run_forked(create_in_child, device).status, 0);
  hipmm_resource_release(device);
}

/* A callback that wants the device's resource while that is being built. */
static int ask_for_the_resource(void *refusals, size_t bytes)
{
  void *memory;
  struct hipmm_resource *resource = NULL;
  (void)bytes;
  *(int *)refusals += hipmm_allocate(NULL, 1000, NULL, &memory) == HIPMM_E_STATE;
  *(int *)refusals += hipmm_resource_set_for_device(0, NULL, NULL) == HIPMM_E_STATE;
  if (hipmm_resource_create(0, "device", NULL, NULL, 0, &resource)) return 0; /* this may be done */
  *(int *)refusals += 10;
  hipmm_resource_release(resource);
  return 0;
}

static void a_callback_from_within_the_building_is_refused(void **state)
{
  (void)state;
  int refusals = 0;
  const struct hipmm_failure_handler failure = {sizeof failure, ask_for_the_resource, &refusals};
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_failure_handler_register("ask", &failure));
  fixture_start("'stack': [{'type': 'variable_plugin', 'failure': 'ask', 'calls': true}, 'device']");
  assert_int_equal(refusals, 12);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_failure_handler_register("ask", NULL));
}

/* ---- Failures ---- */

static void create_and_release(void)
{
  struct hipmm_resource *device = NULL, *pool = NULL;
  void *memory;
  if (!hipmm_resource_create(0, "device", NULL, NULL, 0, &device) &&
      !hipmm_resource_create(0, "pool", "{\"initial_size\": \"4MiB\"}", &device, 1, &pool) &&
      !hipmm_allocate(pool, 1000, NULL, &memory))
    hipmm_deallocate(pool, memory, 1000, NULL);
  hipmm_resource_release(pool);
  hipmm_resource_release(device);
}

static void loses_nothing_whatever_hip_call_fails(void **state)
{
  (void)state;
  assert_ok(hipmm_finalize());
  assert_true(fixture_fail_each_call("", "'stack': ['device']", create_and_release) > 5);
}

/* ---- Threads ---- */

static void *create_often(void *upstream)
{
  struct hipmm_resource *device = upstream;
  for (int i = 0; i < 100; i++) {
    struct hipmm_resource *pool, *top;
    void *memory;
    if (hipmm_resource_create(0, "limiting", "{\"limit\": \"1MiB\"}", &device, 1, &pool)) return device;
    if (hipmm_resource_create(0, "statistics", NULL, &pool, 1, &top)) return device;
    hipmm_resource_release(pool);
    if (hipmm_allocate(top, 1000, NULL, &memory) || hipmm_deallocate(top, memory, 1000, NULL)) return device;
    if (hipmm_stream_retire(0, NULL)) return device;
    hipmm_resource_release(top);
  }
  return NULL;
}

static void is_made_by_many_threads(void **state)
{
  (void)state;
  pthread_t threads[4];
  struct hipmm_resource *device = create("device", NULL, NULL);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, create_often, device), 0);
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  hipmm_resource_release(device);
  assert_null(stack_next(NULL));
}

#define create_test(name) cmocka_unit_test_setup_teardown(name, start, fixture_teardown)

int main(void)
{
  use_test_plugins();
  log_to_file("info");
  const struct CMUnitTest tests[] = {
      create_test(makes_a_stack_bottom_up),
      create_test(depends_on_resources_of_the_graph),
      create_test(is_destroyed_with_its_last_reference_on_its_device),
      create_test(is_made_current_without_building_the_graphs_stack),
      create_test(is_made_current_over_the_graphs_own),
      create_test(takes_options_one_by_one),
      create_test(takes_objects_themselves),
      create_test(refuses_wrong_objects),
      create_test(takes_percentages_of_what_is_free_now),
      create_test(takes_resources_that_options_name),
      create_test(reads_an_option_of_another_resources_name_as_that_resource_only_if_it_is_given),
      create_test(numbers_those_of_one_type),
      create_test(numbers_on_from_the_highest_number_that_is_held),
      create_test(numbers_below_the_largest_number),
      create_test(numbers_each_name_by_itself),
      create_test(is_made_and_found_as_fast_among_thousands),
      create_test(refuses_a_given_name_that_is_taken),
      create_test(says_where_the_error_is),
      create_test(refuses_wrong_upstreams),
      create_test(refuses_a_wrong_recipe),
      create_test(refuses_an_ambiguous_name),
      create_test(is_at_most_so_deep),
      create_test(trims_all_below_once_from_the_top_down),
      create_test(hears_of_streams_of_its_device),
      create_test(needs_hipmm_to_be_there),
      create_test(needs_hipmm_or_what_it_depends_on),
      create_test(outlives_finalisation),
      create_test(is_refused_in_the_child_of_a_fork),
      create_test(a_callback_from_within_the_building_is_refused),
      create_test(loses_nothing_whatever_hip_call_fails),
      create_test(is_made_by_many_threads),
  };
  return cmocka_run_group_tests_name("create", tests, NULL, NULL);
}
