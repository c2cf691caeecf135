/* SPDX-License-Identifier: MIT */
/* fixture.c: see fixture.h. */
#include "fixture.h"
#include "../../core/runtime/hip.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TO_HOST = 2 };

/* ---- Stacks ---- */

static char *graph_text(const char *runtime_options, const char *graph)
{
  char *text;
  int length = asprintf(&text, "{'runtime': {'type': 'software', 'devices': 2, 'memory': '256MiB'%s%s}, %s}",
                        *runtime_options ? ", " : "", runtime_options, graph);
  if (length < 0) return NULL;
  for (char *at = text; *at; at++)
    if (*at == '\'') *at = '"';
  return text;
}

/* What decides in which order work runs: another runtime has an order of its own. */
static bool is_about_order(const char *runtime_options)
{
  int keys = 0;
  for (const char *at = runtime_options; *at; at++) keys += *at == ':';
  return keys == !!strstr(runtime_options, "'scheduler':") + !!strstr(runtime_options, "'seed':");
}

static enum hipmm_status initialise(const char *runtime_options, const char *graph)
{
  if (!is_about_order(runtime_options)) needs_software();
  char *text = graph_text(runtime_options, graph);
  enum hipmm_status status = hipmm_init_from_string(text);
  free(text);
  return status;
}

static enum hipmm_status build(void)
{
  struct hipmm_resource *resource;
  enum hipmm_status status = hipmm_resource_get_for_device(0, &resource);
  if (!status) hipmm_resource_release(resource);
  return status;
}

enum hipmm_status fixture_try(const char *runtime_options, const char *graph)
{
  enum hipmm_status status = initialise(runtime_options, graph);
  return status ? status : build();
}

void fixture_start_with(const char *runtime_options, const char *graph)
{
  assert_ok(fixture_try(runtime_options, graph));
}

void fixture_start(const char *graph)
{
  fixture_start_with("", graph);
}

void fixture_refuses(const char *type, const struct fixture_refusal *refusals, size_t n_refusals)
{
  for (const struct fixture_refusal *refusal = refusals; refusal < refusals + n_refusals; refusal++) {
    char graph[300];
    snprintf(graph, sizeof graph, "'stack': [{'type': '%s', %s}, 'device']", type, refusal->options);
    assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
    assert_message("/stack/0/");
    assert_message(refusal->message);
    hipmm_finalize();
  }
}

int fixture_setup(void **state)
{
  (void)state;
  software()->reset();
  return 0;
}

static bool nothing_is_lost(void)
{
  hipmm_finalize(); /* the test may have done it */
  uint64_t live = live_on_all_devices(), faults = faults_on_all_devices();
  if (live) print_error("%llu blocks were never given back\n", (unsigned long long)live);
  if (faults) print_error("%llu times work ran on memory that was gone\n", (unsigned long long)faults);
  return !live && !faults;
}

static struct hipmm_hip usual_hip;
static bool hip_is_lent;

const struct hipmm_hip *fixture_hip(void)
{
  return hip_table();
}

struct hipmm_hip *fixture_lend_hip(void)
{
  if (!hip_is_lent) usual_hip = *hip_table();
  hip_is_lent = true;
  return (struct hipmm_hip *)(uintptr_t)hip_table();
}

const struct hipmm_hip *fixture_usual_hip(void)
{
  return &usual_hip;
}

void fixture_take_hip_back(void)
{
  if (hip_is_lent) *(struct hipmm_hip *)(uintptr_t)hip_table() = usual_hip;
  hip_is_lent = false;
}

int fixture_teardown(void **state)
{
  (void)state;
  fixture_take_hip_back();
  return nothing_is_lost() ? 0 : -1;
}

char *fixture_folder;

int fixture_setup_folder(void **state)
{
  fixture_folder = new_folder();
  return fixture_setup(state);
}

int fixture_teardown_folder(void **state)
{
  int status = fixture_teardown(state);
  remove_folder(fixture_folder);
  return status;
}

struct hipmm_resource *fixture_resource(const char *name)
{
  struct hipmm_resource *resource = NULL;
  if (!name) return NULL;
  assert_ok(hipmm_resource_get_by_name(0, name, &resource));
  hipmm_resource_release(resource); /* the table of devices keeps it */
  return resource;
}

int64_t fixture_value(const char *resource, const char *value)
{
  return resource_value(fixture_resource(resource), value);
}

size_t fixture_held_bytes(void)
{
  size_t now = 0, peak = 0;
  assert_ok(hipmm_device_held_bytes(0, &now, &peak));
  return now;
}

size_t fixture_peak_held_bytes(void)
{
  size_t now = 0, peak = 0;
  assert_ok(hipmm_device_held_bytes(0, &now, &peak));
  return peak;
}

/* ---- Memory and streams ---- */

void *fixture_allocate(size_t bytes, hipmm_stream_t stream)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate(NULL, bytes, stream, &ptr));
  assert_true(bytes == 0 || ptr);
  return ptr;
}

void fixture_free(void *ptr, size_t bytes, hipmm_stream_t stream)
{
  assert_ok(hipmm_deallocate(NULL, ptr, bytes, stream));
}

void fixture_fill(void *ptr, unsigned char value, size_t bytes)
{
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, value, bytes, NULL), 0);
}

/* By words: valgrind's memcmp() looks at each byte by itself, and most of a test's time would be spent there. */
static bool is_full_of(const unsigned char *bytes, unsigned char value, size_t count)
{
  uint64_t full = 0x0101010101010101 * (uint64_t)value, word;
  size_t at = 0;
  for (; at + sizeof word <= count; at += sizeof word) {
    memcpy(&word, bytes + at, sizeof word);
    if (word != full) return false;
  }
  while (at < count && bytes[at] == value) at++;
  return at == count;
}

bool fixture_holds(const void *ptr, unsigned char value, size_t bytes)
{
  unsigned char *copy = malloc(bytes + 1);
  assert_non_null(copy);
  bool good = !fixture_hip()->DeviceSynchronize() && !fixture_hip()->Memcpy(copy, ptr, bytes, TO_HOST) &&
              is_full_of(copy, value, bytes);
  free(copy);
  return good;
}

/* A block to look at, or a copy of it, which follows the struct. */
struct look {
  const unsigned char *bytes;
  size_t count;
  unsigned char value;
  atomic_uint *wrong;
  unsigned char copy[];
};

static void look_at(void *argument)
{
  struct look *look = argument;
  if (!is_full_of(look->bytes, look->value, look->count)) atomic_fetch_add(look->wrong, 1);
  free(look);
}

int fixture_look(const void *ptr, unsigned char value, size_t bytes, hipmm_stream_t stream, atomic_uint *wrong)
{
  bool copies = !on_software();
  struct look *look = malloc(sizeof *look + (copies ? bytes : 0));
  if (!look) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  *look = (struct look){copies ? look->copy : ptr, bytes, value, wrong};
  int code = copies ? fixture_hip()->MemcpyAsync(look->copy, ptr, bytes, TO_HOST, stream) : 0;
  if (!code) code = fixture_hip()->LaunchHostFunc(stream, look_at, look);
  if (code) free(look);
  return code;
}

hipmm_stream_t fixture_stream(void)
{
  hipmm_stream_t stream = NULL;
  assert_int_equal(fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING), 0);
  return stream;
}

void fixture_drop_stream(hipmm_stream_t stream)
{
  assert_int_equal(fixture_hip()->StreamDestroy(stream), 0);
}

/* ---- Threads ---- */

enum { MOST_THREADS = 8, RIVALS = 4 };

struct thread {
  pthread_t thread;
  void (*run)(int *failures);
  int failures;
};

static struct thread threads[MOST_THREADS];
static int n_threads;

static void *run_thread(void *argument)
{
  struct thread *thread = argument;
  thread->run(&thread->failures);
  return NULL;
}

void fixture_start_threads(int count, void (*run)(int *failures))
{
  assert_in_range(count, 1, MOST_THREADS);
  for (n_threads = 0; n_threads < count; n_threads++) {
    struct thread *thread = &threads[n_threads];
    *thread = (struct thread){.run = run};
    assert_int_equal(pthread_create(&thread->thread, NULL, run_thread, thread), 0);
  }
}

void fixture_join_threads(void)
{
  for (int i = 0; i < n_threads; i++) pthread_join(threads[i].thread, NULL);
  for (int i = 0; i < n_threads; i++) assert_int_equal(threads[i].failures, 0);
}

void fixture_run_threads(int count, void (*run)(int *failures))
{
  fixture_start_threads(count, run);
  fixture_join_threads();
}

static struct contest {
  pthread_barrier_t start;
  void *const *blocks;
  int n_blocks;
  size_t bytes;
  atomic_int freed;
} contest;

static void free_all(int *failures)
{
  (void)failures; /* most frees fail, in whatever thread */
  pthread_barrier_wait(&contest.start);
  for (int i = 0; i < contest.n_blocks; i++)
    if (!hipmm_deallocate(NULL, contest.blocks[i], contest.bytes, NULL)) atomic_fetch_add(&contest.freed, 1);
}

void fixture_free_in_rivalry(void *const *blocks, int n_blocks, size_t bytes)
{
  contest = (struct contest){.blocks = blocks, .n_blocks = n_blocks, .bytes = bytes};
  pthread_barrier_init(&contest.start, NULL, RIVALS);
  fixture_run_threads(RIVALS, free_all);
  pthread_barrier_destroy(&contest.start);
  assert_int_equal(contest.freed, n_blocks);
}

/* ---- Calls of HIP ---- */

uint64_t fixture_all_calls(void)
{
  uint64_t calls = 0, count;
  for (size_t row = 0; software()->call(row, &count); row++) calls += count;
  return calls;
}

uint64_t fixture_calls_that_wait(void)
{
  return software()->calls("hipDeviceSynchronize") + software()->calls("hipStreamSynchronize") +
         software()->calls("hipEventSynchronize");
}

int fixture_says_captured(hipmm_stream_t stream, int *status)
{
  (void)stream;
  *status = 1;
  return 0;
}

/* ---- Failing calls ---- */

void fixture_fail_call(const char *name, uint64_t nth, int code)
{
  needs_software();
  assert_true(software()->schedule(name, nth, code));
}

struct sweep {
  const char *runtime_options, *graph;
  void (*body)(void);
};

/* Builds the stack and runs the body once; false if it could not be built. Initialising sets the runtime up anew, so
 * that calls are counted and made to fail only from then on. `nth` 0: none fails. */
static bool run(const struct sweep *sweep, const char *name, uint64_t nth)
{
  assert_ok(initialise(sweep->runtime_options, sweep->graph));
  software()->reset_calls();
  if (nth) fixture_fail_call(name, nth, 0);
  bool is_built = !build();
  if (is_built) sweep->body();
  return is_built;
}

static uint64_t count_calls(const struct sweep *sweep, const char *name)
{
  software()->reset();
  assert_true(run(sweep, name, 0));
  hipmm_finalize();
  return software()->calls(name);
}

unsigned fixture_fail_each_call(const char *runtime_options, const char *graph, void (*body)(void))
{
  const struct sweep sweep = {runtime_options, graph, body};
  unsigned failed = 0;
  const char *name;
  needs_software();
  for (size_t row = 0; (name = software()->call(row, NULL)); row++) {
    uint64_t n = count_calls(&sweep, name);
    for (uint64_t nth = 1; nth <= n; nth++, failed++) {
      software()->reset();
      run(&sweep, name, nth);
      if (!nothing_is_lost()) fail_msg("when call %llu of %s failed", (unsigned long long)nth, name);
    }
  }
  software()->reset();
  return failed;
}

int fixture_unlinked_file(void)
{
  char name[64], folder[512], target[512];
  assert_non_null(getcwd(folder, sizeof folder));
  for (int i = 3; i < 1000; i++) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", i);
    ssize_t length = readlink(name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = '\0';
    if (!strncmp(target, folder, strlen(folder)) && strstr(target, "(deleted)")) return i;
  }
  fail_msg("the file is not open");
  return -1;
}
