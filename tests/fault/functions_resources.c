/* SPDX-License-Identifier: MIT */
/* functions_resources.c: scenarios of initialisation, blocks, resources and inspection; see functions.h. */
#include "../../core/runtime/hip.h"
#include "functions.h"

#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/reserve.h>
#include <hipmm/span.h>
#include <hipmm/spill.h>
#include <string.h>

/* ---- Initialisation ---- */

static void initialise(const void *argument)
{
  (void)argument;
  SWEEP(hipmm_init_from_string, graph);
  expect(SWEEP_PLAIN(hipmm_is_initialized) == 1, "hipmm is not initialised");
  SWEEP(hipmm_init_if_needed);
  SWEEP(hipmm_finalize);
  SWEEP(hipmm_finalize);
  SWEEP(hipmm_init_from_file, graph_file);
  SWEEP(hipmm_finalize);
  SWEEP(hipmm_init);
  SWEEP_OUT(resource, hipmm_resource_get_for_device, 1);
  hipmm_resource_release(resource);
  SWEEP(hipmm_finalize);
}

static void build_beside(const void *argument)
{
  struct hipmm_resource *first = NULL, *second = NULL, *inner = NULL;
  void *block = NULL;
  (void)argument;
  SWEEP_OUT(first, hipmm_stack_build_from_string, 0, "mine", graph);
  SWEEP_OUT(second, hipmm_stack_build_from_file, 1, NULL, graph_file);
  SWEEP_OUT(inner, hipmm_stack_get_by_name, first, "pool");
  SWEEP_OUT(block, hipmm_allocate, first, BYTES, NULL);
  SWEEP(hipmm_deallocate, first, block, BYTES, NULL);
  hipmm_resource_release(inner);
  hipmm_resource_release(first);
  hipmm_resource_release(second);
}

/* ---- Blocks ---- */

static void use_blocks(const void *argument)
{
  void *block = NULL, *aligned = NULL, *zeroed = NULL, *ready = NULL, *asked = NULL, *batch[3] = {NULL, NULL, NULL};
  const size_t sizes[] = {100, 5000, 700000};
  struct hipmm_request request = {
      .struct_size = sizeof request, .bytes = 300, .alignment = 512, .flags = HIPMM_ALLOCATE_ZEROED};
  (void)argument;
  SWEEP_OUT(block, hipmm_allocate, NULL, 1 << 20, stream);
  SWEEP_OUT(aligned, hipmm_allocate_aligned, NULL, 1000, 4096, stream);
  SWEEP_OUT(zeroed, hipmm_allocate_zeroed, NULL, 4000, stream);
  SWEEP_OUT(ready, hipmm_allocate_sync, NULL, 6000);
  SWEEP_OUT(asked, hipmm_allocate_ex, &request);
  SWEEP(hipmm_allocate_batch, NULL, 3, sizes, stream, batch);
  SWEEP_OUT(block, hipmm_reallocate, NULL, block, 1 << 20, 3 << 20, stream);
  SWEEP(hipmm_deallocate_batch, NULL, 3, batch, sizes, stream);
  SWEEP(hipmm_deallocate_sync, NULL, ready, 0);
  SWEEP(hipmm_deallocate_aligned, NULL, aligned, 1000, 4096, stream);
  SWEEP(hipmm_deallocate, NULL, zeroed, 4000, stream);
  SWEEP(hipmm_deallocate, NULL, asked, 300, NULL);
  SWEEP(hipmm_deallocate, NULL, block, 3 << 20, stream);
  SWEEP(hipmm_resource_trim, NULL, 0);
  SWEEP(hipmm_device_trim, 0, 0);
  SWEEP(hipmm_trim, 0);
}

/* ---- Resources ---- */

static void release_user_data(void *data)
{
  *(int *)data += 1;
}

static void ask_resources(const void *argument)
{
  struct hipmm_resource *current = NULL, *named = NULL, *upstream = NULL;
  int64_t value = 0;
  size_t count = 0, now = 0, peak = 0;
  unsigned access = 0;
  void *data = NULL, *handle = NULL;
  int released = 0;
  (void)argument;
  SWEEP_OUT_ONLY(current, hipmm_resource_get_current);
  SWEEP_OUT(named, hipmm_resource_get_by_name, 0, "shared");
  SWEEP_OUT(value, hipmm_resource_query, current, "reserved_bytes");
  SWEEP(hipmm_device_held_bytes, 0, &now, &peak);
  SWEEP_OUT(count, hipmm_resource_upstream_count, current);
  SWEEP_OUT(upstream, hipmm_resource_upstream, current, 0);
  SWEEP_OUT(access, hipmm_resource_access, current);
  SWEEP_OUT(handle, hipmm_resource_pool_handle, named);
  SWEEP(hipmm_resource_set_user_data, current, &released, release_user_data);
  SWEEP_OUT(data, hipmm_resource_get_user_data, current);
  SWEEP(hipmm_resource_set_user_data, current, NULL, NULL);
  SWEEP(hipmm_resource_reset_peaks, current);
  expect(value >= BYTES && count == 1 && data == &released && released == 1 && now <= peak && handle && access,
         "a resource tells something wrong");
  expect(SWEEP_PLAIN(hipmm_resource_is_equal, current, resource) == 1, "a resource is not itself");
  expect(!strcmp(SWEEP_PLAIN(hipmm_resource_name, current), "main"), "a resource has another name");
  expect(!strcmp(SWEEP_PLAIN(hipmm_resource_type, current), "statistics"), "a resource has another type");
  expect(SWEEP_PLAIN(hipmm_resource_device, current) == 0, "a resource has another device");
  SWEEP_PLAIN(hipmm_resource_retain, current);
  SWEEP_PLAIN(hipmm_resource_release, current);
  hipmm_resource_release(current);
  hipmm_resource_release(named);
  hipmm_resource_release(upstream);
}

static void create_resources(const void *argument)
{
  struct hipmm_resource *source = NULL, *made = NULL, *before = NULL;
  const struct hipmm_setting settings[] = {{"maximum_size", "1GiB"}};
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                .type = "pool",
                                .name = "made",
                                .options = "{\"growth\": \"segments\"}",
                                .settings = settings,
                                .n_settings = 1,
                                .n_upstreams = 1};
  (void)argument;
  SWEEP_OUT(source, hipmm_resource_create, 0, "device", NULL, NULL, 0);
  recipe.upstreams = &source;
  SWEEP_OUT(made, hipmm_resource_create_from, 0, &recipe);
  SWEEP_OUT(before, hipmm_resource_set_current, made);
  hipmm_resource_release(before);
  SWEEP(hipmm_resource_reset_current);
  SWEEP_OUT(before, hipmm_resource_set_for_device, 0, made);
  hipmm_resource_release(before);
  SWEEP(hipmm_resource_reset_for_device, 0);
  hipmm_resource_release(made);
  hipmm_resource_release(source);
}

static void use_reservations(const void *argument)
{
  struct hipmm_resource *budget = NULL, *reservation = NULL;
  struct hipmm_reserve_request request = {.struct_size = sizeof request, .bytes = 1 << 20};
  void *block = NULL;
  int64_t held = -1;
  (void)argument;
  SWEEP_OUT(budget, hipmm_resource_get_by_name, 0, "budget");
  request.resource = budget;
  SWEEP_OUT(reservation, hipmm_reserve, &request);
  SWEEP_OUT(block, hipmm_allocate, reservation, BYTES, NULL);
  SWEEP(hipmm_reservation_resize, reservation, 2 << 20);
  SWEEP_OUT(held, hipmm_resource_query, budget, "held_bytes");
  expect(held == 2 << 20, "another size is reserved");
  SWEEP(hipmm_reservation_release, reservation);
  SWEEP(hipmm_deallocate, budget, block, BYTES, NULL);
  SWEEP_OUT(held, hipmm_resource_query, budget, "held_bytes");
  expect(!held, "something stays reserved");
  hipmm_resource_release(budget);
}

static void use_spans(const void *argument)
{
  size_t granule = 0;
  void *ptr = NULL;
  (void)argument;
  SWEEP_OUT(ptr, hipmm_span_create, NULL, 64 << 20, &granule);
  SWEEP(hipmm_span_commit, ptr, 0, 3 * granule);
  SWEEP(hipmm_span_decommit, ptr, granule, granule, NULL);
  SWEEP(hipmm_span_destroy, ptr, NULL);
}

/* Two buffers, of which the second goes to the file. */
static void use_movables(const void *argument)
{
  struct hipmm_resource *spilling = NULL;
  struct hipmm_movable *movables[2] = {NULL};
  void *ptr = NULL;
  (void)argument;
  SWEEP_OUT(spilling, hipmm_resource_get_by_name, 0, "movable");
  for (int i = 0; i < 2; i++) {
    SWEEP_OUT(movables[i], hipmm_movable_create, spilling, BYTES);
    SWEEP_OUT(ptr, hipmm_movable_pin, movables[i], NULL);
    memset(ptr, i + 1, BYTES);
    SWEEP(hipmm_movable_unpin, movables[i], NULL);
  }
  for (int round = 0; round < 2; round++) {
    SWEEP(hipmm_resource_trim, spilling, 0);
    for (int i = 0; i < 2; i++) {
      SWEEP_OUT(ptr, hipmm_movable_pin, movables[i], NULL);
      expect(hip_table()->StreamSynchronize(NULL) || holds(ptr, BYTES, (unsigned char)(i + 1)),
             "a movable buffer has other data");
      SWEEP(hipmm_movable_unpin, movables[i], NULL);
    }
  }
  for (int i = 0; i < 2; i++) SWEEP(hipmm_movable_destroy, movables[i]);
  hipmm_resource_release(spilling);
}

/* The live blocks of the test keep their data. */
static void suspend(const void *argument)
{
  (void)argument;
  SWEEP(hipmm_resource_suspend, NULL, HIPMM_CONTENT_KEEP);
  SWEEP(hipmm_resource_resume, NULL);
}

/* ---- Inspection ---- */

static void visit_resource(void *arg, struct hipmm_resource *visited)
{
  (void)visited;
  ++*(int *)arg;
}

static void visit_value(void *arg, const struct hipmm_value *value)
{
  (void)value;
  ++*(int *)arg;
}

static void visit_option(void *arg, const struct hipmm_option_state *option)
{
  (void)option;
  ++*(int *)arg;
}

static void visit_extent(void *arg, const struct hipmm_extent *extent)
{
  *(int *)arg += extent->state == HIPMM_EXTENT_LIVE;
}

static void inspect(const void *argument)
{
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  struct hipmm_resource *pool = NULL;
  int64_t value = 0;
  char *text = NULL;
  int resources = 0, values = 0, options = 0, blocks = 0;
  (void)argument;
  SWEEP_OUT(value, hipmm_query, "devices/0/pool/reserved_bytes");
  if (!SWEEP_OUT(text, hipmm_get, "devices/0/pool/maximum_size")) SWEEP_PLAIN(hipmm_string_free, text);
  SWEEP(hipmm_set, "devices/0/pool/maximum_size", "200MiB");
  SWEEP(hipmm_set, "devices/0/pool/maximum_size", "\"50%\"");
  SWEEP(hipmm_set, "devices/0/pool/maximum_size", NULL);
  if (!SWEEP_OUT(text, hipmm_list, NULL)) hipmm_string_free(text);
  if (!SWEEP_OUT_ONLY(text, hipmm_snapshot)) hipmm_string_free(text);
  if (!SWEEP_OUT(text, hipmm_resource_report, NULL)) hipmm_string_free(text);
  if (!SWEEP_OUT(pointer, hipmm_pointer_lookup, bystanders[0] + 7)) {
    expect(pointer.ptr == bystanders[0] && pointer.bytes == BYTES, "a pointer was found in another block");
    hipmm_resource_release(pointer.resource);
  }
  SWEEP(hipmm_resource_visit, -1, visit_resource, &resources);
  SWEEP_OUT(pool, hipmm_resource_get_by_name, 0, "pool");
  SWEEP(hipmm_resource_visit_values, pool, visit_value, &values);
  SWEEP(hipmm_resource_visit_options, pool, visit_option, &options);
  SWEEP(hipmm_resource_visit_blocks, pool, visit_extent, &blocks);
  expect(resources >= 4 && values > 5 && options > 3 && blocks >= BYSTANDERS, "a visit leaves something out");
  hipmm_resource_release(pool);
}

static void use_statistics(const void *argument)
{
  struct hipmm_statistics statistics = {0}, outer = {0}, inner = {0};
  (void)argument;
  SWEEP_OUT(statistics, hipmm_statistics_get, NULL);
  SWEEP_OUT(outer, hipmm_statistics_push, NULL);
  SWEEP_OUT(inner, hipmm_statistics_pop, NULL);
  SWEEP(hipmm_resource_perform, NULL, "push");
  SWEEP(hipmm_resource_perform, NULL, "pop");
  expect(statistics.current_count == BYSTANDERS && outer.current_count == BYSTANDERS && !inner.current_count,
         "the counters are wrong");
}

/* ---- Scenarios ---- */

const struct sweep_scenario resource_scenarios[] = {
    {.name = "initialisation", .run = initialise},
    {.name = "stacks beside the table", .run = build_beside},
    {.name = "blocks", .begin = begin, .run = use_blocks, .end = end},
    {.name = "resources", .begin = begin, .run = ask_resources, .end = end},
    {.name = "resources in code", .begin = begin_without_a_stack, .run = create_resources, .end = end},
    {.name = "reservations", .begin = begin, .run = use_reservations, .end = end},
    {.name = "spans", .begin = begin, .run = use_spans, .end = end},
    {.name = "movable buffers", .begin = begin, .run = use_movables, .end = end},
    {.name = "suspension", .begin = begin, .run = suspend, .end = end},
    {.name = "inspection", .begin = begin, .run = inspect, .end = end},
    {.name = "statistics", .begin = begin, .run = use_statistics, .end = end},
};

const size_t n_resource_scenarios = sizeof resource_scenarios / sizeof *resource_scenarios;
