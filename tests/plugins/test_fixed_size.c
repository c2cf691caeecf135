/* SPDX-License-Identifier: MIT */
/* Tests of fixed_size: its limits, reuse in the order of streams, growth, and trimming. */
#include "../support/stream_program.h"

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

static void takes_nothing_before_the_first_allocation(void **state)
{
  (void)state;
  fixture_start("'stack': ['fixed_size', 'device']");
  assert_int_equal(fixture_held_bytes(), 0);
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  assert_int_equal(fixture_held_bytes(), 0);
  void *ptr = fixture_allocate(MIB, NULL);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  fixture_free(ptr, MIB, NULL);
}

static void takes_blocks_at_once_if_asked_to(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '64KiB', 'blocks_to_preallocate': 200}, 'device']");
  assert_int_equal(fixture_held_bytes(), 200 * 64 * 1024);
  assert_int_equal(fixture_value("fixed_size", "free_count"), 200);
  assert_int_equal(fixture_value("fixed_size", "chunks"), 2);
}

static void says_that_it_cannot_have_that_much_at_once(void **state)
{
  needs_software();
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'fixed_size', 'blocks_to_preallocate': 400}, 'device']"),
                HIPMM_E_OUT_OF_MEMORY);
  assert_message("/stack/0/blocks_to_preallocate");
}

/* What it holds is told where memory is short, and of no other failure. */
static void leaves_other_failures_as_they_are(void **state)
{
  void *ptr;
  (void)state;
  needs_software();
  fixture_start("'stack': ['fixed_size', 'device']");
  fixture_fail_call("hipMalloc", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_null(strstr(hipmm_last_error_message(), "are held in"));
}

static void says_what_it_holds_when_there_is_no_more(void **state)
{
  void *blocks[3], *ptr = NULL;
  (void)state;
  fixture_start("'stack': ['fixed_size', {'type': 'limiting', 'limit': '3MiB'}, 'device']");
  for (int i = 0; i < 3; i++) blocks[i] = fixture_allocate(1000, NULL);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("limiting: cannot allocate 1 MiB: 3 MiB of the limit of 3 MiB are in use");
  assert_message("; fixed_size: cannot allocate 1000 bytes: 3 MiB are held in 3 blocks of 1 MiB, all in use, and the "
                 "upstream has no room for one more");
  for (int i = 0; i < 3; i++) fixture_free(blocks[i], 1000, NULL);
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

static void refuses_frees_that_are_wrong(void **state)
{
  char foreign;
  (void)state;
  fixture_start(small_blocks);
  char *ptr = fixture_allocate(700, NULL);
  assert_status(hipmm_deallocate(NULL, &foreign, 700, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 1, 700, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 1024, 700, NULL), HIPMM_E_POINTER); /* a free block */
  assert_status(hipmm_deallocate(NULL, ptr - 256, 700, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr + 64 * MIB, 700, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_SIZE);
  assert_message("was allocated with 700 bytes and cannot be freed with 1000");
  assert_int_equal(fixture_value("fixed_size", "live_count"), 1);
  fixture_free(ptr, 0, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, 700, NULL), HIPMM_E_POINTER);
  assert_message("freed before");
}

/* ---- Reuse ---- */

static void reuses_on_the_same_stream_without_a_call(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '64KiB'}, 'device']");
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retain(0, stream));
  void *first = fixture_allocate(1, stream);
  fixture_free(first, 1, stream);
  assert_reuses_without_a_call(100, stream);
  assert_ptr_equal(fixture_allocate(1, stream), first);
  fixture_free(first, 1, stream);
  fixture_drop_stream(stream);
}

/* Frees a block on `first` with work pending, then allocates it on `second`, whose bytes must be in the block at the
 * end. The chunk has one block: without reuse, the resource would grow. */
static void hand_over(hipmm_stream_t first, hipmm_stream_t second)
{
  unsigned char *ptr = fixture_allocate(4 * MIB, first);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, 4 * MIB, first), 0);
  fixture_free(ptr, 4 * MIB, first);
  unsigned char *again = fixture_allocate(4 * MIB, second);
  assert_ptr_equal(again, ptr);
  assert_int_equal(fixture_hip()->MemsetAsync(again, 2, 4 * MIB, second), 0);
  assert_true(fixture_holds(again, 2, 4 * MIB));
  fixture_free(again, 4 * MIB, second);
}

static void orders_streams_however_it_records(void **state)
{
  static const char *const records[] = {"auto", "lazy", "on_free"};
  char graph[200];
  (void)state;
  for (int i = 0; i < 3; i++) {
    snprintf(graph, sizeof graph, "'stack': [{'type': 'fixed_size', 'block_size': '4MiB', 'record': '%s'}, 'device']",
             records[i]);
    fixture_start_with("'scheduler': 'stepped', 'seed': 5", graph);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    for (int round = 0; round < 20; round++) {
      hand_over(first, second);
      hand_over(second, first);
    }
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    assert_ok(hipmm_finalize());
  }
}

static void waits_for_a_stream_and_not_for_the_device_where_it_may(void **state)
{
  needs_software();
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", "'stack': [{'type': 'fixed_size', 'block_size': '4MiB'}, 'device']");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  assert_ok(hipmm_stream_retain(0, first));
  void *ptr = fixture_allocate(MIB, first);
  assert_int_equal(fixture_hip()->MemsetAsync(ptr, 1, MIB, first), 0);
  fixture_free(ptr, MIB, first);
  software()->reset_calls();
  assert_ptr_equal(fixture_allocate(MIB, second), ptr);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 1);
  assert_int_equal(fixture_value("fixed_size", "stream_waits"), 1);
  fixture_free(ptr, MIB, second);
  assert_ok(hipmm_stream_retire(0, first));
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

static void never_uses_a_stream_that_may_be_gone(void **state)
{
  (void)state;
  assert_outlives_a_stream("'stack': [{'type': 'fixed_size', 'block_size': '4MiB'}, 'device']", MIB);
}

static void makes_blocks_of_a_retired_stream_anybodys(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4MiB'}, 'device']");
  hipmm_stream_t first = fixture_stream();
  void *ptr = fixture_allocate(MIB, first);
  fixture_free(ptr, MIB, first);
  assert_ok(hipmm_stream_retire(0, first));
  fixture_drop_stream(first);
  software()->reset_calls();
  assert_ptr_equal(fixture_allocate(MIB, NULL), ptr);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  fixture_free(ptr, MIB, NULL);
}

static void costs_the_same_however_many_streams_there_are(void **state)
{
  (void)state;
  assert_cost_is_independent_of_streams(small_blocks, 1000);
}

/* ---- Giving back ---- */

struct seen {
  const char *end;
  size_t live_bytes, n[5];
  hipmm_stream_t live_on;
  bool is_disordered;
};

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct seen *seen = closure;
  seen->is_disordered |= (const char *)extent->ptr < seen->end || extent->state > HIPMM_EXTENT_CACHED;
  seen->end = (const char *)extent->ptr + extent->bytes;
  seen->n[extent->state % 5]++;
  if (extent->state != HIPMM_EXTENT_LIVE) return;
  seen->live_bytes += extent->bytes;
  seen->live_on = extent->stream;
}

static void shows_every_block(void **state)
{
  void *blocks[6];
  struct seen seen = {0};
  (void)state;
  fixture_start(small_blocks);
  hipmm_stream_t stream = fixture_stream();
  for (int i = 0; i < 6; i++) blocks[i] = fixture_allocate(700 + (size_t)i, stream);
  for (int i = 0; i < 5; i++) fixture_free(blocks[i], 0, i == 2 ? NULL : stream);
  const struct hipmm_resource *resource = fixture_resource("fixed_size");
  assert_ok(resource->ops->visit(resource->self, see, &seen));
  assert_false(seen.is_disordered);
  assert_int_equal(seen.n[HIPMM_EXTENT_LIVE], 1);
  assert_int_equal(seen.live_bytes, 705);
  assert_ptr_equal(seen.live_on, stream);
  assert_int_equal(seen.n[HIPMM_EXTENT_PENDING], fixture_value("fixed_size", "free_count"));
  assert_ok(hipmm_stream_retire(0, stream));
  fixture_drop_stream(stream);
  memset(&seen, 0, sizeof seen);
  assert_ok(resource->ops->visit(resource->self, see, &seen));
  assert_int_equal(seen.n[HIPMM_EXTENT_PENDING], 1); /* that of the default stream */
  fixture_free(blocks[5], 705, NULL);
}

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

static void gives_idle_chunks_back_when_trimmed(void **state)
{
  void *blocks[64];
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '1MiB', 'blocks_per_chunk': 2}, 'device']");
  for (int i = 0; i < 64; i++) blocks[i] = fixture_allocate(MIB, NULL);
  assert_int_equal(fixture_held_bytes(), 64 * MIB);
  for (int i = 1; i < 64; i++) fixture_free(blocks[i], MIB, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 10 * MIB));
  assert_int_equal(fixture_held_bytes(), 10 * MIB);
  assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  assert_int_equal(fixture_value("fixed_size", "free_count"), 1);
  for (int i = 1; i < 64; i++) blocks[i] = fixture_allocate(MIB, NULL);
  assert_int_equal(fixture_held_bytes(), 64 * MIB);
  for (int i = 0; i < 64; i++) fixture_free(blocks[i], MIB, NULL);
  assert_int_equal(fixture_value("fixed_size", "peak_reserved_bytes"), 64 * MIB);
}

static void keeps_a_chunk_that_the_upstream_does_not_take(void **state)
{
  needs_software();
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '1MiB'}, 'device']");
  void *ptr = fixture_allocate(MIB, NULL);
  fixture_free(ptr, MIB, NULL);
  fixture_fail_call("hipFree", 1, 0);
  assert_status(hipmm_resource_trim(fixture_resource("fixed_size"), 0), HIPMM_E_HIP);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  assert_int_equal(fixture_value("fixed_size", "free_count"), 2);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  assert_int_equal(fixture_held_bytes(), 2 * MIB); /* its blocks are in use again */
  assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

static void gives_everything_back_at_the_end(void **state)
{
  (void)state;
  fixture_start(small_blocks);
  for (int i = 0; i < 100; i++) fixture_allocate(1, NULL);
  assert_ok(hipmm_finalize());
  assert_int_equal(live_on_all_devices(), 0);
}

/* ---- Everything at once ---- */

static void runs_random_programs(void **state)
{
  static const char *const schedulers[] = {"'scheduler': 'stepped', 'seed': 7", "'scheduler': 'threads'"};
  static const char *const records[] = {"auto", "on_free", "lazy"};
  char graph[200];
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++) {
    const struct stream_program program = {.seed = seed,
                                           .steps = 1500,
                                           .n_streams = 1 + (unsigned)seed % 5,
                                           .most_live = 60,
                                           .most_bytes = 4096,
                                           .destroys_streams = seed % 3 != 2,
                                           .ends_with_no_live = seed % 2};
    snprintf(graph, sizeof graph,
             "'stack': [{'type': 'fixed_size', 'block_size': '4KiB', 'blocks_per_chunk': 7, 'record': '%s'}, 'device']",
             records[seed % 3]);
    fixture_start_with(schedulers[seed % 2], graph);
    stream_program_run(&program);
    assert_ok(hipmm_finalize());
    assert_int_equal(live_on_all_devices(), 0);
  }
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

static void takes_a_block_back_once_however_many_free_it(void **state)
{
  enum { BLOCKS = 20000 };
  static void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': 512}, 'device']");
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(500, NULL);
  fixture_free_in_rivalry(blocks, BLOCKS, 500);
  assert_int_equal(fixture_value("fixed_size", "live_count"), 0);
  assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* Marks its blocks on a stream of its own: no other thread may have them meanwhile. */
static void mark_and_look(int *failures)
{
  enum { HELD = 20 };
  void *blocks[HELD];
  unsigned char first = 0;
  hipmm_stream_t stream;
  if (fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING)) return;
  *failures += hipmm_stream_retain(0, stream) != HIPMM_OK;
  for (unsigned round = 0; round < ROUNDS / 10; round++) {
    for (unsigned i = 0; i < HELD; i++) {
      void *ptr = NULL;
      *failures += hipmm_allocate(NULL, 1000, stream, &ptr) != HIPMM_OK;
      blocks[i] = ptr;
      *failures += fixture_hip()->MemsetAsync(ptr, (int)round, 1000, stream) != 0;
    }
    for (unsigned i = 0; i < HELD; i++) {
      *failures += fixture_hip()->StreamSynchronize(stream) != 0;
      *failures += fixture_hip()->Memcpy(&first, blocks[i], 1, 2) != 0 || first != (round & 255);
      *failures += hipmm_deallocate(NULL, blocks[i], 1000, stream) != HIPMM_OK;
    }
  }
  *failures += hipmm_stream_retire(0, stream) != HIPMM_OK;
  *failures += fixture_hip()->StreamDestroy(stream) != 0;
}

static void serves_threads_on_streams_of_their_own_while_it_is_trimmed(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4KiB', 'blocks_per_chunk': 8}, 'device']");
  fixture_start_threads(THREADS, mark_and_look);
  for (int i = 0; i < 50; i++) {
    struct seen seen = {0};
    const struct hipmm_resource *resource = fixture_resource("fixed_size");
    assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
    assert_ok(resource->ops->visit(resource->self, see, &seen));
    assert_false(seen.is_disordered);
  }
  fixture_join_threads();
  assert_int_equal(fixture_value("fixed_size", "live_count"), 0);
  assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

static void tells_what_it_takes_itself(void **state)
{
  enum { BLOCKS = 1000 };
  static void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': '4KiB'}, 'device']");
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(4096, NULL);
  int64_t bytes = fixture_value("fixed_size", "metadata_bytes");
  assert_in_range(bytes, 24 * BLOCKS, 100 * BLOCKS);
  for (int round = 0; round < 3; round++) { /* and no more when the same comes again */
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 4096, NULL);
    assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(4096, NULL);
  }
  assert_int_equal(fixture_value("fixed_size", "metadata_bytes"), bytes);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 4096, NULL);
}

static void gives_records_back_when_trimmed(void **state)
{
  enum { BLOCKS = 100000 };
  static void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'fixed_size', 'block_size': 512}, 'device']");
  int64_t empty_bytes = fixture_value("fixed_size", "metadata_bytes");
  for (int time = 0; time < 2; time++) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(500, NULL);
    int64_t full_bytes = fixture_value("fixed_size", "metadata_bytes") - empty_bytes;
    assert_in_range(full_bytes, 24 * BLOCKS, 50 * BLOCKS);
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 500, NULL);
    assert_ok(hipmm_resource_trim(fixture_resource("fixed_size"), 0));
    assert_in_range(fixture_value("fixed_size", "metadata_bytes") - empty_bytes, 1, 65536);
    assert_status(hipmm_deallocate(NULL, blocks[BLOCKS / 2], 500, NULL), HIPMM_E_POINTER);
  }
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

static void use_each_op(void)
{
  struct hipmm_resource *resource = NULL;
  hipmm_stream_t stream = NULL;
  void *first = NULL, *second = NULL;
  if (hipmm_resource_get_for_device(0, &resource)) return;
  fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  if (!hipmm_allocate(resource, MIB, stream, &first)) hipmm_deallocate(resource, first, MIB, stream);
  if (!hipmm_allocate(resource, MIB, NULL, &second)) hipmm_deallocate(resource, second, MIB, NULL);
  hipmm_resource_trim(resource, 0);
  if (!hipmm_allocate(resource, MIB, stream, &first)) hipmm_deallocate(resource, first, MIB, stream);
  hipmm_stream_retire(0, stream);
  if (stream) fixture_hip()->StreamDestroy(stream);
  hipmm_resource_release(resource);
}

static void loses_nothing_whatever_call_fails(void **state)
{
  (void)state;
  unsigned failed = fixture_fail_each_call(
      "",
      "'stack': [{'type': 'fixed_size', 'block_size': '4MiB', 'record': 'on_free', 'blocks_to_preallocate': 1, "
      "'blocks_per_chunk': 1}, 'device']",
      use_each_op);
  assert_true(failed > 10);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(rounds_blocks_up_and_refuses_larger_requests),
      TEST(takes_nothing_before_the_first_allocation),
      TEST(leaves_other_failures_as_they_are),
      TEST(takes_blocks_at_once_if_asked_to),
      TEST(says_that_it_cannot_have_that_much_at_once),
      TEST(says_what_it_holds_when_there_is_no_more),
      TEST(grows_with_use_up_to_its_chunks),
      TEST(uses_the_last_of_its_upstream),
      TEST(refuses_frees_that_are_wrong),
      TEST(reuses_on_the_same_stream_without_a_call),
      TEST(orders_streams_however_it_records),
      TEST(waits_for_a_stream_and_not_for_the_device_where_it_may),
      TEST(never_uses_a_stream_that_may_be_gone),
      TEST(makes_blocks_of_a_retired_stream_anybodys),
      TEST(shows_every_block),
      TEST(shows_no_block_of_zero_bytes),
      TEST(gives_idle_chunks_back_when_trimmed),
      TEST(keeps_a_chunk_that_the_upstream_does_not_take),
      TEST(gives_everything_back_at_the_end),
      TEST(runs_random_programs),
      TEST(serves_threads_each_on_its_default_stream),
      TEST(takes_a_block_back_once_however_many_free_it),
      TEST(serves_threads_on_streams_of_their_own_while_it_is_trimmed),
      TEST(tells_what_it_takes_itself),
      TEST(gives_records_back_when_trimmed),
      TEST(grows_again_as_fast_as_at_first),
      TEST(costs_the_same_however_many_streams_there_are),
      TEST(loses_nothing_whatever_call_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
