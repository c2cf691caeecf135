/* SPDX-License-Identifier: MIT */
/* integrity.c: whether data survives while blocks are reused across streams and threads, on any runtime. Work is
 * delayed, so that streams lag behind the host, and what a stream finds in a block is copied out and looked at. That a
 * stream which gets memory was asked to wait for all that uses it is checked besides, which needs no luck (order.h). A
 * run whose runtime does not wait must be caught by both. HIPMM_RUNTIME chooses the runtime; run by `make check` over
 * the software device, by prove.py over a GPU.
 *
 *     integrity                                              every row, with its waits and without, as TAP
 *     integrity --list                                       the rows' names
 *     integrity --row N [--seconds S] [--threads N] [--break-waits]     one row; a line of JSON; 3 if data was lost, 4
 *                                                            if it was not, by luck */
#include "../../core/runtime/hip.h"
#include "integrity_work.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_LOST = 3, UNORDERED = 4 };

#define POOL(growth, record, size)                                                                                  \
  "[{\"type\": \"pool\", \"growth\": \"" growth "\", \"record\": \"" record "\", \"maximum_size\": \"" size "\"}, " \
  "\"device\"]"

static const struct row rows[] = {
    {"pool, mapped, lazy", POOL("mapped", "lazy", "48MiB"), 4 * MIB, .retains = true, .breaks = true, .moves = true},
    {"pool, segments, lazy", POOL("segments", "lazy", "48MiB"), 4 * MIB, .retains = true, .breaks = true},
    {"pool, mapped, on_free", POOL("mapped", "on_free", "48MiB"), 4 * MIB, .retains = true, .breaks = true,
     .moves = true},
    {"pool, segments, auto", POOL("segments", "auto", "48MiB"), 4 * MIB, .retains = true, .breaks = true},
    {"pool, mapped, auto, streams that come and go", POOL("mapped", "auto", "48MiB"), 4 * MIB, .renews = true},
    {"pool, segments, auto, streams that come and go", POOL("segments", "auto", "48MiB"), 4 * MIB, .renews = true},
    {"arena, lazy", "[{\"type\": \"arena\", \"record\": \"lazy\", \"maximum_size\": \"48MiB\"}, \"device\"]", 4 * MIB,
     .retains = true},
    {"arena, auto, streams that come and go", "[{\"type\": \"arena\", \"maximum_size\": \"48MiB\"}, \"device\"]",
     4 * MIB, .renews = true},
    {"monotonic", "[\"monotonic\", \"device\"]", 64 * KIB, .retains = true},
    {"fixed_size",
     "[{\"type\": \"fixed_size\", \"block_size\": \"256KiB\", \"blocks_per_chunk\": 16}, "
     "{\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]",
     256 * KIB, .retains = true, .breaks = true},
    {"binning over a pool",
     "[{\"type\": \"binning\", \"bins\": [{\"size\": \"64KiB\"}, {\"size\": \"256KiB\"}]}, \"pool\", \"device\"]",
     4 * MIB, .retains = true},
    {"async", "[\"async\"]", 4 * MIB, .hides = true},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* ---- A row ---- */

static int do_nothing_for_a_stream(hipmm_stream_t stream, hipmm_hip_event_t event, unsigned flags)
{
  (void)stream, (void)event, (void)flags;
  return 0;
}

static int do_nothing_for_an_event(hipmm_hip_event_t event)
{
  (void)event;
  return 0;
}

/* What the plugins see of the runtime; this program keeps its own copy. */
static void break_waits(void)
{
  struct hipmm_hip *table = (struct hipmm_hip *)(uintptr_t)hip_table();
  table->StreamWaitEvent = do_nothing_for_a_stream;
  table->EventSynchronize = do_nothing_for_an_event;
}

static bool start_row(const struct row *row)
{
  char *graph;
  if (asprintf(&graph, "{\"runtime\": {\"type\": \"software\"}, \"stack\": %s}", row->stack) < 0) return false;
  bool good = expect_ok("hipmm_init", hipmm_init_from_string(graph));
  free(graph);
  struct hipmm_resource *resource;
  if (!good || !expect_ok("the stack", hipmm_resource_get_current(&resource))) return false;
  hipmm_resource_release(resource);
  order_follow((struct hipmm_hip *)(uintptr_t)hip_table());
  world.hip = *hip_table();
  for (unsigned i = 1; i < STREAMS; i++) { /* the first is the device's own */
    good &=
        expect("hipStreamCreate", world.hip.StreamCreateWithFlags(&world.streams[i], HIPMM_HIP_STREAM_NON_BLOCKING));
    order_set_handle(i, world.streams[i]);
    if (row->retains) good &= expect_ok("hipmm_stream_retain", hipmm_stream_retain(0, world.streams[i]));
  }
  return good && expect("hipMalloc", world.hip.Malloc((void **)&world.scratch, STREAMS * world.scratch_bytes));
}

static int run_row(const struct row *row, bool broken)
{
  world.row = row;
  world.scratch_bytes = on_software() ? 4 * MIB : 256 * MIB; /* some 70 us each */
  pthread_rwlock_init(&world.streams_lock, NULL);
  pthread_mutex_init(&world.shared_lock, NULL);
  if (!start_row(row)) return 1;
  if (broken) break_waits();
  run_threads();
  *(struct hipmm_hip *)(uintptr_t)hip_table() = world.hip;
  expect("hipDeviceSynchronize", world.hip.DeviceSynchronize());
  printf("{\"row\": \"%s\", \"allocations\": %llu, \"refused\": %llu, \"to_another_stream\": %llu, \"looks\": %llu, "
         "\"looked_bytes\": %llu, \"lost\": %llu, \"unordered\": %llu, \"failed\": %llu}\n",
         row->name, world.allocations, world.refusals, world.moved, world.looks, world.looked_bytes, world.lost,
         world.unordered, world.failed);
  fflush(stdout);
  if (world.lost) return DATA_LOST;
  if (world.unordered) return UNORDERED;
  if (world.failed) return 1;
  world.hip.Free(world.scratch);
  return expect_ok("hipmm_finalize", hipmm_finalize()) ? 0 : 1;
}

/* ---- The test ---- */

static struct outcome run_alone(const struct row *row, const char *broken)
{
  char number[20];
  snprintf(number, sizeof number, "%zu", (size_t)(row - rows));
  const char *const arguments[] = {"--row", number, "--seconds", "0.3", broken, NULL};
  return run_again(arguments, NULL);
}

static void keeps_data(void **state)
{
  struct outcome outcome = run_alone(*state, NULL);
  if (outcome.status) fail_msg("%d: %s%s", outcome.status, outcome.out, outcome.error);
  assert_contains(outcome.out, "\"lost\": 0");
}

static bool has_some(const struct outcome *outcome, const char *name)
{
  const char *number = strstr(outcome->out, name);
  return number && number[strlen(name)] != '0';
}

/* Data is lost; or memory goes from under work, after which a device does nothing more. */
static void is_noticed(void **state)
{
  struct outcome outcome = run_alone(*state, "--break-waits");
  bool noticed = outcome.status == DATA_LOST || has_some(&outcome, "\"failed\": ");
  if (!noticed || !has_some(&outcome, "\"unordered\": "))
    fail_msg("%d: not noticed: %s%s", outcome.status, outcome.out, outcome.error);
}

/* Under ThreadSanitizer a missing wait may be a race between the software device's threads, which ends the program. */
#if defined(__SANITIZE_THREAD__)
enum { CAN_NOTICE = 0 };
#else
enum { CAN_NOTICE = 1 };
#endif

static int run_all(void)
{
  struct CMUnitTest tests[2 * ROWS];
  static char names[2 * ROWS][100];
  size_t n = 0;
  for (size_t i = 0; i < 2 * ROWS; i++) {
    const struct row *row = &rows[i % ROWS];
    bool broken = i >= ROWS;
    if (broken && !(row->breaks && CAN_NOTICE)) continue;
    snprintf(names[n], sizeof *names, broken ? "notices it when nobody waits: %s" : "keeps data apart: %s", row->name);
    tests[n] = (struct CMUnitTest){
        .name = names[n], .test_func = broken ? is_noticed : keeps_data, .initial_state = (void *)(uintptr_t)row};
    n++;
  }
  return _cmocka_run_group_tests("integrity", tests, n, NULL, NULL);
}

/* Their names; before those that --break-waits takes something from a star, or an exclamation mark if that may
 * fault. */
static int list_rows(void)
{
  for (size_t i = 0; i < ROWS; i++) printf("%c %s\n", !rows[i].breaks ? ' ' : rows[i].moves ? '!' : '*', rows[i].name);
  return 0;
}

int main(int argc, char **argv)
{
  static const struct option options[] = {
      {"row", required_argument, NULL, 'r'},     {"seconds", required_argument, NULL, 's'},
      {"threads", required_argument, NULL, 't'}, {"break-waits", no_argument, NULL, 'b'},
      {"list", no_argument, NULL, 'l'},          {NULL, 0, NULL, 0}};
  int row = -1, option;
  bool broken = false;
  world.seconds = 1;
  world.threads = 4;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    if (option == 'r') row = atoi(optarg);
    if (option == 's') world.seconds = atof(optarg);
    if (option == 't') world.threads = (unsigned)atoi(optarg);
    if (option == 'b') broken = true;
    if (option == 'l') return list_rows();
    if (option == '?') return 2;
  }
  if (row < 0) return run_all();
  if (row >= ROWS || world.threads < 1 || world.threads > MOST_THREADS) {
    fprintf(stderr, "integrity: rows are 0 to %d, threads 1 to %d\n", ROWS - 1, MOST_THREADS);
    return 2;
  }
  return run_row(&rows[row], broken);
}
