/* SPDX-License-Identifier: MIT */
/* Tests of what resources do for threads that come and end: nothing of a thread stays behind, a thread may end while
 * resources come and go. Threads that look at resources and change them may do so while others allocate. */
#include "../support/fixture.h"
#include <hipmm/inspect.h>

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

/* What a thread has added is written before the next one begins. */
static void run_thread_and_flush(const char *type)
{
  run_thread(use_until_the_end);
  assert_ok(hipmm_resource_perform(fixture_resource(type), "flush"));
}

static void writes_for_threads(const char *type, const char *file, const char *events)
{
  char graph[400];
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s', 'file': '%s'}, 'device']", type, file);
  fixture_start(graph);
  use(1000);
  assert_int_equal(pthread_key_create(&key, use_at_the_end), 0);
  run_thread_and_flush(type);
  int64_t bytes = fixture_value(type, "metadata_bytes"), before = fixture_value(type, events);
  run_thread_and_flush(type);
  int64_t each = fixture_value(type, events) - before;
  for (int i = 0; i < THREADS; i++) run_thread_and_flush(type);
  pthread_key_delete(key);
  assert_true(each >= 4); /* of the thread and of a destructor */
  assert_int_equal(fixture_value(type, events), before + (THREADS + 1) * each);
  assert_int_equal(fixture_value(type, "metadata_bytes"), bytes);
  hipmm_finalize();
}

static void write_for_threads_whose_destructors_use_them(void **state)
{
  (void)state;
  char *folder = new_folder(), *file = path_in(folder, "rows");
  writes_for_threads("logging", file, "rows");
  writes_for_threads("recording", file, "events");
  free(file);
  remove_folder(folder);
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

/* ---- Each call beside each other one ---- */

/* Functions of the program. */
static enum hipmm_status give(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)stream;
  *ptr_out = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

static void take_back(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  free(ptr);
}

enum { OBSERVERS = 2, ALLOCATING = 3, ROUNDS = 25, HELD = 8 };

static struct hipmm_resource *observed[16]; /* all resources of the stack */
static int n_observed;
static atomic_int n_started, n_allocating;

/* Those of all types; most have none of them. */
static const char *const actions[] = {"flush", "verify", "push", "pop", "log_outstanding"};

/* An option that is set again and again. */
struct setting {
  const char *path, *values[2];
};

static const struct setting *setting; /* NULL: none */

static void remember(void *arg, struct hipmm_resource *resource)
{
  (void)arg;
  if (n_observed < (int)(sizeof observed / sizeof *observed)) observed[n_observed++] = resource;
}

static void count_wrong_value(void *wrong, const struct hipmm_value *value)
{
  *(int *)wrong += !value->name;
}

static void count_wrong_option(void *wrong, const struct hipmm_option_state *option)
{
  *(int *)wrong += !option->name;
}

static void count_wrong_block(void *wrong, const struct hipmm_extent *block)
{
  *(int *)wrong += !block->ptr || !block->bytes;
}

/* What a resource does not have it may refuse. */
static int is_wrong(enum hipmm_status status)
{
  return status != HIPMM_OK && status != HIPMM_E_NOT_SUPPORTED;
}

static void observe(struct hipmm_resource *resource, int *failures)
{
  static _Thread_local char data;
  void *previous = NULL;
  char *text = NULL;
  *failures += is_wrong(hipmm_resource_visit_values(resource, count_wrong_value, failures));
  *failures += is_wrong(hipmm_resource_visit_options(resource, count_wrong_option, failures));
  *failures += is_wrong(hipmm_resource_visit_blocks(resource, count_wrong_block, failures));
  *failures += is_wrong(hipmm_resource_reset_peaks(resource));
  *failures += is_wrong(hipmm_resource_trim(resource, 0));
  *failures += is_wrong(hipmm_resource_set_user_data(resource, &data, NULL));
  *failures += hipmm_resource_get_user_data(resource, &previous) != HIPMM_OK;
  *failures += is_wrong(hipmm_resource_report(resource, &text));
  hipmm_string_free(text);
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
    enum hipmm_status status = hipmm_resource_perform(resource, actions[i]);
    *failures += is_wrong(status) && status != HIPMM_E_ARGUMENT && status != HIPMM_E_STATE;
  }
}

/* What a thread does with a block of its own, and with none; and what is set meanwhile. */
static void look_and_set(int *failures)
{
  static char foreign[1000];
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  void *block = NULL, *large = NULL;
  *failures += hipmm_allocate(NULL, 700, NULL, &block) != HIPMM_OK;
  if (block && !hipmm_pointer_lookup(block, &pointer)) {
    *failures += pointer.bytes != 700;
    hipmm_resource_release(pointer.resource);
  }
  for (int i = 0; setting && i < 2; i++) *failures += hipmm_set(setting->path, setting->values[i]) != HIPMM_OK;
  *failures += block && hipmm_deallocate(NULL, block, 700, NULL);
  *failures += hipmm_deallocate(NULL, foreign, sizeof foreign, NULL) == HIPMM_OK;
  if (!hipmm_allocate(NULL, 1000 * MIB, NULL, &large))
    *failures += hipmm_deallocate(NULL, large, 1000 * MIB, NULL) != HIPMM_OK;
  if (!hipmm_allocate_aligned(NULL, 700, 4096, NULL, &block))
    *failures += hipmm_deallocate_aligned(NULL, block, 700, 4096, NULL) != HIPMM_OK;
}

static void observe_all(int *failures)
{
  while (atomic_load(&n_allocating)) {
    char *json = NULL;
    for (int i = 0; i < n_observed; i++) observe(observed[i], failures);
    look_and_set(failures);
    *failures += hipmm_snapshot(&json) != HIPMM_OK;
    hipmm_string_free(json);
  }
}

static void allocate_and_check(int *failures)
{
  static const size_t sizes[HELD] = {1, 300, 4096, 5000, 70000, 256, 300, 1 << 20};
  for (int round = 0; round < ROUNDS; round++) {
    unsigned char *blocks[HELD];
    for (int i = 0; i < HELD; i++) {
      blocks[i] = NULL;
      *failures += hipmm_allocate(NULL, sizes[i], NULL, (void **)&blocks[i]) != HIPMM_OK;
      if (blocks[i]) memset(blocks[i], (int)((uintptr_t)&blocks >> 12) + i, sizes[i]);
    }
    for (int i = 0; i < HELD; i++) {
      unsigned char value = (unsigned char)((int)((uintptr_t)&blocks >> 12) + i);
      if (!blocks[i]) continue;
      *failures += blocks[i][0] != value || blocks[i][sizes[i] - 1] != value;
      *failures += hipmm_deallocate(NULL, blocks[i], sizes[i], NULL) != HIPMM_OK;
    }
  }
  atomic_fetch_sub(&n_allocating, 1);
}

static void allocate_or_observe(int *failures)
{
  if (atomic_fetch_add(&n_started, 1) < ALLOCATING)
    allocate_and_check(failures);
  else
    observe_all(failures);
}

/* A lock that is missing is a data race, which ThreadSanitizer reports whatever the order in which the threads run. */
static void take_each_call_beside_each_other_one(void **state)
{
  static const struct {
    const char *top;
    struct setting setting;
  } rows[] = {
      {"'pool'", {0}},
      {"{'type': 'arena', 'dump_log_on_failure': true, 'dump_log_file': '%s/arena'}", {0}},
      {"{'type': 'fixed_size', 'block_size': '1MiB'}", {0}},
      {"{'type': 'binning', 'bins': [{'size': '1KiB'}, {'size': '16KiB'}]}, 'pool'", {0}},
      {"'monotonic'", {0}},
      {"{'type': 'guard', 'quarantine_size': '1MiB'}, 'pool'", {"devices/0/guard/stacks", {"all", "off"}}},
      {"{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0}, 'pool'", {0}},
      {"{'type': 'limiting', 'limit': '100MiB'}, 'statistics', 'pool'",
       {"devices/0/limiting/limit", {"90MiB", "100MiB"}}},
      {"{'type': 'aligned', 'alignment': 4096}, 'pool'", {0}},
      {"{'type': 'logging', 'file': '%s/log.csv'}, {'type': 'recording', 'file': '%s/log.rec', 'stacks': 'all', "
       "'stack_sample': 0}, "
       "'pool'",
       {0}},
      {"{'type': 'advise', 'read_mostly': true}, 'managed'", {"devices/0/advise/read_mostly", {"false", "true"}}},
      {"'async'", {0}},
      {"'thread_safe', 'device'", {0}},
      {"{'type': 'callback', 'allocator': 'beside'}", {0}},
      {"'pool', {'type': 'device', 'handle_type': 'posix_fd'}", {0}},
      {"'host'", {0}},
  };
  const struct hipmm_allocator allocator = {sizeof allocator, give, take_back, NULL};
  char *folder = new_folder();
  (void)state;
  assert_ok(hipmm_allocator_register("beside", &allocator));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char top[300], graph[400];
    snprintf(top, sizeof top, rows[i].top, folder, folder);
    bool has_source = strstr(top, "managed") || strstr(top, "async") || strstr(top, "'device'") ||
                      strstr(top, "callback") || strstr(top, "'host'");
    snprintf(graph, sizeof graph, "'stack': [%s%s]", top, has_source ? "" : ", 'device'");
    setting = rows[i].setting.path ? &rows[i].setting : NULL;
    fixture_start(graph);
    use(1000);
    n_observed = 0;
    assert_ok(hipmm_resource_visit(0, remember, NULL));
    assert_true(n_observed > 0);
    atomic_store(&n_started, 0);
    atomic_store(&n_allocating, ALLOCATING);
    fixture_run_threads(ALLOCATING + OBSERVERS, allocate_or_observe);
    assert_ok(hipmm_finalize());
  }
  assert_ok(hipmm_allocator_register("beside", NULL));
  remove_folder(folder);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(int count, char **arguments)
{
  if (count == 3 && !strcmp(arguments[1], "without-a-key")) return be_the_program_without_a_key(arguments[2]);
  const struct CMUnitTest tests[] = {
      TEST(keep_nothing_of_a_thread_whose_destructors_use_them),
      TEST(write_for_threads_whose_destructors_use_them),
      TEST(leave_the_programs_values_of_threads_alone),
      TEST(come_and_go_while_threads_end),
      TEST(take_each_call_beside_each_other_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
