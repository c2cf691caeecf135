/* SPDX-License-Identifier: MIT */
/* Tests of core/stack/stack.c and core/plugin/services.c: a stack per device, built when it is first asked for, on its
 * own device, and taken down with nothing lost. */
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <hipmm/inspect.h>
#include <hipmm/stream.h>

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNTIME "\"runtime\": {\"type\": \"software\", \"devices\": 2, \"memory\": \"64MiB\"}, "

static int finish(void **state)
{
  (void)state;
  hipmm_finalize();
  uint64_t lost = live_on_all_devices();
  software()->fail_none();
  software()->reset();
  hip_table()->SetDevice(0);
  if (lost) print_error("%llu blocks lost\n", (unsigned long long)lost);
  return lost ? -1 : 0;
}

static void start(const char *graph)
{
  char *json;
  assert_true(asprintf(&json, "{" RUNTIME "%s}", graph) > 0);
  assert_ok(hipmm_init_from_string(json));
  free(json);
  hip_table()->SetDevice(0);
}

static struct hipmm_resource *resource_of(int device)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_for_device(device, &resource));
  hipmm_resource_release(resource); /* the table keeps it */
  return resource;
}

static struct hipmm_resource *named(int device, const char *name)
{
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_by_name(device, name, &resource));
  hipmm_resource_release(resource);
  return resource;
}

static int current_device(void)
{
  int device = -1;
  assert_int_equal(hip_table()->GetDevice(&device), 0);
  return device;
}

/* ---- Building ---- */

static void touches_no_device_before_it_is_asked_for(void **state)
{
  (void)state;
  static const char *const allowed[] = {"hipGetDeviceCount", "hipRuntimeGetVersion", "hipGetLastError"};
  char *json = "{" RUNTIME "\"stack\": [{\"type\": \"pool\", \"initial_size\": \"8MiB\"}, \"device\"]}";
  software()->reset_calls();
  assert_ok(hipmm_init_from_string(json));
  uint64_t count;
  const char *name;
  for (size_t i = 0; (name = software()->call(i, &count)); i++) {
    bool is_allowed = false;
    for (size_t a = 0; a < sizeof allowed / sizeof *allowed; a++) is_allowed |= !strcmp(name, allowed[a]);
    if (count && !is_allowed) fail_msg("hipmm_init called %s", name);
  }
  assert_int_equal(live_on_all_devices(), 0);
}

static void builds_one_device_at_a_time(void **state)
{
  (void)state;
  start("\"stack\": [{\"type\": \"pool\", \"initial_size\": \"8MiB\"}, \"device\"]");
  resource_of(1);
  assert_int_equal(live_on(0), 0);
  assert_true(live_on(1) > 0);
  size_t now = 0, peak = 0;
  assert_ok(hipmm_device_held_bytes(1, &now, &peak));
  assert_int_equal(now, 8 * MIB);
  assert_int_equal(peak, 8 * MIB);
  assert_int_equal(live_on(0), 0);
  resource_of(0);
  assert_true(live_on(0) > 0);
}

static void success_keeps_the_record_of_an_earlier_failure(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL;
  start("\"stack\": [{\"type\": \"pool\", \"growth\": \"auto\"}, \"witness\", \"device\"]");
  assert_status(hipmm_resource_get_for_device(7, &resource), HIPMM_E_NO_DEVICE);
  resource_of(0);
  assert_message("device 7 does not exist: runtime software has 2, numbered from 0");
}

static void gives_each_device_its_own(void **state)
{
  (void)state;
  start(
      "\"resources\": {\"memory\": {\"type\": \"device\"}, \"pool\": {\"type\": \"pool\", \"upstream\": \"memory\"}}, "
      "\"devices\": {\"default\": \"pool\", \"1\": \"memory\"}");
  struct hipmm_resource *missing = NULL;
  assert_string_equal(hipmm_resource_name(resource_of(0)), "pool");
  assert_string_equal(hipmm_resource_name(resource_of(1)), "memory");
  assert_ptr_not_equal(named(0, "memory"), named(1, "memory"));
  assert_status(hipmm_resource_get_by_name(1, "pool", &missing), HIPMM_E_ARGUMENT);
  assert_message("the stack of device 1 has no resource called \"pool\"");
  assert_null(missing);
}

static void shares_what_two_resources_use(void **state)
{
  (void)state;
  start("\"resources\": {\"memory\": {\"type\": \"witness\", \"upstream\": \"source\"}, \"source\": {\"type\": "
        "\"device\"}, "
        "\"small\": {\"type\": \"witness\", \"upstream\": \"memory\"}, "
        "\"top\": {\"type\": \"binning\", \"upstream\": \"memory\", \"bins\": [{\"size\": \"4KiB\", \"resource\": "
        "\"small\"}]}}");
  struct hipmm_resource *top = resource_of(0);
  assert_string_equal(hipmm_resource_name(top), "top");
  assert_ok(hipmm_resource_trim(top, 4321));
  int64_t small = resource_value(named(0, "small"), "trim_turn"),
          memory = resource_value(named(0, "memory"), "trim_turn");
  assert_int_equal(memory, small + 1); /* once, and after all that use it */
  assert_int_equal(resource_value(named(0, "memory"), "trim_bytes"), 4321);
}

static void builds_a_deep_stack(void **state)
{
  (void)state;
  char graph[4000] = "\"stack\": [";
  for (int i = 0; i < 99; i++) strcat(graph, "\"witness\", ");
  start(strcat(graph, "\"device\"]"));
  void *memory;
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
  assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
  assert_ok(hipmm_resource_trim(resource_of(0), 0));
  assert_int_equal(resource_value(named(0, "witness.99"), "trim_turn"),
                   resource_value(named(0, "witness"), "trim_turn") + 98);
}

/* ---- The device ---- */

static void works_on_its_own_device_whatever_is_current(void **state)
{
  (void)state;
  start("\"stack\": [\"witness\", {\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]");
  struct hipmm_resource *resource = resource_of(1);
  void *memory;
  assert_int_equal(current_device(), 0);
  assert_int_equal(resource_value(resource, "create_device"), 1);
  assert_ok(hipmm_allocate(resource, 1000, NULL, &memory));
  assert_int_equal(current_device(), 0);
  assert_int_equal(live_on(0), 0);
  assert_int_equal(live_on(1), 1);
  assert_ok(hipmm_deallocate(resource, memory, 1000, NULL));
  assert_ok(hipmm_resource_trim(resource, 0));
  assert_int_equal(current_device(), 0);
  assert_int_equal(live_on(1), 0);
  logged();
  assert_ok(hipmm_finalize());
  assert_contains(logged(), "witness: destroyed on device 1");
  assert_int_equal(current_device(), 0);
}

/* ---- Resources that cannot be created ---- */

struct failure {
  const char *name, *how;
  enum hipmm_status status;
  const char *path, *message;
};

static const struct failure failures[] = {
    {"says what a resource said that cannot be created", "with_words", HIPMM_E_HIP, "/stack/0",
     "<string>: /stack/0: fails: it is 5 o'clock"},
    {"names the option that a resource cannot be created with", "at_an_option", HIPMM_E_CONFIG, "/stack/0/how",
     "<string>: /stack/0/how: fails: not like this"},
    {"has words for a resource that has none", "silently", HIPMM_E_LIMIT, "/stack/0",
     "<string>: /stack/0: fails: its plugin failed to create it and gave no reason (limit reached)"},
    {"refuses a resource that is created as nothing", "without_self", HIPMM_E_PLUGIN, "/stack/0",
     "<string>: /stack/0: fails: its plugin reports success, but created no resource"},
};

static void cannot_create(void **state)
{
  const struct failure *row = *state;
  char graph[400];
  snprintf(graph, sizeof graph,
           "\"stack\": [{\"type\": \"fails\", \"how\": \"%s\"}, {\"type\": \"pool\", \"initial_size\": \"4MiB\"}, "
           "\"device\"]",
           row->how);
  start(graph);
  for (int i = 0; i < 2; i++) {
    struct hipmm_resource *resource = NULL;
    struct hipmm_error error = {.struct_size = sizeof error};
    assert_status(hipmm_resource_get_by_name(7, "stale words", &resource), HIPMM_E_NO_DEVICE);
    assert_status(hipmm_resource_get_for_device(1, &resource), row->status);
    assert_null(resource);
    hipmm_last_error(&error);
    assert_string_equal(error.message, row->message);
    assert_string_equal(error.path, row->path);
    assert_string_equal(error.file, "<string>");
    assert_string_equal(error.resource, "fails");
    assert_int_equal(error.status, row->status);
    assert_int_equal(live_on_all_devices(), 0);
  }
  finish(NULL);
}

static void locates_what_a_runtime_refuses(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL;
  start("\"stack\": [{\"type\": \"pool\", \"initial_size\": \"1GiB\", \"growth\": \"segments\"}, \"device\"]");
  assert_status(hipmm_resource_get_for_device(0, &resource), HIPMM_E_OUT_OF_MEMORY);
  assert_message("<string>: /stack/0/initial_size: pool: ");
  software()->schedule("hipMemGetInfo", 1, 0);
  assert_status(hipmm_resource_get_for_device(0, &resource), HIPMM_E_HIP);
  assert_message("<string>: /stack/1: device: hipMemGetInfo failed: hipErrorUnknown");
  software()->schedule("hipSetDevice", 1, 0);
  assert_status(hipmm_resource_get_for_device(1, &resource), HIPMM_E_HIP);
  assert_message("device 1 cannot be used");
  assert_null(resource);
}

/* ---- Taking down ---- */

static void warns_of_live_blocks_and_gives_them_back(void **state)
{
  (void)state;
  static const char *const stacks[] = {
      "\"stack\": [\"device\"]",
      "\"stack\": [{\"type\": \"pool\", \"growth\": \"mapped\"}, \"device\"]",
      "\"stack\": [{\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]",
      "\"stack\": [\"fixed_size\", \"device\"]",
      "\"stack\": [\"statistics\", \"managed\"]",
      "\"stack\": [\"pinned\"]",
      "\"stack\": [\"host\"]",
      "\"stack\": [\"async\"]",
  };
  for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
    void *memory;
    start(stacks[i]);
    assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
    assert_ok(hipmm_allocate(NULL, 3000, NULL, &memory));
    logged();
    assert_ok(hipmm_finalize());
    const char *said = logged();
    assert_contains(said, "warning");
    if (!strstr(said, "2 blocks")) fail_msg("%s: \"%s\" does not tell of 2 blocks", stacks[i], said);
    assert_int_equal(live_on_all_devices(), 0);
  }
}

static void says_nothing_when_nothing_is_left(void **state)
{
  (void)state;
  void *memory;
  start("\"stack\": [{\"type\": \"pool\", \"growth\": \"segments\"}, \"device\"]");
  assert_ok(hipmm_allocate(NULL, 1000, NULL, &memory));
  assert_ok(hipmm_deallocate(NULL, memory, 1000, NULL));
  logged();
  assert_ok(hipmm_finalize());
  assert_null(strstr(logged(), "warning"));
}

/* ---- Streams ---- */

static void tells_every_resource_of_a_stream(void **state)
{
  (void)state;
  start("\"stack\": [\"witness\", \"witness\", \"device\"]");
  assert_ok(hipmm_stream_retire(0, NULL)); /* no stack, nothing to tell */
  assert_ok(hipmm_stream_retain(0, NULL));
  assert_ok(hipmm_stream_retain(0, NULL));
  assert_ok(hipmm_stream_retire(0, NULL));
  assert_int_equal(resource_value(named(0, "witness"), "retained"), 2);
  assert_int_equal(resource_value(named(0, "witness.2"), "retained"), 2);
  assert_int_equal(resource_value(named(0, "witness"), "retired"), 1);
  assert_int_equal(resource_value(named(0, "witness.2"), "retired"), 1);
  resource_of(1);
  assert_int_equal(resource_value(named(1, "witness"), "retired"), 0);
}

static void warns_of_what_is_still_held(void **state)
{
  (void)state;
  struct hipmm_resource *pool, *device, *created;
  void *memory;
  start("\"stack\": [{\"type\": \"pool\", \"growth\": \"segments\", \"initial_size\": \"4MiB\"}, \"device\"]");
  assert_ok(hipmm_resource_get_for_device(0, &pool));
  hipmm_resource_retain(pool);
  assert_ok(hipmm_resource_get_by_name(0, "device", &device));
  assert_ok(hipmm_resource_create(1, "host", NULL, NULL, 0, &created));
  assert_ok(hipmm_allocate(created, 1 << 20, NULL, &memory));
  logged();
  assert_ok(hipmm_finalize());
  const char *said = logged();
  assert_contains(said, "warning");
  assert_contains(said, "device 0: still held: pool (2 references), device (1 reference); 4 MiB");
  assert_contains(said, "device 1: still held: host (1 reference); 1 MiB");
  hipmm_resource_release(pool);
  hipmm_resource_release(pool);
  hipmm_resource_release(device);
  assert_ok(hipmm_deallocate(created, memory, 1 << 20, NULL));
  hipmm_resource_release(created);
  start("\"stack\": [\"device\"]");
  logged();
  assert_ok(hipmm_finalize());
  assert_null(strstr(logged(), "warning"));
}

/* ---- Threads ---- */

static void *allocate_often(void *resource)
{
  for (int i = 0; i < 200; i++) {
    void *memory;
    if (hipmm_allocate(resource, 1000, NULL, &memory) || hipmm_deallocate(resource, memory, 1000, NULL))
      return resource;
    if (hipmm_resource_trim(resource, 0)) return resource;
  }
  return NULL;
}

static void *look_and_set_often(void *resource)
{
  for (int i = 0; i < 200; i++) {
    char *text = NULL;
    if (hipmm_resource_report(resource, &text)) return resource;
    bool is_told = !strcmp(text, "one at a time\n");
    hipmm_string_free(text);
    text = NULL;
    if (!is_told || hipmm_set("devices/0/single/level", i % 2 ? "1" : "2") || hipmm_snapshot(&text)) return resource;
    bool is_shown = strstr(text, "\"memory\"") != NULL;
    hipmm_string_free(text);
    if (!is_shown) return resource;
  }
  return NULL;
}

static void *perform_and_find_often(void *resource)
{
  hipmm_stream_t stream;
  void *memory;
  if (hipmm_allocate(resource, 1000, NULL, &memory) || hipmm_stream_create(0, 0, &stream)) return resource;
  for (int i = 0; i < 200; i++) {
    struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
    if (hipmm_resource_perform(resource, "look") || hipmm_pointer_lookup(memory, &pointer)) return resource;
    hipmm_resource_release(pointer.resource);
    if (pointer.bytes != 1000 || hipmm_stream_retain(0, stream) || hipmm_stream_retire(0, stream)) return resource;
  }
  return hipmm_stream_destroy(stream) || hipmm_deallocate(resource, memory, 1000, NULL) ? resource : NULL;
}

static int count_chunk(void *closure, const struct hipmm_chunk *chunk)
{
  *(size_t *)closure += chunk->bytes;
  return 0;
}

/* Ops that the core calls at the ends of a process, for a device that is admitted, for exports and for suspends. */
static void *use_rare_ops_often(void *resource_)
{
  const struct hipmm_resource *resource = resource_;
  const struct hipmm_ops *ops = resource->ops;
  struct hipmm_location location = {.struct_size = sizeof location};
  size_t bytes = 0;
  bool is_good = true;
  for (int i = 0; i < 200; i++) {
    is_good &= !ops->visit_chunks(resource->self, resource, count_chunk, &bytes);
    is_good &= ops->locate(resource->self, resource, &location) == HIPMM_E_POINTER;
    is_good &= !ops->grant_access(resource->self, 0) && !ops->process_end(resource->self, HIPMM_PROCESS_EXITS);
    is_good &= !ops->suspend(resource->self, HIPMM_CONTENT_KEEP) && !ops->resume(resource->self);
  }
  return is_good && bytes == (size_t)200 * 256 ? NULL : resource_;
}

static void serialises_a_plugin_that_is_not_thread_safe(void **state)
{
  enum { THREADS = 5 };
  static void *(*const runs[THREADS])(void *resource) = {look_and_set_often, perform_and_find_often, allocate_often,
                                                         allocate_often, use_rare_ops_often};
  (void)state;
  pthread_t threads[THREADS];
  start("\"stack\": [\"single\", \"device\"]");
  struct hipmm_resource *resource = resource_of(0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, runs[i], resource), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_int_equal(resource_value(resource, "overlaps"), 0);
}

/* ---- A call that comes back ---- */

struct return_call {
  struct hipmm_resource *resource; /* that is not thread-safe */
  enum hipmm_status allocated, freed, looked, suspended, resumed, granted, ended, visited;
  void *block;
  char reason[200];
  int calls, covered;
};

static void come_back(struct return_call *it, size_t bytes)
{
  void *memory;
  int64_t value;
  size_t shown = 0;
  it->allocated = hipmm_allocate(it->resource, bytes, NULL, &memory);
  snprintf(it->reason, sizeof it->reason, "%s", hipmm_last_error_message());
  it->freed = hipmm_deallocate(it->resource, it->block, 1000, NULL);
  it->looked = hipmm_resource_query(it->resource, "overlaps", &value);
  const struct hipmm_ops *ops = it->resource->ops;
  it->suspended = ops->suspend(it->resource->self, HIPMM_CONTENT_KEEP);
  it->resumed = ops->resume(it->resource->self);
  it->granted = ops->grant_access(it->resource->self, 1);
  it->ended = ops->process_end(it->resource->self, HIPMM_PROCESS_EXITS);
  it->visited = ops->visit_chunks(it->resource->self, it->block, count_chunk, &shown);
  it->covered = ops->covers(it->resource->self, it->block);
  ops->stream_retain(it->resource->self, NULL); /* these two nobody refuses */
  hipmm_stream_retire(0, NULL);
}

/* The second call comes back. */
static enum hipmm_status allocate_and_come_back(void *argument, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                                void **ptr_out)
{
  struct return_call *it = argument;
  (void)stream;
  if (it->calls++) come_back(it, bytes);
  if (it->calls > 1) return HIPMM_E_LIMIT;
  *ptr_out = aligned_alloc(alignment, bytes + alignment - bytes % alignment);
  return *ptr_out ? HIPMM_OK : HIPMM_E_OUT_OF_MEMORY;
}

static void free_block(void *argument, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)argument, (void)bytes, (void)alignment, (void)stream;
  free(ptr);
}

static void refuses_to_come_back_to_a_plugin_that_is_not_thread_safe(void **state)
{
  (void)state;
  void *memory;
  struct return_call it = {.calls = 0};
  const struct hipmm_allocator allocator = {sizeof allocator, allocate_and_come_back, free_block, &it};
  assert_ok(hipmm_allocator_register("back", &allocator));
  start("\"stack\": [\"single\", {\"type\": \"callback\", \"allocator\": \"back\"}]");
  it.resource = resource_of(0);
  assert_ok(hipmm_allocate(it.resource, 1000, NULL, &it.block));
  alarm(20);
  assert_status(hipmm_allocate(it.resource, 2 << 20, NULL, &memory), HIPMM_E_LIMIT);
  alarm(0);
  assert_int_equal(it.calls, 2);
  assert_int_equal(it.allocated, HIPMM_E_STATE);
  assert_contains(it.reason, "single: it is not thread-safe, and a thread is in a call of it");
  assert_int_equal(it.freed, HIPMM_E_STATE);
  assert_int_equal(it.looked, HIPMM_E_STATE);
  const enum hipmm_status others[] = {it.suspended, it.resumed, it.granted, it.ended, it.visited};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_int_equal(others[i], HIPMM_E_STATE);
  assert_int_equal(it.covered, 0);
  assert_int_equal(resource_value(it.resource, "overlaps"), 0);
  assert_ok(hipmm_deallocate(it.resource, it.block, 1000, NULL)); /* which is there still */
  assert_ok(hipmm_allocator_register("back", NULL));
}

/* ---- Building by many ---- */

static void *get_resource(void *unused)
{
  struct hipmm_resource *resource = NULL;
  (void)unused;
  return hipmm_resource_get_for_device(1, &resource) ? NULL : resource;
}

static void is_built_once_by_many_threads(void **state)
{
  (void)state;
  pthread_t threads[8];
  void *resources[8];
  start("\"stack\": [{\"type\": \"pool\", \"initial_size\": \"8MiB\", \"growth\": \"segments\"}, \"device\"]");
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, get_resource, NULL), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], &resources[i]);
  assert_non_null(resources[0]);
  for (int i = 0; i < 8; i++) {
    assert_ptr_equal(resources[i], resources[0]);
    hipmm_resource_release(resources[i]);
  }
  assert_int_equal(live_on(1), 1);
}

/* ---- Resources that a program asks for by name ---- */

#define NAMED                                                                                                          \
  "\"resources\": {\"memory\": {\"type\": \"device\"}, "                                                               \
  "\"main\": {\"type\": \"pool\", \"upstream\": \"memory\", \"growth\": \"segments\"}, "                               \
  "\"seen\": {\"type\": \"witness\", \"upstream\": \"memory\"}, "                                                      \
  "\"weights\": {\"type\": \"pool\", \"upstream\": \"seen\", \"initial_size\": \"4MiB\", \"growth\": \"segments\"}}, " \
  "\"devices\": {\"default\": \"main\"}"

static void builds_a_named_resource_at_the_first_request(void **state)
{
  int64_t value = 0;
  size_t held = 0;
  char *json;
  hipmm_stream_t stream;
  (void)state;
  start(NAMED);
  struct hipmm_resource *memory = named(0, "memory"), *nothing = NULL;
  assert_ok(hipmm_stream_create(0, HIPMM_STREAM_NON_BLOCKING, &stream));
  assert_int_equal(live_on(0), 0);
  assert_status(hipmm_query("devices/0/weights/live_bytes", &value), HIPMM_E_STATE);
  assert_message("weights is not built yet; get it with hipmm_resource_get_by_name()");
  assert_status(hipmm_resource_get_by_name(0, "weigths", &nothing), HIPMM_E_ARGUMENT);
  assert_message("did you mean \"weights\"?");
  struct hipmm_resource *weights = named(0, "weights");
  assert_ptr_equal(named(0, "weights"), weights);
  assert_ptr_equal(named(0, "memory"), memory); /* one instance for both stacks of the device */
  assert_int_equal(live_on(0), 1);
  assert_int_equal(live_on(1), 0);
  assert_string_equal(hipmm_resource_name(resource_of(0)), "main");
  assert_int_equal(resource_value(named(0, "seen"), "retained"), 1); /* the stream from before */
  assert_ok(hipmm_device_held_bytes(0, &held, NULL));
  assert_int_equal(held, 4 * MIB);
  assert_ok(hipmm_query("devices/0/weights/live_bytes", &value));
  assert_ok(hipmm_snapshot(&json));
  assert_contains(json, "\"name\": \"weights\"");
  hipmm_string_free(json);
  assert_ok(hipmm_list("devices/0/weights", &json));
  assert_contains(json, "devices/0/weights/live_bytes");
  hipmm_string_free(json);
  assert_ok(hipmm_device_trim(0, 0));
  assert_int_equal(live_on(0), 0);
  assert_ok(hipmm_stream_destroy(stream));
  assert_int_equal(resource_value(named(0, "seen"), "retired"), 1);
}

static void builds_a_named_resource_again_after_a_failure(void **state)
{
  enum { ALL = 100 };
  struct hipmm_resource *resource = NULL;
  char *json;
  void *ptr;
  (void)state;
  start(NAMED);
  resource_of(0);
  for (unsigned nth = 1; nth <= ALL; nth++) software()->schedule("hipMalloc", nth, 0); /* it is tried again */
  assert_status(hipmm_resource_get_by_name(0, "weights", &resource), HIPMM_E_OUT_OF_MEMORY);
  assert_message("<string>: /resources/weights/initial_size: weights: ");
  assert_null(resource);
  assert_int_equal(live_on(0), 0);
  assert_ok(hipmm_snapshot(&json));
  assert_null(strstr(json, "\"name\": \"seen\"")); /* nor what it depends on */
  hipmm_string_free(json);
  while (hip_table()->Malloc(&ptr, 1)) continue;
  assert_int_equal(hip_table()->Free(ptr), 0);
  assert_string_equal(hipmm_resource_name(named(0, "weights")), "weights");
  assert_int_equal(live_on(0), 1);
}

static void *get_weights(void *unused)
{
  struct hipmm_resource *resource = NULL;
  char *json = NULL;
  (void)unused;
  if (!hipmm_snapshot(&json)) hipmm_string_free(json);
  return hipmm_resource_get_by_name(1, "weights", &resource) ? NULL : resource;
}

static void builds_a_named_resource_once_for_many_threads(void **state)
{
  (void)state;
  pthread_t threads[8];
  void *resources[8];
  start(NAMED);
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, get_weights, NULL), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], &resources[i]);
  assert_non_null(resources[0]);
  for (int i = 0; i < 8; i++) {
    assert_ptr_equal(resources[i], resources[0]);
    hipmm_resource_release(resources[i]);
  }
  assert_int_equal(live_on(1), 1);
}

static atomic_int streams_told; /* negative: no more are wanted */

static void *create_streams(void *n_failures)
{
  while (atomic_load(&streams_told) >= 0) {
    hipmm_stream_t stream;
    if (hipmm_stream_create(1, HIPMM_STREAM_NON_BLOCKING, &stream) || hipmm_stream_destroy(stream))
      ++*(int *)n_failures;
    atomic_fetch_add(&streams_told, 1);
  }
  return NULL;
}

/* ThreadSanitizer sees it if a resource that is not there yet is told of a stream. */
static void tells_of_streams_while_it_builds_a_named_resource(void **state)
{
  for (int i = 0; i < 5; i++) {
    pthread_t thread;
    int failed = 0;
    start(NAMED);
    named(1, "main");
    atomic_store(&streams_told, 0);
    assert_int_equal(pthread_create(&thread, NULL, create_streams, &failed), 0);
    while (atomic_load(&streams_told) < 10) sched_yield();
    named(1, "weights");
    atomic_store(&streams_told, INT_MIN);
    pthread_join(thread, NULL);
    assert_int_equal(failed, 0);
    finish(state);
  }
}

int main(void)
{
  use_test_plugins();
  log_to_file("info");
  struct CMUnitTest tests[32] = {
      cmocka_unit_test_teardown(touches_no_device_before_it_is_asked_for, finish),
      cmocka_unit_test_teardown(builds_one_device_at_a_time, finish),
      cmocka_unit_test_teardown(success_keeps_the_record_of_an_earlier_failure, finish),
      cmocka_unit_test_teardown(gives_each_device_its_own, finish),
      cmocka_unit_test_teardown(shares_what_two_resources_use, finish),
      cmocka_unit_test_teardown(builds_a_deep_stack, finish),
      cmocka_unit_test_teardown(works_on_its_own_device_whatever_is_current, finish),
      cmocka_unit_test_teardown(locates_what_a_runtime_refuses, finish),
      cmocka_unit_test_teardown(warns_of_live_blocks_and_gives_them_back, finish),
      cmocka_unit_test_teardown(says_nothing_when_nothing_is_left, finish),
      cmocka_unit_test_teardown(warns_of_what_is_still_held, finish),
      cmocka_unit_test_teardown(tells_every_resource_of_a_stream, finish),
      cmocka_unit_test_teardown(serialises_a_plugin_that_is_not_thread_safe, finish),
      cmocka_unit_test_teardown(refuses_to_come_back_to_a_plugin_that_is_not_thread_safe, finish),
      cmocka_unit_test_teardown(is_built_once_by_many_threads, finish),
      cmocka_unit_test_teardown(builds_a_named_resource_at_the_first_request, finish),
      cmocka_unit_test_teardown(builds_a_named_resource_again_after_a_failure, finish),
      cmocka_unit_test_teardown(builds_a_named_resource_once_for_many_threads, finish),
      cmocka_unit_test_teardown(tells_of_streams_while_it_builds_a_named_resource, finish),
  };
  size_t n = 19;
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
    tests[n++] = (struct CMUnitTest){.name = failures[i].name,
                                     .test_func = cannot_create,
                                     .teardown_func = finish,
                                     .initial_state = (void *)(uintptr_t)&failures[i]};
  return _cmocka_run_group_tests("stack", tests, n, NULL, NULL);
}
