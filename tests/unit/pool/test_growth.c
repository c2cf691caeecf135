/* SPDX-License-Identifier: MIT */
/* Tests of how the pool grows and gives back, mapped and in segments: what it takes from its upstream and when, that
 * all of it can be used, up to the last byte of its maximum, and that it goes back. */
#include "../../support/growths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_BLOCKS = 70000 };

static void *blocks[MOST_BLOCKS];

static bool is_mapped(void **state)
{
  return *state == mapped;
}

/* ---- The maximum ---- */

static int fill(size_t bytes)
{
  int n = 0;
  while (n < MOST_BLOCKS && !hipmm_allocate(NULL, bytes, NULL, &blocks[n])) n++;
  return n;
}

/* Whatever was done before, one block can have it all. */
static void reaches_all_of(size_t maximum_bytes)
{
  static const size_t sizes[] = {60 * KIB, 4 * KIB, 700 * KIB, 3 * MIB - 256};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int n = fill(sizes[i]);
    assert_true(fixture_held_bytes() <= maximum_bytes);
    assert_true(n < MOST_BLOCKS);
    for (int k = 0; k < n; k += 2) fixture_free(blocks[k], sizes[i], NULL);
    for (int k = 0; k < n; k += 4) blocks[k] = fixture_allocate(sizes[i] / 2 + 1, NULL);
    for (int k = 0; k < n; k++)
      if (k % 4 != 2) fixture_free(blocks[k], 0, NULL);
    assert_int_equal(value("live_count"), 0);
    void *all = fixture_allocate(maximum_bytes, NULL);
    fixture_fill(all, 1, 4 * KIB);
    fixture_fill((char *)all + maximum_bytes - 4 * KIB, 1, 4 * KIB);
    assert_true(fixture_holds(all, 1, 4 * KIB));
    assert_int_equal(fixture_held_bytes(), maximum_bytes);
    fixture_free(all, maximum_bytes, NULL);
  }
  assert_int_equal(fixture_peak_held_bytes(), maximum_bytes);
  assert_int_equal(value("peak_reserved_bytes"), maximum_bytes);
}

static void reaches_its_maximum_with_one_block(void **state)
{
  start(state, ", 'maximum_size': '62MiB'");
  reaches_all_of(62 * MIB);
}

static void reaches_its_maximum_after_an_initial_size(void **state)
{
  start(state, ", 'initial_size': '10MiB', 'maximum_size': '62MiB'");
  reaches_all_of(62 * MIB);
}

static void reaches_a_maximum_that_it_began_with(void **state)
{
  start(state, ", 'initial_size': '32MiB', 'maximum_size': '32MiB'");
  assert_int_equal(fixture_held_bytes(), 32 * MIB);
  reaches_all_of(32 * MIB);
}

static void reaches_the_end_of_the_device(void **state)
{
  needs_software();
  start(state, "");
  reaches_all_of(256 * MIB);
}

static void says_that_its_maximum_is_reached(void **state)
{
  void *ptr = NULL;
  start(state, ", 'maximum_size': '16MiB'");
  void *half = fixture_allocate(9 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 8 MiB: maximum_size 16 MiB leaves no room for it");
  assert_null(ptr);
  assert_int_equal(value("live_count"), 1);
  fixture_free(half, 9 * MIB, NULL);
  fixture_free(fixture_allocate(16 * MIB, NULL), 16 * MIB, NULL);
}

/* Under `auto`, since granules are larger. */
static void serves_under_a_maximum_below_the_granule(void **state)
{
  start_with("", "auto", *state == mapped ? ", 'maximum_size': '1MiB'" : ", 'maximum_size': 1000000");
  size_t most = *state == mapped ? MIB : 1000000 / 256 * 256;
  void *all = fixture_allocate(most, NULL);
  assert_in_range(fixture_held_bytes(), most, *state == mapped ? MIB : 1000000);
  fixture_free(all, most, NULL);
  int n = fill(4 * KIB);
  assert_int_equal(n, most / (4 * KIB));
  while (n) fixture_free(blocks[--n], 4 * KIB, NULL);
  fixture_free(fixture_allocate(most, NULL), most, NULL);
}

static void says_that_granules_are_larger_than_its_maximum(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'pool', 'growth': 'mapped', 'maximum_size': '1MiB'}, 'device']"),
                HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/growth");
  assert_message("maximum_size is less than the smallest chunk");
  assert_ok(hipmm_finalize());
  start_with("", mapped, ", 'maximum_size': '8MiB'");
  assert_status(hipmm_set("devices/0/pool/maximum_size", "4096"), HIPMM_E_CONFIG);
  assert_message("smallest chunk");
  fixture_free(fixture_allocate(8 * MIB, NULL), 8 * MIB, NULL); /* the maximum is what it was */
}

/* No multiple of a granule: percentages seldom are. */
static void begins_with_all_of_an_odd_maximum(void **state)
{
  start(state, ", 'initial_size': 33000000, 'maximum_size': 33000000");
  assert_in_range(fixture_held_bytes(), is_mapped(state) ? 30 * MIB : 33000000 - 256, 33000000);
  size_t most = fixture_held_bytes();
  fixture_free(fixture_allocate(most, NULL), most, NULL);
  int n = fill(100 * KIB);
  assert_int_equal(fixture_held_bytes(), most);
  while (n) fixture_free(blocks[--n], 100 * KIB, NULL);
  fixture_free(fixture_allocate(most, NULL), most, NULL);
  assert_int_equal(fixture_peak_held_bytes(), most);
}

/* ---- What it begins with ---- */

static void takes_its_initial_size_at_once(void **state)
{
  start(state, ", 'initial_size': '40MiB'");
  assert_int_equal(fixture_held_bytes(), 40 * MIB);
  software()->reset_calls();
  void *ptr = fixture_allocate(40 * MIB, NULL);
  assert_int_equal(software()->calls("hipMalloc") + software()->calls("hipMemCreate") + software()->calls("hipMemMap"),
                   0);
  assert_int_equal(fixture_held_bytes(), 40 * MIB);
  fixture_free(ptr, 40 * MIB, NULL);
}

/* However little of the device stays free: each call of the driver takes microseconds. */
static void takes_most_of_the_device_with_few_calls(void **state)
{
  const size_t bytes = 240 * MIB, end = 4 * KIB; /* of 256 MiB */
  needs_software();
  start_with("'granularity': '4KiB'", *state, ", 'initial_size': '95%'");
  char *ptr = fixture_allocate(bytes, NULL);
  assert_in_range(software()->calls("hipMemCreate") + software()->calls("hipMalloc"), 1, 4200);
  fixture_fill(ptr + bytes - end, 1, end);
  assert_true(fixture_holds(ptr + bytes - end, 1, end));
  fixture_free(ptr, bytes, NULL);
}

static void takes_a_share_of_the_device(void **state)
{
  needs_software();
  start(state, ", 'initial_size': '25%', 'maximum_size': '50%'");
  assert_int_equal(fixture_held_bytes(), 64 * MIB);
  reaches_all_of(128 * MIB);
}

static void takes_nothing_at_first_without_an_initial_size(void **state)
{
  start(state, "");
  assert_int_equal(fixture_held_bytes(), 0);
  void *ptr = fixture_allocate(1, NULL);
  assert_in_range(fixture_held_bytes(), 1, 2 * MIB);
  fixture_free(ptr, 1, NULL);
}

static void refuses_a_maximum_below_the_initial_size(void **state)
{
  (void)state;
  assert_status(
      fixture_try("", "'stack': [{'type': 'pool', 'initial_size': '2MiB', 'maximum_size': '1MiB'}, 'device']"),
      HIPMM_E_CONFIG);
  assert_message("/stack/0/maximum_size");
}

/* ---- When memory is short ---- */

static void recovers_from_an_exhausted_device(void **state)
{
  needs_software();
  void *ptr = NULL;
  start(state, "");
  int n = fill(5 * MIB);
  assert_in_range(n, is_mapped(state) ? 51 : 42, 51);
  assert_status(hipmm_allocate(NULL, 5 * MIB, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 5 MiB");
  assert_int_equal(value("live_count"), n);
  for (int i = 0; i < n; i++) memset(blocks[i], i, 256);
  for (int i = 0; i < n; i++) assert_int_equal(*(unsigned char *)blocks[i], i);
  fixture_free(blocks[n / 2], 5 * MIB, NULL);
  blocks[n / 2] = fixture_allocate(5 * MIB, NULL);
  for (int i = 0; i < n; i++) fixture_free(blocks[i], 5 * MIB, NULL);
  fixture_free(fixture_allocate(256 * MIB, NULL), 256 * MIB, NULL);
}

/* The stream that freed is not known to last: what it freed stays with it for as long as there is other memory. */
static void synchronises_the_device_only_instead_of_growing(void **state)
{
  needs_software();
  enum { BLOCKS = 8, BYTES = 4 * MIB };
  start_with("'scheduler': 'stepped'", *state, ", 'initial_size': '32MiB', 'slack': 0");
  hipmm_stream_t first = fixture_stream(), second = fixture_stream();
  void *ptr[BLOCKS] = {fixture_allocate(BYTES, second)};
  for (int i = 1; i < 3; i++) ptr[i] = fixture_allocate(BYTES, first);
  for (int i = 1; i < 3; i++) fixture_free(ptr[i], BYTES, first);
  software()->reset_calls();
  for (int i = 1; i < BLOCKS - 2; i++) ptr[i] = fixture_allocate(BYTES, second);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  for (int i = BLOCKS - 2; i < BLOCKS; i++) ptr[i] = fixture_allocate(BYTES, second);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 1);
  assert_int_equal(software()->calls("hipEventRecord"), 0);
  assert_int_equal(fixture_held_bytes(), 32 * MIB);
  void *more = fixture_allocate(BYTES, second); /* nothing is withheld now: it grows at once */
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 1);
  fixture_free(more, BYTES, second);
  for (int i = 0; i < BLOCKS; i++) fixture_free(ptr[i], BYTES, second);
  fixture_drop_stream(first);
  fixture_drop_stream(second);
}

/* Only mapped memory can: half of it is free, but in no piece of more than one granule. */
static void moves_memory_under_a_block_that_no_hole_fits(void **state)
{
  needs_software();
  (void)state;
  start_with("", mapped, "");
  for (int i = 0; i < 128; i++) blocks[i] = fixture_allocate(2 * MIB, NULL);
  assert_int_equal(fixture_held_bytes(), 256 * MIB);
  for (int i = 0; i < 128; i++) memset(blocks[i], i, 2 * MIB);
  for (int i = 0; i < 128; i += 2) fixture_free(blocks[i], 2 * MIB, NULL);
  unsigned char *large = fixture_allocate(128 * MIB, NULL);
  assert_true(value("moves") > 0);
  assert_int_equal(fixture_held_bytes(), 256 * MIB);
  memset(large, 255, 128 * MIB);
  for (int i = 1; i < 128; i += 2) {
    assert_int_equal(*(unsigned char *)blocks[i], i);
    assert_memory_equal(blocks[i], (char *)blocks[i] + 1, 2 * MIB - 1);
    fixture_free(blocks[i], 2 * MIB, NULL);
  }
  fixture_free(large, 128 * MIB, NULL);
}

/* ---- How it grows ---- */

static void says_that_its_upstream_cannot_map(void **state)
{
  (void)state;
  assert_status(fixture_try("", "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'pinned']"), HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/growth");
  assert_message("write \"auto\"");
}

static void says_that_the_device_cannot_map(void **state)
{
  (void)state;
  assert_status(fixture_try("'virtual_memory': false", "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']"),
                HIPMM_E_NOT_SUPPORTED);
  assert_message("/stack/0/growth");
  assert_message("no virtual memory management");
}

static void falls_back_to_segments_by_itself(void **state)
{
  static const struct {
    const char *devices, *options, *graph, *logged;
  } cases[] = {{"1", "'virtual_memory': false", "'stack': ['pool', 'device']",
                "growth segments: this runtime or device has no virtual memory"},
               {"2", "'virtual_memory': false", "'stack': ['pool', 'device']",
                "growth segments: this runtime or device has no virtual memory"},
               {"2", "", "'stack': ['pool', 'pinned']", "growth segments: the upstream has no virtual memory"},
               {"1", "", "'stack': [{'type': 'pool', 'maximum_size': '1MiB'}, 'device']",
                "growth segments: maximum_size is less"},
               {"2", "", "'stack': ['pool', 'device']", "growth segments: this process has several devices"},
               {"1", "", "'stack': ['pool', 'device']", "growth mapped"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char devices[32];
    snprintf(devices, sizeof devices, "devices=%s", cases[i].devices);
    setenv("HIPMM_SOFTWARE", devices, 1); /* over the fixture's own */
    logged();
    fixture_start_with(cases[i].options, cases[i].graph);
    assert_contains(logged(), cases[i].logged);
    fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
    assert_ok(hipmm_finalize());
    unsetenv("HIPMM_SOFTWARE");
  }
}

/* ---- Chunks that take file descriptors ---- */

enum { FILES = 128, FILE_BLOCKS = 2048, FILE_BLOCK_BYTES = 3 * MIB };

/* The soft limit; returns the one before. */
static rlim_t limit_files(rlim_t files)
{
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlim_t before = limit.rlim_cur;
  limit.rlim_cur = files;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  return before;
}

/* 6 GiB in small blocks. Returns the number of chunks. */
static uint64_t use_many_blocks(const char *software_options)
{
  setenv("HIPMM_SOFTWARE", software_options, 1); /* over the fixture's own */
  start_with("", mapped, "");
  unsetenv("HIPMM_SOFTWARE");
  for (int i = 0; i < FILE_BLOCKS; i++) {
    blocks[i] = fixture_allocate(FILE_BLOCK_BYTES, NULL);
    fixture_fill((char *)blocks[i] + FILE_BLOCK_BYTES - 4 * KIB, (unsigned char)i, 4 * KIB);
  }
  uint64_t chunks = live_on(0);
  for (int i = 0; i < FILE_BLOCKS; i++) {
    assert_true(fixture_holds((char *)blocks[i] + FILE_BLOCK_BYTES - 4 * KIB, (unsigned char)i, 4 * KIB));
    fixture_free(blocks[i], FILE_BLOCK_BYTES, NULL);
  }
  trim(0);
  assert_int_equal(fixture_held_bytes(), 0);
  assert_int_equal(live_on(0), 0);
  assert_ok(hipmm_finalize());
  return chunks;
}

/* Without the descriptors there are more chunks than the process may have files. */
static void has_fewer_chunks_than_the_process_may_have_files(void **state)
{
  (void)state;
  needs_software();
  rlim_t before = limit_files(FILES);
  uint64_t chunks_without = use_many_blocks("memory=8GiB"), chunks = use_many_blocks("memory=8GiB,rocm_mapping=true");
  limit_files(before);
  assert_true(chunks_without > FILES);
  assert_in_range(chunks, 8, FILES / 2);
}

static void says_that_no_file_is_left_for_a_chunk(void **state)
{
  (void)state;
  void *ptr = NULL;
  needs_software();
  start_with("'rocm_mapping': true", mapped, "");
  int next = dup(STDERR_FILENO); /* the lowest that is not in use */
  close(next);
  rlim_t before = limit_files((rlim_t)next);
  enum hipmm_status status = hipmm_allocate(NULL, MIB, NULL, &ptr);
  limit_files(before);
  assert_status(status, HIPMM_E_OUT_OF_MEMORY);
  assert_message("files open that it may have, and each chunk of this runtime may take one");
  assert_message("raise the limit (ulimit -n)");
  ptr = fixture_allocate(MIB, NULL);
  fixture_free(ptr, MIB, NULL);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      BOTH(reaches_its_maximum_with_one_block),
      BOTH(reaches_its_maximum_after_an_initial_size),
      BOTH(reaches_a_maximum_that_it_began_with),
      BOTH(reaches_the_end_of_the_device),
      BOTH(says_that_its_maximum_is_reached),
      BOTH(serves_under_a_maximum_below_the_granule),
      ONCE(says_that_granules_are_larger_than_its_maximum),
      BOTH(begins_with_all_of_an_odd_maximum),
      BOTH(takes_its_initial_size_at_once),
      BOTH(takes_most_of_the_device_with_few_calls),
      BOTH(takes_a_share_of_the_device),
      BOTH(takes_nothing_at_first_without_an_initial_size),
      ONCE(refuses_a_maximum_below_the_initial_size),
      BOTH(recovers_from_an_exhausted_device),
      BOTH(synchronises_the_device_only_instead_of_growing),
      ONCE(moves_memory_under_a_block_that_no_hole_fits),
      ONCE(says_that_its_upstream_cannot_map),
      ONCE(says_that_the_device_cannot_map),
      ONCE(falls_back_to_segments_by_itself),
      ONCE(has_fewer_chunks_than_the_process_may_have_files),
      ONCE(says_that_no_file_is_left_for_a_chunk),
  };
  log_to_file("info");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
