/* SPDX-License-Identifier: MIT */
/* Tests of binning: the bin of a request, the bin of a free, and errors in the list of bins. */
#include "../support/fixture.h"

#include <hipmm/inspect.h>

#include <stdio.h>
#include <string.h>

static const char own_bins[] =
    "'stack': [{'type': 'binning', 'bins': [{'size': 1000}, {'size': '64KiB'}], 'blocks_per_chunk': 4}, 'device']";

static const char named_bins[] =
    "'resources': {"
    "  'memory': {'type': 'device'},"
    "  'tiny': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': 1024, 'blocks_per_chunk': 4},"
    "  'small': {'type': 'statistics', 'upstream': 'tiny2'},"
    "  'tiny2': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': 4096, 'blocks_per_chunk': 4},"
    "  'large': {'type': 'statistics', 'upstream': 'memory'},"
    "  'bins': {'type': 'binning', 'upstream': 'large', 'bins': ["
    "    {'size': 1024, 'resource': 'tiny'}, {'size': 4096, 'resource': 'small'}, {'size': 8192}]}"
    "}, 'devices': {'default': 'bins'}";

static void sends_requests_to_the_smallest_bin_that_fits(void **state)
{
  (void)state;
  fixture_start(named_bins);
  void *tiny = fixture_allocate(1024, NULL), *small = fixture_allocate(1025, NULL), *own = fixture_allocate(8192, NULL),
       *large = fixture_allocate(8193, NULL);
  assert_int_equal(fixture_value("tiny", "live_bytes"), 1024);
  assert_int_equal(fixture_value("small", "current_bytes"), 1025);
  assert_int_equal(fixture_value("bins", "bins_live_bytes"), 8192);
  assert_int_equal(fixture_value("large", "total_count"),
                   2); /* a chunk for the bin of its own, and what is too large */
  assert_int_equal(fixture_value("bins", "bins"), 3);
  fixture_free(tiny, 1024, NULL);
  fixture_free(small, 1025, NULL);
  fixture_free(own, 8192, NULL);
  fixture_free(large, 8193, NULL);
  assert_int_equal(fixture_value("tiny", "live_count"), 0);
  assert_int_equal(fixture_value("small", "current_count"), 0);
  assert_int_equal(fixture_value("bins", "bins_live_count"), 0);
  assert_int_equal(fixture_value("large", "current_count"), 1);
}

static void says_what_a_bin_holds_when_there_is_no_more(void **state)
{
  void *ptr = NULL, *first;
  (void)state;
  fixture_start(
      "'stack': [{'type': 'binning', 'bins': [{'size': '1MiB'}, {'size': '3MiB'}]}, {'type': 'limiting', 'limit': "
      "'2MiB'}, 'device']");
  first = fixture_allocate(MIB, NULL);
  assert_status(hipmm_allocate(NULL, 2 * MIB, NULL, &ptr), HIPMM_E_LIMIT);
  assert_message("of the limit of 2 MiB are in use");
  assert_message(
      "; binning: cannot allocate 2 MiB: 0 bytes are held in 0 blocks of 3 MiB, all in use, and the upstream "
      "has no room for one more");
  fixture_free(first, MIB, NULL);
}

static void sends_large_alignments_past_the_bins(void **state)
{
  void *ptr = NULL;
  (void)state;
  fixture_start("'stack': [{'type': 'binning', 'bins': [{'size': 4096}]}, 'pool', 'device']");
  assert_ok(hipmm_allocate_aligned(NULL, 100, 4096, NULL, &ptr));
  assert_int_equal((uintptr_t)ptr % 4096, 0);
  assert_int_equal(fixture_value("binning", "bins_live_count"), 0);
  assert_ok(hipmm_deallocate_aligned(NULL, ptr, 100, 4096, NULL));
  /* Freed with another alignment it is found all the same. */
  assert_ok(hipmm_allocate_aligned(NULL, 100, 4096, NULL, &ptr));
  fixture_free(ptr, 100, NULL);
  assert_int_equal(fixture_value("pool", "live_count"), 0);
}

/* `added`: bins that are added while in use; NULL: none. */
static void free_aligned_blocks(const char *graph, const char *added, size_t bytes, const char *resource,
                                const char *value)
{
  fixture_start(graph);
  if (added) assert_ok(hipmm_set("devices/0/bins/extra_bins", added));
  for (int round = 0; round < 4; round++) {
    void *ptr = NULL;
    assert_ok(hipmm_allocate_aligned(NULL, bytes, 4096, NULL, &ptr));
    fixture_fill(ptr, 0x5A, bytes);
    size_t held = fixture_held_bytes();
    assert_status(hipmm_deallocate(NULL, ptr, bytes + 1, NULL), HIPMM_E_SIZE);
    fixture_free(ptr, round % 2 ? 0 : bytes, NULL);
    assert_int_equal(fixture_held_bytes(), held);
    assert_status(hipmm_deallocate(NULL, ptr, round % 2 ? 0 : bytes, NULL), HIPMM_E_POINTER);
    assert_int_equal(fixture_value("pool", "live_count"), 0);
    assert_int_equal(fixture_value(resource, value), 0);
  }
  assert_int_equal(faults_on_all_devices(), 0);
  assert_ok(hipmm_finalize());
}

/* A free need not tell the alignment, for which the block is in the upstream and not where its size leads: there a chunk of
 * the upstream may have its address, or a resource counts blocks that it passes on. */
static void frees_aligned_blocks_where_they_are(void **state)
{
  (void)state;
  static const char chunks[] =
      "'resources': {'memory': {'type': 'device'}, 'counted': {'type': 'statistics', 'upstream': 'memory'},"
      "'pool': {'type': 'pool', 'upstream': 'memory', 'growth': 'segments'},"
      "'bins': {'type': 'binning', 'upstream': 'pool', 'bins': [{'size': '4MiB', 'resource': 'counted'}]}},"
      "'devices': {'default': 'bins'}";
  static const char whole[] =
      "'resources': {'memory': {'type': 'device'}, 'counted': {'type': 'statistics', 'upstream': 'memory'},"
      "'pool': {'type': 'monotonic', 'upstream': 'memory', 'initial_size': '2MiB'},"
      "'bins': {'type': 'binning', 'upstream': 'pool', 'bins': [{'size': '4MiB', 'resource': 'counted'}]}},"
      "'devices': {'default': 'bins'}";
  static const char limited[] =
      "'resources': {'memory': {'type': 'device'}, 'pool': {'type': 'pool', 'upstream': 'memory'},"
      "'limit': {'type': 'limiting', 'upstream': 'pool', 'limit': '1MiB'},"
      "'bins': {'type': 'binning', 'upstream': 'pool', 'bins': [{'size': '64KiB', 'resource': 'limit'}]}},"
      "'devices': {'default': 'bins'}";
  /* The source has a block of the same size there. */
  free_aligned_blocks(whole, NULL, 2 * MIB, "counted", "current_bytes");
  free_aligned_blocks(chunks, NULL, MIB, "counted", "current_bytes");
  free_aligned_blocks(limited, NULL, 4000, "limit", "allocated_bytes");
  /* The size leads past an added bin, which has no such block, to the resource of a larger bin. */
  free_aligned_blocks(whole, "[{\"size\": \"2MiB\"}]", 2 * MIB, "counted", "current_bytes");
  free_aligned_blocks(chunks, "[{\"size\": \"1MiB\"}, {\"size\": \"2MiB\"}]", MIB, "counted", "current_bytes");
  free_aligned_blocks(limited, "[{\"size\": 4096}]", 4000, "limit", "allocated_bytes");
  fixture_start(own_bins); /* for the teardown */
}

static void frees_without_a_size(void **state)
{
  static const size_t sizes[] = {1, 1000, 1024, 65536, 65537, MIB};
  (void)state;
  fixture_start(own_bins);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) fixture_free(fixture_allocate(sizes[i], NULL), 0, NULL);
  assert_int_equal(fixture_value("binning", "bins_live_count"), 0);
}

/* The first block of a chunk has the address of the chunk, which is a block of the upstream. */
static void tells_a_block_from_its_chunk(void **state)
{
  (void)state;
  fixture_start(own_bins);
  void *ptr = fixture_allocate(65536, NULL);
  size_t chunk = fixture_held_bytes();
  assert_true(chunk > 65536);
  assert_status(hipmm_deallocate(NULL, ptr, chunk, NULL), HIPMM_E_SIZE);
  fixture_free(ptr, 65536, NULL);
  assert_status(hipmm_deallocate(NULL, ptr, chunk, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, ptr, 0, NULL), HIPMM_E_POINTER);
  assert_int_equal(fixture_held_bytes(), chunk);
}

static void tells_a_wrong_size_from_a_foreign_pointer(void **state)
{
  char foreign;
  (void)state;
  fixture_start(own_bins);
  char *small = fixture_allocate(1000, NULL), *large = fixture_allocate(MIB, NULL);
  assert_status(hipmm_deallocate(NULL, small, 5000, NULL), HIPMM_E_SIZE); /* another bin's size */
  assert_message("was allocated with 1000 bytes and cannot be freed with 5000");
  assert_status(hipmm_deallocate(NULL, small, MIB, NULL), HIPMM_E_SIZE); /* too large for a bin */
  assert_status(hipmm_deallocate(NULL, large, 1000, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, large, MIB + 1, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, &foreign, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, &foreign, MIB, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, small + 256, 1000, NULL), HIPMM_E_POINTER);
  fixture_free(small, 1000, NULL);
  fixture_free(large, MIB, NULL);
  assert_status(hipmm_deallocate(NULL, small, 1000, NULL), HIPMM_E_POINTER);
  assert_status(hipmm_deallocate(NULL, large, MIB, NULL), HIPMM_E_POINTER);
}

/* Through an adaptor over the resource of a bin, which forwards each call. */
static void frees_without_a_size_in_every_bin(void **state)
{
  static const size_t sizes[] = {1000, 4000, 8000, 9000};
  void *blocks[4];
  (void)state;
  fixture_start(named_bins);
  for (int i = 0; i < 4; i++) blocks[i] = fixture_allocate(sizes[i], NULL);
  for (int i = 0; i < 4; i++) fixture_free(blocks[i], 0, NULL);
  assert_int_equal(fixture_value("tiny", "live_count"), 0);
  assert_int_equal(fixture_value("small", "current_count"), 0);
  assert_int_equal(fixture_value("tiny2", "live_count"), 0);
  assert_int_equal(fixture_value("bins", "bins_live_count"), 0);
  assert_int_equal(fixture_value("large", "current_count"), 1); /* the chunk of the bin of its own */
  for (int i = 2; i < 4; i++) assert_status(hipmm_deallocate(NULL, blocks[i], 0, NULL), HIPMM_E_POINTER);
}

/* ---- The list of bins ---- */

static void adds_powers_of_two(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'binning', 'min_size_exponent': 18, 'max_size_exponent': 22}, 'device']");
  assert_int_equal(fixture_value("binning", "bins"), 5);
  assert_int_equal(fixture_held_bytes(), 0); /* RMM takes 992 MiB here */
  void *ptr = fixture_allocate(4 * MIB, NULL);
  assert_int_equal(fixture_value("binning", "bins_live_bytes"), 4 * MIB);
  assert_int_equal(fixture_held_bytes(), 4 * MIB);
  fixture_free(ptr, 4 * MIB, NULL);
}

static void adds_powers_of_two_beyond_32_bits(void **state)
{
  (void)state;
  fixture_start("'stack': [{'type': 'binning', 'min_size_exponent': 7, 'max_size_exponent': 40}, 'device']");
  assert_int_equal(fixture_value("binning", "bins"), 33); /* 128 is rounded up to 256 */
  fixture_free(fixture_allocate(32 * MIB, NULL), 32 * MIB, NULL);
}

static void lets_the_list_go_before_the_powers(void **state)
{
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'device'},"
                "'mine': {'type': 'statistics', 'upstream': 'memory'},"
                "'bins': {'type': 'binning', 'upstream': 'memory', 'min_size_exponent': 10, 'max_size_exponent': 12,"
                "'bins': [{'size': 2048, 'resource': 'mine'}, {'size': 3000}]}}");
  assert_int_equal(fixture_value("bins", "bins"), 4); /* 1024 2048 3072 4096 */
  void *ptr = fixture_allocate(2000, NULL);
  assert_int_equal(fixture_value("mine", "current_bytes"), 2000);
  fixture_free(ptr, 2000, NULL);
}

/* An adaptor does not know whose a block is: the resources below it are asked. */
static void frees_without_a_size_through_adaptors(void **state)
{
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'device'}, 'pool': {'type': 'pool', 'upstream': 'memory'},"
                "'limit': {'type': 'limiting', 'limit': '1MiB', 'upstream': 'pool'},"
                "'mine': {'type': 'statistics', 'upstream': 'limit'}, 'rest': {'type': 'fault', 'upstream': 'memory'},"
                "'bins': {'type': 'binning', 'upstream': 'rest', 'bins': [{'size': 2048, 'resource': 'mine'}]}}");
  void *small = fixture_allocate(2000, NULL), *large = fixture_allocate(5000, NULL);
  assert_int_equal(fixture_value("limit", "allocated_bytes"), 2048);
  fixture_free(large, 0, NULL);
  assert_int_equal(fixture_value("mine", "current_bytes"), 2000);
  fixture_free(small, 0, NULL);
  assert_int_equal(fixture_value("mine", "current_bytes"), 0);
  assert_int_equal(fixture_value("limit", "allocated_bytes"), 0);
}

/* ---- Blocks at the start of a chunk ---- */

enum { BLOCKS = 4, PATTERN = 0x5a };

/* Several bins, or a bin and the upstream, have memory of one resource: the address of a chunk is the address of a
 * block of the bin that the chunk belongs to. */
static const char *const shared_memory[] = {
    "'resources': {'memory': {'type': 'device'}, 'bins': {'type': 'binning', 'upstream': 'memory', 'bins': ["
    "{'size': 4096, 'resource': 'memory'}, {'size': '64KiB'}], 'blocks_per_chunk': 4}},"
    "'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'}, 'counted': {'type': 'statistics', 'upstream': 'memory'},"
    "'bins': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': 4096, 'resource': 'counted'},"
    "{'size': '64KiB'}], 'blocks_per_chunk': 4}}, 'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'}, 'counted': {'type': 'statistics', 'upstream': 'memory'},"
    "'blocks': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': '64KiB', 'blocks_per_chunk': 4},"
    "'bins': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': 4096, 'resource': 'counted'},"
    "{'size': '64KiB', 'resource': 'blocks'}, {'size': '1MiB', 'resource': 'counted'}]}},"
    "'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'}, 'locked': {'type': 'thread_safe', 'upstream': 'memory'},"
    "'pool': {'type': 'pool', 'upstream': 'memory', 'growth': 'segments'},"
    "'bins': {'type': 'binning', 'upstream': 'locked', 'bins': [{'size': 4096, 'resource': 'locked'},"
    "{'size': '64KiB', 'resource': 'pool'}]}}, 'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'}, 'arena': {'type': 'arena', 'upstream': 'memory'},"
    "'bins': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': 4096, 'resource': 'memory'},"
    "{'size': '64KiB', 'resource': 'arena'}]}}, 'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'}, 'bump': {'type': 'monotonic', 'upstream': 'memory'},"
    "'bins': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': 4096, 'resource': 'memory'},"
    "{'size': '64KiB', 'resource': 'bump'}]}}, 'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'},"
    "'inner': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': '64KiB'}], 'blocks_per_chunk': 4},"
    "'bins': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': 4096, 'resource': 'memory'},"
    "{'size': '64KiB', 'resource': 'inner'}]}}, 'devices': {'default': 'bins'}",

    "'resources': {'memory': {'type': 'device'},"
    "'blocks': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': '64KiB', 'blocks_per_chunk': 4},"
    "'either': {'type': 'fallback', 'upstream': ['none', 'blocks']},"
    "'none': {'type': 'limiting', 'upstream': 'memory', 'limit': 256},"
    "'bins': {'type': 'binning', 'upstream': 'memory', 'bins': [{'size': 4096, 'resource': 'memory'},"
    "{'size': '64KiB', 'resource': 'either'}]}}, 'devices': {'default': 'bins'}",
};

static bool is_live(const void *ptr, void *const *blocks)
{
  for (int i = 0; i < BLOCKS; i++)
    if ((const char *)ptr < (const char *)blocks[i] + 65536 && (const char *)ptr + MIB > (const char *)blocks[i])
      return true;
  return false;
}

/* No free, with any size or pointer, returns a chunk that has live blocks. */
static void frees_no_chunk_for_a_block(const char *graph)
{
  void *blocks[BLOCKS];
  fixture_start(graph);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < BLOCKS; i++) {
      blocks[i] = fixture_allocate(65536, NULL);
      fixture_fill(blocks[i], PATTERN, 65536);
    }
    size_t held = fixture_held_bytes();
    for (int i = 0; i < BLOCKS; i++) {
      fixture_free(blocks[i], 0, NULL);
      assert_status(hipmm_deallocate(NULL, blocks[i], 0, NULL), HIPMM_E_POINTER);
      assert_status(hipmm_deallocate(NULL, blocks[i], 65536, NULL), HIPMM_E_POINTER);
      assert_status(hipmm_deallocate(NULL, blocks[i], held, NULL), HIPMM_E_POINTER);
      assert_int_equal(fixture_held_bytes(), held);
      blocks[i] = fixture_allocate(65536, NULL);
      fixture_fill(blocks[i], PATTERN, 65536);
      assert_status(hipmm_deallocate(NULL, blocks[i], held, NULL), HIPMM_E_SIZE);
      assert_int_equal(fixture_held_bytes(), held);
    }
    void *large = fixture_allocate(MIB, NULL), *small = fixture_allocate(4000, NULL);
    assert_false(is_live(large, blocks));
    fixture_fill(large, 1, MIB);
    for (int i = 0; i < BLOCKS; i++) assert_true(fixture_holds(blocks[i], PATTERN, 65536));
    fixture_free(large, 0, NULL);
    fixture_free(small, 0, NULL);
    for (int i = 0; i < BLOCKS; i++) fixture_free(blocks[i], round % 2 ? 65536 : 0, NULL);
  }
  assert_ok(hipmm_finalize());
}

static void tells_a_block_from_a_chunk_of_shared_memory(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof shared_memory / sizeof *shared_memory; i++)
    frees_no_chunk_for_a_block(shared_memory[i]);
  fixture_start(own_bins); /* for the teardown */
}

/* Each level asks the next level as its bin, as its upstream, and through two adaptors: 2^48 paths lead to the last
 * level. */
static void asks_each_resource_below_once(void **state)
{
  char graph[20000], foreign;
  size_t length = (size_t)snprintf(graph, sizeof graph, "'resources': {'r0': {'type': 'device'}");
  (void)state;
  for (int i = 1; i <= 24; i++)
    length += (size_t)snprintf(graph + length, sizeof graph - length,
                               ", 's%d': {'type': 'statistics', 'upstream': 'r%d'}, 'l%d': {'type': 'limiting', "
                               "'upstream': 'r%d', 'limit': '1GiB'}, 'r%d': {'type': 'binning', 'upstream': 'l%d', "
                               "'bins': [{'size': 1024, 'resource': 's%d'}, {'size': 4096, 'resource': 'r%d'}, "
                               "{'size': 8192, 'resource': 'l%d'}]}",
                               i, i - 1, i, i - 1, i, i, i, i - 1, i);
  snprintf(graph + length, sizeof graph - length, "}, 'devices': {'default': 'r24'}");
  fixture_start(graph);
  for (size_t bytes = 0; bytes <= 16384; bytes += 1024)
    assert_status(hipmm_deallocate(NULL, &foreign, bytes, NULL), HIPMM_E_POINTER);
  for (size_t bytes = 1024; bytes <= 16384; bytes += 1024) fixture_free(fixture_allocate(bytes, NULL), 0, NULL);
  assert_int_equal(fixture_held_bytes(), 0);
}

static void without_bins_passes_everything_on(void **state)
{
  (void)state;
  fixture_start("'stack': ['binning', 'device']");
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
  fixture_free(fixture_allocate(1000, NULL), 0, NULL);
  assert_null(fixture_allocate(0, NULL));
  assert_int_equal(fixture_value("binning", "bins"), 0);
}

/* Options of binning that are refused, and the message. */
struct refusal {
  const char *options, *path, *text;
};

static void locates_errors(void **state)
{
  static const struct refusal refusals[] = {
      {"'bins': [{'size': '1KiB'}, {'size': '1KiB'}]", "/stack/0/bins/1/size", "not above the size of the bin before"},
      {"'bins': [{'size': 300}, {'size': 512}]", "/stack/0/bins/1/size", "at least 256 bytes apart"},
      {"'bins': [{'size': 512}, {'size': '1KiB'}, {'size': 256}]", "/stack/0/bins/2/size", "smallest to the largest"},
      {"'min_size_exponent': 10", "/stack/0/max_size_exponent", "give both exponents"},
      {"'max_size_exponent': 10", "/stack/0/min_size_exponent", "give both exponents"},
      {"'min_size_exponent': 10, 'max_size_exponent': 9", "/stack/0/max_size_exponent", "below min_size_exponent"},
      {"'bins': [{}]", "/stack/0/bins/0", "size"},
      {"'bins': [{'size': 0}]", "/stack/0/bins/0/size", ""},
      {"'max_size_exponent': 41", "/stack/0/max_size_exponent", ""},
  };
  char graph[300];
  struct hipmm_error error = {.struct_size = sizeof error};
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    snprintf(graph, sizeof graph, "'stack': [{'type': 'binning', %s}, 'device']", refusals[i].options);
    assert_status(fixture_try("", graph), HIPMM_E_CONFIG);
    hipmm_last_error(&error);
    assert_string_equal(error.path, refusals[i].path);
    assert_contains(error.message, refusals[i].text);
    hipmm_finalize();
  }
}

/* ---- Bins that are added ---- */

static void sends_frees_where_blocks_are_when_bins_are_added(void **state)
{
  static const size_t sizes[] = {100, 1000, 2000, 5000, 40000, 65536, 100000};
  enum { SIZES = sizeof sizes / sizeof *sizes, ROUNDS = 4 };
  void *blocks[ROUNDS][SIZES];
  static const char *const additions[ROUNDS] = {
      "[{\"size\": 1000}]", /* nothing new */
      "[{\"size\": 4096}, {\"size\": \"128KiB\"}]", "[{\"size\": 4096}, {\"size\": \"128KiB\"}, {\"size\": 256}]",
      "[{\"size\": 256}, {\"size\": 2048}, {\"size\": 4096}, {\"size\": \"48KiB\"}, {\"size\": \"128KiB\"}]"};
  (void)state;
  fixture_start(own_bins);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < SIZES; i++) blocks[round][i] = fixture_allocate(sizes[i], NULL);
    assert_ok(hipmm_set("devices/0/binning/extra_bins", additions[round]));
  }
  assert_int_equal(fixture_value("binning", "bins"), 7);
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < SIZES; i++) {
      assert_status(hipmm_deallocate(NULL, blocks[round][i], sizes[i] + 700, NULL), HIPMM_E_SIZE);
      fixture_free(blocks[round][i], round % 2 ? sizes[i] : 0, NULL);
      assert_status(hipmm_deallocate(NULL, blocks[round][i], sizes[i], NULL), HIPMM_E_POINTER);
    }
  assert_int_equal(fixture_value("binning", "bins_live_count"), 0);
  assert_ok(hipmm_resource_trim(fixture_resource("binning"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
}

static void says_which_bins_cannot_be_taken_away(void **state)
{
  static const struct {
    const char *bins, *message;
    enum hipmm_status status;
  } refusals[] = {
      {"[{\"size\": \"64KiB\"}]", "the bin of 16384 bytes may be in use", HIPMM_E_CONFIG},
      {"[]", "cannot be removed", HIPMM_E_CONFIG},
      {"[{\"size\": \"16KiB\", \"resource\": \"tiny\"}]", "resource", HIPMM_E_CONFIG},
      {"[{\"size\": \"16KiB\"}, {\"size\": \"2000GiB\"}]", "size", HIPMM_E_CONFIG},
      {"17", "extra_bins", HIPMM_E_CONFIG},
  };
  (void)state;
  fixture_start(named_bins);
  void *ptr = fixture_allocate(1000, NULL);
  assert_status(hipmm_set("devices/0/bins/bins", "[]"), HIPMM_E_NOT_SUPPORTED);
  assert_ok(hipmm_set("devices/0/bins/extra_bins", "[{\"size\": \"16KiB\"}, {\"size\": 4000}]"));
  assert_int_equal(fixture_value("bins", "bins"), 4); /* there was one of 4096 */
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    assert_status(hipmm_set("devices/0/bins/extra_bins", refusals[i].bins), refusals[i].status);
    assert_message(refusals[i].message);
  }
  assert_int_equal(fixture_value("bins", "bins"), 4);
  fixture_free(ptr, 1000, NULL);
}

/* ---- Bins of other resources that are added ---- */

static const char late_bins[] =
    "'resources': {"
    "  'memory': {'type': 'device'},"
    "  'large': {'type': 'pool', 'upstream': 'memory', 'growth': 'segments'},"
    "  'bins': {'type': 'binning', 'upstream': 'large', 'bins': [{'size': 1024}]},"
    "  'top': {'type': 'statistics', 'upstream': 'bins'},"
    "  'blocks': {'type': 'fixed_size', 'upstream': 'memory', 'block_size': '16KiB', 'blocks_per_chunk': 4},"
    "  'late': {'type': 'statistics', 'upstream': 'blocks'},"
    "  'above': {'type': 'statistics', 'upstream': 'bins'},"
    "  'passes': {'type': 'statistics', 'upstream': 'large'}"
    "}, 'devices': {'default': 'top'}";

/* The resource is built after the binning, and then is a part of the stack like any other. */
static void adds_a_bin_that_is_another_resource(void **state)
{
  (void)state;
  static const char late[] = "[{\"size\": \"16KiB\", \"resource\": \"late\"}]";
  struct hipmm_pointer pointer = {.struct_size = sizeof pointer};
  size_t before = 0, after = 0;
  char *json;
  fixture_start(late_bins);
  void *small = fixture_allocate(1000, NULL), *old = fixture_allocate(16000, NULL);
  assert_status(hipmm_set("devices/0/bins/extra_bins", late), HIPMM_E_CONFIG);
  assert_message("late is not built yet; get it with hipmm_resource_get_by_name()");
  fixture_resource("late");
  assert_ok(hipmm_resource_upstream_count(fixture_resource("bins"), &before));
  assert_ok(hipmm_set("devices/0/bins/extra_bins", late));
  assert_ok(hipmm_resource_upstream_count(fixture_resource("bins"), &after));
  assert_int_equal(after, before + 1);
  assert_int_equal(fixture_value("bins", "bins"), 2);
  void *new = fixture_allocate(16000, NULL), *nameless = fixture_allocate(9000, NULL),
       *big = fixture_allocate(20000, NULL);
  assert_int_equal(fixture_value("late", "current_bytes"), 25000);
  assert_ok(hipmm_pointer_lookup(new, &pointer));
  assert_string_equal(hipmm_resource_name(pointer.resource), "blocks");
  hipmm_resource_release(pointer.resource);
  assert_ok(hipmm_snapshot(&json));
  assert_contains(json, "\"devices/0/late\"");
  hipmm_string_free(json);

  /* Each block goes back to where it is, whatever the caller says of its size. */
  assert_status(hipmm_deallocate(NULL, new, 15999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, old, 15999, NULL), HIPMM_E_SIZE);
  assert_status(hipmm_deallocate(NULL, (char *)new + 256, 16000, NULL), HIPMM_E_POINTER);
  fixture_free(old, 16000, NULL);
  fixture_free(new, 16000, NULL);
  fixture_free(nameless, 0, NULL);
  fixture_free(big, 20000, NULL);
  fixture_free(small, 0, NULL);
  assert_int_equal(fixture_value("late", "current_count"), 0);
  assert_int_equal(fixture_value("top", "current_count"), 0);
  assert_int_equal(fixture_value("large", "live_bytes"), fixture_value("bins", "bins_reserved_bytes"));
  assert_ok(hipmm_resource_trim(fixture_resource("top"), 0));
  assert_int_equal(fixture_held_bytes(), 0);
  fixture_allocate(16000, NULL); /* a warning, and no more, when the stack is destroyed */
}

/* The block is in the next larger bin, of another resource, which the new bin's resource does not know. */
static void finds_blocks_in_the_bin_that_had_them_before(void **state)
{
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'device'}, 'big': {'type': 'pool', 'upstream': 'memory'},"
                "'late': {'type': 'pinned'}, 'rest': {'type': 'arena', 'upstream': 'memory'},"
                "'bins': {'type': 'binning', 'upstream': 'rest', 'bins': [{'size': 8192, 'resource': 'big'}]}},"
                "'devices': {'default': 'bins'}");
  void *old[2] = {fixture_allocate(3000, NULL), fixture_allocate(3000, NULL)};
  fixture_resource("late");
  assert_ok(hipmm_set("devices/0/bins/extra_bins", "[{\"size\": 4096, \"resource\": \"late\"}]"));
  void *new = fixture_allocate(3000, NULL);
  assert_int_equal(fixture_value("big", "live_count"), 2);
  for (int i = 0; i < 2; i++) fixture_free(old[i], i ? 3000 : 0, NULL);
  assert_int_equal(fixture_value("big", "live_count"), 0);
  fixture_free(new, 3000, NULL);
}

static void refuses_bins_of_resources_that_cannot_be(void **state)
{
  (void)state;
  static const struct {
    const char *bins, *message;
  } refusals[] = {
      {"[{\"size\": 4096, \"resource\": \"bins\"}]", "bins is this resource itself"},
      {"[{\"size\": 4096, \"resource\": \"top\"}]", "top depends on bins"},
      {"[{\"size\": 4096, \"resource\": \"above\"}]", "above depends on bins"},
      {"[{\"size\": 4096, \"resource\": \"latte\"}]", "no resource is called \"latte\""},
      {"[{\"size\": 1024, \"resource\": \"late\"}]", "the bin of 1024 bytes"},
      {"[{\"size\": 8192, \"resource\": \"passes\"}]", "the bin of 8192 bytes passes on blocks of the upstream"},
      {"[{\"size\": 8192}, {\"size\": 8192, \"resource\": \"late\"}]",
       "the bin of 8192 bytes is listed before without this resource"},
  };
  size_t before = 0, after = 0;
  fixture_start(late_bins);
  fixture_free(fixture_allocate(100, NULL), 100, NULL);
  fixture_resource("late");
  fixture_resource("above");
  fixture_resource("passes");
  assert_ok(hipmm_resource_upstream_count(fixture_resource("bins"), &before));
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    assert_status(hipmm_set("devices/0/bins/extra_bins", refusals[i].bins), HIPMM_E_CONFIG);
    assert_message(refusals[i].message);
  }
  assert_ok(hipmm_resource_upstream_count(fixture_resource("bins"), &after));
  assert_int_equal(after, before);
  assert_ok(hipmm_set("devices/0/bins/extra_bins", "[{\"size\": 8192, \"resource\": \"late\"}]"));
  assert_status(hipmm_set("devices/0/bins/extra_bins", "[{\"size\": 8192, \"resource\": \"blocks\"}]"), HIPMM_E_CONFIG);
  assert_message("the bin of 8192 bytes may be in use, so that its resource cannot be changed");
  assert_status(hipmm_set("devices/0/bins/extra_bins", "[]"), HIPMM_E_CONFIG);
  assert_ok(hipmm_resource_upstream_count(fixture_resource("bins"), &after));
  assert_int_equal(after, before + 1);
  assert_status(hipmm_set("devices/0/late/bins", "[]"), HIPMM_E_ARGUMENT);
}

/* Of a resource made in code: another one made in code, which the binning then keeps. */
static void adds_a_bin_of_a_resource_made_in_code(void **state)
{
  (void)state;
  struct hipmm_resource *memory, *bins = NULL, *late = NULL, *above = NULL;
  void *ptr = NULL;
  fixture_start("'stack': ['device']");
  memory = fixture_resource("device");
  assert_ok(hipmm_resource_create(0, "binning", "{\"bins\": [{\"size\": 256}]}", &memory, 1, &bins));
  assert_ok(hipmm_resource_create(0, "statistics", NULL, &bins, 1, &above));
  assert_ok(hipmm_resource_create(0, "fixed_size", "{\"block_size\": 8192, \"blocks_to_preallocate\": 0}", &memory, 1,
                                  &late));
  assert_status(hipmm_set("created/binning/extra_bins", "[{\"size\": 8192, \"resource\": \"statistics\"}]"),
                HIPMM_E_CONFIG);
  assert_message("statistics depends on binning");
  assert_ok(hipmm_set("created/binning/extra_bins", "[{\"size\": 8192, \"resource\": \"fixed_size\"}]"));
  hipmm_resource_release(late);
  assert_string_equal(hipmm_resource_name(late), "fixed_size");
  assert_ok(hipmm_allocate(above, 8000, NULL, &ptr));
  assert_int_equal(resource_value(late, "live_bytes"), 8000);
  assert_ok(hipmm_deallocate(above, ptr, 0, NULL));
  assert_ok(
      hipmm_set("created/binning/extra_bins", "[{\"size\": 8192, \"resource\": \"fixed_size\"}, {\"size\": 512}]"));
  hipmm_resource_release(bins);
  assert_string_equal(hipmm_resource_name(late), "fixed_size");
  hipmm_resource_release(above);
  assert_null(hipmm_resource_name(late));
  assert_int_equal(live_on_all_devices(), 0);
}

/* The upstream's blocks may be chunks of the added resource: a block that has the address of its chunk, and its size. */
static void tells_blocks_from_chunks_of_an_added_resource(void **state)
{
  (void)state;
  fixture_start("'resources': {'memory': {'type': 'device'},"
                "  'large': {'type': 'pool', 'upstream': 'memory', 'growth': 'segments'},"
                "  'bins': {'type': 'binning', 'upstream': 'large', 'bins': [{'size': 1024}]}},"
                "'devices': {'default': 'bins'}");
  void *own = fixture_allocate(1000, NULL), *old[4];
  for (int i = 0; i < 4; i++) old[i] = fixture_allocate(4 * MIB, NULL);
  assert_ok(hipmm_set("devices/0/bins/extra_bins", "[{\"size\": \"8MiB\", \"resource\": \"memory\"}]"));
  void *new = fixture_allocate(4 * MIB, NULL);
  assert_int_equal(fixture_value("large", "live_count"), 5);
  for (int i = 0; i < 4; i++) fixture_free(old[i], i % 2 ? 4 * MIB : 0, NULL);
  assert_int_equal(fixture_value("large", "live_count"), 1);
  for (int i = 0; i < 4; i++) assert_status(hipmm_deallocate(NULL, old[i], 4 * MIB, NULL), HIPMM_E_POINTER);
  fixture_free(new, 4 * MIB, NULL);
  fixture_free(own, 1000, NULL);
}

static void allocate_and_free(int *failures)
{
  for (size_t i = 0; i < 4000; i++) {
    size_t bytes = i * 37 % 70000 + 1;
    void *ptr = NULL;
    *failures += hipmm_allocate(NULL, bytes, NULL, &ptr) != HIPMM_OK;
    *failures += hipmm_deallocate(NULL, ptr, i % 3 ? bytes : 0, NULL) != HIPMM_OK;
  }
}

static void adds_bins_under_threads_that_allocate(void **state)
{
  char bins[2000] = "[{\"size\": 256}";
  (void)state;
  fixture_start("'stack': [{'type': 'binning', 'bins': [{'size': 256}]}, 'pool', 'device']");
  fixture_start_threads(4, allocate_and_free);
  for (int i = 1; i <= 30; i++) {
    size_t used = strlen(bins);
    snprintf(bins + used, sizeof bins - used, ", {\"size\": %d}]", i * 2048);
    assert_ok(hipmm_set("devices/0/binning/extra_bins", bins));
    bins[strlen(bins) - 1] = '\0';
  }
  fixture_join_threads();
  assert_int_equal(fixture_value("binning", "bins"), 31);
  assert_int_equal(fixture_value("binning", "bins_live_count"), 0);
  assert_int_equal(fixture_value("pool", "live_bytes"), fixture_value("binning", "bins_reserved_bytes"));
}

/* The stack's other parts are asked for blocks meanwhile, through what the bins depend on. */
static void adds_bins_of_resources_under_threads_that_allocate(void **state)
{
  char bins[2000] = "[{\"size\": \"128KiB\"}";
  (void)state;
  fixture_start("'stack': ['statistics', {'type': 'binning', 'bins': [{'size': 256}]}, 'pool', 'device']");
  fixture_start_threads(2, allocate_and_free);
  for (int i = 0; i < 4; i++) {
    size_t used = strlen(bins);
    snprintf(bins + used, sizeof bins - used, ", {\"size\": %d, \"resource\": \"%s\"}]", 4096 << i,
             i % 2 ? "device" : "pool");
    assert_ok(hipmm_set("devices/0/binning/extra_bins", bins));
    bins[strlen(bins) - 1] = '\0';
  }
  fixture_join_threads();
  assert_int_equal(fixture_value("binning", "bins"), 6);
  assert_int_equal(fixture_value("statistics", "current_count"), 0);
  assert_int_equal(fixture_value("binning", "bins_live_count"), 0);
}

static void takes_blocks_at_once_if_asked_to(void **state)
{
  needs_software();
  (void)state;
  fixture_start(
      "'stack': [{'type': 'binning', 'min_size_exponent': 16, 'max_size_exponent': 18, 'blocks_to_preallocate': "
      "5}, 'device']");
  assert_int_equal(fixture_held_bytes(), 5 * (64 + 128 + 256) * 1024);
  assert_ok(hipmm_set("devices/0/binning/extra_bins", "[{\"size\": 1024}]"));
  assert_int_equal(fixture_held_bytes(), 5 * (1 + 64 + 128 + 256) * 1024);
}

/* The bin of 64 MiB cannot have its blocks: nothing changes. */
static void changes_nothing_when_a_bin_cannot_be_had(void **state)
{
  needs_software();
  (void)state;
  fixture_start("'stack': [{'type': 'binning', 'bins': [{'size': 1024}], 'blocks_to_preallocate': 5}, 'device']");
  size_t held = fixture_held_bytes();
  assert_status(hipmm_set("devices/0/binning/extra_bins",
                          "[{\"size\": 512}, {\"size\": 1024}, {\"size\": 8192}, {\"size\": \"64MiB\"}]"),
                HIPMM_E_OUT_OF_MEMORY);
  assert_int_equal(fixture_held_bytes(), held);
  assert_int_equal(fixture_value("binning", "bins"), 1);
  fixture_free(fixture_allocate(1000, NULL), 1000, NULL);
}

static void count(void *closure, const struct hipmm_extent *extent)
{
  size_t *bytes = closure;
  bytes[extent->state == HIPMM_EXTENT_LIVE] += extent->bytes;
}

static void shows_what_its_own_bins_hold(void **state)
{
  size_t bytes[2] = {0};
  (void)state;
  fixture_start(own_bins);
  void *small = fixture_allocate(900, NULL), *large = fixture_allocate(60000, NULL),
       *none = fixture_allocate(MIB, NULL);
  const struct hipmm_resource *resource = fixture_resource("binning");
  assert_ok(resource->ops->visit(resource->self, count, bytes));
  assert_int_equal(bytes[1], 60900);
  assert_int_equal(bytes[0] + 1024 + 65536, fixture_value("binning", "bins_reserved_bytes"));
  fixture_free(small, 900, NULL);
  fixture_free(large, 60000, NULL);
  fixture_free(none, MIB, NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(sends_requests_to_the_smallest_bin_that_fits),
      TEST(says_what_a_bin_holds_when_there_is_no_more),
      TEST(sends_large_alignments_past_the_bins),
      TEST(frees_aligned_blocks_where_they_are),
      TEST(frees_without_a_size),
      TEST(tells_a_block_from_its_chunk),
      TEST(tells_a_wrong_size_from_a_foreign_pointer),
      TEST(frees_without_a_size_in_every_bin),
      TEST(adds_powers_of_two),
      TEST(adds_powers_of_two_beyond_32_bits),
      TEST(lets_the_list_go_before_the_powers),
      TEST(frees_without_a_size_through_adaptors),
      TEST(tells_a_block_from_a_chunk_of_shared_memory),
      TEST(asks_each_resource_below_once),
      TEST(without_bins_passes_everything_on),
      TEST(locates_errors),
      TEST(sends_frees_where_blocks_are_when_bins_are_added),
      TEST(says_which_bins_cannot_be_taken_away),
      TEST(adds_bins_under_threads_that_allocate),
      TEST(adds_a_bin_that_is_another_resource),
      TEST(finds_blocks_in_the_bin_that_had_them_before),
      TEST(refuses_bins_of_resources_that_cannot_be),
      TEST(adds_a_bin_of_a_resource_made_in_code),
      TEST(tells_blocks_from_chunks_of_an_added_resource),
      TEST(adds_bins_of_resources_under_threads_that_allocate),
      TEST(takes_blocks_at_once_if_asked_to),
      TEST(changes_nothing_when_a_bin_cannot_be_had),
      TEST(shows_what_its_own_bins_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
