/* SPDX-License-Identifier: MIT */
/* test_span_cache.c: a cache of keys and values, as engines that serve language models have it, in three forms: a span a layer
 * for all sequences, with tables of blocks above; a span a sequence and layer; and a buffer a sequence and layer, which grows by
 * copying. Checks the data, and tells what each form holds over what it uses. The variables CACHE_LAYERS, CACHE_SEQUENCES and
 * CACHE_TOKEN_BYTES make it larger, and HIPMM_RUNTIME=nvidia runs it on a GPU. */
#include "../support/fixture.h"

#include <hipmm/buffer.h>
#include <hipmm/span.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TOKENS = 4000, BLOCK_TOKENS = 16, BLOCKS = TOKENS / BLOCK_TOKENS, MOST_LAYERS = 128, MOST_SEQUENCES = 1024 };

/* How far above 1 the form with a span a layer may be, in per cent, at TOKENS tokens. */
enum { MOST_OVERHEAD = 5 };

static size_t n_layers, n_sequences, block_bytes;

/* ---- What the forms do ---- */

struct form {
  const char *name;
  void (*open)(void);
  void (*grow)(size_t sequence, size_t block);              /* room for the sequence's next block in each layer */
  char *(*at)(size_t layer, size_t sequence, size_t block); /* its address */
  void (*end)(size_t sequence, size_t n_blocks);            /* the sequence ends */
  void (*close)(void);
};

static void *spans[MOST_LAYERS * MOST_SEQUENCES];
static size_t granule;

static void create(size_t i, size_t bytes)
{
  assert_ok(hipmm_span_create(NULL, bytes, &granule, &spans[i]));
}

static size_t round_up(size_t bytes)
{
  return (bytes + granule - 1) / granule * granule;
}

/* ---- A span a layer. The block with a number lies at the same offset of each ---- */

static uint32_t table[MOST_SEQUENCES][BLOCKS];
static bool is_used[MOST_SEQUENCES * BLOCKS];

static void layers_open(void)
{
  memset(is_used, 0, sizeof is_used);
  for (size_t i = 0; i < n_layers; i++) create(i, n_sequences * BLOCKS * block_bytes);
  assert_int_equal(granule % block_bytes, 0);
}

/* The lowest free block, so that granules become free as wholes. */
static void layers_grow(size_t sequence, size_t block)
{
  size_t id = 0;
  while (is_used[id]) id++;
  is_used[id] = true;
  table[sequence][block] = (uint32_t)id;
  size_t first = id * block_bytes / granule * granule, end = round_up((id + 1) * block_bytes);
  for (size_t i = 0; i < n_layers; i++) assert_ok(hipmm_span_commit(spans[i], first, end - first));
}

static char *layers_at(size_t layer, size_t sequence, size_t block)
{
  return (char *)spans[layer] + table[sequence][block] * block_bytes;
}

/* Granules without a used block give their memory back. */
static void layers_end(size_t sequence, size_t n_blocks)
{
  for (size_t i = 0; i < n_blocks; i++) is_used[table[sequence][i]] = false;
  size_t per_granule = granule / block_bytes;
  for (size_t first = 0; first < n_sequences * BLOCKS; first += per_granule) {
    bool is_free = true;
    for (size_t id = first; id < first + per_granule && id < n_sequences * BLOCKS; id++) is_free &= !is_used[id];
    for (size_t i = 0; is_free && i < n_layers; i++)
      assert_ok(hipmm_span_decommit(spans[i], first * block_bytes, granule, NULL));
  }
}

static void layers_close(void)
{
  for (size_t i = 0; i < n_layers; i++) assert_ok(hipmm_span_destroy(spans[i], NULL));
}

/* ---- A span a sequence and layer ---- */

static void sequences_open(void)
{
  for (size_t i = 0; i < n_layers * n_sequences; i++) create(i, BLOCKS * block_bytes);
}

static void sequences_grow(size_t sequence, size_t block)
{
  for (size_t i = 0; i < n_layers; i++)
    assert_ok(hipmm_span_commit(spans[i * n_sequences + sequence], 0, round_up((block + 1) * block_bytes)));
}

static char *sequences_at(size_t layer, size_t sequence, size_t block)
{
  return (char *)spans[layer * n_sequences + sequence] + block * block_bytes;
}

static void sequences_end(size_t sequence, size_t n_blocks)
{
  for (size_t i = 0; i < n_layers; i++)
    assert_ok(hipmm_span_decommit(spans[i * n_sequences + sequence], 0, round_up(n_blocks * block_bytes), NULL));
}

static void sequences_close(void)
{
  for (size_t i = 0; i < n_layers * n_sequences; i++) assert_ok(hipmm_span_destroy(spans[i], NULL));
}

/* ---- A buffer a sequence and layer, which doubles ---- */

static struct hipmm_buffer *buffers[MOST_LAYERS * MOST_SEQUENCES];

static void copies_open(void)
{
  for (size_t i = 0; i < n_layers * n_sequences; i++) assert_ok(hipmm_buffer_create(NULL, 0, NULL, &buffers[i]));
}

static void copies_grow(size_t sequence, size_t block)
{
  for (size_t i = 0; i < n_layers; i++) {
    struct hipmm_buffer *buffer = buffers[i * n_sequences + sequence];
    size_t bytes = (block + 1) * block_bytes, capacity = hipmm_buffer_capacity_bytes(buffer);
    if (bytes > capacity) assert_ok(hipmm_buffer_reserve(buffer, capacity ? 2 * capacity : bytes, NULL));
    assert_ok(hipmm_buffer_resize(buffer, bytes, NULL));
  }
}

static char *copies_at(size_t layer, size_t sequence, size_t block)
{
  return (char *)hipmm_buffer_data(buffers[layer * n_sequences + sequence]) + block * block_bytes;
}

static void copies_end(size_t sequence, size_t n_blocks)
{
  (void)n_blocks;
  for (size_t i = 0; i < n_layers; i++) {
    struct hipmm_buffer *buffer = buffers[i * n_sequences + sequence];
    assert_ok(hipmm_buffer_resize(buffer, 0, NULL));
    assert_ok(hipmm_buffer_shrink_to_fit(buffer, NULL));
  }
}

static void copies_close(void)
{
  for (size_t i = 0; i < n_layers * n_sequences; i++) hipmm_buffer_destroy(buffers[i]);
}

/* ---- The program ---- */

static unsigned char tag(size_t layer, size_t sequence, size_t block)
{
  return (unsigned char)(layer * 37 + sequence * 11 + block * 3 + 1);
}

static void write_block(const struct form *form, size_t sequence, size_t block)
{
  form->grow(sequence, block);
  for (size_t layer = 0; layer < n_layers; layer++)
    assert_int_equal(
        fixture_hip()->MemsetAsync(form->at(layer, sequence, block), tag(layer, sequence, block), block_bytes, NULL),
        0);
}

/* The first and the last byte of each block. */
static void check_sequence(const struct form *form, size_t sequence, size_t n_blocks)
{
  for (size_t layer = 0; layer < n_layers; layer++)
    for (size_t block = 0; block < n_blocks; block++) {
      const char *ptr = form->at(layer, sequence, block);
      assert_true(fixture_holds(ptr, tag(layer, sequence, block), 1));
      assert_true(fixture_holds(ptr + block_bytes - 1, tag(layer, sequence, block), 1));
    }
}

/* Bytes over what all sequences use, in per cent, rounded up. */
static unsigned over_used(size_t bytes, size_t n_blocks)
{
  size_t used = n_layers * n_sequences * n_blocks * block_bytes;
  return (unsigned)((bytes * 100 + used - 1) / used);
}

static double seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All sequences grow to TOKENS tokens; then half of them end, and others take their places. Held over used at the end, in per
 * cent. */
static unsigned run(const struct form *form)
{
  unsigned held = 0;
  fixture_start("'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']");
  double began = seconds();
  form->open();
  printf("  %-26s", form->name);
  for (size_t block = 0; block < BLOCKS; block++) {
    for (size_t i = 0; i < n_sequences; i++) write_block(form, i, block);
    held = over_used(fixture_held_bytes(), block + 1);
    if ((block + 1) * 4 / BLOCKS > block * 4 / BLOCKS) printf(" %5u.%02u", held / 100, held % 100);
  }
  assert_int_equal(fixture_hip()->StreamSynchronize(NULL), 0);
  unsigned peak = over_used(fixture_peak_held_bytes(), BLOCKS);
  printf(" %7u.%02u %8.2f\n", peak / 100, peak % 100, seconds() - began);
  for (size_t i = 0; i < n_sequences; i += 2) form->end(i, BLOCKS);
  for (size_t i = 1; i < n_sequences; i += 2) check_sequence(form, i, BLOCKS);
  for (size_t block = 0; block < BLOCKS; block++)
    for (size_t i = 0; i < n_sequences; i += 2) write_block(form, i, block);
  for (size_t i = 0; i < n_sequences; i++) check_sequence(form, i, BLOCKS);
  form->close();
  return held;
}

static const struct form forms[] = {
    {"a span a layer", layers_open, layers_grow, layers_at, layers_end, layers_close},
    {"a span a sequence", sequences_open, sequences_grow, sequences_at, sequences_end, sequences_close},
    {"a buffer that is copied", copies_open, copies_grow, copies_at, copies_end, copies_close},
};

static void a_cache_holds_little_more_than_it_uses(void **state)
{
  (void)state;
  assert_true(run(&forms[0]) <= 100 + MOST_OVERHEAD);
}

static void with_a_span_a_sequence(void **state)
{
  (void)state;
  run(&forms[1]);
}

static void with_copies(void **state)
{
  (void)state;
  run(&forms[2]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_cache_holds_little_more_than_it_uses, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(with_a_span_a_sequence, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(with_copies, fixture_setup, fixture_teardown),
  };
  n_layers = number_from_environment("CACHE_LAYERS", 3);
  n_sequences = number_from_environment("CACHE_SEQUENCES", 6);
  block_bytes = number_from_environment("CACHE_TOKEN_BYTES", 1024) * BLOCK_TOKENS;
  if (!n_layers || n_layers > MOST_LAYERS || !n_sequences || n_sequences > MOST_SEQUENCES || !block_bytes) return 2;
  printf("  %zu layers, %zu sequences, %zu bytes a token and layer: held over used at so many tokens\n", n_layers,
         n_sequences, block_bytes / BLOCK_TOKENS);
  printf("  %-26s %8d %8d %8d %8d %10s %8s\n", "", TOKENS / 4, TOKENS / 2, TOKENS * 3 / 4, TOKENS, "peak", "seconds");
  return cmocka_run_group_tests_name("span_cache", tests, NULL, NULL);
}
