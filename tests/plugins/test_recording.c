/* SPDX-License-Identifier: MIT */
/* Tests of recording, and of the reader of its files: what is recorded is what was done, whatever the threads, the size and
 * the end of the process; a damaged file is read as far as it is whole. */
#include "../../core/base/record_format.h"
#include "../../plugins/recording/clock.h"
#include "../../tools/command/trace/rows.h"
#include "../support/fixture.h"
#include "../support/random.h"

#include <hipmm/stream.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GRAPH "'stack': [{'type': 'recording', 'file': '%s/log.record'%s}, 'pool', 'device']"

static enum hipmm_status start(const char *more_options)
{
  char graph[600];
  snprintf(graph, sizeof graph, GRAPH, fixture_folder, more_options);
  return fixture_try("", graph);
}

/* ---- Reading what was recorded ---- */

struct rows {
  struct trace_row *items;
  size_t n, capacity;
  char remark[256];
};

static bool wants_all; /* rows that are not of blocks, too */

/* Adds the rows of a file. */
static void read_rows(const char *name, struct rows *rows)
{
  char message[600], *path = path_in(fixture_folder, name);
  struct trace_rows *reader = trace_rows_open(path, message, sizeof message);
  if (!reader) fail_msg("%s", message);
  enum trace_line state;
  struct trace_row row;
  if (wants_all) trace_rows_want_all(reader);
  while ((state = trace_rows_next(reader, &row)) == TRACE_LINE) {
    if (rows->n == rows->capacity) {
      rows->capacity = 2 * rows->capacity + 1024;
      rows->items = reallocarray(rows->items, rows->capacity, sizeof row);
      assert_non_null(rows->items);
    }
    rows->items[rows->n++] = row;
  }
  assert_int_equal(state, TRACE_LINE_END);
  snprintf(rows->remark, sizeof rows->remark, "%s", trace_rows_remark(reader));
  trace_rows_close(reader);
  free(path);
}

static struct rows rows_of(const char *name)
{
  struct rows rows = {0};
  read_rows(name, &rows);
  return rows;
}

/* Each address is allocated and freed in turns, with one size, and at the end nothing is live but `live` blocks. */
static void assert_in_order(const struct rows *rows, size_t live)
{
  struct {
    uint64_t pointer, bytes;
  } *blocks = calloc(rows->n + 1, sizeof *blocks);
  size_t n = 0;
  for (size_t i = 0; i < rows->n; i++) {
    const struct trace_row *row = &rows->items[i];
    size_t at = 0;
    while (at < n && blocks[at].pointer != row->pointer) at++;
    if (i > 0 && row->nanoseconds < rows->items[i - 1].nanoseconds - 1000)
      fail_msg("row %zu is earlier than the row before it by %lld ns", i,
               (long long)(rows->items[i - 1].nanoseconds - row->nanoseconds));
    if (row->action == TRACE_ALLOCATE) {
      if (at < n) fail_msg("row %zu allocates 0x%llx, which is allocated", i, (unsigned long long)row->pointer);
      blocks[n].pointer = row->pointer;
      blocks[n++].bytes = row->bytes;
    } else {
      if (at == n) fail_msg("row %zu frees 0x%llx, which is free", i, (unsigned long long)row->pointer);
      assert_int_equal(blocks[at].bytes, row->bytes);
      blocks[at] = blocks[--n];
    }
  }
  assert_int_equal(n, live);
  free(blocks);
}

/* ---- One thread ---- */

static void records_what_was_done(void **state)
{
  (void)state;
  void *ptr = NULL;
  assert_ok(start(""));
  hipmm_stream_t stream = fixture_stream();
  struct timespec before, after;
  clock_gettime(CLOCK_REALTIME, &before);
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(1, stream);
  assert_null(fixture_allocate(0, (hipmm_stream_t)1));
  assert_status(hipmm_allocate(NULL, SIZE_MAX, (hipmm_stream_t)2, &ptr), HIPMM_E_OUT_OF_MEMORY);
  fixture_free(first, 1000, NULL);
  fixture_free(second, 0, stream);
  clock_gettime(CLOCK_REALTIME, &after);
  const struct trace_row expected[] = {
      {.action = TRACE_ALLOCATE, .pointer = (uintptr_t)first, .bytes = 1000},
      {.action = TRACE_ALLOCATE, .pointer = (uintptr_t)second, .bytes = 1, .stream = (uintptr_t)stream},
      {.action = TRACE_ALLOCATE, .stream = 1},
      {.action = TRACE_ALLOCATE_FAILURE, .bytes = SIZE_MAX, .stream = 2},
      {.action = TRACE_FREE, .pointer = (uintptr_t)first, .bytes = 1000},
      {.action = TRACE_FREE, .pointer = (uintptr_t)second, .bytes = 0, .stream = (uintptr_t)stream}};
  struct rows rows = rows_of("log.record"); /* while it is written */
  assert_int_equal(rows.n, 6);
  assert_string_equal(rows.remark, "");
  for (size_t i = 0; i < rows.n; i++) {
    const struct trace_row *row = &rows.items[i];
    assert_int_equal(row->action, expected[i].action);
    assert_int_equal(row->pointer, expected[i].pointer);
    assert_int_equal(row->bytes, expected[i].bytes);
    assert_int_equal(row->stream, expected[i].stream);
    assert_int_equal(row->thread, syscall(SYS_gettid));
    assert_int_equal(row->stack, 0);
    /* The clock is calibrated for a millisecond, so some microseconds may be wrong. */
    assert_true(row->nanoseconds > before.tv_sec * 1000000000 + before.tv_nsec - 1000000);
    assert_true(row->nanoseconds < after.tv_sec * 1000000000 + after.tv_nsec + 1000000);
  }
  assert_int_equal(fixture_value("recording", "events"), 6);
  assert_int_equal(fixture_value("recording", "lost_events"), 0);
  free(rows.items);
  fixture_drop_stream(stream);
}

static struct rows all_rows(void)
{
  wants_all = true;
  struct rows rows = rows_of("log.record");
  wants_all = false;
  return rows;
}

/* A row before each event for which it is new, and the free memory of the device at a failure. */
static void records_what_is_held(void **state)
{
  (void)state;
  enum { BLOCKS = 6, BYTES = 24 << 20 };
  void *blocks[BLOCKS], *ptr = NULL;
  size_t held[BLOCKS + 1], event = 0;
  uint64_t now = UINT64_MAX, live = 0;
  bool is_free_told = false;
  assert_ok(start(""));
  for (int i = 0; i < BLOCKS; i++) {
    blocks[i] = fixture_allocate(BYTES, NULL);
    assert_ok(hipmm_device_held_bytes(0, &held[i], NULL));
  }
  assert_status(hipmm_allocate(NULL, SIZE_MAX / 2, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_device_held_bytes(0, &held[BLOCKS], NULL));
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], BYTES, NULL);
  struct rows rows = all_rows();
  for (size_t i = 0; i < rows.n; i++) {
    const struct trace_row *row = &rows.items[i];
    if (row->action == TRACE_HELD) {
      assert_true(row->bytes != now || !i);
      now = row->bytes;
      continue;
    }
    if (row->action == TRACE_DEVICE_FREE) {
      is_free_told = i + 1 < rows.n && rows.items[i + 1].action == TRACE_ALLOCATE_FAILURE;
      assert_in_range(row->bytes, 1, UINT64_C(1) << 48);
      continue;
    }
    if (row->action == TRACE_HOLD || row->action == TRACE_RELEASE) continue;
    if (row->action == TRACE_ALLOCATE) live += row->bytes;
    if (row->action == TRACE_FREE) live -= row->bytes;
    if (event <= BLOCKS) assert_int_equal(now, held[event]);
    if (row->action == TRACE_ALLOCATE_FAILURE) assert_true(is_free_told);
    assert_true(now >= live);
    event++;
  }
  assert_int_equal(event, 2 * BLOCKS + 1);
  free(rows.items);
}

/* What a pool took before the recording was made is in each block of the file. */
static void records_what_is_held_at_first(void **state)
{
  (void)state;
  char graph[600];
  size_t held;
  snprintf(
      graph, sizeof graph,
      "'stack': [{'type': 'recording', 'file': '%s/log.record'}, {'type': 'pool', 'initial_size': '64MiB'}, 'device']",
      fixture_folder);
  assert_ok(fixture_try("", graph));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_device_held_bytes(0, &held, NULL));
  assert_true(held >= 64 << 20);
  struct rows rows = all_rows();
  assert_true(rows.n >= 3);
  assert_int_equal(rows.items[0].action, TRACE_HELD);
  assert_int_equal(rows.items[0].bytes, held);
  free(rows.items);
}

static void records_only_while_it_is_enabled(void **state)
{
  (void)state;
  assert_ok(start(", 'enabled': false"));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_set("devices/0/recording/enabled", "true"));
  fixture_free(fixture_allocate(2000, NULL), 2000, NULL);
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, 2);
  assert_int_equal(rows.items[0].bytes, 2000);
  free(rows.items);
}

/* More streams than a block's table has, and numbers of every length. */
static void records_numbers_of_every_length(void **state)
{
  enum { STREAMS = 34, ROUNDS = 3 }; /* more bytes than there are */
  size_t n = 0;
  (void)state;
  assert_ok(start(""));
  for (int round = 0; round < ROUNDS; round++)
    for (uintptr_t i = 1; i <= STREAMS; i++) {
      void *ptr = NULL;
      hipmm_stream_t stream = (hipmm_stream_t)(i % 7 == 0 ? ~i : i << i);
      assert_status(hipmm_allocate(NULL, SIZE_MAX >> i, stream, &ptr), HIPMM_E_OUT_OF_MEMORY);
    }
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, ROUNDS * STREAMS);
  for (int round = 0; round < ROUNDS; round++)
    for (uintptr_t i = 1; i <= STREAMS; i++, n++) {
      assert_int_equal(rows.items[n].stream, i % 7 == 0 ? ~i : i << i);
      assert_int_equal(rows.items[n].bytes, SIZE_MAX >> i);
    }
  free(rows.items);
}

/* A real program's sizes: the promise of the file's size. */
static void needs_at_most_16_bytes_an_event(void **state)
{
  enum { BLOCKS = 200, EVENTS = 60000 };
  struct {
    void *ptr;
    size_t bytes;
  } blocks[BLOCKS] = {{0}};
  uint64_t random = 7;
  struct stat status;
  (void)state;
  assert_ok(start(""));
  hipmm_stream_t streams[4];
  for (int i = 0; i < 4; i++) streams[i] = fixture_stream();
  for (int i = 0; i < EVENTS; i++) {
    uint64_t at = random_below(&random, BLOCKS);
    hipmm_stream_t stream = streams[at % 4];
    if (blocks[at].ptr) {
      fixture_free(blocks[at].ptr, blocks[at].bytes, stream);
      blocks[at].ptr = NULL;
    } else {
      blocks[at].bytes = random_below(&random, 1000000) + 1;
      blocks[at].ptr = fixture_allocate(blocks[at].bytes, stream);
    }
  }
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].ptr) fixture_free(blocks[i].ptr, blocks[i].bytes, streams[i % 4]);
  struct rows rows = rows_of("log.record");
  assert_in_order(&rows, 0);
  char *path = path_in(fixture_folder, "log.record");
  assert_int_equal(stat(path, &status), 0);
  print_message("%.1f bytes an event\n", (double)status.st_size / (double)rows.n);
  assert_true((size_t)status.st_size < 16 * rows.n);
  free(path);
  free(rows.items);
  for (int i = 0; i < 4; i++) fixture_drop_stream(streams[i]);
}

/* ---- Threads ---- */

enum { THREADS = 4, HANDOVERS = 3000 };

/* Blocks that are handed from thread to thread at once. */
static void *_Atomic places[3];

static void hand_blocks_around(int *failures)
{
  for (int i = 0; i < HANDOVERS; i++) {
    void *ptr = NULL;
    *failures += hipmm_allocate(NULL, 4096, NULL, &ptr) != 0;
    ptr = atomic_exchange(&places[i % 3], ptr);
    if (ptr) *failures += hipmm_deallocate(NULL, ptr, 4096, NULL) != 0;
  }
}

static void keeps_the_order_of_blocks_that_change_threads(void **state)
{
  (void)state;
  assert_ok(start(""));
  fixture_run_threads(THREADS, hand_blocks_around);
  for (int i = 0; i < 3; i++) fixture_free(atomic_exchange(&places[i], NULL), 4096, NULL);
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, 2 * THREADS * HANDOVERS);
  assert_in_order(&rows, 0);
  free(rows.items);
}

static void *allocate_and_free_once(void *failures)
{
  void *ptr;
  *(int *)failures += hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL);
  return NULL;
}

/* A thread continues in the block of one that has ended, and its events have its own number. */
static void uses_the_blocks_of_threads_that_ended(void **state)
{
  enum { MANY = 100 };
  int failures = 0;
  (void)state;
  assert_ok(start(""));
  for (int i = 0; i < MANY; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_and_free_once, &failures), 0);
    pthread_join(thread, NULL);
  }
  assert_int_equal(failures, 0);
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, 2 * MANY);
  assert_in_order(&rows, 0);
  for (size_t i = 0; i < rows.n; i += 2) {
    assert_int_equal(rows.items[i].thread, rows.items[i + 1].thread);
    assert_int_not_equal(rows.items[i].thread, syscall(SYS_gettid));
  }
  assert_true(fixture_value("recording", "file_bytes") <= 8 * RECORD_BLOCK_BYTES);
  free(rows.items);
}

/* ---- Stacks ---- */

__attribute__((noinline)) static enum hipmm_status try_to_allocate_here(size_t bytes, void **ptr_out)
{
  enum hipmm_status status = hipmm_allocate(NULL, bytes, NULL, ptr_out);
  __asm__ volatile("" ::: "memory"); /* no tail call, so that the frame stays */
  return status;
}

__attribute__((noinline)) static void *allocate_here(size_t bytes)
{
  void *ptr = fixture_allocate(bytes, NULL);
  __asm__ volatile("" ::: "memory");
  return ptr;
}

/* Of a reader: how many allocations of `bytes` have stacks, each of which names the static function that allocates, and
 * what they stand for. */
static size_t count_stacks(struct trace_rows *reader, size_t bytes, uint64_t *stand_for_out)
{
  struct trace_row row;
  size_t n = 0;
  *stand_for_out = 0;
  while (trace_rows_next(reader, &row) == TRACE_LINE) {
    if (row.bytes != bytes || row.action == TRACE_FREE) continue;
    *stand_for_out += stack_sample_bytes(row.stack_sample, bytes, row.stack);
    if (!row.stack) continue;
    const char *text = trace_rows_stack(reader, row.stack);
    assert_non_null(text);
    if (!strstr(text, "allocate_here")) fail_msg("%s", text); /* or try_to_allocate_here */
    assert_null(strstr(text, " in ? from (+"));
    n++;
  }
  return n;
}

static size_t count_stacks_of(size_t bytes, uint64_t *stand_for_out)
{
  char message[600], *path = path_in(fixture_folder, "log.record");
  struct trace_rows *reader = trace_rows_open(path, message, sizeof message);
  assert_non_null(reader);
  size_t n = count_stacks(reader, bytes, stand_for_out);
  assert_null(trace_rows_stack(reader, 1 << 20));
  trace_rows_close(reader);
  free(path);
  return n;
}

/* One allocation in 100 is expected to have a stack: 200 of them, and by chance 70 more or fewer at most. */
static void records_stacks_as_a_sample_of_bytes(void **state)
{
  enum { TIMES = 20000, BYTES = 1000 };
  uint64_t stand_for;
  (void)state;
  assert_ok(start(", 'stacks': 'python', 'stack_sample': 100000"));
  for (int i = 0; i < TIMES; i++) fixture_free(allocate_here(BYTES), BYTES, NULL);
  assert_in_range(count_stacks_of(BYTES, &stand_for), 130, 270);
  assert_in_range(stand_for, 13 * TIMES * (BYTES / 20), 27 * TIMES * (BYTES / 20));
}

static void records_the_stacks_of_all_large_blocks_and_failures(void **state)
{
  enum { TIMES = 20, LARGE = 1 << 20, TOO_LARGE = 100 << 20, SMALL = 64 };
  uint64_t stand_for;
  char graph[600];
  void *ptr;
  (void)state;
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'recording', 'file': '%s/log.record', 'stacks': 'all', 'stack_sample': '4GiB'}, "
           "{'type': 'limiting', 'limit': '50MiB'}, 'pool', 'device']",
           fixture_folder);
  fixture_start(graph);
  for (int i = 0; i < TIMES; i++) {
    fixture_free(allocate_here(LARGE), LARGE, NULL);
    fixture_free(allocate_here(SMALL), SMALL, NULL);
    assert_status(try_to_allocate_here(TOO_LARGE, &ptr), HIPMM_E_LIMIT);
  }
  assert_int_equal(count_stacks_of(LARGE, &stand_for), TIMES);
  assert_int_equal(stand_for, TIMES * LARGE);
  assert_int_equal(count_stacks_of(TOO_LARGE, &stand_for), TIMES);
  assert_int_equal(count_stacks_of(SMALL, &stand_for), 0);
  assert_int_equal(stand_for, 0);
}

/* Recursion, so that each depth has a stack of its own. */
__attribute__((noinline)) static void *allocate_at_depth(int depth)
{
  void *ptr = depth ? allocate_at_depth(depth - 1) : allocate_here(1000);
  __asm__ volatile("" ::: "memory");
  return ptr;
}

/* Each text is written once, however often its stack is seen, and all that is known of texts stays known. The stacks are
 * those of the first rounds: a compiler may make several calls of the one in the loop. */
static void writes_the_text_of_each_stack_once(void **state)
{
  enum { DEPTHS = 60, FIRST_ROUNDS = 10, ROUNDS = 50 };
  int64_t file_bytes = 0, metadata_bytes = 0;
  void *blocks[DEPTHS];
  (void)state;
  assert_ok(start(", 'stacks': 'all', 'stack_sample': 0, 'stack_depth': 64"));
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = DEPTHS; i-- > 0;) {
      void *ptr = allocate_at_depth(i);
      if (round) fixture_free(ptr, 1000, NULL);
      if (!round) blocks[i] = ptr; /* keeps the stack */
    }
    if (round == FIRST_ROUNDS) {
      file_bytes = fixture_value("recording", "file_bytes");
      metadata_bytes = fixture_value("recording", "metadata_bytes");
    }
  }
  assert_int_equal(fixture_value("recording", "metadata_bytes"), metadata_bytes);
  assert_in_range(fixture_value("recording", "file_bytes"), file_bytes, file_bytes + 2 * RECORD_BLOCK_BYTES);
  assert_int_equal(fixture_value("recording", "lost_events"), 0);
  for (int i = 0; i < DEPTHS; i++) fixture_free(blocks[i], 1000, NULL);
}

/* More records than a thread remembers: it finds its place in each of them again. */
static void keeps_one_place_for_a_thread_in_each_of_many_records(void **state)
{
  enum { RECORDS = 80 };
  struct hipmm_resource *records[RECORDS], *device;
  int64_t bytes = 0;
  (void)state;
  fixture_start("'stack': ['device']");
  device = fixture_resource("device");
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < RECORDS; i++) {
      char options[500];
      void *ptr = NULL;
      snprintf(options, sizeof options, "{\"file\": \"%s/%d.record\"}", fixture_folder, i);
      if (!round) assert_ok(hipmm_resource_create(0, "recording", options, &device, 1, &records[i]));
      assert_ok(hipmm_allocate(records[i], 1000, NULL, &ptr));
      assert_ok(hipmm_deallocate(records[i], ptr, 1000, NULL));
      if (!round && !i) bytes = resource_value(records[i], "metadata_bytes");
      assert_int_equal(resource_value(records[i], "metadata_bytes"), bytes);
      assert_int_equal(resource_value(records[i], "events"), 2 * round + 2);
    }
  for (int i = 0; i < RECORDS; i++) hipmm_resource_release(records[i]);
}

/* ---- Tags ---- */

/* Writes a letter a row, and its tags: "+step 1/layer 7/". Marks are "[" and "]"; frees are left out. */
static void tell_tags(const char *name, char *text, size_t text_bytes)
{
  static const char letters[] = {
      [TRACE_ALLOCATE] = '+', [TRACE_ALLOCATE_FAILURE] = '!', [TRACE_MARK] = '[', [TRACE_MARK_END] = ']'};
  char message[600], *path = path_in(fixture_folder, name);
  struct trace_rows *rows = trace_rows_open(path, message, sizeof message);
  struct trace_row row;
  size_t used = 0;
  if (!rows) fail_msg("%s", message);
  trace_rows_want_all(rows);
  while (trace_rows_next(rows, &row) == TRACE_LINE) {
    const char *tags = row.tags ? trace_rows_tags(rows, row.tags) : "";
    if (row.action >= sizeof letters || !letters[row.action]) continue;
    used += (size_t)snprintf(text + used, text_bytes - used, "%c%s", letters[row.action], tags);
    assert_true(used < text_bytes);
  }
  for (char *at = text; *at; at++)
    if (*at == '\n') *at = '/';
  assert_string_equal(trace_rows_remark(rows), "");
  trace_rows_close(rows);
  free(path);
}

static void allocate_once(void)
{
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void *allocate_with_a_tag(void *failures)
{
  *(int *)failures += hipmm_tag_pop() != HIPMM_E_STATE;
  allocate_and_free_once(failures);
  *(int *)failures += hipmm_tag_push("of the thread") != HIPMM_OK;
  allocate_and_free_once(failures);
  return NULL; /* with its tag, which no other thread gets */
}

static void keeps_the_tags_of_each_thread(void **state)
{
  char text[1000] = "", whole[260] = "";
  int failures = 0;
  (void)state;
  assert_ok(start(""));
  allocate_once();
  assert_ok(hipmm_tag_push("step 1"));
  allocate_once();
  assert_ok(hipmm_tag_push("layer 7"));
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_with_a_tag, &failures), 0);
    pthread_join(thread, NULL);
  }
  assert_int_equal(failures, 0);
  allocate_once();
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &(void *){NULL}), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_tag_pop());
  assert_ok(hipmm_tag_pop());
  assert_ok(hipmm_tag_push("größe"));
  allocate_once();
  assert_ok(hipmm_tag_pop());
  allocate_once();
  tell_tags("log.record", text, sizeof text);
  assert_string_equal(text, "+[step 1/+step 1/+[of the thread/+of the thread/+[of the thread/+of the thread/"
                            "+step 1/layer 7/!step 1/layer 7/]step 1/layer 7/[größe/+größe/]größe/+");

  while (strlen(whole) < 240) { /* as much as a thread may have */
    assert_ok(hipmm_tag_push("a name of nineteen."));
    strcat(whole, "a name of nineteen./");
  }
  assert_ok(hipmm_tag_push("and fourteen.."));
  strcat(whole, "and fourteen../");
  assert_status(hipmm_tag_push("a"), HIPMM_E_STATE);
  allocate_once();
  tell_tags("log.record", text, sizeof text);
  assert_non_null(strstr(text, whole));
  while (!hipmm_tag_pop()) {
  }
}

/* Each block of a file is read by itself, and a file that keeps the last events has lost those before. */
static void keeps_tags_in_every_block_of_a_file(void **state)
{
  enum { MANY = 20000 };
  static char text[MANY * 10];
  const char *options[] = {"", ", 'keep_last': 4000"};
  (void)state;
  assert_ok(hipmm_tag_push("a"));
  for (int kind = 0; kind < 2; kind++) {
    size_t n = 0;
    assert_ok(start(options[kind]));
    for (int i = 0; i < MANY; i++) allocate_once();
    if (kind) assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
    tell_tags("log.record", text, sizeof text);
    assert_memory_equal(text, "[a/", 3);
    for (const char *at = text + 3; *at; at += 3, n++) assert_memory_equal(at, "+a/", 3);
    assert_in_range(n, kind ? 1000 : MANY, kind ? MANY / 2 : MANY);
    assert_int_equal(hipmm_finalize(), HIPMM_OK);
  }
  assert_ok(hipmm_tag_pop());
}

/* ---- Files ---- */

static void keeps_all_events_when_the_file_is_rotated(void **state)
{
  enum { MANY = 100000 };
  struct rows rows = {0};
  (void)state;
  assert_ok(start(", 'rotate_size': '256KiB', 'rotate_files': 20"));
  for (int i = 0; i < MANY; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  int files = 0;
  for (int i = 20; i >= 0; i--) {
    char name[32];
    struct stat status;
    snprintf(name, sizeof name, i ? "log.record.%d" : "log.record", i);
    char *path = path_in(fixture_folder, name);
    if (!stat(path, &status)) {
      assert_true(status.st_size <= (4 + 2) * RECORD_BLOCK_BYTES);
      read_rows(name, &rows);
      files++;
    }
    free(path);
  }
  assert_true(files > 3);
  assert_int_equal(rows.n, 2 * MANY);
  for (size_t i = 0; i < rows.n; i++) assert_int_equal(rows.items[i].action, i % 2 ? TRACE_FREE : TRACE_ALLOCATE);
  assert_int_equal(fixture_value("recording", "events"), 2 * MANY);
  free(rows.items);
}

static struct outcome run_role(const char *role)
{
  return run_again((const char *const[]){role, fixture_folder, NULL}, (const char *const[]){NULL});
}

/* Run as another process, which ends in the middle of everything. */
static int record_and_be_killed(void)
{
  void *kept;
  if (start("") || hipmm_allocate(NULL, 12345, NULL, &kept)) return 1;
  for (int i = 0; i < 20000; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL)) return 2;
  }
  return raise(SIGKILL);
}

static void keeps_what_was_recorded_when_the_process_is_killed(void **state)
{
  (void)state;
  assert_int_equal(run_role("killed").status, -1); /* by a signal */
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, 40001);
  assert_int_equal(rows.items[0].bytes, 12345);
  assert_in_order(&rows, 1);
  assert_string_equal(rows.remark, "");
  free(rows.items);
}

/* Run as another process, whose file cannot have more than three blocks. */
static int fill_a_small_file(void)
{
  const struct rlimit limit = {3 * RECORD_BLOCK_BYTES, 3 * RECORD_BLOCK_BYTES};
  char graph[600];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'recording', 'file': '%s/log.record'}, 'host']", fixture_folder);
  if (fixture_try("", graph)) return 1;
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 50000; i++) {
    void *ptr;
    if (hipmm_allocate(NULL, 256, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 256, NULL)) return 2;
  }
  struct hipmm_resource *resource;
  int64_t events = 0, lost = 0;
  if (hipmm_resource_get_for_device(0, &resource)) return 3;
  if (hipmm_resource_query(resource, "events", &events) || hipmm_resource_query(resource, "lost_events", &lost))
    return 4;
  if (events + lost != 100000 || lost < 1000) return 5;
  printf("%lld", (long long)events);
  fflush(stdout);
  return 0;
}

static void says_that_events_were_lost(void **state)
{
  (void)state;
  struct outcome outcome = run_role("fill");
  assert_int_equal(outcome.status, 0);
  assert_contains(outcome.error, "cannot grow: File too large; events are lost");
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, strtoll(outcome.out, NULL, 10));
  assert_contains(rows.remark, "lost while it was recorded");
  free(rows.items);
}

/* Run as another process, which has a file of its own in the place of the record. */
static int close_the_record(void)
{
  char *path = path_in(fixture_folder, "log.record"), *own = path_in(fixture_folder, "own");
  if (start("")) return 1;
  int descriptor = take_place_of_file(path, own);
  if (descriptor < 0 || write(descriptor, "mine", 4) != 4) return 2;
  for (int i = 0; i < 50000; i++) fixture_free(fixture_allocate(256, NULL), 256, NULL);
  if (hipmm_resource_perform(fixture_resource("recording"), "flush") != HIPMM_E_IO) return 4;
  printf("%s\n", hipmm_last_error_message());
  fflush(stdout);
  if (fixture_value("recording", "lost_events") <= 0 || hipmm_finalize()) return 3;
  free(path);
  free(own);
  return close(descriptor);
}

static void writes_into_no_file_of_the_program(void **state)
{
  size_t bytes;
  char *own = path_in(fixture_folder, "own");
  (void)state;
  struct outcome outcome = run_role("close");
  assert_int_equal(outcome.status, 0);
  assert_contains(outcome.error,
                  "cannot grow: the program has closed its descriptor, which was not the program's; events");
  assert_contains(outcome.out, "cannot flush the record: the program has closed its descriptor, which was not");
  char *text = read_file(own, &bytes);
  assert_string_equal(text, "mine");
  assert_int_equal(bytes, 4);
  free(text);
  free(own);
}

/* Run as another process, which can open no new file when its record is full. */
static int rotate_without_descriptors(void)
{
  struct rlimit before;
  char graph[600];
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'recording', 'file': '%s/log.record', 'rotate_size': '256KiB'}, 'host']",
           fixture_folder);
  if (fixture_try("", graph)) return 1;
  fixture_free(fixture_allocate(256, NULL), 256, NULL);
  if (getrlimit(RLIMIT_NOFILE, &before)) return 2;
  const struct rlimit none = {0, before.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &none)) return 2;
  for (int i = 0; i < 50000; i++) fixture_free(fixture_allocate(256, NULL), 256, NULL);
  if (setrlimit(RLIMIT_NOFILE, &before)) return 2; /* sanitizers open files at the end */
  return hipmm_finalize();
}

static void says_why_a_record_is_not_rotated(void **state)
{
  (void)state;
  struct outcome outcome = run_role("rotate");
  assert_int_equal(outcome.status, 0);
  assert_contains(outcome.error, "/log.record is not rotated any more: Too many open files");
}

/* The second event has a stream, which zeros that the writer stored do not follow. */
static void *allocate_and_free_on_streams(void *failures)
{
  void *ptr;
  *(int *)failures +=
      hipmm_allocate(NULL, 256, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 256, HIPMM_PER_THREAD_STREAM);
  return NULL;
}

/* Run as another process: a block fits half, and when there is room again, a thread begins a block. */
static int fill_half_a_block(void)
{
  const rlim_t bytes = 3 * RECORD_BLOCK_BYTES + RECORD_BLOCK_BYTES / 2;
  struct rlimit limit = {bytes, RLIM_INFINITY};
  char graph[600];
  int failures = 0;
  int64_t lost = 0;
  snprintf(graph, sizeof graph, "'stack': [{'type': 'recording', 'file': '%s/log.record'}, 'host']", fixture_folder);
  if (fixture_try("", graph)) return 1;
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 50000 && !lost; i++) {
    allocate_and_free_on_streams(&failures);
    lost = fixture_value("recording", "lost_events");
  }
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_FSIZE, &limit);
  pthread_t thread;
  if (failures || !lost || pthread_create(&thread, NULL, allocate_and_free_on_streams, &failures)) return 2;
  pthread_join(thread, NULL);
  printf("%lld", (long long)fixture_value("recording", "events"));
  fflush(stdout);
  return failures;
}

static void begins_empty_blocks_after_one_that_fitted_half(void **state)
{
  (void)state;
  struct outcome outcome = run_role("half");
  assert_int_equal(outcome.status, 0);
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, strtoll(outcome.out, NULL, 10));
  for (size_t i = 0; i < rows.n; i++) { /* the loss may part an allocation from its free */
    assert_int_equal(rows.items[i].bytes, 256);
    assert_int_equal(rows.items[i].stream, rows.items[i].action == TRACE_FREE ? (uintptr_t)HIPMM_PER_THREAD_STREAM : 0);
  }
  free(rows.items);
}

static void gives_each_device_a_file(void **state)
{
  struct hipmm_resource *other;
  void *ptr;
  (void)state;
  assert_ok(start(""));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_resource_get_for_device(1, &other));
  assert_ok(hipmm_allocate(other, 2000, NULL, &ptr));
  assert_ok(hipmm_deallocate(other, ptr, 2000, NULL));
  hipmm_resource_release(other);
  struct rows first = rows_of("log.record"), second = rows_of("log.dev1.record");
  assert_int_equal(first.n, 2);
  assert_int_equal(second.n, 2);
  assert_int_equal(first.items[0].bytes, 1000);
  assert_int_equal(second.items[0].bytes, 2000);
  free(first.items);
  free(second.items);
}

/* ---- The last events ---- */

static bool is_there(const char *name)
{
  char *path = path_in(fixture_folder, name);
  bool is_there = access(path, F_OK) == 0;
  free(path);
  return is_there;
}

static void remove_file(const char *name)
{
  char *path = path_in(fixture_folder, name);
  assert_int_equal(remove(path), 0);
  free(path);
}

static void fail_to_allocate(size_t bytes)
{
  void *ptr;
  assert_status(hipmm_allocate(NULL, bytes, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
}

static void keeps_the_last_events_until_memory_is_short(void **state)
{
  enum { LAST = 8000, MANY = 100000 };
  (void)state;
  assert_ok(start(", 'keep_last': 8000"));
  for (int i = 0; i < MANY; i++) fixture_free(fixture_allocate(1000 + (i & 1), NULL), 0, NULL);
  assert_false(is_there("log.record"));
  logged();
  assert_int_equal(fixture_value("recording", "events"), 2 * MANY);
  assert_in_range(fixture_value("recording", "file_bytes"), 3 * RECORD_BLOCK_BYTES, 6 * RECORD_BLOCK_BYTES);
  fail_to_allocate(SIZE_MAX);
  assert_contains(logged(), "recording: out of memory: the last allocations and frees are in /");
  struct rows rows = rows_of("log.record");
  assert_in_range(rows.n, LAST, MANY); /* of twice as many; the faster they come, the fewer bytes each takes */
  assert_int_equal(rows.items[rows.n - 1].action, TRACE_ALLOCATE_FAILURE);
  for (size_t i = 2; i < rows.n; i++) { /* backwards from the last free */
    const struct trace_row *row = &rows.items[rows.n - i];
    assert_int_equal(row->action, i % 2 ? TRACE_ALLOCATE : TRACE_FREE);
    if (i % 2) assert_int_equal(row->bytes, 1001 - (i / 2 - 1) % 2);
  }
  free(rows.items);
  remove_file("log.record");
  fail_to_allocate(SIZE_MAX);
  assert_false(is_there("log.record")); /* once */
  assert_string_equal(logged(), "");
  assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
  assert_true(is_there("log.record"));
  hipmm_finalize();
  assert_status(start(", 'keep_last': 9, 'rotate_size': '1MiB'"), HIPMM_E_CONFIG);
  assert_contains(hipmm_last_error_message(), "leave \"rotate_size\" out");
}

/* The stack of a live block was seen first long before the last events. */
static void keeps_the_stacks_of_the_last_events(void **state)
{
  enum { BYTES = 1000, OTHER = 2000, MANY = 20000 };
  uint64_t stand_for;
  (void)state;
  assert_ok(start(", 'keep_last': 8000, 'stacks': 'all', 'stack_sample': 0"));
  for (int i = 0; i < MANY; i++) fixture_free(allocate_here(BYTES), BYTES, NULL);
  assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
  assert_in_range(count_stacks_of(BYTES, &stand_for), 4000, MANY - 1);
  fixture_free(allocate_here(OTHER), OTHER, NULL);
  assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
  assert_int_equal(count_stacks_of(OTHER, &stand_for), 1);
}

/* The last events that were saved stay where there is no space for later ones. */
static void keeps_what_was_saved_when_the_disk_is_full(void **state)
{
  struct rlimit before, small;
  (void)state;
  assert_ok(start(", 'keep_last': 8000"));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
  for (int i = 0; i < 20000; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = (rlim_t)2 * RECORD_BLOCK_BYTES;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_status(hipmm_resource_perform(fixture_resource("recording"), "flush"), HIPMM_E_IO);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, 2);
  assert_string_equal(rows.remark, "");
  free(rows.items);
  assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
  rows = rows_of("log.record");
  assert_true(rows.n > 8000);
  free(rows.items);
}

/* A record that is being written is not emptied: who maps it would get a signal. */
static void saves_into_no_other_record(void **state)
{
  char graph[1200];
  (void)state;
  snprintf(graph, sizeof graph,
           "'resources': {'all': {'type': 'recording', 'file': '%s/log.record', 'upstream': 'last'}, "
           "'last': {'type': 'recording', 'file': '%s/./log.record', 'keep_last': 100, 'upstream': 'pool'}, "
           "'pool': {'type': 'pool', 'upstream': 'device'}, 'device': {'type': 'device'}}, "
           "'devices': {'default': 'all'}",
           fixture_folder, fixture_folder);
  assert_ok(fixture_try("", graph));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_status(hipmm_resource_perform(fixture_resource("last"), "flush"), HIPMM_E_IO);
  assert_contains(hipmm_last_error_message(), "another record");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  struct rows rows = rows_of("log.record");
  assert_int_equal(rows.n, 4);
  free(rows.items);
}

static atomic_bool saves;

static void record_while_others_save(int *failures)
{
  void *ptr;
  while (atomic_load(&saves))
    *failures += hipmm_allocate(NULL, 1000, NULL, &ptr) || hipmm_deallocate(NULL, ptr, 1000, NULL);
}

/* What is written while threads record is whole. */
static void saves_while_threads_record(void **state)
{
  (void)state;
  assert_ok(start(", 'keep_last': 8000"));
  atomic_store(&saves, true);
  fixture_start_threads(2, record_while_others_save);
  for (int i = 0; i < 20; i++) {
    assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
    struct rows rows = rows_of("log.record");
    for (size_t row = 0; row < rows.n; row++) {
      assert_int_equal(rows.items[row].bytes, 1000);
      assert_in_range(rows.items[row].action, TRACE_ALLOCATE, TRACE_FREE);
    }
    free(rows.items);
  }
  atomic_store(&saves, false);
  fixture_join_threads();
}

/* HIPMM_FLIGHT, with a name of the graph's that would be its resource's, and a folder whose name has a percent sign. */
static void flies_above_each_device(void **state)
{
  static const char graph[] = "'resources': {'flight': {'type': 'pool', 'upstream': 'device'}, 'device': {'type': "
                              "'device'}}, 'devices': {'default': 'flight', '1': 'device'}";
  struct hipmm_resource *other;
  char name[64];
  void *ptr;
  (void)state;
  char *hangar = path_in(fixture_folder, "100%d");
  assert_int_equal(mkdir(hangar, 0700), 0);
  setenv("HIPMM_FLIGHT", hangar, 1);
  assert_ok(fixture_try("", graph));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_ok(hipmm_resource_get_for_device(1, &other));
  assert_int_equal(fixture_value("flight.2", "events"), 2);
  assert_int_equal(fixture_value("flight", "live_bytes"), 0);
  assert_status(hipmm_allocate(other, SIZE_MAX / 2, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  hipmm_resource_release(other);
  fail_to_allocate(SIZE_MAX / 2);
  for (int device = 0; device < 2; device++) {
    snprintf(name, sizeof name, "100%%d/hipmm.%ld.dev%d.record", (long)getpid(), device);
    struct rows rows = rows_of(name);
    assert_int_equal(rows.n, device ? 1 : 3);
    free(rows.items);
    remove_file(name);
  }
  assert_int_equal(rmdir(hangar), 0);
  free(hangar);
  unsetenv("HIPMM_FLIGHT");
}

/* A limit that leaves no room for what is kept makes no allocation fail. */
static void flies_under_no_small_limit(void **state)
{
  struct rlimit before, small;
  (void)state;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = RECORD_BLOCK_BYTES / 2;
  setenv("HIPMM_FLIGHT", fixture_folder, 1);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  logged();
  enum hipmm_status status = fixture_try("", "'stack': ['host']"), allocated = HIPMM_E_STATE;
  void *ptr = NULL;
  if (!status) allocated = hipmm_allocate(NULL, 1000, NULL, &ptr);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  unsetenv("HIPMM_FLIGHT");
  assert_ok(allocated);
  assert_contains(logged(), "raise the limit (ulimit -f)");
  fixture_free(ptr, 1000, NULL);
}

/* The program runs on as it would without the variable. */
static void flies_from_no_bad_folder(void **state)
{
  static const struct {
    const char *folder, *reason;
  } rows[] = {{"/none", "No such file or directory"}, {"/proc/self/exe", "Not a directory"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    setenv("HIPMM_FLIGHT", rows[i].folder, 1);
    logged();
    fixture_start("'stack': ['pool', 'device']");
    assert_contains(logged(), rows[i].reason);
    assert_int_equal(fixture_value("pool", "live_bytes"), 0);
    fail_to_allocate(SIZE_MAX / 2);
    assert_ok(hipmm_finalize());
  }
  unsetenv("HIPMM_FLIGHT");
}

static void refuses_what_cannot_be_a_record(void **state)
{
  char options[600];
  (void)state;
  assert_status(start(", 'rotate_size': '100KiB'"), HIPMM_E_CONFIG);
  assert_contains(hipmm_last_error_message(), "write 0 or at least \"256KiB\"");
  hipmm_finalize();
  char *fifo = path_in(fixture_folder, "fifo");
  assert_int_equal(mkfifo(fifo, 0600), 0);
  snprintf(options, sizeof options, "'stack': [{'type': 'recording', 'file': '%s'}, 'device']", fifo);
  assert_status(fixture_try("", options), HIPMM_E_CONFIG);
  assert_contains(hipmm_last_error_message(), "is not a regular file");
  hipmm_finalize();
  snprintf(options, sizeof options, "'stack': [{'type': 'recording', 'file': '%s/none/x'}, 'device']", fixture_folder);
  assert_status(fixture_try("", options), HIPMM_E_IO);
  assert_contains(hipmm_last_error_message(), "its folder does not exist, create it first");
  hipmm_finalize();
  snprintf(options, sizeof options, "'stack': [{'type': 'recording', 'file': '%s/%%q'}, 'device']", fixture_folder);
  assert_status(fixture_try("", options), HIPMM_E_CONFIG);
  assert_contains(hipmm_last_error_message(), "unknown %q");
  free(fifo);
}

/* ---- Damaged files ---- */

static void write_record(const char *name, const void *data, size_t bytes)
{
  char *path = path_in(fixture_folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
  free(path);
}

/* Reads what may be refused; how many rows there were, or -1. */
static int try_to_read(const char *name, char *message, size_t message_bytes)
{
  char *path = path_in(fixture_folder, name);
  struct trace_rows *reader = trace_rows_open(path, message, message_bytes);
  struct trace_row row;
  int n = reader ? 0 : -1;
  while (reader && trace_rows_next(reader, &row) == TRACE_LINE) n++;
  if (reader) snprintf(message, message_bytes, "%s", trace_rows_remark(reader));
  if (reader) trace_rows_close(reader);
  free(path);
  return n;
}

static char *record_of_200_events(size_t *bytes_out)
{
  assert_ok(start(", 'stacks': 'all', 'stack_sample': 20000"));
  for (int i = 0; i < 100; i++) {
    if (i % 5 == 4) assert_ok(hipmm_tag_push("layer"));
    fixture_free(allocate_here(1000), 1000, NULL);
    if (i % 5 == 4) assert_ok(hipmm_tag_pop());
  }
  char *path = path_in(fixture_folder, "log.record"), *data = read_file(path, bytes_out);
  assert_non_null(data);
  free(path);
  return data;
}

static void reads_a_file_as_far_as_it_is_whole(void **state)
{
  char message[600] = "";
  size_t bytes;
  (void)state;
  char *data = record_of_200_events(&bytes);
  assert_int_equal(bytes, 2 * RECORD_BLOCK_BYTES);
  write_record("whole", data, bytes);
  assert_int_equal(try_to_read("whole", message, sizeof message), 200);
  assert_string_equal(message, "");

  size_t used = bytes; /* in which events follow the texts of stacks */
  while (!data[used - 1]) used--;
  write_record("cut", data, used - 50);
  int n = try_to_read("cut", message, sizeof message);
  assert_in_range(n, 1, 199);
  assert_contains(message, "the file is cut off: its last block is not whole");

  write_record("head", data, 100);
  assert_int_equal(try_to_read("head", message, sizeof message), -1);
  assert_contains(message, "is cut off before the end of its head");

  struct record_head *head = (struct record_head *)(void *)data;
  head->byte_order = 0x04030201;
  write_record("order", data, bytes);
  assert_int_equal(try_to_read("order", message, sizeof message), -1);
  assert_contains(message, "another byte order");
  free(data);
}

/* Commands keep tables of stacks by number: one that no recording gives would take gigabytes. */
static void refuses_numbers_of_stacks_that_nobody_gives(void **state)
{
  struct record_event event = {.action = RECORD_ALLOCATE, .ptr = 256, .bytes = 1000, .stack = 1};
  struct record_context context = {0};
  char message[600];
  size_t bytes;
  (void)state;
  char *data = record_of_200_events(&bytes), *at = data + RECORD_BLOCK_BYTES + sizeof(struct record_block);
  at = record_put(at, &context, &event);
  event.stack = UINT32_MAX;
  record_put(at, &context, &event);
  write_record("stacks", data, bytes);
  assert_int_equal(try_to_read("stacks", message, sizeof message), 1);
  assert_string_equal(message, "1 damaged block was skipped from the damage on");
  free(data);
}

/* Nothing in a file is trusted: no damage leads the reader astray (the sanitizers look). */
static void survives_every_damage(void **state)
{
  enum { TIMES = 1500 };
  char message[600];
  size_t bytes;
  uint64_t random = 3;
  (void)state;
  char *data = record_of_200_events(&bytes), *damaged = malloc(bytes);
  size_t used = sizeof(struct record_block) + 8192;
  for (int i = 0; i < TIMES; i++) {
    memcpy(damaged, data, bytes);
    for (uint64_t n = random_below(&random, 4) + 1; n > 0; n--) {
      uint64_t at = random_below(&random, 2) ? random_below(&random, sizeof(struct record_head))
                                             : RECORD_BLOCK_BYTES + random_below(&random, used);
      damaged[at] = (char)random_below(&random, 256);
    }
    write_record("damaged", damaged, RECORD_BLOCK_BYTES + used);
    assert_in_range(try_to_read("damaged", message, sizeof message) + 1, 0, 20000);
  }
  free(damaged);
  free(data);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup_folder, fixture_teardown_folder)

/* Where the kernel does not trust the processor's counter, times are those of the monotonic clock. */
static void has_a_clock_without_a_counter(void **state)
{
  uint64_t per_second = 0;
  (void)state;
  for (int i = 0; i < 100; i++) {
    uint64_t earlier = monotonic_ns(), now = clock_ticks(false);
    assert_true(earlier <= now && now <= monotonic_ns());
  }
  for (int i = 0; i < 100 && (per_second < 990000000 || per_second > 1010000000); i++) /* the thread can be held up */
    per_second = clock_ticks_per_second(false);
  assert_in_range(per_second, 990000000, 1010000000);
}

int main(int argc, char **argv)
{
  if (argc == 3) {
    fixture_folder = argv[2];
    unsetenv("HIPMM_LOG"); /* their output is looked at */
    return !strcmp(argv[1], "killed")   ? record_and_be_killed()
           : !strcmp(argv[1], "half")   ? fill_half_a_block()
           : !strcmp(argv[1], "close")  ? close_the_record()
           : !strcmp(argv[1], "rotate") ? rotate_without_descriptors()
                                        : fill_a_small_file();
  }
  log_to_file("warning");
  const struct CMUnitTest tests[] = {
      TEST(keeps_what_was_recorded_when_the_process_is_killed),
      TEST(says_that_events_were_lost),
      TEST(writes_into_no_file_of_the_program),
      TEST(says_why_a_record_is_not_rotated),
      TEST(begins_empty_blocks_after_one_that_fitted_half),
      TEST(records_what_was_done),
      TEST(records_what_is_held),
      TEST(records_what_is_held_at_first),
      TEST(records_only_while_it_is_enabled),
      TEST(keeps_the_tags_of_each_thread),
      TEST(keeps_tags_in_every_block_of_a_file),
      TEST(records_numbers_of_every_length),
      TEST(needs_at_most_16_bytes_an_event),
      TEST(keeps_the_order_of_blocks_that_change_threads),
      TEST(uses_the_blocks_of_threads_that_ended),
      TEST(records_stacks_as_a_sample_of_bytes),
      TEST(records_the_stacks_of_all_large_blocks_and_failures),
      TEST(writes_the_text_of_each_stack_once),
      TEST(keeps_one_place_for_a_thread_in_each_of_many_records),
      TEST(keeps_all_events_when_the_file_is_rotated),
      TEST(gives_each_device_a_file),
      TEST(keeps_the_last_events_until_memory_is_short),
      TEST(keeps_the_stacks_of_the_last_events),
      TEST(keeps_what_was_saved_when_the_disk_is_full),
      TEST(saves_into_no_other_record),
      TEST(saves_while_threads_record),
      TEST(flies_above_each_device),
      TEST(flies_under_no_small_limit),
      TEST(flies_from_no_bad_folder),
      TEST(refuses_what_cannot_be_a_record),
      TEST(reads_a_file_as_far_as_it_is_whole),
      TEST(refuses_numbers_of_stacks_that_nobody_gives),
      TEST(survives_every_damage),
      TEST(has_a_clock_without_a_counter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
