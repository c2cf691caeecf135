/* SPDX-License-Identifier: MIT */
/* sub_allocators.c: see sub_allocators.h. */
#include "sub_allocators.h"

#include <stdatomic.h>
#include <stdio.h>

enum { MOST_TESTS = 200, MOST_NAME = 120, POOL = DIVIDES | REUSES | HAS_FREE | HAS_WAITS | WHOLE };

static const struct sub_allocator rows[] = {
    {"pool, mapped", "pool", "", POOL, .usual = ", 'growth': 'mapped'", .unit_bytes = 256, .kept_bytes = MIB,
     .full = ", 'growth': 'mapped', 'maximum_size': '4MiB'", .full_bytes = 4 * MIB, .many = ", 'growth': 'mapped'",
     .many_bytes = 50000, .random = ", 'growth': 'mapped', 'maximum_size': '12MiB'", .random_bytes = 400 * KIB,
     .most_live = 60, .begins = ", 'growth': 'mapped', 'initial_size': '4MiB', 'maximum_size': '8MiB'",
     .begins_with_much = ", 'growth': 'mapped', 'initial_size': '300MiB'", .refused = "initial_size"},
    {"pool, segments", "pool", "", POOL | GROWS, .usual = ", 'growth': 'segments'", .unit_bytes = 256,
     .kept_bytes = 16 * MIB, .full = ", 'growth': 'segments', 'maximum_size': '4MiB'", .full_bytes = 4 * MIB,
     .many = ", 'growth': 'segments'", .many_bytes = 50000, .random = ", 'growth': 'segments'", .random_bytes = 8 * KIB,
     .most_live = 60, .begins = ", 'growth': 'segments', 'initial_size': '4MiB', 'maximum_size': '8MiB'",
     .begins_with_much = ", 'growth': 'segments', 'initial_size': '300MiB'", .refused = "initial_size"},
    {"arena", "arena", "", DIVIDES | REUSES | HAS_FREE | HAS_WAITS | FORGETS | GROWS | WHOLE, .usual = "",
     .unit_bytes = 256, .kept_bytes = 4 * MIB, .full = ", 'maximum_size': '4MiB'", .full_bytes = 4 * MIB, .many = "",
     .many_bytes = 50000, .random = ", 'maximum_size': '6MiB'", .random_bytes = 2 * MIB, .most_live = 120,
     .begins = ", 'arena_size': '4MiB', 'maximum_size': '8MiB'", .begins_with_much = ", 'arena_size': '1GiB'",
     .refused = "arena_size"},
    {"arena of a stream", "arena", "", DIVIDES | REUSES | HAS_FREE | HAS_WAITS | FORGETS | GROWS,
     .usual = ", 'arena_size': '1MiB'", .unit_bytes = 256, .kept_bytes = 4 * MIB, .full = ", 'maximum_size': '1MiB'",
     .full_bytes = MIB, .many = ", 'arena_size': '1MiB'", .many_bytes = 700, .random = "", .random_bytes = 200000,
     .most_live = 120, .begins = ", 'arena_size': '1MiB', 'maximum_size': '8MiB'",
     .begins_with_much = ", 'arena_size': '300MiB'", .refused = "arena_size"},
    {"fixed_size", "fixed_size", "", REUSES | HAS_WAITS | FORGETS | GROWS | SCALES | WHOLE,
     .usual = ", 'block_size': '1MiB', 'blocks_per_chunk': 2", .unit_bytes = MIB, .kept_bytes = MIB,
     .full = ", 'block_size': '4MiB', 'blocks_per_chunk': 1", .full_bytes = 4 * MIB, .many = ", 'block_size': 512",
     .many_bytes = 500, .random = ", 'block_size': '4KiB', 'blocks_per_chunk': 7", .random_bytes = 4096,
     .most_live = 60, .begins = ", 'block_size': '1MiB', 'blocks_to_preallocate': 2, 'blocks_per_chunk': 1",
     .begins_with_much = ", 'block_size': '1MiB', 'blocks_to_preallocate': 400", .refused = "blocks_to_preallocate"},
    {"binning", "binning", "bins_", REUSES | FORGETS | GROWS | SCALES | WHOLE,
     .usual = ", 'bins': [{'size': '1MiB'}], 'blocks_per_chunk': 2", .unit_bytes = MIB, .kept_bytes = MIB,
     .full = ", 'bins': [{'size': '4MiB'}], 'blocks_per_chunk': 1", .full_bytes = 4 * MIB,
     .many = ", 'bins': [{'size': 512}]", .many_bytes = 500,
     .random = ", 'blocks_per_chunk': 5, 'bins': [{'size': 1024}, {'size': '16KiB'}, {'size': '64KiB'}]",
     .random_bytes = 100000, .most_live = 100,
     .begins = ", 'bins': [{'size': 1024}, {'size': '64KiB'}, {'size': '1MiB'}], 'blocks_to_preallocate': 2",
     .begins_with_much = ", 'bins': [{'size': '64MiB'}], 'blocks_to_preallocate': 5",
     .refused = "blocks_to_preallocate"},
    {"monotonic", "monotonic", "", DIVIDES | HAS_WAITS | FORGETS | GROWS | SCALES | WHOLE, .usual = "",
     .unit_bytes = 256, .kept_bytes = 256 * MIB, /* while anything is live */
     .full = ", 'maximum_size': '4MiB'", .full_bytes = 4 * MIB, .many = "", .many_bytes = 50000,
     .random = ", 'chunk_size': '64KiB'", .random_bytes = 3 * MIB, .most_live = 3, .begins = ", 'initial_size': '1MiB'",
     .begins_with_much = ", 'initial_size': '1GiB'", .refused = "initial_size"},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static const char *const records[RECORDS] = {"auto", "lazy", "on_free"};

/* ---- Stacks ---- */

static atomic_uint wrong; /* looks that found something else */

void begin_over(const char *runtime, const struct sub_allocator *row, const char *options, int record,
                const char *upstream)
{
  char graph[400];
  atomic_store(&wrong, 0);
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s', 'record': '%s'%s}, %s]", row->type, records[record], options,
           upstream);
  fixture_start_with(runtime, graph);
}

void begin(const char *runtime, const struct sub_allocator *row, const char *options, int record)
{
  begin_over(runtime, row, options, record, "'device'");
}

void finish(void)
{
  assert_ok(hipmm_finalize());
  assert_int_equal(live_on_all_devices(), 0);
  software()->reset();
}

struct hipmm_resource *resource_of(const struct sub_allocator *row)
{
  return fixture_resource(row->type);
}

int64_t value_of(const struct sub_allocator *row, const char *value)
{
  char name[60];
  snprintf(name, sizeof name, "%s%s", row->prefix, value);
  return fixture_value(row->type, name);
}

void trim(const struct sub_allocator *row, size_t keep_bytes)
{
  assert_ok(hipmm_resource_trim(resource_of(row), keep_bytes));
}

/* ---- Work ---- */

void use(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  static unsigned char last;
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, ++last, bytes, stream), 0);
  assert_int_equal(fixture_look(ptr, last, bytes, stream, &wrong), 0);
}

void *use_and_free(size_t bytes, hipmm_stream_t stream)
{
  void *ptr = fixture_allocate(bytes, stream);
  use(ptr, bytes, stream);
  fixture_free(ptr, bytes, stream);
  return ptr;
}

void assert_undisturbed(void)
{
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_int_equal(atomic_exchange(&wrong, 0), 0);
  assert_int_equal(faults_on_all_devices(), 0);
}

/* ---- Cases ---- */

struct run {
  const struct sub_allocator_case *test;
  const struct sub_allocator *row;
};

static void run_over_row(void **state)
{
  const struct run *run = *state;
  run->test->run(run->row);
}

int sub_allocators_run(const char *group, const struct sub_allocator_case *cases, size_t n_cases,
                       CMFixtureFunction setup, CMFixtureFunction teardown)
{
  static char names[MOST_TESTS][MOST_NAME];
  static struct run runs[MOST_TESTS];
  static struct CMUnitTest tests[MOST_TESTS];
  size_t n = 0;
  for (const struct sub_allocator_case *test = cases; test < cases + n_cases; test++)
    for (const struct sub_allocator *row = rows; row < rows + N_ROWS; row++) {
      if ((row->can & test->needs) != test->needs) continue;
      if (n == MOST_TESTS) return 1;
      runs[n] = (struct run){test, row};
      snprintf(names[n], MOST_NAME, "%s: %s", row->name, test->name);
      tests[n] = (struct CMUnitTest){names[n], run_over_row, setup, teardown, &runs[n]};
      n++;
    }
  return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}
