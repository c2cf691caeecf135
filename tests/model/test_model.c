/* SPDX-License-Identifier: MIT */
/* Random work over stacks of every allocating type, under both schedulers, in one thread and in many; see model.h.
 * HIPMM_TEST_SEED repeats a run with the seed that a failure named; HIPMM_TEST_RUNS makes more of them or fewer. */
#include "../../tools/command/plugin/model.h"
#include "../support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENTS   "\"growth\": \"segments\""
#define MAPPED     "\"growth\": \"mapped\""
#define EXPORTABLE MAPPED ", \"exportable\": true"
#define LEGACY     "\"ipc\": \"legacy\""
#define SMALL      "\"maximum_size\": \"5MiB\""
#define AUTO       "\"record\": \"auto\""
#define LAZY       "\"record\": \"lazy\""
#define ON_FREE    "\"record\": \"on_free\""

#define POOL(growth, record)       "[{\"type\": \"pool\", " growth ", " record "}, \"device\"]"
#define SMALL_POOL(growth, record) "[{\"type\": \"pool\", " growth ", " record ", " SMALL "}, \"device\"]"
#define REGION                     .region_bytes = 5 * MIB, .may_fail = true
#define REGION_STACK(record)       "[{\"type\": \"fixed_buffer\", \"region\": \"region\", \"record\": \"" record "\"}]"
#define BINS                                                                                                  \
  "[{\"type\": \"binning\", \"bins\": [{\"size\": \"1KiB\"}, {\"size\": \"4KiB\"}, {\"size\": \"64KiB\"}]}, " \
  "{\"type\": \"pool\"}, \"device\"]"

#define ARENA(record)       "[{\"type\": \"arena\", " record "}, \"device\"]"
#define SMALL_ARENA(record) "[{\"type\": \"arena\", " record ", " SMALL "}, \"device\"]"

/* One thread and many, streams run in threads and step by step. */
#define ONE_STEPPED  .scheduler = "stepped", .threads = 1, .streams = 8, .operations = 1500
#define MANY_STEPPED .scheduler = "stepped", .threads = 8, .streams = 8, .operations = 200
#define ONE_THREADS  .scheduler = "threads", .threads = 1, .streams = 4, .operations = 600
#define MANY_THREADS .scheduler = "threads", .threads = 8, .streams = 8, .operations = 150
#define ANY_SIZE     .most_bytes = 4 * MIB

static const struct model models[] = {
    {"pool, mapped, auto: stepped", POOL(MAPPED, AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"pool, mapped, lazy: stepped", POOL(MAPPED, LAZY), ONE_STEPPED, ANY_SIZE, .aligns = true, .retires = true},
    {"pool, mapped, on_free: stepped", POOL(MAPPED, ON_FREE), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"pool, segments, auto: stepped", POOL(SEGMENTS, AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"pool, segments, lazy: stepped", POOL(SEGMENTS, LAZY), ONE_STEPPED, ANY_SIZE, .aligns = true, .retires = true},
    {"pool, segments, on_free: stepped", POOL(SEGMENTS, ON_FREE), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"pool, streams that last: stepped", POOL(MAPPED, AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true, .no_streams = true},
    {"small pool, mapped, auto: stepped", SMALL_POOL(MAPPED, AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true,
     .may_fail = true},
    {"small pool, mapped, lazy: stepped", SMALL_POOL(MAPPED, LAZY), ONE_STEPPED, ANY_SIZE, .may_fail = true,
     .retires = true},
    {"small pool, segments, auto: stepped", SMALL_POOL(SEGMENTS, AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true,
     .may_fail = true},
    {"small pool, segments, on_free: stepped", SMALL_POOL(SEGMENTS, ON_FREE), ONE_STEPPED, ANY_SIZE, .may_fail = true},
    {"pool, exportable, auto: stepped", POOL(EXPORTABLE, AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"pool, exportable, lazy: stepped", POOL(EXPORTABLE, LAZY), ONE_STEPPED, ANY_SIZE, .aligns = true, .retires = true},
    {"pool, exportable, on_free: 8 threads", POOL(EXPORTABLE, ON_FREE), MANY_THREADS, ANY_SIZE, .aligns = true},
    {"small pool, exportable, auto: 8 threads, stepped", SMALL_POOL(EXPORTABLE, AUTO), MANY_STEPPED, ANY_SIZE,
     .aligns = true, .may_fail = true},
    {"small pool, exportable, lazy: stepped", SMALL_POOL(EXPORTABLE, LAZY), ONE_STEPPED, ANY_SIZE, .may_fail = true,
     .retires = true},
    {"pool, for drivers' handles, lazy: stepped", POOL(LEGACY, LAZY), ONE_STEPPED, ANY_SIZE, .aligns = true,
     .retires = true},
    {"pool, mapped, auto: 8 threads, stepped", POOL(MAPPED, AUTO), MANY_STEPPED, ANY_SIZE, .aligns = true},
    {"pool, mapped, lazy: 8 threads, stepped", POOL(MAPPED, LAZY), MANY_STEPPED, ANY_SIZE, .retires = true},
    {"pool, segments, auto: 8 threads, stepped", POOL(SEGMENTS, AUTO), MANY_STEPPED, ANY_SIZE, .aligns = true},
    {"small pool, mapped, auto: 8 threads, stepped", SMALL_POOL(MAPPED, AUTO), MANY_STEPPED, ANY_SIZE,
     .may_fail = true},
    {"small pool, segments, on_free: 8 threads, stepped", SMALL_POOL(SEGMENTS, ON_FREE), MANY_STEPPED, ANY_SIZE,
     .may_fail = true},
    {"pool, mapped, auto: threads", POOL(MAPPED, AUTO), ONE_THREADS, ANY_SIZE, .aligns = true},
    {"pool, segments, lazy: threads", POOL(SEGMENTS, LAZY), ONE_THREADS, ANY_SIZE, .retires = true},
    {"pool, mapped, auto: 8 threads", POOL(MAPPED, AUTO), MANY_THREADS, ANY_SIZE, .aligns = true},
    {"pool, mapped, on_free: 8 threads", POOL(MAPPED, ON_FREE), MANY_THREADS, ANY_SIZE},
    {"small pool, mapped, auto: 8 threads", SMALL_POOL(MAPPED, AUTO), MANY_THREADS, ANY_SIZE, .may_fail = true},
    {"pool on a pool: stepped", "[{\"type\": \"pool\"}, {\"type\": \"pool\"}, \"device\"]", ONE_STEPPED, ANY_SIZE,
     .aligns = true},
    {"fixed_size: stepped", "[\"fixed_size\", \"device\"]", ONE_STEPPED, .most_bytes = 100000},
    {"fixed_size on a pool: stepped", "[{\"type\": \"fixed_size\", \"block_size\": \"8KiB\"}, \"pool\", \"device\"]",
     ONE_STEPPED, .most_bytes = 8192},
    {"fixed_size: 8 threads, stepped", "[{\"type\": \"fixed_size\", \"block_size\": 3000}, \"device\"]", MANY_STEPPED,
     .most_bytes = 3000},
    {"fixed_size: 8 threads", "[{\"type\": \"fixed_size\", \"block_size\": 3000}, \"device\"]", MANY_THREADS,
     .most_bytes = 3000},
    {"binning: stepped", BINS, ONE_STEPPED, ANY_SIZE},
    {"binning: 8 threads, stepped", BINS, MANY_STEPPED, ANY_SIZE},
    {"binning: 8 threads", BINS, MANY_THREADS, ANY_SIZE},
    {"arena, auto: stepped", ARENA(AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"arena, lazy: stepped", ARENA(LAZY), ONE_STEPPED, ANY_SIZE, .aligns = true, .retires = true},
    {"arena, on_free: stepped", ARENA(ON_FREE), ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"arena, streams that last: stepped", ARENA(AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true, .no_streams = true},
    {"arena, small blocks: stepped", ARENA(LAZY), ONE_STEPPED, .most_bytes = 100000, .retires = true},
    {"small arena, auto: stepped", SMALL_ARENA(AUTO), ONE_STEPPED, ANY_SIZE, .aligns = true, .may_fail = true},
    {"small arena, lazy: stepped", SMALL_ARENA(LAZY), ONE_STEPPED, ANY_SIZE, .may_fail = true, .retires = true},
    {"small arena, on_free: stepped", SMALL_ARENA(ON_FREE), ONE_STEPPED, ANY_SIZE, .may_fail = true},
    {"arena, auto: 8 threads, stepped", ARENA(AUTO), MANY_STEPPED, ANY_SIZE, .aligns = true},
    {"arena, lazy: 8 threads, stepped", ARENA(LAZY), MANY_STEPPED, ANY_SIZE, .retires = true},
    {"small arena, lazy: 8 threads, stepped", SMALL_ARENA(LAZY), MANY_STEPPED, ANY_SIZE, .may_fail = true,
     .retires = true},
    {"arena, lazy: 8 threads", ARENA(LAZY), MANY_THREADS, ANY_SIZE, .retires = true},
    {"small arena, auto: 8 threads", SMALL_ARENA(AUTO), MANY_THREADS, ANY_SIZE, .may_fail = true},
    {"small arena, on_free: 8 threads", SMALL_ARENA(ON_FREE), MANY_THREADS, ANY_SIZE, .may_fail = true},
    {"monotonic: stepped", "[\"monotonic\", \"device\"]", ONE_STEPPED, .most_bytes = 65536, .aligns = true},
    {"monotonic: 8 threads, stepped", "[\"monotonic\", \"device\"]", MANY_STEPPED, .most_bytes = 65536},
    {"monotonic on a pool: 8 threads", "[\"monotonic\", \"pool\", \"device\"]", MANY_THREADS, .most_bytes = 65536},
    {"async: stepped", "[\"async\"]", ONE_STEPPED, ANY_SIZE},
    {"async: 8 threads, stepped", "[\"async\"]", MANY_STEPPED, ANY_SIZE},
    {"async: 8 threads", "[\"async\"]", MANY_THREADS, ANY_SIZE},
    {"async, released at once: stepped", "[{\"type\": \"async\", \"release_threshold\": 0}]", ONE_STEPPED, ANY_SIZE},
    {"async_view: stepped", "[\"async_view\"]", ONE_STEPPED, ANY_SIZE},
    {"async_view: 8 threads", "[\"async_view\"]", MANY_THREADS, ANY_SIZE},
    {"async_managed: stepped", "[\"async_managed\"]", ONE_STEPPED, ANY_SIZE},
    {"async_managed: 8 threads", "[\"async_managed\"]", MANY_THREADS, ANY_SIZE},
    {"async_pinned: stepped", "[\"async_pinned\"]", ONE_STEPPED, ANY_SIZE},
    {"async_pinned: 8 threads", "[\"async_pinned\"]", MANY_THREADS, ANY_SIZE},
    {"callback: stepped", "[{\"type\": \"callback\", \"allocator\": \"program\"}]", ONE_STEPPED, ANY_SIZE},
    {"callback: 8 threads", "[{\"type\": \"callback\", \"allocator\": \"program\"}]", MANY_THREADS, ANY_SIZE},
    {"fixed_buffer: stepped", REGION_STACK("auto"), ONE_STEPPED, ANY_SIZE, REGION, .aligns = true},
    {"fixed_buffer, on_free: stepped", REGION_STACK("on_free"), ONE_STEPPED, ANY_SIZE, REGION},
    {"fixed_buffer, lazy: stepped", REGION_STACK("lazy"), ONE_STEPPED, ANY_SIZE, REGION, .retires = true},
    {"fixed_buffer: 8 threads, stepped", REGION_STACK("auto"), MANY_STEPPED, ANY_SIZE, REGION},
    {"fixed_buffer: 8 threads", REGION_STACK("auto"), MANY_THREADS, ANY_SIZE, REGION},
    {"device: stepped", "[\"device\"]", ONE_STEPPED, ANY_SIZE},
    {"device: 8 threads", "[\"device\"]", MANY_THREADS, ANY_SIZE},
    {"managed under a pool: stepped", "[\"pool\", \"managed\"]", ONE_STEPPED, ANY_SIZE},
    {"adaptors over a pool: stepped",
     "[\"statistics\", {\"type\": \"limiting\", \"limit\": \"64MiB\"}, \"thread_safe\", \"pool\", \"device\"]",
     ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"aligned on a device: stepped", "[\"aligned\", \"device\"]", ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"aligned on a pool: 8 threads", "[{\"type\": \"aligned\", \"alignment\": 4096}, \"pool\", \"device\"]",
     MANY_THREADS, ANY_SIZE, .aligns = true},
    {"tracking: stepped", "[{\"type\": \"tracking\", \"stacks\": \"all\", \"stack_sample\": 0}, \"pool\", \"device\"]",
     ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"tracking: 8 threads",
     "[{\"type\": \"tracking\", \"stacks\": \"all\", \"stack_sample\": 0}, \"pool\", \"device\"]", MANY_THREADS,
     ANY_SIZE, .aligns = true},
    {"guard on a pool: stepped", "[\"guard\", \"pool\", \"device\"]", ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"guard on a small pool: stepped", "[\"guard\", {\"type\": \"pool\", " SMALL "}, \"device\"]", ONE_STEPPED,
     ANY_SIZE, .may_fail = true},
    {"guard on a device: 8 threads", "[{\"type\": \"guard\", \"quarantine_size\": 100000}, \"device\"]", MANY_THREADS,
     ANY_SIZE},
    {"guard on a pool: 8 threads, stepped", "[{\"type\": \"guard\", \"quarantine_size\": 0}, \"pool\", \"device\"]",
     MANY_STEPPED, ANY_SIZE, .aligns = true},
    {"guard under a pool: stepped", "[\"pool\", \"guard\", \"device\"]", ONE_STEPPED, ANY_SIZE, .aligns = true},
    {"fault: stepped", "[{\"type\": \"fault\", \"probability\": 0.1}, \"pool\", \"device\"]", ONE_STEPPED, ANY_SIZE,
     .aligns = true, .may_fail = true},
    {"fault: 8 threads", "[{\"type\": \"fault\", \"every\": 5, \"above\": \"1MiB\"}, \"pool\", \"device\"]",
     MANY_THREADS, ANY_SIZE, .aligns = true, .may_fail = true},
    {"without a mistake: stepped", "[\"no_wait_plugin\", \"device\"]", ONE_STEPPED, .most_bytes = 65536},
    {"without a mistake: 8 threads", "[\"no_wait_plugin\", \"device\"]", MANY_THREADS, .most_bytes = 65536},
};

static void agrees_with_the_model(void **state)
{
  const struct model *model = *state;
  uint64_t given = number_from_environment("HIPMM_TEST_SEED", 0);
  uint64_t last = given ? given : number_from_environment("HIPMM_TEST_RUNS", 2);
  for (uint64_t seed = given ? given : 1; seed <= last; seed++) {
    struct model_result result = model_run(model, seed);
    if (result.failure[0]) fail_msg("HIPMM_TEST_SEED=%llu: %s", (unsigned long long)seed, result.failure);
    assert_in_range(result.allocations, 100, UINT64_MAX);
    if (model->may_fail) assert_in_range(result.refusals, 1, UINT64_MAX);
  }
}

/* ---- The test itself ---- */

struct mistake_case {
  const char *name, *mistake, *failure;
  bool stepped; /* it shows only where work on streams is sure to be late */
};

static const struct mistake_case mistakes[] = {
    {"notices memory that is reused without regard to streams", "order", "lost its pattern", .stepped = true},
    {"notices blocks that overlap", "overlap", "overlap", .stepped = false},
    {"notices a lost alignment", "alignment", "is not aligned to 256", .stepped = false},
};

static void notices(void **state)
{
  const struct mistake_case *row = *state;
  char stack[100];
  if (row->stepped) needs_software();
  snprintf(stack, sizeof stack, "[{\"type\": \"no_wait_plugin\", \"mistake\": \"%s\"}, \"device\"]", row->mistake);
  const struct model model = {row->name, stack, ONE_STEPPED, .most_bytes = 65536};
  for (uint64_t seed = 1; seed <= 3; seed++) assert_contains(model_run(&model, seed).failure, row->failure);
}

int main(void)
{
  use_test_plugins();
  log_to_file("error");
  struct CMUnitTest tests[sizeof models / sizeof *models + sizeof mistakes / sizeof *mistakes];
  size_t n = 0;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    tests[n++] = (struct CMUnitTest){
        .name = models[i].name, .test_func = agrees_with_the_model, .initial_state = (void *)(uintptr_t)&models[i]};
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
    tests[n++] = (struct CMUnitTest){
        .name = mistakes[i].name, .test_func = notices, .initial_state = (void *)(uintptr_t)&mistakes[i]};
  return _cmocka_run_group_tests("model", tests, n, NULL, NULL);
}
