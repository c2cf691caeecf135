/* SPDX-License-Identifier: MIT */
/* Tests of the heaps of threads that wait for the pool's lock: who gets one, that it serves without the lock, that its
 * blocks are the pool's in every call, and that it gives everything back. */
#include "../../../plugins/pool/allocate.h"
#include "../../../plugins/pool/options.h"
#include "../../support/support.h"
#include "fake.h"

#include <semaphore.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 64, MOST_ROUNDS = 20000 };

static const uint64_t GRANULE = 2 << 20;
static const struct hipmm_plugin *const plugin = &pool_LTX_hipmm_plugin;
static struct pool *pool;

static void open_pool(enum growth growth, uint64_t maximum_bytes)
{
  const struct pool_options options = {.maximum_size = maximum_bytes, .slack = SLACK_AUTO, .growth = growth};
  const struct hipmm_services *services = fake_begin();
  struct hipmm_resource *upstream = fake_upstream(1024 * MIB, GRANULE);
  fake_let_upstream_alias(true);
  void *self;
  assert_ok(plugin->create(services, &options, &upstream, 1, &self));
  pool = self;
}

static void close_pool(void)
{
  plugin->destroy(pool);
  assert_int_equal(fake_end(), 0);
}

static int64_t value(const char *name)
{
  return fake_query(plugin, pool, name);
}

/* What the local arenas have of the heap. */
static uint64_t local_bytes(void)
{
  return arena_totals(&pool->arena).bytes;
}

static void *allocate(size_t bytes)
{
  void *ptr = NULL;
  return plugin->ops->allocate(pool, bytes, HIPMM_ALIGNMENT, NULL, &ptr) ? NULL : ptr;
}

static enum hipmm_status deallocate(void *ptr, size_t bytes)
{
  return plugin->ops->deallocate(pool, ptr, bytes, HIPMM_ALIGNMENT, NULL);
}

/* ---- A thread that does as it is told ---- */

static pthread_t worker;
static sem_t told, done;
static void (*task)(void);

static void *work(void *unused)
{
  for (;;) {
    sem_wait(&told);
    if (!task) return unused;
    task();
    sem_post(&done);
  }
}

static void start_worker(void)
{
  sem_init(&told, 0, 0);
  sem_init(&done, 0, 0);
  assert_int_equal(pthread_create(&worker, NULL, work, NULL), 0);
}

static void tell(void (*what)(void))
{
  task = what;
  sem_post(&told);
}

static void have_done(void (*what)(void))
{
  tell(what);
  sem_wait(&done);
}

/* Whether it does so while this thread has the pool's lock. */
static bool is_done_without_the_lock(void (*what)(void))
{
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  biased_lock_acquire(&pool->arena.lock);
  tell(what);
  bool is_done = !sem_timedwait(&done, &end);
  biased_lock_release(&pool->arena.lock);
  if (!is_done) sem_wait(&done);
  return is_done;
}

static void end_worker(void)
{
  tell(NULL);
  pthread_join(worker, NULL);
}

/* ---- Its tasks; only the main thread asserts ---- */

static void *blocks[BLOCKS];
static unsigned n_failed;

static size_t bytes_of(unsigned i)
{
  return 5000 + 777 * i;
}

static void allocate_all(void)
{
  for (unsigned i = 0; i < BLOCKS; i++) {
    blocks[i] = allocate(bytes_of(i));
    n_failed += !blocks[i];
  }
}

static void free_all(void)
{
  for (unsigned i = 0; i < BLOCKS; i++) n_failed += deallocate(blocks[i], bytes_of(i)) != HIPMM_OK;
}

static void allocate_and_free_one(void)
{
  void *ptr = allocate(6000);
  n_failed += !ptr || deallocate(ptr, 6000);
}

/* Has the worker wait for the lock, until it has a heap. */
static void have_it_wait(void)
{
  n_failed = 0;
  for (unsigned i = 0; i < MOST_ROUNDS && !value("thread_heaps"); i++) {
    biased_lock_acquire(&pool->arena.lock);
    tell(allocate_and_free_one);
    usleep(200);
    biased_lock_release(&pool->arena.lock);
    sem_wait(&done);
  }
  assert_int_equal(value("thread_heaps"), 1);
  assert_int_equal(n_failed, 0);
}

/* ---- Tests ---- */

static void shares_one_heap_among_threads_that_do_not_wait(void **state)
{
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  for (unsigned i = 0; i < 200; i++) {
    have_done(allocate_all);
    have_done(free_all);
    void *ptr = allocate(10000);
    assert_ok(deallocate(ptr, 10000));
  }
  assert_int_equal(value("thread_heaps"), 0);
  end_worker();
  close_pool();
}

static void serves_a_thread_that_has_waited_without_the_lock(void **state)
{
  (void)state;
  for (enum growth growth = GROWTH_MAPPED; growth <= GROWTH_SEGMENTS; growth++) {
    open_pool(growth, UINT64_MAX);
    start_worker();
    have_it_wait();
    have_done(allocate_all); /* gets its memory */
    have_done(free_all);
    assert_true(is_done_without_the_lock(allocate_all));
    assert_true(is_done_without_the_lock(free_all));
    assert_int_equal(n_failed, 0);
    end_worker();
    close_pool();
  }
}

static void count_extent(void *closure, const struct hipmm_extent *extent)
{
  uint64_t *bytes = closure;
  bytes[extent->state == HIPMM_EXTENT_LIVE] += extent->bytes;
}

static void has_the_blocks_of_all_heaps(void **state)
{
  struct hipmm_location location = {.struct_size = sizeof location};
  struct hipmm_block block;
  uint64_t bytes[2] = {0}, live = 0;
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_it_wait();
  have_done(allocate_all);
  void *own = allocate(3 * MIB);
  for (unsigned i = 0; i < BLOCKS; i++) live += bytes_of(i);
  assert_int_equal(value("live_count"), BLOCKS + 1);
  assert_int_equal(value("live_bytes"), live + 3 * MIB);
  assert_ok(plugin->ops->visit(pool, count_extent, bytes));
  assert_int_equal(bytes[true], live + 3 * MIB);
  assert_in_range(bytes[false] + bytes[true], live + 3 * MIB, value("reserved_bytes"));
  assert_ok(plugin->ops->find(pool, blocks[7], &block));
  assert_int_equal(block.bytes, bytes_of(7));
  assert_ok(plugin->ops->locate(pool, blocks[7], &location));
  assert_true(location.usable_bytes >= bytes_of(7));
  assert_int_equal(deallocate(blocks[7], 1), HIPMM_E_SIZE);
  assert_int_equal(deallocate((char *)blocks[7] + 256, 256), HIPMM_E_POINTER);
  /* What is served at once may not put it into a cache of the pool. */
  assert_int_equal(plugin->ops->try_deallocate(pool, blocks[7], bytes_of(7), HIPMM_ALIGNMENT, NULL), 0);
  assert_int_equal(value("live_count"), BLOCKS + 1);
  assert_ok(deallocate(own, 3 * MIB));
  free_all(); /* another thread than the one that allocated */
  assert_int_equal(n_failed, 0);
  assert_int_equal(deallocate(blocks[7], bytes_of(7)), HIPMM_E_POINTER);
  assert_int_equal(value("live_count"), 0);
  assert_int_equal(value("live_bytes"), 0);
  end_worker();
  assert_ok(plugin->ops->trim(pool, 0));
  assert_int_equal(value("reserved_bytes"), 0);
  assert_int_equal(value("live_count"), 0); /* what was on loan is back */
  assert_int_equal(value("live_bytes"), 0);
  close_pool();
}

static void free_first(void)
{
  n_failed += deallocate(blocks[0], bytes_of(0)) != HIPMM_OK;
}

static void allocate_first(void)
{
  blocks[0] = allocate(bytes_of(0));
  n_failed += !blocks[0];
}

static void look(void)
{
  n_failed += value("live_count") != BLOCKS;
}

static void visit(void)
{
  uint64_t bytes[2] = {0};
  n_failed += plugin->ops->visit(pool, count_extent, bytes) != HIPMM_OK;
}

static void trim(void)
{
  n_failed += plugin->ops->trim(pool, 0) != HIPMM_OK;
}

static void retire_stream(void)
{
  plugin->ops->stream_retire(pool, NULL);
}

static void settle(void)
{
  biased_lock_acquire(&pool->arena.lock);
  arena_settle(&pool->arena, arena_local(&pool->arena, 1), false);
  biased_lock_release(&pool->arena.lock);
}

static void return_idle(void)
{
  biased_lock_acquire(&pool->arena.lock);
  arena_return_idle(&pool->arena, arena_local(&pool->arena, 1), 0);
  biased_lock_release(&pool->arena.lock);
}

/* Nobody reads or changes a heap that another thread is in. */
static void waits_for_who_is_in_a_heap(void **state)
{
  static void (*const tasks[])(void) = {free_first, allocate_first, look, visit,
                                        settle,     return_idle,    trim, retire_stream};
  enum { FROM = offsetof(struct local, is_open), TO = offsetof(struct local, thread) }; /* what the lock protects */
  static char before[TO - FROM];
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_it_wait();
  have_done(allocate_all);
  struct local *local = arena_local(&pool->arena, 1);
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
    biased_lock_acquire(&local->lock);
    memcpy(before, (const char *)local + FROM, sizeof before);
    tell(tasks[i]);
    usleep(10000);
    bool is_done = !sem_trywait(&done), is_same = !memcmp(before, (const char *)local + FROM, sizeof before);
    biased_lock_release(&local->lock);
    if (!is_done) sem_wait(&done);
    assert_true(!is_done && is_same);
  }
  assert_int_equal(n_failed, 0);
  have_done(free_all);
  end_worker();
  assert_int_equal(n_failed, 0);
  assert_int_equal(value("live_count"), 0);
  close_pool();
}

/* What the heap of a thread holds and does not use is no reason to fail. A thread with a heap waits for the device as often as
 * another before it fails. */
static void gives_idle_memory_back_when_memory_is_short(void **state)
{
  (void)state;
  for (enum growth growth = GROWTH_MAPPED; growth <= GROWTH_SEGMENTS; growth++) {
    open_pool(growth, 64 * MIB);
    start_worker();
    have_it_wait();
    have_done(allocate_all);
    have_done(free_all);
    assert_true(local_bytes() > 0);
    void *all = allocate(64 * MIB);
    assert_non_null(all);
    unsigned before = fake_calls.device_synchronize;
    have_done(allocate_and_free_one); /* fails */
    assert_int_equal(n_failed, 1);
    unsigned waits = fake_calls.device_synchronize - before;
    assert_null(allocate(6000));
    assert_int_equal(fake_calls.device_synchronize - before, 2 * waits);
    n_failed = 0;
    assert_ok(deallocate(all, 64 * MIB));
    have_done(allocate_and_free_one);
    assert_int_equal(n_failed, 0);
    end_worker();
    close_pool();
  }
}

static void gets_no_memory_at_the_resume_of_a_pool_for_what_is_idle(void **state)
{
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_it_wait();
  have_done(allocate_all);
  assert_ok(plugin->ops->suspend(pool, HIPMM_CONTENT_DISCARD));
  have_done(free_all);
  assert_ok(plugin->ops->resume(pool));
  assert_int_equal(n_failed, 0);
  assert_int_equal(value("reserved_bytes"), 0);
  have_done(allocate_all);
  have_done(free_all);
  assert_int_equal(n_failed, 0);
  end_worker();
  close_pool();
}

/* A heap serves again after its stream was retired, and the next thread gets one too. */
static void outlives_streams_and_threads(void **state)
{
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_it_wait();
  have_done(allocate_all);
  plugin->ops->stream_retire(pool, NULL);
  have_done(free_all);
  have_done(allocate_all);
  end_worker();
  free_all();
  assert_int_equal(n_failed, 0);
  start_worker();
  have_done(allocate_all);
  have_done(free_all);
  end_worker();
  assert_int_equal(n_failed, 0);
  assert_int_equal(value("live_count"), 0);
  close_pool();
}

/* What a heap without a stream gives back is ready for every stream. */
static void gives_back_what_no_stream_uses(void **state)
{
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_it_wait();
  have_done(allocate_all);
  plugin->ops->stream_retire(pool, NULL);
  have_done(free_all);
  assert_ok(plugin->ops->trim(pool, SIZE_MAX));
  assert_int_equal(local_bytes(), 0);
  assert_true(heap_is_valid(&pool->arena.heap));
  end_worker();
  assert_int_equal(n_failed, 0);
  close_pool();
}

/* A stream that nobody retained has the handle of one that lasted: an arena that believes it lasts would reuse memory out of
 * order. */
static void makes_no_heap_for_a_stream_that_has_ended(void **state)
{
  hipmm_stream_t stream = fake_stream(1);
  void *ptr;
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  plugin->ops->stream_retain(pool, stream);
  assert_ok(plugin->ops->allocate(pool, 4096, HIPMM_ALIGNMENT, stream, &ptr));
  assert_ok(plugin->ops->deallocate(pool, ptr, 4096, HIPMM_ALIGNMENT, stream));
  plugin->ops->stream_retire(pool, stream);
  for (struct cache *cache = pool->caches.items; cache < pool->caches.items + pool->caches.count; cache++)
    cache->wants_heap = true; /* as after many waits */
  assert_ok(plugin->ops->allocate(pool, 8192, HIPMM_ALIGNMENT, stream, &ptr));
  assert_null(pool->arena.locals);
  assert_ok(plugin->ops->deallocate(pool, ptr, 8192, HIPMM_ALIGNMENT, stream));
  close_pool();
}

/* The first heap needs a table. */
static void shares_while_host_memory_is_short(void **state)
{
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  assert_ok(deallocate(allocate(4096), 4096));
  pool->caches.items[0].wants_heap = true; /* as after many waits */
  fake_fail_host_allocation(1);
  void *shared = allocate(8192);
  assert_non_null(shared);
  assert_int_equal(local_bytes(), 0);
  void *own = allocate(8192);
  assert_non_null(own);
  assert_true(local_bytes() > 0);
  assert_ok(deallocate(shared, 8192));
  assert_ok(deallocate(own, 8192));
  close_pool();
}

/* ---- What a heap does not serve ---- */

static void *served[2];

static void allocate_what_is_large_or_aligned(void)
{
  n_failed += plugin->ops->allocate(pool, 6000, 4096, NULL, &served[0]) != HIPMM_OK;
  served[1] = allocate(pool->most_local_bytes + 1);
}

/* Although it has memory at hand. */
static void leaves_the_large_and_the_aligned_to_the_pool(void **state)
{
  (void)state;
  for (enum growth growth = GROWTH_MAPPED; growth <= GROWTH_SEGMENTS; growth++) {
    open_pool(growth, UINT64_MAX);
    struct blocks *records = &pool->arena.heap.blocks;
    start_worker();
    have_it_wait();
    have_done(allocate_all);
    have_done(free_all);
    have_done(allocate_what_is_large_or_aligned);
    assert_int_equal(n_failed, 0);
    assert_int_equal((uintptr_t)served[0] % 4096, 0);
    for (int i = 0; i < 2; i++) assert_int_equal(block_of(records, block_at(records, served[i], 0))->arena, 0);
    assert_ok(deallocate(served[0], 6000));
    assert_ok(deallocate(served[1], pool->most_local_bytes + 1));
    end_worker();
    close_pool();
  }
}

static void allocate_beside_a_large_one(void)
{
  served[1] = allocate(7 * MIB / 2);
  served[0] = allocate(5000);
}

/* In a local arena a block shares its memory with others. */
static void leaves_what_other_processes_may_get_to_the_pool(void **state)
{
  void *ptr = NULL, *all[BLOCKS];
  unsigned n = 0;
  (void)state;
  open_pool(GROWTH_MAPPED, BLOCKS * MIB);
  pool->arena.backing.granules.chunks.can_export = true;
  start_worker();
  have_it_wait();
  have_done(allocate_beside_a_large_one);
  while ((all[n] = allocate(2 * MIB))) n++;
  assert_ok(deallocate(served[1], 7 * MIB / 2));
  assert_int_equal(pool_allocate_exportable(pool, 2 * MIB, HIPMM_ALIGNMENT, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_non_null(all[n++] = allocate(2 * MIB)); /* which the local arena has */
  while (n) assert_ok(deallocate(all[--n], 2 * MIB));
  assert_ok(deallocate(served[0], 5000));
  end_worker();
  close_pool();
}

/* The caller has come from below the pool. */
static void gives_nothing_to_a_caller_with_the_lock(void **state)
{
  void *ptr = NULL;
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_it_wait();
  have_done(allocate_all);
  have_done(free_all);
  uint64_t bytes = local_bytes();
  assert_true(bytes > 0);
  biased_lock_acquire(&pool->arena.lock);
  assert_int_equal(plugin->ops->allocate(pool, 64 * MIB, HIPMM_ALIGNMENT, NULL, &ptr), HIPMM_E_STATE);
  assert_int_equal(plugin->ops->trim(pool, 0), HIPMM_E_STATE);
  biased_lock_release(&pool->arena.lock);
  assert_null(ptr);
  assert_int_equal(local_bytes(), bytes);
  assert_ok(plugin->ops->trim(pool, 0));
  assert_int_equal(local_bytes(), 0);
  end_worker();
  close_pool();
}

/* ---- Caches of threads ---- */

static void allocate_and_free_small(void)
{
  void *ptr = allocate(1000);
  n_failed += !ptr || deallocate(ptr, 1000);
}

static void serves_from_a_cache_without_the_lock(void **state)
{
  (void)state;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_done(allocate_and_free_small); /* makes the cache */
  assert_true(is_done_without_the_lock(allocate_and_free_small));
  assert_int_equal(n_failed, 0);
  end_worker();
  close_pool();
}

static void free_one_on(hipmm_stream_t stream)
{
  void *ptr = NULL;
  n_failed += plugin->ops->allocate(pool, 256, HIPMM_ALIGNMENT, stream, &ptr) != HIPMM_OK;
  n_failed += plugin->ops->deallocate(pool, ptr, 256, HIPMM_ALIGNMENT, stream) != HIPMM_OK;
}

static void use_and_abandon_a_cache(void)
{
  free_one_on(NULL);
  caches_abandon(&pool->caches, thread_number());
}

static void takes_back_only_what_was_abandoned(void **state)
{
  (void)state;
  n_failed = 0;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  plugin->ops->stream_retain(pool, fake_stream(1));
  start_worker();
  free_one_on(NULL);
  have_done(use_and_abandon_a_cache);
  assert_int_equal(value("cached_bytes"), 512);
  free_one_on(fake_stream(1)); /* in a cache of its own, for which the abandoned one is taken */
  assert_int_equal(value("cached_bytes"), 512);
  assert_int_equal(pool->caches.count, 2);
  end_worker();
  assert_int_equal(n_failed, 0);
  assert_int_equal(value("cached_bytes"), 512);
  close_pool();
}

static uint64_t numbers[2];

static void use_a_stream_that_ends(void)
{
  numbers[0] = thread_number();
  plugin->ops->stream_retain(pool, fake_stream(1));
  free_one_on(fake_stream(1));
  plugin->ops->stream_retire(pool, fake_stream(1));
}

static void *use_another_stream(void *unused)
{
  numbers[1] = thread_number();
  if (numbers[1] % 256 != numbers[0] % 256) return unused; /* it has another place in the index */
  free_one_on(NULL);
  return &numbers[1];
}

/* The thread remembers it, and may use it without the lock. */
static void leaves_a_living_thread_the_cache_that_it_does_not_use(void **state)
{
  void *has_used = NULL;
  (void)state;
  n_failed = 0;
  open_pool(GROWTH_MAPPED, UINT64_MAX);
  start_worker();
  have_done(use_a_stream_that_ends);
  assert_int_equal(pool->caches.count, 1);
  for (int i = 0; i < 256 && !has_used; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, use_another_stream, NULL), 0);
    pthread_join(thread, &has_used);
  }
  assert_non_null(has_used);
  assert_int_equal(pool->caches.count, 2);
  assert_int_equal(n_failed, 0);
  end_worker();
  close_pool();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves_the_large_and_the_aligned_to_the_pool),
      cmocka_unit_test(leaves_what_other_processes_may_get_to_the_pool),
      cmocka_unit_test(gives_nothing_to_a_caller_with_the_lock),
      cmocka_unit_test(serves_from_a_cache_without_the_lock),
      cmocka_unit_test(takes_back_only_what_was_abandoned),
      cmocka_unit_test(leaves_a_living_thread_the_cache_that_it_does_not_use),
      cmocka_unit_test(shares_one_heap_among_threads_that_do_not_wait),
      cmocka_unit_test(serves_a_thread_that_has_waited_without_the_lock),
      cmocka_unit_test(has_the_blocks_of_all_heaps),
      cmocka_unit_test(waits_for_who_is_in_a_heap),
      cmocka_unit_test(gives_idle_memory_back_when_memory_is_short),
      cmocka_unit_test(gets_no_memory_at_the_resume_of_a_pool_for_what_is_idle),
      cmocka_unit_test(outlives_streams_and_threads),
      cmocka_unit_test(makes_no_heap_for_a_stream_that_has_ended),
      cmocka_unit_test(shares_while_host_memory_is_short),
      cmocka_unit_test(gives_back_what_no_stream_uses),
  };
  return cmocka_run_group_tests_name("heaps of threads", tests, NULL, NULL);
}
