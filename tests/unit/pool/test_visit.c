/* SPDX-License-Identifier: MIT */
/* Tests of what a pool shows of itself, and of changing its maximum: every byte that it holds is seen once, and in the
 * state in which it is. */
#include "../../support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

struct seen {
  struct hipmm_extent items[MOST];
  unsigned n;
  uint64_t bytes[HIPMM_EXTENT_CACHED + 1]; /* by state, live ones rounded up */
};

static struct seen seen;

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct seen *all = closure;
  if (all->n < MOST) all->items[all->n] = *extent;
  all->n++;
  all->bytes[extent->state % (HIPMM_EXTENT_CACHED + 1)] += (extent->bytes + 255) / 256 * 256;
}

static void visit(void)
{
  const struct hipmm_resource *pool = fixture_resource("pool");
  seen = (struct seen){.n = 0};
  assert_ok(pool->ops->visit(pool->self, see, &seen));
  assert_in_range(seen.n, 0, MOST);
}

static const struct hipmm_extent *extent_at(const void *ptr)
{
  for (unsigned i = 0; i < seen.n; i++)
    if (seen.items[i].ptr == ptr) return &seen.items[i];
  return NULL;
}

static int by_address(const void *a, const void *b)
{
  const struct hipmm_extent *x = a, *y = b;
  return x->ptr < y->ptr ? -1 : x->ptr > y->ptr;
}

static void assert_all_is_seen_once(void)
{
  uint64_t sum = 0;
  visit();
  for (unsigned state = 0; state <= HIPMM_EXTENT_CACHED; state++) sum += seen.bytes[state];
  assert_int_equal(sum, fixture_value("pool", "reserved_bytes"));
  assert_int_equal(seen.bytes[HIPMM_EXTENT_CACHED], fixture_value("pool", "cached_bytes"));
  qsort(seen.items, seen.n, sizeof *seen.items, by_address);
  for (unsigned i = 0; i < seen.n; i++) assert_true(seen.items[i].bytes > 0);
  for (unsigned i = 1; i < seen.n; i++)
    assert_true((uintptr_t)seen.items[i - 1].ptr + seen.items[i - 1].bytes <= (uintptr_t)seen.items[i].ptr);
}

static void assert_is(const void *ptr, size_t bytes, enum hipmm_extent_state state, hipmm_stream_t stream)
{
  const struct hipmm_extent *extent = extent_at(ptr);
  assert_non_null(extent);
  assert_int_equal(extent->state, state);
  assert_int_equal(extent->bytes, bytes);
  assert_ptr_equal(extent->stream, stream);
}

static void shows_each_block_in_its_state(const char *growth)
{
  char graph[100];
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s'}, 'device']", growth);
  fixture_start_with("'scheduler': 'stepped'", graph);
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retain(0, stream));
  visit();
  assert_int_equal(seen.n, 0);
  void *small = fixture_allocate(1000, stream), *kept = fixture_allocate(3 * MIB + 1, stream),
       *large = fixture_allocate(5 * MIB, NULL);
  void *end = fixture_allocate(100000, NULL);
  assert_all_is_seen_once();
  assert_is(small, 1000, HIPMM_EXTENT_LIVE, stream);
  assert_is(kept, 3 * MIB + 1, HIPMM_EXTENT_LIVE, stream);
  assert_is(large, 5 * MIB, HIPMM_EXTENT_LIVE, NULL);
  fixture_free(small, 1000, stream);
  fixture_free(large, 5 * MIB, NULL);
  assert_all_is_seen_once();
  assert_is(small, 1024, HIPMM_EXTENT_CACHED, stream);
  assert_int_equal(seen.bytes[HIPMM_EXTENT_LIVE], 3 * MIB + 256 + 100096);
  assert_true(seen.bytes[HIPMM_EXTENT_PENDING] >= 5 * MIB);
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
  assert_all_is_seen_once();
  assert_int_equal(seen.bytes[HIPMM_EXTENT_PENDING] + seen.bytes[HIPMM_EXTENT_CACHED], 0);
  fixture_free(kept, 3 * MIB + 1, stream);
  fixture_free(end, 100000, NULL);
  fixture_drop_stream(stream);
  assert_all_is_seen_once();
}

static void shows_each_block_in_its_state_mapped(void **state)
{
  (void)state;
  shows_each_block_in_its_state("mapped");
}

static void shows_each_block_in_its_state_in_segments(void **state)
{
  (void)state;
  shows_each_block_in_its_state("segments");
}

static void changes_its_maximum(const char *growth)
{
  char graph[100];
  void *ptrs[3], *none = NULL;
  snprintf(graph, sizeof graph, "'stack': [{'type': 'pool', 'growth': '%s', 'maximum_size': '16MiB'}, 'device']",
           growth);
  fixture_start(graph);
  for (int i = 0; i < 2; i++) ptrs[i] = fixture_allocate(8 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_set("devices/0/pool/maximum_size", "\"24MiB\""));
  ptrs[2] = fixture_allocate(8 * MIB, NULL);
  assert_ok(hipmm_set("devices/0/pool/maximum_size", "\"8MiB\"")); /* what is held stays */
  assert_int_equal(fixture_value("pool", "reserved_bytes"), 24 * MIB);
  assert_status(hipmm_allocate(NULL, 256, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  for (int i = 0; i < 3; i++) fixture_free(ptrs[i], 8 * MIB, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("pool"), 0));
  ptrs[0] = fixture_allocate(8 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  fixture_free(ptrs[0], 8 * MIB, NULL);
}

static void changes_its_maximum_mapped(void **state)
{
  (void)state;
  changes_its_maximum("mapped");
  assert_status(hipmm_set("devices/0/pool/maximum_size", "4096"), HIPMM_E_CONFIG);
  assert_non_null(strstr(hipmm_last_error_message(), "smallest chunk"));
  fixture_free(fixture_allocate(8 * MIB, NULL), 8 * MIB, NULL); /* the maximum is what it was */
}

static void changes_its_maximum_in_segments(void **state)
{
  (void)state;
  changes_its_maximum("segments");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(shows_each_block_in_its_state_mapped),
      TEST(shows_each_block_in_its_state_in_segments),
      TEST(changes_its_maximum_mapped),
      TEST(changes_its_maximum_in_segments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
