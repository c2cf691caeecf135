/* SPDX-License-Identifier: MIT */
/* A sort of two tables, and their join, with three times the memory of the device: 48 MiB on 16 MiB, or OUT_OF_CORE_MIB on a third of
 * that. The tables are chunks in movable buffers, at most three of which are pinned at a time. All keys are checked, and the bytes
 * that were moved are printed. */
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <hipmm/spill.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_KEYS = 1 << 18, CHUNK_BYTES = CHUNK_KEYS * 8, MOST_CHUNKS = 4096 };

/* A table, or a sorted part of it while it is merged. */
struct run {
  struct hipmm_movable *chunks[MOST_CHUNKS];
  size_t n;
};

/* One after the other through the chunks of a run. */
struct cursor {
  struct run *run;
  size_t chunk, key, end; /* end: of the chunks */
  uint64_t *keys;         /* of the pinned chunk; NULL: none is pinned */
};

static uint64_t *pin(struct hipmm_movable *movable)
{
  void *ptr = NULL;
  assert_ok(hipmm_movable_pin(movable, NULL, &ptr));
  assert_int_equal(hip_table()->StreamSynchronize(NULL), 0); /* the host is the one that works */
  return ptr;
}

static void unpin(struct hipmm_movable *movable)
{
  assert_ok(hipmm_movable_unpin(movable, NULL));
}

/* NULL at the end. */
static const uint64_t *look(struct cursor *cursor)
{
  if (!cursor->keys && cursor->chunk < cursor->end) cursor->keys = pin(cursor->run->chunks[cursor->chunk]);
  return cursor->keys ? cursor->keys + cursor->key : NULL;
}

static void advance(struct cursor *cursor)
{
  if (++cursor->key < CHUNK_KEYS) return;
  unpin(cursor->run->chunks[cursor->chunk++]);
  cursor->keys = NULL;
  cursor->key = 0;
}

/* Takes keys one to one to others that look random. */
static uint64_t mix(uint64_t key)
{
  key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9u;
  key = (key ^ key >> 27) * 0x94D049BB133111EBu;
  return key ^ key >> 31;
}

static int compare(const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

/* Sorted chunks of the keys 0, step, 2 * step, ... */
static void make(struct run *run, size_t n, uint64_t step)
{
  for (run->n = 0; run->n < n; run->n++) {
    assert_ok(hipmm_movable_create(NULL, CHUNK_BYTES, &run->chunks[run->n]));
    uint64_t *keys = pin(run->chunks[run->n]);
    for (uint64_t i = 0; i < CHUNK_KEYS; i++) keys[i] = mix((run->n * CHUNK_KEYS + i) * step);
    qsort(keys, CHUNK_KEYS, sizeof *keys, compare);
    unpin(run->chunks[run->n]);
  }
}

/* Appends the chunks [first, middle) and [middle, end), merged, and destroys them. */
static void merge(struct run *from, size_t first, size_t middle, size_t end, struct run *to)
{
  struct cursor left = {.run = from, .chunk = first, .end = middle}, right = {.run = from, .chunk = middle, .end = end};
  for (size_t n = first; n < end; n++) {
    struct hipmm_movable **chunk = &to->chunks[to->n++];
    assert_ok(hipmm_movable_create(NULL, CHUNK_BYTES, chunk));
    uint64_t *keys = pin(*chunk);
    for (size_t i = 0; i < CHUNK_KEYS; i++) {
      const uint64_t *a = look(&left), *b = look(&right);
      bool is_left = a && (!b || *a <= *b);
      keys[i] = is_left ? *a : *b;
      advance(is_left ? &left : &right);
    }
    unpin(*chunk);
  }
  for (size_t i = first; i < end; i++) assert_ok(hipmm_movable_destroy(from->chunks[i]));
}

static void sort(struct run *run)
{
  static struct run merged;
  for (size_t width = 1; width < run->n; width *= 2) {
    merged.n = 0;
    for (size_t first = 0; first < run->n; first += 2 * width) {
      size_t middle = first + width < run->n ? first + width : run->n;
      merge(run, first, middle, middle + width < run->n ? middle + width : run->n, &merged);
    }
    memcpy(run, &merged, sizeof merged);
  }
}

/* The keys are as many as there were, in order and all different; and their sum is right. */
static void check(struct run *run, uint64_t step)
{
  struct cursor cursor = {.run = run, .end = run->n};
  uint64_t n = 0, sum = 0, expected = 0, last = 0;
  bool is_sorted = true;
  for (const uint64_t *key; (key = look(&cursor)); advance(&cursor)) {
    is_sorted &= !n || *key > last;
    last = *key;
    sum += last;
    expected += mix(n++ * step);
  }
  assert_true(is_sorted);
  assert_int_equal(n, run->n * CHUNK_KEYS);
  assert_true(sum == expected);
}

/* How many keys are in both. */
static uint64_t join(struct run *left_run, struct run *right_run)
{
  struct cursor left = {.run = left_run, .end = left_run->n}, right = {.run = right_run, .end = right_run->n};
  uint64_t matches = 0;
  const uint64_t *a, *b;
  while ((a = look(&left)) && (b = look(&right))) {
    uint64_t left_key = *a, right_key = *b;
    matches += left_key == right_key;
    if (left_key <= right_key) advance(&left);
    if (right_key <= left_key) advance(&right);
  }
  if (left.keys) unpin(left_run->chunks[left.chunk]);
  if (right.keys) unpin(right_run->chunks[right.chunk]);
  return matches;
}

static void sorts_and_joins_three_times_the_memory(void **state)
{
  static struct run left, right;
  static const char *const names[] = {"spills", "restores", "spilled_bytes", "restored_bytes", "file_bytes"};
  const char *given = getenv("OUT_OF_CORE_MIB");
  size_t data_mib = given ? strtoul(given, NULL, 10) : 48, n = data_mib * MIB / CHUNK_BYTES / 2;
  char graph[600];
  (void)state;
  assert_in_range(n, 2, MOST_CHUNKS);
  snprintf(graph, sizeof graph,
           "{\"runtime\": {\"type\": \"software\", \"devices\": 1, \"memory\": \"%zuMiB\"}, \"resources\": {"
           "\"movable\": {\"type\": \"spilling\", \"upstream\": \"device\", \"pinned\": \"host\", \"pinned_limit\": "
           "\"%zuMiB\", \"folder\": \".\"}, \"device\": {\"type\": \"device\"}, \"host\": {\"type\": \"pinned\"}}, "
           "\"devices\": {\"default\": \"movable\"}}",
           data_mib / 3, data_mib / 3);
  assert_ok(hipmm_init_from_string(graph));
  make(&left, n, 1);
  make(&right, n, 2);
  sort(&left);
  sort(&right);
  check(&left, 1);
  check(&right, 2);
  assert_int_equal(join(&left, &right), (n * CHUNK_KEYS + 1) / 2);
  struct hipmm_resource *resource = NULL;
  assert_ok(hipmm_resource_get_by_name(0, "movable", &resource));
  assert_true(resource_value(resource, "device_bytes") <= (int64_t)(data_mib / 3 * MIB));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    print_message("# %zu MiB: %s %" PRId64 "\n", data_mib, names[i], resource_value(resource, names[i]));
  assert_true(resource_value(resource, "spilled_bytes") > (int64_t)(data_mib * MIB));
  for (size_t i = 0; i < n; i++) {
    assert_ok(hipmm_movable_destroy(left.chunks[i]));
    assert_ok(hipmm_movable_destroy(right.chunks[i]));
  }
  hipmm_resource_release(resource);
  assert_ok(hipmm_finalize());
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(sorts_and_joins_three_times_the_memory)};
  return cmocka_run_group_tests_name("out of core", tests, NULL, NULL);
}
