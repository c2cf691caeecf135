/* SPDX-License-Identifier: MIT */
/* Tests of tracking: the list is exact, says who allocated, and is written in the end; wrong frees are refused and
 * told. */
#include "../support/behaviour.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char tracked[] = "'stack': ['tracking', 'device']";
static const char traced[] =
    "'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0, 'stack_depth': 3}, 'device']";

static unsigned count_of(const char *text, const char *part)
{
  unsigned n = 0;
  for (const char *at = text; (at = strstr(at, part)); at++) n++;
  return n;
}

/* What the list says. */
static const char *listed(void)
{
  logged();
  assert_ok(hipmm_resource_perform(fixture_resource("tracking"), "log_outstanding"));
  return logged();
}

static void lists_what_is_allocated(void **state)
{
  char wanted[200];
  (void)state;
  fixture_start(tracked);
  hipmm_stream_t stream = fixture_stream();
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(50, stream),
       *third = fixture_allocate(7, NULL);
  assert_null(fixture_allocate(0, NULL));
  fixture_free(first, 1000, NULL);
  assert_int_equal(fixture_value("tracking", "outstanding_bytes"), 57);
  assert_int_equal(fixture_value("tracking", "outstanding_count"), 2);
  assert_int_equal(fixture_value("tracking", "total_count"), 3);
  const char *text = listed();
  assert_contains(text, "device 0: 2 allocations outstanding, 57 bytes");
  snprintf(wanted, sizeof wanted, "%p: 50 B (allocation 2, stream %p)\n", second, (void *)stream);
  assert_contains(text, wanted);
  snprintf(wanted, sizeof wanted, "%p: 7 B (allocation 3, stream (nil))\n", third);
  assert_contains(text, wanted);
  assert_null(strstr(text, "1000 B"));
  assert_true(strstr(text, "50 B") < strstr(text, "7 B"));
  fixture_free(second, 0, stream);
  fixture_free(third, 7, NULL);
  assert_int_equal(fixture_value("tracking", "outstanding_count"), 0);
  fixture_drop_stream(stream);
}

/* Also without stacks; a free forgets them. */
static void lists_tags(void **state)
{
  char wanted[200];
  (void)state;
  fixture_start(tracked);
  assert_ok(hipmm_tag_push("step 3"));
  assert_ok(hipmm_tag_push("layer 7"));
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_tag_pop());
  assert_ok(hipmm_tag_pop());
  snprintf(wanted, sizeof wanted, "%p: 1000 B (allocation 1, stream (nil)) : callstack:\n", ptr);
  const char *text = listed();
  assert_contains(text, wanted);
  assert_contains(text, "  tag: step 3 / layer 7\n");
  fixture_free(ptr, 1000, NULL);
  ptr = fixture_allocate(1000, NULL);
  assert_null(strstr(listed(), "tag:"));
  fixture_free(ptr, 1000, NULL);
}

static void lists_tags_behind_stacks(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0, 'stack_depth': 64}, 'device']");
  assert_ok(hipmm_tag_push("layer 8"));
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_tag_pop());
  const char *text = listed();
  assert_true(strstr(text, "  #0 in ") < strstr(text, "  tag: layer 8\n"));
  fixture_free(ptr, 1000, NULL);
}

/* Steps have names of their own, however many there are. */
static void forgets_tags(void **state)
{
  enum { STEPS = 5000, FIRST = 100 };
  char step[20];
  int64_t metadata = 0;
  (void)state;
  fixture_start("'stack': ['tracking', 'pool', 'device']");
  for (int i = 0; i < STEPS; i++) {
    if (i == FIRST) metadata = fixture_value("tracking", "metadata_bytes");
    snprintf(step, sizeof step, "step %d", i);
    assert_ok(hipmm_tag_push(step));
    fixture_free(fixture_allocate(64, NULL), 64, NULL);
    assert_ok(hipmm_tag_pop());
  }
  assert_int_equal(fixture_value("tracking", "metadata_bytes"), metadata);
}

/* Each depth is another trace. */
static __attribute__((noinline)) void *allocate_at_depth(unsigned depth)
{
  void *volatile ptr = depth ? allocate_at_depth(depth - 1) : fixture_allocate(64, NULL);
  return ptr;
}

/* The outermost frames make room for them. */
static void lists_the_longest_tags(void **state)
{
  enum { TAGS = 127, FRAMES = 70 };
  char wanted[10 + 4 * TAGS] = "  tag: a";
  (void)state;
  fixture_start("'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0, 'stack_depth': 64}, 'device']");
  for (int i = 0; i < TAGS; i++) {
    assert_ok(hipmm_tag_push("a"));
    if (i) strcat(wanted, " / a");
  }
  assert_status(hipmm_tag_push("a"), HIPMM_E_STATE);
  void *ptr = allocate_at_depth(FRAMES);
  for (int i = 0; i < TAGS; i++) assert_ok(hipmm_tag_pop());
  const char *text = listed();
  assert_contains(text, wanted);
  assert_contains(text, "  #20 in ");
  assert_int_equal(count_of(text, "tag: "), 1);
  fixture_free(ptr, 64, NULL);
}

/* The whole list, through what stands above, however much the log would name. */
static void gives_the_list_as_text(void **state)
{
  char wanted[200], *text = NULL;
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'tracking', 'most_reported': 1}, 'device']");
  assert_ok(hipmm_resource_report(fixture_resource("statistics"), &text));
  assert_string_equal(text, "device 0: 0 allocations outstanding, 0 bytes\n");
  hipmm_string_free(text);
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(50, NULL);
  logged();
  assert_ok(hipmm_resource_report(fixture_resource("statistics"), &text));
  assert_string_equal(logged(), "");
  snprintf(wanted, sizeof wanted,
           "device 0: 2 allocations outstanding, 1050 bytes\n%p: 1000 B (allocation 1, stream (nil))\n"
           "%p: 50 B (allocation 2, stream (nil))\n",
           first, second);
  assert_string_equal(text, wanted);
  hipmm_string_free(text);
  text = NULL;
  assert_status(hipmm_resource_report(fixture_resource("device"), &text), HIPMM_E_NOT_SUPPORTED);
  assert_message("device: neither it nor a resource below it has a text");
  assert_null(text);
  assert_ok(hipmm_resource_report(NULL, &text)); /* of the resource in force */
  assert_string_equal(text, wanted);
  hipmm_string_free(text);
  assert_status(hipmm_resource_report(fixture_resource("tracking"), NULL), HIPMM_E_ARGUMENT);
  fixture_free(first, 1000, NULL);
  fixture_free(second, 50, NULL);
}

/* Long enough that the text has to grow, with a trace for each. */
static void gives_traces_as_text(void **state)
{
  enum { BLOCKS = 300 };
  void *ptrs[BLOCKS];
  char *text = NULL;
  (void)state;
  fixture_start(traced);
  for (int i = 0; i < BLOCKS; i++) ptrs[i] = fixture_allocate(1000, NULL);
  assert_ok(hipmm_resource_report(fixture_resource("tracking"), &text));
  assert_int_equal(count_of(text, ": 1000 B (allocation "), BLOCKS);
  assert_int_equal(count_of(text, " : callstack:\n  #0 in "), BLOCKS);
  assert_int_equal(count_of(text, "\n  #2 in "), BLOCKS);
  assert_contains(text, "test_tracking (+0x");
  hipmm_string_free(text);
  for (int i = 0; i < BLOCKS; i++) fixture_free(ptrs[i], 1000, NULL);
}

static void says_what_is_left_in_the_end(void **state)
{
  (void)state;
  fixture_start(tracked);
  fixture_allocate(1234, NULL);
  fixture_free(fixture_allocate(99, NULL), 99, NULL);
  logged();
  assert_ok(hipmm_finalize());
  const char *text = logged();
  assert_contains(text, "tracking: device 0: 1 allocation outstanding, 1234 bytes");
  assert_contains(text, ": 1234 B (allocation 1, ");
}

static void says_nothing_in_the_end_if_all_is_free_or_it_is_told_not_to(void **state)
{
  static const char *const graphs[] = {tracked, "'stack': [{'type': 'tracking', 'report_at_end': false}, 'device']"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    fixture_start(graphs[i]);
    void *ptr = fixture_allocate(1234, NULL);
    if (i == 0) fixture_free(ptr, 1234, NULL);
    logged();
    assert_ok(hipmm_finalize());
    assert_null(strstr(logged(), "outstanding"));
  }
}

static void names_no_more_than_it_is_told_to(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'tracking', 'most_reported': 2}, 'device']");
  void *ptrs[5];
  for (int i = 0; i < 5; i++) ptrs[i] = fixture_allocate(100, NULL);
  const char *text = listed();
  assert_int_equal(count_of(text, ": 100 B ("), 2);
  assert_contains(text, "(allocation 1, ");
  assert_contains(text, "and 3 more");
  for (int i = 0; i < 5; i++) fixture_free(ptrs[i], 100, NULL);
}

static void captures_stacks(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0}, 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  const char *text = listed();
  assert_contains(text, ": 1000 B (allocation 1, stream (nil)) : callstack:\n");
  assert_contains(text, "#0 in ");
  assert_contains(text, "in _cmocka_run_group_tests+0x"); /* ours have no names: they are not exported */
  assert_contains(text, "libcmocka.so");
  assert_contains(text, "test_tracking (+0x");
  assert_null(strstr(text, "tracking.so")); /* the trace begins at the caller */
  fixture_free(ptr, 1000, NULL);
}

static void takes_as_many_frames_as_it_is_told_to(void **state)
{
  (void)state;
  fixture_start(traced);
  void *ptr = fixture_allocate(1000, NULL);
  const char *text = listed();
  assert_contains(text, "#2 in ");
  assert_null(strstr(text, "#3 in "));
  fixture_free(ptr, 1000, NULL);
}

static void keeps_each_trace_once_and_forgets_it(void **state)
{
  enum { DEPTHS = 60, ROUNDS = 50 };
  (void)state;
  fixture_start("'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0}, 'pool', 'device']");
  static void *ptrs[ROUNDS][DEPTHS];
  for (int round = 0; round < ROUNDS; round++)
    for (unsigned depth = 0; depth < DEPTHS; depth++) ptrs[round][depth] = allocate_at_depth(depth);
  int64_t metadata = fixture_value("tracking", "metadata_bytes");
  assert_in_range(metadata, ROUNDS * DEPTHS * 40, ROUNDS * DEPTHS * 40 * 8);
  for (int round = 0; round < ROUNDS; round++)
    for (unsigned depth = 0; depth < DEPTHS; depth++) fixture_free(ptrs[round][depth], 64, NULL);
  for (int round = 0; round < ROUNDS; round++)
    for (unsigned depth = 0; depth < DEPTHS; depth++) fixture_free(allocate_at_depth(depth), 64, NULL);
  assert_int_equal(fixture_value("tracking", "metadata_bytes"), metadata);
  assert_int_equal(fixture_value("tracking", "outstanding_count"), 0);
}

static void gives_records_back_when_trimmed(void **state)
{
  enum { BLOCKS = 50000, KEPT = 10 };
  static void *ptrs[BLOCKS];
  (void)state;
  fixture_start("'stack': ['tracking', 'pool', 'device']");
  int64_t before = fixture_value("tracking", "metadata_bytes");
  for (int i = 0; i < BLOCKS; i++) ptrs[i] = fixture_allocate(300, NULL);
  int64_t full = fixture_value("tracking", "metadata_bytes");
  for (int i = KEPT; i < BLOCKS; i++) fixture_free(ptrs[i], 300, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("tracking"), 0));
  assert_in_range(fixture_value("tracking", "metadata_bytes"), 1, before + full / 16);
  assert_int_equal(fixture_value("tracking", "outstanding_count"), KEPT);
  for (int i = 0; i < KEPT; i++) fixture_free(ptrs[i], 300, NULL);
}

static void tells_wrong_frees(void **state)
{
  (void)state;
  fixture_start(traced);
  char *ptr = fixture_allocate(1000, NULL);
  logged();
  assert_status(hipmm_deallocate(NULL, ptr, 500, NULL), HIPMM_E_SIZE);
  assert_message("was allocated with 1000 bytes and cannot be freed with 500");
  const char *text = logged();
  assert_contains(text, "is freed with 500 bytes and was allocated with 1000: refused");
  assert_contains(text, "#0 in ");
  assert_status(hipmm_deallocate(NULL, ptr + 512, 1000, NULL), HIPMM_E_POINTER);
  text = logged();
  assert_contains(text, "is freed with 1000 bytes and is not tracked: refused; allocations outstanding: 1");
  assert_contains(text, "#0 in ");
  assert_int_equal(fixture_value("tracking", "refused_frees"), 2);
  fixture_free(ptr, 1000, NULL);
}

static void notices_what_was_freed_past_it(void **state)
{
  (void)state;
  fixture_start("'stack': ['tracking', 'pool', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_ok(hipmm_deallocate(fixture_resource("pool"), ptr, 1000, NULL));
  logged();
  void *again = fixture_allocate(1000, NULL);
  assert_ptr_equal(ptr, again);
  assert_contains(logged(), "(1000 bytes, allocation 1) was freed without this resource");
  assert_int_equal(fixture_value("tracking", "outstanding_count"), 1);
  fixture_free(again, 1000, NULL);
}

static void assert_outstanding(const char *name, int64_t count, int64_t bytes, int64_t refused)
{
  assert_int_equal(fixture_value(name, "outstanding_count"), count);
  assert_int_equal(fixture_value(name, "outstanding_bytes"), bytes);
  assert_int_equal(fixture_value(name, "refused_frees"), refused);
}

/* The upper one refuses the frees of what it never saw, with which nothing is lost. What is freed past it stays in its
 * list until its place is given out again. */
static void tells_what_goes_past_one_of_two(void **state)
{
  enum { BELOW = 10, ABOVE = 5, BYTES = 1 << 20 };
  void *blocks[BELOW + ABOVE];
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'pool', 'upstream': 'device'}, 'device': {'type': 'device'}, "
                "'lower': {'type': 'tracking', 'upstream': 'memory', 'stacks': 'all', 'stack_sample': 0}, "
                "'upper': {'type': 'tracking', 'upstream': 'lower'}}, 'devices': {'default': 'upper'}");
  struct hipmm_resource *lower = fixture_resource("lower");
  for (int i = 0; i < BELOW; i++) assert_ok(hipmm_allocate(lower, BYTES, NULL, &blocks[i]));
  for (int i = BELOW; i < BELOW + ABOVE; i++) blocks[i] = fixture_allocate(BYTES, NULL);
  assert_outstanding("lower", 15, 15 * BYTES, 0);
  assert_outstanding("upper", 5, 5 * BYTES, 0);
  for (int i = 0; i < BELOW + ABOVE; i++)
    assert_status(hipmm_deallocate(NULL, blocks[i], BYTES, NULL), i < BELOW ? HIPMM_E_POINTER : HIPMM_OK);
  assert_outstanding("lower", 10, 10 * BYTES, 0);
  assert_outstanding("upper", 0, 0, 10);
  for (int i = 0; i < BELOW; i++) assert_ok(hipmm_deallocate(lower, blocks[i], BYTES, NULL));
  assert_outstanding("lower", 0, 0, 0);
  void *past = fixture_allocate(1000, NULL);
  assert_ok(hipmm_deallocate(lower, past, 1000, NULL));
  assert_outstanding("lower", 0, 0, 0);
  assert_outstanding("upper", 1, 1000, 10);
  assert_status(hipmm_deallocate(NULL, past, 1000, NULL), HIPMM_E_POINTER); /* a second time */
  assert_outstanding("upper", 1, 1000, 10);
  logged();
  assert_ptr_equal(fixture_allocate(1000, NULL), past);
  assert_contains(logged(), "was freed without this resource");
  assert_outstanding("lower", 1, 1000, 1);
  assert_outstanding("upper", 1, 1000, 10);
  fixture_free(past, 1000, NULL);
}

static void keeps_what_the_upstream_does_not_take_back(void **state)
{
  (void)state;
  fixture_start(tracked);
  void *ptr = fixture_allocate(1000, NULL);
  fixture_fail_call("hipFree", 1, 0);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_HIP);
  assert_int_equal(fixture_value("tracking", "outstanding_bytes"), 1000);
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(fixture_value("tracking", "outstanding_bytes"), 0);
}

static void does_not_list_what_failed(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(tracked);
  fixture_fail_call("hipMalloc", 1, 0);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(fixture_value("tracking", "outstanding_count"), 0);
  assert_int_equal(fixture_value("tracking", "total_count"), 0);
}

/* ---- Host memory ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MAY_LIMIT = 0 }; /* they need address space of their own */
#else
enum { MAY_LIMIT = 1 };
#endif

/* No more address space than there is now; or as much as before. */
static void limit_address_space(bool limits)
{
  static struct rlimit before;
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (limits) assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  if (file) assert_int_equal(fscanf(file, "%lu", &pages), 1);
  if (file) fclose(file);
  struct rlimit limit = {limits ? pages * 4096 : before.rlim_cur, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

/* Over blocks that are there already: the list alone has to grow. */
static void gives_back_what_it_has_no_room_to_list(void **state)
{
  enum { BLOCKS = 4000 };
  static void *ptrs[BLOCKS];
  int n = 1;
  (void)state;
  if (!MAY_LIMIT) return;
  fixture_start("'stack': ['tracking', {'type': 'fixed_size', 'block_size': 256, 'blocks_per_chunk': 4096, "
                "'blocks_to_preallocate': 4096}, 'device']");
  ptrs[0] = fixture_allocate(100, NULL);
  limit_address_space(true);
  enum hipmm_status status = HIPMM_OK;
  while (n < BLOCKS && !status) {
    status = hipmm_allocate(NULL, 100, NULL, &ptrs[n]);
    n += !status;
  }
  limit_address_space(false);
  assert_status(status, HIPMM_E_OUT_OF_MEMORY);
  assert_message("tracking: no host memory left to record a block of 100 bytes");
  assert_int_equal(fixture_value("tracking", "outstanding_count"), n);
  assert_int_equal(fixture_value("fixed_size", "live_count"), n);
  while (n) fixture_free(ptrs[--n], 100, NULL);
}

enum { MANY = 1000 };

struct seen {
  const char *last;
  size_t bytes;
  unsigned n;
  bool ordered;
};

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct seen *seen = closure;
  const char *start = extent->ptr;
  seen->ordered = seen->ordered && start > seen->last && extent->state == HIPMM_EXTENT_LIVE;
  seen->last = start;
  seen->bytes += extent->bytes;
  seen->n++;
}

static void shows_blocks_in_order(void **state)
{
  struct seen seen = {.ordered = true};
  void *ptrs[MANY];
  (void)state;
  fixture_start("'stack': ['tracking', 'pool', 'device']");
  for (size_t i = 0; i < MANY; i++) ptrs[i] = fixture_allocate(i + 1, NULL);
  struct hipmm_resource *tracking = fixture_resource("tracking");
  assert_ok(tracking->ops->visit(tracking->self, see, &seen));
  assert_int_equal(seen.n, MANY);
  assert_int_equal(seen.bytes, MANY * (MANY + 1) / 2);
  assert_true(seen.ordered);
  for (size_t i = 0; i < MANY; i++) fixture_free(ptrs[i], 0, NULL);
}

enum { THREADS = 4, STEPS = 500, LEFT = 10 };

/* Leaves LEFT blocks behind, in the array. */
static void *allocate_and_leave(void *argument)
{
  void **left = argument;
  for (int i = 0; i < STEPS; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 100, NULL, &ptr)) return argument;
    if (i < LEFT)
      left[i] = ptr;
    else if (hipmm_deallocate(NULL, ptr, 100, NULL))
      return argument;
  }
  return NULL;
}

static void counts_exactly_under_threads(void **state)
{
  static void *left[THREADS][LEFT];
  pthread_t threads[THREADS];
  void *failure = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0}, 'pool', 'device']");
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_leave, left[i]), 0);
  for (int i = 0; i < 20; i++) listed();
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &failure);
    assert_null(failure);
  }
  assert_int_equal(fixture_value("tracking", "outstanding_count"), THREADS * LEFT);
  assert_int_equal(fixture_value("tracking", "outstanding_bytes"), THREADS * LEFT * 100);
  assert_int_equal(fixture_value("tracking", "total_count"), THREADS * STEPS);
  for (int i = 0; i < THREADS * LEFT; i++) fixture_free(left[i / LEFT][i % LEFT], 0, NULL);
}

static void begins_to_capture_while_in_use(void **state)
{
  (void)state;
  fixture_start(tracked);
  void *before = fixture_allocate(10, NULL);
  assert_ok(hipmm_set("devices/0/tracking/stacks", "python")); /* C frames: this program runs no Python */
  assert_ok(hipmm_set("devices/0/tracking/stack_sample", "0"));
  assert_ok(hipmm_set("devices/0/tracking/stack_depth", "1"));
  void *after = fixture_allocate(20, NULL);
  const char *text = listed();
  assert_contains(text, ": 10 B (allocation 1, stream (nil))\n");
  assert_contains(text, ": 20 B (allocation 2, stream (nil)) : callstack:\n");
  assert_int_equal(count_of(text, "#0 in "), 1);
  assert_null(strstr(text, "#1 in "));
  fixture_free(before, 10, NULL);
  fixture_free(after, 20, NULL);
}

static void refuses_bad_options(void **state)
{
  static const struct fixture_refusal bad[] = {{"'stack_depth': 0", "/stack/0/stack_depth"},
                                               {"'stack_depth': 65", "/stack/0/stack_depth"},
                                               {"'stacks': 'yes'", "/stack/0/stacks"},
                                               {"'most_reported': -1", "/stack/0/most_reported"},
                                               {"'depth': 3", "/stack/0/depth"}};
  (void)state;
  fixture_refuses("tracking", bad, sizeof bad / sizeof *bad);
}

static void use_all(void)
{
  void *ptr = NULL;
  struct hipmm_resource *top = NULL;
  if (hipmm_resource_get_for_device(0, &top)) return;
  for (int i = 0; i < 3; i++)
    if (!hipmm_allocate(NULL, 1000, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 1000, NULL);
  hipmm_resource_perform(top, "log_outstanding");
  hipmm_resource_release(top);
}

static void loses_nothing_whatever_fails(void **state)
{
  (void)state;
  assert_in_range(fixture_fail_each_call("", traced, use_all), 5, 10000);
}

static const struct behaviour_stack stacks[] = {
    {"on a device", "'scheduler': 'threads'", "'stack': ['tracking', 'device']", false},
    {"on a pool", "'scheduler': 'stepped', 'seed': 2", "'stack': ['tracking', 'pool', 'device']", true},
    {"with stacks", "'scheduler': 'stepped', 'seed': 3",
     "'stack': [{'type': 'tracking', 'stacks': 'all', 'stack_sample': 0}, 'pool', 'device']", true},
};

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest others[] = {
    TEST(lists_what_is_allocated),
    TEST(lists_tags),
    TEST(lists_tags_behind_stacks),
    TEST(lists_the_longest_tags),
    TEST(forgets_tags),
    TEST(gives_the_list_as_text),
    TEST(gives_traces_as_text),
    TEST(says_what_is_left_in_the_end),
    TEST(says_nothing_in_the_end_if_all_is_free_or_it_is_told_not_to),
    TEST(names_no_more_than_it_is_told_to),
    TEST(captures_stacks),
    TEST(takes_as_many_frames_as_it_is_told_to),
    TEST(keeps_each_trace_once_and_forgets_it),
    TEST(gives_records_back_when_trimmed),
    TEST(tells_wrong_frees),
    TEST(notices_what_was_freed_past_it),
    TEST(tells_what_goes_past_one_of_two),
    TEST(keeps_what_the_upstream_does_not_take_back),
    TEST(does_not_list_what_failed),
    TEST(gives_back_what_it_has_no_room_to_list),
    TEST(shows_blocks_in_order),
    TEST(counts_exactly_under_threads),
    TEST(begins_to_capture_while_in_use),
    TEST(refuses_bad_options),
    TEST(loses_nothing_whatever_fails),
};

int main(void)
{
  log_to_file("warning");
  return behaviour_run("tracking", others, sizeof others / sizeof *others, stacks, sizeof stacks / sizeof *stacks);
}
