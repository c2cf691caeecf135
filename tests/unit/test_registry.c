/* SPDX-License-Identifier: MIT */
/* Tests of core/option/registry.c and of options of the type OBJECT: plugins get a copy of the struct that the program
 * registered, which lives as long as they do; an invalid name or struct is refused at its place. */
#include "../../core/graph/graph.h"
#include "../../core/option/registry.h"
#include "../support/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNTIME "\"runtime\": {\"type\": \"software\", \"devices\": 1, \"memory\": \"64MiB\"}, "

static enum hipmm_status allocate_nothing(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  (void)arg, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return HIPMM_E_OUT_OF_MEMORY;
}

static void deallocate_nothing(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)arg, (void)ptr, (void)bytes, (void)alignment, (void)stream;
}

static int give_up(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static struct hipmm_allocator allocator(uintptr_t arg)
{
  return (struct hipmm_allocator){sizeof(struct hipmm_allocator), allocate_nothing, deallocate_nothing, (void *)arg};
}

static struct hipmm_failure_handler failure(uintptr_t arg)
{
  return (struct hipmm_failure_handler){sizeof(struct hipmm_failure_handler), give_up, (void *)arg};
}

static struct hipmm_region region(size_t bytes)
{
  return (struct hipmm_region){sizeof(struct hipmm_region), (void *)(uintptr_t)4096, bytes};
}

static struct hipmm_mempool mempool(uintptr_t handle)
{
  return (struct hipmm_mempool){sizeof(struct hipmm_mempool), (void *)handle};
}

static int finish(void **state)
{
  (void)state;
  static const char *const names[] = {"one", "two", "mine"};
  hipmm_finalize();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    hipmm_allocator_register(names[i], NULL);
    hipmm_failure_handler_register(names[i], NULL);
    hipmm_region_register(names[i], NULL);
    hipmm_mempool_register(names[i], NULL);
  }
  return live_on_all_devices() ? -1 : 0;
}

/* Builds the stack of one variable_plugin resource with these options. */
static enum hipmm_status start(const char *options, struct hipmm_resource **resource_out)
{
  char *json;
  assert_true(asprintf(&json, "{" RUNTIME "\"stack\": [{\"type\": \"variable_plugin\"%s%s}, \"host\"]}",
                       *options ? ", " : "", options) > 0);
  assert_ok(hipmm_init_from_string(json));
  free(json);
  enum hipmm_status status = hipmm_resource_get_for_device(0, resource_out);
  return status;
}

/* ---- What plugins get ---- */

static void gives_plugins_what_was_registered(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  struct hipmm_allocator a = allocator(11);
  struct hipmm_failure_handler f = failure(22);
  struct hipmm_region r = region(33), other = region(100);
  struct hipmm_mempool m = mempool(44);
  assert_ok(hipmm_allocator_register("one", &a)); /* one name, four kinds */
  assert_ok(hipmm_failure_handler_register("one", &f));
  assert_ok(hipmm_region_register("one", &r));
  assert_ok(hipmm_region_register("two", &other));
  assert_ok(hipmm_mempool_register("one", &m));
  a.arg = f.arg = m.handle = NULL; /* what was registered is a copy */
  r.bytes = other.bytes = 1;
  assert_ok(start("\"allocator\": \"one\", \"failure\": \"one\", \"region\": \"one\", \"mempool\": \"one\", "
                  "\"rules\": [{\"region\": \"one\"}, {}, {\"region\": \"two\"}]",
                  &resource));
  assert_int_equal(resource_value(resource, "allocator_arg"), 11);
  assert_int_equal(resource_value(resource, "failure_arg"), 22);
  assert_int_equal(resource_value(resource, "region_bytes"), 33);
  assert_int_equal(resource_value(resource, "mempool_handle"), 44);
  assert_int_equal(resource_value(resource, "rules_bytes"), 133);
  hipmm_resource_release(resource);
}

static void gives_nothing_when_nothing_is_named(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  assert_ok(start("", &resource));
  assert_int_equal(resource_value(resource, "allocator_arg"), -1);
  assert_int_equal(resource_value(resource, "region_bytes"), -1);
  hipmm_resource_release(resource);
}

static void keeps_what_a_stack_uses(void **state)
{
  (void)state;
  struct hipmm_resource *first, *second;
  struct hipmm_region r = region(33);
  assert_ok(hipmm_region_register("one", &r));
  assert_ok(start("\"region\": \"one\"", &first));
  r.bytes = 66;
  assert_ok(hipmm_region_register("one", &r));
  assert_int_equal(resource_value(first, "region_bytes"), 33); /* built before */
  assert_ok(hipmm_finalize());
  assert_ok(start("\"region\": \"one\"", &second)); /* registered past finalisation */
  assert_int_equal(resource_value(second, "region_bytes"), 66);
  assert_ok(hipmm_region_register("one", NULL));
  assert_int_equal(resource_value(first, "region_bytes"), 33);
  assert_int_equal(resource_value(second, "region_bytes"), 66);
  hipmm_resource_release(first);
  hipmm_resource_release(second);
}

static void takes_a_later_programs_longer_struct(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  struct {
    struct hipmm_region region;
    uint64_t more;
  } longer = {region(55), 99};
  longer.region.struct_size = sizeof longer;
  assert_ok(hipmm_region_register("one", &longer.region));
  assert_ok(start("\"region\": \"one\"", &resource));
  assert_int_equal(resource_value(resource, "region_bytes"), 55);
  const struct hipmm_region *copy = registry_acquire("region", "one");
  assert_int_equal(copy->struct_size, sizeof(struct hipmm_region));
  registry_release(copy);
  hipmm_resource_release(resource);
}

/* ---- Graphs that name what is not there ---- */

static void refuses_when_it_is_built(const char *options, const char *message)
{
  struct hipmm_resource *resource = NULL;
  assert_status(start(options, &resource), HIPMM_E_CONFIG);
  assert_null(resource);
  assert_string_equal(hipmm_last_error_message(), message);
  assert_ok(hipmm_finalize());
}

static void says_what_is_missing_when_a_stack_is_built(void **state)
{
  (void)state;
  struct hipmm_region r = region(33);
  refuses_when_it_is_built("\"allocator\": \"mine\"",
                           "<string>: /stack/0/allocator: no allocator is registered as \"mine\"; the program must "
                           "call hipmm_allocator_register() before this is built");
  assert_ok(hipmm_region_register("mine", &r)); /* of another kind */
  refuses_when_it_is_built("\"failure\": \"mine\"",
                           "<string>: /stack/0/failure: no failure is registered as \"mine\"; the program must call "
                           "hipmm_failure_handler_register() before this is built");
  refuses_when_it_is_built("\"region\": \"mien\"", "<string>: /stack/0/region: no region is registered as \"mien\"; "
                                                   "did you mean \"mine\"?");
  refuses_when_it_is_built("\"rules\": [{\"region\": \"mine\"}, {\"region\": \"far\"}]",
                           "<string>: /stack/0/rules/1/region: no region is registered as \"far\"; the program must "
                           "call hipmm_region_register() before this is built");
}

static void a_later_try_finds_what_was_missing(void **state)
{
  (void)state;
  struct hipmm_resource *resource = NULL;
  struct hipmm_mempool m = mempool(44);
  assert_status(start("\"mempool\": \"mine\"", &resource), HIPMM_E_CONFIG);
  assert_ok(hipmm_mempool_register("mine", &m));
  assert_ok(hipmm_resource_get_for_device(0, &resource));
  assert_int_equal(resource_value(resource, "mempool_handle"), 44);
  hipmm_resource_release(resource);
}

static void a_graph_is_checked_without_the_program(void **state)
{
  (void)state;
  struct diagnostics report = {.source = "<string>"};
  assert_ok(graph_from_string("{\"stack\": [{\"type\": \"variable_plugin\", \"region\": \"nobody\"}, \"host\"]}",
                              "<string>", &report, NULL));
  assert_int_equal(report.n_errors + report.n_warnings, 0);
  assert_status(graph_from_string("{\"stack\": [{\"type\": \"variable_plugin\", \"region\": \"a b\", \"mempool\": 3}, "
                                  "\"host\"]}",
                                  "<string>", &report, NULL),
                HIPMM_E_CONFIG);
  assert_int_equal(report.n_errors, 2);
  assert_string_equal(report.first->path, "/stack/0/region");
  assert_contains(report.first->message, "\"a b\" is not a name; write at most 100 letters, digits");
  assert_string_equal(report.last->path, "/stack/0/mempool");
  assert_string_equal(report.last->message, "3 is not the name of a registered mempool");
  diagnostics_clear(&report);
}

/* ---- Registering wrongly ---- */

static void refuses_what_is_no_name(void **state)
{
  (void)state;
  struct hipmm_region r = region(33);
  char longest[102];
  memset(longest, 'x', sizeof longest);
  longest[101] = '\0';
  static const char *const bad[] = {"", "1st", "a b", "a/b", "gr\xc3\xb6n", "a\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_status(hipmm_region_register(bad[i], &r), HIPMM_E_ARGUMENT);
    assert_message("hipmm_region_register: \"");
    assert_message("is not a name; write at most 100 letters");
    assert_status(hipmm_region_register(bad[i], NULL), HIPMM_E_ARGUMENT);
  }
  assert_status(hipmm_region_register(longest, &r), HIPMM_E_ARGUMENT);
  longest[100] = '\0';
  assert_ok(hipmm_region_register(longest, &r));
  assert_ok(hipmm_region_register(longest, NULL));
  assert_status(hipmm_region_register(NULL, &r), HIPMM_E_ARGUMENT);
  assert_message("hipmm_region_register: name is NULL");
}

static void refuses_a_broken_struct_and_keeps_what_was_there(void **state)
{
  (void)state;
  struct hipmm_allocator a = allocator(11);
  struct hipmm_failure_handler f = failure(22);
  struct hipmm_region r = region(33);
  struct hipmm_mempool m = mempool(44);
  assert_ok(hipmm_region_register("one", &r));
  r.struct_size = sizeof r - 1;
  assert_status(hipmm_region_register("one", &r), HIPMM_E_ARGUMENT);
  assert_message("hipmm_region_register: struct_size is 23; set it to sizeof(struct hipmm_region), 24");
  r = region(0);
  assert_status(hipmm_region_register("one", &r), HIPMM_E_ARGUMENT);
  assert_message("bytes is 0");
  r = region(SIZE_MAX);
  assert_status(hipmm_region_register("one", &r), HIPMM_E_ARGUMENT);
  assert_message("beyond the end of all addresses");
  r = region(10);
  r.ptr = NULL;
  assert_status(hipmm_region_register("one", &r), HIPMM_E_ARGUMENT);
  assert_message("ptr is NULL");
  m.handle = NULL;
  assert_status(hipmm_mempool_register("one", &m), HIPMM_E_ARGUMENT);
  assert_message("hipmm_mempool_register: handle is NULL");
  f.callback = NULL;
  assert_status(hipmm_failure_handler_register("one", &f), HIPMM_E_ARGUMENT);
  assert_message("hipmm_failure_handler_register: callback is NULL");
  a.deallocate = NULL;
  assert_status(hipmm_allocator_register("one", &a), HIPMM_E_ARGUMENT);
  assert_message("hipmm_allocator_register: deallocate is NULL");
  a.allocate = NULL;
  assert_status(hipmm_allocator_register("one", &a), HIPMM_E_ARGUMENT);
  assert_message("hipmm_allocator_register: allocate is NULL");
  const struct hipmm_region *kept = registry_acquire("region", "one");
  assert_int_equal(kept->bytes, 33);
  registry_release(kept);
  assert_null(registry_acquire("allocator", "one"));
}

static void takes_away_only_what_is_there(void **state)
{
  (void)state;
  struct hipmm_region r = region(33);
  assert_ok(hipmm_region_register("mine", &r));
  assert_status(hipmm_region_register("mien", NULL), HIPMM_E_ARGUMENT);
  assert_message("hipmm_region_register: no region is registered as \"mien\"; did you mean \"mine\"?");
  assert_status(hipmm_mempool_register("mine", NULL), HIPMM_E_ARGUMENT);
  assert_string_equal(hipmm_last_error_message(), "hipmm_mempool_register: no mempool is registered as \"mine\"");
  assert_ok(hipmm_region_register("mine", NULL));
  assert_status(hipmm_region_register("mine", NULL), HIPMM_E_ARGUMENT);
}

static void knows_its_kinds(void **state)
{
  (void)state;
  assert_true(registry_kind_exists("mempool"));
  assert_false(registry_kind_exists("pool"));
  assert_false(registry_kind_exists(NULL));
  assert_string_equal(registry_function("failure"), "hipmm_failure_handler_register");
  assert_null(registry_function("pool"));
  assert_null(registry_acquire("pool", "one"));
}

/* ---- Threads and forks ---- */

enum { TURNS = 2000 };

static void *register_often(void *unused)
{
  (void)unused;
  for (int i = 0; i < TURNS; i++) {
    struct hipmm_region r = region(33 + (size_t)i);
    hipmm_region_register("one", i % 7 == 6 ? NULL : &r);
  }
  return NULL;
}

static void *acquire_often(void *unused)
{
  (void)unused;
  char near[128];
  for (int i = 0; i < TURNS; i++) {
    const struct hipmm_region *got = registry_acquire("region", "one");
    registry_nearest("region", "ono", near, sizeof near);
    if (got && (got->bytes < 33 || got->struct_size != sizeof *got)) return (void *)(uintptr_t)got;
    registry_release(got);
  }
  return NULL;
}

static void is_replaced_while_others_use_it(void **state)
{
  (void)state;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? register_often : acquire_often, NULL), 0);
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  struct hipmm_region r = region(1);
  assert_ok(hipmm_region_register("one", &r));
}

static int register_in_child(const void *unused)
{
  (void)unused;
  struct hipmm_region r = region(33);
  alarm(20);
  return hipmm_region_register("mine", &r) != HIPMM_E_STATE;
}

static int register_in_fresh_child(const void *unused)
{
  (void)unused;
  struct hipmm_region r = region(33);
  alarm(20);
  return hipmm_region_register("mine", &r) || hipmm_region_register("mine", NULL);
}

#if defined(__SANITIZE_THREAD__)
HIPMM_EXPORT const char *__tsan_default_options(void);

/* A child lacks the threads of its parent, which is no leak. */
const char *__tsan_default_options(void)
{
  return "report_thread_leaks=0";
}
#endif

static atomic_bool searching, enough;

/* Holds the list's lock most of the time, so that a fork gets it in between. Allocates nothing: AddressSanitizer's
 * allocator does not survive a fork while another thread is inside it. */
static void *search_in_vain(void *unused)
{
  (void)unused;
  do {
    hipmm_region_register("none-of-many-names-alike", NULL);
    atomic_store(&searching, true);
    usleep(100);
  } while (!atomic_load(&enough));
  return NULL;
}

/* So that a search takes long; NULL takes them away. */
static void register_many(const struct hipmm_region *r)
{
  char name[40];
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "one-of-many-names-alike-%d", i);
    assert_ok(hipmm_region_register(name, r));
  }
}

/* Before the first initialisation: run first. */
static void may_be_used_in_the_child_of_a_fork_that_came_before(void **state)
{
  (void)state;
  struct hipmm_region r = region(33);
  register_many(&r);
  pthread_t thread;
  int failed = 0;
  assert_int_equal(pthread_create(&thread, NULL, search_in_vain, NULL), 0);
  while (!atomic_load(&searching)) sched_yield();
  for (int i = 0; i < 10 && !failed; i++) failed = run_forked(register_in_fresh_child, NULL).status;
  atomic_store(&enough, true);
  pthread_join(thread, NULL);
  assert_int_equal(failed, 0);
  register_many(NULL);
}

static void is_refused_in_the_child_of_a_later_fork(void **state)
{
  (void)state;
  struct hipmm_resource *resource;
  assert_ok(start("", &resource));
  assert_int_equal(run_forked(register_in_child, NULL).status, 0);
  hipmm_resource_release(resource);
}

#define object_test(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
  use_test_plugins();
  const struct CMUnitTest tests[] = {
      object_test(may_be_used_in_the_child_of_a_fork_that_came_before),
      object_test(gives_plugins_what_was_registered),
      object_test(gives_nothing_when_nothing_is_named),
      object_test(keeps_what_a_stack_uses),
      object_test(takes_a_later_programs_longer_struct),
      object_test(says_what_is_missing_when_a_stack_is_built),
      object_test(a_later_try_finds_what_was_missing),
      object_test(a_graph_is_checked_without_the_program),
      object_test(refuses_what_is_no_name),
      object_test(refuses_a_broken_struct_and_keeps_what_was_there),
      object_test(takes_away_only_what_is_there),
      object_test(knows_its_kinds),
      object_test(is_replaced_while_others_use_it),
      object_test(is_refused_in_the_child_of_a_later_fork),
  };
  return cmocka_run_group_tests_name("object", tests, NULL, NULL);
}
