/* SPDX-License-Identifier: MIT */
/* Tests of what resources do for threads that come and end: nothing of a thread stays behind, a thread may end while
 * resources come and go, and one that is cancelled leaves no lock held. */
#include "../support/fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ThreadSanitizer has a destructor of its own, after whose last call nothing may be locked. */
#ifdef __SANITIZE_THREAD__
enum { DESTRUCTOR_ROUNDS = 2 };
#else
enum { DESTRUCTOR_ROUNDS = 8 };
#endif

enum { THREADS = 20, RESOURCES = 30 };

static void use(size_t bytes)
{
  void *ptr = NULL;
  if (!hipmm_allocate(NULL, bytes, NULL, &ptr)) hipmm_deallocate(NULL, ptr, bytes, NULL);
}

/* ---- Destructors of the program's ---- */

static pthread_key_t key;

/* The system calls destructors again as long as there are values, but no more than four times: this one is called after
 * the last call of ours. */
static void use_at_the_end(void *rounds)
{
  use(1000);
  if (rounds != (void *)1) pthread_setspecific(key, (char *)rounds - 1);
}

static void *use_until_the_end(void *unused)
{
  (void)unused;
  use(1000);
  pthread_setspecific(key, (void *)(uintptr_t)DESTRUCTOR_ROUNDS);
  return NULL;
}

static void run_thread(void *(*run)(void *))
{
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
  pthread_join(thread, NULL);
}

static void keeps_nothing_of_a_thread(const char *graph, const char *type, const char *value)
{
  fixture_start(graph);
  use(1000); /* the type has its own destructor, which the system calls first, from now on */
  assert_int_equal(pthread_key_create(&key, use_at_the_end), 0);
  run_thread(use_until_the_end);
  int64_t records = fixture_value(type, value);
  for (int i = 0; i < THREADS; i++) run_thread(use_until_the_end);
  assert_int_equal(fixture_value(type, value), records);
  pthread_key_delete(key);
  assert_ok(hipmm_resource_trim(fixture_resource(type), 0));
  assert_int_equal(fixture_value(type, "reserved_bytes"), 0);
  hipmm_finalize();
}

static void keep_nothing_of_a_thread_whose_destructors_use_them(void **state)
{
  (void)state;
  keeps_nothing_of_a_thread("'stack': ['pool', 'device']", "pool", "metadata_bytes");
  keeps_nothing_of_a_thread("'stack': ['arena', 'device']", "arena", "arenas");
}

/* ---- Without a key ---- */

enum { MOST_KEYS = 4096 };

static pthread_key_t keys[MOST_KEYS];
static int n_keys, n_changed;

static void *use_with_values(void *unused)
{
  for (int i = 0; i < n_keys; i++) pthread_setspecific(keys[i], &keys[i]);
  for (int i = 0; i < 3; i++) use(1000);
  for (int i = 0; i < n_keys; i++) n_changed += pthread_getspecific(keys[i]) != &keys[i];
  return unused;
}

/* The program has all keys for thread-specific values that there are. */
static int be_the_program_without_a_key(const char *type)
{
  char graph[100];
  int64_t reserved_bytes = -1;
  struct hipmm_resource *resource;
  while (n_keys < MOST_KEYS && !pthread_key_create(&keys[n_keys], NULL)) n_keys++;
  snprintf(graph, sizeof graph, "{\"runtime\": \"software\", \"stack\": [\"%s\", \"device\"]}", type);
  if (hipmm_init_from_string(graph) || hipmm_resource_get_current(&resource)) return 1;
  for (int i = 0; i < THREADS; i++) run_thread(use_with_values);
  if (hipmm_resource_trim(resource, 0) || hipmm_resource_query(resource, "reserved_bytes", &reserved_bytes)) return 2;
  hipmm_resource_release(resource);
  if (hipmm_finalize() || reserved_bytes) return 3;
  return n_changed ? 4 : 0;
}

/* Key 0 is often the program's: a value that hipmm sets without a key of its own would replace the program's. */
static void leave_the_programs_values_of_threads_alone(void **state)
{
  static const char *const types[] = {"pool", "arena"};
  (void)state;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const char *const arguments[] = {"without-a-key", types[i], NULL};
    struct outcome outcome = run_again(arguments, NULL);
    assert_string_equal(outcome.error, "");
    assert_int_equal(outcome.status, 0);
  }
}

/* ---- Resources that come and go ---- */

static atomic_bool is_over;

static void *end_threads(void *failures)
{
  while (!atomic_load(&is_over)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_until_the_end, NULL))
      atomic_fetch_add((atomic_int *)failures, 1);
    else
      pthread_join(thread, NULL);
  }
  return NULL;
}

static void exchange_resources(const char *type)
{
  struct hipmm_resource *device, *resource;
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &device));
  for (int i = 0; i < RESOURCES; i++) {
    assert_ok(hipmm_resource_create(0, type, NULL, &device, 1, &resource));
    hipmm_resource_release(resource);
  }
  hipmm_resource_release(device);
}

/* What a resource's record of caches is, for the end of a thread, is there before that looks at it: for
 * ThreadSanitizer. */
static void come_and_go_while_threads_end(void **state)
{
  (void)state;
  static atomic_int failures;
  pthread_t thread;
  fixture_start("'stack': ['pool', 'device']");
  use(1000);
  assert_int_equal(pthread_key_create(&key, use_at_the_end), 0);
  atomic_store(&is_over, false);
  assert_int_equal(pthread_create(&thread, NULL, end_threads, &failures), 0);
  exchange_resources("pool");
  exchange_resources("arena");
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  pthread_key_delete(key);
  assert_int_equal(atomic_load(&failures), 0);
}

/* ---- Cancelled threads ---- */

enum { HANG_SECONDS = 20, WORK_MICROSECONDS = 30000 };

static int failed_calls; /* of the thread */

/* A function of the program's with a cancellation point, called under the locks of resources above. */
static enum hipmm_status give(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)stream;
  pthread_testcancel();
  *ptr_out = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

static void take_back(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  pthread_testcancel();
  free(ptr);
}

static void allocate_and_trim(void)
{
  void *ptr = NULL;
  failed_calls += hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL);
  struct hipmm_resource *resource = NULL;
  failed_calls += hipmm_resource_get_current(&resource) || hipmm_resource_trim(resource, 0);
  hipmm_resource_release(resource);
}

static void work(void *unused)
{
  (void)unused;
  usleep(WORK_MICROSECONDS);
}

/* The device is busy, so that calls wait for it. */
static void wait_for_the_device(void)
{
  failed_calls += fixture_hip()->LaunchHostFunc(NULL, work, NULL) != 0;
  allocate_and_trim();
}

static void flush(void)
{
  struct hipmm_resource *resource = NULL;
  use(1000);
  failed_calls += hipmm_resource_get_current(&resource) || hipmm_resource_perform(resource, "flush");
  hipmm_resource_release(resource);
}

static char graph_file[256];

static void begin_again(void)
{
  failed_calls += hipmm_finalize() || hipmm_init_from_file(graph_file);
}

static void ignore_line(void *unused, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)unused, (void)level, (void)about, (void)message;
  pthread_testcancel();
}

/* The thread is to end at the first cancellation point, and ends after the calls. */
static void *run_cancelled(void *body)
{
  void (*run)(void);
  memcpy(&run, &body, sizeof run);
  pthread_cancel(pthread_self());
  run();
  pthread_testcancel();
  return NULL;
}

/* Then another thread does the same. */
static void runs_cancelled(void (*run)(void))
{
  pthread_t thread;
  void *body, *result = NULL;
  memcpy(&body, &run, sizeof body);
  failed_calls = 0;
  alarm(HANG_SECONDS);
  assert_int_equal(pthread_create(&thread, NULL, run_cancelled, body), 0);
  pthread_join(thread, &result);
  assert_ptr_equal(result, PTHREAD_CANCELED);
  run();
  alarm(0);
  assert_int_equal(failed_calls, 0);
}

static void leave_no_lock_held_by_a_cancelled_thread(void **state)
{
  static const char *const types[] = {
      "'pool'",      "'arena'",       "'fixed_size'",
      "'monotonic'", "'thread_safe'", "{'type': 'guard', 'quarantine_size': '1MiB'}, 'pool'",
  };
  const struct hipmm_allocator allocator = {sizeof allocator, give, take_back, NULL};
  (void)state;
  assert_ok(hipmm_allocator_register("cancelled", &allocator));
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    char graph[200];
    snprintf(graph, sizeof graph, "'stack': [%s, {'type': 'callback', 'allocator': 'cancelled'}]", types[i]);
    fixture_start(graph);
    runs_cancelled(allocate_and_trim);
    assert_ok(hipmm_finalize());
  }
  assert_ok(hipmm_allocator_register("cancelled", NULL));
}

static void leave_no_lock_of_a_runtime_held(void **state)
{
  static const char *const stacks[] = {"'pool', 'device'", "'arena', 'device'", "'device'"};
  (void)state;
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
    char graph[200];
    snprintf(graph, sizeof graph, "'stack': [%s]", stacks[i]);
    fixture_start(graph);
    runs_cancelled(wait_for_the_device);
    assert_ok(hipmm_finalize());
  }
}

static void leave_no_lock_of_a_file_held(void **state)
{
  char graph[400];
  char *folder = new_folder();
  (void)state;
  snprintf(graph, sizeof graph, "'stack': [{'type': 'logging', 'file': '%s/log.csv'}, 'device']", folder);
  fixture_start(graph);
  runs_cancelled(flush);
  assert_ok(hipmm_finalize());
  remove_folder(folder);
}

static void leave_no_lock_of_the_core_held(void **state)
{
  static const char graph[] = "{\"runtime\": \"software\", \"stack\": [\"pool\", \"device\"]}";
  char *folder = new_folder();
  (void)state;
  snprintf(graph_file, sizeof graph_file, "%s/hipmm.json", folder);
  assert_true(write_file(graph_file, graph, sizeof graph - 1));
  fixture_start("'stack': ['pool', 'device']");
  assert_ok(hipmm_log_set_sink(ignore_line, NULL, HIPMM_LOG_TRACE));
  runs_cancelled(begin_again);
  assert_ok(hipmm_log_set_sink(NULL, NULL, HIPMM_LOG_ERROR));
  remove_folder(folder);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(int count, char **arguments)
{
  if (count == 3 && !strcmp(arguments[1], "without-a-key")) return be_the_program_without_a_key(arguments[2]);
  const struct CMUnitTest tests[] = {
      TEST(keep_nothing_of_a_thread_whose_destructors_use_them),
      TEST(leave_the_programs_values_of_threads_alone),
      TEST(come_and_go_while_threads_end),
      TEST(leave_no_lock_held_by_a_cancelled_thread),
      TEST(leave_no_lock_of_a_runtime_held),
      TEST(leave_no_lock_of_a_file_held),
      TEST(leave_no_lock_of_the_core_held),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
