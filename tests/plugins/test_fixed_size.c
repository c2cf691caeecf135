/* SPDX-License-Identifier: MIT */
/* Tests of fixed_size: its limits, its growth, and what its lists show and cost. test_sub_allocators.c and
 * test_stream_reuse.c have what it shares with the other sub-allocators. */
#include "../support/fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

static const char small_blocks[] =
    "'stack': [{'type': 'fixed_size', 'block_size': 1000, 'blocks_per_chunk': 4}, 'device']";

/* ---- What it gives ---- */

static void rounds_blocks_up_and_refuses_larger_requests(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start(small_blocks);
  void *first = fixture_allocate(1, NULL), *second = fixture_allocate(1024, NULL);
  assert_int_equal((char *)second - (char *)first, 1024);
  assert_status(hipmm_allocate(NULL, 1025, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("a block has 1 KiB; raise block_size");
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &ptr), HIPMM_E_LIMIT);
  assert_status(hipmm_allocate_aligned(NULL, 8, 512, NULL, &ptr), HIPMM_E_ARGUMENT);
  fixture_free(first, 1, NULL);
  fixture_free(second, 1024, NULL);
}

static void takes_blocks_at_once_if_asked_to(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '64KiB', 'blocks_to_preallocate': 200}, 'device']");
  assert_int_equal(fixture_held_bytes(), 200 * 64 * 1024);
  assert_int_equal(fixture_value("fixed_size", "free_count"), 200);
  assert_int_equal(fixture_value("fixed_size", "chunks"), 2);
}

static void grows_with_use_up_to_its_chunks(void **state)
{
  enum { BLOCKS = 200 };
  void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '64KiB', 'blocks_per_chunk': 64}, 'device']");
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(65536, NULL);
  assert_true(fixture_held_bytes() <= BLOCKS * 65536 * 3 / 2);
  assert_true(fixture_value("fixed_size", "chunks") <= 6);
  assert_int_equal(fixture_value("fixed_size", "live_count"), BLOCKS);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 65536, NULL);
  assert_int_equal(fixture_value("fixed_size", "live_bytes"), 0);
}

static void uses_the_last_of_its_upstream(void **state)
{
  enum { MOST = 128 };
  void *blocks[MOST];
  size_t n = 0;
  (void)state;
  fixture_start(
      "'stack': [{'type': 'fixed_size', 'block_size': '4MiB'}, {'type': 'limiting', 'limit': '65MiB'}, 'device']");
  while (n < MOST && !hipmm_allocate(NULL, 1, NULL, &blocks[n])) n++;
  assert_int_equal(n, 16); /* all that fit, although a chunk of the usual size did not */
  while (n) fixture_free(blocks[--n], 1, NULL);
}

/* ---- Looking ---- */

/* A block that another thread frees during the visit, after the lists were looked at. */
static struct {
  void *block;
  sem_t is_ready, may_free, is_free;
  int failures, shown;
  struct hipmm_extent extent;
} freed_meanwhile;

/* Frees through the list of the stream, which needs no lock once the thread has used it. */
static void *free_meanwhile(void *unused)
{
  void *ptr = NULL;
  (void)unused;
  freed_meanwhile.failures += hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 0, NULL);
  sem_post(&freed_meanwhile.is_ready);
  sem_wait(&freed_meanwhile.may_free);
  freed_meanwhile.failures += hipmm_deallocate(NULL, freed_meanwhile.block, 0, NULL) != HIPMM_OK;
  sem_post(&freed_meanwhile.is_free);
  return NULL;
}

static void see_and_free(void *unused, const struct hipmm_extent *extent)
{
  (void)unused;
  if (!freed_meanwhile.shown++) {
    sem_post(&freed_meanwhile.may_free);
    sem_wait(&freed_meanwhile.is_free);
  }
  if (extent->ptr == freed_meanwhile.block) freed_meanwhile.extent = *extent;
}

static void shows_no_block_of_zero_bytes(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4KiB', 'record': 'lazy'}, 'device']");
  struct hipmm_resource *top = fixture_resource("fixed_size");
  void *blocks[2] = {fixture_allocate(1000, NULL), fixture_allocate(1000, NULL)};
  pthread_t thread;
  memset(&freed_meanwhile, 0, sizeof freed_meanwhile);
  sem_init(&freed_meanwhile.is_ready, 0, 0);
  sem_init(&freed_meanwhile.may_free, 0, 0);
  sem_init(&freed_meanwhile.is_free, 0, 0);
  freed_meanwhile.block = blocks[blocks[1] > blocks[0]]; /* not the first that is shown */
  assert_int_equal(pthread_create(&thread, NULL, free_meanwhile, NULL), 0);
  sem_wait(&freed_meanwhile.is_ready);
  assert_ok(top->ops->visit(top->self, see_and_free, NULL));
  pthread_join(thread, NULL);
  assert_int_equal(freed_meanwhile.failures, 0);
  assert_int_equal(freed_meanwhile.extent.state, HIPMM_EXTENT_PENDING);
  assert_int_equal(freed_meanwhile.extent.bytes, 4096);
  fixture_free(blocks[blocks[1] < blocks[0]], 0, NULL);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 3000 };

static void allocate_and_free(int *failures)
{
  for (int i = 0; i < ROUNDS; i++) {
    void *ptr[3];
    for (int k = 0; k < 3; k++) *failures += hipmm_allocate(NULL, 1000, (hipmm_stream_t)2, &ptr[k]) != HIPMM_OK;
    for (int k = 0; k < 3; k++) *failures += hipmm_deallocate(NULL, ptr[k], 1000, (hipmm_stream_t)2) != HIPMM_OK;
  }
}

static void serves_threads_each_on_its_default_stream(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4KiB', 'blocks_per_chunk': 8}, 'device']");
  fixture_run_threads(THREADS, allocate_and_free);
  assert_int_equal(fixture_value("fixed_size", "live_count"), 0);
  assert_true(fixture_value("fixed_size", "free_count") <= 6 * THREADS + 8);
}

static void *chunk_blocks[30000];

static void allocate_chunk_blocks(void)
{
  for (size_t i = 0; i < sizeof chunk_blocks / sizeof *chunk_blocks; i++)
    chunk_blocks[i] = fixture_allocate(4096, NULL);
}

static void free_chunk_blocks(void)
{
  for (size_t i = 0; i < sizeof chunk_blocks / sizeof *chunk_blocks; i++) fixture_free(chunk_blocks[i], 4096, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
}

/* However many chunks there were: a chunk does not search the places of all of them for its own. */
static void grows_again_as_fast_as_at_first(void **state)
{
  (void)state;
  needs_software();
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4KiB', 'blocks_per_chunk': 1}, 'device']");
  uint64_t first = least_time(1, allocate_chunk_blocks);
  int64_t metadata_bytes = fixture_value("fixed_size", "metadata_bytes");
  free_chunk_blocks();
  uint64_t again = least_time(1, allocate_chunk_blocks);
  assert_in_range(again, 0, first + first / 2); /* it makes no records, and takes a third */
  assert_int_equal(fixture_value("fixed_size", "metadata_bytes"), metadata_bytes);
  free_chunk_blocks();
}

/* ---- Another stream's blocks ---- */

static hipmm_stream_t other;

static int is_never_ready(hipmm_hip_event_t event)
{
  (void)event;
  return HIPMM_HIP_ERROR_NOT_READY;
}

static void take_from_the_default_stream(void)
{
  void *taken[500];
  for (int i = 0; i < 500; i++) taken[i] = fixture_allocate(4096, other);
  for (int i = 0; i < 500; i++) fixture_free(taken[i], 4096, NULL);
}

/* A search does not look at each block of a stream whose work goes on. */
static void takes_one_of_many_blocks_as_fast_as_one_of_few(void **state)
{
  uint64_t times[2];
  (void)state;
  needs_software();
  for (int i = 0; i < 2; i++) {
    enum { FEW = 500 };
    size_t n = i ? sizeof chunk_blocks / sizeof *chunk_blocks : FEW;
    fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4KiB'}, 'device']");
    other = fixture_stream();
    for (size_t k = 0; k < n; k++) chunk_blocks[k] = fixture_allocate(4096, NULL);
    for (size_t k = 0; k < n; k++) fixture_free(chunk_blocks[k], 4096, NULL);
    fixture_lend_hip()->EventQuery = is_never_ready;
    times[i] = least_time(3, take_from_the_default_stream);
    assert_int_equal(fixture_value("fixed_size", "live_count"), 0);
    fixture_take_hip_back();
    fixture_drop_stream(other);
    assert_ok(hipmm_finalize());
  }
  assert_in_range(times[1], 0, 5 * times[0]);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(rounds_blocks_up_and_refuses_larger_requests),
      TEST(takes_blocks_at_once_if_asked_to),
      TEST(grows_with_use_up_to_its_chunks),
      TEST(uses_the_last_of_its_upstream),
      TEST(shows_no_block_of_zero_bytes),
      TEST(serves_threads_each_on_its_default_stream),
      TEST(grows_again_as_fast_as_at_first),
      TEST(takes_one_of_many_blocks_as_fast_as_one_of_few),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
