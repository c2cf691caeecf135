/* SPDX-License-Identifier: MIT */
/* integrity.c: whether data survives while blocks are reused across streams and threads, on any runtime. Work is delayed by
 * host functions and long fills, so that streams lag behind the host, and what a stream finds in a block is copied out and
 * looked at. A run whose runtime does not wait must be caught. HIPMM_RUNTIME chooses the runtime; run by `make check` over
 * the software device, by prove.py over a GPU.
 *
 *     integrity                                              every row, with its waits and without, as TAP
 *     integrity --list                                       the rows' names
 *     integrity --row N [--seconds S] [--threads N] [--break-waits]     one row; a line of JSON, 3 if data was lost */
#include "../../core/hip.h"
#include "../pool/random.h"
#include "../support.h"

#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS = 8, MOST_THREADS = 64, HELD = 6, SHARED = 16, LOOKS = 16, KIB = 1024, DATA_LOST = 3 };
enum { PIECE = 32 * KIB, PIECES = 3, TO_HOST = 2, ON_DEVICE = 3 };

struct row {
  const char *name, *stack;
  size_t most_bytes;
  bool retains; /* promises that streams last */
  bool renews;  /* destroys streams while they have work, and makes others */
  bool breaks;  /* --break-waits takes something away from this one */
  bool moves;   /* memory that is unmapped too early is a fault, after which a device does no more */
};

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
    {"async", "[\"async\"]", 4 * MIB, .retains = false},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* A block in somebody's hands; `stream` is the stream of its last use. */
struct held {
  char *ptr;
  size_t bytes;
  unsigned stream;
  unsigned char tag;
};

/* Pieces of a block on their way to the host. */
struct look {
  unsigned char *copy; /* pinned */
  size_t bytes;
  unsigned char tag;
  bool used;
  hipEvent_t done;
};

struct world {
  const struct row *row;
  struct hipmm_hip hip; /* with all its waits */
  hipStream_t streams[STREAMS];
  pthread_rwlock_t streams_lock; /* written while a stream is made anew */
  pthread_mutex_t shared_lock;
  struct held shared[SHARED];
  char *scratch; /* for long fills, a part for each stream */
  size_t scratch_bytes;
  double seconds;
  unsigned threads;
  _Atomic(uint64_t) last_stream[1 << 16]; /* by address: who had the block before, plus 1 */
  atomic_ullong allocations, refusals, moved, looks, looked_bytes, lost, failed;
};

static struct world world;

struct worker {
  pthread_t thread;
  uint64_t random;
  double until;
  struct held held[HELD];
  unsigned n_held, at_look;
  unsigned char tag;
  struct look looks[LOOKS];
};

/* ---- Mistakes ---- */

static void say(const char *format, ...) HIPMM_PRINTF(1, 2);

/* The first few of them, since what follows follows from these. */
static void say(const char *format, ...)
{
  va_list arguments;
  if (atomic_load(&world.lost) + atomic_load(&world.failed) > 5) return;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
}

static bool expect(const char *call, int code)
{
  if (!code) return true;
  atomic_fetch_add(&world.failed, 1);
  say("%s: %s\n", call, world.hip.GetErrorName(code));
  return false;
}

static bool expect_ok(const char *call, enum hipmm_status status)
{
  if (!status) return true;
  atomic_fetch_add(&world.failed, 1);
  say("%s: %s\n", call, hipmm_last_error_message());
  return false;
}

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- Looks ---- */

static void finish_look(struct look *look)
{
  if (!look->used) return;
  look->used = false;
  if (!expect("hipEventSynchronize", world.hip.EventSynchronize(look->done))) return;
  size_t wrong = 0;
  for (size_t i = 0; i < look->bytes; i++) wrong += look->copy[i] != look->tag;
  atomic_fetch_add(&world.looks, 1);
  atomic_fetch_add(&world.looked_bytes, look->bytes);
  if (!wrong) return;
  atomic_fetch_add(&world.lost, 1);
  say("data lost: %zu of %zu bytes are not %02x\n", wrong, look->bytes, look->tag);
}

/* Has the stream copy the block's beginning, middle and end. */
static void start_look(struct worker *worker, const struct held *held)
{
  struct look *look = &worker->looks[worker->at_look++ % LOOKS];
  hipStream_t stream = world.streams[held->stream];
  finish_look(look);
  size_t piece = held->bytes / PIECES < PIECE ? held->bytes / PIECES : PIECE;
  const size_t starts[PIECES] = {0, held->bytes / 2 - piece / 2, held->bytes - piece};
  for (size_t i = 0; i < PIECES; i++)
    expect("hipMemcpyAsync",
           world.hip.MemcpyAsync(look->copy + i * piece, held->ptr + starts[i], piece, TO_HOST, stream));
  look->bytes = PIECES * piece;
  look->tag = held->tag;
  look->used = expect("hipEventRecord", world.hip.EventRecord(look->done, stream));
}

/* ---- Delays ---- */

static void sleep_a_while(void *microseconds)
{
  usleep((useconds_t)(uintptr_t)microseconds);
}

/* Lets a stream lag behind, at times. */
static void delay(struct worker *worker, unsigned stream)
{
  uint64_t draw_of = draw(&worker->random, 8);
  if (draw_of < 2)
    expect("hipLaunchHostFunc", world.hip.LaunchHostFunc(world.streams[stream], sleep_a_while,
                                                         (void *)(uintptr_t)(100 + draw(&worker->random, 1500))));
  else if (draw_of == 2)
    expect("hipMemsetAsync", world.hip.MemsetAsync(world.scratch + stream * world.scratch_bytes, 1, world.scratch_bytes,
                                                   world.streams[stream]));
}

/* Orders `to` after what `from` has been given so far. */
static void order_streams(unsigned from, unsigned to)
{
  hipEvent_t event;
  if (from == to) return;
  if (!expect("hipEventCreate", world.hip.EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING))) return;
  expect("hipEventRecord", world.hip.EventRecord(event, world.streams[from]));
  expect("hipStreamWaitEvent", world.hip.StreamWaitEvent(world.streams[to], event, 0));
  expect("hipEventDestroy", world.hip.EventDestroy(event));
}

/* ---- Blocks ---- */

static void note_place(const struct held *held)
{
  _Atomic(uint64_t) *place = &world.last_stream[(uintptr_t)held->ptr / HIPMM_ALIGNMENT % (1 << 16)];
  uint64_t before = atomic_exchange(place, held->stream + 1);
  if (before && before != held->stream + 1) atomic_fetch_add(&world.moved, 1);
}

static bool obtain(struct worker *worker, size_t bytes, struct held *held_out)
{
  struct held held = {.bytes = bytes, .stream = (unsigned)draw(&worker->random, STREAMS)};
  void *ptr = NULL;
  if (hipmm_allocate(NULL, bytes, world.streams[held.stream], &ptr)) { /* there is little */
    atomic_fetch_add(&world.refusals, 1);
    return false;
  }
  held.ptr = ptr;
  note_place(&held);
  atomic_fetch_add(&world.allocations, 1);
  *held_out = held;
  return true;
}

static void allocate_one(struct worker *worker)
{
  struct held held;
  size_t most = draw(&worker->random, 3) ? 128 * KIB : world.row->most_bytes;
  if (!obtain(worker, 256 + (size_t)draw(&worker->random, most - 256), &held)) return;
  held.tag = worker->tag++;
  delay(worker, held.stream);
  expect("hipMemsetAsync", world.hip.MemsetAsync(held.ptr, held.tag, held.bytes, world.streams[held.stream]));
  worker->held[worker->n_held++] = held;
}

/* A copy of a block on another stream, which reads the block before the block's own stream goes on. */
static void copy_one(struct worker *worker)
{
  struct held *from = &worker->held[draw(&worker->random, worker->n_held)], to;
  if (!obtain(worker, from->bytes, &to)) return;
  order_streams(from->stream, to.stream);
  to.tag = from->tag;
  expect("hipMemcpyAsync", world.hip.MemcpyAsync(to.ptr, from->ptr, to.bytes, ON_DEVICE, world.streams[to.stream]));
  order_streams(to.stream, from->stream);
  worker->held[worker->n_held++] = to;
}

static void free_one(struct worker *worker)
{
  unsigned which = (unsigned)draw(&worker->random, worker->n_held);
  struct held held = worker->held[which];
  worker->held[which] = worker->held[--worker->n_held];
  if (!draw(&worker->random, 5)) {
    unsigned to = (unsigned)draw(&worker->random, STREAMS);
    order_streams(held.stream, to);
    held.stream = to;
  }
  delay(worker, held.stream);
  start_look(worker, &held);
  expect_ok("hipmm_deallocate",
            hipmm_deallocate(NULL, held.ptr, draw(&worker->random, 4) ? held.bytes : 0, world.streams[held.stream]));
}

/* Another thread goes on with the block. */
static void exchange_one(struct worker *worker)
{
  struct held *mine = &worker->held[draw(&worker->random, worker->n_held)];
  pthread_mutex_lock(&world.shared_lock);
  struct held *other = &world.shared[draw(&worker->random, SHARED)], taken = *other;
  *other = *mine;
  pthread_mutex_unlock(&world.shared_lock);
  *mine = taken;
  if (!taken.ptr) *mine = worker->held[--worker->n_held];
}

/* The handle may come back for another stream at once. What the old one was given still runs. */
static void renew_one(struct worker *worker)
{
  unsigned which = 1 + (unsigned)draw(&worker->random, STREAMS - 1);
  pthread_rwlock_unlock(&world.streams_lock);
  pthread_rwlock_wrlock(&world.streams_lock);
  hipStream_t old = world.streams[which], made;
  hipEvent_t event;
  expect("hipEventCreate", world.hip.EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING));
  expect("hipEventRecord", world.hip.EventRecord(event, old));
  expect("hipStreamDestroy", world.hip.StreamDestroy(old));
  expect("hipStreamCreate", world.hip.StreamCreateWithFlags(&made, HIPMM_HIP_STREAM_NON_BLOCKING));
  expect("hipStreamWaitEvent", world.hip.StreamWaitEvent(made, event, 0)); /* blocks in use go on there */
  expect("hipEventDestroy", world.hip.EventDestroy(event));
  world.streams[which] = made;
  pthread_rwlock_unlock(&world.streams_lock);
  pthread_rwlock_rdlock(&world.streams_lock);
}

/* ---- Threads ---- */

static void step(struct worker *worker)
{
  uint64_t draw_of = draw(&worker->random, 100);
  if (draw_of == 0 && world.row->renews)
    renew_one(worker);
  else if (worker->n_held == 0 || (worker->n_held < HELD && draw_of < 40))
    allocate_one(worker);
  else if (worker->n_held < HELD && draw_of < 50)
    copy_one(worker);
  else if (draw_of < 60)
    exchange_one(worker);
  else
    free_one(worker);
}

static void *work(void *closure)
{
  struct worker *worker = closure;
  pthread_rwlock_rdlock(&world.streams_lock);
  while (now() < worker->until && !atomic_load(&world.failed) && atomic_load(&world.lost) < 3) step(worker);
  while (worker->n_held) free_one(worker);
  for (unsigned i = 0; i < LOOKS; i++) finish_look(&worker->looks[i]);
  pthread_rwlock_unlock(&world.streams_lock);
  return NULL;
}

static bool prepare_looks(struct worker *worker)
{
  bool good = true;
  for (unsigned i = 0; good && i < LOOKS; i++) {
    struct look *look = &worker->looks[i];
    good = expect("hipHostMalloc", world.hip.HostMalloc((void **)&look->copy, PIECES * PIECE, 0)) &&
           expect("hipEventCreate", world.hip.EventCreateWithFlags(&look->done, HIPMM_HIP_EVENT_DISABLE_TIMING));
  }
  return good;
}

static void run_threads(void)
{
  static struct worker workers[MOST_THREADS];
  unsigned started = 0;
  for (unsigned i = 0; i < world.threads; i++) {
    workers[i].random = i + 1;
    workers[i].tag = (unsigned char)(i * 37);
    if (!prepare_looks(&workers[i])) return;
  }
  for (; started < world.threads; started++) {
    workers[started].until = now() + world.seconds;
    if (pthread_create(&workers[started].thread, NULL, work, &workers[started])) break;
  }
  for (unsigned i = 0; i < started; i++) pthread_join(workers[i].thread, NULL);
  for (unsigned i = 0; i < SHARED; i++)
    if (world.shared[i].ptr) expect_ok("hipmm_deallocate", hipmm_deallocate(NULL, world.shared[i].ptr, 0, NULL));
}

/* ---- A row ---- */

static int do_nothing_for_a_stream(hipStream_t stream, hipEvent_t event, unsigned flags)
{
  (void)stream, (void)event, (void)flags;
  return 0;
}

static int do_nothing_for_an_event(hipEvent_t event)
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
  if (!good || !expect_ok("the stack", hipmm_get_current_resource(&resource))) return false;
  hipmm_resource_release(resource);
  world.hip = *hip_table();
  for (unsigned i = 1; i < STREAMS; i++) { /* the first is the device's own */
    good &=
        expect("hipStreamCreate", world.hip.StreamCreateWithFlags(&world.streams[i], HIPMM_HIP_STREAM_NON_BLOCKING));
    if (row->retains) good &= expect_ok("hipmm_stream_retain", hipmm_stream_retain(0, world.streams[i]));
  }
  return good && expect("hipMalloc", world.hip.Malloc((void **)&world.scratch, STREAMS * world.scratch_bytes));
}

static int run_row(const struct row *row, bool broken)
{
  world.row = row;
  world.scratch_bytes = on_software() ? 4 * MIB : 256 * MIB; /* some 100 us each */
  pthread_rwlock_init(&world.streams_lock, NULL);
  pthread_mutex_init(&world.shared_lock, NULL);
  if (!start_row(row)) return 1;
  if (broken) break_waits();
  run_threads();
  *(struct hipmm_hip *)(uintptr_t)hip_table() = world.hip;
  expect("hipDeviceSynchronize", world.hip.DeviceSynchronize());
  printf("{\"row\": \"%s\", \"allocations\": %llu, \"refused\": %llu, \"to_another_stream\": %llu, \"looks\": %llu, "
         "\"looked_bytes\": %llu, \"lost\": %llu, \"failed\": %llu}\n",
         row->name, world.allocations, world.refusals, world.moved, world.looks, world.looked_bytes, world.lost,
         world.failed);
  fflush(stdout);
  if (world.lost) return DATA_LOST;
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

/* Data is lost; or memory goes from under work, after which a device does nothing more. */
static void is_noticed(void **state)
{
  struct outcome outcome = run_alone(*state, "--break-waits");
  bool noticed =
      outcome.status == DATA_LOST || (strstr(outcome.out, "\"failed\": ") && !strstr(outcome.out, "\"failed\": 0"));
  if (!noticed) fail_msg("%d: nothing was noticed: %s%s", outcome.status, outcome.out, outcome.error);
}

/* Under ThreadSanitizer work is too slow for a missing wait to matter. */
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

/* Their names; before those that --break-waits takes something from a star, or an exclamation mark if that may fault. */
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
