/* SPDX-License-Identifier: MIT */
/* Tests of core/base/lifecycle.c, and of initialisation and finalisation in api.c: once each, from any thread; refused
 * in the child of a fork; and a process that exits without finalisation. */
#include "../../core/base/lifecycle.h"
#include "../../core/base/live_format.h"
#include "../../core/runtime/hip.h"
#include "../../core/stack/stack.h"
#include "../support/support.h"

#include <hipmm/buffer.h>
#include <hipmm/inspect.h>
#include <hipmm/stream.h>
#include <hipmm/torch.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char graph[] = "{\"runtime\": \"software\", \"stack\": [\"statistics\", \"pool\", \"device\"]}";

static int finish(void **state)
{
  (void)state;
  hipmm_finalize();
  return live_on_all_devices() ? -1 : 0;
}

/* ---- Every function, with arguments that would be good ---- */

static struct hipmm_resource *resource; /* NULL, or a resource that the test holds */
static void *memory;                    /* allocated from it */

static enum hipmm_status call_allocate(void)
{
  void *ptr;
  return hipmm_allocate(resource, 100, NULL, &ptr);
}
static enum hipmm_status call_allocate_none(void)
{
  void *ptr;
  return hipmm_allocate(resource, 0, NULL, &ptr);
}
static enum hipmm_status call_allocate_aligned(void)
{
  void *ptr;
  return hipmm_allocate_aligned(resource, 100, 512, NULL, &ptr);
}
static enum hipmm_status call_deallocate(void)
{
  return hipmm_deallocate(resource, memory, 1000, NULL);
}
static enum hipmm_status call_deallocate_null(void)
{
  return hipmm_deallocate(resource, NULL, 0, NULL);
}
static enum hipmm_status call_deallocate_aligned(void)
{
  return hipmm_deallocate_aligned(resource, memory, 1000, 256, NULL);
}
static enum hipmm_status call_get_current(void)
{
  struct hipmm_resource *r;
  return hipmm_resource_get_current(&r);
}
static enum hipmm_status call_get_device(void)
{
  struct hipmm_resource *r;
  return hipmm_resource_get_for_device(0, &r);
}
static enum hipmm_status call_get_named(void)
{
  struct hipmm_resource *r;
  return hipmm_resource_get_by_name(0, "pool", &r);
}
static enum hipmm_status call_set_current(void)
{
  return hipmm_resource_set_current(resource, NULL);
}
static enum hipmm_status call_set_device(void)
{
  return hipmm_resource_set_for_device(0, resource, NULL);
}
static enum hipmm_status call_reset_current(void)
{
  return hipmm_resource_reset_current();
}
static enum hipmm_status call_reset_device(void)
{
  return hipmm_resource_reset_for_device(0);
}
static enum hipmm_status call_held_bytes(void)
{
  size_t now, peak;
  return hipmm_device_held_bytes(0, &now, &peak);
}
static enum hipmm_status call_stream_retain(void)
{
  return hipmm_stream_retain(0, NULL);
}
static enum hipmm_status call_stream_retire(void)
{
  return hipmm_stream_retire(0, NULL);
}
static enum hipmm_status call_device_count(void)
{
  int count;
  return hipmm_device_count(&count);
}
static enum hipmm_status call_device_current(void)
{
  int device;
  return hipmm_device_current(&device);
}
static enum hipmm_status call_query(void)
{
  int64_t v;
  return hipmm_resource_query(resource, "live_bytes", &v);
}
static enum hipmm_status call_perform(void)
{
  return hipmm_resource_perform(resource, "push");
}
static enum hipmm_status call_trim(void)
{
  return hipmm_resource_trim(resource, 0);
}
static enum hipmm_status call_statistics(void)
{
  struct hipmm_statistics s;
  return hipmm_statistics_get(resource, &s);
}
static enum hipmm_status call_push(void)
{
  return hipmm_statistics_push(resource, NULL);
}
static enum hipmm_status call_pop(void)
{
  return hipmm_statistics_pop(resource, NULL);
}
static enum hipmm_status call_query_path(void)
{
  int64_t v;
  return hipmm_query("devices/0/pool/reserved_bytes", &v);
}
static enum hipmm_status call_get(void)
{
  char *text;
  return hipmm_get("devices/0/pool/reserved_bytes", &text);
}
static enum hipmm_status call_set(void)
{
  return hipmm_set("devices/0/pool/maximum_size", "1GiB");
}
static enum hipmm_status call_list(void)
{
  char *text;
  return hipmm_list(NULL, &text);
}
static enum hipmm_status call_snapshot(void)
{
  char *text;
  return hipmm_snapshot(&text);
}
static enum hipmm_status call_create(void)
{
  struct hipmm_resource *r;
  return hipmm_resource_create(0, "device", NULL, NULL, 0, &r);
}
static enum hipmm_status call_register(void)
{
  return hipmm_region_register("mine", &(struct hipmm_region){sizeof(struct hipmm_region), &memory, 1});
}
static enum hipmm_status call_stream_create(void)
{
  hipmm_stream_t stream;
  return hipmm_stream_create(0, 0, &stream);
}
static enum hipmm_status call_stream_pool_create(void)
{
  struct hipmm_stream_pool *pool;
  return hipmm_stream_pool_create(0, 0, 0, &pool);
}
static enum hipmm_status call_stream_destroy(void)
{
  return hipmm_stream_destroy((hipmm_stream_t)(uintptr_t)4096);
}
static enum hipmm_status call_stream_synchronize(void)
{
  return hipmm_stream_synchronize(0, NULL);
}
static enum hipmm_status call_stream_wait(void)
{
  return hipmm_stream_wait(0, NULL, 0, NULL);
}
static enum hipmm_status call_stream_query(void)
{
  int done;
  return hipmm_stream_query(0, NULL, &done);
}
static enum hipmm_status call_stream_device(void)
{
  int device;
  return hipmm_stream_device(NULL, &device);
}
static enum hipmm_status call_device_set(void)
{
  return hipmm_device_set(0);
}
static enum hipmm_status call_device_enter(void)
{
  int previous;
  return hipmm_device_enter(0, &previous);
}
static enum hipmm_status call_device_leave(void)
{
  return hipmm_device_leave(0);
}
static enum hipmm_status call_device_memory(void)
{
  return hipmm_device_memory(0, NULL, NULL);
}
static enum hipmm_status call_device_percent(void)
{
  size_t bytes;
  return hipmm_device_percent_of_free_memory(0, 50, &bytes);
}
static enum hipmm_status call_device_name(void)
{
  char name[10];
  return hipmm_device_name(0, sizeof name, name);
}
static enum hipmm_status call_device_attribute(void)
{
  int value;
  return hipmm_device_attribute(0, 1, &value);
}
static enum hipmm_status call_runtime_version(void)
{
  int version;
  return hipmm_runtime_version(&version);
}
static enum hipmm_status call_driver_version(void)
{
  int version;
  return hipmm_driver_version(&version);
}
static enum hipmm_status call_buffer_create(void)
{
  struct hipmm_buffer *buffer;
  return hipmm_buffer_create(resource, 10, NULL, &buffer);
}
static enum hipmm_status call_buffer_create_from(void)
{
  struct hipmm_buffer *buffer;
  return hipmm_buffer_create_from(resource, "text", 5, NULL, &buffer);
}
static enum hipmm_status call_host_buffer_create(void)
{
  struct hipmm_host_buffer *buffer;
  return hipmm_host_buffer_create(resource, 10, NULL, &buffer);
}
static enum hipmm_status call_init(void)
{
  return hipmm_init();
}
static enum hipmm_status call_init_string(void)
{
  return hipmm_init_from_string(graph);
}
static enum hipmm_status call_init_file(void)
{
  return hipmm_init_from_file("/nowhere.json");
}
static enum hipmm_status call_finalize(void)
{
  return hipmm_finalize();
}

struct entry {
  const char *name;
  enum hipmm_status (*call)(void);
};

#define ENTRY(name) \
  {                 \
#name, name     \
  }

/* Calls that need the graph or the table of devices. */
static const struct entry of_the_table[] = {
    ENTRY(call_get_current),
    ENTRY(call_get_device),
    ENTRY(call_get_named),
    ENTRY(call_set_current),
    ENTRY(call_set_device),
    ENTRY(call_reset_current),
    ENTRY(call_reset_device),
    ENTRY(call_held_bytes),
    ENTRY(call_stream_retain),
    ENTRY(call_device_count),
    ENTRY(call_device_current),
    ENTRY(call_stream_create),
    ENTRY(call_stream_pool_create),
    ENTRY(call_create),
    ENTRY(call_query_path),
    ENTRY(call_get),
    ENTRY(call_set),
    ENTRY(call_list),
    ENTRY(call_snapshot),
};

/* Calls that need only the runtime, which stays after finalisation. */
static const struct entry of_the_runtime[] = {
    ENTRY(call_stream_retire),    ENTRY(call_stream_destroy),  ENTRY(call_stream_synchronize), ENTRY(call_stream_wait),
    ENTRY(call_stream_query),     ENTRY(call_stream_device),   ENTRY(call_device_set),         ENTRY(call_device_enter),
    ENTRY(call_device_leave),     ENTRY(call_device_memory),   ENTRY(call_device_percent),     ENTRY(call_device_name),
    ENTRY(call_device_attribute), ENTRY(call_runtime_version), ENTRY(call_driver_version),
};

/* Calls that need the table only if `resource` is NULL. */
static const struct entry of_memory[] = {
    ENTRY(call_allocate),      ENTRY(call_allocate_none),      ENTRY(call_allocate_aligned),
    ENTRY(call_deallocate),    ENTRY(call_deallocate_null),    ENTRY(call_deallocate_aligned),
    ENTRY(call_buffer_create), ENTRY(call_buffer_create_from), ENTRY(call_host_buffer_create),
};

/* Calls on a resource, initialisation and finalisation. */
static const struct entry of_a_resource[] = {
    ENTRY(call_query), ENTRY(call_perform),  ENTRY(call_trim),        ENTRY(call_statistics),
    ENTRY(call_push),  ENTRY(call_pop),      ENTRY(call_init_string), ENTRY(call_init_file),
    ENTRY(call_init),  ENTRY(call_finalize), ENTRY(call_register),
};

/* Prints each call that does not return HIPMM_E_STATE on standard error; returns their number. */
static int count_not_refused(const struct entry *entries, size_t n)
{
  int count = 0;
  for (size_t i = 0; i < n; i++) {
    enum hipmm_status status = entries[i].call();
    if (status == HIPMM_E_STATE && *hipmm_last_error_message()) continue;
    fprintf(stderr, "%s: %s\n", entries[i].name, hipmm_status_string(status));
    count++;
  }
  return count;
}

#define COUNT_NOT_REFUSED(entries) count_not_refused(entries, sizeof(entries) / sizeof *(entries))

/* ---- Once ---- */

static void refuses_all_before_it_begins(void **state)
{
  (void)state;
  resource = NULL;
  memory = NULL;
  assert_int_equal(COUNT_NOT_REFUSED(of_the_table), 0);
  assert_int_equal(COUNT_NOT_REFUSED(of_memory), 0);
  assert_int_equal(COUNT_NOT_REFUSED(of_the_runtime), 0);
  assert_message("hipmm is not initialised; call hipmm_init()");
  assert_status(hipmm_finalize(), HIPMM_E_STATE);
}

static void begins_and_ends_again_and_again(void **state)
{
  (void)state;
  for (int i = 0; i < 5; i++) {
    void *ptr;
    assert_ok(hipmm_init_from_string(graph));
    assert_string_equal(hipmm_runtime(), "software");
    assert_true(hipmm_is_initialized());
    assert_status(hipmm_init_from_string("{\"stack\": [\"device\"]}"), HIPMM_E_STATE);
    assert_string_equal(hipmm_last_error_message(),
                        "hipmm is initialised already, with another graph than this one; use the graph in use "
                        "(hipmm_init_if_needed()), build a stack beside it (hipmm_stack_build_from_file()), or call "
                        "hipmm_finalize() before, 1 time");
    assert_ok(hipmm_allocate(NULL, 1000, NULL, &ptr));
    assert_ok(hipmm_deallocate(NULL, ptr, 1000, NULL));
    assert_ok(hipmm_finalize());
    assert_status(hipmm_finalize(), HIPMM_E_STATE);
    assert_false(hipmm_is_initialized());
    resource = NULL;
    assert_int_equal(COUNT_NOT_REFUSED(of_the_table), 0);
  }
}

/* Several users of one process: each initialises and finalizes; the table is there from the first to the last. */
static void is_counted(void **state)
{
  (void)state;
  static const char same[] = "{ \"stack\":[\"statistics\",\"pool\",\"device\"],\n \"runtime\": \"software\" }";
  static const char wrong[] = "{\"stack\": [\"pol\", \"device\"]}";
  void *ptr;
  assert_false(hipmm_is_initialized());
  assert_ok(hipmm_init_from_string(graph));
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &ptr));
  assert_ok(hipmm_init_from_string(same));
  assert_ok(hipmm_init_if_needed());
  assert_status(hipmm_init_from_string(wrong), HIPMM_E_CONFIG);
  assert_status(hipmm_init(), HIPMM_E_STATE);
  assert_message("with the graph of <string>, and the graph of <built in> is another one");
  assert_message("or call hipmm_finalize() before, 3 times");
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_finalize());
    assert_true(hipmm_is_initialized());
  }
  assert_ok(hipmm_deallocate(NULL, ptr, 1000, NULL)); /* it is there still */
  assert_ok(hipmm_finalize());
  assert_false(hipmm_is_initialized());
  assert_status(hipmm_finalize(), HIPMM_E_STATE);
}

static void the_first_of_many_users_reads_the_graph(void **state)
{
  (void)state;
  char *folder = new_folder(), *file = path_in(folder, "hipmm.json");
  assert_true(write_file(file, graph, strlen(graph)));
  setenv("HIPMM_CONFIG", file, 1);
  assert_ok(hipmm_init_if_needed());
  assert_ok(hipmm_init());
  assert_ok(hipmm_init_from_file(file));
  assert_ok(hipmm_init_from_string(graph)); /* the same JSON, from elsewhere */
  setenv("HIPMM_CONFIG", "/nowhere.json", 1);
  assert_status(hipmm_init(), HIPMM_E_IO);
  assert_message("HIPMM_CONFIG: /nowhere.json: cannot be read");
  setenv("HIPMM_CONFIG", graph, 1); /* the graph itself */
  assert_ok(hipmm_init());
  assert_ok(hipmm_finalize());
  setenv("HIPMM_CONFIG", " {\"stack\": [\"pol\", \"device\"]}", 1);
  assert_status(hipmm_init(), HIPMM_E_CONFIG);
  assert_message("HIPMM_CONFIG: <string>:1:13: /stack/0: unknown type \"pol\"; did you mean \"pool\"?");
  assert_ok(hipmm_init_if_needed()); /* reads no file */
  setenv("HIPMM_RUNTIME", "amd", 1);
  assert_status(hipmm_init_from_file(file), HIPMM_E_STATE);
  assert_message("runtime amd: this process already uses software");
  unsetenv("HIPMM_RUNTIME");
  unsetenv("HIPMM_CONFIG");
  for (int i = 0; i < 5; i++) assert_ok(hipmm_finalize());
  assert_false(hipmm_is_initialized());
  free(file);
  remove_folder(folder);
}

static void leaves_nothing_behind_when_it_cannot_begin(void **state)
{
  (void)state;
  resource = NULL;
  assert_status(hipmm_init_from_string("{\"stack\": [\"pol\", \"device\"]}"), HIPMM_E_CONFIG);
  assert_message("<string>:1:12: /stack/0: unknown type \"pol\"; did you mean \"pool\"?");
  assert_status(hipmm_init_from_string("{"), HIPMM_E_SYNTAX);
  assert_status(hipmm_init_from_string(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_init_from_file(NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_init_from_file("/nowhere/hipmm.json"), HIPMM_E_IO);
  assert_message("/nowhere/hipmm.json: ");
  assert_int_equal(COUNT_NOT_REFUSED(of_the_table), 0);
  assert_ok(hipmm_init_from_string(graph));
}

static pthread_barrier_t all_are_there;

static void *begin(void *status)
{
  pthread_barrier_wait(&all_are_there);
  *(enum hipmm_status *)status = hipmm_init_from_string(graph);
  return NULL;
}

static void begins_in_many_threads(void **state)
{
  (void)state;
  pthread_t threads[8];
  enum hipmm_status statuses[8];
  pthread_barrier_init(&all_are_there, NULL, 8);
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, begin, &statuses[i]), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all_are_there);
  int count;
  for (int i = 0; i < 8; i++) {
    assert_int_equal(statuses[i], HIPMM_OK);
    assert_ok(hipmm_device_count(&count));
    assert_ok(hipmm_finalize());
  }
  assert_false(hipmm_is_initialized());
}

/* ---- Fork ---- */

static int use_all(const void *unused)
{
  (void)unused;
  int wrong = COUNT_NOT_REFUSED(of_the_table) + COUNT_NOT_REFUSED(of_memory) + COUNT_NOT_REFUSED(of_a_resource) +
              COUNT_NOT_REFUSED(of_the_runtime);
  if (!strstr(hipmm_last_error_message(), "child of a fork")) wrong++;
  hipmm_resource_release(resource); /* no effect, no harm */
  hipmm_resource_retain(resource);
  return wrong;
}

/* As use_all, but goes through exit() and all that runs there. */
static int use_all_and_exit(const void *unused)
{
  exit(use_all(unused));
}

static void get_a_resource(void)
{
  assert_ok(hipmm_resource_get_current(&resource));
  assert_ok(hipmm_allocate(resource, 1000, NULL, &memory));
}

static void give_the_resource_back(void)
{
  assert_ok(hipmm_deallocate(resource, memory, 1000, NULL));
  hipmm_resource_release(resource);
}

static void refuses_all_in_the_child_of_a_fork(void **state)
{
  (void)state;
  assert_ok(hipmm_init_from_string(graph));
  get_a_resource();
  struct outcome outcome = run_forked(use_all, NULL), by_exit = run_forked(use_all_and_exit, NULL);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
  assert_string_equal(by_exit.error, "");
  assert_int_equal(by_exit.status, 0);
  give_the_resource_back(); /* the parent is unchanged */
  assert_ok(hipmm_finalize());
}

static bool sees_what_is_published(void)
{
  return !access("/dev/shm", W_OK) && !access("/proc/self/fd", R_OK);
}

/* How many open files are of the folder in which counters are published. */
static int count_published(const void *unused)
{
  int n = 0;
  (void)unused;
  for (int file = 0; file < 256; file++) {
    char link[32], name[64] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    n += readlink(link, name, sizeof name - 1) > 0 && !strncmp(name, "/dev/shm/hipmm.", 15);
  }
  return n;
}

/* The lock of the file would outlive the parent, and `hipmm top` would show what the parent published last. */
static void leaves_the_published_counters_to_the_parent_of_a_fork(void **state)
{
  (void)state;
  if (!sees_what_is_published()) skip();
  assert_ok(hipmm_init_from_string("{\"runtime\": \"software\", \"publish\": true, \"stack\": [\"device\"]}"));
  assert_int_equal(count_published(NULL), 1);
  assert_int_equal(run_forked(count_published, NULL).status, 0);
  assert_ok(hipmm_finalize());
  assert_int_equal(count_published(NULL), 0);
}

static uint64_t now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The end does not wait until counters are due again. */
static void ends_while_counters_are_published(void **state)
{
  enum { ROUNDS = 8 };
  uint64_t least_ms = UINT64_MAX;
  (void)state;
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr;
    assert_ok(
        hipmm_init_from_string("{\"runtime\": \"software\", \"publish\": true, \"stack\": [\"pool\", \"device\"]}"));
    assert_ok(hipmm_allocate(NULL, 1000, NULL, &ptr));
    assert_ok(hipmm_deallocate(NULL, ptr, 1000, NULL));
    uint64_t began_ms = now_ms();
    assert_ok(hipmm_finalize());
    uint64_t took_ms = now_ms() - began_ms;
    if (took_ms < least_ms) least_ms = took_ms;
    assert_int_equal(count_published(NULL), 0);
  }
  assert_in_range(least_ms, 0, LIVE_PERIOD_MS / 2);
}

static void refuses_a_kept_resource_in_the_child_of_a_fork(void **state)
{
  (void)state;
  assert_ok(hipmm_init_from_string(graph));
  get_a_resource();
  assert_ok(hipmm_finalize());
  struct outcome outcome = run_forked(use_all, NULL);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
  give_the_resource_back();
}

static void begins_again_while_a_resource_is_kept(void **state)
{
  (void)state;
  assert_ok(hipmm_init_from_string(graph));
  get_a_resource();
  assert_ok(hipmm_finalize());
  assert_ok(hipmm_init_from_string(graph));
  give_the_resource_back(); /* from before the finalisation, and still valid */
  get_a_resource();
  give_the_resource_back();
  assert_ok(hipmm_finalize());
}

static int begin_in_child(const void *unused)
{
  (void)unused;
  return hipmm_init_from_string(graph) == HIPMM_E_STATE ? 0 : 1;
}

/* The lock that serialises initialisation is held by a thread that the child does not have. */
static void does_not_hang_in_the_child_of_a_fork_during_a_change(void **state)
{
  (void)state;
  assert_ok(lifecycle_begin_change());
  struct outcome outcome = run_forked(begin_in_child, NULL);
  lifecycle_end_change(LIFECYCLE_BEFORE);
  assert_int_equal(outcome.status, 0);
}

/* ---- Processes of their own ---- */

/* A child that was forked before the initialisation is a process like any other. */
static int fork_first(void)
{
  pid_t child = fork();
  void *ptr;
  if (child < 0 || hipmm_init_from_string(graph) || hipmm_allocate(NULL, 1000, NULL, &ptr) ||
      hipmm_deallocate(NULL, ptr, 1000, NULL) || hipmm_finalize()) {
    fprintf(stderr, "%s\n", hipmm_last_error_message());
    return 1;
  }
  if (!child) _exit(0);
  return 0;
}

static void *allocate_for_ever(void *unused)
{
  (void)unused;
  for (;;) {
    void *ptr;
    if (!hipmm_allocate(NULL, 1000, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 1000, NULL);
  }
  return NULL;
}

/* Ends with stacks live on two devices, memory allocated and work under way; and with a thread in the middle of it. */
static int end_in_the_middle(bool with_thread)
{
  pthread_t thread;
  void *ptr;
  hipmm_stream_t stream;
  setenv("HIPMM_SOFTWARE", "devices=2", 1);
  if (hipmm_init_from_string(graph) || hipmm_allocate(NULL, 1000, NULL, &ptr)) return 1;
  if (hip_table()->SetDevice(1) || hipmm_allocate(NULL, 5 * MIB, NULL, &ptr)) return 1;
  if (hip_table()->StreamCreateWithFlags(&stream, 0) || hip_table()->MemsetAsync(ptr, 1, 5 * MIB, stream)) return 1;
  if (with_thread && pthread_create(&thread, NULL, allocate_for_ever, NULL)) return 1;
  usleep(10000);
  return 0;
}

/* ---- Frees from static destructors ---- */

static struct hipmm_buffer *last_buffer;
static hipmm_stream_t last_stream;
static struct hipmm_resource *last_top, *last_device;
static void *last_block, *last_device_block;

static int gone(void)
{
  return 4; /* hipErrorDeinitialized, and cudaErrorCudartUnloading */
}

/* As runtimes do at the end of the process: every call fails, except those that name errors. */
static void take_the_runtime_away(void)
{
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)hip_table(), before = *hip;
  int (*nothing)(void) = gone;
  char *first = (char *)&hip->GetDeviceCount, *end = (char *)hip + sizeof *hip;
  for (char *at = first; at < end; at += sizeof nothing) memcpy(at, &nothing, sizeof nothing);
  hip->GetErrorName = before.GetErrorName;
  hip->GetErrorString = before.GetErrorString;
  hip->runtime = before.runtime;
}

/* Calls of a destructor of a C++ program's static objects, which runs after the runtime's destructors. NULL means the
 * current device, which is unknown then; a pool can free blocks without the runtime. */
static void free_at_exit(void)
{
  printf("no resource %d, ", hipmm_deallocate(NULL, last_block, 1000, NULL));
  printf("block %d, ", hipmm_deallocate(last_top, last_block, 1000, NULL));
  printf("device block %d, ", hipmm_deallocate(last_device, last_device_block, 1000, NULL));
  printf("buffer %d, ", hipmm_buffer_destroy(last_buffer));
  printf("stream %d, ", hipmm_stream_destroy(last_stream));
  hipmm_resource_release(last_device);
  hipmm_resource_release(last_top);
  printf("all %d\n", hipmm_finalize());
}

static int exit_after_the_runtime(void)
{
  if (atexit(free_at_exit) || hipmm_init_from_string(graph)) return 1;
  if (hipmm_resource_get_for_device(0, &last_top) || hipmm_allocate(last_top, 1000, NULL, &last_block)) return 1;
  if (hipmm_resource_create(0, "device", NULL, NULL, 0, &last_device)) return 1;
  if (hipmm_allocate(last_device, 1000, NULL, &last_device_block)) return 1;
  if (hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &last_stream)) return 1;
  if (hipmm_buffer_create(NULL, 100000, last_stream, &last_buffer)) return 1;
  take_the_runtime_away();
  return 0;
}

/* Nothing aborts or hangs, and a status tells what the driver cannot free. */
static void may_free_after_the_runtime_went(void **state)
{
  (void)state;
  static const char *const arguments[] = {"exit-after-the-runtime", NULL};
  static const char *const environment[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
  struct outcome outcome = run_again(arguments, environment);
  assert_int_equal(outcome.status, 0);
  assert_string_equal(outcome.out, "no resource -42, block 0, device block -42, buffer 0, stream -42, all 0\n");
}

static void may_fork_before_it_begins(void **state)
{
  (void)state;
  static const char *const arguments[] = {"fork-first", NULL};
  struct outcome outcome = run_again(arguments, NULL);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
}

static void may_end_in_the_middle(void **state)
{
  (void)state;
  static const char *const arguments[] = {"end-in-the-middle", NULL};
  for (int i = 0; i < 3; i++) {
    struct outcome outcome = run_again(arguments, NULL);
    assert_string_equal(outcome.error, "");
    assert_int_equal(outcome.status, 0);
  }
}

/* ---- Beside calls of other threads, and from within calls ---- */

enum { HANG_SECONDS = 20, CHANGES = 60, LOOKERS = 3 };

/* An allocator of the program, from which a stack gets its memory, and an action that it performs once. */
static struct {
  void (*act)(void);
  bool is_built, is_over; /* as `act` finds them */
  pthread_t thread;
  atomic_bool finalized;
  enum hipmm_status finalize_status, init_status, other_status;
  char reason[300];
} inner;

static enum hipmm_status give(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)stream;
  void (*act)(void) = inner.act;
  inner.act = NULL;
  if (act) act();
  *ptr_out = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

static void take_back(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  free(ptr);
}

/* The stack of a device takes memory when it is built. */
static const char own_graph[] =
    "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"64MiB\"}, \"stack\": [{\"type\": \"pool\", "
    "\"initial_size\": \"2MiB\", \"growth\": \"segments\"}, {\"type\": \"callback\", \"allocator\": \"own\"}]}";

static void start_over_own_allocator(void)
{
  const struct hipmm_allocator allocator = {sizeof allocator, give, take_back, NULL};
  assert_ok(hipmm_allocator_register("own", &allocator));
  assert_ok(hipmm_init_from_string(own_graph));
}

static void *finalize(void *unused)
{
  (void)unused;
  inner.finalize_status = hipmm_finalize();
  atomic_store(&inner.finalized, true);
  return NULL;
}

static void finalize_elsewhere(void)
{
  pthread_create(&inner.thread, NULL, finalize, NULL);
  usleep(50000); /* long enough to complete, if it did not wait */
  inner.is_over = atomic_load(&inner.finalized);
  void *ptr = NULL;
  inner.other_status = hipmm_allocate(NULL, 0, NULL, &ptr); /* within a call that it waits for */
}

/* A call that was given no resource uses that of the table. */
static void waits_for_a_call_under_way(void **state)
{
  void *ptr = NULL;
  (void)state;
  start_over_own_allocator();
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &ptr)); /* builds the stack */
  atomic_store(&inner.finalized, false);
  inner.act = finalize_elsewhere;
  assert_ok(hipmm_allocate(NULL, 8 * MIB, NULL, &ptr));
  pthread_join(inner.thread, NULL);
  assert_false(inner.is_over);
  assert_ok(inner.other_status);
  assert_ok(inner.finalize_status);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_STATE);
}

static int (*get_attribute)(hipmm_hip_mempool_t pool, int attribute, void *value_out);

static int finalize_and_get_attribute(hipmm_hip_mempool_t pool, int attribute, void *value_out)
{
  void (*act)(void) = inner.act;
  inner.act = NULL;
  if (act) act();
  return get_attribute(pool, attribute, value_out);
}

/* A path is looked up in the table of devices; the resource that it names lasts until the call returns. */
static void waits_for_a_call_by_path(void **state)
{
  struct hipmm_resource *built;
  int64_t value;
  (void)state;
  needs_software();
  assert_ok(hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"async\"]}"));
  assert_ok(hipmm_resource_get_current(&built));
  hipmm_resource_release(built);
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)hip_table();
  get_attribute = hip->MemPoolGetAttribute;
  hip->MemPoolGetAttribute = finalize_and_get_attribute;
  atomic_store(&inner.finalized, false);
  inner.act = finalize_elsewhere;
  enum hipmm_status status = hipmm_query("devices/0/async/reserved_bytes", &value);
  pthread_join(inner.thread, NULL);
  hip->MemPoolGetAttribute = get_attribute;
  assert_ok(status);
  assert_false(inner.is_over);
  assert_ok(inner.other_status);
  assert_ok(inner.finalize_status);
}

static enum hipmm_status list_all(void)
{
  char *text = NULL;
  enum hipmm_status status = hipmm_list(NULL, &text);
  hipmm_string_free(text);
  return status;
}

static enum hipmm_status show_all(void)
{
  char *text = NULL;
  enum hipmm_status status = hipmm_snapshot(&text);
  hipmm_string_free(text);
  return status;
}

static enum hipmm_status trim_all(void)
{
  return hipmm_trim(0);
}

/* Another resource than those of the table. The last reference to it goes while a call uses it. */
static struct hipmm_resource *above;

static enum hipmm_status query_above(void)
{
  int64_t value;
  return hipmm_query("created/above/reserved_bytes", &value);
}

static int (*trim_to)(hipmm_hip_mempool_t pool, size_t bytes);

static int finalize_and_trim_to(hipmm_hip_mempool_t pool, size_t bytes)
{
  void (*act)(void) = inner.act;
  inner.act = NULL;
  if (act) act();
  return trim_to(pool, bytes);
}

static void release_and_finalize_elsewhere(void)
{
  hipmm_resource_release(above);
  finalize_elsewhere();
}

/* hipmm_finalize() of another thread may begin while `walk` uses a stack, and returns once the stack is gone. */
static void ends_no_walk_halfway(enum hipmm_status (*walk)(void), void (*act)(void))
{
  struct hipmm_resource *built;
  assert_ok(hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"async\"]}"));
  assert_ok(hipmm_resource_get_current(&built));
  struct hipmm_recipe recipe = {.struct_size = sizeof recipe, .name = "above"};
  recipe.type = "async";
  if (walk == query_above) assert_ok(hipmm_resource_create_from(0, &recipe, &above));
  hipmm_resource_release(built);
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)hip_table();
  const struct hipmm_hip before = *hip;
  get_attribute = hip->MemPoolGetAttribute;
  trim_to = hip->MemPoolTrimTo;
  hip->MemPoolGetAttribute = finalize_and_get_attribute;
  hip->MemPoolTrimTo = finalize_and_trim_to;
  atomic_store(&inner.finalized, false);
  inner.act = act;
  enum hipmm_status status = walk();
  pthread_join(inner.thread, NULL);
  *hip = before;
  assert_ok(status);
  assert_null(inner.act);
  assert_false(inner.is_over);
  assert_ok(inner.finalize_status);
}

static void waits_for_walks_over_all_stacks(void **state)
{
  (void)state;
  needs_software();
  ends_no_walk_halfway(list_all, finalize_elsewhere);
  ends_no_walk_halfway(show_all, finalize_elsewhere);
  ends_no_walk_halfway(trim_all, finalize_elsewhere);
  ends_no_walk_halfway(query_above, release_and_finalize_elsewhere);
}

static void change_from_within(void)
{
  inner.finalize_status = hipmm_finalize();
  snprintf(inner.reason, sizeof inner.reason, "%s", hipmm_last_error_message());
  inner.init_status = hipmm_init_from_string("{}");
}

static void is_refused_from_within_a_call(void **state)
{
  struct hipmm_resource *held = NULL;
  void *ptrs[2] = {NULL, NULL};
  (void)state;
  start_over_own_allocator();
  for (int round = 0; round < 2;
       round++) { /* a call that is entered and builds the stack, and one on a held resource */
    inner.act = change_from_within;
    inner.finalize_status = inner.init_status = HIPMM_OK;
    alarm(HANG_SECONDS);
    assert_ok(hipmm_allocate(held, round ? 8 * MIB : 1000, NULL, &ptrs[round]));
    alarm(0);
    assert_int_equal(inner.finalize_status, HIPMM_E_STATE);
    assert_contains(inner.reason, "from within a call of hipmm");
    assert_int_equal(inner.init_status, HIPMM_E_STATE);
    if (!round) assert_ok(hipmm_resource_get_current(&held));
  }
  assert_ok(hipmm_deallocate(held, ptrs[1], 8 * MIB, NULL));
  assert_ok(hipmm_deallocate(held, ptrs[0], 1000, NULL));
  hipmm_resource_release(held);
}

/* It would wait for the walk of its own thread. */
static void is_refused_from_within_a_walk(void **state)
{
  struct hipmm_resource *built;
  (void)state;
  needs_software();
  assert_ok(hipmm_init_from_string("{\"runtime\": \"software\", \"stack\": [\"async\"]}"));
  assert_ok(hipmm_resource_get_current(&built));
  hipmm_resource_release(built);
  struct hipmm_hip *hip = (struct hipmm_hip *)(uintptr_t)hip_table();
  trim_to = hip->MemPoolTrimTo;
  hip->MemPoolTrimTo = finalize_and_trim_to;
  inner.act = change_from_within;
  alarm(HANG_SECONDS);
  enum hipmm_status status = hipmm_trim(0);
  alarm(0);
  hip->MemPoolTrimTo = trim_to;
  assert_ok(status);
  assert_int_equal(inner.finalize_status, HIPMM_E_STATE);
  assert_contains(inner.reason, "from within a call of hipmm");
  assert_int_equal(inner.init_status, HIPMM_E_STATE);
}

/* ---- Visitors of resources, for which hipmm_finalize() does not wait ---- */

static struct hipmm_resource *visited_last;

static void start_to_visit(void)
{
  struct hipmm_resource *built;
  assert_ok(hipmm_init_from_string(graph));
  assert_ok(hipmm_resource_get_current(&built));
  hipmm_resource_release(built);
}

static void release_and_await_finalize(void *n_visits, struct hipmm_resource *visited)
{
  int n_before = (*(int *)n_visits)++;
  if (above ? visited != above : n_before) return;
  visited_last = visited;
  if (above) hipmm_resource_release(above);
  pthread_t thread;
  pthread_create(&thread, NULL, finalize, NULL);
  pthread_join(thread, NULL);
  inner.is_built = hipmm_resource_name(visited) != NULL;
}

/* As a visitor does that waits for a lock of the finalizing thread. What it was given lasts until it returns. */
static void ends_while_a_visitor_waits_for_the_end(void **state)
{
  (void)state;
  for (int is_above = 0; is_above < 2; is_above++) {
    int n_visits = 0;
    struct hipmm_resource *built;
    start_to_visit();
    above = NULL;
    assert_ok(hipmm_resource_get_current(&built));
    if (is_above) assert_ok(hipmm_resource_create(0, "statistics", NULL, &built, 1, &above));
    hipmm_resource_release(built);
    alarm(HANG_SECONDS);
    assert_ok(hipmm_resource_visit(-1, release_and_await_finalize, &n_visits));
    alarm(0);
    assert_ok(inner.finalize_status);
    assert_true(inner.is_built);
    assert_int_equal(n_visits, 3 + is_above);
    assert_null(hipmm_resource_name(visited_last));
  }
}

static void change_at_a_resource(void *n_visits, struct hipmm_resource *visited)
{
  (void)visited;
  if (!(*(int *)n_visits)++) inner.finalize_status = hipmm_finalize();
}

static void change_at_a_value(void *n_visits, const struct hipmm_value *value)
{
  (void)value;
  change_at_a_resource(n_visits, NULL);
}

static void change_at_an_option(void *n_visits, const struct hipmm_option_state *option)
{
  change_at_a_resource(n_visits, NULL);
  inner.is_built = option->text && strlen(option->text) > 0;
}

/* What a visitor was given lasts until it returns. */
static void may_be_called_by_a_visitor(void **state)
{
  (void)state;
  for (int what = 0; what < 3; what++) {
    int n_visits = 0;
    struct hipmm_resource *pool = NULL;
    start_to_visit();
    assert_ok(hipmm_resource_get_by_name(0, "pool", &pool));
    hipmm_resource_release(pool); /* the table has it */
    inner.finalize_status = HIPMM_E_INTERNAL;
    alarm(HANG_SECONDS);
    if (what == 0) assert_ok(hipmm_resource_visit(-1, change_at_a_resource, &n_visits));
    if (what == 1) assert_ok(hipmm_resource_visit_values(NULL, change_at_a_value, &n_visits));
    if (what == 2) assert_ok(hipmm_resource_visit_options(pool, change_at_an_option, &n_visits));
    alarm(0);
    assert_ok(inner.finalize_status);
    if (what == 0) assert_int_equal(n_visits, 3);
    assert_in_range(n_visits, 3, 100);
    assert_int_equal(hipmm_is_initialized(), 0);
  }
}

static void change_at_the_end(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  void *other;
  take_back(unused, ptr, bytes, alignment, stream);
  change_from_within();
  inner.other_status = hipmm_allocate(NULL, 1000, NULL, &other);
}

/* hipmm_finalize() itself calls the program's function that frees memory. */
static void is_refused_from_within_finalize(void **state)
{
  (void)state;
  struct hipmm_resource *built;
  start_over_own_allocator();
  assert_ok(hipmm_finalize());
  const struct hipmm_allocator allocator = {sizeof allocator, give, change_at_the_end, NULL};
  assert_ok(hipmm_allocator_register("own", &allocator));
  assert_ok(hipmm_init_from_string(own_graph));
  assert_ok(hipmm_resource_get_for_device(0, &built));
  hipmm_resource_release(built);
  alarm(HANG_SECONDS);
  assert_ok(hipmm_finalize());
  alarm(0);
  assert_int_equal(inner.finalize_status, HIPMM_E_STATE);
  assert_int_equal(inner.init_status, HIPMM_E_STATE);
  assert_int_equal(inner.other_status, HIPMM_E_STATE);
}

static void *use_the_other_device(void *unused)
{
  struct hipmm_resource *other;
  (void)unused;
  inner.other_status = hipmm_resource_get_for_device(1, &other);
  if (!inner.other_status) hipmm_resource_release(other);
  return NULL;
}

static void await_the_other_device(void)
{
  pthread_create(&inner.thread, NULL, use_the_other_device, NULL);
  pthread_join(inner.thread, NULL);
}

/* No lock is held while the program's function runs. */
static void builds_a_stack_while_another_is_being_built(void **state)
{
  struct hipmm_resource *built;
  (void)state;
  start_over_own_allocator();
  inner.act = await_the_other_device;
  alarm(HANG_SECONDS);
  assert_ok(hipmm_resource_get_for_device(0, &built));
  alarm(0);
  hipmm_resource_release(built);
  assert_ok(inner.other_status);
}

static void allocate_as_pytorch(void)
{
  inner.is_built = hipmm_torch_malloc(1000, 0, NULL) != NULL; /* not from the stack that is being built */
}

static void refuses_pytorch_from_within_the_building(void **state)
{
  void *ptr;
  (void)state;
  start_over_own_allocator();
  inner.act = allocate_as_pytorch;
  alarm(HANG_SECONDS);
  assert_non_null(ptr = hipmm_torch_malloc(1000, 0, NULL));
  alarm(0);
  assert_false(inner.is_built);
  hipmm_torch_free(ptr, 1000, 0, NULL);
}

static bool is_expected(enum hipmm_status status)
{
  return !status || status == HIPMM_E_STATE;
}

static atomic_bool changes_are_over;

/* Calls that look something up, or create something from it. */
static void look_up(int *failures)
{
  struct hipmm_resource *found = NULL, *made = NULL, *named = NULL;
  struct hipmm_buffer *buffer = NULL;
  size_t held;
  int64_t value;
  char *text = NULL;
  void *ptr = NULL;
  *failures += !is_expected(hipmm_allocate(NULL, 1000, NULL, &ptr)); /* which may be gone at once */
  *failures += !is_expected(hipmm_resource_get_current(&found));
  *failures += !is_expected(hipmm_resource_get_by_name(1, "pool", &named));
  *failures += !is_expected(hipmm_resource_create(0, "pool", NULL, &found, 1, &made)) && found;
  *failures += !is_expected(hipmm_device_held_bytes(0, &held, NULL));
  *failures += !is_expected(hipmm_buffer_create(NULL, 1000, NULL, &buffer));
  *failures += !is_expected(hipmm_query("devices/0/pool/reserved_bytes", &value));
  *failures += !is_expected(hipmm_snapshot(&text));
  *failures += !is_expected(hipmm_resource_set_for_device(0, found, NULL));
  *failures += buffer && hipmm_buffer_destroy(buffer);
  if (found) *failures += hipmm_allocate(found, 1000, NULL, &ptr) || hipmm_deallocate(found, ptr, 1000, NULL);
  hipmm_string_free(text);
  hipmm_resource_release(made);
  hipmm_resource_release(found);
  hipmm_resource_release(named);
}

static void *look_up_often(void *failures)
{
  int mine = 0;
  while (!atomic_load(&changes_are_over)) look_up(&mine);
  atomic_fetch_add((atomic_int *)failures, mine);
  return NULL;
}

static const char quick_graph[] = "{\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"64MiB\"}, "
                                  "\"stack\": [\"pool\", \"device\"]}";

static void comes_and_goes_beside_calls_that_look_resources_up(void **state)
{
  (void)state;
  static atomic_int failures;
  pthread_t threads[LOOKERS];
  assert_ok(hipmm_init_from_string(quick_graph));
  atomic_store(&changes_are_over, false);
  for (int i = 0; i < LOOKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, look_up_often, &failures), 0);
  for (int i = 0; i < CHANGES; i++) {
    sched_yield();
    assert_ok(hipmm_finalize());
    assert_ok(hipmm_init_from_string(quick_graph));
  }
  atomic_store(&changes_are_over, true);
  for (int i = 0; i < LOOKERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&failures), 0);
}

/* The search for leaks is left out: it cannot look at a thread that runs in a library opened later. */
static void may_end_while_a_thread_allocates(void **state)
{
  (void)state;
  static const char *const arguments[] = {"end-with-a-thread", NULL};
  static const char *const environment[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
  for (int i = 0; i < 3; i++) {
    struct outcome outcome = run_again(arguments, environment);
    assert_string_equal(outcome.error, "");
    assert_int_equal(outcome.status, 0);
  }
}

/* ---- The wait for calls ---- */

enum { MOST_REFUSALS = 400 };

static atomic_int n_refusals;
static atomic_bool all_have_left;

/* Is inside a call nearly all of the time, and each call is refused. */
static void *call_again_and_again(void *unused)
{
  struct caller_thread *here = caller_self();
  while (!atomic_load(&all_have_left) && atomic_load(&n_refusals) < MOST_REFUSALS) {
    caller_enter(here);
    usleep(5000);
    atomic_fetch_add(&n_refusals, 1);
    caller_leave_refused(here);
  }
  return unused;
}

static void does_not_wait_for_refused_calls(void **state)
{
  pthread_t thread;
  (void)state;
  assert_int_equal(pthread_create(&thread, NULL, call_again_and_again, NULL), 0);
  while (!atomic_load(&n_refusals)) usleep(100);
  callers_await();
  int refusals = atomic_load(&n_refusals);
  atomic_store(&all_have_left, true);
  pthread_join(thread, NULL);
  assert_in_range(refusals, 1, MOST_REFUSALS / 4);
}

/* Also in a thread whose calls are counted in a place that threads share, as where the system has no membarrier(): its inner
 * calls are not seen there. */
static void *call_within_a_call(void *is_light)
{
  struct caller_thread *here = caller_self();
  bool before = atomic_exchange(&asymmetric_fence_is_light, is_light != NULL), is_right = true;
  caller_enter(here);
  atomic_store(&asymmetric_fence_is_light, before);
  is_right &= (here->light != NULL) == (is_light != NULL) && callers_have_left();
  caller_enter(here);
  is_right &= !callers_have_left();
  caller_leave(here);
  is_right &= callers_have_left();
  caller_leave(here);
  return is_right ? NULL : here;
}

static void sees_the_calls_around_its_own(void **state)
{
  (void)state;
  asymmetric_fence_prepare();
  for (int is_light = atomic_load(&asymmetric_fence_is_light); is_light >= 0; is_light--) {
    pthread_t thread;
    void *wrong = NULL;
    assert_int_equal(pthread_create(&thread, NULL, call_within_a_call, is_light ? &thread : NULL), 0);
    pthread_join(thread, &wrong);
    assert_null(wrong);
  }
}

int main(int argc, char **argv)
{
  if (argc == 2 && !strcmp(argv[1], "fork-first")) return fork_first();
  if (argc == 2 && !strcmp(argv[1], "exit-after-the-runtime")) return exit_after_the_runtime();
  if (argc == 2 && !strcmp(argv[1], "end-in-the-middle")) return end_in_the_middle(false);
  if (argc == 2 && !strcmp(argv[1], "end-with-a-thread")) return end_in_the_middle(true);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(refuses_all_before_it_begins, finish),
      cmocka_unit_test_teardown(does_not_hang_in_the_child_of_a_fork_during_a_change, finish),
      cmocka_unit_test_teardown(begins_and_ends_again_and_again, finish),
      cmocka_unit_test_teardown(leaves_nothing_behind_when_it_cannot_begin, finish),
      cmocka_unit_test_teardown(is_counted, finish),
      cmocka_unit_test_teardown(the_first_of_many_users_reads_the_graph, finish),
      cmocka_unit_test_teardown(begins_in_many_threads, finish),
      cmocka_unit_test_teardown(refuses_all_in_the_child_of_a_fork, finish),
      cmocka_unit_test_teardown(leaves_the_published_counters_to_the_parent_of_a_fork, finish),
      cmocka_unit_test_teardown(ends_while_counters_are_published, finish),
      cmocka_unit_test_teardown(begins_again_while_a_resource_is_kept, finish),
      cmocka_unit_test_teardown(refuses_a_kept_resource_in_the_child_of_a_fork, finish),
      cmocka_unit_test_teardown(waits_for_a_call_under_way, finish),
      cmocka_unit_test_teardown(waits_for_a_call_by_path, finish),
      cmocka_unit_test_teardown(waits_for_walks_over_all_stacks, finish),
      cmocka_unit_test_teardown(is_refused_from_within_a_call, finish),
      cmocka_unit_test_teardown(is_refused_from_within_a_walk, finish),
      cmocka_unit_test_teardown(ends_while_a_visitor_waits_for_the_end, finish),
      cmocka_unit_test_teardown(may_be_called_by_a_visitor, finish),
      cmocka_unit_test_teardown(is_refused_from_within_finalize, finish),
      cmocka_unit_test(does_not_wait_for_refused_calls),
      cmocka_unit_test(sees_the_calls_around_its_own),
      cmocka_unit_test_teardown(builds_a_stack_while_another_is_being_built, finish),
      cmocka_unit_test_teardown(refuses_pytorch_from_within_the_building, finish),
      cmocka_unit_test_teardown(comes_and_goes_beside_calls_that_look_resources_up, finish),
      cmocka_unit_test(may_fork_before_it_begins),
      cmocka_unit_test(may_free_after_the_runtime_went),
      cmocka_unit_test(may_end_in_the_middle),
      cmocka_unit_test(may_end_while_a_thread_allocates),
  };
  return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
