/* SPDX-License-Identifier: MIT */
/* Tests of aligned: addresses, what the upstream is asked for, and frees of all kinds. */
#include "../support/behaviour.h"

#include <stdio.h>
#include <string.h>

static const char to_4096[] = "'stack': [{'type': 'aligned', 'alignment': 4096}, 'device']";

static void *allocate(size_t bytes, size_t alignment)
{
  void *ptr = NULL;
  assert_ok(hipmm_allocate_aligned(NULL, bytes, alignment, NULL, &ptr));
  return ptr;
}

/* Over an upstream that hands out all sorts of addresses. */
static void aligns_to_what_it_is_told_to(void **state)
{
  (void)state;
  for (size_t alignment = 256; alignment <= 4 * MIB; alignment *= 4) {
    char graph[200];
    void *ptrs[20];
    snprintf(graph, sizeof graph, "'stack': [{'type': 'aligned', 'alignment': %zu}, 'pool', 'device']", alignment);
    fixture_start(graph);
    for (size_t i = 0; i < 10; i++) {
      ptrs[i] = fixture_allocate(i * 777 + 1, NULL);
      assert_int_equal((uintptr_t)ptrs[i] % alignment, 0);
      fixture_fill(ptrs[i], (unsigned char)i, i * 777 + 1);
    }
    for (size_t i = 0; i < 10; i++) {
      assert_true(fixture_holds(ptrs[i], (unsigned char)i, i * 777 + 1));
      fixture_free(ptrs[i], i % 2 ? 0 : i * 777 + 1, NULL);
    }
    assert_ok(hipmm_finalize());
  }
}

static void asks_for_as_much_as_rmm(void **state)
{
  static const struct {
    size_t bytes, alignment, wanted;
  } rows[] = {{1, 256, 4096 + 3840},     {4096, 256, 4096 + 3840},   {4097, 256, 8192 + 3840}, {1, 4096, 4096 + 3840},
              {1000, 8192, 8192 + 7936}, {100000, 1, 102400 + 3840}, {1, MIB, 2 * MIB - 256}};
  (void)state;
  fixture_start(to_4096);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    void *ptr = allocate(rows[i].bytes, rows[i].alignment);
    assert_int_equal(fixture_held_bytes(), rows[i].wanted);
    assert_int_equal((uintptr_t)ptr % (rows[i].alignment < 4096 ? 4096 : rows[i].alignment), 0);
    assert_ok(hipmm_deallocate_aligned(NULL, ptr, rows[i].bytes, rows[i].alignment, NULL));
    assert_int_equal(fixture_held_bytes(), 0);
  }
}

static void leaves_small_ones_alone(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'aligned', 'alignment': 4096, 'alignment_threshold': 2000}, 'device']");
  void *below = fixture_allocate(1999, NULL);
  assert_int_equal(fixture_held_bytes(), 1999);
  void *above = fixture_allocate(2000, NULL);
  assert_int_equal(fixture_held_bytes(), 1999 + 4096 + 3840);
  assert_int_equal((uintptr_t)above % 4096, 0);
  void *asked = allocate(100, 65536);
  assert_int_equal((uintptr_t)asked % 65536, 0); /* by the caller */
  fixture_free(below, 0, NULL);
  fixture_free(above, 0, NULL);
  fixture_free(asked, 0, NULL);
  assert_int_equal(fixture_held_bytes(), 0);
}

static void gives_records_back_when_trimmed(void **state)
{
  enum { BLOCKS = 20000, KEPT = 10 };
  static void *ptrs[BLOCKS];
  (void)state;
  fixture_start("'stack': ['aligned', 'pool', 'device']");
  int64_t before = fixture_value("aligned", "metadata_bytes");
  for (int i = 0; i < BLOCKS; i++) ptrs[i] = fixture_allocate(300, NULL);
  int64_t full = fixture_value("aligned", "metadata_bytes");
  for (int i = KEPT; i < BLOCKS; i++) fixture_free(ptrs[i], 300, NULL);
  assert_ok(hipmm_resource_trim(fixture_resource("aligned"), 0));
  assert_in_range(fixture_value("aligned", "metadata_bytes"), 1, before + full / 16);
  assert_int_equal(fixture_value("aligned", "allocated_count"), KEPT);
  for (int i = 0; i < KEPT; i++) fixture_free(ptrs[i], 300, NULL);
}

static void passes_through_what_needs_nothing(void **state)
{
  (void)state;
  fixture_start("'stack': ['aligned', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  assert_int_equal(fixture_held_bytes(), 1000);
  fixture_free(ptr, 1000, NULL);
}

static void finds_blocks_by_their_address(void **state)
{
  struct hipmm_block block = {0};
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'aligned', 'alignment': '64KiB'}, 'pool', 'device']");
  void *ptr = fixture_allocate(1000, NULL);
  struct hipmm_resource *aligned = fixture_resource("aligned");
  assert_ok(aligned->ops->find(aligned->self, ptr, &block));
  assert_ptr_equal(block.ptr, ptr);
  assert_int_equal(block.bytes, 1000);
  assert_status(aligned->ops->find(aligned->self, (char *)ptr + 256, &block), HIPMM_E_POINTER);
  assert_int_equal(fixture_value("aligned", "allocated_bytes"), 1000);
  assert_int_equal(fixture_value("aligned", "allocated_count"), 1);
  fixture_free(ptr, 0, NULL);
  assert_int_equal(fixture_value("statistics", "current_bytes"), 0);
}

static void remember(void *closure, const struct hipmm_extent *extent)
{
  *(const void **)closure = extent->ptr;
}

/* The upstream would take its own block's start: it must not get that far. */
static void refuses_the_upstreams_addresses(void **state)
{
  void *start = NULL, *ptr = NULL, *filler[16];
  int n = 0;
  (void)state;
  fixture_start("'stack': [{'type': 'aligned', 'alignment': '64KiB'}, 'tracking', 'pool', 'device']");
  struct hipmm_resource *tracking = fixture_resource("tracking"), *below = fixture_resource("pool");
  while (ptr == start) { /* until the upstream's block does not happen to be aligned */
    if (ptr) fixture_free(ptr, 1000, NULL);
    assert_in_range(n, 0, 15);
    assert_ok(hipmm_allocate(below, 256, NULL, &filler[n++]));
    ptr = fixture_allocate(1000, NULL);
    assert_ok(tracking->ops->visit(tracking->self, remember, &start));
  }
  assert_status(hipmm_deallocate(NULL, start, 131072 - 256, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, start, 0, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 131072 - 256, NULL), HIPMM_E_SIZE);
  fixture_free(ptr, 1000, NULL);
  while (n) assert_ok(hipmm_deallocate(below, filler[--n], 256, NULL));
}

static void refuses_what_would_overflow(void **state)
{
  static const size_t alignments[] = {256, 4096, MIB, 1ull << 40, 1ull << 62, 1ull << 63};
  void *ptr = NULL;
  (void)state;
  fixture_start(to_4096);
  for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
    for (size_t less = 0; less < 10000; less += 100)
      assert_status(hipmm_allocate_aligned(NULL, SIZE_MAX - less, alignments[i], NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1, 1ull << 63, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1, 3000, NULL, &ptr), HIPMM_E_ARGUMENT);
}

static void keeps_what_the_upstream_does_not_take_back(void **state)
{
  (void)state;
  fixture_start(to_4096);
  void *ptr = fixture_allocate(1000, NULL);
  fixture_fail_call("hipFree", 1, 0);
  assert_status(hipmm_deallocate(NULL, ptr, 1000, NULL), HIPMM_E_HIP);
  fixture_free(ptr, 1000, NULL);
}

static void takes_new_options_while_in_use(void **state)
{
  (void)state;
  fixture_start(to_4096);
  void *before = fixture_allocate(1000, NULL);
  assert_ok(hipmm_set("devices/0/aligned/alignment", "64KiB"));
  void *after = fixture_allocate(1000, NULL);
  assert_int_equal((uintptr_t)after % 65536, 0);
  assert_status(hipmm_set("devices/0/aligned/alignment", "3000"), HIPMM_E_CONFIG);
  assert_message("3000 is not a power of two");
  void *still = fixture_allocate(1000, NULL);
  assert_int_equal((uintptr_t)still % 65536, 0);
  fixture_free(before, 1000, NULL);
  fixture_free(after, 1000, NULL);
  fixture_free(still, 0, NULL);
}

static void refuses_bad_options(void **state)
{
  static const struct fixture_refusal bad[] = {
      {"'alignment': 300", "/stack/0/alignment: 300 is not a power of two"},
      {"'alignment': 128", "/stack/0/alignment: 128 is too little"},
      {"'alignment': 0", "/stack/0/alignment: 0 is too little"},
      {"'alignment': '3MiB'", "/stack/0/alignment: 3145728 is not a power of two"},
      {"'alignment': '2048GiB'", "/stack/0/alignment: 2048GiB is too much"},
      {"'alignment_threshold': -1", "/stack/0/alignment_threshold: -1 is not"}};
  (void)state;
  fixture_refuses("aligned", bad, sizeof bad / sizeof *bad);
}

static void use_all(void)
{
  void *ptr = NULL;
  for (size_t alignment = 256; alignment <= 65536; alignment *= 16)
    if (!hipmm_allocate_aligned(NULL, 1000, alignment, NULL, &ptr)) hipmm_deallocate(NULL, ptr, 1000, NULL);
}

static void loses_nothing_whatever_fails(void **state)
{
  (void)state;
  assert_in_range(fixture_fail_each_call("", to_4096, use_all), 5, 10000);
}

static const struct behaviour_stack stacks[] = {
    {"on a device", "'scheduler': 'threads'", "'stack': [{'type': 'aligned', 'alignment': 512}, 'device']", true},
    {"on a pool", "'scheduler': 'stepped', 'seed': 2",
     "'stack': [{'type': 'aligned', 'alignment': '8KiB', 'alignment_threshold': 300}, 'pool', 'device']", true},
    {"on async", "'scheduler': 'stepped', 'seed': 4", "'stack': ['aligned', 'async']", true},
};

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest others[] = {
    TEST(aligns_to_what_it_is_told_to),
    TEST(asks_for_as_much_as_rmm),
    TEST(leaves_small_ones_alone),
    TEST(gives_records_back_when_trimmed),
    TEST(passes_through_what_needs_nothing),
    TEST(finds_blocks_by_their_address),
    TEST(refuses_the_upstreams_addresses),
    TEST(refuses_what_would_overflow),
    TEST(keeps_what_the_upstream_does_not_take_back),
    TEST(takes_new_options_while_in_use),
    TEST(refuses_bad_options),
    TEST(loses_nothing_whatever_fails),
};

int main(void)
{
  log_to_file("error");
  return behaviour_run("aligned", others, sizeof others / sizeof *others, stacks, sizeof stacks / sizeof *stacks);
}
