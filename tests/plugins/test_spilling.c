/* SPDX-License-Identifier: MIT */
/* Tests of spilling: buffers keep their content wherever it goes, are moved in their order, and stay where they are if a tier fails;
 * streams, captures, threads, and bad input. */
#include "../support/fixture.h"
#include "../support/random.h"

#include <dirent.h>
#include <fcntl.h>
#include <hipmm/spill.h>
#include <hipmm/stream.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* 8 MiB of device memory, then 6 MiB of pinned memory, then a file. */
#define TIERS_BELOW(options) TIERS_UNDER("8MiB", options)
#define TIERS_UNDER(limit, options)                                                                                \
  "'resources': {'movable': {'type': 'spilling', 'upstream': 'small'" options "}, "                                \
  "'small': {'type': 'limiting', 'limit': '" limit "', 'upstream': 'pool'}, 'pool': {'type': 'pool', 'upstream': " \
  "'memory'}, 'memory': {'type': 'device'}, 'host': {'type': 'pinned'}}, 'devices': {'default': 'movable'}"
static const char tiers[] = TIERS_BELOW(", 'pinned': 'host', 'pinned_limit': '6MiB', 'folder': '.'");
static const char file_only[] = TIERS_BELOW(", 'folder': '.'");
static const char host_only[] = TIERS_BELOW(", 'pinned': 'host'");

enum { BUFFERS = 12, FEW = 4, SMALL_BYTES = 64 << 10 };
#define BYTES ((size_t)2 * MIB)

static atomic_uint wrong_content;

static int64_t value(const char *name)
{
  return fixture_value("movable", name);
}

static struct hipmm_movable *create(size_t bytes)
{
  struct hipmm_movable *movable = NULL;
  assert_ok(hipmm_movable_create(NULL, bytes, &movable));
  return movable;
}

static void *pin(struct hipmm_movable *movable, hipmm_stream_t stream)
{
  void *ptr = NULL;
  assert_ok(hipmm_movable_pin(movable, stream, &ptr));
  return ptr;
}

static void fill(struct hipmm_movable *movable, unsigned char content, size_t bytes)
{
  fixture_fill(pin(movable, NULL), content, bytes);
  assert_ok(hipmm_movable_unpin(movable, NULL));
}

static void check(struct hipmm_movable *movable, unsigned char content, size_t bytes)
{
  assert_true(fixture_holds(pin(movable, NULL), content, bytes));
  assert_ok(hipmm_movable_unpin(movable, NULL));
}

static void create_full(struct hipmm_movable **movables, int n)
{
  for (int i = 0; i < n; i++) {
    movables[i] = create(BYTES);
    fill(movables[i], (unsigned char)(i + 1), BYTES);
  }
}

static void check_and_destroy(struct hipmm_movable **movables, int n)
{
  for (int i = 0; i < n; i++) {
    check(movables[i], (unsigned char)(i + 1), BYTES);
    assert_ok(hipmm_movable_destroy(movables[i]));
  }
  assert_int_equal(value("device_bytes"), 0);
  assert_int_equal(value("pinned_bytes"), 0);
  assert_int_equal(value("file_bytes"), 0);
}

/* ---- Content ---- */

static void keep_content(const char *runtime_options, const char *graph)
{
  struct hipmm_movable *movables[BUFFERS];
  fixture_start_with(runtime_options, graph);
  create_full(movables, BUFFERS);
  assert_int_equal(value("device_bytes"), 8 * MIB);
  assert_int_equal(value("pinned_bytes") + value("file_bytes"), 16 * MIB);
  for (int i = 0; i < BUFFERS; i++) check(movables[i * 5 % BUFFERS], (unsigned char)(i * 5 % BUFFERS + 1), BYTES);
  for (int i = 0; i < BUFFERS; i += 2) fill(movables[i], 99, BYTES);
  for (int i = 0; i < BUFFERS; i += 2) check(movables[i], 99, BYTES);
  for (int i = 0; i < BUFFERS; i += 2) fill(movables[i], (unsigned char)(i + 1), BYTES);
  assert_true(value("spills") >= BUFFERS);
  assert_int_equal(value("spilled_bytes"), value("spills") * (int64_t)BYTES);
  assert_int_equal(value("restored_bytes"), value("restores") * (int64_t)BYTES);
  check_and_destroy(movables, BUFFERS);
  hipmm_finalize();
}

static void keeps_content_in_all_tiers(void **state)
{
  (void)state;
  keep_content("", tiers);
  keep_content("", file_only);
  keep_content("", host_only);
  keep_content("'scheduler': 'stepped', 'seed': 3", tiers);
}

static void fills_the_tiers_in_their_order(void **state)
{
  struct hipmm_movable *movables[BUFFERS];
  (void)state;
  fixture_start(tiers);
  create_full(movables, BUFFERS);
  assert_int_equal(value("pinned_bytes"), 6 * MIB);
  assert_int_equal(value("file_bytes"), 10 * MIB);
  check_and_destroy(movables, BUFFERS);
}

/* What was moved out last is in pinned memory: that of the first buffers went on to the file. */
static void sends_the_coldest_to_the_file(void **state)
{
  struct hipmm_movable *movables[BUFFERS];
  (void)state;
  fixture_start(tiers);
  create_full(movables, BUFFERS); /* 8 to 11 are on the device, 5 to 7 in pinned memory */
  assert_int_equal(value("demotions"), 5);
  assert_int_equal(value("spills"), 8);
  check(movables[7], 8, BYTES); /* 8 is moved, and 5 makes room for it */
  assert_int_equal(value("pinned_bytes"), 4 * MIB);
  assert_int_equal(value("file_bytes"), 12 * MIB);
  assert_int_equal(value("demotions"), 6);
  check(movables[0], 1, BYTES); /* from the file: pinned memory has room for 9 */
  assert_int_equal(value("pinned_bytes"), 6 * MIB);
  assert_int_equal(value("file_bytes"), 10 * MIB);
  assert_int_equal(value("demotions"), 6);
  assert_int_equal(value("live_bytes"), 24 * MIB);
  check_and_destroy(movables, BUFFERS);
}

/* A buffer that is larger than pinned memory, and pinned memory that ends before its limit. */
static void keeps_content_where_pinned_memory_is_short(void **state)
{
  struct hipmm_movable *movables[BUFFERS], *large;
  (void)state;
  fixture_start(TIERS_BELOW(", 'pinned': 'host', 'pinned_limit': '3MiB', 'folder': '.'"));
  large = create(5 * MIB);
  fill(large, 77, 5 * MIB);
  create_full(movables, FEW);
  assert_int_equal(value("file_bytes"), 5 * MIB);
  check(large, 77, 5 * MIB);
  assert_ok(hipmm_movable_destroy(large));
  check_and_destroy(movables, FEW);
  hipmm_finalize();
  fixture_start("'resources': {'movable': {'type': 'spilling', 'upstream': 'small', 'pinned': 'short', 'folder': '.'}, "
                "'short': {'type': 'limiting', 'limit': '6MiB', 'upstream': 'host'}, 'host': {'type': 'pinned'}, "
                "'small': {'type': 'limiting', 'limit': '8MiB', 'upstream': 'memory'}, 'memory': {'type': 'device'}}, "
                "'devices': {'default': 'movable'}");
  create_full(movables, BUFFERS);
  assert_int_equal(value("pinned_bytes"), 6 * MIB);
  assert_int_equal(value("demotions"), 5);
  check_and_destroy(movables, BUFFERS);
}

/* A small buffer that went on to the file would leave room for the large one neither there nor in pinned memory. */
static void leaves_room_in_the_file(void **state)
{
  struct hipmm_movable *small[3], *large;
  (void)state;
  fixture_start(TIERS_BELOW(", 'pinned': 'host', 'pinned_limit': '3MiB', 'folder': '.', 'file_limit': '2MiB'"));
  for (int i = 0; i < 3; i++) fill(small[i] = create(MIB), (unsigned char)(i + 1), MIB);
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(value("pinned_bytes"), 3 * MIB);
  fill(large = create(2 * MIB), 9, 2 * MIB);
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(value("device_bytes"), 0);
  assert_int_equal(value("file_bytes"), 2 * MIB);
  for (int i = 0; i < 3; i++) {
    check(small[i], (unsigned char)(i + 1), MIB);
    assert_ok(hipmm_movable_destroy(small[i]));
  }
  check(large, 9, 2 * MIB);
  assert_ok(hipmm_movable_destroy(large));
}

/* Sizes that leave gaps of all kinds in the file, and parts of blocks. */
static void keeps_content_of_any_size(void **state)
{
  static const size_t sizes[] = {1, 4097, 5 * MIB + 3, 100, 3 * MIB, 7 * MIB, 255, 6 * MIB - 1};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  struct hipmm_movable *movables[SIZES];
  uint64_t random = 7;
  (void)state;
  fixture_start(file_only);
  for (int i = 0; i < SIZES; i++) {
    movables[i] = create(sizes[i]);
    fill(movables[i], (unsigned char)(i + 1), sizes[i]);
  }
  for (int step = 0; step < 60; step++) {
    int i = (int)random_below(&random, SIZES);
    check(movables[i], (unsigned char)(i + 1), sizes[i]);
    if (step % 9) continue;
    assert_ok(hipmm_movable_destroy(movables[i]));
    movables[i] = create(sizes[i]);
    fill(movables[i], (unsigned char)(i + 1), sizes[i]);
  }
  for (int i = 0; i < SIZES; i++) assert_ok(hipmm_movable_destroy(movables[i]));
  assert_int_equal(value("file_bytes"), 0);
}

static void has_no_memory_for_0_bytes(void **state)
{
  (void)state;
  fixture_start(tiers);
  struct hipmm_movable *movable = create(0);
  assert_null(pin(movable, NULL));
  assert_null(pin(movable, NULL));
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_status(hipmm_movable_destroy(movable), HIPMM_E_STATE);
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_ok(hipmm_movable_destroy(movable));
}

/* ---- Which is moved ---- */

static void moves_what_was_unpinned_longest_ago(void **state)
{
  struct hipmm_movable *movables[FEW];
  (void)state;
  fixture_start(tiers);
  create_full(movables, FEW);
  check(movables[0], 1, BYTES);
  assert_ok(hipmm_resource_trim(NULL, 4 * MIB)); /* moves 1 and 2 */
  assert_int_equal(value("spills"), 2);
  check(movables[0], 1, BYTES);
  check(movables[3], 4, BYTES);
  assert_int_equal(value("restores"), 0);
  check(movables[1], 2, BYTES);
  check(movables[2], 3, BYTES);
  assert_int_equal(value("restores"), 2);
  check_and_destroy(movables, FEW);
}

static void moves_nothing_that_is_pinned(void **state)
{
  (void)state;
  fixture_start(tiers);
  struct hipmm_movable *movable = create(BYTES);
  void *first = pin(movable, NULL), *second = pin(movable, NULL);
  assert_ptr_equal(first, second);
  fixture_fill(first, 5, BYTES);
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(value("device_bytes"), BYTES);
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(value("device_bytes"), 0);
  check(movable, 5, BYTES);
  assert_ok(hipmm_movable_destroy(movable));
}

static void stays_whole_when_there_is_no_memory(void **state)
{
  struct hipmm_movable *movables[FEW + 1];
  void *ptr = NULL;
  (void)state;
  fixture_start(tiers);
  create_full(movables, FEW + 1); /* 0 is moved */
  for (int i = 1; i <= FEW; i++) pin(movables[i], NULL);
  assert_status(hipmm_movable_pin(movables[0], NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("8 MiB of movable buffers are on the device, and are pinned, or have no room");
  assert_null(ptr);
  assert_status(hipmm_allocate(NULL, MIB, NULL, &ptr), HIPMM_E_LIMIT);
  assert_int_equal(value("pinned_bytes"), BYTES);
  for (int i = 1; i <= FEW; i++) assert_ok(hipmm_movable_unpin(movables[i], NULL));
  assert_ok(hipmm_allocate(NULL, 8 * MIB, NULL, &ptr)); /* moves all others */
  assert_int_equal(value("device_bytes"), 0);
  assert_ok(hipmm_deallocate(NULL, ptr, 8 * MIB, NULL));
  check_and_destroy(movables, FEW + 1);
}

static void moves_nothing_for_what_cannot_be_had(void **state)
{
  struct hipmm_movable *movables[FEW];
  void *ptr = NULL;
  needs_software();
  (void)state;
  fixture_start(tiers);
  create_full(movables, FEW);
  assert_status(hipmm_allocate(NULL, 257 * MIB, NULL, &ptr), HIPMM_E_LIMIT); /* the device has 256 */
  pin(movables[0], NULL);
  assert_status(hipmm_allocate(NULL, 255 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
  assert_ok(hipmm_movable_unpin(movables[0], NULL));
  fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
  assert_status(hipmm_allocate(NULL, MIB, NULL, &ptr), HIPMM_E_LIMIT);
  fixture_take_hip_back();
  assert_int_equal(value("spills"), 0);
  check_and_destroy(movables, FEW);
}

static void moves_nothing_for_pinned_memory(void **state)
{
  struct hipmm_movable *movables[FEW];
  struct hipmm_resource *host = NULL;
  void *ptr = NULL;
  needs_software();
  (void)state;
  fixture_start(tiers);
  create_full(movables, FEW);
  assert_ok(hipmm_resource_get_by_name(0, "host", &host));
  assert_status(hipmm_allocate(host, (size_t)1 << 46, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  hipmm_resource_release(host);
  assert_int_equal(value("spills"), 0);
  check_and_destroy(movables, FEW);
}

/* ---- The program's policy ---- */

struct policy {
  struct hipmm_movable *first; /* goes before all others */
  int64_t (*rank)(const struct hipmm_event *event);
  atomic_uint wrong;
};

static void rank_event(void *arg, const struct hipmm_event *event)
{
  struct policy *policy = arg;
  bool is_good = event->struct_size == sizeof *event && event->kind == HIPMM_EVENT_RANK && !event->device &&
                 !strcmp(event->resource, "movable") && event->bytes && event->rank && !*event->rank;
  if (!is_good) atomic_fetch_add(&policy->wrong, 1);
  *event->rank = policy->rank ? policy->rank(event) : event->ptr == policy->first;
}

static void start_policy(struct policy *policy, uint64_t kinds)
{
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .kinds = kinds, .callback = rank_event, .arg = policy};
  assert_ok(hipmm_hooks_register("mine", &hooks));
  fixture_start(TIERS_BELOW(", 'pinned': 'host', 'pinned_limit': '6MiB', 'folder': '.', 'policy': 'mine'"));
}

/* The policy has moved the hottest buffer out, and nothing else. */
static void start_with_the_hottest_out(struct policy *policy, struct hipmm_movable *movables[FEW])
{
  start_policy(policy, 1u << HIPMM_EVENT_RANK);
  create_full(movables, FEW);
  policy->first = movables[3];
  assert_ok(hipmm_resource_trim(NULL, 6 * MIB));
}

/* The hottest buffer goes first, and on to the file: without the policy it would be the last. */
static void moves_what_the_policy_wants(void **state)
{
  static struct policy policy;
  struct hipmm_movable *movables[FEW];
  (void)state;
  start_with_the_hottest_out(&policy, movables);
  assert_int_equal(value("spills"), 1);
  for (int i = 0; i < 3; i++) check(movables[i], (unsigned char)(i + 1), BYTES);
  assert_int_equal(value("restores"), 0);
  assert_ok(hipmm_resource_trim(NULL, 0)); /* of the others, the coldest first; 3 makes room for the last */
  assert_int_equal(value("demotions"), 1);
  assert_int_equal(value("pinned_bytes"), 6 * MIB);
  check(movables[3], 4, BYTES);
  assert_int_equal(value("file_bytes"), 0);
  check_and_destroy(movables, FEW);
  assert_int_equal(atomic_load(&policy.wrong), 0);
}

/* What the policy moved out first is not the coldest, neither in pinned memory nor beside the device's buffers. */
static void sends_the_coldest_of_equal_ranks(void **state)
{
  static struct policy policy;
  struct hipmm_movable *movables[FEW];
  (void)state;
  start_with_the_hottest_out(&policy, movables);
  policy.first = NULL;
  assert_ok(hipmm_resource_trim(NULL, 0)); /* of 3, 0 and 1, which pinned memory has then, 0 makes room for 2 */
  assert_int_equal(value("demotions"), 1);
  for (int i = 1; i < FEW; i++) check(movables[i], (unsigned char)(i + 1), BYTES);
  assert_int_equal(value("file_bytes"), (int64_t)BYTES);
  assert_int_equal(value("pinned_bytes"), 0);
  check_and_destroy(movables, FEW);
  assert_int_equal(atomic_load(&policy.wrong), 0);
}

/* A policy that takes longer than there was between the unpins. */
static int64_t rank_slowly(const struct hipmm_event *event)
{
  usleep(2000);
  return (int64_t)event->idle_ns;
}

static void asks_for_ages_at_one_time(void **state)
{
  static struct policy policy = {.rank = rank_slowly};
  struct hipmm_movable *movables[FEW];
  (void)state;
  start_policy(&policy, 1u << HIPMM_EVENT_RANK);
  create_full(movables, FEW);
  for (int i = 0; i < FEW; i++) (void)pin(movables[i], NULL);
  for (int i = 0; i < FEW; i++) assert_ok(hipmm_movable_unpin(movables[i], NULL));
  assert_ok(hipmm_resource_trim(NULL, 6 * MIB));
  assert_int_equal(value("spills"), 1);
  for (int i = 1; i < FEW; i++) check(movables[i], (unsigned char)(i + 1), BYTES);
  assert_int_equal(value("restores"), 0);
  check_and_destroy(movables, FEW);
  assert_int_equal(atomic_load(&policy.wrong), 0);
}

static int64_t rank_by_age(const struct hipmm_event *event)
{
  return -(int64_t)event->idle_ns;
}

static int64_t rank_without_sense(const struct hipmm_event *event)
{
  static uint64_t random = 5;
  static const int64_t ranks[] = {INT64_MIN, -1, 0, 7, INT64_MAX};
  (void)event;
  return ranks[random_below(&random, 5)];
}

static int64_t rank_with_calls(const struct hipmm_event *event)
{
  void *ptr = NULL;
  bool is_refused = hipmm_allocate(NULL, 1000, NULL, &ptr) == HIPMM_E_STATE &&
                    hipmm_movable_pin(event->ptr, NULL, &ptr) == HIPMM_E_STATE &&
                    hipmm_movable_destroy(event->ptr) == HIPMM_E_STATE;
  return is_refused ? (int64_t)event->bytes : (atomic_fetch_add(&wrong_content, 1), 0);
}

static void keeps_content_under_any_policy(void **state)
{
  static int64_t (*const ranks[])(const struct hipmm_event *) = {rank_by_age, rank_without_sense, rank_with_calls};
  static struct policy policy;
  struct hipmm_movable *movables[BUFFERS];
  (void)state;
  for (int i = 0; i < 3; i++) {
    policy.rank = ranks[i];
    start_policy(&policy, 0);
    create_full(movables, BUFFERS);
    if (policy.rank == rank_by_age) { /* the device still has the first three */
      for (int j = 0; j < 3; j++) check(movables[j], (unsigned char)(j + 1), BYTES);
      assert_int_equal(value("restores"), 0);
    }
    assert_in_range(value("pinned_bytes"), 0, 6 * MIB);
    for (int j = 0; j < BUFFERS; j++) check(movables[j * 5 % BUFFERS], (unsigned char)(j * 5 % BUFFERS + 1), BYTES);
    check_and_destroy(movables, BUFFERS);
    hipmm_finalize();
  }
  assert_int_equal(atomic_load(&policy.wrong), 0);
  assert_int_equal(atomic_load(&wrong_content), 0);
}

static void needs_a_policy_that_ranks(void **state)
{
  const struct hipmm_hooks others = {
      .struct_size = sizeof others, .kinds = 1u << HIPMM_EVENT_GREW, .callback = rank_event};
  (void)state;
  assert_status(fixture_try("", TIERS_BELOW(", 'policy': 'nobody'")), HIPMM_E_CONFIG);
  assert_message("/resources/movable/policy");
  assert_message("no hooks is registered as \"nobody\"");
  hipmm_finalize();
  assert_ok(hipmm_hooks_register("others", &others));
  assert_status(fixture_try("", TIERS_BELOW(", 'policy': 'others'")), HIPMM_E_CONFIG);
  assert_message("/resources/movable/policy");
  assert_message("its kinds leave HIPMM_EVENT_RANK out");
}

/* Of the device's 256 MiB; through the resources that share it. */
static void makes_room_for_other_allocations(void **state)
{
  static const char graph[] =
      "'resources': {'movable': {'type': 'spilling', 'upstream': 'pool', 'pinned': 'host'}, 'pool': {'type': 'pool', "
      "'upstream': 'memory'}, 'other': {'type': 'pool', 'upstream': 'memory'}, 'memory': {'type': 'device'}, 'host': "
      "{'type': 'pinned'}}, 'devices': {'default': 'movable'}";
  static const char *const names[] = {"other", "memory", "pool"};
  struct hipmm_movable *movables[7];
  needs_software();
  (void)state;
  fixture_start(graph);
  for (int i = 0; i < 7; i++) {
    movables[i] = create(32 * MIB);
    fill(movables[i], (unsigned char)(i + 1), 32 * MIB);
  }
  for (int i = 0; i < 3; i++) {
    struct hipmm_resource *other = NULL;
    void *ptr = NULL;
    assert_ok(hipmm_resource_get_by_name(0, names[i], &other));
    assert_ok(hipmm_allocate(other, 96 * MIB, NULL, &ptr));
    assert_true(value("spills") > 0);
    assert_true(value("device_bytes") <= (int64_t)(160 * MIB));
    fixture_fill(ptr, 77, 96 * MIB);
    check(movables[i], (unsigned char)(i + 1), 32 * MIB);
    assert_true(fixture_holds(ptr, 77, 96 * MIB));
    assert_ok(hipmm_deallocate(other, ptr, 96 * MIB, NULL));
    hipmm_resource_release(other);
  }
  for (int i = 0; i < 7; i++) {
    check(movables[i], (unsigned char)(i + 1), 32 * MIB);
    assert_ok(hipmm_movable_destroy(movables[i]));
  }
}

static void moves_ahead_of_need(void **state)
{
  struct hipmm_movable *movables[FEW];
  (void)state;
  fixture_start(TIERS_BELOW(", 'pinned': 'host', 'high_water': '4MiB'"));
  create_full(movables, FEW);
  for (int i = 0; i < 20000 && value("device_bytes") > (int64_t)(4 * MIB); i++) usleep(1000);
  assert_true(value("device_bytes") <= (int64_t)(4 * MIB));
  check_and_destroy(movables, FEW);
}

/* ---- Streams ---- */

/* In any order of work, what one stream wrote is there for the next one, also for a second pin while a copy is under way. */
static void keeps_the_order_of_streams(void **state)
{
  (void)state;
  for (int seed = 1; seed <= 12; seed++) {
    char options[64];
    atomic_uint wrong = 0;
    void *ptr = NULL;
    snprintf(options, sizeof options, "'scheduler': 'stepped', 'seed': %d", seed);
    fixture_start_with(options, tiers);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    struct hipmm_movable *movable = create(MIB);
    for (unsigned char content = 1; content < 8; content++) {
      ptr = pin(movable, first);
      assert_int_equal(fixture_hip()->MemsetAsync(ptr, content, MIB, first), 0);
      assert_ok(hipmm_movable_unpin(movable, first));
      if (content % 3) assert_ok(hipmm_resource_trim(NULL, 0));
      ptr = pin(movable, second);
      pin(movable, first);
      assert_int_equal(fixture_look(ptr, content, MIB, first, &wrong), 0);
      assert_int_equal(fixture_look(ptr, content, MIB, second, &wrong), 0);
      assert_ok(hipmm_movable_unpin(movable, second));
      assert_ok(hipmm_movable_unpin(movable, first));
    }
    assert_ok(hipmm_movable_destroy(movable)); /* the looks may not have run yet */
    ptr = fixture_allocate(MIB, first);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, 0, MIB, first), 0);
    fixture_free(ptr, MIB, first);
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    assert_int_equal(atomic_load(&wrong), 0);
    hipmm_finalize();
  }
}

static void refuses_what_a_capture_cannot_have(void **state)
{
  void *ptr = NULL;
  needs_software();
  (void)state;
  fixture_start(tiers);
  struct hipmm_movable *movable = create(MIB);
  fill(movable, 3, MIB);
  fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
  assert_status(hipmm_movable_pin(movable, NULL, &ptr), HIPMM_E_STATE);
  assert_message("pin it before the capture");
  fixture_take_hip_back();
  pin(movable, NULL);
  fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
  assert_ok(hipmm_movable_pin(movable, NULL, &ptr)); /* it stays for the graph */
  assert_status(hipmm_movable_unpin(movable, NULL), HIPMM_E_STATE);
  assert_message("unpin it after the last launch");
  fixture_take_hip_back();
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_ok(hipmm_resource_trim(NULL, 0));
  fixture_lend_hip()->StreamIsCapturing = fixture_says_captured;
  assert_status(hipmm_movable_pin(movable, NULL, &ptr), HIPMM_E_STATE);
  assert_message("cannot bring a movable buffer back");
  fixture_take_hip_back();
  check(movable, 3, MIB);
  assert_ok(hipmm_movable_destroy(movable));
}

/* ---- Threads ---- */

static struct hipmm_movable *shared[BUFFERS];

/* Each reads all, so that pins of one buffer meet each other and moves. */
static void read_at_random(int *failures)
{
  static atomic_int threads;
  uint64_t random = 1 + (uint64_t)atomic_fetch_add(&threads, 1);
  hipmm_stream_t stream = NULL;
  if (hipmm_stream_create(0, 0, &stream)) ++*failures;
  for (int step = 0; step < 60; step++) {
    int i = (int)random_below(&random, BUFFERS);
    void *ptr = NULL;
    enum hipmm_status status = hipmm_movable_pin(shared[i], stream, &ptr);
    if (status == HIPMM_E_LIMIT) continue; /* the other threads have pinned what there is */
    *failures += status || fixture_look(ptr, (unsigned char)(i + 1), BYTES, stream, &wrong_content);
    *failures += hipmm_movable_unpin(shared[i], stream) != HIPMM_OK;
    if (step % 20 == 7) *failures += hipmm_resource_trim(NULL, 2 * MIB) != HIPMM_OK;
  }
  *failures += hipmm_stream_synchronize(0, stream) || hipmm_stream_destroy(stream);
}

static void serve_threads(const char *graph)
{
  fixture_start(graph);
  create_full(shared, BUFFERS);
  fixture_run_threads(4, read_at_random);
  assert_int_equal(atomic_load(&wrong_content), 0);
  check_and_destroy(shared, BUFFERS);
  hipmm_finalize();
}

#define IN_ALL_TIERS "'pinned': 'host', 'pinned_limit': '6MiB', 'folder': '.', 'high_water': '6MiB'"

static void serves_threads(void **state)
{
  static struct policy policy = {.rank = rank_by_age};
  const struct hipmm_hooks hooks = {.struct_size = sizeof hooks, .callback = rank_event, .arg = &policy};
  (void)state;
  assert_ok(hipmm_hooks_register("mine", &hooks));
  serve_threads(TIERS_BELOW(", " IN_ALL_TIERS));
  serve_threads(TIERS_BELOW(", 'policy': 'mine', " IN_ALL_TIERS));
  assert_int_equal(atomic_load(&policy.wrong), 0);
}

/* ---- Failures ---- */

/* What a disk refuses stays on the device. */
static void survives_a_full_disk(void **state)
{
  struct hipmm_movable *movables[FEW + 1];
  struct rlimit before, small = {5 * MIB, 0};
  void *ptr = NULL;
  needs_software();
  (void)state;
  fixture_start(file_only);
  create_full(movables, FEW);
  movables[FEW] = create(BYTES);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_ok(hipmm_resource_trim(NULL, 0)); /* two of them fit, and a part of the third */
  int64_t in_file = value("file_bytes"), on_device = value("device_bytes");
  enum hipmm_status first = hipmm_movable_pin(movables[FEW], NULL, &ptr);
  if (!first) first = hipmm_movable_unpin(movables[FEW], NULL);
  void *all = NULL;
  enum hipmm_status second = hipmm_allocate(NULL, 8 * MIB, NULL, &all);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(in_file, 4 * MIB);
  assert_int_equal(on_device, 4 * MIB);
  assert_ok(first);
  assert_status(second, HIPMM_E_LIMIT);
  assert_message("8 MiB");
  fill(movables[FEW], FEW + 1, BYTES);
  check_and_destroy(movables, FEW + 1);
}

/* What cannot go on to the file stays in pinned memory, and what cannot go there stays on the device; a later trim moves it. */
static void survives_a_full_disk_behind_pinned_memory(void **state)
{
  struct hipmm_movable *movables[FEW + 1];
  struct rlimit before, small = {MIB, 0};
  needs_software();
  (void)state;
  fixture_start(TIERS_BELOW(", 'pinned': 'host', 'pinned_limit': '2MiB', 'folder': '.', 'file_limit': '7MiB'"));
  create_full(movables, FEW);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_ok(hipmm_resource_trim(NULL, 0));
  int64_t in_file = value("file_bytes"), in_pinned = value("pinned_bytes"), demotions = value("demotions");
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(in_file, 0);
  assert_int_equal(demotions, 0);
  assert_int_equal(in_pinned, 2 * MIB);
  assert_int_equal(value("device_bytes"), 6 * MIB);
  assert_int_equal(value("live_bytes"), 8 * MIB);
  assert_ok(hipmm_resource_trim(NULL, 0));
  assert_int_equal(value("device_bytes"), 0);
  assert_int_equal(value("file_bytes"), 6 * MIB);
  movables[FEW] = create(BYTES);
  fill(movables[FEW], FEW + 1, BYTES);
  assert_ok(hipmm_resource_trim(NULL, 0)); /* the file would have 8 MiB */
  assert_int_equal(value("device_bytes"), 2 * MIB);
  assert_int_equal(value("live_bytes"), 10 * MIB);
  check_and_destroy(movables, FEW + 1);
}

static atomic_uint copies;

static int count_copy(void *to, const void *from, size_t bytes, int kind, hipmm_stream_t stream)
{
  atomic_fetch_add(&copies, 1);
  return fixture_usual_hip()->MemcpyAsync(to, from, bytes, kind, stream);
}

/* The thread that moves ahead of need tries it once, and again when a trim has found that it is not full any more. */
static void leaves_a_full_disk_alone(void **state)
{
  struct hipmm_movable *movables[FEW];
  struct rlimit before, none;
  needs_software();
  (void)state;
  fixture_start(TIERS_BELOW(", 'folder': '.', 'high_water': '0B'"));
  fixture_free(fixture_allocate(8 * MIB, NULL), 8 * MIB, NULL); /* the software device has its memory in a file too */
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  none = (struct rlimit){0, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  atomic_store(&copies, 0);
  fixture_lend_hip()->MemcpyAsync = count_copy;
  create_full(movables, FEW);
  for (int i = 0; i < 20000 && !atomic_load(&copies); i++) usleep(1000);
  for (int i = 0; i < 50; i++) {
    pin(movables[i % FEW], NULL);
    (void)hipmm_movable_unpin(movables[i % FEW], NULL);
    usleep(500);
  }
  unsigned tries = atomic_load(&copies);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(tries, 1);
  assert_ok(hipmm_resource_trim(NULL, 6 * MIB));
  fill(movables[3], 4, BYTES);
  for (int i = 0; i < 20000 && value("device_bytes"); i++) usleep(1000);
  assert_int_equal(value("device_bytes"), 0);
  assert_int_equal(value("live_bytes"), 8 * MIB);
  check_and_destroy(movables, FEW);
  assert_ok(hipmm_finalize()); /* the thread uses the table until then */
  fixture_take_hip_back();
}

static void survives_a_file_that_cannot_be_read(void **state)
{
  struct hipmm_movable *movables[FEW];
  void *ptr = NULL;
  (void)state;
  fixture_start(file_only);
  create_full(movables, FEW);
  assert_ok(hipmm_resource_trim(NULL, 0));
  int file = fixture_unlinked_file(), kept = dup(file);
  assert_true(kept >= 0);
  close(file);
  assert_status(hipmm_movable_pin(movables[0], NULL, &ptr), HIPMM_E_IO);
  assert_message("stays there, and can be pinned again later");
  assert_int_equal(value("device_bytes"), 0);
  assert_int_equal(value("file_bytes"), 8 * MIB);
  assert_int_equal(dup2(kept, file), file);
  close(kept);
  check_and_destroy(movables, FEW);
}

/* The memory for it has no owner, and its free fails too. */
static void loses_no_memory_to_a_file_that_cannot_be_read(void **state)
{
  struct hipmm_movable *movable;
  void *ptr = NULL;
  needs_software();
  (void)state;
  fixture_start(
      "'resources': {'movable': {'type': 'spilling', 'upstream': 'memory', 'folder': '.'}, 'memory': {'type': "
      "'device'}}, 'devices': {'default': 'movable'}");
  fill(movable = create(BYTES), 1, BYTES);
  assert_ok(hipmm_resource_trim(NULL, 0));
  int file = fixture_unlinked_file(), kept = dup(file);
  assert_true(kept >= 0);
  close(file);
  fixture_fail_call("hipFree", 1, 0);
  assert_status(hipmm_movable_pin(movable, NULL, &ptr), HIPMM_E_IO);
  assert_int_equal(dup2(kept, file), file);
  close(kept);
  assert_int_equal(fixture_held_bytes(), 0);
  check(movable, 1, BYTES);
  assert_ok(hipmm_movable_destroy(movable));
}

static char killed_folder[] = "spilling-XXXXXX";

static int spill_and_die(const void *argument)
{
  char graph[512];
  struct hipmm_movable *movable = NULL;
  void *ptr = NULL;
  (void)argument;
  snprintf(
      graph, sizeof graph,
      "{\"runtime\": {\"type\": \"software\"}, \"stack\": [{\"type\": \"spilling\", \"folder\": \"%s\"}, \"device\"]}",
      killed_folder);
  if (hipmm_init_from_string(graph) || hipmm_movable_create(NULL, MIB, &movable) ||
      hipmm_movable_pin(movable, NULL, &ptr) || hipmm_movable_unpin(movable, NULL) || hipmm_resource_trim(NULL, 0))
    return 1;
  raise(SIGKILL);
  return 1;
}

static void leaves_nothing_when_killed(void **state)
{
  (void)state;
  assert_non_null(mkdtemp(killed_folder));
  pid_t child = fork();
  int status = 0;
  if (!child) _exit(spill_and_die(NULL));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  assert_int_equal(rmdir(killed_folder), 0); /* only an empty one can be removed */
}

static struct hipmm_movable *last;

/* Was registered before hipmm's own function, so it runs after that. */
static void use_at_exit(void)
{
  void *ptr = NULL;
  if (hipmm_movable_pin(last, NULL, &ptr) || hipmm_movable_unpin(last, NULL)) _exit(1);
  usleep(50000);
  _exit(value("device_bytes") == MIB ? 0 : 2);
}

static void exit_with_the_thread(void)
{
  char graph[] =
      "{\"runtime\": {\"type\": \"software\"}, \"resources\": {\"movable\": {\"type\": \"spilling\", \"upstream\": "
      "\"memory\", \"folder\": \".\", \"high_water\": \"0B\"}, \"memory\": {\"type\": \"device\"}}, \"devices\": "
      "{\"default\": \"movable\"}}";
  if (atexit(use_at_exit) || hipmm_init_from_string(graph) || hipmm_movable_create(NULL, MIB, &last)) _exit(3);
  exit(0);
}

static void moves_nothing_when_the_process_ends(void **state)
{
  (void)state;
  needs_software(); /* a child of fork cannot use the driver of its parent */
  pid_t child = fork();
  int status = 0;
  if (!child) exit_with_the_thread();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* Any call may fail; what a pin that succeeds shows is right. */
static void use_whatever_fails(void)
{
  struct hipmm_movable *movables[5] = {NULL};
  void *ptr;
  bool is_full[5] = {false};
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 5; i++) {
      if (!movables[i] && hipmm_movable_create(NULL, SMALL_BYTES, &movables[i])) continue;
      if (hipmm_movable_pin(movables[i], NULL, &ptr)) continue;
      if (is_full[i] && !fixture_hip()->StreamSynchronize(NULL)) {
        for (size_t at = 0; at < SMALL_BYTES; at += 4096)
          atomic_fetch_add(&wrong_content, ((unsigned char *)ptr)[at] != i + 1);
      } else if (!is_full[i]) {
        is_full[i] = !fixture_hip()->MemsetAsync(ptr, i + 1, SMALL_BYTES, NULL);
      }
      if (hipmm_movable_unpin(movables[i], NULL) && hipmm_movable_unpin(movables[i], NULL)) return;
    }
  (void)hipmm_resource_trim(NULL, 0);
  for (int i = 0; i < 5; i++)
    if (hipmm_movable_destroy(movables[i])) (void)hipmm_movable_destroy(movables[i]);
}

static void loses_nothing_whatever_fails(void **state)
{
  (void)state;
  assert_in_range(
      fixture_fail_each_call("'scheduler': 'stepped'",
                             TIERS_UNDER("256KiB", ", 'pinned': 'host', 'pinned_limit': '64KiB', 'folder': '.'"),
                             use_whatever_fails),
      50, 2000);
  assert_int_equal(atomic_load(&wrong_content), 0);
}

/* ---- Bad input ---- */

static void refuses_wrong_calls(void **state)
{
  struct hipmm_movable *movable = NULL;
  void *ptr = NULL;
  (void)state;
  fixture_start(tiers);
  assert_status(hipmm_movable_create(NULL, MIB, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_movable_create(NULL, SIZE_MAX, &movable), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_movable_destroy(NULL));
  assert_status(hipmm_movable_pin(NULL, NULL, &ptr), HIPMM_E_ARGUMENT);
  movable = create(MIB);
  assert_status(hipmm_movable_pin(movable, NULL, NULL), HIPMM_E_ARGUMENT);
  assert_status(hipmm_movable_unpin(movable, NULL), HIPMM_E_STATE);
  assert_message("is not pinned");
  pin(movable, NULL);
  assert_status(hipmm_movable_destroy(movable), HIPMM_E_STATE);
  assert_message("is pinned 1 times; unpin it");
  assert_ok(hipmm_movable_unpin(movable, NULL));
  assert_status(hipmm_movable_unpin(movable, NULL), HIPMM_E_STATE);
  assert_ok(hipmm_movable_destroy(movable));
  assert_status(hipmm_movable_destroy(movable), HIPMM_E_POINTER);
  assert_status(hipmm_movable_pin(movable, NULL, &ptr), HIPMM_E_POINTER);
  assert_message("movable is not a movable buffer, or already destroyed");
}

/* A movable buffer keeps its stack; the pool below is not suspended under it. */
static void outlives_the_table_of_devices(void **state)
{
  (void)state;
  fixture_start(tiers);
  struct hipmm_movable *movable = create(MIB);
  fill(movable, 8, MIB);
  assert_status(hipmm_resource_suspend(NULL, HIPMM_CONTENT_KEEP), HIPMM_E_NOT_SUPPORTED);
  assert_ok(hipmm_finalize());
  check(movable, 8, MIB);
  assert_ok(hipmm_movable_destroy(movable));
}

static void needs_a_spilling_resource(void **state)
{
  struct hipmm_movable *movable = NULL;
  (void)state;
  fixture_start("'stack': ['pool', 'device']");
  assert_status(hipmm_movable_create(NULL, MIB, &movable), HIPMM_E_ARGUMENT);
  assert_message("neither it nor a resource below it is a spilling resource");
}

static void refuses_wrong_options(void **state)
{
  static const struct fixture_refusal refusals[] = {
      {"'pinned_limit': 'much'", "\"much\" is not a size"},
      {"'pinned': 'nobody'", "nobody"},
      {"'hig_water': '1MiB'", "did you mean \"high_water\"?"},
  };
  (void)state;
  fixture_refuses("spilling", refusals, sizeof refusals / sizeof *refusals);
  assert_status(fixture_try("", TIERS_BELOW(", 'pinned': 'pool'")), HIPMM_E_CONFIG);
  assert_message("/resources/movable/pinned");
  assert_message("memory that the host cannot access");
  assert_status(fixture_try("", "'stack': [{'type': 'spilling', 'folder': '/no/such/folder'}, 'device']"), HIPMM_E_IO);
  assert_message("/stack/0/folder");
  assert_message("cannot make a file in \"/no/such/folder\"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves_nothing_when_killed),
      cmocka_unit_test(moves_nothing_when_the_process_ends),
      TEST(keeps_content_in_all_tiers),
      TEST(fills_the_tiers_in_their_order),
      TEST(sends_the_coldest_to_the_file),
      TEST(keeps_content_where_pinned_memory_is_short),
      TEST(leaves_room_in_the_file),
      TEST(keeps_content_of_any_size),
      TEST(has_no_memory_for_0_bytes),
      TEST(moves_what_was_unpinned_longest_ago),
      TEST(moves_nothing_that_is_pinned),
      TEST(stays_whole_when_there_is_no_memory),
      TEST(moves_nothing_for_what_cannot_be_had),
      TEST(moves_nothing_for_pinned_memory),
      TEST(moves_what_the_policy_wants),
      TEST(sends_the_coldest_of_equal_ranks),
      TEST(asks_for_ages_at_one_time),
      TEST(keeps_content_under_any_policy),
      TEST(needs_a_policy_that_ranks),
      TEST(makes_room_for_other_allocations),
      TEST(moves_ahead_of_need),
      TEST(keeps_the_order_of_streams),
      TEST(refuses_what_a_capture_cannot_have),
      TEST(serves_threads),
      TEST(survives_a_full_disk),
      TEST(survives_a_full_disk_behind_pinned_memory),
      TEST(leaves_a_full_disk_alone),
      TEST(survives_a_file_that_cannot_be_read),
      TEST(loses_no_memory_to_a_file_that_cannot_be_read),
      TEST(loses_nothing_whatever_fails),
      TEST(refuses_wrong_calls),
      TEST(outlives_the_table_of_devices),
      TEST(needs_a_spilling_resource),
      TEST(refuses_wrong_options),
  };
  return cmocka_run_group_tests_name("spilling", tests, NULL, NULL);
}
