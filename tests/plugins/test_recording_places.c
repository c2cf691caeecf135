/* SPDX-License-Identifier: MIT */
/* Tests of where recording says that held memory is: after each event the places are all that is held, they have each live
 * block, and they are those that the pool shows itself, also where a part of a record is all that there is. */
#include "../../tools/command/trace/rows.h"
#include "../../tools/command/trace/segments.h"
#include "../support/fixture.h"
#include "../support/random.h"

#include <hipmm/inspect.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char *const growths[] = {"segments", "mapped"};
enum { GROWTHS = 2 };

static void start(const char *options, const char *growth, const char *pool_options)
{
  char graph[600];
  snprintf(graph, sizeof graph,
           "'stack': [{'type': 'recording', 'file': '%s/log.record'%s}, {'type': 'pool', 'growth': '%s'%s}, 'device']",
           fixture_folder, options, growth, pool_options);
  fixture_start(graph);
}

/* ---- Reading ---- */

/* What a record tells, up to a row. */
struct told {
  struct segments places;
  uint64_t held_bytes;
  bool are_known; /* the places that there were at some moment have been told */
  size_t n_events, n_checked;
};

static bool has_threads; /* another may take memory between an event and its row */
static bool has_lost;    /* the file could not grow */

static bool told_has(const struct told *told, uint64_t address, uint64_t bytes)
{
  const uint64_t end = address + bytes;
  for (size_t i = 0; i < told->places.n_held && address < end; i++) { /* by address */
    const struct segment *place = &told->places.items[told->places.held[i]];
    if (place->address > address) return false;
    if (place->address + place->bytes > address) address = place->address + place->bytes;
  }
  return address >= end;
}

static void told_take(struct told *told, const struct trace_row *row)
{
  const uint32_t event = (uint32_t)told->n_events;
  switch (row->action) {
  case TRACE_HELD: told->held_bytes = row->bytes; return;
  case TRACE_HOLD: assert_true(segments_hold(&told->places, event, row->pointer, row->bytes, 0)); return;
  case TRACE_RELEASE:
    assert_true(segments_release(&told->places, event, row->pointer, row->bytes));
    told->are_known = told->are_known || row->bytes > INT64_MAX;
    return;
  default: break;
  }
  if (!trace_action_is_of_blocks(row->action)) return;
  told->n_events++;
  if (!told->are_known || has_threads) return;
  if (told->places.held_bytes != told->held_bytes)
    fail_msg("event %u: %llu bytes have places, and %llu are held", event, (unsigned long long)told->places.held_bytes,
             (unsigned long long)told->held_bytes);
  if (row->action == TRACE_ALLOCATE && !told_has(told, row->pointer, row->bytes))
    fail_msg("event %u: the block at 0x%llx is nowhere", event, (unsigned long long)row->pointer);
  told->n_checked++;
}

/* Reads the record and checks each event. */
static struct told told_by(const char *name)
{
  struct told told = {.held_bytes = 0};
  char message[600], *path = path_in(fixture_folder, name);
  struct trace_rows *rows = trace_rows_open(path, message, sizeof message);
  struct trace_row row;
  enum trace_line state;
  if (!rows) fail_msg("%s", message);
  trace_rows_want_all(rows);
  while ((state = trace_rows_next(rows, &row)) == TRACE_LINE) told_take(&told, &row);
  assert_int_equal(state, TRACE_LINE_END);
  if (!has_lost) assert_string_equal(trace_rows_remark(rows), "");
  trace_rows_close(rows);
  free(path);
  assert_true(told.are_known);
  return told;
}

/* ---- What there is ---- */

struct found {
  const struct told *told;
  uint64_t bytes;
  size_t n;
};

static void find(struct found *found, const void *ptr, size_t bytes)
{
  const struct segments *places = &found->told->places;
  size_t i = 0;
  while (i < places->n_held && places->items[places->held[i]].address != (uintptr_t)ptr) i++;
  if (i == places->n_held) fail_msg("nothing is told of %p", ptr);
  assert_int_equal(places->items[places->held[i]].bytes, bytes);
  found->bytes += bytes;
  found->n++;
}

static void find_block(void *found, const struct hipmm_extent *extent)
{
  find(found, extent->ptr, extent->bytes);
}

static int find_chunk(void *found, const struct hipmm_chunk *chunk)
{
  find(found, chunk->ptr, chunk->bytes);
  return 0;
}

static void find_extent(void *found, const struct hipmm_extent *extent)
{
  const struct told *told = ((struct found *)found)->told;
  if (!told_has(told, (uintptr_t)extent->ptr, extent->bytes)) fail_msg("%p is nowhere", extent->ptr);
}

/* The places at the end of the record are the pool's segments, or its chunks: no more, and of the same sizes. */
static void assert_is_there(const struct told *told)
{
  struct found found = {.told = told};
  const struct hipmm_resource *pool = fixture_resource("pool");
  assert_ok(hipmm_resource_visit_blocks(fixture_resource("device"), find_block, &found));
  assert_ok(pool->ops->visit_chunks(pool->self, NULL, find_chunk, &found));
  assert_int_equal(found.n, told->places.n_held);
  assert_int_equal(found.bytes, told->held_bytes);
  assert_int_equal(found.bytes, fixture_held_bytes());
  assert_ok(hipmm_resource_visit_blocks(fixture_resource("pool"), find_extent, &found));
}

/* ---- Programs ---- */

enum { PLACES = 24 };

static struct {
  void *ptr;
  size_t bytes;
} blocks[PLACES];

static void free_block(int i)
{
  if (blocks[i].ptr) fixture_free(blocks[i].ptr, blocks[i].bytes, NULL);
  blocks[i].ptr = NULL;
}

/* Blocks of random sizes, until the pool has given memory back, and moved it where it can. */
static void allocate_at_random(uint64_t *random, int steps, size_t most)
{
  for (int step = 0; step < steps; step++) {
    const int i = (int)random_below(random, PLACES);
    free_block(i);
    blocks[i].bytes = 1 + random_below(random, random_below(random, 4) ? most / 64 : most);
    if (hipmm_allocate(NULL, blocks[i].bytes, NULL, &blocks[i].ptr)) blocks[i].ptr = NULL;
    if (random_below(random, 40) == 0) assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
  }
}

static void free_all(void)
{
  for (int i = 0; i < PLACES; i++) free_block(i);
}

/* ---- Tests ---- */

static void tells_each_change_of_a_pool(void **state)
{
  enum { STEPS_OF_ONE = 3000 };
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    uint64_t random = (uint64_t)growth + 1;
    start("", growths[growth], ", 'maximum_size': '96MiB'");
    allocate_at_random(&random, STEPS_OF_ONE, 32 * MIB);
    struct told told = told_by("log.record");
    assert_in_range(told.n_checked, STEPS_OF_ONE, 2 * STEPS_OF_ONE);
    assert_is_there(&told);
    assert_true(told.places.n > 100);
    segments_clear(&told.places);
    free_all();
    assert_ok(hipmm_finalize());
  }
}

/* The pool has memory before the recording is there; and takes and gives back while it is off. */
static void tells_what_was_there_before(void **state)
{
  (void)state;
  for (int growth = 0; growth < GROWTHS; growth++) {
    uint64_t random = (uint64_t)growth + 1;
    start("", growths[growth], ", 'initial_size': '64MiB'");
    fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
    struct told told = told_by("log.record");
    assert_int_equal(told.n_checked, 2);
    assert_true(told.held_bytes >= 64 * MIB);
    assert_is_there(&told);
    segments_clear(&told.places);
    assert_ok(hipmm_set("devices/0/recording/enabled", "false"));
    allocate_at_random(&random, 500, 32 * MIB);
    assert_ok(hipmm_set("devices/0/recording/enabled", "true"));
    fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
    told = told_by("log.record");
    assert_int_equal(told.n_checked, 4);
    assert_is_there(&told);
    segments_clear(&told.places);
    free_all();
    assert_ok(hipmm_finalize());
  }
}

/* More changes between two events than the recording keeps, which other programs make below it. */
static void tells_any_number_of_changes(void **state)
{
  enum { MANY = 1000 };
  void *others[MANY];
  (void)state;
  start("", "segments", "");
  struct hipmm_resource *device = fixture_resource("device");
  void *ptr = fixture_allocate(1000, NULL);
  for (int i = 0; i < MANY; i++) assert_ok(hipmm_allocate(device, 4096, NULL, &others[i]));
  fixture_free(ptr, 1000, NULL);
  struct told told = told_by("log.record");
  assert_true(told.places.n_held > MANY);
  assert_is_there(&told);
  segments_clear(&told.places);
  for (int i = 0; i < MANY; i++) assert_ok(hipmm_deallocate(device, others[i], 4096, NULL));
  ptr = fixture_allocate(1000, NULL);
  told = told_by("log.record");
  assert_is_there(&told);
  segments_clear(&told.places);
  fixture_free(ptr, 1000, NULL);
}

/* A file that was rotated, and one of the last events, has what was held before it began. */
static void tells_what_is_held_in_each_file(void **state)
{
  static const char *const options[] = {", 'rotate_size': '256KiB'", ", 'keep_last': 8000"};
  enum { MANY = 100000 };
  (void)state;
  for (int kind = 0; kind < 2; kind++)
    for (int growth = 0; growth < GROWTHS; growth++) {
      uint64_t random = (uint64_t)growth + 1;
      start(options[kind], growths[growth], "");
      allocate_at_random(&random, 500, 32 * MIB);
      for (int i = 0; i < MANY; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
      if (kind) assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
      struct told told = told_by("log.record");
      assert_in_range(told.n_events, 1, MANY);
      assert_true(told.n_checked > told.n_events / 4);
      assert_is_there(&told);
      segments_clear(&told.places);
      free_all();
      assert_ok(hipmm_finalize());
    }
}

/* As many segments, or names so long, that they would leave no room for events: then the last events are there, and no segments. */
static void prefers_the_last_events_to_places(void **state)
{
  enum { MOST = 8000, EVENTS = 40000 };
  static const struct {
    const char *options, *name;
    int n, least;
  } cases[] = {{"'keep_last': 4000", "device", 3000, 4000},
               {"'keep_last': 4000", "a_name_so_long_that_it_needs_more_than_all_the_rest_of_its_row", 300, 4000},
               {"'rotate_size': '256KiB'", "device", MOST, 4000}};
  void *others[MOST];
  char graph[900], message[600], *path = path_in(fixture_folder, "log.record");
  (void)state;
  for (size_t kind = 0; kind < sizeof cases / sizeof *cases; kind++) {
    struct trace_row row;
    int n_events = 0;
    snprintf(
        graph, sizeof graph,
        "'resources': {'%s': {'type': 'device'}, 'pool': {'type': 'pool', 'upstream': '%s'}, 'recording': {'type': "
        "'recording', 'upstream': 'pool', 'file': '%s', %s}}, 'devices': {'default': 'recording'}",
        cases[kind].name, cases[kind].name, path, cases[kind].options);
    fixture_start(graph);
    struct hipmm_resource *device = fixture_resource(cases[kind].name);
    for (int i = 0; i < cases[kind].n; i++) assert_ok(hipmm_allocate(device, 4096, NULL, &others[i]));
    for (int i = 0; i < EVENTS / 2; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
    assert_ok(hipmm_resource_perform(fixture_resource("recording"), "flush"));
    struct trace_rows *rows = trace_rows_open(path, message, sizeof message);
    assert_non_null(rows);
    trace_rows_want_all(rows);
    while (trace_rows_next(rows, &row) == TRACE_LINE) {
      n_events += trace_action_is_of_blocks(row.action);
      assert_int_not_equal(row.action, TRACE_HOLD);
    }
    assert_in_range(n_events, cases[kind].least, EVENTS);
    trace_rows_close(rows);
    for (int i = 0; i < cases[kind].n; i++) assert_ok(hipmm_deallocate(device, others[i], 4096, NULL));
    assert_ok(hipmm_finalize());
  }
  free(path);
}

/* What changed while the file could not grow is lost; once it can, all places are told. */
static void tells_all_places_after_a_full_disk(void **state)
{
  struct rlimit before, limit;
  (void)state;
  start("", "segments", "");
  void *kept = fixture_allocate(60 * MIB, NULL);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = 2 * 65536;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  fixture_free(kept, 60 * MIB, NULL);
  enum hipmm_status status = hipmm_resource_trim(fixture_resource("pool"), 0);
  while (!fixture_value("recording", "lost_events")) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_ok(status);
  for (int i = 0; i < 20000; i++) fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  has_threads = has_lost = true;
  struct told told = told_by("log.record");
  has_threads = has_lost = false;
  assert_is_there(&told);
  segments_clear(&told.places);
}

static void tells_what_a_suspended_pool_gave_back(void **state)
{
  const size_t bytes = 20 * MIB;
  (void)state;
  start("", "mapped", "");
  void *first = fixture_allocate(bytes, NULL), *second = fixture_allocate(bytes, NULL);
  assert_ok(hipmm_resource_suspend(fixture_resource("pool"), HIPMM_CONTENT_DISCARD));
  fixture_free(first, bytes, NULL);
  struct told told = told_by("log.record");
  assert_int_equal(told.held_bytes, 0);
  assert_int_equal(told.n_checked, 3);
  segments_clear(&told.places);
  assert_ok(hipmm_resource_resume(fixture_resource("pool")));
  fixture_free(second, bytes, NULL);
  told = told_by("log.record");
  assert_true(told.held_bytes >= bytes);
  assert_is_there(&told);
  segments_clear(&told.places);
}

/* No memory of the driver's own pool has a place: its blocks are not what it holds. */
static void tells_no_places_of_a_drivers_pool(void **state)
{
  char graph[600], message[600], *path = path_in(fixture_folder, "log.record");
  struct trace_row row;
  size_t held = 0;
  (void)state;
  snprintf(graph, sizeof graph, "'stack': [{'type': 'recording', 'file': '%s/log.record'}, 'async']", fixture_folder);
  fixture_start(graph);
  for (int i = 0; i < 10; i++) fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  struct trace_rows *rows = trace_rows_open(path, message, sizeof message);
  assert_non_null(rows);
  trace_rows_want_all(rows);
  while (trace_rows_next(rows, &row) == TRACE_LINE) {
    held += row.action == TRACE_HELD && row.bytes;
    assert_int_not_equal(row.action, TRACE_HOLD);
  }
  assert_true(held > 0);
  trace_rows_close(rows);
  free(path);
}

enum { THREADS = 8, STEPS = 400 };
static bool is_switched; /* the threads switch the recording off and on */

static void allocate_in_a_thread(int *failures)
{
  enum { KEPT = 4 };
  uint64_t random = (uintptr_t)&random;
  void *kept[KEPT] = {NULL};
  for (int step = 0; step < STEPS; step++) {
    const int i = step % KEPT;
    if (kept[i]) *failures += hipmm_deallocate(NULL, kept[i], 0, NULL) != 0;
    *failures += hipmm_allocate(NULL, 1 + random_below(&random, 4 * MIB), NULL, &kept[i]) != 0;
    if (step % 50 == 0) *failures += hipmm_resource_trim(fixture_resource("pool"), 0) != 0;
    if (is_switched && step % 8 == 0)
      *failures += hipmm_set("devices/0/recording/enabled", step % 16 ? "true" : "false") != 0;
  }
  for (int i = 0; i < KEPT; i++) *failures += hipmm_deallocate(NULL, kept[i], 0, NULL) != 0;
}

/* Once all have ended, all is told. */
static void tells_what_threads_change_at_once(void **state)
{
  (void)state;
  for (int kind = 0; kind < 2 * GROWTHS; kind++) {
    is_switched = kind / GROWTHS;
    start("", growths[kind % GROWTHS], "");
    fixture_run_threads(THREADS, allocate_in_a_thread);
    assert_ok(hipmm_set("devices/0/recording/enabled", "true"));
    fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
    has_threads = true;
    struct told told = told_by("log.record");
    has_threads = false;
    assert_in_range(told.n_events, is_switched ? 2 : 2 * (THREADS * STEPS + 1), 2 * (THREADS * STEPS + 1));
    assert_is_there(&told);
    segments_clear(&told.places);
    assert_ok(hipmm_finalize());
  }
}

#define places_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup_folder, fixture_teardown_folder)

int main(void)
{
  const struct CMUnitTest tests[] = {
      places_test(tells_each_change_of_a_pool),        places_test(tells_what_was_there_before),
      places_test(tells_any_number_of_changes),        places_test(tells_what_is_held_in_each_file),
      places_test(prefers_the_last_events_to_places),  places_test(tells_what_a_suspended_pool_gave_back),
      places_test(tells_all_places_after_a_full_disk), places_test(tells_no_places_of_a_drivers_pool),
      places_test(tells_what_threads_change_at_once),
  };
  return cmocka_run_group_tests_name("recording places", tests, NULL, NULL);
}
