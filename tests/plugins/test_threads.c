/* SPDX-License-Identifier: MIT */
/* Tests of what resources do for threads that come and end: nothing of a thread stays behind, and a thread may end while
 * resources come and go. */
#include "rig.h"

#include <pthread.h>

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
  rig_start(graph);
  use(1000); /* the type has its own destructor, which the system calls first, from now on */
  assert_int_equal(pthread_key_create(&key, use_at_the_end), 0);
  run_thread(use_until_the_end);
  int64_t records = rig_value(type, value);
  for (int i = 0; i < THREADS; i++) run_thread(use_until_the_end);
  assert_int_equal(rig_value(type, value), records);
  pthread_key_delete(key);
  assert_ok(hipmm_resource_trim(rig_resource(type), 0));
  assert_int_equal(rig_value(type, "reserved_bytes"), 0);
  hipmm_finalize();
}

static void keep_nothing_of_a_thread_whose_destructors_use_them(void **state)
{
  (void)state;
  keeps_nothing_of_a_thread("'stack': ['pool', 'device']", "pool", "metadata_bytes");
  keeps_nothing_of_a_thread("'stack': ['arena', 'device']", "arena", "arenas");
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
  rig_start("'stack': ['pool', 'device']");
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

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(keep_nothing_of_a_thread_whose_destructors_use_them),
      TEST(come_and_go_while_threads_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
