/* SPDX-License-Identifier: MIT */
/* Tests of tests/lab/locks/lock_order.c: each kind of violation ends the process with both locks and where they were
 * taken, and what is right goes on. Each runs in a fork. The locks are the test's own, taken as if by files of
 * hipmm. */
#include "../../core/base/lock_order.h"
#include "../support/support.h"

#include <stdio.h>

static const struct lock_order_site at_lifecycle = {"core/base/lifecycle.c", 1, "&lock", NULL};
static const struct lock_order_site at_table = {"../../core/call/device_table.c", 2, "&lock", NULL};
static const struct lock_order_site at_setting = {"core/inspect/settings.c", 3, "&instance->setting", NULL};
static const struct lock_order_site at_pool = {"plugins/pool/allocate.c", 4, "&pool->lock",
                                               "plugins/common/biased_lock.h"};
static const struct lock_order_site at_watch = {"plugins/common/thread_cache.c", 5, "watch", NULL};
static const struct lock_order_site at_thread_list = {"plugins/common/thread_cache.c", 6, "&lock", NULL};
static const struct lock_order_site at_live = {"plugins/common/live_blocks.c", 7, "&shard->lock", NULL};
static const struct lock_order_site at_sums = {"plugins/statistics/counters.c", 8, "&counters->lock", NULL};
static const struct lock_order_site at_shard = {"plugins/statistics/counters.h", 9, "&shard->busy",
                                                "plugins/common/spin_lock.h"};
static const struct lock_order_site at_spin = {"plugins/fixed_size/reuse.c", 10, "&list->busy",
                                               "plugins/common/spin_lock.h"};
static const struct lock_order_site at_memory = {"core/base/os_memory.c", 11, "&lock", NULL};
static const struct lock_order_site at_once = {"core/call/handle.c", 12, "&once", NULL};
static const struct lock_order_site at_software = {"plugins/runtimes/software/call.c", 13, "&software.lock", NULL};
static const struct lock_order_site at_nothing = {"core/stack/new_file.c", 14, "&lock", NULL};
static const struct lock_order_site at_test = {"tests/unit/test_lock_order.c", 15, "&lock", NULL};
static const struct lock_order_site at_failure = {"plugins/failure_callback/failure_callback.c", 16, NULL, NULL};
static const struct lock_order_site at_allocator = {"plugins/callback/callback.c", 18, NULL, NULL};
static const struct lock_order_site at_torch = {"core/framework/torch.c", 17, NULL, NULL};

static pthread_mutex_t locks[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t readable = PTHREAD_RWLOCK_INITIALIZER;

static void take(int lock, const struct lock_order_site *site)
{
  lock_order_mutex_lock(&locks[lock], site);
}

static void leave(int lock)
{
  lock_order_mutex_unlock(&locks[lock]);
}

/* ---- What is right ---- */

static void *take_two_as_well(void *unused)
{
  (void)unused;
  take(1, &at_pool);
  take(2, &at_pool);
  leave(1); /* not in the opposite order */
  leave(2);
  return NULL;
}

static void do_nothing(void)
{
}

static void wait_a_moment(void)
{
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec past = {0, 0};
  take(0, &at_lifecycle);
  take(1, &at_table);
  lock_order_cond_timedwait(&condition, &locks[1], &past, &at_table);
  leave(1);
  leave(0);
}

/* Each function of POSIX once: what it takes is known, and what it leaves is forgotten. */
static void take_by_each_function(void)
{
  struct timespec past = {0, 0};
  assert_int_equal(lock_order_mutex_timedlock(&locks[0], &past, &at_lifecycle), 0);
  assert_int_equal(lock_order_mutex_trylock(&locks[1], &at_pool), 0);
  assert_int_not_equal(lock_order_mutex_trylock(&locks[1], &at_pool), 0); /* not taken, so it is left once */
  leave(1);
  assert_int_equal(lock_order_rwlock_rdlock(&readable, &at_setting), 0);
  assert_int_equal(lock_order_rwlock_unlock(&readable), 0);
  assert_int_equal(lock_order_rwlock_wrlock(&readable, &at_setting), 0);
  assert_int_equal(lock_order_rwlock_unlock(&readable), 0);
  assert_int_equal(lock_order_rwlock_destroy(&readable), 0);
  pthread_rwlock_init(&readable, NULL);
  leave(0);
}

static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int has_turn;

static void *give_turn(void *unused)
{
  (void)unused;
  take(0, &at_lifecycle);
  has_turn = 1;
  pthread_cond_signal(&turn);
  leave(0);
  return NULL;
}

static void wait_for_another_thread(void)
{
  pthread_t thread;
  take(0, &at_lifecycle);
  pthread_create(&thread, NULL, give_turn, NULL);
  while (!has_turn) lock_order_cond_wait(&turn, &locks[0], &at_lifecycle);
  take(1, &at_pool); /* the lock is taken again, and counts */
  leave(1);
  leave(0);
  pthread_join(thread, NULL);
}

static int do_right(const void *unused)
{
  pthread_t thread;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)unused;
  take(0, &at_lifecycle);
  take(1, &at_pool);
  take(2, &at_pool);
  lock_order_enter_program_site(&at_allocator);
  take(3, &at_lifecycle); /* the order begins anew */
  leave(3);
  lock_order_leave_program();
  for (int i = 2; i >= 0; i--) leave(i);
  pthread_create(&thread, NULL, take_two_as_well, NULL);
  pthread_join(thread, NULL);
  take(3, &at_sums);
  lock_order_push_site(&locks[2], &at_shard); /* many under the lock of the sums, in any order */
  lock_order_check_site(&locks[1], &at_shard);
  lock_order_pop(&locks[2]);
  leave(3);
  take(1, &at_live); /* in the order of addresses */
  take(2, &at_live);
  leave(2);
  leave(1);
  take(3, &at_test);
  take(0, &at_test);
  leave(0);
  leave(3);
  take(3, &at_software);
  lock_order_once(&once, do_nothing, &at_once);
  leave(3);
  wait_a_moment();
  take_by_each_function();
  wait_for_another_thread();
  lock_order_mutex_destroy(&locks[1]); /* another lock at its address is another one */
  pthread_mutex_init(&locks[1], NULL);
  take(2, &at_pool);
  take(1, &at_pool);
  return 0;
}

static void says_nothing_of_what_is_right(void **state)
{
  (void)state;
  struct outcome outcome = run_forked(do_right, NULL);
  assert_string_equal(outcome.error, "");
  assert_int_equal(outcome.status, 0);
}

/* ---- Violations ---- */

struct violation {
  const char *name;
  void (*commit)(void);
  const char *what, *lock, *other; /* in the message; `other` NULL: there is none */
};

static void take_an_earlier_lock(void)
{
  take(0, &at_pool);
  take(1, &at_table);
}

static void *take_in_the_other_order(void *unused)
{
  (void)unused;
  take(1, &at_pool);
  take(0, &at_pool);
  return NULL;
}

static void take_in_both_orders(void)
{
  pthread_t thread;
  take(0, &at_pool);
  take(1, &at_pool);
  leave(1);
  leave(0);
  pthread_create(&thread, NULL, take_in_the_other_order, NULL);
  pthread_join(thread, NULL);
}

static void take_three_in_a_circle(void)
{
  for (int i = 0; i < 3; i++) {
    take(i, &at_pool);
    take((i + 1) % 3, &at_pool);
    leave((i + 1) % 3);
    leave(i);
  }
}

static void take_twice(void)
{
  take(0, &at_memory);
  take(0, &at_memory);
}

static void read_twice(void)
{
  lock_order_rwlock_rdlock(&readable, &at_memory);
  lock_order_rwlock_rdlock(&readable, &at_memory);
}

static void take_two_leaves(void)
{
  take(0, &at_memory);
  take(1, &at_memory);
}

static void take_shards_downward(void)
{
  take(1, &at_live);
  take(0, &at_live);
}

static void take_shards_unguarded(void)
{
  lock_order_push_site(&locks[0], &at_shard);
  lock_order_check_site(&locks[1], &at_shard);
}

static void call_hip_under_a_spin_lock_later(void)
{
  take(0, &at_software);
  lock_order_check_site(&locks[1], &at_spin);
}

static void take_under_once(void)
{
  take(0, &at_memory);
}

static void take_in_once(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  lock_order_once(&once, take_under_once, &at_once);
}

static void call_the_program(void)
{
  take(0, &at_memory);
  lock_order_enter_program_site(&at_failure);
}

static void throw_through_a_lock(void)
{
  take(0, &at_pool);
  lock_order_enter_program_site(&at_torch);
}

static void call_a_failure_handler_under_a_lock(void)
{
  take(0, &at_pool);
  lock_order_enter_program_site(&at_failure);
}

/* Another thread may be in such a function under that lock, and wait for this one's. */
static void wait_in_an_allocator(void)
{
  take(0, &at_pool);
  lock_order_enter_program_site(&at_allocator);
  take(1, &at_pool);
}

static void take_again_in_the_program(void)
{
  take(0, &at_pool);
  lock_order_enter_program_site(&at_allocator);
  take(0, &at_pool);
}

static void wait_under_another(void)
{
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec past = {0, 0};
  take(0, &at_table);
  take(1, &at_pool);
  lock_order_cond_timedwait(&condition, &locks[0], &past, &at_table);
}

/* What hung: the list of threads stayed locked around the end of a thread, which takes the lock of a pool; and a
 * pool that is destroyed under a lock waits for a thread whose end needs that lock. */
static void end_a_thread_under_the_list(void)
{
  take(0, &at_thread_list);
  take(1, &at_pool);
}

static void destroy_under_a_lock(void)
{
  take(0, &at_pool);
  lock_order_check_site(&locks[1], &at_watch);
}

static void take_what_has_no_row(void)
{
  take(0, &at_nothing);
}

static void set_in_a_setting(void)
{
  take(0, &at_setting);
  take(1, &at_setting);
  leave(1);
  leave(0);
  take(1, &at_setting);
  take(0, &at_setting);
}

static const struct violation violations[] = {
    {"notices a lock that comes earlier", take_an_earlier_lock, "must be taken after it", "device_table.c",
     "allocate.c:4"},
    {"notices both orders in two threads", take_in_both_orders, "in both orders", "&pool->lock", "allocate.c:4"},
    {"notices a circle of three", take_three_in_a_circle, "in both orders", "&pool->lock", "allocate.c:4"},
    {"notices both orders of settings", set_in_a_setting, "in both orders", "&instance->setting", "settings.c:3"},
    {"notices a lock that is taken twice", take_twice, "taken twice", "os_memory.c", "os_memory.c:11"},
    {"notices a lock that is read twice", read_twice, "taken twice", "os_memory.c", "os_memory.c:11"},
    {"notices two locks of one rank", take_two_leaves, "must be taken after it", "host memory", "os_memory.c:11"},
    {"notices shards in the wrong order", take_shards_downward, "must be taken after it", "parts of plugins",
     "live_blocks.c:7"},
    {"notices shards without their guard", take_shards_unguarded, "must be taken after it", "shards of statistics",
     "counters.h:9"},
    {"notices a spin lock under a runtime's", call_hip_under_a_spin_lock_later, "must be taken after it", "&list->busy",
     "call.c:13"},
    {"notices a lock in a function of pthread_once()", take_in_once, "must be taken after it", "host memory",
     "handle.c:12"},
    {"notices a call of the program under a lock", call_the_program, "the program is called under a lock",
     "failure_callback.c:16", "os_memory.c:11"},
    {"notices a failure handler under a lock", call_a_failure_handler_under_a_lock,
     "the program is called under a lock", "failure_callback.c:16", "allocate.c:4"},
    {"notices a wait in an allocator", wait_in_an_allocator, "under a lock of a resource waits for another",
     "&pool->lock", "allocate.c:4"},
    {"notices an exception through a lock", throw_through_a_lock, "the program is called under a lock", "torch.c:17",
     "allocate.c:4"},
    {"notices a lock that a function of the program takes again", take_again_in_the_program, "taken twice",
     "&pool->lock", "allocate.c:4"},
    {"notices a wait under another lock", wait_under_another, "must be taken after it", "device_table.c:2",
     "allocate.c:4"},
    {"notices the end of a thread under the list of threads", end_a_thread_under_the_list, "must be taken after it",
     "a plugin's own", "thread_cache.c:6"},
    {"notices a wait for the end of a thread under a lock", destroy_under_a_lock, "must be taken after it",
     "end of a thread", "allocate.c:4"},
    {"notices a lock without a row", take_what_has_no_row, "has no row", "new_file.c", NULL},
};

static int commit(const void *violation)
{
  ((const struct violation *)violation)->commit();
  return 0;
}

static void is_noticed(void **state)
{
  const struct violation *violation = *state;
  char place[100];
  struct outcome outcome = run_forked(commit, violation);
  assert_int_equal(outcome.status, -1);
  assert_contains(outcome.error, violation->what);
  assert_contains(outcome.error, violation->lock);
  assert_contains(outcome.error, "now at ");
  if (!violation->other) return;
  assert_contains(outcome.error, "the other was taken at ");
  snprintf(place, sizeof place, "/%s:\n", violation->other);
  assert_contains(outcome.error, place);
  assert_contains(outcome.error, "test_lock_order"); /* a frame of each trace */
}

#if defined(__SANITIZE_THREAD__)
HIPMM_EXPORT const char *__tsan_default_options(void);

/* ThreadSanitizer's own check of the order does not know that it begins anew in a function of the program. */
const char *__tsan_default_options(void)
{
  return "detect_deadlocks=0";
}
#endif

int main(void)
{
  enum { N = sizeof violations / sizeof *violations };
  struct CMUnitTest tests[N + 1] = {cmocka_unit_test(says_nothing_of_what_is_right)};
  for (size_t i = 0; i < N; i++)
    tests[i + 1] = (struct CMUnitTest){
        .name = violations[i].name, .test_func = is_noticed, .initial_state = (void *)(uintptr_t)&violations[i]};
  return _cmocka_run_group_tests("lock order", tests, N + 1, NULL, NULL);
}
