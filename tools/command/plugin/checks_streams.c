/* SPDX-License-Identifier: MIT */
/* checks_streams.c: checks of what only shows with several streams, threads or devices, with work under way, or in a graph
 * capture. The random ones (model.h) go on for as long as --seconds says. */
#include "../../../core/runtime/hip.h"
#include "../../../core/stack/instance.h"
#include "kit.h"
#include "model.h"
#include "use.h"

#include <hipmm/stream.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Random programs ------------------------------------------------------------------------------------------- */

static const char *checks_streams_mend(const struct model *model, enum model_fault fault)
{
  bool has_threads = model->threads > 1;
  switch (fault) {
  case MODEL_PLACE:
    return has_threads ? "take a lock around all that threads share, in every op, or set HIPMM_PLUGIN_NOT_THREAD_SAFE"
                       : "give a block that is live to nobody else";
  case MODEL_ORDER:
    return "at each free record an event on its stream, on the default streams too, with the resource's device current "
           "(services->enter_device); let the stream that gets the memory next wait for the event, or leave the memory "
           "to its stream; pass streams on to the upstream as they are";
  case MODEL_REST: return "count down at each free what was counted up, and give back in trim and destroy what is free";
  default:
    return has_threads
               ? "take a lock around all that threads share, in every op; or see why the call fails for this size "
                 "and stream"
               : "see why the call fails: make calls of HIP with the resource's device current "
                 "(services->enter_device), and leave the device that the caller had";
  }
}

/* Until the time is up, and at least three times. Streams write a pattern into each block and read it back, and the race
 * detector sees an order that is missing, even if it did no harm. */
static void checks_streams_run_model(struct model model)
{
  enum { SEEDS = 3 };
  const int64_t start_ns = cmd_now_ns(), most_ns = kit->seconds * INT64_C(1000000000);
  int64_t taken_ns = 0;
  model.resources = kit_resources();
  model.runtime = "\"pageable_memory_access\": true, ";
  model.region_bytes = (size_t)64 << 20;
  model.may_fail = model.keeps_memory = model.is_plain = model.checks_streams = true;
  model.by_host = kit_is_host_memory();
  for (uint64_t seed = 1; seed <= SEEDS || taken_ns < most_ns; seed++) {
    struct model_result result = model_run(&model, seed);
    if (result.failure[0])
      kit_fail_with_mend(checks_streams_mend(&model, result.fault), "%s (%s, seed %llu)", result.failure, model.name,
                         (unsigned long long)seed);
    if (!result.allocations) kit_skip("it allocates nothing here");
    taken_ns = cmd_now_ns() - start_ns;
  }
}

static void checks_streams_streams(void)
{
  checks_streams_run_model((struct model){.name = "streams step by step",
                                          .scheduler = "stepped",
                                          .threads = 1,
                                          .streams = 6,
                                          .operations = 600,
                                          .most_bytes = 65536});
}

static void checks_streams_default_streams(void)
{
  checks_streams_run_model((struct model){.name = "default streams and others",
                                          .scheduler = "stepped",
                                          .has_defaults = true,
                                          .threads = 1,
                                          .streams = 6,
                                          .operations = 600,
                                          .most_bytes = 400000});
}

static void checks_streams_devices(void)
{
  checks_streams_run_model((struct model){.name = "a resource of device 1, called while device 0 is current",
                                          .scheduler = "stepped",
                                          .has_defaults = true,
                                          .device = 1,
                                          .threads = 1,
                                          .streams = 6,
                                          .operations = 600,
                                          .most_bytes = 65536});
}

/* Of many frees each is heeded. The host waits for little in between, since its waits are an order too. */
static void checks_streams_many_calls(void)
{
  checks_streams_run_model((struct model){.name = "many calls",
                                          .scheduler = "stepped",
                                          .has_defaults = true,
                                          .has_no_data = true,
                                          .threads = 1,
                                          .streams = 6,
                                          .operations = 20000,
                                          .most_bytes = 65536});
}

/* ---- Pauses of threads ---- */

/* A signal stops a thread wherever it is, so that others meet what it has half done, on a machine with few processors too.
 * Not for long: a right plugin's lock may be what it holds. */
static atomic_int checks_streams_n_paused;
static atomic_bool checks_streams_is_pause_over;

static void checks_streams_pause(int signal)
{
  enum { STEPS = 20 };
  (void)signal;
  atomic_fetch_add(&checks_streams_n_paused, 1);
  for (int i = 0; i < STEPS && !atomic_load(&checks_streams_is_pause_over); i++)
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  atomic_fetch_sub(&checks_streams_n_paused, 1);
}

/* Until all of them stand still, or for as long as a pause lasts. */
static void checks_streams_begin_pause(const pthread_t *threads, int n)
{
  enum { STEPS = 20 };
  atomic_store(&checks_streams_is_pause_over, false);
  for (int i = 0; i < n; i++) pthread_kill(threads[i], SIGUSR2);
  for (int i = 0; i < STEPS && atomic_load(&checks_streams_n_paused) < n; i++)
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static void checks_streams_allow_pauses(void)
{
  struct sigaction action = {.sa_handler = checks_streams_pause, .sa_flags = SA_RESTART};
  sigaction(SIGUSR2, &action, NULL);
}

/* ---- Threads at full speed ---------------------------------------------------------------------------------------- */

enum { HAMMER_THREADS = 4, HAMMER_KEPT = 8, HAMMER_CLAIMS = 1 << 14, HAMMER_LEAST = 3000 };

struct hammer {
  int64_t end_ns;
  atomic_int n_running;
  uintptr_t _Atomic claims[HAMMER_CLAIMS]; /* live blocks, by a part of the address; of two that share it, the later */
};

static uintptr_t _Atomic *checks_streams_claim_of(struct hammer *hammer, const void *ptr)
{
  return &hammer->claims[(uintptr_t)ptr / HIPMM_ALIGNMENT % HAMMER_CLAIMS];
}

/* The claim goes first: another thread may be given the address as soon as it is free. */
static void checks_streams_release(struct hammer *hammer, void *ptr, size_t bytes)
{
  uintptr_t claim = (uintptr_t)ptr;
  if (!ptr) return;
  atomic_compare_exchange_strong(checks_streams_claim_of(hammer, ptr), &claim, 0);
  kit_free(ptr, bytes, NULL);
}

/* Nothing is done here that would make the threads wait for one another: it is for the plugin to do so. */
static void *checks_streams_hammer(void *closure)
{
  struct hammer *hammer = closure;
  void *kept[HAMMER_KEPT] = {NULL};
  size_t sizes[HAMMER_KEPT];
  for (unsigned i = 0; i < HAMMER_LEAST || cmd_now_ns() < hammer->end_ns; i++) {
    unsigned at = i % HAMMER_KEPT;
    checks_streams_release(hammer, kept[at], sizes[at]);
    sizes[at] = 1000 + i % 7 * 3000;
    kept[at] = kit_allocate(sizes[at], HIPMM_ALIGNMENT, NULL);
    uintptr_t claim = (uintptr_t)kept[at];
    if (claim && atomic_exchange(checks_streams_claim_of(hammer, kept[at]), claim) == claim)
      kit_fail("%p is given to two threads", kept[at]);
    if (i % 512 == 511) kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  }
  for (unsigned at = 0; at < HAMMER_KEPT; at++) checks_streams_release(hammer, kept[at], sizes[at]);
  atomic_fetch_sub(&hammer->n_running, 1);
  return NULL;
}

/* What the upstream's memory is when all has been freed and trimmed. */
static uint64_t checks_streams_rest(void)
{
  kit_expect_hip(hip_table()->DeviceSynchronize(), "hipDeviceSynchronize");
  kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  return kit_probe_live_bytes();
}

static void checks_streams_run_hammer(void)
{
  static struct hammer hammer;
  pthread_t threads[HAMMER_THREADS];
  kit_open("threads");
  checks_streams_allow_pauses();
  checks_streams_hammer(&hammer); /* alone, and without a time */
  uint64_t rest = checks_streams_rest();
  atomic_store(&hammer.n_running, HAMMER_THREADS);
  hammer.end_ns = cmd_now_ns() + kit->seconds * INT64_C(1000000000);
  for (int i = 0; i < HAMMER_THREADS; i++)
    if (pthread_create(&threads[i], NULL, checks_streams_hammer, &hammer)) kit_skip("no thread can be had here");
  for (int i = 0; atomic_load(&hammer.n_running) == HAMMER_THREADS; i++) {
    pthread_kill(threads[i % HAMMER_THREADS], SIGUSR2);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  for (int i = 0; i < HAMMER_THREADS; i++) pthread_join(threads[i], NULL);
  uint64_t left = checks_streams_rest();
  if (left > rest)
    kit_fail(
        "when the threads have freed everything, a trim leaves %llu bytes of the upstream, where one thread left %llu",
        (unsigned long long)left, (unsigned long long)rest);
  kit_close(0);
}

static void checks_streams_threads(void)
{
  checks_streams_run_hammer();
  checks_streams_run_model((struct model){.name = "4 threads",
                                          .scheduler = "threads",
                                          .has_defaults = true,
                                          .threads = 4,
                                          .streams = 6,
                                          .operations = 1500,
                                          .most_bytes = 65536});
}

/* ---- Look-ups beside other calls ------------------------------------------------------------------------------------ */

enum { LOOKUPS_KEPT = 4, LOOKUPS_BYTES = 1000 };

struct lookups {
  const struct instance *instance;
  void *kept[LOOKUPS_KEPT]; /* live all the time */
  atomic_bool is_over;
};

static void *checks_streams_look_up(void *closure)
{
  struct lookups *lookups = closure;
  while (!atomic_load(&lookups->is_over))
    for (int i = 0; i < LOOKUPS_KEPT; i++) {
      struct hipmm_block block = {NULL, 0};
      kit_expect_ok(instance_find(lookups->instance, lookups->kept[i], &block), "find of a live block");
      if (block.ptr != lookups->kept[i] || block.bytes != LOOKUPS_BYTES)
        kit_fail("find says %p and %zu bytes of a block of %d bytes at %p", block.ptr, block.bytes, LOOKUPS_BYTES,
                 lookups->kept[i]);
    }
  return NULL;
}

/* The resource gets memory and gives it back again and again, while two threads ask for blocks that are there all the time,
 * and stand still somewhere while it gives back. */
static void checks_streams_lookups(void)
{
  enum { N = 600, FINDERS = 2, ROUNDS = 10 };
  static void *ptrs[N];
  struct lookups lookups = {.is_over = false};
  pthread_t threads[FINDERS];
  if (!kit_resource_plugin()->ops->find) kit_skip("it has no ops->find");
  kit_open("threads");
  lookups.instance = instance_from(kit_resource);
  for (int i = 0; i < LOOKUPS_KEPT; i++)
    if (!(lookups.kept[i] = kit_allocate(LOOKUPS_BYTES, HIPMM_ALIGNMENT, NULL)))
      kit_skip("it allocates too little here");
  checks_streams_allow_pauses();
  for (int i = 0; i < FINDERS; i++)
    if (pthread_create(&threads[i], NULL, checks_streams_look_up, &lookups)) kit_skip("no thread can be had here");
  int64_t end_ns = cmd_now_ns() + kit->seconds * INT64_C(1000000000);
  for (int round = 0; round < ROUNDS || cmd_now_ns() < end_ns; round++) {
    for (int i = 0; i < N; i++) ptrs[i] = kit_allocate(LOOKUPS_BYTES, HIPMM_ALIGNMENT, NULL);
    for (int i = 0; i < N; i++)
      if (ptrs[i]) kit_free(ptrs[i], LOOKUPS_BYTES, NULL);
    checks_streams_begin_pause(threads, FINDERS);
    kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
    atomic_store(&checks_streams_is_pause_over, true);
  }
  atomic_store(&lookups.is_over, true);
  for (int i = 0; i < FINDERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < LOOKUPS_KEPT; i++) kit_free(lookups.kept[i], LOOKUPS_BYTES, NULL);
  kit_close(0);
}

/* ---- Work under way --------------------------------------------------------------------------------------------- */

static void checks_streams_delay(void *unused)
{
  (void)unused;
  usleep(20000);
}

static void checks_streams_end_use(void *use)
{
  atomic_store(&((struct kit_probe_use *)use)->is_over, true);
}

/* Frees a block which work on the stream still uses, for a while. False if there is no memory. */
static bool checks_streams_free_in_use(size_t bytes, hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = hip_table();
  void *ptr = kit_allocate(bytes, HIPMM_ALIGNMENT, stream);
  if (!ptr) return false;
  atomic_store(&kit_probe_use.is_over, false);
  kit_probe_use.ptr = ptr;
  kit_expect_hip(hip->LaunchHostFunc(stream, checks_streams_delay, NULL), "hipLaunchHostFunc");
  kit_expect_hip(use_submit(hip, kit_is_host_memory(), (struct use){ptr, NULL, bytes, 1}, stream), "hipMemsetAsync");
  kit_expect_hip(hip->LaunchHostFunc(stream, checks_streams_end_use, &kit_probe_use), "hipLaunchHostFunc");
  kit_free(ptr, bytes, stream);
  return true;
}

/* Work is over, and the memory of the next block may come from elsewhere. */
static void checks_streams_end_work(void)
{
  kit_expect_hip(hip_table()->DeviceSynchronize(), "hipDeviceSynchronize");
  kit_probe_use.ptr = NULL;
}

static void checks_streams_work_under_way(void)
{
  enum { N_STREAMS = 3 };
  static const size_t sizes[] = {1000, 300000};
  for (int i = 0; i < 2 * N_STREAMS; i++) {
    kit_open("threads");
    hipmm_stream_t own = kit_stream();
    const hipmm_stream_t streams[N_STREAMS] = {own, NULL, HIPMM_PER_THREAD_STREAM};
    hipmm_stream_t stream = streams[i % N_STREAMS];
    size_t bytes = sizes[i / N_STREAMS];
    void *before = kit_allocate(bytes, HIPMM_ALIGNMENT, stream); /* so that not all is in use at first */
    if (before) kit_free(before, bytes, stream);
    if (!checks_streams_free_in_use(bytes, stream)) kit_skip("it allocates nothing here");
    kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
    checks_streams_end_work();
    checks_streams_free_in_use(bytes, stream);
    kit_close_busy(0);
    checks_streams_end_work();
    kit_expect_hip(hip_table()->StreamDestroy(own), "hipStreamDestroy");
  }
}

/* ---- Graph captures ----------------------------------------------------------------------------------------------- */

/* A function of the software device; hipmm itself captures nothing. */
static int checks_streams_capture(const char *name, hipmm_stream_t stream, void *argument)
{
  int (*call)(hipmm_stream_t, void *);
  void *address = hip_symbol(name);
  memcpy(&call, &address, sizeof call);
  return call ? call(stream, argument) : HIPMM_HIP_ERROR_NOT_SUPPORTED;
}

static int checks_streams_state(hipmm_stream_t stream)
{
  int state = 0;
  return hip_table()->StreamIsCapturing(stream, &state) ? -1 : state;
}

/* A call may be refused in a capture. */
static void checks_streams_expect_capture(hipmm_stream_t stream, enum hipmm_status status, const char *what)
{
  enum { ACTIVE = 1 };
  if (status && status != HIPMM_E_STATE && !hipmm_is_out_of_memory(status))
    kit_expect_refusal(status, HIPMM_E_STATE, what);
  if (checks_streams_state(stream) != ACTIVE) kit_fail("%s ends the capture", what);
}

enum { CAPTURES_BYTES = 1000 };

/* The graph may run at any time from its first launch on, and uses what was freed in the capture. So another stream gets none
 * of it, and is not drawn into the capture. */
static void checks_streams_check_reuse(hipmm_stream_t other, void *const *freed, size_t n_freed)
{
  enum { N = 200 };
  void *ptrs[N];
  for (int i = 0; i < N; i++) {
    ptrs[i] = NULL;
    enum hipmm_status status = hipmm_allocate(kit_resource, CAPTURES_BYTES, other, &ptrs[i]);
    if (status) continue;
    for (size_t k = 0; k < n_freed; k++)
      if (freed[k] && (uintptr_t)ptrs[i] - (uintptr_t)freed[k] < CAPTURES_BYTES)
        kit_fail_with_mend(
            "keep memory that is freed in a capture (hipmm_stream_is_captured() for the stream of the free) "
            "out of use until trim",
            "a block that was freed in the capture is given to another stream");
    if (checks_streams_state(other)) kit_fail("an allocation on another stream draws that stream into the capture");
  }
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], CAPTURES_BYTES, other);
}

static void checks_streams_captures(void)
{
  enum { ON_IT, ELSEWHERE, INSIDE, N };
  static const char *const frees[N] = {"a free on the stream that is captured", "a free on another stream",
                                       "a free of what was allocated in the capture"};
  void *ptrs[N] = {NULL}, *freed[N] = {NULL}, *graph = NULL, *cached;
  hipmm_stream_t stream, other;
  kit_open("threads");
  kit_expect_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream), "stream_create");
  kit_expect_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &other), "stream_create");
  ptrs[ON_IT] = kit_allocate(CAPTURES_BYTES, HIPMM_ALIGNMENT, stream);
  ptrs[ELSEWHERE] = kit_allocate(CAPTURES_BYTES, HIPMM_ALIGNMENT, NULL);
  if ((cached = kit_allocate(CAPTURES_BYTES, HIPMM_ALIGNMENT, other))) kit_free(cached, CAPTURES_BYTES, other);
  kit_expect_hip(checks_streams_capture("hipStreamBeginCapture", stream, NULL), "hipStreamBeginCapture");
  enum hipmm_status status = hipmm_allocate(kit_resource, CAPTURES_BYTES, stream, &ptrs[INSIDE]);
  checks_streams_expect_capture(stream, status, "an allocation on the stream that is captured");
  for (int i = 0; i < N; i++) {
    if (!ptrs[i]) continue;
    status = hipmm_deallocate(kit_resource, ptrs[i], CAPTURES_BYTES, i == ELSEWHERE ? NULL : stream);
    checks_streams_expect_capture(stream, status, frees[i]);
    if (!status && i != ELSEWHERE) freed[i] = ptrs[i];
    if (!status) ptrs[i] = NULL;
  }
  checks_streams_check_reuse(other, freed, N);
  status = hipmm_allocate(kit_resource, CAPTURES_BYTES, NULL, &ptrs[ELSEWHERE]);
  checks_streams_expect_capture(stream, status, "an allocation on another stream");
  checks_streams_expect_capture(stream, hipmm_resource_trim(kit_resource, 0), "trim");
  kit_expect_hip(checks_streams_capture("hipStreamEndCapture", stream, &graph), "hipStreamEndCapture");
  kit_expect_hip(checks_streams_capture("hipGraphDestroy", graph, NULL), "hipGraphDestroy");
  for (int i = 0; i < N; i++)
    if (ptrs[i]) kit_free(ptrs[i], CAPTURES_BYTES, i == ELSEWHERE ? NULL : stream);
  kit_expect_ok(hipmm_resource_trim(kit_resource, 0), "trim");
  kit_expect_ok(hipmm_stream_destroy(stream), "stream_destroy");
  kit_expect_ok(hipmm_stream_destroy(other), "stream_destroy");
  kit_close(0);
}

const struct kit_check kit_checks_streams[] = {
    {"streams", "memory is reused on another stream only after the work there is over",
     "remember the stream of each free; for another stream wait for an event recorded there at or after the free, or "
     "leave the block",
     checks_streams_streams},
    {"default streams", "the default stream, each thread's own, and streams that block are streams like all others",
     "treat every stream alike: record and wait on the default streams too", checks_streams_default_streams},
    {"many calls", "the order of streams holds in many thousands of calls too",
     "record an event at each free; let no number of the plugin's own run over", checks_streams_many_calls},
    {"threads", "all ops can be called by several threads at once",
     "take a lock around all that threads share, in every op, or set HIPMM_PLUGIN_NOT_THREAD_SAFE",
     checks_streams_threads},
    {"look-ups", "find can be called while other threads allocate, free and trim",
     "take the lock in find and covers too, for as long as they read what other ops change", checks_streams_lookups},
    {"devices", "a call comes with any device current, and leaves it current",
     "call services->enter_device before calls of HIP, and services->leave_device after them", checks_streams_devices},
    {"work under way", "memory goes back to the upstream ordered after the work on it, in trim and destroy too",
     "before trim and destroy give memory back wait for the device (services->hip->DeviceSynchronize), or free it on a "
     "stream that comes after the work",
     checks_streams_work_under_way},
    {"captures", "no call ends a graph capture of a stream, and what is freed in one is left to the graph",
     "ask hipmm_stream_is_captured() before each call of HIP that waits for the stream, records an event there, or "
     "makes it wait; then refuse with HIPMM_E_STATE, keep the block aside, or ask the upstream",
     checks_streams_captures},
    {.name = NULL},
};
