/* SPDX-License-Identifier: MIT */
/* Whether the check notices it when the pool does not wait: a random program on several streams, under the stepped
 * scheduler, must find what it wrote in each of its blocks. Each row runs over the pool as it is, and then with
 * something broken: the pool without stream_wait() (unordered/pool.c), or a runtime of which one function does
 * nothing. */
#include "../../support/fixture.h"
#include "../../support/random.h"
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, MOST_LIVE = 6, STEPS = 300, SEEDS = 4, SEEDS_OF_A_MISTAKE = 100, KIB = 1024, MISTAKES_FOUND = 3 };

/* ---- The program ---- */

struct look {
  const unsigned char *ptr;
  size_t bytes;
  unsigned char tag;
};

struct live_blocks {
  void *ptr;
  size_t bytes;
  unsigned stream;
};

struct program {
  uint64_t random;
  hipmm_stream_t streams[STREAMS];
  struct live_blocks live[MOST_LIVE];
  unsigned n_live;
  unsigned char tag;
};

/* Blocks that had changed, and calls that failed because memory was gone. Work runs in this thread alone. */
static unsigned wrong;

static void look_at(void *argument)
{
  struct look *look = argument;
  if (!holds_pattern(look->ptr, look->bytes, look->tag)) wrong++;
  free(look);
}

static void use(struct program *program, const struct live_blocks *live)
{
  struct look *look = malloc(sizeof *look);
  hipmm_stream_t stream = program->streams[live->stream];
  *look = (struct look){live->ptr, live->bytes, ++program->tag};
  bool failed = fixture_hip()->MemsetAsync(live->ptr, look->tag, live->bytes, stream) != 0;
  if (failed || fixture_hip()->LaunchHostFunc(stream, look_at, look)) {
    wrong++;
    free(look);
  }
}

static void allocate_one(struct program *program)
{
  struct live_blocks live = {
      .bytes = (size_t)(1 + random_below(&program->random, random_below(&program->random, 3) ? 512 : 5000)) * KIB,
      .stream = (unsigned)random_below(&program->random, STREAMS)};
  if (hipmm_allocate(NULL, live.bytes, program->streams[live.stream], &live.ptr)) return; /* there is little */
  use(program, &live);
  program->live[program->n_live++] = live;
}

static void free_one(struct program *program)
{
  unsigned which = (unsigned)random_below(&program->random, program->n_live);
  struct live_blocks live = program->live[which];
  program->live[which] = program->live[--program->n_live];
  if (hipmm_deallocate(NULL, live.ptr, live.bytes, program->streams[live.stream])) wrong++;
}

/* Blocks in use stay where they are: the stream lives on. */
static void retire_one(struct program *program)
{
  hipmm_stream_retire(0, program->streams[random_below(&program->random, STREAMS)]);
}

/* ---- What is broken ---- */

static int do_nothing(void)
{
  return 0;
}

static int do_nothing_for_a_stream(hipmm_stream_t stream)
{
  (void)stream;
  return 0;
}

static int do_nothing_for_an_event(hipmm_hip_event_t event)
{
  (void)event;
  return 0;
}

static void break_runtime(struct hipmm_hip *table, const char *name)
{
  if (!strcmp(name, "hipDeviceSynchronize")) table->DeviceSynchronize = do_nothing;
  if (!strcmp(name, "hipStreamSynchronize")) table->StreamSynchronize = do_nothing_for_a_stream;
  if (!strcmp(name, "hipEventSynchronize")) table->EventSynchronize = do_nothing_for_an_event;
  if (!strcmp(name, "hipEventQuery")) table->EventQuery = do_nothing_for_an_event;
}

/* Of the runtime, a function that then does nothing while the program runs; of the pool, stream_wait(). */
struct order_case {
  const char *name, *growth, *record;
  bool retains;
  const char *broken;
  bool one_address; /* the runtime is one where memory knows one address only */
  bool has_heaps;   /* every thread has a heap of its own, and most blocks are for it */
};

static const char pool_wait[] = "stream_wait";

static const struct order_case cases[] = {
    {"does not have streams wait: mapped, lazy", "mapped", "lazy", true, pool_wait, false, false},
    {"does not have streams wait: segments, lazy", "segments", "lazy", true, pool_wait, false, false},
    {"does not have streams wait: mapped, on_free", "mapped", "on_free", true, pool_wait, false, false},
    {"does not have streams wait: segments, auto", "segments", "auto", true, pool_wait, false, false},
    {"does not wait for the device: mapped", "mapped", "auto", false, "hipDeviceSynchronize", false, false},
    {"does not wait for the device: segments", "segments", "auto", false, "hipDeviceSynchronize", false, false},
    {"does not wait for a stream that is retired", "segments", "auto", false, "hipStreamSynchronize", false, false},
    {"moves memory from under work", "mapped", "lazy", true, "hipEventSynchronize", true, false},
    {"unmaps memory from under work", "mapped", "lazy", true, "hipDeviceSynchronize", false, false},
    {"takes unfinished work for done: lazy", "mapped", "lazy", true, "hipEventQuery", false, false},
    {"takes unfinished work for done: on_free", "segments", "on_free", true, "hipEventQuery", false, false},
    {"does not have streams wait: heaps of threads", "mapped", "lazy", true, pool_wait, false, true},
    {"does not wait for the device: heaps of threads", "segments", "auto", false, "hipDeviceSynchronize", false, true},
    {"takes unfinished work for done: heaps of threads", "mapped", "lazy", true, "hipEventQuery", false, true},
};

static void run_program(const struct order_case *row, uint64_t seed)
{
  char graph[300], runtime[100];
  struct program program = {.random = seed};
  snprintf(runtime, sizeof runtime, "'scheduler': 'stepped', 'seed': %llu", (unsigned long long)seed);
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'pool', 'growth': '%s', 'record': '%s', 'maximum_size': '8MiB'}, 'device']", row->growth,
           row->record);
  if (fixture_try(runtime, graph)) wrong++;
  for (unsigned i = 1; i < STREAMS; i++) {
    fixture_hip()->StreamCreateWithFlags(&program.streams[i], HIPMM_HIP_STREAM_NON_BLOCKING);
    if (row->retains && hipmm_stream_retain(0, program.streams[i])) wrong++;
  }
  for (unsigned i = 0; i < STEPS && !wrong; i++) {
    if (!row->retains && !random_below(&program.random, 40))
      retire_one(&program);
    else if (program.n_live == MOST_LIVE || (program.n_live && random_below(&program.random, 2)))
      free_one(&program);
    else
      allocate_one(&program);
  }
}

/* What came of it: mistakes, and faults. */
static unsigned finish_program(void)
{
  if (!wrong && fixture_hip()->DeviceSynchronize()) wrong++;
  if (faults_on_all_devices()) wrong++;
  if (!wrong) hipmm_finalize();
  return wrong;
}

/* How much the check finds, over several seeds. */
static unsigned find_mistakes(const struct order_case *row)
{
  unsigned found = 0;
  uint64_t seeds = strcmp(row->broken, "nothing") ? SEEDS_OF_A_MISTAKE : SEEDS;
  for (uint64_t seed = 1; seed <= seeds && !found; seed++) {
    if (fixture_try("", "'stack': ['device']") || hipmm_finalize()) return 1; /* loads the runtime */
    struct hipmm_hip *table = fixture_lend_hip();
    break_runtime(table, row->broken);
    if (row->one_address) table->runtime = "another";
    run_program(row, seed);
    fixture_take_hip_back();
    found = finish_program();
  }
  return found;
}

/* In a process of its own, which loads its own plugins and may well not survive. */
static bool notices(const struct order_case *row, const char *broken)
{
  char number[20], *path;
  const char *top = getenv("top_builddir"), *ours = getenv("HIPMM_PLUGIN_PATH");
  snprintf(number, sizeof number, "%zu", (size_t)(row - cases));
  const char *folder = broken == pool_wait ? (row->has_heaps ? "tests/unit/pool/unordered/heaps/.libs"
                                                             : "tests/unit/pool/unordered/.libs")
                       : row->has_heaps    ? "tests/unit/pool/eager/.libs"
                                           : "plugins";
  if (asprintf(&path, "HIPMM_PLUGIN_PATH=%s/%s:%s", top ? top : ".", folder, ours ? ours : "") < 0) return false;
  const char *const arguments[] = {"--run", number, broken, NULL}, *const environment[] = {path, NULL};
  struct outcome outcome = run_again(arguments, environment);
  free(path);
  return outcome.status == MISTAKES_FOUND || strstr(outcome.error, "fault: ");
}

static void notices_a_pool_that(void **state)
{
  const struct order_case *row = *state;
  /* There the linker does not put the mistake in the place of all calls of the function. */
  if (row->broken == pool_wait && getenv("HIPMM_TEST_LTO")) skip();
  assert_false(notices(row, "nothing"));
  assert_true(notices(row, row->broken));
}

int main(int argc, char **argv)
{
  struct CMUnitTest tests[16];
  size_t n = sizeof cases / sizeof *cases;
  if (argc == 4 && !strcmp(argv[1], "--run")) {
    struct order_case row = cases[atoi(argv[2]) % (int)n];
    row.broken = argv[3];
    return find_mistakes(&row) ? MISTAKES_FOUND : 0;
  }
  for (size_t i = 0; i < n; i++)
    tests[i] = (struct CMUnitTest){
        .name = cases[i].name, .test_func = notices_a_pool_that, .initial_state = (void *)(uintptr_t)&cases[i]};
  return _cmocka_run_group_tests("notices a pool that", tests, n, NULL, NULL);
}
