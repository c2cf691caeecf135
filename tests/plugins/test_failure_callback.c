/* SPDX-License-Identifier: MIT */
/* Tests of failure_callback: when the program's function is called, what it may do, and that it is never entered again
 * from within itself. */
#include "../support/behaviour.h"
#include "../support/stream_program.h"

#include <hipmm/inspect.h>
#include <hipmm/stream.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CALLS   "{'type': 'failure_callback', 'callback': 'spill'}"
#define FULL_AT "{'type': 'pool', 'maximum_size': '4MiB', 'growth': 'segments'}"
#define LIMITED "{'type': 'limiting', 'limit': '1MiB'}"

static const char pooled[] = "'stack': [" CALLS ", " FULL_AT ", 'device']";
static const char limited[] = "'stack': [" CALLS ", " LIMITED ", 'device']";

/* What the program's function works with: blocks that it may free, one a call, and what it saw. */
static struct spill {
  struct hipmm_block blocks[8];
  int n_blocks;
  int calls, give_up_after; /* says no from this call on; 0: when nothing is left to free */
  size_t bytes;             /* of the last call */
  int depth, deepest;
  enum hipmm_status inner; /* of what it allocated itself */
} spill;

static int free_one(void *argument, size_t bytes)
{
  struct spill *it = argument;
  it->calls++;
  it->bytes = bytes;
  if (it->give_up_after) return it->calls < it->give_up_after;
  if (!it->n_blocks) return 0;
  struct hipmm_block *block = &it->blocks[--it->n_blocks];
  return hipmm_deallocate(NULL, block->ptr, block->bytes, NULL) == HIPMM_OK;
}

static void use(const char *name, int (*callback)(void *, size_t), void *argument)
{
  const struct hipmm_failure_handler failure = {sizeof failure, callback, argument};
  assert_ok(hipmm_failure_handler_register(name, &failure));
}

static int setup(void **state)
{
  spill = (struct spill){.calls = 0};
  use("spill", free_one, &spill);
  return fixture_setup(state);
}

static void keep(size_t bytes)
{
  spill.blocks[spill.n_blocks++] = (struct hipmm_block){fixture_allocate(bytes, NULL), bytes};
}

/* ---- When ---- */

static void is_called_until_there_is_enough(void **state)
{
  (void)state;
  fixture_start(pooled);
  for (int i = 0; i < 4; i++) keep(MIB);
  assert_int_equal(spill.calls, 0);
  void *ptr = fixture_allocate(2 * MIB, NULL); /* two blocks must go */
  assert_int_equal(spill.calls, 2);
  assert_int_equal(spill.bytes, 2 * MIB);
  assert_int_equal(spill.n_blocks, 2);
  assert_int_equal(fixture_value("failure_callback", "calls"), 2);
  assert_int_equal(fixture_value("failure_callback", "rescues"), 1);
  assert_int_equal(fixture_value("failure_callback", "failures"), 0);
  fixture_free(ptr, 2 * MIB, NULL);
  while (spill.n_blocks) free_one(&spill, 0);
}

static void lets_it_fail_when_told_so(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(pooled);
  spill.give_up_after = 5;
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_null(ptr);
  assert_int_equal(spill.calls, 5);
  assert_message("pool: "); /* the upstream's reason */
  assert_int_equal(fixture_value("failure_callback", "calls"), 5);
  assert_int_equal(fixture_value("failure_callback", "rescues"), 0);
  assert_int_equal(fixture_value("failure_callback", "failures"), 1);
}

static void is_called_for_a_limit(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(limited);
  keep(MIB);
  void *block = fixture_allocate(1000, NULL);
  assert_int_equal(spill.calls, 1);
  assert_status(hipmm_allocate(NULL, MIB, NULL, &ptr), HIPMM_E_LIMIT);
  assert_int_equal(spill.calls, 2);
  fixture_free(block, 1000, NULL);
}

static void is_called_when_the_device_is_full(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'stack': [" CALLS ", 'device']");
  keep(200 * MIB);
  void *ptr = fixture_allocate(200 * MIB, NULL);
  assert_int_equal(spill.calls, 1);
  fixture_free(ptr, 0, NULL);
}

static void is_not_called_for_other_failures(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'stack': [" CALLS ", 'device']");
  fixture_fail_call("hipMalloc", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_status(hipmm_allocate_aligned(NULL, 1000, 4096, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_int_equal(spill.calls, 0);
  assert_int_equal(fixture_value("failure_callback", "failures"), 0);
}

/* The function says that it is worth another try, and then it is another failure. */
static void ends_with_another_failure(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'stack': [" CALLS ", 'device']");
  spill.give_up_after = 100;
  fixture_fail_call("hipMalloc", 1, HIPMM_HIP_ERROR_OUT_OF_MEMORY);
  fixture_fail_call("hipMalloc", 2, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_null(ptr);
  assert_int_equal(spill.calls, 1);
}

static void knows_the_largest_sizes_and_none(void **state)
{
  static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX / 2, (size_t)1 << 40};
  void *ptr = NULL;
  (void)state;
  fixture_start(pooled);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_status(hipmm_allocate(NULL, sizes[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
    assert_true(spill.bytes == sizes[i]);
  }
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  assert_int_equal(spill.calls, sizeof sizes / sizeof *sizes);
}

static void passes_frees_on(void **state)
{
  (void)state;
  behaviour_frees_pass_through("" CALLS ", " FULL_AT ", 'device'");
}

/* ---- Within the function ---- */

/* Asks for what it is asked for: too much again. */
static int allocate_again(void *argument, size_t bytes)
{
  struct spill *it = argument;
  void *ptr = NULL;
  it->calls++;
  if (++it->depth > it->deepest) it->deepest = it->depth;
  it->inner = hipmm_allocate(NULL, bytes, NULL, &ptr);
  it->depth--;
  return it->calls < 3;
}

static void is_not_entered_again_from_within(void **state)
{
  void *ptr = NULL;
  (void)state;
  use("spill", allocate_again, &spill);
  fixture_start(pooled);
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(spill.inner, HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(spill.calls, 3);
  assert_int_equal(spill.deepest, 1);
  assert_int_equal(fixture_value("failure_callback", "failures"), 4); /* the three within, and it */
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(spill.calls, 4); /* the way into it is open again */
}

static int allocate_of(void *argument, size_t bytes)
{
  void *ptr = NULL;
  spill.calls++;
  if (++spill.depth > spill.deepest) spill.deepest = spill.depth;
  enum hipmm_status status = hipmm_allocate(fixture_resource(argument), bytes, NULL, &ptr);
  spill.depth--;
  return status == HIPMM_OK;
}

/* Each resource's function asks the other resource. */
static void ends_between_two_resources(void **state)
{
  void *ptr = NULL;
  (void)state;
  use("ask_two", allocate_of, (void *)(uintptr_t) "two");
  use("ask_one", allocate_of, (void *)(uintptr_t) "one");
  fixture_start("'resources': {'one': {'type': 'failure_callback', 'callback': 'ask_two', 'upstream': 'limit'}, "
                "'two': {'type': 'failure_callback', 'callback': 'ask_one', 'upstream': 'limit'}, "
                "'limit': {'type': 'limiting', 'limit': '1MiB', 'upstream': 'memory'}, 'memory': {'type': 'device'}, "
                "'top': {'type': 'fallback', 'upstream': ['one', 'two']}}");
  assert_status(hipmm_allocate(fixture_resource("one"), 2 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
  assert_int_equal(spill.calls, 2);
  assert_int_equal(spill.deepest, 2);
}

static enum hipmm_status tried[4]; /* of the pool above, by its function */

static int try_the_pool_above(void *argument, size_t bytes)
{
  struct hipmm_block *block = argument;
  void *ptr = NULL;
  int64_t value;
  spill.calls++;
  tried[0] = hipmm_allocate(NULL, bytes, NULL, &ptr);
  tried[1] = hipmm_deallocate(NULL, block->ptr, block->bytes, NULL);
  tried[2] = hipmm_resource_trim(fixture_resource("pool"), 0);
  tried[3] = hipmm_resource_query(fixture_resource("pool"), "live_bytes", &value);
  return 0;
}

/* By a thread that has just come, or has long been alone: it has no lock of the pool any more. */
static void may_use_a_pool_above_it(void **state)
{
  struct hipmm_block block = {.bytes = MIB / 2};
  (void)state;
  use("spill", try_the_pool_above, &block);
  for (int alone = 0; alone <= 5000; alone += 5000) {
    void *ptr = NULL;
    fixture_start("'stack': [{'type': 'pool', 'growth': 'segments'}, " CALLS ", " LIMITED ", 'device']");
    for (int i = 0; i < alone; i++) fixture_free(fixture_allocate(MIB / 4, NULL), MIB / 4, NULL);
    block.ptr = fixture_allocate(block.bytes, NULL);
    spill.calls = 0;
    assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
    assert_true(spill.calls > 0);
    assert_int_equal(tried[0], HIPMM_E_LIMIT);
    assert_int_equal(tried[1], spill.calls == 1 ? HIPMM_OK : HIPMM_E_POINTER); /* in the last call */
    assert_ok(tried[2]);
    assert_ok(tried[3]);
    assert_int_equal(fixture_value("pool", "live_bytes"), 0);
    assert_int_equal(fixture_value("pool", "reserved_bytes"), 0);
    hipmm_finalize();
  }
}

/* The program frees what the pool above then serves the allocation with. */
static void lets_a_pool_above_it_be_served_from_what_was_freed(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'segments'}, " CALLS ", " LIMITED ", 'device']");
  for (int i = 0; i < 2; i++) spill.blocks[i] = (struct hipmm_block){fixture_allocate(MIB / 2, NULL), MIB / 2};
  spill.n_blocks = 2;
  void *ptr = fixture_allocate(MIB, NULL);
  assert_int_equal(spill.n_blocks, 0);
  assert_int_equal(fixture_value("pool", "live_bytes"), MIB);
  fixture_free(ptr, MIB, NULL);
}

static int replace_itself(void *argument, size_t bytes)
{
  struct spill *it = argument;
  (void)bytes;
  it->calls++;
  return hipmm_failure_handler_register("spill", NULL) == HIPMM_OK; /* the second time it is gone */
}

static void lasts_as_long_as_the_stack(void **state)
{
  void *ptr = NULL;
  (void)state;
  use("spill", replace_itself, &spill);
  fixture_start(pooled);
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(spill.calls, 2);
}

static int count_call(void *argument, size_t bytes)
{
  (void)bytes;
  return ++*(int *)argument < 2;
}

static void can_be_given_another_function(void **state)
{
  int calls = 0;
  void *ptr = NULL;
  (void)state;
  use("other", count_call, &calls);
  fixture_start(pooled);
  assert_ok(hipmm_set("devices/0/failure_callback/callback", "other"));
  assert_ok(hipmm_failure_handler_register("other", NULL));
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(calls, 2);
  assert_int_equal(spill.calls, 0);
  assert_status(hipmm_set("devices/0/failure_callback/callback", "other"), HIPMM_E_CONFIG); /* it is gone */
  assert_status(hipmm_set("devices/0/failure_callback/callback", NULL), HIPMM_E_CONFIG);    /* it is required */
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(calls, 3); /* as it was */
}

/* ---- Graphs ---- */

struct graph_case {
  const char *stack, *message;
};

static const struct graph_case wrong_graphs[] = {
    {"'failure_callback', 'device'", "failure_callback needs \"callback\""},
    {"{'type': 'failure_callback', 'callback': 'spil'}, 'device'",
     "/stack/0/callback: no failure is registered as \"spil\"; did you mean \"spill\"?"},
    {"{'type': 'failure_callback', 'callback': 7}, 'device'", "/stack/0/callback: 7 is not the name"},
    {"{'type': 'failure_callback', 'callback': 'spill'}", "needs an upstream"},
};

static void refuses_graphs_without_its_function(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof wrong_graphs / sizeof *wrong_graphs; i++) {
    char graph[300];
    snprintf(graph, sizeof graph, "'stack': [%s]", wrong_graphs[i].stack);
    assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
    assert_message(wrong_graphs[i].message);
    hipmm_finalize();
  }
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 1000 };

static pthread_barrier_t all_within;

static int wait_for_the_others(void *argument, size_t bytes)
{
  (void)argument, (void)bytes;
  pthread_barrier_wait(&all_within);
  return 0;
}

static void fail_once(int *failures)
{
  void *ptr = NULL;
  *failures += hipmm_allocate(NULL, 5 * MIB, NULL, &ptr) != HIPMM_E_OUT_OF_MEMORY;
}

/* Were a lock held during the function, the first thread in it would wait for ever. */
static void lets_all_threads_in_at_once(void **state)
{
  (void)state;
  use("spill", wait_for_the_others, NULL);
  fixture_start(pooled);
  pthread_barrier_init(&all_within, NULL, THREADS);
  fixture_run_threads(THREADS, fail_once);
  pthread_barrier_destroy(&all_within);
}

/* A thread's only block, in a resource where there is room for one: who wants another gives up its own. */
static _Thread_local struct hipmm_block own;

static int give_up_own(void *argument, size_t bytes)
{
  (void)argument, (void)bytes;
  if (own.ptr && hipmm_deallocate(NULL, own.ptr, own.bytes, NULL)) return 0;
  own.ptr = NULL;
  sched_yield();
  return 1;
}

static void compete(int *failures)
{
  for (size_t i = 0; i < ROUNDS; i++) {
    struct hipmm_block next = {.bytes = MIB / 2 + 1 + i};
    *failures += hipmm_allocate(NULL, next.bytes, NULL, &next.ptr) != HIPMM_OK;
    if (own.ptr) *failures += hipmm_deallocate(NULL, own.ptr, own.bytes, NULL) != HIPMM_OK;
    own = next;
  }
  *failures += hipmm_deallocate(NULL, own.ptr, own.bytes, NULL) != HIPMM_OK;
  own.ptr = NULL;
}

static void serves_threads_that_compete(void **state)
{
  (void)state;
  use("spill", give_up_own, NULL);
  fixture_start("'stack': [" CALLS ", " LIMITED ", 'pool', 'device']");
  fixture_run_threads(THREADS, compete);
  assert_in_range(fixture_value("failure_callback", "rescues"), THREADS * (ROUNDS - 1), THREADS * ROUNDS);
  assert_int_equal(fixture_value("failure_callback", "failures"), 0);
  assert_int_equal(fixture_value("limiting", "allocated_bytes"), 0);
}

/* Below a pool, which makes one attempt after the other. Each resource asks once for each attempt that reaches it, and after a
 * yes those below it are asked anew. */
static char asked[200];

static int note_question(void *name, size_t bytes)
{
  size_t used = strlen(asked);
  snprintf(asked + used, sizeof asked - used, "%s %zu, ", (const char *)name, bytes >> 10);
  return ++spill.calls == spill.give_up_after;
}

static void asks_in_the_order_of_the_attempts(void **state)
{
  static const char *const orders[] = {
      "low 2048, high 2048, low 2048, high 2048, low 2048, high 2048, ",
      "low 2048, low 2048, high 2048, low 2048, high 2048, low 2048, high 2048, ",
      "low 2048, high 2048, low 2048, high 2048, low 2048, high 2048, low 2048, high 2048, "};
  (void)state;
  use("high", note_question, (void *)(uintptr_t) "high");
  use("low", note_question, (void *)(uintptr_t) "low");
  for (int yes = 0; yes < 3; yes++) {
    void *ptr = NULL;
    fixture_start("'stack': ['pool', {'type': 'failure_callback', 'callback': 'high'}, {'type': 'failure_callback', "
                  "'callback': 'low'}, " LIMITED ", 'device']");
    asked[0] = '\0';
    spill.calls = 0;
    spill.give_up_after = yes;
    void *held = fixture_allocate(MIB / 2, NULL);
    assert_status(hipmm_allocate(NULL, 2 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
    assert_message("limiting: ");
    assert_string_equal(asked, orders[yes]);
    fixture_free(held, MIB / 2, NULL);
    hipmm_finalize();
  }
}

/* ---- Threads that are out of memory at once ---- */

enum { HANG_SECONDS = 20 };

enum what { TRIM, TRIM_DEVICE, ALLOCATE, QUERY, PEAKS, SET, SNAPSHOT, LIST, VISIT, STREAM, WHATS };

/* Two threads, each in the program's function below a resource of its own, which use the other's resource there. */
static struct meeting {
  pthread_barrier_t both;
  struct hipmm_resource *tops[2];
  enum what what;
  enum hipmm_status statuses[2];
} meeting;

static _Thread_local int my_top = -1; /* of the thread, until it has met the other */

static void look_at(void *unused, struct hipmm_resource *resource)
{
  int64_t value;
  (void)unused;
  if (hipmm_resource_query(resource, "live_bytes", &value)) return; /* it has none, or is busy */
}

static enum hipmm_status use_other(struct hipmm_resource *other)
{
  char option[100], *text = NULL;
  enum hipmm_status status = HIPMM_E_INTERNAL;
  hipmm_stream_t stream;
  void *ptr = NULL;
  int64_t value;
  switch (meeting.what) {
  case TRIM: return hipmm_trim(0);
  case TRIM_DEVICE: return hipmm_device_trim(0, 0);
  case ALLOCATE: return hipmm_allocate(other, MIB / 4, NULL, &ptr);
  case QUERY: return hipmm_resource_query(other, "live_bytes", &value);
  case PEAKS: return hipmm_resource_reset_peaks(other);
  case SET:
    snprintf(option, sizeof option, "devices/0/%s/maximum_size", hipmm_resource_name(other));
    return hipmm_set(option, "50MiB");
  case SNAPSHOT: status = hipmm_snapshot(&text); break;
  case LIST: status = hipmm_list(NULL, &text); break;
  case VISIT: return hipmm_resource_visit(0, look_at, NULL);
  default:
    status = hipmm_stream_create(0, 0, &stream);
    if (!status) status = hipmm_stream_destroy(stream);
  }
  hipmm_string_free(text);
  return status;
}

static void meet_the_other(void)
{
  int me = my_top;
  if (me < 0) return;
  my_top = -1;
  pthread_barrier_wait(&meeting.both);
  meeting.statuses[me] = use_other(meeting.tops[1 - me]);
  pthread_barrier_wait(&meeting.both);
}

static int meet_in_handler(void *unused, size_t bytes)
{
  (void)unused, (void)bytes;
  meet_the_other();
  return 0;
}

static enum hipmm_status meet_in_allocator(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  meet_the_other();
  return HIPMM_E_OUT_OF_MEMORY;
}

static void free_nothing(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)ptr, (void)bytes, (void)alignment, (void)stream;
}

static void *allocate_too_much(void *me)
{
  void *ptr = NULL;
  my_top = (int)(uintptr_t)me;
  enum hipmm_status status = hipmm_allocate(meeting.tops[my_top], MIB / 4, NULL, &ptr);
  return hipmm_is_out_of_memory(status) ? NULL : &meeting;
}

static const char *const lockers[] = {"'pool'",
                                      "'arena'",
                                      "'fixed_size', 'block_size': '256KiB', 'blocks_per_chunk': 1",
                                      "'monotonic'",
                                      "'binning', 'bins': [{'size': '256KiB'}], 'blocks_per_chunk': 1",
                                      "'thread_safe'",
                                      "'single'",
                                      "'hoarder'"};

enum { LOCKERS = sizeof lockers / sizeof *lockers };

/* `below` stands below both resources; a name of a resource in it ends with %d. */
static void meet_over(const char *locker, const char *below, enum what what)
{
  char graph[900];
  pthread_t threads[2];
  int used = snprintf(graph, sizeof graph, "'resources': {'both': {'type': 'fallback', 'upstream': ['top0', 'top1']}");
  for (int i = 0; i < 2; i++) {
    used += snprintf(graph + used, sizeof graph - (size_t)used,
                     ", 'top%d': {'type': %s, 'upstream': 'below%d'}, 'below%d': ", i, locker, i, i);
    used += snprintf(graph + used, sizeof graph - (size_t)used, "%s", below);
  }
  snprintf(
      graph + used, sizeof graph - (size_t)used,
      ", 'full': {'type': 'limiting', 'limit': 0, 'upstream': 'memory'}, 'memory': {'type': 'device'}}, 'devices': "
      "{'default': 'both'}");
  fixture_start(graph);
  meeting.what = what;
  meeting.tops[0] = fixture_resource("top0");
  meeting.tops[1] = fixture_resource("top1");
  pthread_barrier_init(&meeting.both, NULL, 2);
  alarm(HANG_SECONDS);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, allocate_too_much, (void *)(uintptr_t)i), 0);
  for (int i = 0; i < 2; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  alarm(0);
  pthread_barrier_destroy(&meeting.both);
  assert_ok(hipmm_finalize());
}

/* Only what the types offer: SET and QUERY are an error of another kind elsewhere. */
static bool offers(const char *locker, enum what what)
{
  return what != SET || !strcmp(locker, "'pool'") || !strcmp(locker, "'arena'") || !strcmp(locker, "'monotonic'");
}

static void does_not_wait_for_another_thread_that_is_out_of_memory(void **state)
{
  (void)state;
  use("spill", meet_in_handler, NULL);
  for (size_t i = 0; i < LOCKERS; i++)
    for (enum what what = 0; what < WHATS; what++) {
      if (!offers(lockers[i], what)) continue;
      meet_over(lockers[i], "{'type': 'failure_callback', 'callback': 'spill', 'upstream': 'full'}", what);
      for (int me = 0; me < 2; me++) {
        enum hipmm_status status = meeting.statuses[me];
        bool is_good =
            what == ALLOCATE ? hipmm_is_out_of_memory(status) : !status || (what == QUERY && status != HIPMM_E_STATE);
        if (!is_good) fail_msg("%d of %s: %d", (int)what, lockers[i], (int)status);
      }
    }
}

/* An allocator runs within the allocation, under the locks of what is above. What needs the other thread's lock is refused,
 * and what is for all resources passes it over. */
static void an_allocator_is_refused_what_it_would_wait_for(void **state)
{
  const struct hipmm_allocator allocator = {sizeof allocator, meet_in_allocator, free_nothing, NULL};
  (void)state;
  assert_ok(hipmm_allocator_register("meets", &allocator));
  for (size_t i = 0; i < LOCKERS; i++)
    for (enum what what = 0; what < WHATS; what++) {
      if (!offers(lockers[i], what)) continue;
      meet_over(lockers[i], "{'type': 'callback', 'allocator': 'meets'}", what);
      bool is_refused = what == ALLOCATE || what == SET;
      bool may_be_refused = what == QUERY || what == PEAKS;
      for (int me = 0; me < 2; me++) {
        enum hipmm_status status = meeting.statuses[me];
        if (!(is_refused ? status == HIPMM_E_STATE : !status || may_be_refused))
          fail_msg("%d of %s: %d", (int)what, lockers[i], (int)status);
      }
    }
}

/* One thread in an allocator below `low`, and another in a call of `high`, which is over `low` or beside it. */
static struct {
  pthread_barrier_t both;
  struct hipmm_resource *low, *high;
  enum hipmm_status status; /* of the first thread's call of `high` */
} crossing;

static _Thread_local bool crosses; /* the thread, in its next allocator */

static enum hipmm_status call_high(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  int64_t value;
  (void)unused, (void)alignment, (void)stream;
  if (crosses) {
    crosses = false;
    pthread_barrier_wait(&crossing.both);
    usleep(20000); /* for the other thread to enter */
    crossing.status = hipmm_resource_query(crossing.high, "live_bytes", &value);
  }
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void free_to_hip(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  if (fixture_hip()->Free(ptr)) print_error("a block is lost\n");
}

static void *allocate_from_low(void *unused)
{
  void *ptr = NULL;
  (void)unused;
  crosses = true;
  bool is_good = !hipmm_allocate(crossing.low, MIB, NULL, &ptr) && !hipmm_deallocate(crossing.low, ptr, MIB, NULL);
  return is_good ? NULL : &crossing;
}

static void *allocate_from_high(void *unused)
{
  void *ptr = NULL;
  (void)unused;
  pthread_barrier_wait(&crossing.both);
  bool is_good = !hipmm_allocate(crossing.high, MIB, NULL, &ptr) && !hipmm_deallocate(crossing.high, ptr, MIB, NULL);
  return is_good ? NULL : &crossing;
}

static void rest_for_a_while(void *unused, const struct hipmm_extent *extent)
{
  (void)unused, (void)extent;
  usleep(60000);
}

/* Holds the lock of `high`. */
static void *look_at_high(void *unused)
{
  void *ptr = NULL;
  (void)unused;
  if (hipmm_allocate(crossing.high, MIB, NULL, &ptr)) return &crossing;
  pthread_barrier_wait(&crossing.both);
  bool is_good = !hipmm_resource_visit_blocks(crossing.high, rest_for_a_while, NULL);
  return is_good && !hipmm_deallocate(crossing.high, ptr, MIB, NULL) ? NULL : &crossing;
}

static void cross(const char *high_upstream, void *(*other)(void *unused))
{
  const struct hipmm_allocator allocator = {sizeof allocator, call_high, free_to_hip, NULL};
  char graph[400];
  pthread_t threads[2];
  snprintf(
      graph, sizeof graph,
      "'resources': {'both': {'type': 'fallback', 'upstream': ['high', 'low']}, 'high': {'type': 'pool', 'upstream': "
      "'%s'}, 'low': {'type': 'pool', 'upstream': 'own'}, 'own': {'type': 'callback', 'allocator': 'calls'}, "
      "'memory': {'type': 'device'}, 'all': {'type': 'fallback', 'upstream': ['both', 'memory']}}, 'devices': "
      "{'default': 'all'}",
      high_upstream);
  assert_ok(hipmm_allocator_register("calls", &allocator));
  fixture_start(graph);
  crossing.low = fixture_resource("low");
  crossing.high = fixture_resource("high");
  crossing.status = HIPMM_E_INTERNAL;
  pthread_barrier_init(&crossing.both, NULL, 2);
  alarm(HANG_SECONDS);
  assert_int_equal(pthread_create(&threads[0], NULL, allocate_from_low, NULL), 0);
  assert_int_equal(pthread_create(&threads[1], NULL, other, NULL), 0);
  for (int i = 0; i < 2; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  alarm(0);
  pthread_barrier_destroy(&crossing.both);
}

/* The other thread holds the lock of `high` and waits for that of `low`, around which the allocator runs. */
static void an_allocator_does_not_wait_for_one_that_waits_for_it(void **state)
{
  (void)state;
  cross("low", allocate_from_high);
  assert_true(crossing.status == HIPMM_E_STATE || !crossing.status); /* the other thread may have come late */
}

/* No allocator runs below `high`, so that its lock is left soon. */
static void an_allocator_waits_for_a_thread_that_goes_on(void **state)
{
  (void)state;
  cross("memory", look_at_high);
  assert_ok(crossing.status);
}

/* ---- Within other calls ---- */

static void is_called_while_a_resource_is_created(void **state)
{
  struct hipmm_resource *made, *calls;
  (void)state;
  fixture_start(limited);
  calls = fixture_resource("failure_callback");
  keep(MIB);
  assert_ok(hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"1MiB\"}", &calls, 1, &made));
  assert_int_equal(spill.calls, 1);
  assert_int_equal(spill.bytes, MIB);
  assert_int_equal(fixture_value("failure_callback", "rescues"), 1);
  assert_status(hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"1MiB\"}", &calls, 1, &made),
                HIPMM_E_OUT_OF_MEMORY);
  assert_message("the upstream does not have 1048576 bytes");
  assert_int_equal(spill.calls, 2);
  hipmm_resource_release(made);
}

static int set_the_same(void *unused, size_t bytes)
{
  (void)unused, (void)bytes;
  spill.calls++;
  tried[0] = hipmm_set("devices/0/binning/extra_bins", "[{\"size\": \"64KiB\"}]");
  return free_one(&spill, bytes);
}

/* The setting is not under way meanwhile. */
static void is_called_while_an_option_is_set(void **state)
{
  (void)state;
  use("spill", set_the_same, NULL);
  fixture_start(
      "'stack': [{'type': 'binning', 'bins': [{'size': '1KiB'}], 'blocks_per_chunk': 1, 'blocks_to_preallocate': "
      "1}, " CALLS ", " LIMITED ", 'device']");
  keep(MIB - 4096);
  assert_ok(hipmm_set("devices/0/binning/extra_bins", "[{\"size\": \"64KiB\"}, {\"size\": \"128KiB\"}]"));
  assert_int_equal(spill.n_blocks, 0);
  assert_int_equal(tried[0], HIPMM_E_LIMIT);
}

/* ---- Threads that end ---- */

/* A thread that used the resource at the top and ends when it is told to; and what the program's allocator, which is
 * called under the lock of that resource, does besides. */
static struct {
  void (*act)(void);
  const char *type; /* of the resource at the top */
  pthread_t thread;
  pthread_barrier_t has_used, may_end;
  struct hipmm_resource *other;
  int calls;
} ending;

static void *use_then_end(void *unused)
{
  void *ptr = NULL;
  (void)unused;
  if (!hipmm_allocate(NULL, 1000, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 1000, NULL);
  pthread_barrier_wait(&ending.has_used);
  pthread_barrier_wait(&ending.may_end);
  return NULL;
}

static enum hipmm_status act_under_a_lock(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  (void)unused, (void)alignment, (void)stream;
  if (bytes >= 8 * MIB && !ending.calls++) ending.act();
  if (bytes >= 50 * MIB) return HIPMM_E_LIMIT;
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static void start_over_allocator(const char *graph, void (*act)(void))
{
  const struct hipmm_allocator allocator = {sizeof allocator, act_under_a_lock, free_to_hip, NULL};
  assert_ok(hipmm_allocator_register("acts", &allocator));
  ending.act = act;
  ending.calls = 0;
  fixture_start(graph);
}

static void wait_for_its_end(void)
{
  pthread_barrier_wait(&ending.may_end);
  pthread_join(ending.thread, NULL);
}

static struct hipmm_resource *new_resource(const char *type)
{
  struct hipmm_resource *device = NULL, *resource = NULL;
  if (hipmm_resource_create(0, "device", NULL, NULL, 0, &device)) return NULL;
  if (hipmm_resource_create(0, type, NULL, &device, 1, &resource)) resource = NULL;
  hipmm_resource_release(device);
  return resource;
}

/* Long enough for the thread to be at its end, where it may wait for the lock of the resource at the top. */
static void exchange_resources(void)
{
  pthread_barrier_wait(&ending.may_end);
  usleep(50000);
  hipmm_resource_release(ending.other);
  ending.other = new_resource(ending.type);
}

/* `act` is called under the lock of the resource at the top, of `type`, while a thread that used it ends. */
static void call_beside_a_thread_that_ends(const char *type, void (*act)(void), bool is_joined_there)
{
  char graph[200];
  void *ptr;
  snprintf(graph, sizeof graph, "'stack': ['%s', {'type': 'callback', 'allocator': 'acts'}]", type);
  start_over_allocator(graph, act);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  ending.type = type;
  ending.other = new_resource(type);
  pthread_barrier_init(&ending.has_used, NULL, 2);
  pthread_barrier_init(&ending.may_end, NULL, 2);
  assert_int_equal(pthread_create(&ending.thread, NULL, use_then_end, NULL), 0);
  pthread_barrier_wait(&ending.has_used);
  alarm(HANG_SECONDS);
  assert_status(hipmm_allocate(NULL, 100 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
  if (!is_joined_there) pthread_join(ending.thread, NULL);
  alarm(0);
  assert_true(ending.calls >= 1);
  assert_non_null(ending.other);
  hipmm_resource_release(ending.other);
  pthread_barrier_destroy(&ending.has_used);
  pthread_barrier_destroy(&ending.may_end);
  /* What the thread kept for itself is there for others. */
  assert_ok(hipmm_resource_trim(fixture_resource(type), 0));
  assert_int_equal(fixture_value(type, "reserved_bytes"), 0);
}

/* The thread takes locks at its end that the function's caller holds. */
static void exchanges_resources_while_a_thread_ends(void **state)
{
  (void)state;
  call_beside_a_thread_that_ends("pool", exchange_resources, false);
  hipmm_finalize();
  call_beside_a_thread_that_ends("arena", exchange_resources, false);
}

/* A thread's end does not wait for a resource that is busy. */
static void waits_for_a_thread_that_ends(void **state)
{
  (void)state;
  call_beside_a_thread_that_ends("pool", wait_for_its_end, true);
  hipmm_finalize();
  call_beside_a_thread_that_ends("arena", wait_for_its_end, true);
}

/* ---- Options ---- */

static enum hipmm_status set_elsewhere, set_below, set_above;

static void *set_maximum(void *unused)
{
  (void)unused;
  set_elsewhere = hipmm_set("devices/0/pool/maximum_size", "100MiB");
  return NULL;
}

/* While another thread sets an option of the pool, and waits for it. */
static void set_options(void)
{
  pthread_create(&ending.thread, NULL, set_maximum, NULL);
  usleep(50000);
  set_above = hipmm_set("devices/0/pool/maximum_size", "50MiB");
  set_below = hipmm_set("devices/0/limiting/limit", "16MiB");
}

static void an_allocator_may_set_options_of_what_is_not_in_use(void **state)
{
  (void)state;
  start_over_allocator("'stack': [{'type': 'pool', 'growth': 'segments'}, {'type': 'limiting', 'limit': '100MiB'}, "
                       "{'type': 'callback', 'allocator': 'acts'}]",
                       set_options);
  alarm(HANG_SECONDS);
  void *ptr = fixture_allocate(8 * MIB, NULL);
  pthread_join(ending.thread, NULL);
  alarm(0);
  assert_ok(set_below);
  assert_ok(set_elsewhere);
  assert_int_equal(set_above, HIPMM_E_STATE);
  fixture_free(ptr, 8 * MIB, NULL);
}

/* ---- Resources that an allocator creates ---- */

static enum hipmm_status created;

static void create_over_calls(void)
{
  struct hipmm_resource *calls = fixture_resource("failure_callback"), *made;
  created = hipmm_resource_create(0, "monotonic", "{\"initial_size\": \"2MiB\"}", &calls, 1, &made);
}

/* The program answers no, and is not asked again. */
static void is_called_once_while_an_allocator_creates_a_resource(void **state)
{
  (void)state;
  start_over_allocator("'resources': {'all': {'type': 'fallback', 'upstream': ['pool', 'failure_callback']}, "
                       "'pool': {'type': 'pool', 'growth': 'segments', 'upstream': 'own'}, "
                       "'own': {'type': 'callback', 'allocator': 'acts'}, "
                       "'failure_callback': {'type': 'failure_callback', 'callback': 'spill', 'upstream': 'limit'}, "
                       "'limit': {'type': 'limiting', 'limit': '1MiB', 'upstream': 'memory'}, "
                       "'memory': {'type': 'device'}}, 'devices': {'default': 'all'}",
                       create_over_calls);
  fixture_free(fixture_allocate(8 * MIB, NULL), 8 * MIB, NULL);
  assert_int_equal(ending.calls, 1);
  assert_int_equal(created, HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(spill.calls, 1);
}

/* ---- Random programs, and failing calls ---- */

static int trim_then_give_up(void *argument, size_t bytes)
{
  static int turn;
  (void)bytes;
  if (++turn % 2) return 0;
  return hipmm_resource_trim(fixture_resource(argument), 0) == HIPMM_OK;
}

static void assert_was_busy(void)
{
  assert_in_range(fixture_value("failure_callback", "calls"), 10, 10000);
}

static void agrees_with_a_model(void **state)
{
  (void)state;
  use("spill", trim_then_give_up, (void *)(uintptr_t) "pool");
  stream_program_run_over_pool("'stack': [" CALLS
                               ", {'type': 'pool', 'maximum_size': '256KiB', 'growth': 'segments'}, 'device']",
                               2000, assert_was_busy);
}

static void work(void)
{
  void *ptr = NULL;
  spill = (struct spill){.calls = 0};
  for (int i = 0; i < 4; i++) {
    struct hipmm_block *block = &spill.blocks[spill.n_blocks];
    block->bytes = MIB;
    spill.n_blocks += !hipmm_allocate(NULL, MIB, NULL, &block->ptr);
  }
  if (!hipmm_allocate(NULL, 2 * MIB, NULL, &ptr) && hipmm_deallocate(NULL, ptr, 0, NULL))
    if (hipmm_deallocate(NULL, ptr, 0, NULL)) print_error("a free failed twice\n");
  while (spill.n_blocks) free_one(&spill, 0);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  assert_in_range(fixture_fail_each_call("'scheduler': 'stepped'", pooled, work), 5, 1000);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(is_called_until_there_is_enough),
      TEST(lets_it_fail_when_told_so),
      TEST(is_called_for_a_limit),
      TEST(is_called_when_the_device_is_full),
      TEST(is_not_called_for_other_failures),
      TEST(ends_with_another_failure),
      TEST(knows_the_largest_sizes_and_none),
      TEST(passes_frees_on),
      TEST(is_not_entered_again_from_within),
      TEST(ends_between_two_resources),
      TEST(may_use_a_pool_above_it),
      TEST(lets_a_pool_above_it_be_served_from_what_was_freed),
      TEST(asks_in_the_order_of_the_attempts),
      TEST(does_not_wait_for_another_thread_that_is_out_of_memory),
      TEST(an_allocator_is_refused_what_it_would_wait_for),
      TEST(an_allocator_does_not_wait_for_one_that_waits_for_it),
      TEST(an_allocator_waits_for_a_thread_that_goes_on),
      TEST(is_called_while_a_resource_is_created),
      TEST(is_called_while_an_option_is_set),
      TEST(lasts_as_long_as_the_stack),
      TEST(can_be_given_another_function),
      TEST(refuses_graphs_without_its_function),
      TEST(lets_all_threads_in_at_once),
      TEST(serves_threads_that_compete),
      TEST(exchanges_resources_while_a_thread_ends),
      TEST(waits_for_a_thread_that_ends),
      TEST(an_allocator_may_set_options_of_what_is_not_in_use),
      TEST(is_called_once_while_an_allocator_creates_a_resource),
      TEST(agrees_with_a_model),
      TEST(loses_nothing_whatever_call_fails),
  };
  use_test_plugins();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
