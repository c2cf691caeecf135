/* SPDX-License-Identifier: MIT */
/* What every sub-allocator does with memory: what it gives, counts, refuses, shows, takes and gives back, over each
 * type. test_stream_reuse.c has what it does on streams. */
#include "../support/random.h"
#include "../support/sub_allocators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t rounded(const struct sub_allocator *row, size_t bytes)
{
  return (bytes + row->unit_bytes - 1) / row->unit_bytes * row->unit_bytes;
}

static bool is_of(const struct sub_allocator *row, const char *type)
{
  return !strcmp(row->type, type);
}

/* Over an allocator of the program's, called "late". */
static void begin_over_program(const char *runtime, const struct sub_allocator *row, const char *options)
{
  begin_over(runtime, row, options, AUTO, "{'type': 'callback', 'allocator': 'late'}");
}

/* ---- What it gives ---- */

static void takes_nothing_for_nothing(const struct sub_allocator *row)
{
  begin("", row, row->usual, AUTO);
  size_t before = fixture_held_bytes(); /* what its options have it take at once */
  assert_null(fixture_allocate(0, NULL));
  fixture_free(NULL, 0, NULL);
  fixture_free(NULL, 17, NULL);
  assert_int_equal(value_of(row, "live_count"), 0);
  assert_int_equal(fixture_held_bytes(), before);
  fixture_free(fixture_allocate(1, NULL), 1, NULL);
  assert_in_range(fixture_held_bytes(), 1, before + 2 * MIB);
}

static void gives_aligned_memory_that_keeps_its_data(const struct sub_allocator *row)
{
  static const size_t sizes[] = {1,        255,    256, 257,     4 * KIB, 64 * KIB - 1,
                                 64 * KIB, 700000, MIB, MIB + 3, 2 * MIB, 5 * MIB};
  size_t n = sizeof sizes / sizeof *sizes - (row->can & DIVIDES ? 0 : 3);
  begin("", row, row->usual, AUTO);
  for (int round = 0; round < 3; round++) {
    unsigned char *ptr[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < n; i++) {
      ptr[i] = fixture_allocate(sizes[i], NULL);
      assert_int_equal((uintptr_t)ptr[i] % HIPMM_ALIGNMENT, 0);
      fixture_fill(ptr[i], (unsigned char)(i + 1), sizes[i]);
    }
    for (size_t i = 0; i < n; i++) {
      assert_true(fixture_holds(ptr[i], (unsigned char)(i + 1), sizes[i]));
      fixture_free(ptr[i], i % 2 ? sizes[i] : 0, NULL);
    }
  }
}

static void aligns_up_to_4_mib(const struct sub_allocator *row)
{
  unsigned n = 0;
  size_t sizes[20];
  void *blocks[20], *ptr = NULL;
  begin("", row, row->usual, AUTO);
  for (size_t alignment = 256; alignment <= 4 * MIB; alignment *= 2, n++) {
    sizes[n] = alignment / 2 + 300;
    assert_ok(hipmm_allocate_aligned(NULL, sizes[n], alignment, NULL, &blocks[n]));
    assert_int_equal((uintptr_t)blocks[n] % alignment, 0);
    fixture_fill(blocks[n], (unsigned char)n, sizes[n]);
  }
  assert_status(hipmm_allocate_aligned(NULL, 256, 3, NULL, &ptr), HIPMM_E_ARGUMENT);
  assert_status(hipmm_allocate_aligned(NULL, 256, (size_t)1 << 60, NULL, &ptr), HIPMM_E_OUT_OF_MEMORY);
  assert_null(ptr);
  for (unsigned i = 0; i < n; i++) {
    assert_true(fixture_holds(blocks[i], (unsigned char)i, sizes[i]));
    assert_ok(hipmm_deallocate_aligned(NULL, blocks[i], sizes[i], (size_t)256 << i, NULL));
  }
  trim(row, 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

static void serves_what_can_be_had_and_refuses_the_rest(const struct sub_allocator *row)
{
  const struct {
    size_t bytes, alignment;
    enum hipmm_status status;
  } servings[] = {
      {0, 256, HIPMM_OK},
      {1, 256, HIPMM_OK},
      {257, 512, HIPMM_OK},
      {1000, 4096, HIPMM_OK},
      {row->full_bytes / 4, row->full_bytes / 2, HIPMM_OK},
      {row->full_bytes / 4 * 3, 256, HIPMM_OK},
      {row->full_bytes, 256, HIPMM_OK},
      {row->full_bytes + 1, 256, HIPMM_E_OUT_OF_MEMORY},
      {1, row->full_bytes * 8, row->can & GROWS ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK}, /* of addresses there are enough */
      {SIZE_MAX, 256, HIPMM_E_OUT_OF_MEMORY},
      {SIZE_MAX - 256, 256, HIPMM_E_OUT_OF_MEMORY},
      {1, SIZE_MAX / 2 + 1, HIPMM_E_OUT_OF_MEMORY},
  };
  begin("", row, row->full, AUTO);
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < sizeof servings / sizeof *servings; i++) {
      size_t bytes = servings[i].bytes, alignment = servings[i].alignment;
      void *ptr = NULL;
      assert_status(hipmm_allocate_aligned(NULL, bytes, alignment, NULL, &ptr), servings[i].status);
      assert_int_equal((uintptr_t)ptr % alignment, 0);
      assert_int_equal(ptr != NULL, !servings[i].status && bytes);
      assert_ok(hipmm_deallocate_aligned(NULL, ptr, bytes, alignment, NULL));
      assert_int_equal(value_of(row, "live_count"), 0);
      assert_int_equal(value_of(row, "live_bytes"), 0);
    }
  assert_int_equal(fixture_peak_held_bytes(), row->full_bytes);
}

/* First all memory in blocks of any size, then all of it in one block. */
static void becomes_one_block_again(const struct sub_allocator *row)
{
  enum { MOST = 20000 };
  static void *blocks[MOST];
  static size_t sizes[MOST];
  uint64_t random = 3;
  begin("", row, row->full, AUTO);
  for (int round = 0; round < 4; round++) {
    int n = 0;
    for (size_t sum = 0; n < MOST; n++) {
      sizes[n] = 1 + random_below(&random, random_below(&random, 4) ? 4 * KIB : 60 * KIB);
      sum += rounded(row, sizes[n]);
      if (sum > row->full_bytes / 2) break;
      blocks[n] = fixture_allocate(sizes[n], NULL);
    }
    assert_int_equal(value_of(row, "live_count"), n);
    for (int left = n; left > 0; left--) {
      int which = (int)random_below(&random, (uint64_t)left);
      fixture_free(blocks[which], sizes[which], NULL);
      blocks[which] = blocks[left - 1];
      sizes[which] = sizes[left - 1];
    }
    unsigned char *all = fixture_allocate(row->full_bytes, NULL);
    fixture_fill(all, (unsigned char)round, row->full_bytes);
    assert_true(fixture_holds(all, (unsigned char)round, row->full_bytes));
    fixture_free(all, row->full_bytes, NULL);
    assert_int_equal(value_of(row, "free_bytes"), row->full_bytes);
    if (row->can & HAS_FREE) assert_int_equal(value_of(row, "largest_free_bytes"), row->full_bytes);
    assert_int_equal(fixture_held_bytes(), row->full_bytes);
  }
  assert_int_equal(fixture_peak_held_bytes(), row->full_bytes);
}

static void changes_its_maximum(const struct sub_allocator *row)
{
  char path[60], options[100];
  void *ptrs[3], *none = NULL;
  snprintf(path, sizeof path, "devices/0/%s/maximum_size", row->type);
  snprintf(options, sizeof options, "%s, 'maximum_size': '16MiB'", is_of(row, "pool") ? row->usual : "");
  begin("", row, options, AUTO);
  for (int i = 0; i < 2; i++) ptrs[i] = fixture_allocate(8 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_ok(hipmm_set(path, "\"24MiB\""));
  ptrs[2] = fixture_allocate(8 * MIB, NULL);
  assert_ok(hipmm_set(path, "\"8MiB\"")); /* what is held stays */
  assert_int_equal(value_of(row, "reserved_bytes"), 24 * MIB);
  assert_status(hipmm_allocate(NULL, 256, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  for (int i = 0; i < 3; i++) fixture_free(ptrs[i], 8 * MIB, NULL);
  trim(row, 0);
  ptrs[0] = fixture_allocate(8 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 8 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  fixture_free(ptrs[0], 8 * MIB, NULL);
  assert_ok(hipmm_set(path, "unlimited"));
  fixture_free(fixture_allocate(20 * MIB, NULL), 20 * MIB, NULL);
}

/* ---- What it counts ---- */

struct expected {
  int64_t live_count, live_bytes, rounded_bytes;
};

static void assert_values(const struct sub_allocator *row, const struct expected *expected)
{
  assert_int_equal(value_of(row, "live_count"), expected->live_count);
  assert_int_equal(value_of(row, "live_bytes"), expected->live_bytes);
  assert_int_equal(value_of(row, "reserved_bytes"), fixture_held_bytes());
  if (!(row->can & HAS_FREE)) return;
  int64_t free_bytes = value_of(row, "free_bytes");
  assert_int_equal(free_bytes, value_of(row, "reserved_bytes") - expected->rounded_bytes);
  assert_in_range(value_of(row, "largest_free_bytes"), 0, free_bytes);
  if (!is_of(row, "pool")) return;
  assert_in_range(value_of(row, "cached_bytes"), 0, free_bytes);
  assert_in_range(value_of(row, "largest_free_bytes"), 0, free_bytes - value_of(row, "cached_bytes"));
}

static void counts_exactly(const struct sub_allocator *row)
{
  enum { BLOCKS = 64 };
  void *blocks[BLOCKS] = {NULL};
  size_t sizes[BLOCKS];
  struct expected expected = {0, 0, 0};
  uint64_t random = 9;
  begin("", row, row->usual, AUTO);
  assert_values(row, &expected);
  for (int i = 0; i < 2000; i++) {
    unsigned which = (unsigned)random_below(&random, BLOCKS);
    bool frees = blocks[which];
    if (frees) {
      fixture_free(blocks[which], random_below(&random, 2) * sizes[which], NULL);
      blocks[which] = NULL;
    } else {
      sizes[which] = 1 + random_below(&random, random_below(&random, 3) ? 4 * KIB : 300 * KIB);
      blocks[which] = fixture_allocate(sizes[which], NULL);
    }
    expected.live_count += frees ? -1 : 1;
    expected.live_bytes += (frees ? -1 : 1) * (int64_t)sizes[which];
    expected.rounded_bytes += (frees ? -1 : 1) * (int64_t)rounded(row, sizes[which]);
    assert_values(row, &expected);
    if (i % 500 == 499) trim(row, 0);
    assert_values(row, &expected);
  }
  if (!is_of(row, "binning")) assert_int_equal(value_of(row, "peak_reserved_bytes"), fixture_peak_held_bytes());
  if (row->can & HAS_WAITS) assert_int_equal(value_of(row, "stream_waits"), 0);
  assert_int_not_equal(fixture_value(row->type, "metadata_bytes"), 0);
  for (unsigned i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 0, NULL);
}

/* ---- Frees that are wrong ---- */

static void assert_refused(const void *ptr, size_t bytes, enum hipmm_status status, const char *message)
{
  assert_status(hipmm_deallocate(NULL, (void *)(uintptr_t)ptr, bytes, NULL), status);
  assert_message(message);
}

static void assert_foreign(const void *ptr)
{
  assert_refused(ptr, 0, HIPMM_E_POINTER, "not allocated here: it is foreign, or was freed before");
  assert_refused(ptr, 700, HIPMM_E_POINTER, "not allocated here: it is foreign, or was freed before");
}

static void refuses_pointers_that_are_not_its_own(const struct sub_allocator *row)
{
  static char global[1024];
  char local[1024];
  begin("", row, row->usual, AUTO);
  char *ptr = fixture_allocate(700, NULL), *large = fixture_allocate(MIB, NULL), *freed = fixture_allocate(MIB, NULL);
  fixture_free(freed, MIB, NULL);
  char *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_int_equal(munmap(unmapped, 4096), 0);
  void *heap = malloc(1024);
  const void *const foreign[] = {ptr + 1,
                                 ptr + 256,
                                 ptr - 256,
                                 ptr + 255,
                                 ptr + 64 * MIB,
                                 large + 4096,
                                 large + MIB,
                                 freed,
                                 freed + 256,
                                 local,
                                 global,
                                 heap,
                                 unmapped,
                                 (void *)1,
                                 (void *)256,
                                 (void *)(uintptr_t)(1ull << 47),
                                 (void *)(uintptr_t)(1ull << 50),
                                 (void *)(uintptr_t)(1ull << 63),
                                 (void *)(UINTPTR_MAX - 255),
                                 (void *)UINTPTR_MAX,
                                 (void *)(uintptr_t)assert_foreign};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) assert_foreign(foreign[i]);
  free(heap);
  assert_int_equal(value_of(row, "live_count"), 2);
  assert_int_equal(value_of(row, "live_bytes"), 700 + MIB);
  fixture_free(ptr, 700, NULL);
  fixture_free(large, MIB, NULL);
}

static void refuses_another_size(const struct sub_allocator *row)
{
  begin("", row, row->full, AUTO);
  const size_t sizes[] = {700, 100000, row->full_bytes - 256};
  for (int i = 0; i < 3; i++) {
    char text[100];
    void *ptr = fixture_allocate(sizes[i], NULL);
    snprintf(text, sizeof text, "was allocated with %zu bytes and cannot be freed with %zu", sizes[i], sizes[i] + 1);
    assert_refused(ptr, sizes[i] + 1, HIPMM_E_SIZE, text);
    assert_refused(ptr, sizes[i] - 1, HIPMM_E_SIZE, "cannot be freed with");
    assert_refused(ptr, 256, HIPMM_E_SIZE, "cannot be freed with 256");
    assert_refused(ptr, SIZE_MAX, HIPMM_E_SIZE, "cannot be freed with");
    assert_int_equal(value_of(row, "live_count"), 1);
    assert_int_equal(value_of(row, "live_bytes"), sizes[i]);
    fixture_free(ptr, i % 2 ? sizes[i] : 0, NULL);
    assert_foreign(ptr);
  }
}

/* Once it is in a cache, once it is with the other free memory, once it is part of a larger block, and once it is gone. */
static void refuses_a_second_free(const struct sub_allocator *row)
{
  begin("", row, row->usual, AUTO);
  void *small = fixture_allocate(700, NULL), *middle = fixture_allocate(100 * KIB, NULL),
       *large = fixture_allocate(MIB, NULL);
  fixture_free(small, 700, NULL);
  assert_foreign(small);
  fixture_free(large, MIB, NULL);
  assert_foreign(large);
  fixture_free(middle, 0, NULL);
  for (int round = 0; round < 2; round++) {
    assert_foreign(small);
    assert_foreign(middle);
    assert_foreign(large);
    assert_int_equal(value_of(row, "live_count"), 0);
    assert_int_equal(value_of(row, "live_bytes"), 0);
    trim(row, 0);
  }
  assert_int_equal(value_of(row, "reserved_bytes"), 0);
}

static void takes_a_block_back_once_however_many_free_it(const struct sub_allocator *row)
{
  enum { BLOCKS = 4000 };
  static void *blocks[BLOCKS];
  for (int round = 0; round < 2; round++) {
    begin("", row, row->many, AUTO);
    size_t bytes = round ? row->many_bytes : 0;
    for (size_t i = 0; i < BLOCKS; i++)
      blocks[i] = fixture_allocate(bytes ? bytes : (i % 100 + 1) * (row->many_bytes / 100), NULL);
    fixture_free_in_rivalry(blocks, BLOCKS, bytes);
    assert_int_equal(value_of(row, "live_count"), 0);
    assert_int_equal(value_of(row, "live_bytes"), 0);
    trim(row, 0);
    assert_int_equal(fixture_held_bytes(), 0);
    finish();
  }
}

static void keeps_devices_apart(const struct sub_allocator *row)
{
  struct hipmm_resource *tops[2];
  void *ptr[2] = {0};
  begin("", row, row->usual, AUTO);
  needs_devices(2);
  for (int i = 0; i < 2; i++) {
    assert_ok(hipmm_resource_get_for_device(i, &tops[i]));
    assert_ok(hipmm_allocate(tops[i], 1000, NULL, &ptr[i]));
  }
  for (int i = 0; i < 2; i++) assert_status(hipmm_deallocate(tops[i], ptr[1 - i], 1000, NULL), HIPMM_E_POINTER);
  assert_int_equal(value_of(row, "live_count"), 1);
  /* What a thread has cached of one is not for the other. */
  for (int i = 0; i < 2; i++) assert_ok(hipmm_deallocate(tops[i], ptr[i], 1000, NULL));
  for (int i = 0; i < 2; i++) {
    void *again = NULL;
    assert_ok(hipmm_allocate(tops[i], 1000, NULL, &again));
    assert_ptr_equal(again, ptr[i]);
    assert_ok(hipmm_deallocate(tops[i], again, 1000, NULL));
    assert_ok(hipmm_resource_trim(tops[i], 0));
    hipmm_resource_release(tops[i]);
  }
  size_t held = 1;
  assert_ok(hipmm_device_held_bytes(1, &held, NULL));
  assert_int_equal(held, 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

/* ---- What it shows ---- */

enum { MOST_SEEN = 4096, STATES = HIPMM_EXTENT_CACHED + 1 };

struct seen {
  size_t n, counts[STATES], live_bytes, rounded_bytes, unit_bytes;
  hipmm_stream_t live_on;
  bool is_wrong;
  struct hipmm_extent items[MOST_SEEN];
};

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct seen *seen = closure;
  seen->is_wrong |= extent->state >= STATES || seen->n == MOST_SEEN;
  if (seen->is_wrong) return;
  seen->items[seen->n++] = *extent;
  seen->counts[extent->state]++;
  seen->rounded_bytes += (extent->bytes + seen->unit_bytes - 1) / seen->unit_bytes * seen->unit_bytes;
  if (extent->state != HIPMM_EXTENT_LIVE) return;
  seen->live_bytes += extent->bytes;
  seen->live_on = extent->stream;
}

static int by_address(const void *a, const void *b)
{
  const struct hipmm_extent *x = a, *y = b;
  return x->ptr < y->ptr ? -1 : x->ptr > y->ptr;
}

/* Every byte that it holds once, and what is live as it was asked for. */
static const struct seen *look(const struct sub_allocator *row)
{
  static struct seen seen;
  const struct hipmm_resource *resource = resource_of(row);
  memset(&seen, 0, offsetof(struct seen, items));
  seen.unit_bytes = row->unit_bytes;
  assert_ok(resource->ops->visit(resource->self, see, &seen));
  assert_false(seen.is_wrong);
  assert_int_equal(seen.rounded_bytes, value_of(row, "reserved_bytes"));
  assert_int_equal(seen.live_bytes, value_of(row, "live_bytes"));
  assert_int_equal(seen.counts[HIPMM_EXTENT_LIVE], value_of(row, "live_count"));
  qsort(seen.items, seen.n, sizeof *seen.items, by_address);
  for (size_t i = 0; i < seen.n; i++) assert_true(seen.items[i].bytes > 0);
  for (size_t i = 1; i < seen.n; i++)
    assert_true((uintptr_t)seen.items[i - 1].ptr + seen.items[i - 1].bytes <= (uintptr_t)seen.items[i].ptr);
  return &seen;
}

static void shows_all_that_it_holds(const struct sub_allocator *row)
{
  enum { BLOCKS = 60, SIZES = 5 };
  static const size_t sizes[SIZES] = {100, 5000, 100000, MIB, 700};
  void *blocks[BLOCKS];
  begin("'scheduler': 'stepped'", row, row->usual, AUTO);
  hipmm_stream_t stream = fixture_stream();
  assert_ok(hipmm_stream_retain(0, stream));
  look(row);
  for (int i = 0; i < BLOCKS; i++) {
    size_t alignment = row->can & DIVIDES && i % 4 == 0 ? 4096 : HIPMM_ALIGNMENT;
    assert_ok(hipmm_allocate_aligned(NULL, sizes[i % SIZES], alignment, i % 7 ? NULL : stream, &blocks[i]));
  }
  assert_int_equal(look(row)->counts[HIPMM_EXTENT_LIVE], BLOCKS);
  for (int i = 0; i < BLOCKS; i++)
    if (i % 3) fixture_free(blocks[i], sizes[i % SIZES], i % 2 ? NULL : stream);
  assert_int_equal(look(row)->counts[HIPMM_EXTENT_LIVE], BLOCKS / 3);
  assert_int_not_equal(look(row)->counts[HIPMM_EXTENT_PENDING], 0);
  for (int i = 0; i < BLOCKS; i += 3) fixture_free(blocks[i], 0, NULL);
  assert_int_equal(look(row)->live_bytes, 0);
  void *last = fixture_allocate(1000, stream);
  assert_ptr_equal(look(row)->live_on, stream);
  fixture_free(last, 1000, stream);
  assert_ok(hipmm_stream_retire(0, stream));
  assert_ok(hipmm_stream_retire(0, NULL));
  fixture_drop_stream(stream);
  assert_int_equal(look(row)->counts[HIPMM_EXTENT_PENDING], 0);
  trim(row, 0);
  assert_int_equal(look(row)->n, 0);
}

/* What a free block was asked for with, and on which stream, is nobody's any more. */
static void knows_no_block_that_was_freed(const struct sub_allocator *row)
{
  struct hipmm_location location = {.usable_bytes = 0};
  struct hipmm_block block;
  begin("", row, row->usual, AUTO);
  struct hipmm_resource *top = resource_of(row);
  void *ptr = fixture_allocate(1000, NULL), *other = fixture_allocate(1000, NULL);
  assert_ok(top->ops->locate(top->self, ptr, &location));
  assert_ok(top->ops->find(top->self, ptr, &block));
  assert_int_equal(block.bytes, 1000);
  assert_in_range(location.usable_bytes, 1000, MIB);
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(top->ops->locate(top->self, ptr, &location), HIPMM_E_POINTER);
  assert_int_equal(top->ops->find(top->self, ptr, &block), HIPMM_E_POINTER);
  assert_int_equal(top->ops->locate(top->self, (char *)other + 256, &location), HIPMM_E_POINTER);
  assert_int_equal(top->ops->find(top->self, &block, &block), HIPMM_E_POINTER);
  fixture_free(other, 1000, NULL);
}

/* ---- What it gives back ---- */

static void gives_idle_memory_back_when_trimmed(const struct sub_allocator *row)
{
  enum { BLOCKS = 64, KEPT = 10 };
  void *blocks[BLOCKS];
  begin("", row, row->usual, AUTO);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(MIB, NULL);
  trim(row, 0);
  size_t all = fixture_held_bytes();
  assert_in_range(all, BLOCKS * MIB, 2 * BLOCKS * MIB);
  fixture_fill(blocks[0], 7, MIB);
  for (int i = 1; i < BLOCKS; i++) fixture_free(blocks[i], MIB, NULL);
  trim(row, KEPT * MIB);
  assert_in_range(fixture_held_bytes(), KEPT * MIB, KEPT * MIB + row->kept_bytes);
  trim(row, 0);
  assert_in_range(fixture_held_bytes(), MIB, MIB + row->kept_bytes);
  assert_true(fixture_holds(blocks[0], 7, MIB));
  for (int i = 1; i < BLOCKS; i++) blocks[i] = fixture_allocate(MIB, NULL);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], MIB, NULL);
  trim(row, KEPT * MIB);
  assert_in_range(fixture_held_bytes(), KEPT * MIB, all);
  trim(row, 0);
  assert_int_equal(fixture_held_bytes(), 0);
  assert_int_equal(value_of(row, "reserved_bytes"), 0);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
}

static void keeps_memory_that_the_upstream_does_not_take(const struct sub_allocator *row)
{
  needs_software();
  begin("", row, row->usual, AUTO);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  size_t held = fixture_held_bytes();
  fixture_fail_call("hipFree", 1, 0);
  assert_status(hipmm_resource_trim(resource_of(row), 0), HIPMM_E_HIP);
  assert_int_equal(fixture_held_bytes(), held);
  assert_int_equal(value_of(row, "reserved_bytes"), held);
  fixture_free(fixture_allocate(MIB, NULL), MIB, NULL);
  assert_int_equal(fixture_held_bytes(), held); /* it is in use again */
  trim(row, 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

/* The host memory that the records take, and no more when the same comes again. */
static void gives_records_back_when_trimmed(const struct sub_allocator *row)
{
  enum { BLOCKS = 50000, LITTLE = 64 * KIB };
  static void *blocks[BLOCKS];
  int64_t most = 0;
  begin("", row, row->many, AUTO);
  int64_t empty = fixture_value(row->type, "metadata_bytes");
  for (int time = 0; time < 2; time++) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(400, NULL);
    int64_t full = fixture_value(row->type, "metadata_bytes") - empty;
    assert_in_range(full, 24 * BLOCKS, 100 * BLOCKS);
    if (time) assert_in_range(full, 0, most + LITTLE);
    most = full;
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 400, NULL);
    trim(row, 0);
    assert_in_range(fixture_value(row->type, "metadata_bytes") - empty, 0, LITTLE);
    assert_foreign(blocks[BLOCKS / 2]);
  }
}

static void tells_what_is_left_allocated(const struct sub_allocator *row)
{
  static const int lives[] = {0, 1, 2, 100};
  char words[100];
  for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
    int live = lives[i];
    begin("", row, row->usual, AUTO);
    fixture_free(fixture_allocate(10000, NULL), 10000, NULL);
    fixture_free(fixture_allocate(1024, NULL), 1024, NULL); /* a cached block is counted with its last size */
    for (int k = 0; k < live; k++) fixture_allocate(1000, NULL);
    logged();
    assert_ok(hipmm_finalize());
    snprintf(words, sizeof words, "%s: destroyed with %d block%s ", row->type, live, live == 1 ? "" : "s");
    if (row->unit_bytes == 256) snprintf(words + strlen(words), 50, "(%d bytes) still allocated", live * 1000);
    const char *text = logged();
    if (live)
      assert_contains(text, words);
    else
      assert_null(strstr(text, "still allocated"));
    assert_int_equal(live_on_all_devices(), 0);
  }
}

/* ---- Where there is too little ---- */

/* The upstream of 4 MiB has 3 MiB in use. */
static void says_what_it_holds_when_the_upstream_has_no_more(const struct sub_allocator *row)
{
  static const struct {
    const char *type, *options, *message;
  } texts[] = {
      {"pool", ", 'growth': 'segments'", "; pool: cannot allocate 3 MiB: holds "},
      {"arena", "",
       "; arena: cannot allocate 3 MiB: 4 MiB are held, 3 MiB of it allocated, and the upstream does not have"},
      {"monotonic", "",
       "; monotonic: cannot allocate 3 MiB: 3 MiB are held, 3 MiB of it in use since the last rewind, and the "
       "upstream does not have"},
      {"fixed_size", ", 'block_size': '3MiB'", "; fixed_size: cannot allocate 3 MiB: 3 MiB are held in 1 block"},
      {"binning", ", 'bins': [{'size': '3MiB'}]", "; binning: cannot allocate 3 MiB: 3 MiB are held in 1 block"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    void *none = NULL;
    if (!is_of(row, texts[i].type)) continue;
    begin_over("", row, texts[i].options, AUTO, "{'type': 'limiting', 'limit': '4MiB'}, 'device'");
    unsigned char *ptr = fixture_allocate(3 * MIB, NULL);
    fixture_fill(ptr, 9, 3 * MIB);
    for (int attempt = 0; attempt < 2; attempt++) {
      assert_status(hipmm_allocate(NULL, 3 * MIB, NULL, &none), HIPMM_E_LIMIT);
      assert_null(none);
      assert_message("limiting: cannot allocate ");
      assert_message(texts[i].message);
    }
    assert_true(fixture_holds(ptr, 9, 3 * MIB));
    fixture_free(ptr, 3 * MIB, NULL);
    fixture_free(fixture_allocate(3 * MIB, NULL), 3 * MIB, NULL); /* the next attempt finds it */
  }
}

/* What it holds is told where memory is short, and of no other failure. */
static void leaves_other_failures_as_they_are(const struct sub_allocator *row)
{
  void *ptr = NULL;
  needs_software();
  begin("", row, row->usual, AUTO);
  fixture_fail_call(row->can & GROWS ? "hipMalloc" : "hipMemCreate", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, NULL, &ptr), HIPMM_E_HIP);
  assert_null(ptr);
  assert_null(strstr(hipmm_last_error_message(), "held"));
  assert_int_equal(value_of(row, "live_count"), 0);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void says_that_it_cannot_begin_with_so_much(const struct sub_allocator *row)
{
  char graph[200];
  needs_software();
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s'%s}, 'device']", row->type, row->begins_with_much);
  assert_status(fixture_try("", graph), HIPMM_E_OUT_OF_MEMORY);
  assert_message("/stack/0/");
  assert_message(row->refused);
  assert_int_equal(live_on_all_devices(), 0);
}

/* ---- Its beginning and its end ---- */

static unsigned gifts, freed_too_early;

static enum hipmm_status give(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)alignment, (void)stream;
  return fixture_hip()->Malloc(ptr_out, bytes) ? HIPMM_E_OUT_OF_MEMORY : HIPMM_OK;
}

static enum hipmm_status give_late(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  enum hipmm_status status = give(unused, bytes, alignment, stream, ptr_out);
  gifts++;
  return status || !fixture_hip()->MemsetAsync(*ptr_out, 1, bytes, stream) ? status : HIPMM_E_HIP;
}

static enum hipmm_status refuse(void *unused, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream, (void)ptr_out;
  return HIPMM_E_IO;
}

static void take_back(void *unused, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  (void)unused, (void)bytes, (void)alignment, (void)stream;
  if (software()->pending()) freed_too_early++;
  fixture_hip()->Free(ptr);
}

static void register_late(enum hipmm_status (*gives)(void *, size_t, size_t, hipmm_stream_t, void **))
{
  const struct hipmm_allocator allocator = {sizeof allocator, gives, take_back, NULL};
  assert_ok(hipmm_allocator_register("late", &allocator));
}

/* The upstream gets memory back that no work uses, whether or not its own free would wait. */
static void waits_for_work_at_its_end(const struct sub_allocator *row)
{
  needs_software();
  register_late(give);
  begin_over_program("'scheduler': 'stepped', 'seed': 5", row, row->usual);
  hipmm_stream_t stream = fixture_stream();
  use_and_free(1000, stream);
  freed_too_early = 0;
  assert_int_not_equal(software()->pending(), 0);
  assert_ok(hipmm_finalize());
  assert_int_equal(freed_too_early, 0);
  fixture_drop_stream(stream);
}

/* The upstream's memory is ready on one stream, and the sub-allocator gives it to any. */
static void waits_for_what_it_begins_with(const struct sub_allocator *row)
{
  needs_software();
  register_late(give_late);
  gifts = 0;
  begin_over_program("'scheduler': 'stepped', 'seed': 5", row, row->begins);
  assert_int_not_equal(gifts, 0);
  assert_int_equal(software()->pending(), 0);
}

/* To ask for less is no remedy where memory is not what is missing. */
static void says_why_it_cannot_begin(const struct sub_allocator *row)
{
  char graph[300];
  register_late(refuse);
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s'%s}, {'type': 'callback', 'allocator': 'late'}]", row->type,
           row->begins);
  assert_status(fixture_try("", graph), HIPMM_E_IO);
  assert_message("refused");
  assert_null(strstr(hipmm_last_error_message(), "ask for"));
}

/* ---- Threads, and failures ---- */

enum { THREADS = 4, ROUNDS = 60, HELD = 12 };

static int stream_of_thread(hipmm_stream_t *stream_out)
{
  static atomic_uint n_threads;
  *stream_out = PER_THREAD;
  if (atomic_fetch_add(&n_threads, 1) % 2) return 0; /* half of the threads on their default streams */
  return fixture_hip()->StreamCreateWithFlags(stream_out, HIPMM_HIP_STREAM_NON_BLOCKING) ||
         hipmm_stream_retain(0, *stream_out);
}

/* Marks its blocks: no other thread may have them meanwhile. */
static void mark_and_look(int *failures)
{
  void *blocks[HELD] = {NULL};
  hipmm_stream_t stream;
  if ((*failures += stream_of_thread(&stream))) return;
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned i = 0; i < HELD; i++) {
      *failures += hipmm_allocate(NULL, 300 + i * 300, stream, &blocks[i]) != HIPMM_OK;
      *failures += fixture_hip()->MemsetAsync(blocks[i], (int)round, 300 + i * 300, stream) != 0;
    }
    for (unsigned i = 0; i < HELD; i++) {
      unsigned char ends[2] = {0, 0};
      *failures += fixture_hip()->StreamSynchronize(stream) != 0;
      *failures += fixture_hip()->Memcpy(&ends[0], blocks[i], 1, 2) != 0;
      *failures += fixture_hip()->Memcpy(&ends[1], (char *)blocks[i] + 299 + i * 300, 1, 2) != 0;
      *failures += ends[0] != (round & 255) || ends[1] != (round & 255);
      *failures += hipmm_deallocate(NULL, blocks[i], round % 2 ? 300 + i * 300 : 0, stream) != HIPMM_OK;
    }
  }
  if (stream == PER_THREAD) return;
  *failures += hipmm_stream_retire(0, stream) != HIPMM_OK;
  *failures += fixture_hip()->StreamDestroy(stream) != 0;
}

static void see_any(void *disorder, const struct hipmm_extent *extent)
{
  *(int *)disorder += !extent->ptr || !extent->bytes || extent->state >= STATES;
}

static void serves_threads_while_it_is_trimmed_and_looked_at(const struct sub_allocator *row)
{
  begin("", row, row->random, AUTO);
  const struct hipmm_resource *resource = resource_of(row);
  fixture_start_threads(THREADS, mark_and_look);
  for (int i = 0; i < 50; i++) {
    int disorder = 0;
    trim(row, 0);
    assert_ok(resource->ops->visit(resource->self, see_any, &disorder));
    assert_int_equal(disorder, 0);
  }
  fixture_join_threads();
  assert_int_equal(value_of(row, "live_count"), 0);
  trim(row, 0);
  assert_int_equal(fixture_held_bytes(), 0);
}

static void use_each_op(void)
{
  static const size_t sizes[] = {100, 60000, MIB, 600000};
  enum { SIZES = 4 };
  struct hipmm_resource *resource = NULL;
  hipmm_stream_t stream = NULL;
  void *ptrs[SIZES] = {NULL};
  if (hipmm_resource_get_for_device(0, &resource)) return;
  fixture_hip()->StreamCreateWithFlags(&stream, HIPMM_HIP_STREAM_NON_BLOCKING);
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < SIZES; i++)
      if (hipmm_allocate(resource, sizes[i], i % 2 ? stream : NULL, &ptrs[i])) ptrs[i] = NULL;
    for (size_t i = (size_t)round; i < SIZES; i++) hipmm_deallocate(resource, ptrs[i], 0, i % 2 ? NULL : stream);
    hipmm_resource_trim(resource, round ? 0 : MIB);
    if (!round) ptrs[0] = NULL;
  }
  hipmm_stream_retire(0, stream);
  if (stream) fixture_hip()->StreamDestroy(stream);
  hipmm_resource_perform(resource, "release"); /* of monotonic; to the others it is unknown */
  hipmm_resource_release(resource);
}

static void loses_nothing_whatever_call_fails(const struct sub_allocator *row)
{
  char graph[300];
  snprintf(graph, sizeof graph, "'stack': [{'type': '%s', 'record': 'on_free'%s}, 'device']", row->type, row->begins);
  assert_true(fixture_fail_each_call("", graph, use_each_op) > 10);
}

static int teardown(void **state)
{
  int failed = fixture_teardown(state);
  hipmm_allocator_register("late", NULL);
  return failed;
}

int main(void)
{
  static const struct sub_allocator_case cases[] = {
      EACH(takes_nothing_for_nothing, WHOLE),
      EACH(gives_aligned_memory_that_keeps_its_data, WHOLE),
      EACH(aligns_up_to_4_mib, WHOLE | DIVIDES),
      EACH(serves_what_can_be_had_and_refuses_the_rest, WHOLE | DIVIDES),
      EACH(becomes_one_block_again, WHOLE | DIVIDES),
      EACH(changes_its_maximum, WHOLE | DIVIDES),
      EACH(counts_exactly, WHOLE),
      EACH(refuses_pointers_that_are_not_its_own, WHOLE),
      EACH(refuses_another_size, WHOLE),
      EACH(refuses_a_second_free, WHOLE),
      EACH(takes_a_block_back_once_however_many_free_it, WHOLE),
      EACH(keeps_devices_apart, WHOLE),
      EACH(shows_all_that_it_holds, WHOLE),
      EACH(knows_no_block_that_was_freed, WHOLE | REUSES),
      EACH(gives_idle_memory_back_when_trimmed, WHOLE),
      EACH(keeps_memory_that_the_upstream_does_not_take, WHOLE | GROWS),
      EACH(gives_records_back_when_trimmed, WHOLE | FORGETS),
      EACH(tells_what_is_left_allocated, WHOLE),
      EACH(says_what_it_holds_when_the_upstream_has_no_more, WHOLE),
      EACH(leaves_other_failures_as_they_are, WHOLE),
      EACH(says_that_it_cannot_begin_with_so_much, WHOLE),
      EACH(waits_for_work_at_its_end, WHOLE | GROWS),
      EACH(waits_for_what_it_begins_with, WHOLE | GROWS),
      EACH(says_why_it_cannot_begin, WHOLE | GROWS),
      EACH(serves_threads_while_it_is_trimmed_and_looked_at, WHOLE),
      EACH(loses_nothing_whatever_call_fails, WHOLE),
  };
  log_to_file("warning");
  return sub_allocators_run("sub-allocators", cases, sizeof cases / sizeof *cases, fixture_setup, teardown);
}
