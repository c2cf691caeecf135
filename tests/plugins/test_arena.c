/* SPDX-License-Identifier: MIT */
/* Tests of arena: memory that moves between arenas, and the steps before a failure. test_sub_allocators.c and
 * test_stream_reuse.c have what it shares with the other sub-allocators; tests/unit/pool/test_stress runs it in threads. */
#include "../../plugins/arena/arena.h"
#include "../support/stream_program.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char plain[] = "'stack': ['arena', 'device']";

/* ---- What it serves and refuses ---- */

static void grows_beyond_what_it_began_with(void **state)
{
  enum { BLOCKS = 40 };
  void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '4MiB'}, 'device']");
  assert_int_equal(fixture_held_bytes(), 4 * MIB);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(700000, NULL);
  assert_true(fixture_held_bytes() > 27 * MIB);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 700000, NULL);
  assert_int_equal(fixture_value("arena", "reserved_bytes"), fixture_held_bytes());
}

static void says_what_is_wrong_with_its_options(void **state)
{
  needs_software();
  static const struct fixture_refusal refusals[] = {
      {"'arena_size': 1000", "/stack/0/arena_size"},
      {"'arena_size': '1023KiB'", "less than a superblock"},
      {"'arena_size': '8MiB', 'maximum_size': '7MiB'", "/stack/0/maximum_size"},
      {"'initial_size': '8MiB'", "unknown option"},
      {"'dump_log_on_failure': 'yes'", "/stack/0/dump_log_on_failure"},
      {"'record': 'never'", "/stack/0/record"},
  };
  (void)state;
  fixture_refuses("arena", refusals, sizeof refusals / sizeof *refusals);
}

static void refuses_what_cannot_be_set_while_in_use(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '2MiB', 'maximum_size': '4MiB'}, 'device']");
  assert_status(hipmm_set("devices/0/arena/maximum_size", "1MiB"), HIPMM_E_CONFIG); /* below arena_size */
  assert_status(hipmm_set("devices/0/arena/arena_size", "1MiB"), HIPMM_E_NOT_SUPPORTED);
}

/* ---- Reuse in the order of streams ---- */

/* Large memory of another stream; and small blocks of an arena's own that another stream freed. */
static void uses_what_has_passed_and_waits_for_nothing(void **state)
{
  static const size_t sizes[] = {4 * MIB, 1000};
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *blocks[5000], *ptr;
    int n = 0;
    fixture_start("'stack': [{'type': 'arena', 'maximum_size': '4MiB', 'record': 'lazy'}, 'device']");
    hipmm_stream_t own = fixture_stream(), user = fixture_stream();
    while (n < 5000 && !hipmm_allocate(NULL, sizes[i], own, &ptr)) blocks[n++] = ptr;
    assert_int_equal(fixture_hip()->StreamSynchronize(own), 0);
    int64_t waits = fixture_value("arena", "stream_waits");
    for (int k = 0; k < n; k++) fixture_free(blocks[k], sizes[i], user);
    assert_int_equal(fixture_hip()->StreamSynchronize(user), 0);
    fixture_free(fixture_allocate(sizes[i], own), sizes[i], own);
    assert_int_equal(fixture_value("arena", "stream_waits"), waits);
    fixture_drop_stream(own);
    fixture_drop_stream(user);
    assert_ok(hipmm_finalize());
  }
}

static void makes_memory_of_a_retired_stream_anybodys(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'maximum_size': '4MiB'}, 'device']");
  hipmm_stream_t first = fixture_stream();
  assert_ok(hipmm_stream_retain(0, first));
  void *kept = fixture_allocate(1000, first);
  fixture_free(fixture_allocate(MIB, first), 0, first);
  fixture_free(fixture_allocate(2 * MIB, first), 0, first);
  assert_ok(hipmm_stream_retire(0, first));
  fixture_drop_stream(first);
  software()->reset_calls();
  fixture_free(fixture_allocate(2 * MIB, NULL), 0, NULL);
  assert_int_equal(fixture_calls_that_wait() + software()->calls("hipStreamWaitEvent"), 0);
  fixture_free(fixture_allocate(1000, NULL), 0, NULL); /* from the arena that waits for a stream */
  assert_int_equal(fixture_value("arena", "arenas"), 1);
  fixture_free(kept, 1000, NULL);
}

/* ---- Before it fails ---- */

/* First all memory in small blocks, then all of it in one block: RMM's pool cannot do that below its maximum. */
static void becomes_one_block_again(void **state)
{
  enum { BLOCKS = 8000 };
  static void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'maximum_size': '8MiB'}, 'device']");
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(1000, NULL);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i * 7 % BLOCKS], 1000, NULL);
  void *ptr = fixture_allocate(8 * MIB, NULL);
  assert_int_equal(fixture_value("arena", "collections"), 1);
  assert_int_equal(fixture_value("arena", "superblocks"), 0);
  assert_int_equal(fixture_peak_held_bytes(), 8 * MIB);
  fixture_free(ptr, 8 * MIB, NULL);
}

/* A stream without memory gets a block in the superblock of another stream. */
static void takes_a_block_of_another_arena_before_it_fails(void **state)
{
  void *blocks[2000], *none;
  size_t n = 0;
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", "'stack': [{'type': 'arena', 'maximum_size': '1MiB'}, 'device']");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  void *kept = fixture_allocate(1000, first);
  while (n < 2000 && !hipmm_allocate(NULL, 1000, second, &blocks[n])) n++;
  assert_int_equal(n, 1023); /* to the last unit */
  assert_status(hipmm_allocate(NULL, 1, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 1 byte: 1 MiB are held");
  for (size_t i = 0; i < n; i++) fixture_free(blocks[i], 1000, i % 2 ? first : second);
  fixture_free(kept, 0, NULL);
  assert_int_equal(fixture_value("arena", "live_count"), 0);
  fixture_free(fixture_allocate(MIB, NULL), 0, NULL);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

/* What another thread frees after the allocation has waited for the device. */
static struct {
  void *block;
  hipmm_stream_t stream;
  int waits, failures;
} meanwhile;

static void *free_meanwhile(void *unused)
{
  (void)unused;
  meanwhile.failures += fixture_usual_hip()->MemsetAsync(meanwhile.block, 1, 1000, meanwhile.stream) != 0;
  meanwhile.failures += hipmm_deallocate(NULL, meanwhile.block, 1000, meanwhile.stream) != HIPMM_OK;
  return NULL;
}

static int wait_and_free(void)
{
  pthread_t thread;
  int code = fixture_usual_hip()->DeviceSynchronize();
  if (++meanwhile.waits == 2 && !pthread_create(&thread, NULL, free_meanwhile, NULL)) pthread_join(thread, NULL);
  return code;
}

static void waits_for_what_another_arena_got_meanwhile(void **state)
{
  void *blocks[2000], *ptr;
  size_t n = 0;
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped'",
                     "'stack': [{'type': 'arena', 'maximum_size': '1MiB', 'record': 'lazy'}, 'device']");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  while (n < 2000 && !hipmm_allocate(NULL, 1000, first, &blocks[n])) n++;
  memset(&meanwhile, 0, sizeof meanwhile);
  meanwhile.block = blocks[n / 2];
  meanwhile.stream = first;
  fixture_lend_hip()->DeviceSynchronize = wait_and_free;
  assert_ok(hipmm_allocate(NULL, 1000, second, &ptr));
  fixture_take_hip_back();
  assert_ptr_equal(ptr, blocks[n / 2]);
  assert_true(meanwhile.waits > 1);
  assert_int_equal(meanwhile.failures, 0);
  assert_int_equal(software()->pending(), 0);
  for (size_t i = 0; i < n; i++) fixture_free(blocks[i], 1000, i == n / 2 ? second : first);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

static void exchanges_small_chunks_for_a_large_one(void **state)
{
  void *blocks[4];
  (void)state;
  fixture_start("'stack': ['arena', {'type': 'limiting', 'limit': '8MiB'}, 'device']");
  for (int i = 0; i < 4; i++) blocks[i] = fixture_allocate(2 * MIB, NULL);
  assert_int_equal(fixture_value("arena", "chunks"), 4);
  for (int i = 0; i < 4; i++) fixture_free(blocks[i], 2 * MIB, NULL);
  fixture_free(fixture_allocate(7 * MIB, NULL), 7 * MIB, NULL);
  assert_int_equal(fixture_value("arena", "chunks"), 1);
}

static int compare_addresses(const void *a, const void *b)
{
  char *const *first = a, *const *second = b;
  return (*first > *second) - (*first < *second);
}

/* Most of the memory is idle, and a part of each superblock is in use. */
static void serves_a_large_block_from_what_is_idle_in_superblocks(void **state)
{
  enum { BLOCKS = 512, BYTES = 64 << 10, EACH = 24, LARGE_BYTES = (EACH - 4) * BYTES };
  void *blocks[BLOCKS];
  int n = 0;
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '32MiB', 'maximum_size': '32MiB'}, 'device']");
  while (n < BLOCKS && !hipmm_allocate(NULL, BYTES, NULL, &blocks[n])) n++;
  assert_int_equal(n, BLOCKS);
  qsort(blocks, BLOCKS, sizeof *blocks, compare_addresses);
  for (int i = 0; i < BLOCKS; i++)
    if (i % EACH) fixture_free(blocks[i], BYTES, NULL);
  void *large = fixture_allocate(LARGE_BYTES, NULL);
  fixture_fill(large, 0x5a, LARGE_BYTES);
  assert_true(fixture_holds(large, 0x5a, LARGE_BYTES));
  assert_int_equal(fixture_value("arena", "live_bytes"), (BLOCKS + EACH - 1) / EACH * BYTES + LARGE_BYTES);
  fixture_free(large, LARGE_BYTES, NULL);
  for (int i = 0; i < BLOCKS; i += EACH) fixture_free(blocks[i], BYTES, NULL);
  fixture_free(fixture_allocate(32 * MIB, NULL), 32 * MIB, NULL);
}

/* Both streams may use both blocks, and one is the better fit. */
static void takes_the_smaller_of_two_free_blocks(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '32MiB', 'maximum_size': '32MiB'}, 'device']");
  hipmm_stream_t stream = fixture_stream();
  void *larger = fixture_allocate(6 * MIB, stream), *fences[2];
  fences[0] = fixture_allocate(2 * MIB, stream);
  void *smaller = fixture_allocate(3 * MIB, stream);
  fences[1] = fixture_allocate(2 * MIB, stream);
  fixture_free(larger, 6 * MIB, stream);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_ok(hipmm_resource_trim(fixture_resource("arena"), 32 * MIB)); /* ready for every stream */
  fixture_free(smaller, 3 * MIB, stream);
  assert_ptr_equal(fixture_allocate(3 * MIB, stream), smaller);
  fixture_free(smaller, 3 * MIB, stream);
  for (int i = 0; i < 2; i++) fixture_free(fences[i], 2 * MIB, stream);
  fixture_drop_stream(stream);
}

/* An arena of 16 MiB, with each way to record, over work that is done in an order of three. */
enum { STEPPED_ROWS = 3 * 3 };

static void start_stepped(int row)
{
  static const char *const records[] = {"lazy", "on_free", "auto"};
  char runtime[100], graph[200];
  snprintf(runtime, sizeof runtime, "'scheduler': 'stepped', 'seed': %d", 1 + row / 3);
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'arena', 'arena_size': '16MiB', 'maximum_size': '16MiB', 'record': '%s'}, 'device']",
           records[row % 3]);
  fixture_start_with(runtime, graph);
}

/* What an arena of a stream gives back is still in use by that stream's work. */
static void orders_the_superblocks_that_a_stream_gives_back(void **state)
{
  enum { BLOCKS = 240, BYTES = 64 << 10, LARGE_BYTES = 8 << 20 };
  void *blocks[BLOCKS];
  (void)state;
  for (int row = 0; row < STEPPED_ROWS; row++) {
    start_stepped(row);
    hipmm_stream_t first = fixture_stream(), second = fixture_stream();
    assert_ok(hipmm_stream_retain(0, first));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(BYTES, first);
    for (int i = 0; i < BLOCKS; i++) assert_int_equal(fixture_hip()->MemsetAsync(blocks[i], 1, BYTES, first), 0);
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], BYTES, first);
    void *large = fixture_allocate(LARGE_BYTES, second);
    assert_int_equal(fixture_hip()->MemsetAsync(large, 2, LARGE_BYTES, second), 0);
    assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
    assert_true(fixture_holds(large, 2, LARGE_BYTES));
    fixture_free(large, LARGE_BYTES, second);
    assert_ok(hipmm_stream_retire(0, first));
    fixture_drop_stream(first);
    fixture_drop_stream(second);
    assert_ok(hipmm_finalize());
  }
}

/* What was freed on another stream, too, once the arena's stream has waited for it. */
static void orders_what_a_stream_gives_back_after_it_has_waited(void **state)
{
  enum { BLOCKS = 256, BYTES = 64 << 10, LARGE_BYTES = 8 << 20 };
  void *blocks[BLOCKS];
  (void)state;
  for (int row = 0; row < STEPPED_ROWS; row++) {
    start_stepped(row);
    hipmm_stream_t streams[3];
    for (int i = 0; i < 3; i++) streams[i] = fixture_stream();
    for (int i = 0; i < 2; i++) assert_ok(hipmm_stream_retain(0, streams[i]));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(BYTES, streams[0]);
    for (int i = 0; i < BLOCKS; i++) assert_int_equal(fixture_hip()->MemsetAsync(blocks[i], 1, BYTES, streams[1]), 0);
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], BYTES, streams[1]);
    void *small = fixture_allocate(100, streams[0]);
    void *large = fixture_allocate(LARGE_BYTES, streams[2]);
    assert_int_equal(fixture_hip()->MemsetAsync(large, 2, LARGE_BYTES, streams[2]), 0);
    assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
    assert_true(fixture_holds(large, 2, LARGE_BYTES));
    fixture_free(small, 100, streams[0]);
    fixture_free(large, LARGE_BYTES, streams[2]);
    for (int i = 0; i < 3; i++) fixture_drop_stream(streams[i]);
    assert_ok(hipmm_finalize());
  }
}

/* A segment that the work of another stream still uses makes room, and no arena has to give back what it has. */
static void waits_for_a_segment_to_release(void **state)
{
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", "'stack': [{'type': 'arena', 'maximum_size': '16MiB'}, 'device']");
  hipmm_stream_t stream = fixture_stream();
  void *first = fixture_allocate(8 * MIB, stream), *fence = fixture_allocate(4 * MIB, stream);
  assert_int_equal(fixture_hip()->MemsetAsync(first, 1, 8 * MIB, stream), 0);
  fixture_free(first, 8 * MIB, stream);
  void *larger = fixture_allocate(10 * MIB, NULL);
  assert_int_equal(fixture_value("arena", "collections"), 0);
  fixture_free(larger, 10 * MIB, NULL);
  fixture_free(fence, 4 * MIB, stream);
  fixture_drop_stream(stream);
}

/* One after the other goes to another stream, which waits for each. */
static void lets_another_stream_have_each_of_several_free_blocks(void **state)
{
  enum { BLOCKS = 4 };
  void *blocks[BLOCKS], *fences[BLOCKS];
  (void)state;
  fixture_start_with("'scheduler': 'stepped'",
                     "'stack': [{'type': 'arena', 'arena_size': '20MiB', 'maximum_size': '20MiB'}, 'device']");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  assert_ok(hipmm_stream_retain(0, first));
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = fixture_allocate(3 * MIB, first);
    fences[i] = fixture_allocate(2 * MIB, second);
  }
  for (int i = 0; i < BLOCKS; i++) {
    assert_int_equal(fixture_hip()->MemsetAsync(blocks[i], 1, 3 * MIB, first), 0);
    fixture_free(blocks[i], 3 * MIB, first);
  }
  software()->reset_calls();
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(3 * MIB, second);
  assert_int_equal(fixture_calls_that_wait(), 0);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 3 * MIB, second);
  for (int i = 0; i < BLOCKS; i++) fixture_free(fences[i], 2 * MIB, second);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

/* Nothing is free that a wait would make ready. */
static void waits_for_the_device_only_where_that_gives_memory(void **state)
{
  (void)state;
  fixture_start("'stack': ['arena', 'device']");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  void *small = fixture_allocate(2 * MIB, first);
  fixture_free(small, 2 * MIB, first);
  software()->reset_calls();
  void *large = fixture_allocate(8 * MIB, second);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  fixture_free(large, 8 * MIB, second);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

/* The maximum allows no superblock any more, and less than a usual remnant is free beside what another stream freed. */
static void uses_the_last_of_its_memory_before_it_waits(void **state)
{
  enum { REST_BYTES = 32 << 10, BLOCKS = (1 << 20) / 1024 };
  char graph[120];
  void *blocks[BLOCKS + REST_BYTES / 1024];
  (void)state;
  snprintf(graph, sizeof graph, "'stack': [{'type': 'arena', 'arena_size': %zu, 'maximum_size': %zu}, 'device']",
           3 * MIB + REST_BYTES, 3 * MIB + REST_BYTES);
  fixture_start_with("'scheduler': 'stepped'", graph);
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  void *large = fixture_allocate(2 * MIB, first);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(1000, second);
  assert_int_equal(fixture_value("arena", "superblocks"), 1);
  assert_int_equal(fixture_hip()->MemsetAsync(large, 1, 2 * MIB, first), 0);
  fixture_free(large, 2 * MIB, first);
  software()->reset_calls();
  for (int i = BLOCKS; i < BLOCKS + REST_BYTES / 1024; i++) blocks[i] = fixture_allocate(1000, second);
  assert_int_equal(fixture_calls_that_wait() + software()->calls("hipStreamWaitEvent"), 0);
  assert_int_equal(fixture_value("arena", "superblocks"), 2);
  for (int i = 0; i < BLOCKS + REST_BYTES / 1024; i++) fixture_free(blocks[i], 1000, second);
  fixture_free(fixture_allocate(3 * MIB, NULL), 3 * MIB, NULL);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

static void dumps_what_it_has_when_it_fails(void **state)
{
  static const char *const lines[] = {"arena failed to allocate 64.000000 MiB\n",
                                      "Arena size: 4.000000 MiB in 2 chunks\n",
                                      "# free superblocks: 1\n",
                                      "Total free memory: 1024.000000 KiB\n",
                                      "Largest block of free memory: 1024.000000 KiB\n",
                                      "Fragmentation: 0.00%\n",
                                      "Large allocations: 1, 2.000000 MiB\n",
                                      "Arena 1, of stream (nil) and thread",
                                      "# superblocks: 1, 1024.000000 KiB\n",
                                      "Allocations: 1, 1000.000000 B\n"};
  char graph[600], *folder = new_folder(), *given = path_in(folder, "dump-%d.log"),
                   *file = path_in(folder, "dump-0.log");
  void *none = NULL;
  (void)state;
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'arena', 'maximum_size': '16MiB', 'dump_log_on_failure': true, 'dump_log_file': '%s'}, "
           "'device']",
           given);
  fixture_start(graph);
  void *small = fixture_allocate(1000, NULL), *large = fixture_allocate(2 * MIB, NULL);
  assert_null(read_file(file, NULL));
  assert_status(hipmm_allocate(NULL, 64 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  size_t bytes;
  char *text = read_file(file, &bytes);
  assert_non_null(text);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_contains(text, lines[i]);
  fixture_free(small, 1000, NULL);
  fixture_free(large, 2 * MIB, NULL);
  free(text);
  assert_ok(hipmm_finalize());
  assert_int_equal(unlink(file), 0);
  fixture_start(graph);
  large = fixture_allocate(16 * MIB, NULL); /* all that there is: nothing is free, nor in pieces */
  assert_status(hipmm_allocate(NULL, 64 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  text = read_file(file, NULL);
  assert_non_null(text);
  assert_contains(text, "Arena size: 16.000000 MiB in 1 chunk");
  assert_null(strstr(text, "Fragmentation"));
  fixture_free(large, 16 * MIB, NULL);
  free(text);
  free(file);
  free(given);
  remove_folder(folder);
}

static void serves_on_where_no_dump_can_be_written(void **state)
{
  void *none = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'maximum_size': '16MiB', 'dump_log_on_failure': true, 'dump_log_file': "
                "'/nowhere/dump.log'}, 'device']");
  assert_status(hipmm_allocate(NULL, 64 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 64 MiB");
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
}

static void start_dumping_to(const char *file)
{
  char graph[600];
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'arena', 'maximum_size': '64MiB', 'dump_log_on_failure': true, 'dump_log_file': '%s'}, "
           "'device']",
           file);
  fixture_start(graph);
}

/* Without that, a dump would wait for a reader for ever, and all threads of the program for the dump. */
static void does_not_wait_for_who_reads_a_dump(void **state)
{
  char *folder = new_folder(), *file = path_in(folder, "pipe");
  void *none = NULL;
  (void)state;
  assert_int_equal(mkfifo(file, 0600), 0);
  start_dumping_to(file);
  alarm(20);
  assert_status(hipmm_allocate(NULL, 128 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 128 MiB");
  assert_contains(logged(), "pipe cannot be written: it is a pipe that nobody reads");
  alarm(0);
  free(file);
  remove_folder(folder);
}

static void *fail_to_allocate(void *closure)
{
  void *none = NULL;
  (void)closure;
  return (void *)(uintptr_t)(hipmm_allocate(NULL, 128 * MIB, NULL, &none) == HIPMM_E_OUT_OF_MEMORY);
}

/* The reader is slow: the dump is larger than the pipe. */
static void holds_nobody_up_while_it_dumps(void **state)
{
  enum { STREAMS = 24, PIPE_BYTES = 4096 };
  char text[16384], *folder = new_folder(), *file = path_in(folder, "pipe");
  hipmm_stream_t streams[STREAMS];
  void *blocks[STREAMS], *has_failed = NULL;
  pthread_t thread;
  int waiting = 0;
  (void)state;
  assert_int_equal(mkfifo(file, 0600), 0);
  int reader = open(file, O_RDONLY | O_NONBLOCK);
  assert_true(reader >= 0 && fcntl(reader, F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES);
  start_dumping_to(file);
  for (int i = 0; i < STREAMS; i++) blocks[i] = fixture_allocate(1000, streams[i] = fixture_stream());
  alarm(20);
  assert_int_equal(pthread_create(&thread, NULL, fail_to_allocate, NULL), 0);
  while (waiting < PIPE_BYTES) assert_int_equal(ioctl(reader, FIONREAD, &waiting), 0);
  fixture_free(fixture_allocate(4 * MIB, NULL), 4 * MIB, NULL);
  assert_int_equal(fcntl(reader, F_SETFL, 0), 0);
  for (ssize_t length; (length = read(reader, text, sizeof text)) > 0;) waiting += (int)length;
  pthread_join(thread, &has_failed);
  alarm(0);
  assert_non_null(has_failed);
  assert_true(waiting > 2 * PIPE_BYTES);
  for (int i = 0; i < STREAMS; i++) {
    fixture_free(blocks[i], 1000, streams[i]);
    fixture_drop_stream(streams[i]);
  }
  close(reader);
  free(file);
  remove_folder(folder);
}

/* Another user may have made the link. */
static void dumps_over_no_link_in_a_shared_folder(void **state)
{
  char *folder = new_folder(), *file = path_in(folder, "dump.log"), *target = path_in(folder, "precious");
  void *none = NULL;
  (void)state;
  assert_true(write_file(target, "kept", 4));
  assert_int_equal(symlink(target, file), 0);
  assert_int_equal(chmod(folder, 01777), 0);
  start_dumping_to(file);
  assert_status(hipmm_allocate(NULL, 128 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  char *text = read_file(target, NULL);
  assert_string_equal(text, "kept");
  assert_contains(logged(), "dump.log cannot be written: it is a symbolic link in a folder where");
  free(text);
  free(target);
  free(file);
  remove_folder(folder);
}

/* ---- Threads ---- */

enum { BLOCKS_OF_THREAD = 200 };

struct task {
  void *blocks[BLOCKS_OF_THREAD];
  hipmm_stream_t stream;
  int failures;
};

static void *allocate_all(void *argument)
{
  struct task *task = argument;
  for (int i = 0; i < BLOCKS_OF_THREAD; i++)
    task->failures += hipmm_allocate(NULL, (size_t)i * 50 + 1, task->stream, &task->blocks[i]) != HIPMM_OK;
  return NULL;
}

static void run_in_thread(void *(*run)(void *), struct task *task)
{
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, task), 0);
  pthread_join(thread, NULL);
  assert_int_equal(task->failures, 0);
}

static void lets_the_next_thread_have_the_arena_of_one_that_ended(void **state)
{
  struct task task = {.failures = 0};
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < 20; i++) {
    run_in_thread(allocate_all, &task);
    for (int k = 0; k < BLOCKS_OF_THREAD; k++) fixture_free(task.blocks[k], 0, NULL); /* by another thread */
  }
  assert_int_equal(fixture_value("arena", "arenas"), 1);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
}

static void *free_all(void *argument)
{
  struct task *task = argument;
  for (int i = 0; i < BLOCKS_OF_THREAD; i++)
    task->failures += task->blocks[i] && hipmm_deallocate(NULL, task->blocks[i], 0, task->stream);
  return NULL;
}

static void *free_all_again(void *argument)
{
  struct task *task = argument;
  for (int i = 0; i < BLOCKS_OF_THREAD; i++)
    task->failures += hipmm_deallocate(NULL, task->blocks[i], 0, task->stream) != HIPMM_E_POINTER;
  return NULL;
}

static void count_extent(void *counts, const struct hipmm_extent *extent)
{
  ((size_t *)counts)[extent->state]++;
}

static size_t visit(enum hipmm_extent_state state)
{
  const struct hipmm_resource *arena = fixture_resource("arena");
  size_t counts[HIPMM_EXTENT_CACHED + 1] = {0};
  assert_ok(arena->ops->visit(arena->self, count_extent, counts));
  return counts[state];
}

/* Its arena has not looked yet, but the blocks are free in every other respect. */
static void frees_what_another_thread_allocated(void **state)
{
  struct task task = {.failures = 0};
  (void)state;
  fixture_start(plain);
  allocate_all(&task);
  size_t held = fixture_held_bytes();
  assert_int_equal(fixture_value("arena", "live_count"), BLOCKS_OF_THREAD);
  for (int i = 0; i < 20; i++) {
    run_in_thread(free_all, &task);
    run_in_thread(free_all_again, &task);
    if (i % 3 == 1) assert_int_equal(fixture_value("arena", "live_count"), 0);
    if (i % 3 == 1) assert_int_equal(fixture_value("arena", "live_bytes"), 0);
    if (i % 3 == 2) assert_int_equal(visit(HIPMM_EXTENT_LIVE), 0);
    allocate_all(&task);
    assert_int_equal(task.failures, 0);
    assert_int_equal(fixture_held_bytes(), held);
  }
  run_in_thread(free_all, &task);
  assert_ok(hipmm_resource_trim(fixture_resource("arena"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* Although the thread that allocated it does nothing more. */
static void returns_what_another_thread_frees(void **state)
{
  enum { BLOCK_BYTES = 100 << 10 };
  struct task task = {.failures = 0};
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < BLOCKS_OF_THREAD; i++) task.blocks[i] = fixture_allocate(BLOCK_BYTES, NULL);
  int64_t before = fixture_value("arena", "superblock_bytes");
  run_in_thread(free_all, &task);
  assert_in_range(before, BLOCKS_OF_THREAD * BLOCK_BYTES, 2 * BLOCKS_OF_THREAD * BLOCK_BYTES);
  assert_in_range(fixture_value("arena", "superblock_bytes"), 0, before / 2);
}

/* Although that thread only allocates, and finds the blocks before there are many. */
static void returns_what_its_thread_finds_freed(void **state)
{
  enum { BLOCK_BYTES = 100 << 10, OTHER_BYTES = 40 << 10 };
  struct task task = {.failures = 0}, some = {.failures = 0};
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < BLOCKS_OF_THREAD; i++) task.blocks[i] = fixture_allocate(BLOCK_BYTES, NULL);
  int64_t before = fixture_value("arena", "superblock_bytes");
  for (int i = 0; i < BLOCKS_OF_THREAD; i++) {
    some.blocks[0] = task.blocks[i];
    run_in_thread(free_all, &some);
    some.blocks[1] = fixture_allocate(OTHER_BYTES, NULL);
  }
  assert_in_range(fixture_value("arena", "superblock_bytes"), 0, before / 2);
  fixture_free(some.blocks[1], OTHER_BYTES, NULL);
}

/* Although a call that looks at the arena has received the messages, and the thread frees nothing. */
static void returns_what_others_receive(void **state)
{
  enum { BLOCK_BYTES = 30 << 10, ROUNDS = 12, EACH = 32 };
  static void *blocks[ROUNDS][EACH], *others[ROUNDS];
  struct task task = {.failures = 0};
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < ROUNDS * EACH; i++) blocks[i / EACH][i % EACH] = fixture_allocate(BLOCK_BYTES, NULL);
  int64_t before = fixture_value("arena", "superblock_bytes");
  for (int i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < EACH; k++) {
      task = (struct task){.blocks[0] = blocks[i][k]};
      run_in_thread(free_all, &task);
    }
    fixture_value("arena", "live_count");
    others[i] = fixture_allocate(1, NULL);
  }
  assert_in_range(fixture_value("arena", "superblock_bytes"), 0, before / 2);
  for (int i = 0; i < ROUNDS; i++) fixture_free(others[i], 1, NULL);
}

/* Before it has any memory, and afterwards. */
static void refuses_what_is_not_its_own(void **state)
{
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hipmm_deallocate(NULL, (void *)(uintptr_t)0x700000000000, 256, NULL), HIPMM_E_POINTER);
    fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  }
}

static void keeps_threads_on_their_default_streams_apart(void **state)
{
  struct task task = {.stream = (hipmm_stream_t)2};
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < 10; i++) {
    run_in_thread(allocate_all, &task);
    for (int k = 0; k < BLOCKS_OF_THREAD; k++) fixture_free(task.blocks[k], 0, NULL);
    assert_ok(hipmm_resource_trim(fixture_resource("arena"), 0));
    assert_int_equal(fixture_held_bytes(), 0);
  }
  assert_int_equal(fixture_value("arena", "arenas"), 1);
  allocate_all(&task);
  run_in_thread(free_all, &task); /* whose stream of that handle is another one */
  assert_in_range(visit(HIPMM_EXTENT_PENDING), BLOCKS_OF_THREAD, BLOCKS_OF_THREAD + 5); /* and what is behind them */
  assert_ok(hipmm_resource_trim(fixture_resource("arena"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* The end of one thread leaves the others what they have. */
static void leaves_a_living_thread_its_arena(void **state)
{
  struct task task = {.failures = 0};
  (void)state;
  fixture_start(plain);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  const struct arena *arena = fixture_resource("arena")->self;
  uint64_t thread = local_thread(arena_local(arena, 1));
  assert_true(thread);
  run_in_thread(allocate_all, &task);
  for (int k = 0; k < BLOCKS_OF_THREAD; k++) fixture_free(task.blocks[k], 0, NULL);
  assert_int_equal(local_thread(arena_local(arena, 1)), thread);
  assert_int_equal(local_thread(arena_local(arena, 2)), 0);
  assert_true(arena_local(arena, 1)->bytes > 0);
}

/* ---- Records ---- */

static void says_that_there_are_no_more_records(void **state)
{
  enum { MOST = 2000, BYTES = 5000 };
  static void *blocks[MOST];
  void *none = NULL;
  int n = 0;
  (void)state;
  fixture_start(plain);
  struct arena *arena = fixture_resource("arena")->self;
  assert_true(arena->heap.blocks.most > 1u << 24);
  arena->heap.blocks.most = 1000;
  while (n < MOST && !hipmm_allocate(NULL, BYTES, NULL, &blocks[n])) n++;
  assert_in_range(n, 900, 1000);
  assert_message("and with the free ones between them the arena has records for 999 and no more");
  assert_int_equal(fixture_value("arena", "live_bytes"), n * BYTES);
  assert_in_range(fixture_value("arena", "free_bytes"), 0, fixture_value("arena", "reserved_bytes") - n * BYTES);
  fixture_free(blocks[10], BYTES, NULL);
  blocks[10] = fixture_allocate(BYTES, NULL);
  assert_status(hipmm_allocate(NULL, BYTES, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  while (n) fixture_free(blocks[--n], BYTES, NULL);
}

/* An aligned block needs a record more for what lies before it. */
static void keeps_a_free_block_whole_when_records_run_out(void **state)
{
  void *none = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '16MiB', 'maximum_size': '16MiB'}, 'device']");
  struct arena *arena = fixture_resource("arena")->self;
  size_t bytes = 2 * MIB;
  char *first = fixture_allocate(bytes, NULL), *all;
  if ((uintptr_t)(first + bytes) % (8 * MIB) == 0) { /* what is free behind it is aligned as it is */
    fixture_free(first, bytes, NULL);
    first = fixture_allocate(bytes = 3 * MIB, NULL);
  }
  struct blocks *blocks = &arena->heap.blocks;
  uint32_t most = blocks->most;
  blocks->most = blocks->count;
  assert_status(hipmm_allocate_aligned(NULL, 2 * MIB, 8 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  all = fixture_allocate(4 * MIB, NULL); /* with the rest, for which there is no record */
  assert_int_equal(fixture_value("arena", "live_count"), 2);
  fixture_free(all, 4 * MIB, NULL);
  blocks->most = most;
  fixture_free(first, bytes, NULL);
  fixture_free(fixture_allocate(16 * MIB, NULL), 16 * MIB, NULL);
}

/* There is a superblock, and no record for a block in it: the allocation gets all of it from the heap. */
static void gives_a_superblock_back_that_it_has_no_record_for(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '4MiB', 'maximum_size': '4MiB'}, 'device']");
  struct arena *arena = fixture_resource("arena")->self;
  uint32_t most = arena->heap.blocks.most;
  arena->heap.blocks.most = arena->heap.blocks.count;
  void *ptr = fixture_allocate(100, NULL);
  assert_int_equal(fixture_value("arena", "free_bytes"), 0);
  fixture_free(ptr, 100, NULL);
  assert_int_equal(fixture_value("arena", "free_bytes"), 4 * MIB);
  fixture_free(fixture_allocate(4 * MIB, NULL), 4 * MIB, NULL);
  arena->heap.blocks.most = most;
  fixture_free(fixture_allocate(100, NULL), 100, NULL);
}

/* As if there were as many arenas, and then as many streams, as there can be. */
static void goes_on_where_no_arena_or_stream_is_left(void **state)
{
  hipmm_stream_t streams[3];
  void *blocks[3], *ptr = NULL;
  (void)state;
  needs_software();
  fixture_start(plain);
  struct arena *arena = fixture_resource("arena")->self;
  for (int i = 0; i < 3; i++) streams[i] = fixture_stream();
  blocks[0] = fixture_allocate(1000, streams[0]);
  uint32_t n_locals = arena->n_locals;
  arena->n_locals = ARENA_MOST_LOCALS;
  blocks[1] = fixture_allocate(1000, streams[1]); /* from the global arena */
  assert_int_equal(heap_block(&arena->heap, block_at(&arena->heap.blocks, blocks[1], 1000))->arena, 0);
  arena->n_locals = n_locals;
  assert_int_equal(fixture_value("arena", "superblocks"), 1);
  arena->heap.streams.count = MAX_STREAMS;
  fixture_fail_call("hipDeviceSynchronize", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, streams[2], &ptr), HIPMM_E_HIP);
  assert_message("hipDeviceSynchronize");
  blocks[2] = fixture_allocate(1000, streams[2]); /* has waited for the device, and forgotten all streams */
  for (int i = 0; i < 3; i++) fixture_free(blocks[i], 1000, streams[i]);
  for (int i = 0; i < 3; i++) fixture_drop_stream(streams[i]);
}

/* One block in a thousand stays live, and the last block with them. */
static void gives_records_between_live_ones_back_when_trimmed(void **state)
{
  enum { BLOCKS = 100000, EACH = 1000, BYTES = 300 };
  static void *blocks[BLOCKS];
  (void)state;
  fixture_start(plain);
  int64_t empty_bytes = fixture_value("arena", "metadata_bytes");
  for (int time = 0; time < 2; time++) {
    for (int i = 0; i < BLOCKS; i++)
      if (!time || (i + 1) % EACH) blocks[i] = fixture_allocate(BYTES, NULL);
    int64_t full_bytes = fixture_value("arena", "metadata_bytes") - empty_bytes;
    assert_in_range(full_bytes, 64 * BLOCKS, 100 * BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
      if ((i + 1) % EACH) fixture_free(blocks[i], BYTES, NULL);
    assert_ok(hipmm_resource_trim(fixture_resource("arena"), 0));
    assert_in_range(fixture_value("arena", "metadata_bytes") - empty_bytes, 1, full_bytes / 3);
    assert_int_equal(visit(HIPMM_EXTENT_LIVE), BLOCKS / EACH);
  }
  for (int i = EACH - 1; i < BLOCKS; i += EACH) fixture_free(blocks[i], BYTES, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("arena"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_in_range(fixture_value("arena", "metadata_bytes") - empty_bytes, 0, 65536);
}

static void forgets_addresses_that_it_gave_back(void **state)
{
  enum { BLOCKS = 200, BYTES = 1 << 20 };
  void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '210MiB'}, 'device']");
  const struct arena *arena = fixture_resource("arena")->self;
  int64_t empty_bytes = fixture_value("arena", "metadata_bytes");
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(BYTES, NULL);
  assert_in_range(fixture_value("arena", "metadata_bytes") - empty_bytes, BLOCKS * 4096, BLOCKS * 8192);
  assert_int_not_equal(*block_map_entry(&arena->heap.blocks, (uintptr_t)blocks[BLOCKS / 2], false), BLOCK_NONE);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], BYTES, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("arena"), 256 * MIB));
  assert_int_equal(fixture_held_bytes(), 210 * MIB);
  assert_in_range(fixture_value("arena", "metadata_bytes") - empty_bytes, 0, 65536);
  assert_int_equal(*block_map_entry(&arena->heap.blocks, (uintptr_t)blocks[BLOCKS / 2], false), BLOCK_NONE);
  assert_status(hipmm_deallocate(NULL, blocks[BLOCKS / 2], BYTES, NULL), HIPMM_E_POINTER);
}

/* In exchange for other memory, without a trim. */
static void forgets_addresses_of_segments_that_it_released(void **state)
{
  enum { BLOCKS = 40 };
  void *blocks[BLOCKS];
  int n_known = 0;
  (void)state;
  fixture_start("'stack': [{'type': 'arena', 'arena_size': '40MiB', 'maximum_size': '48MiB'}, 'device']");
  const struct arena *arena = fixture_resource("arena")->self;
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(MIB, NULL);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], MIB, NULL);
  void *large = fixture_allocate(48 * MIB, NULL);
  assert_int_equal(fixture_value("arena", "chunks"), 1);
  for (int i = 0; i < BLOCKS; i++)
    n_known += *block_map_entry(&arena->heap.blocks, (uintptr_t)blocks[i], false) != BLOCK_NONE;
  assert_in_range(n_known, 0, 3); /* pages at both ends stay, and the large block may begin where one did */
  fixture_free(large, 48 * MIB, NULL);
}

static void has_an_arena_for_each_of_thousands_of_streams(void **state)
{
  enum { STREAMS = 4500 };
  static hipmm_stream_t streams[STREAMS];
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = fixture_stream();
    fixture_free(fixture_allocate(700, streams[i]), 700, streams[i]);
  }
  assert_int_equal(fixture_value("arena", "arenas"), STREAMS);
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(says_that_there_are_no_more_records),
      TEST(keeps_a_free_block_whole_when_records_run_out),
      TEST(gives_a_superblock_back_that_it_has_no_record_for),
      TEST(goes_on_where_no_arena_or_stream_is_left),
      TEST(gives_records_between_live_ones_back_when_trimmed),
      TEST(forgets_addresses_that_it_gave_back),
      TEST(forgets_addresses_of_segments_that_it_released),
      TEST(has_an_arena_for_each_of_thousands_of_streams),
      TEST(grows_beyond_what_it_began_with),
      TEST(says_what_is_wrong_with_its_options),
      TEST(refuses_what_cannot_be_set_while_in_use),
      TEST(uses_what_has_passed_and_waits_for_nothing),
      TEST(makes_memory_of_a_retired_stream_anybodys),
      TEST(becomes_one_block_again),
      TEST(takes_a_block_of_another_arena_before_it_fails),
      TEST(waits_for_what_another_arena_got_meanwhile),
      TEST(exchanges_small_chunks_for_a_large_one),
      TEST(serves_a_large_block_from_what_is_idle_in_superblocks),
      TEST(takes_the_smaller_of_two_free_blocks),
      TEST(orders_the_superblocks_that_a_stream_gives_back),
      TEST(orders_what_a_stream_gives_back_after_it_has_waited),
      TEST(waits_for_a_segment_to_release),
      TEST(lets_another_stream_have_each_of_several_free_blocks),
      TEST(waits_for_the_device_only_where_that_gives_memory),
      TEST(uses_the_last_of_its_memory_before_it_waits),
      TEST(dumps_what_it_has_when_it_fails),
      TEST(serves_on_where_no_dump_can_be_written),
      TEST(does_not_wait_for_who_reads_a_dump),
      TEST(holds_nobody_up_while_it_dumps),
      TEST(dumps_over_no_link_in_a_shared_folder),
      TEST(lets_the_next_thread_have_the_arena_of_one_that_ended),
      TEST(leaves_a_living_thread_its_arena),
      TEST(frees_what_another_thread_allocated),
      TEST(returns_what_another_thread_frees),
      TEST(returns_what_its_thread_finds_freed),
      TEST(returns_what_others_receive),
      TEST(refuses_what_is_not_its_own),
      TEST(keeps_threads_on_their_default_streams_apart),
  };
  log_to_file("warning");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
