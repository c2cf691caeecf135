/* SPDX-License-Identifier: MIT */
/* Tests of monotonic: memory is allocated from front to back, from the front again when the last block is freed, and in
 * the order of the streams that used it. test_sub_allocators.c and test_stream_reuse.c have what it shares with the other
 * sub-allocators. */
#include "../../plugins/monotonic/monotonic.h"
#include "../support/fixture.h"

static const char plain[] = "'stack': ['monotonic', 'device']";

/* ---- What it gives out ---- */

static void gives_memory_out_from_the_front_to_the_back(void **state)
{
  static const struct {
    size_t bytes, alignment;
  } blocks[] = {{1, 256}, {256, 256}, {257, 256}, {0, 256}, {1000, 4096}, {1, 256}, {100, 65536}, {1, 256}};
  void *ptrs[8];
  uintptr_t first = 0, end = 0; /* of all so far */
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < 8; i++) {
    assert_ok(hipmm_allocate_aligned(NULL, blocks[i].bytes, blocks[i].alignment, NULL, &ptrs[i]));
    uintptr_t start = (uintptr_t)ptrs[i];
    if (!i) first = end = start;
    if (blocks[i].bytes)
      assert_int_equal(start, (end + blocks[i].alignment - 1) & ~(blocks[i].alignment - 1));
    else
      assert_null(ptrs[i]);
    if (blocks[i].bytes) end = start + (blocks[i].bytes + 255) / 256 * 256;
  }
  assert_int_equal(fixture_value("monotonic", "live_count"), 7);
  assert_int_equal(fixture_value("monotonic", "used_bytes"), end - first);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  for (int i = 0; i < 8; i++) fixture_free(ptrs[i], blocks[i].bytes, NULL);
  assert_int_equal(fixture_value("monotonic", "live_bytes"), 0);
}

/* Only the free of the last block makes memory available again. */
static void gives_everything_out_anew_when_the_last_block_is_freed(void **state)
{
  (void)state;
  fixture_start(plain);
  void *first = fixture_allocate(1000, NULL), *second = fixture_allocate(1000, NULL);
  fixture_free(second, 1000, NULL);
  void *third = fixture_allocate(1000, NULL);
  assert_int_equal((char *)third - (char *)first, 2048);
  assert_int_equal(fixture_value("monotonic", "rewinds"), 0);
  fixture_free(first, 0, NULL);
  fixture_free(third, 1000, NULL);
  assert_int_equal(fixture_value("monotonic", "rewinds"), 1);
  assert_int_equal(fixture_value("monotonic", "used_bytes"), 0);
  assert_ptr_equal(fixture_allocate(MIB, NULL), first);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  fixture_free(first, MIB, NULL);
}

static void takes_larger_and_larger_chunks(void **state)
{
  enum { BLOCKS = 60 };
  void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'monotonic', 'initial_size': '1MiB', 'chunk_size': '1MiB', 'growth_factor': 2.0}, "
                "'device']");
  assert_int_equal(fixture_held_bytes(), MIB);
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(MIB / 2, NULL);
  assert_int_equal(fixture_held_bytes(), 32 * MIB); /* 1, 1, 2, 4, 8, 16 */
  assert_int_equal(fixture_value("monotonic", "chunks"), 6);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], MIB / 2, NULL);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(MIB / 2, NULL);
    assert_int_equal(fixture_held_bytes(), 32 * MIB);
  }
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 0, NULL);
}

static void takes_chunks_of_one_size_if_they_do_not_grow(void **state)
{
  enum { BLOCKS = 10 };
  void *blocks[BLOCKS];
  (void)state;
  fixture_start("'stack': [{'type': 'monotonic', 'chunk_size': 3000000, 'growth_factor': 1.0}, 'device']");
  for (int i = 0; i < BLOCKS; i++) blocks[i] = fixture_allocate(1000000, NULL);
  assert_int_equal(fixture_held_bytes(), 5 * 3000064); /* a chunk has room for 2 rounded up */
  void *large = fixture_allocate(4 * MIB, NULL);
  assert_int_equal(fixture_held_bytes(), 5 * 3000064 + 4 * MIB);
  fixture_free(large, 4 * MIB, NULL);
  for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], 1000000, NULL);
}

static void refuses_what_is_too_much(void **state)
{
  void *none = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'monotonic', 'maximum_size': '5MiB'}, 'device']");
  assert_status(hipmm_allocate(NULL, SIZE_MAX, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate(NULL, 5 * MIB + 1, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1, SIZE_MAX / 2 + 1, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_status(hipmm_allocate_aligned(NULL, 1, 32 * MIB, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  void *first = fixture_allocate(2 * MIB, NULL), *second = fixture_allocate(3 * MIB, NULL);
  assert_status(hipmm_allocate(NULL, 1, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_message("cannot allocate 1 byte: 5 MiB are held, 5 MiB of it in use since the last rewind");
  assert_ok(hipmm_set("devices/0/monotonic/maximum_size", "6MiB"));
  void *third = fixture_allocate(MIB, NULL);
  fixture_free(first, 0, NULL);
  fixture_free(second, 0, NULL);
  assert_status(hipmm_allocate(NULL, 1, NULL, &none), HIPMM_E_OUT_OF_MEMORY); /* one is live still */
  fixture_free(third, 0, NULL);
  fixture_free(fixture_allocate(6 * MIB, NULL), 0, NULL); /* in exchange for the chunks that were there */
  assert_int_equal(fixture_value("monotonic", "chunks"), 1);
}

static void says_what_is_wrong_with_its_options(void **state)
{
  static const struct fixture_refusal refusals[] = {
      {"'initial_size': '8MiB', 'maximum_size': '7MiB'", "/stack/0/maximum_size"},
      {"'chunk_size': 255", "/stack/0/chunk_size"},
      {"'growth_factor': 0.5", "/stack/0/growth_factor"},
      {"'growth_factor': 17.0", "/stack/0/growth_factor"},
  };
  (void)state;
  fixture_refuses("monotonic", refusals, sizeof refusals / sizeof *refusals);
}

/* ---- Streams ---- */

/* Frees on two streams with work pending, then allocates the memory on a third: it waits for both once. */
static void waits_for_every_stream_that_used_the_memory_once(void **state)
{
  (void)state;
  needs_software();
  fixture_start_with("'scheduler': 'stepped'", plain);
  hipmm_stream_t streams[3];
  unsigned char *ptrs[2];
  for (int i = 0; i < 3; i++) {
    streams[i] = fixture_stream();
    assert_ok(hipmm_stream_retain(0, streams[i]));
  }
  for (int i = 0; i < 2; i++) {
    ptrs[i] = fixture_allocate(MIB / 2, streams[i]);
    assert_int_equal(fixture_hip()->MemsetAsync(ptrs[i], 1, MIB / 2, streams[i]), 0);
  }
  for (int i = 0; i < 2; i++) fixture_free(ptrs[i], MIB / 2, streams[i]);
  software()->reset_calls();
  unsigned char *all = fixture_allocate(MIB, streams[2]);
  assert_ptr_equal(all, ptrs[0]);
  void *more = fixture_allocate(1000, streams[2]);
  assert_int_equal(software()->calls("hipStreamWaitEvent"), 2);
  assert_int_equal(software()->calls("hipDeviceSynchronize"), 0);
  assert_int_equal(fixture_hip()->MemsetAsync(all, 2, MIB, streams[2]), 0);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  assert_true(all[0] == 2 && all[MIB / 2 - 1] == 2 && all[MIB - 1] == 2);
  fixture_free(all, MIB, streams[2]);
  fixture_free(more, 1000, streams[2]);
  for (int i = 0; i < 3; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
  software()->reset_calls();
  fixture_free(fixture_allocate(1, NULL), 1, NULL);
  assert_int_equal(software()->calls("hipStreamWaitEvent") + software()->calls("hipDeviceSynchronize"), 0);
}

/* ---- Giving back, and looking ---- */

static void is_released_as_a_whole(void **state)
{
  (void)state;
  fixture_start(plain);
  struct hipmm_resource *monotonic = fixture_resource("monotonic");
  void *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_resource_perform(monotonic, "release"), HIPMM_E_STATE);
  assert_message("1 blocks (1000 bytes) are allocated");
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  fixture_free(ptr, 1000, NULL);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  assert_ok(hipmm_resource_perform(monotonic, "release"));
  assert_int_equal(fixture_held_bytes(), 0);
  assert_ok(hipmm_resource_perform(monotonic, "release"));
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void gives_untouched_chunks_back_when_trimmed(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'monotonic', 'growth_factor': 1.0}, 'device']");
  struct hipmm_resource *monotonic = fixture_resource("monotonic");
  void *blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = fixture_allocate(2 * MIB, NULL);
  assert_ok(hipmm_resource_trim(monotonic, 0));
  assert_int_equal(fixture_held_bytes(), 8 * MIB);
  for (int i = 0; i < 4; i++) fixture_free(blocks[i], 0, NULL);
  assert_ok(hipmm_resource_trim(monotonic, 5 * MIB));
  assert_int_equal(fixture_held_bytes(), 6 * MIB);
  blocks[0] = fixture_allocate(1, NULL);
  assert_ok(hipmm_resource_trim(monotonic, 0));
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  fixture_free(blocks[0], 1, NULL);
  assert_ok(hipmm_resource_trim(monotonic, 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

/* Of a trim that frees nothing, and of a stream that it has never seen. */
static void waits_for_nothing_in_vain(void **state)
{
  (void)state;
  fixture_start(plain);
  const struct hipmm_resource *monotonic = fixture_resource("monotonic");
  hipmm_stream_t stream = fixture_stream();
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  software()->reset_calls();
  assert_ok(monotonic->ops->trim(monotonic->self, 2 * MIB));
  monotonic->ops->stream_retire(monotonic->self, stream);
  assert_int_equal(software()->calls("hipDeviceSynchronize") + software()->calls("hipStreamSynchronize"), 0);
  assert_int_equal(fixture_held_bytes(), 2 * MIB);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  fixture_drop_stream(stream);
}

/* As if there were as many blocks, and then as many streams, as there can be. */
static void goes_on_where_no_record_or_stream_is_left(void **state)
{
  void *none = NULL;
  (void)state;
  needs_software();
  fixture_start(plain);
  struct monotonic *monotonic = fixture_resource("monotonic")->self;
  hipmm_stream_t stream = fixture_stream();
  void *ptr = fixture_allocate(1000, NULL);
  const struct bump before = monotonic->bump;
  monotonic->bump.n_blocks = BUMP_MOST_BLOCKS;
  monotonic->bump.compact_at = BUMP_MOST_BLOCKS + 1;
  assert_status(hipmm_allocate(NULL, 1000, NULL, &none), HIPMM_E_OUT_OF_MEMORY);
  assert_null(none);
  monotonic->bump.n_blocks = before.n_blocks;
  monotonic->bump.compact_at = before.compact_at;
  monotonic->uses.streams.count = MAX_STREAMS;
  fixture_fail_call("hipDeviceSynchronize", 1, 999);
  assert_status(hipmm_allocate(NULL, 1000, stream, &none), HIPMM_E_HIP);
  assert_message("hipDeviceSynchronize");
  void *other = fixture_allocate(1000, stream); /* has waited for the device, and forgotten all streams */
  fixture_free(ptr, 1000, NULL);
  fixture_free(other, 1000, stream);
  fixture_drop_stream(stream);
}

static void knows_the_blocks_that_it_divides(void **state)
{
  char foreign;
  (void)state;
  fixture_start(plain);
  const struct hipmm_resource *monotonic = fixture_resource("monotonic");
  char *first = fixture_allocate(2 * MIB, NULL), *second = fixture_allocate(1000, NULL); /* of two chunks */
  assert_true(monotonic->ops->covers(monotonic->self, first) && monotonic->ops->covers(monotonic->self, second + 1));
  assert_false(monotonic->ops->covers(monotonic->self, &foreign) || monotonic->ops->covers(monotonic->self, NULL));
  fixture_free(first, 2 * MIB, NULL);
  fixture_free(second, 1000, NULL);
}

struct seen {
  size_t bytes, live_bytes, n[5];
};

static void see(void *closure, const struct hipmm_extent *extent)
{
  struct seen *seen = closure;
  bool is_live = extent->state == HIPMM_EXTENT_LIVE;
  seen->bytes += is_live ? (extent->bytes + 255) / 256 * 256 : extent->bytes;
  if (is_live) seen->live_bytes += extent->bytes;
  seen->n[extent->state % 5]++;
}

/* One block in a thousand stays live until much later, so that memory is never rewound. */
static void needs_no_host_memory_for_what_was_freed(void **state)
{
  enum { OPS = 120000, EACH = 1000, KEPT = OPS / EACH, BYTES = 700 };
  static void *kept[KEPT];
  int64_t metadata_bytes = 0;
  (void)state;
  fixture_start(plain);
  const struct hipmm_resource *monotonic = fixture_resource("monotonic");
  for (int i = 0; i < OPS; i++) {
    void *ptr = fixture_allocate(BYTES, NULL);
    if (i % EACH == 0)
      kept[i / EACH] = ptr;
    else
      fixture_free(ptr, i % 2 ? BYTES : 0, NULL);
    if (i % EACH == 1) assert_status(hipmm_deallocate(NULL, ptr, BYTES, NULL), HIPMM_E_POINTER);
    if (i == OPS / 6) metadata_bytes = fixture_value("monotonic", "metadata_bytes");
  }
  assert_in_range(fixture_value("monotonic", "metadata_bytes"), 1, metadata_bytes + KEPT * 5000);
  struct seen seen = {0};
  assert_ok(monotonic->ops->visit(monotonic->self, see, &seen));
  assert_int_equal(seen.bytes, fixture_held_bytes());
  assert_int_equal(seen.n[HIPMM_EXTENT_LIVE], KEPT);
  for (int i = 0; i < KEPT; i++) {
    struct hipmm_block block;
    assert_ok(monotonic->ops->find(monotonic->self, kept[i], &block));
    assert_int_equal(block.bytes, BYTES);
    fixture_free(kept[i], BYTES, NULL);
    assert_status(hipmm_deallocate(NULL, kept[i], BYTES, NULL), HIPMM_E_POINTER);
  }
  assert_int_equal(fixture_value("monotonic", "rewinds"), 1);
  assert_int_equal(fixture_value("monotonic", "free_bytes"), fixture_held_bytes());
}

/* Each stream in turn waits for the stream before it, which waited for all others. */
static void waits_for_one_stream_however_many_there_are(void **state)
{
  enum { STREAMS = 50 };
  hipmm_stream_t streams[STREAMS];
  (void)state;
  fixture_start_with("'scheduler': 'stepped'", plain);
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = fixture_stream();
    assert_ok(hipmm_stream_retain(0, streams[i]));
  }
  for (int i = 0; i < 4 * STREAMS; i++) {
    int64_t waits = fixture_value("monotonic", "stream_waits");
    void *ptr = fixture_allocate(1000, streams[i % STREAMS]);
    assert_in_range(fixture_value("monotonic", "stream_waits") - waits, 0, 1);
    assert_int_equal(fixture_hip()->MemsetAsync(ptr, i, 1000, streams[i % STREAMS]), 0);
    fixture_free(ptr, 1000, streams[i % STREAMS]);
  }
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
}

/* The event that one stream waited for tells the next one that the work is over. */
static void waits_for_no_work_that_is_over(void **state)
{
  hipmm_stream_t streams[3];
  void *blocks[3];
  (void)state;
  fixture_start(plain);
  for (int i = 0; i < 3; i++) {
    streams[i] = fixture_stream();
    assert_ok(hipmm_stream_retain(0, streams[i]));
  }
  blocks[0] = fixture_allocate(1000, streams[0]);
  fixture_free(blocks[0], 1000, streams[0]);
  blocks[1] = fixture_allocate(1000, streams[1]);
  assert_int_equal(fixture_value("monotonic", "stream_waits"), 1);
  assert_int_equal(fixture_hip()->DeviceSynchronize(), 0);
  blocks[2] = fixture_allocate(1000, streams[2]);
  assert_int_equal(fixture_value("monotonic", "stream_waits"), 1);
  for (int i = 1; i < 3; i++) fixture_free(blocks[i], 1000, streams[i]);
  for (int i = 0; i < 3; i++) {
    assert_ok(hipmm_stream_retire(0, streams[i]));
    fixture_drop_stream(streams[i]);
  }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(gives_memory_out_from_the_front_to_the_back),
      TEST(gives_everything_out_anew_when_the_last_block_is_freed),
      TEST(takes_larger_and_larger_chunks),
      TEST(takes_chunks_of_one_size_if_they_do_not_grow),
      TEST(refuses_what_is_too_much),
      TEST(says_what_is_wrong_with_its_options),
      TEST(waits_for_every_stream_that_used_the_memory_once),
      TEST(is_released_as_a_whole),
      TEST(gives_untouched_chunks_back_when_trimmed),
      TEST(waits_for_nothing_in_vain),
      TEST(goes_on_where_no_record_or_stream_is_left),
      TEST(knows_the_blocks_that_it_divides),
      TEST(needs_no_host_memory_for_what_was_freed),
      TEST(waits_for_one_stream_however_many_there_are),
      TEST(waits_for_no_work_that_is_over),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
