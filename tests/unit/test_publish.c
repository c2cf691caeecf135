/* SPDX-License-Identifier: MIT */
/* Tests of core/inspect/publish.c: what stands in the file in shared memory that `hipmm top` reads. */
#include "../../core/base/live_format.h"
#include "../../core/inspect/publish.h"
#include "../../core/stack/physical.h"
#include "../support/fixture.h"

#include <hipmm/spill.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *name, *draft;

/* ---- Reading ---- */

static uint64_t sequence_of(const struct live_file *file)
{
  return __atomic_load_n(&file->sequence, __ATOMIC_ACQUIRE);
}

/* Two updates have ended since the call, so the second began after it. */
static bool await_update(const struct live_file *file)
{
  uint64_t wanted = sequence_of(file) / 2 * 2 + 4;
  for (int i = 0; i < 5000 && sequence_of(file) < wanted; i++) usleep(2000);
  return sequence_of(file) >= wanted;
}

/* What is published now; valid until the next call. */
static const struct live_file *published(void)
{
  static struct live_file copy;
  int descriptor = open(name, O_RDONLY);
  assert_true(descriptor >= 0);
  const struct live_file *file = mmap(NULL, sizeof *file, PROT_READ, MAP_SHARED, descriptor, 0);
  assert_ptr_not_equal(file, MAP_FAILED);
  assert_true(await_update(file));
  uint64_t before;
  do {
    before = sequence_of(file);
    copy = *file;
  } while (before % 2 || sequence_of(file) != before);
  munmap((void *)(uintptr_t)file, sizeof *file);
  close(descriptor);
  return &copy;
}

static const struct live_row *row_of(const struct live_file *file, const char *path)
{
  for (uint32_t i = 0; i < file->n_rows; i++)
    if (!strcmp(file->rows[i].path, path)) return &file->rows[i];
  fail_msg("%s is not published", path);
  return NULL;
}

static void start_published(const char *stack)
{
  char graph[300];
  if (access(LIVE_FOLDER, W_OK)) skip();
  snprintf(graph, sizeof graph, "'publish': true, %s", stack);
  fixture_start(graph);
}

/* ---- Tests ---- */

static void shows_what_resources_count(void **state)
{
  (void)state;
  start_published("'stack': ['statistics', {'type': 'pool', 'growth': 'segments'}, 'async']");
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(5000, NULL),
       *gone = fixture_allocate(7000, NULL);
  fixture_free(gone, 7000, NULL);
  const struct live_file *file = published();
  assert_int_equal(file->n_rows, 4);
  assert_int_equal(file->n_wanted, 4);
  const struct live_row *device = row_of(file, "devices/0"), *statistics = row_of(file, "devices/0/statistics");
  const struct live_row *pool = row_of(file, "devices/0/pool"), *async = row_of(file, "devices/0/async");
  assert_string_equal(device->type, "");
  assert_string_equal(statistics->type, "statistics");
  assert_int_equal(device->counters[LIVE_RESERVED], fixture_held_bytes());
  assert_int_equal(device->counters[LIVE_PEAK_RESERVED], fixture_peak_held_bytes());
  assert_int_equal(device->counters[LIVE_BYTES], LIVE_UNKNOWN);
  assert_int_equal(statistics->counters[LIVE_BYTES], 6000);
  assert_int_equal(statistics->counters[LIVE_BLOCKS], 2);
  assert_int_equal(statistics->counters[LIVE_PEAK_BYTES], 13000);
  assert_int_equal(statistics->counters[LIVE_TOTAL_BLOCKS], 3);
  assert_int_equal(statistics->counters[LIVE_RESERVED], LIVE_UNKNOWN);
  assert_int_equal(pool->counters[LIVE_BYTES], 6000);
  assert_int_equal(pool->counters[LIVE_RESERVED], fixture_value("pool", "reserved_bytes"));
  for (int i = 0; i < LIVE_COUNTERS; i++) /* the driver is not asked */
    assert_int_equal(async->counters[i], LIVE_UNKNOWN);
  fixture_free(first, 1000, NULL);
  fixture_free(second, 5000, NULL);
}

/* Of resources that have them: idle memory in pieces, and tiers. */
static void shows_pieces_and_tiers(void **state)
{
  enum { BYTES = 2 << 20 };
  struct hipmm_movable *movables[2];
  void *ptr;
  (void)state;
  fixture_start("'resources': {'movable': {'type': 'spilling', 'upstream': 'small', 'pinned': 'host'}, "
                "'small': {'type': 'limiting', 'upstream': 'pool', 'limit': '3MiB'}, "
                "'pool': {'type': 'pool', 'growth': 'segments', 'initial_size': '9MiB', 'upstream': 'memory'}, "
                "'memory': {'type': 'device'}, 'host': {'type': 'pinned'}}, 'devices': {'default': 'movable'}");
  void *pool_block = NULL, *hole = NULL;
  struct hipmm_resource *pool = fixture_resource("pool");
  assert_ok(hipmm_allocate(pool, BYTES, NULL, &hole));
  assert_ok(hipmm_allocate(pool, BYTES, NULL, &pool_block));
  assert_ok(hipmm_deallocate(pool, hole, BYTES, NULL));
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_movable_create(NULL, BYTES, &movables[i]));
    assert_ok(hipmm_movable_pin(movables[i], NULL, &ptr));
    assert_ok(hipmm_movable_unpin(movables[i], NULL));
  }
  struct live_file *file = aligned_alloc(_Alignof(struct live_file), sizeof *file);
  assert_non_null(file);
  memset(file, 0, sizeof *file);
  publish_fill(file);
  const struct live_row *spilling = row_of(file, "devices/0/movable"), *row = row_of(file, "devices/0/pool");
  assert_int_equal(spilling->counters[LIVE_RESERVED], BYTES);
  assert_int_equal(spilling->pinned_bytes, BYTES);
  assert_int_equal(spilling->file_bytes, 0);
  assert_int_equal(spilling->fragmented_bytes, LIVE_UNKNOWN);
  assert_int_equal(row->pinned_bytes, LIVE_UNKNOWN);
  assert_int_equal(row->fragmented_bytes, fixture_value("pool", "fragmented_bytes"));
  free(file);
  for (int i = 0; i < 2; i++) hipmm_movable_destroy(movables[i]);
  assert_ok(hipmm_deallocate(pool, pool_block, BYTES, NULL));
}

static void shows_what_was_created_past_hipmm(void **state)
{
  enum { BYTES = 1 << 20 };
  (void)state;
  start_published("'stack': ['device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_int_equal(published()->n_rows, 2);
  assert_true(physical_claim(0, BYTES));
  physical_add_past(0, BYTES);
  const struct live_row *past = row_of(published(), "devices/0/past_hipmm");
  assert_int_equal(past->counters[LIVE_BYTES], BYTES);
  assert_int_equal(past->counters[LIVE_BLOCKS], 1);
  physical_remove_past(0, BYTES);
  past = row_of(published(), "devices/0/past_hipmm");
  assert_int_equal(past->counters[LIVE_RESERVED], 0);
  assert_int_equal(past->counters[LIVE_PEAK_RESERVED], BYTES);
  fixture_free(ptr, 1000, NULL);
}

/* Makes a file as a process leaves it that is killed; with its lock if `is_held`. Returns its descriptor. */
static int leave(const char *file, const char *magic, bool is_held)
{
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  unlink(file); /* of a run that was killed */
  int descriptor = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, magic, strlen(magic)), strlen(magic));
  if (is_held) assert_int_equal(fcntl(descriptor, F_OFD_SETLK, &whole), 0);
  return descriptor;
}

/* Of this user: not what a process holds, in whatever container, nor what another program calls so. */
static void removes_what_killed_processes_left(void **state)
{
  enum { DEAD, FAR, HELD, OTHERS, FILES };
  static const bool stays[FILES] = {[HELD] = true, [OTHERS] = true};
  char files[FILES][64];
  int descriptors[FILES];
  (void)state;
  if (access(LIVE_FOLDER, W_OK)) skip();
  struct stat own;
  assert_int_equal(stat("/proc/self/ns/pid", &own), 0);
  pid_t dead = fork();
  if (!dead) _exit(0);
  assert_int_equal(waitpid(dead, NULL, 0), dead);
  for (int i = 0; i < FILES; i++) {
    unsigned long long space = (unsigned long long)own.st_ino + (i == DEAD ? 0 : (unsigned)i);
    snprintf(files[i], sizeof files[i], LIVE_NAME, (unsigned)geteuid(), space, (long)(i == DEAD ? dead : getpid()));
    descriptors[i] = leave(files[i], i == OTHERS ? "notes of somebody" : LIVE_MAGIC, i == HELD);
  }
  start_published("'stack': ['pool', 'device']");
  for (int i = 0; i < FILES; i++) {
    if (access(files[i], F_OK) == (stays[i] ? 0 : -1)) continue;
    fail_msg("%s %s", files[i], stays[i] ? "is gone" : "is still there");
  }
  for (int i = 0; i < FILES; i++) {
    unlink(files[i]);
    close(descriptors[i]);
  }
}

/* Nobody can name what belonged to the device before. */
static void leaves_out_what_has_no_path(void **state)
{
  (void)state;
  struct hipmm_resource *old = NULL;
  start_published("'stack': ['pool', 'device']");
  assert_ok(hipmm_resource_get_for_device(0, &old));
  assert_ok(hipmm_finalize());
  start_published("'stack': ['pool', 'device']");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  const struct live_file *file = published();
  assert_int_equal(file->n_wanted, 3);
  for (uint32_t i = 0; i < file->n_rows; i++) assert_string_not_equal(file->rows[i].path, "");
  hipmm_resource_release(old);
}

static void counts_the_rows_that_have_no_room(void **state)
{
  enum { MANY = LIVE_ROWS };
  static struct hipmm_resource *made[MANY];
  (void)state;
  start_published("'stack': ['pool', 'device']");
  for (int i = 0; i < MANY; i++) assert_ok(hipmm_resource_create(0, "host", NULL, NULL, 0, &made[i]));
  const struct live_file *file = published();
  assert_int_equal(file->n_rows, LIVE_ROWS);
  assert_true(file->n_wanted > LIVE_ROWS);
  for (int i = 0; i < MANY; i++) hipmm_resource_release(made[i]);
  assert_true(published()->n_wanted < LIVE_ROWS);
}

static void says_why_nothing_is_published(void **state)
{
  (void)state;
  if (access(LIVE_FOLDER, W_OK)) skip();
  assert_int_equal(mkdir(draft, 0700), 0);
  logged();
  start_published("'stack': ['pool', 'device']");
  const char *said = logged();
  assert_contains(said, "counters are not published: /dev/shm/hipmm.");
  assert_contains(said, ": File exists");
  assert_int_equal(rmdir(draft), 0);
  assert_int_equal(access(name, F_OK), -1);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void ends_with_the_last_user(void **state)
{
  (void)state;
  start_published("'stack': ['pool', 'device']");
  assert_int_equal(access(name, F_OK), 0);
  assert_ok(hipmm_finalize());
  assert_int_equal(access(name, F_OK), -1);
  fixture_start("'stack': ['pool', 'device']");
  assert_int_equal(access(name, F_OK), -1);
}

#define publish_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
  log_to_file("warning");
  name = published_file(false);
  draft = published_file(true);
  unlink(name); /* what a process that was killed has left, before this one got its number */
  unlink(draft);
  const struct CMUnitTest tests[] = {
      publish_test(shows_what_resources_count),
      publish_test(leaves_out_what_has_no_path),
      publish_test(removes_what_killed_processes_left),
      publish_test(counts_the_rows_that_have_no_room),
      publish_test(says_why_nothing_is_published),
      publish_test(ends_with_the_last_user),
      publish_test(shows_pieces_and_tiers),
      publish_test(shows_what_was_created_past_hipmm),
  };
  int failed = cmocka_run_group_tests_name("publish", tests, NULL, NULL);
  free(name);
  free(draft);
  return failed;
}
