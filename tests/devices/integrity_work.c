/* SPDX-License-Identifier: MIT */
/* integrity_work.c: see integrity_work.h. */
#include "integrity_work.h"

#include "../support/random.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { HELD = 6, LOOKS = 16, PIECE = 32 * KIB, PIECES = 3, TO_HOST = 2, ON_DEVICE = 3 };

struct world world;

/* Pieces of a block on their way to the host. */
struct look {
  unsigned char *copy; /* pinned */
  size_t bytes;
  unsigned char tag;
  bool used;
  hipmm_hip_event_t done;
};

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
  if (atomic_load(&world.lost) + atomic_load(&world.unordered) + atomic_load(&world.failed) > 5) return;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
}

bool expect(const char *call, int code)
{
  if (!code) return true;
  atomic_fetch_add(&world.failed, 1);
  say("%s: %s\n", call, world.hip.GetErrorName(code));
  return false;
}

bool expect_ok(const char *call, enum hipmm_status status)
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
  hipmm_stream_t stream = world.streams[held->stream];
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

static void fill_scratch(unsigned stream)
{
  expect("hipMemsetAsync", world.hip.MemsetAsync(world.scratch + stream * world.scratch_bytes, 1, world.scratch_bytes,
                                                 world.streams[stream]));
}

/* On a GPU that is more fills: with functions of the host between, its driver may mix up an order (README.md). */
static void delay_long(struct worker *worker, unsigned stream)
{
  if (on_software())
    expect("hipLaunchHostFunc",
           world.hip.LaunchHostFunc(world.streams[stream], sleep_a_while,
                                    (void *)(uintptr_t)(100 + random_below(&worker->random, 1500))));
  else
    for (uint64_t fills = random_below(&worker->random, 16); fills--;) fill_scratch(stream);
}

/* Lets a stream lag behind, at times. */
static void delay(struct worker *worker, unsigned stream)
{
  uint64_t draw_of = random_below(&worker->random, 8);
  if (draw_of < 2) delay_long(worker, stream);
  if (draw_of == 2) fill_scratch(stream);
}

/* Orders `to` after what `from` has been given so far. */
static void order_streams(unsigned from, unsigned to)
{
  hipmm_hip_event_t event;
  if (from == to) return;
  if (!expect("hipEventCreate", world.hip.EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING))) return;
  expect("hipEventRecord", world.hip.EventRecord(event, world.streams[from]));
  expect("hipStreamWaitEvent", world.hip.StreamWaitEvent(world.streams[to], event, 0));
  expect("hipEventDestroy", world.hip.EventDestroy(event));
}

/* ---- Blocks ---- */

static void check_order(const struct held *held)
{
  unsigned before = order_last_user(held->ptr);
  if (before < STREAMS && before != held->stream) atomic_fetch_add(&world.moved, 1);
  if (world.row->hides || order_is_after(held->stream, held->ptr, held->bytes)) return;
  atomic_fetch_add(&world.unordered, 1);
  say("%zu bytes for stream %u: nobody asked it to wait for what uses them\n", held->bytes, held->stream);
}

static bool obtain(struct worker *worker, size_t bytes, struct held *held_out)
{
  struct held held = {.bytes = bytes, .stream = (unsigned)random_below(&worker->random, STREAMS)};
  void *ptr = NULL;
  if (hipmm_allocate(NULL, bytes, world.streams[held.stream], &ptr)) { /* there is little */
    atomic_fetch_add(&world.refusals, 1);
    return false;
  }
  held.ptr = ptr;
  check_order(&held);
  atomic_fetch_add(&world.allocations, 1);
  *held_out = held;
  return true;
}

static void allocate_one(struct worker *worker)
{
  struct held held;
  size_t most = random_below(&worker->random, 3) ? 128 * KIB : world.row->most_bytes;
  if (!obtain(worker, 256 + (size_t)random_below(&worker->random, most - 256), &held)) return;
  held.tag = worker->tag++;
  delay(worker, held.stream);
  expect("hipMemsetAsync", world.hip.MemsetAsync(held.ptr, held.tag, held.bytes, world.streams[held.stream]));
  worker->held[worker->n_held++] = held;
}

/* A copy of a block on another stream, which reads the block before the block's own stream goes on. */
static void copy_one(struct worker *worker)
{
  struct held *from = &worker->held[random_below(&worker->random, worker->n_held)], to;
  if (!obtain(worker, from->bytes, &to)) return;
  order_streams(from->stream, to.stream);
  to.tag = from->tag;
  expect("hipMemcpyAsync", world.hip.MemcpyAsync(to.ptr, from->ptr, to.bytes, ON_DEVICE, world.streams[to.stream]));
  order_streams(to.stream, from->stream);
  worker->held[worker->n_held++] = to;
}

static void free_one(struct worker *worker)
{
  unsigned which = (unsigned)random_below(&worker->random, worker->n_held);
  struct held held = worker->held[which];
  worker->held[which] = worker->held[--worker->n_held];
  if (!random_below(&worker->random, 5)) {
    unsigned to = (unsigned)random_below(&worker->random, STREAMS);
    order_streams(held.stream, to);
    held.stream = to;
  }
  delay(worker, held.stream);
  start_look(worker, &held);
  order_used(held.stream, held.ptr, held.bytes);
  expect_ok("hipmm_deallocate", hipmm_deallocate(NULL, held.ptr, random_below(&worker->random, 4) ? held.bytes : 0,
                                                 world.streams[held.stream]));
}

/* Another thread goes on with the block. */
static void exchange_one(struct worker *worker)
{
  struct held *mine = &worker->held[random_below(&worker->random, worker->n_held)];
  pthread_mutex_lock(&world.shared_lock);
  struct held *other = &world.shared[random_below(&worker->random, SHARED)], taken = *other;
  *other = *mine;
  pthread_mutex_unlock(&world.shared_lock);
  *mine = taken;
  if (!taken.ptr) *mine = worker->held[--worker->n_held];
}

/* The handle may come back for another stream at once. What the old one was given still runs. */
static void renew_one(struct worker *worker)
{
  unsigned which = 1 + (unsigned)random_below(&worker->random, STREAMS - 1);
  pthread_rwlock_unlock(&world.streams_lock);
  pthread_rwlock_wrlock(&world.streams_lock);
  hipmm_stream_t old = world.streams[which], made;
  hipmm_hip_event_t event;
  expect("hipEventCreate", world.hip.EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING));
  expect("hipEventRecord", world.hip.EventRecord(event, old));
  expect("hipStreamDestroy", world.hip.StreamDestroy(old));
  expect("hipStreamCreate", world.hip.StreamCreateWithFlags(&made, HIPMM_HIP_STREAM_NON_BLOCKING));
  expect("hipStreamWaitEvent", world.hip.StreamWaitEvent(made, event, 0)); /* blocks in use go on there */
  expect("hipEventDestroy", world.hip.EventDestroy(event));
  world.streams[which] = made;
  order_set_handle(which, made);
  pthread_rwlock_unlock(&world.streams_lock);
  pthread_rwlock_rdlock(&world.streams_lock);
}

/* ---- Threads ---- */

static void step(struct worker *worker)
{
  uint64_t draw_of = random_below(&worker->random, 100);
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

void run_threads(void)
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
