/* SPDX-License-Identifier: MIT */
/* Tests of what is shared by all resources of a process: each function that changes a part of it beside each function that
 * reads that part, in many threads. A lock that is missing is a data race, which ThreadSanitizer reports whatever the order
 * in which the threads run; without it, the test sees what calls come to. */
#include "../support/fixture.h"

#include <hipmm/buffer.h>
#include <hipmm/inspect.h>
#include <hipmm/share.h>
#include <hipmm/torch.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  TIMES = 2,
  ROUNDS = 8,
  OF_EACH = 2,
  OBJECTS = 10,
  LOGGED = 200,
  REGION_BYTES = 1 << 20,
  EXPORTED_BYTES = 2 << 20
};

/* "below" is suspended by nobody; "sleeper" is used by nobody else. */
static const char graph[] = "'resources': {'memory': {'type': 'device', 'handle_type': 'posix_fd'},"
                            " 'below': {'type': 'pool', 'upstream': 'memory'},"
                            " 'top': {'type': 'failure_callback', 'callback': 'give_up', 'upstream': 'below'},"
                            " 'sleeper': {'type': 'pool', 'growth': 'mapped', 'upstream': 'memory'},"
                            " 'shared': {'type': 'async', 'handle_type': 'posix_fd'}},"
                            " 'devices': {'default': 'top'}";

static struct hipmm_resource *top, *below, *memory, *sleeper, *shared, *other;
static struct hipmm_resource *logged_once, *logged_twice; /* a recording, and a logging on top of it */
static char *folder, *log_name;
static _Alignas(HIPMM_ALIGNMENT) char regions[OF_EACH][REGION_BYTES];
static _Thread_local int number; /* of the thread, among those that do the same */

/* ---- What threads do. True: all was as it should be ---- */

static bool is_one_of(enum hipmm_status status, enum hipmm_status one, enum hipmm_status another)
{
  return status == one || status == another;
}

static bool make_host_buffers(void)
{
  struct hipmm_host_buffer *buffer = NULL;
  return !hipmm_host_buffer_create(NULL, 100, NULL, &buffer) && !hipmm_host_buffer_destroy(buffer);
}

static bool make_buffers(void)
{
  struct hipmm_buffer *buffers[OBJECTS];
  int failures = 0;
  for (int i = 0; i < OBJECTS; i++) failures += hipmm_buffer_create(top, 100, NULL, &buffers[i]) != HIPMM_OK;
  for (int i = 0; i < OBJECTS && !failures; i++)
    if (!hipmm_buffer_try_destroy(buffers[i])) failures += hipmm_buffer_destroy(buffers[i]) != HIPMM_OK;
  return !failures;
}

static bool make_current(void)
{
  return !hipmm_resource_set_for_device(0, other, NULL) && !hipmm_resource_reset_for_device(0);
}

static bool allocate_for_pytorch(void)
{
  void *ptr = hipmm_torch_malloc(1000, 0, NULL);
  hipmm_torch_free(ptr, 1000, 0, NULL);
  return ptr != NULL;
}

static bool create_resources(void)
{
  struct hipmm_resource *made = NULL;
  int64_t value = -1;
  char path[200];
  if (hipmm_resource_create(0, "statistics", NULL, &top, 1, &made)) return false;
  snprintf(path, sizeof path, "created/%s/current_bytes", hipmm_resource_name(made));
  bool is_good = !hipmm_query(path, &value) && !value;
  hipmm_resource_release(made);
  return is_good;
}

static void look_at_resource(void *arg, struct hipmm_resource *resource)
{
  *(bool *)arg &= *hipmm_resource_name(resource) != '\0';
}

static bool look_at_all(void)
{
  char *json = NULL;
  bool is_good = true;
  is_good &= !hipmm_resource_visit(0, look_at_resource, &is_good);
  is_good &= !hipmm_snapshot(&json);
  hipmm_string_free(json);
  return is_good;
}

static bool suspend_and_resume(void)
{
  return is_one_of(hipmm_resource_suspend(sleeper, HIPMM_CONTENT_KEEP), HIPMM_OK, HIPMM_E_STATE) &&
         is_one_of(hipmm_resource_resume(sleeper), HIPMM_OK, HIPMM_E_STATE);
}

static bool change_the_log(void)
{
  return !hipmm_log_set_file(log_name) && !hipmm_log_set_level(HIPMM_LOG_TRACE) &&
         !hipmm_log_set_level(HIPMM_LOG_WARNING);
}

static bool take_a_region(void)
{
  struct hipmm_resource *made = NULL;
  char options[100];
  snprintf(options, sizeof options, "{\"region\": \"region-%d\"}", number);
  enum hipmm_status status = hipmm_resource_create(0, "fixed_buffer", options, NULL, 0, &made);
  hipmm_resource_release(made);
  return is_one_of(status, HIPMM_OK, HIPMM_E_CONFIG); /* who looks at all resources may still have the one before */
}

static void hear(void *arg, const struct hipmm_event *event)
{
  (void)arg, (void)event;
}

static bool watch_what_is_held(void)
{
  struct hipmm_resource *made = NULL;
  void *ptr = NULL;
  if (hipmm_resource_create(0, "hooks", "{\"hooks\": \"hear\"}", &memory, 1, &made)) return false;
  bool is_good = !hipmm_allocate(made, 5000, NULL, &ptr) && !hipmm_deallocate(made, ptr, 5000, NULL);
  hipmm_resource_release(made);
  return is_good;
}

/* More than there is: other resources are asked, the program's function is called, which others replace. */
static bool fail_for_want_of_memory(void)
{
  void *ptr;
  return is_one_of(hipmm_allocate(top, 1000 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY, HIPMM_E_LIMIT);
}

static int give_up(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static bool replace_the_function(void)
{
  return !hipmm_set("devices/0/top/callback", "give_up_too") && !hipmm_set("devices/0/top/callback", "give_up");
}

/* A bin of another resource is added; one that cannot be is not. */
static bool add_dependencies(void)
{
  struct hipmm_resource *bins = NULL, *bin = NULL, *passes = NULL;
  char path[200], value[200];
  bool is_good = !hipmm_resource_create(0, "binning", NULL, &top, 1, &bins) &&
                 !hipmm_resource_create(0, "fixed_size", "{\"block_size\": 16384}", &top, 1, &bin) &&
                 !hipmm_resource_create(0, "statistics", NULL, &top, 1, &passes);
  if (is_good) {
    snprintf(path, sizeof path, "created/%s/extra_bins", hipmm_resource_name(bins));
    snprintf(value, sizeof value, "[{\"size\": 8192, \"resource\": \"%s\"}]", hipmm_resource_name(passes));
    is_good = hipmm_set(path, value) == HIPMM_E_CONFIG;
    snprintf(value, sizeof value, "[{\"size\": 16384, \"resource\": \"%s\"}]", hipmm_resource_name(bin));
    is_good = !hipmm_set(path, value) && is_good;
  }
  hipmm_resource_release(bins);
  hipmm_resource_release(bin);
  hipmm_resource_release(passes);
  return is_good;
}

static bool export_the_pool(void)
{
  int fd = -1;
  return !hipmm_share_export_fd(shared, &fd) && !close(fd);
}

static void *exported[OF_EACH]; /* a block of each thread, which stays */

static bool import_blocks(void)
{
  enum { MOST_PARTS = 8 };
  struct hipmm_share_block block;
  struct hipmm_share_part parts[MOST_PARTS];
  void *imported = NULL;
  if (!exported[number] && hipmm_allocate(sleeper, EXPORTED_BYTES, NULL, &exported[number]))
    return true; /* it is suspended */
  enum hipmm_status status = hipmm_share_export_block(sleeper, exported[number], &block, parts, MOST_PARTS);
  if (status) return status == HIPMM_E_STATE;
  bool is_good = !hipmm_share_import_block(memory, &block, parts, block.n_parts, &imported);
  for (uint64_t i = 0; i < block.n_parts; i++) close(parts[i].fd);
  return is_good && !hipmm_deallocate(memory, imported, EXPORTED_BYTES, NULL);
}

/* Each of its own file, while others begin files anew. */
static bool open_logs(void)
{
  static const char *const types[] = {"logging", "recording"};
  bool is_good = true;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    struct hipmm_resource *made = NULL;
    char options[400];
    snprintf(options, sizeof options, "{\"file\": \"%s/%s-%d\"}", folder, types[i], number);
    is_good &= !hipmm_resource_create(0, types[i], options, &below, 1, &made);
    hipmm_resource_release(made);
  }
  return is_good;
}

static void *use_logs(void *failures)
{
  void *ptr = NULL;
  if (hipmm_allocate(logged_twice, 1000, NULL, &ptr) || hipmm_deallocate(logged_twice, ptr, 1000, NULL))
    ++*(int *)failures;
  return NULL;
}

/* What logs have of a thread that ended, another one gets. */
static bool end_a_thread(void)
{
  pthread_t thread;
  int failures = 0;
  if (pthread_create(&thread, NULL, use_logs, &failures)) return false;
  pthread_join(thread, NULL);
  return !failures;
}

/* Enough for several files. */
static bool fill_logs(void)
{
  bool is_good = true;
  for (int i = 0; i < LOGGED; i++) {
    void *ptr = NULL;
    is_good &= !hipmm_allocate(logged_twice, 1000, NULL, &ptr) && !hipmm_deallocate(logged_twice, ptr, 1000, NULL);
  }
  return is_good && !hipmm_resource_perform(logged_twice, "flush") && !hipmm_resource_perform(logged_once, "flush");
}

/* ---- All of it at once ---- */

struct deed {
  const char *name;
  bool (*run)(void);
};

static const struct deed deeds[] = {
    {"host buffers", make_host_buffers},
    {"buffers", make_buffers},
    {"the resource in force", make_current},
    {"PyTorch's memory", allocate_for_pytorch},
    {"resources made in code", create_resources},
    {"all resources", look_at_all},
    {"suspended resources", suspend_and_resume},
    {"the log", change_the_log},
    {"regions", take_a_region},
    {"watched sources", watch_what_is_held},
    {"want of memory", fail_for_want_of_memory},
    {"a function of the program", replace_the_function},
    {"dependencies", add_dependencies},
    {"an exported pool", export_the_pool},
    {"imported blocks", import_blocks},
    {"logs", open_logs},
    {"full logs", fill_logs},
    {"threads that end", end_a_thread},
};

enum { DEEDS = sizeof deeds / sizeof *deeds, THREADS = DEEDS * OF_EACH };

struct doer {
  pthread_t thread;
  const struct deed *deed;
  int number, failures;
  enum hipmm_status status;
  char message[300]; /* of its first failure */
};

static pthread_barrier_t all_are_there;

static void *do_it_often(void *doer_)
{
  struct doer *doer = doer_;
  number = doer->number;
  pthread_barrier_wait(&all_are_there);
  for (int round = 0; round < ROUNDS; round++) {
    if (doer->deed->run() || doer->failures++) continue;
    snprintf(doer->message, sizeof doer->message, "%s", hipmm_last_error_message());
  }
  return NULL;
}

static struct hipmm_resource *held(const char *name)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_by_name(0, name, &resource));
  return resource;
}

static struct hipmm_resource *new_log(const char *type, const char *rotate_size, struct hipmm_resource *upstream)
{
  struct hipmm_resource *made = NULL;
  char options[400];
  snprintf(options, sizeof options, "{\"file\": \"%s/%s\", \"rotate_size\": \"%s\"}", folder, type, rotate_size);
  assert_ok(hipmm_resource_create(0, type, options, &upstream, 1, &made));
  return made;
}

static void register_all(void)
{
  const struct hipmm_failure_handler failure = {sizeof failure, give_up, NULL};
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = hear};
  assert_ok(hipmm_failure_handler_register("give_up", &failure));
  assert_ok(hipmm_failure_handler_register("give_up_too", &failure));
  assert_ok(hipmm_hooks_register("hear", &hooks));
  for (int i = 0; i < OF_EACH; i++) {
    char name[20];
    const struct hipmm_region region = {sizeof region, regions[i], REGION_BYTES};
    snprintf(name, sizeof name, "region-%d", i);
    assert_ok(hipmm_region_register(name, &region));
  }
}

static void do_all_at_once(void)
{
  static struct doer doers[THREADS];
  pthread_barrier_init(&all_are_there, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    doers[i] = (struct doer){.deed = &deeds[i / OF_EACH], .number = i % OF_EACH};
    assert_int_equal(pthread_create(&doers[i].thread, NULL, do_it_often, &doers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(doers[i].thread, NULL);
  pthread_barrier_destroy(&all_are_there);
  for (int i = 0; i < THREADS; i++)
    if (doers[i].failures)
      fail_msg("%s: %d failures, first: %s", doers[i].deed->name, doers[i].failures, doers[i].message);
}

/* What is made once is made once more each time. */
static void each_function_is_good_beside_each_other(void **state)
{
  (void)state;
  folder = new_folder();
  log_name = path_in(folder, "log");
  register_all();
  for (int i = 0; i < TIMES; i++) {
    fixture_start(graph);
    top = held("top");
    below = held("below");
    memory = held("memory");
    sleeper = held("sleeper");
    shared = held("shared");
    assert_ok(hipmm_resource_create(0, "pool", NULL, &memory, 1, &other));
    logged_once = new_log("recording", "256KiB", below);
    logged_twice = new_log("logging", "128KiB", logged_once);
    do_all_at_once();
    for (int j = 0; j < OF_EACH; j++) {
      assert_ok(hipmm_deallocate(sleeper, exported[j], EXPORTED_BYTES, NULL));
      exported[j] = NULL;
    }
    struct hipmm_resource *all[] = {logged_twice, logged_once, top, below, memory, sleeper, shared, other};
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) hipmm_resource_release(all[j]);
    assert_ok(hipmm_finalize());
  }
  assert_ok(hipmm_log_set_file(NULL));
  free(log_name);
  remove_folder(folder);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_function_is_good_beside_each_other, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests_name("functions beside each other", tests, NULL, NULL);
}
