/* SPDX-License-Identifier: MIT */
/* Tests of the type `hooks`: the program hears of each event once, in its order, with its numbers. */
#include "../support/fixture.h"

#include <string.h>

struct heard {
  struct hipmm_event events[64];
  char resources[64][16];
  int n;
};

static void note(void *arg, const struct hipmm_event *event)
{
  struct heard *heard = arg;
  if (heard->n == 64) return;
  strncpy(heard->resources[heard->n], event->resource, 15);
  heard->events[heard->n++] = *event;
}

static void start(struct heard *heard, uint64_t kinds, const char *graph)
{
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .kinds = kinds, .callback = note, .arg = heard};
  assert_ok(hipmm_hooks_register("mine", &hooks));
  fixture_start(graph);
}

static int finish(void **state)
{
  int result = fixture_teardown(state);
  hipmm_hooks_register("mine", NULL);
  return result;
}

static const struct hipmm_event *next(struct heard *heard, int *at, enum hipmm_event_kind kind)
{
  assert_true(*at < heard->n);
  assert_int_equal(heard->events[*at].kind, kind);
  assert_int_equal(heard->events[*at].struct_size, sizeof(struct hipmm_event));
  assert_int_equal(heard->events[*at].device, 0);
  return &heard->events[(*at)++];
}

static void tells_of_everything_in_its_order(void **state)
{
  (void)state;
  struct heard heard = {.n = 0};
  void *none = NULL;
  int at = 0;
  start(&heard, 0, "'stack': [{'type': 'hooks', 'hooks': 'mine'}, {'type': 'pool', 'growth': 'segments'}, 'device']");
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(1000, stream);
  const struct hipmm_event *grew = next(&heard, &at, HIPMM_EVENT_GREW);
  assert_string_equal(heard.resources[0], "device");
  assert_int_equal(grew->held_bytes, fixture_held_bytes());
  assert_int_equal(grew->bytes, fixture_held_bytes());
  const struct hipmm_event *allocated = next(&heard, &at, HIPMM_EVENT_ALLOCATED);
  assert_string_equal(heard.resources[1], "hooks");
  assert_ptr_equal(allocated->ptr, ptr);
  assert_int_equal(allocated->bytes, 1000);
  assert_ptr_equal(allocated->stream, stream);
  assert_status(hipmm_deallocate(NULL, ptr, 999, stream), HIPMM_E_SIZE);
  assert_int_equal(next(&heard, &at, HIPMM_EVENT_FREED)->bytes, 999);
  assert_int_equal(next(&heard, &at, HIPMM_EVENT_FREE_REFUSED)->bytes, 999);
  assert_ok(hipmm_deallocate(NULL, ptr, 0, stream));
  const struct hipmm_event *freed = next(&heard, &at, HIPMM_EVENT_FREED);
  assert_ptr_equal(freed->ptr, ptr);
  assert_int_equal(freed->bytes, 1000);
  assert_status(hipmm_allocate(NULL, MIB << 20, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  while (heard.events[at].kind == HIPMM_EVENT_SHRANK) at++;
  assert_int_equal(next(&heard, &at, HIPMM_EVENT_OUT_OF_MEMORY)->bytes, MIB << 20);
  assert_status(hipmm_allocate_aligned(NULL, 1000, 3, NULL, &none), HIPMM_E_ARGUMENT);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  int n = heard.n;
  fixture_free(NULL, 0, NULL);
  assert_int_equal(heard.n, n);
  assert_ok(hipmm_resource_trim(fixture_resource("hooks"), 0));
  assert_int_equal(heard.events[heard.n - 1].kind, HIPMM_EVENT_SHRANK);
  assert_int_equal(heard.events[heard.n - 1].held_bytes, 0);
  fixture_drop_stream(stream);
}

/* Mapped memory grows without allocations of the upstream. */
static void tells_of_mapped_growth(void **state)
{
  (void)state;
  struct heard heard = {.n = 0};
  size_t grown = 0, shrunk = 0;
  start(&heard, 1u << HIPMM_EVENT_GREW | 1u << HIPMM_EVENT_SHRANK,
        "'stack': [{'type': 'hooks', 'hooks': 'mine'}, {'type': 'pool', 'growth': 'mapped'}, 'device']");
  void *ptr = fixture_allocate(9 * MIB, NULL);
  assert_true(heard.n > 0);
  assert_int_equal(heard.events[heard.n - 1].held_bytes, fixture_held_bytes());
  fixture_free(ptr, 9 * MIB, NULL);
  assert_ok(hipmm_device_trim(0, 0));
  for (int i = 0; i < heard.n; i++)
    *(heard.events[i].kind == HIPMM_EVENT_GREW ? &grown : &shrunk) += heard.events[i].bytes;
  assert_true(grown >= 9 * MIB);
  assert_int_equal(grown, shrunk);
}

/* Of the sources below it alone, in other stacks too; and of nothing once it is gone. */
static void tells_of_what_is_below(void **state)
{
  (void)state;
  struct heard heard = {.n = 0};
  void *ptr = NULL;
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = note, .arg = &heard};
  const struct hipmm_object objects[] = {{"hooks", &hooks}};
  struct hipmm_resource *device, *made = NULL, *other = NULL;
  fixture_start("'stack': ['device']");
  device = fixture_resource("device");
  const struct hipmm_recipe recipe = {.struct_size = sizeof recipe,
                                      .type = "hooks",
                                      .upstreams = &device,
                                      .n_upstreams = 1,
                                      .objects = objects,
                                      .n_objects = 1};
  assert_ok(hipmm_resource_create_from(0, &recipe, &made));
  assert_ok(hipmm_resource_create(0, "device", NULL, NULL, 0, &other));
  assert_ok(hipmm_allocate(other, 1000, NULL, &ptr));
  assert_ok(hipmm_deallocate(other, ptr, 1000, NULL));
  assert_int_equal(heard.n, 0);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL); /* not by way of the hooks */
  assert_int_equal(heard.n, 2);
  assert_int_equal(heard.events[0].kind, HIPMM_EVENT_GREW);
  assert_int_equal(heard.events[1].kind, HIPMM_EVENT_SHRANK);
  hipmm_resource_release(made);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_int_equal(heard.n, 2);
  hipmm_resource_release(other);
}

/* Under the pool's lock, and under none. */
static void call_hipmm(void *arg, const struct hipmm_event *event)
{
  enum hipmm_event_kind *kinds = arg;
  void *ptr = NULL;
  int64_t value;
  bool is_refused = hipmm_allocate(NULL, 1000, NULL, &ptr) == HIPMM_E_STATE &&
                    strstr(hipmm_last_error_message(), "a function of hooks, which must call nothing of hipmm") &&
                    hipmm_query("devices/0/pool/live_bytes", &value) == HIPMM_E_STATE &&
                    hipmm_log_set_level(HIPMM_LOG_INFO) == HIPMM_E_STATE && hipmm_finalize() == HIPMM_E_STATE;
  if (is_refused) kinds[event->kind] = event->kind;
}

static void refuses_calls_of_the_function(void **state)
{
  (void)state;
  enum hipmm_event_kind refused[16] = {0};
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = call_hipmm, .arg = refused};
  void *none = NULL;
  assert_ok(hipmm_hooks_register("mine", &hooks));
  fixture_start("'stack': [{'type': 'hooks', 'hooks': 'mine'}, 'pool', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 999, NULL), HIPMM_E_SIZE);
  assert_message("999");
  fixture_free(ptr, 1000, NULL);
  assert_status(hipmm_allocate(NULL, MIB << 20, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("pool");
  static const enum hipmm_event_kind kinds[] = {HIPMM_EVENT_GREW, HIPMM_EVENT_ALLOCATED, HIPMM_EVENT_FREED,
                                                HIPMM_EVENT_FREE_REFUSED, HIPMM_EVENT_OUT_OF_MEMORY};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) assert_int_equal(refused[kinds[i]], kinds[i]);
}

static void needs_a_function(void **state)
{
  (void)state;
  const struct hipmm_hooks nothing = {.struct_size = sizeof nothing}, small = {.struct_size = 8};
  assert_status(hipmm_hooks_register("mine", &nothing), HIPMM_E_ARGUMENT);
  assert_message("callback is NULL");
  assert_status(hipmm_hooks_register("mine", &small), HIPMM_E_ARGUMENT);
  assert_message("struct_size is 8");
  assert_status(fixture_try("", "'stack': [{'type': 'hooks', 'hooks': 'nobody'}, 'device']"), HIPMM_E_CONFIG);
  assert_message("no hooks is registered as \"nobody\"");
  hipmm_finalize();
  assert_status(fixture_try("", "'stack': ['hooks', 'device']"), HIPMM_E_CONFIG);
}

static struct heard nobody;

static void work(void)
{
  struct hipmm_resource *top = NULL;
  void *ptr = NULL;
  if (hipmm_resource_get_for_device(0, &top)) return;
  if (!hipmm_allocate(top, 1000, NULL, &ptr)) hipmm_deallocate(top, ptr, 0, NULL);
  hipmm_resource_release(top);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = note, .arg = &nobody};
  assert_ok(hipmm_hooks_register("mine", &hooks));
  assert_true(fixture_fail_each_call("", "'stack': [{'type': 'hooks', 'hooks': 'mine'}, 'device']", work) > 3);
}

static void count(void *arg, const struct hipmm_event *event)
{
  (void)event;
  atomic_fetch_add((atomic_uint *)arg, 1);
}

static void thread_works(int *failures)
{
  for (int i = 0; i < 200; i++) {
    void *ptr = NULL;
    if (hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL)) ++*failures;
  }
}

static void tells_every_thread(void **state)
{
  (void)state;
  atomic_uint events = 0;
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = count, .arg = &events};
  assert_ok(hipmm_hooks_register("mine", &hooks));
  fixture_start("'stack': [{'type': 'hooks', 'hooks': 'mine'}, 'device']");
  fixture_run_threads(4, thread_works);
  assert_int_equal(events, 4 * 200 * 4);
}

#define hooks_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, finish)

int main(void)
{
  const struct CMUnitTest tests[] = {
      hooks_test(tells_of_everything_in_its_order),
      hooks_test(tells_of_mapped_growth),
      hooks_test(tells_of_what_is_below),
      hooks_test(refuses_calls_of_the_function),
      hooks_test(needs_a_function),
      hooks_test(loses_nothing_whatever_call_fails),
      hooks_test(tells_every_thread),
  };
  return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
