/* SPDX-License-Identifier: MIT */
/* Tests of the index of free blocks against a plain array: what fits, what is visited, and what the tree's nodes know,
 * all along thousands of random changes. */
#include "../../../plugins/pool/free_index.h"
#include "../../support/random.h"
#include "../../support/support.h"
#include "fake.h"

#include <stdlib.h>
#include <string.h>

enum { N_SLOTS = 300, STEPS = 6000 };

static const uint64_t START = 0x300000000000;
static const uint64_t KIB64 = 1 << 16;
static const uint64_t GRANULE = 2 << 20;

static struct blocks blocks;
static struct free_index idx;

/* A part of the address space in which at most one block lies. */
struct slot {
  uint64_t start, bytes;
  uint32_t id;    /* BLOCK_NONE: no block */
  uint64_t since; /* when the block came into its list */
};

static struct slot slots[N_SLOTS];
static uint64_t now;

static int open_all(void **state)
{
  (void)state;
  memset(&idx, 0, sizeof idx);
  memset(slots, 0, sizeof slots);
  now = 0;
  return blocks_open(&blocks, fake_begin()) ? 0 : -1;
}

/* Addresses for the test; with granules, as they are told before there is any. */
static void cover(uint64_t granule)
{
  blocks.granule_bytes = granule;
  assert_true(blocks_cover(&blocks, START, 1ull << 42));
  assert_true(free_index_cover(&idx, &blocks));
}

static int close_all(void **state)
{
  (void)state;
  free_index_close(&idx, &blocks);
  blocks_close(&blocks);
  return fake_end();
}

/* ---- The plain array ---- */

static const struct block *block_in(const struct slot *slot)
{
  return block_of(&blocks, slot->id);
}

/* The bytes before the first granule that lies wholly in the block; all, if none does. */
static uint64_t prefix_of(const struct block *block, uint64_t granule)
{
  uint64_t whole = (block->start + granule - 1) / granule * granule;
  return whole + granule <= block->start + block->bytes ? whole - block->start : block->bytes;
}

static bool is_listed(const struct block *block)
{
  return !blocks.granule_bytes || (block->bytes < KIB64 && block->bytes < blocks.granule_bytes);
}

static int compare(const void *a, const void *b)
{
  const struct block *x = block_in(*(const struct slot *const *)a), *y = block_in(*(const struct slot *const *)b);
  return x->start < y->start ? -1 : x->start > y->start;
}

/* The blocks that are in no list, by address. */
static unsigned sort(const struct slot **sorted)
{
  unsigned n = 0;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++)
    if (slot->id && !is_listed(block_in(slot))) sorted[n++] = slot;
  qsort(sorted, n, sizeof *sorted, compare);
  return n;
}

static const struct slot *best_in_lists(uint64_t bytes)
{
  const struct slot *best = NULL;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) {
    if (!slot->id || !is_listed(block_in(slot)) || block_in(slot)->bytes < bytes) continue;
    bool is_better = !best || block_in(slot)->bytes < block_in(best)->bytes ||
                     (block_in(slot)->bytes == block_in(best)->bytes && slot->since > best->since);
    if (is_better) best = slot;
  }
  return best;
}

static uint32_t plain_fit(uint64_t bytes, enum fit *fit_out)
{
  bool may_be_listed = is_listed(&(struct block){.bytes = bytes});
  const struct slot *best = may_be_listed ? best_in_lists(bytes) : NULL, *sorted[N_SLOTS];
  unsigned n = sort(sorted);
  *fit_out = FIT_LIST;
  if (best) return best->id;
  *fit_out = FIT_BUSY;
  for (unsigned i = 0; bytes < blocks.granule_bytes && i < n; i++)
    if (prefix_of(block_in(sorted[i]), blocks.granule_bytes) >= bytes) return sorted[i]->id;
  *fit_out = FIT_ANYWHERE;
  for (unsigned i = 0; i < n; i++)
    if (block_in(sorted[i])->bytes >= bytes) return sorted[i]->id;
  *fit_out = FIT_NONE;
  return BLOCK_NONE;
}

static void assert_fits(uint64_t bytes)
{
  enum fit fit, plain;
  uint32_t wanted = plain_fit(bytes, &plain), id = free_index_fit(&idx, &blocks, bytes, &fit);
  if (id != wanted) print_error("for %llu bytes\n", (unsigned long long)bytes);
  assert_int_equal(id, wanted);
  assert_int_equal(fit, plain);
}

static void assert_visits_all(uint64_t bytes)
{
  const struct slot *sorted[N_SLOTS];
  uint32_t id = BLOCK_NONE;
  for (unsigned i = sort(sorted); i-- > 0;) {
    if (block_in(sorted[i])->bytes < bytes) continue;
    id = free_index_below(&idx, &blocks, id, bytes);
    assert_int_equal(id, sorted[i]->id);
  }
  assert_int_equal(free_index_below(&idx, &blocks, id, bytes), BLOCK_NONE);
}

static void assert_counts(void)
{
  uint64_t bytes = 0;
  uint32_t count = 0, any = free_index_any(&idx, &blocks);
  bool any_is_there = false;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) {
    if (!slot->id) continue;
    bytes += block_in(slot)->bytes;
    count++;
    any_is_there |= slot->id == any;
  }
  assert_int_equal(idx.bytes, bytes);
  assert_int_equal(idx.count, count);
  assert_int_equal(any_is_there, count != 0);
}

/* ---- What the tree's nodes know ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
  return a > b ? a : b;
}

static uint64_t in_units(uint64_t bytes)
{
  return bytes >> UNIT_BITS < UINT32_MAX ? bytes >> UNIT_BITS : UINT32_MAX;
}

/* Of each cell the most room, by the plain array. */
static uint64_t cells[MEASURES][N_SLOTS * 8];

static uint32_t n_cells_in_use;

static void fill_cells(void)
{
  memset(cells, 0, sizeof cells);
  n_cells_in_use = 0;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) {
    if (!slot->id || is_listed(block_in(slot))) continue;
    uint32_t cell = block_cell(&blocks, block_in(slot)->start);
    assert_in_range(cell, 0, N_SLOTS * 8 - 1);
    cells[MEASURE_WHOLE][cell] = larger(cells[MEASURE_WHOLE][cell], in_units(block_in(slot)->bytes));
    uint64_t busy = prefix_of(block_in(slot), blocks.granule_bytes);
    cells[MEASURE_BUSY][cell] = larger(cells[MEASURE_BUSY][cell], in_units(busy));
    if (cell >= n_cells_in_use) n_cells_in_use = cell + 1;
  }
}

/* The nodes of the first level know exactly, those above never too little. */
static void assert_nodes_know(void)
{
  if (!blocks.granule_bytes) return;
  fill_cells();
  for (unsigned room = 0; room < MEASURES; room++)
    for (uint32_t cell = 0; cell < n_cells_in_use; cell++) {
      assert_int_equal(idx.tree.levels[0][cell / FAN].most[cell % FAN][room], cells[room][cell]);
      uint32_t child = cell;
      for (uint32_t level = 1; level < idx.tree.n_levels; level++) {
        child /= FAN;
        assert_true(idx.tree.levels[level][child / FAN].most[child % FAN][room] >= cells[room][cell]);
      }
    }
}

/* ---- Random changes ---- */

/* Sizes that matter: about the border between lists and tree, about the granule, and any. */
static uint64_t draw_bytes(uint64_t *random, uint64_t most)
{
  uint64_t near = random_below(random, 5) * HIPMM_ALIGNMENT - 2 * HIPMM_ALIGNMENT, bytes;
  switch (random_below(random, 4)) {
  case 0: bytes = KIB64 + near; break;
  case 1: bytes = (1 + random_below(random, 3)) * GRANULE + near; break;
  case 2: bytes = (1 + random_below(random, 256)) * HIPMM_ALIGNMENT; break;
  default: bytes = (1 + random_below(random, most / HIPMM_ALIGNMENT)) * HIPMM_ALIGNMENT;
  }
  return bytes < most ? bytes : most;
}

/* A place in the slot, often at the slot's start, which is often a granule's. */
static uint64_t draw_start(uint64_t *random, const struct slot *slot, uint64_t bytes)
{
  uint64_t room = (slot->bytes - bytes) / HIPMM_ALIGNMENT;
  return slot->start + (random_below(random, 2) ? random_below(random, room + 1) * HIPMM_ALIGNMENT : 0);
}

static void make_slots(uint64_t *random)
{
  uint64_t start = START;
  for (struct slot *slot = slots; slot < slots + N_SLOTS; slot++) {
    slot->start = start;
    slot->bytes =
        random_below(random, 3) ? GRANULE * (1 + random_below(random, 3)) : KIB64 * (1 + random_below(random, 40));
    start += slot->bytes;
  }
}

static void change(uint64_t *random, struct slot *slot)
{
  uint64_t bytes = draw_bytes(random, slot->bytes), start = draw_start(random, slot, bytes);
  if (!slot->id) {
    slot->id = block_new(&blocks, start, bytes);
    slot->since = ++now;
    free_index_add(&idx, &blocks, slot->id);
  } else if (random_below(random, 2)) {
    free_index_move(&idx, &blocks, slot->id, start, bytes);
    slot->since = ++now;
    assert_int_equal(block_in(slot)->start, start);
    assert_int_equal(block_in(slot)->bytes, bytes);
  } else {
    free_index_remove(&idx, &blocks, slot->id);
    block_drop(&blocks, slot->id);
    slot->id = BLOCK_NONE;
  }
}

static void agrees_with_a_plain_array(uint64_t granule, uint64_t seed)
{
  uint64_t random = seed;
  cover(granule);
  make_slots(&random);
  for (unsigned i = 0; i < STEPS; i++) {
    uint64_t among = i / 1000 % 2 ? N_SLOTS : N_SLOTS / 10; /* now dense, now sparse */
    change(&random, &slots[random_below(&random, among)]);
    assert_fits(draw_bytes(&random, 4 * GRANULE));
    if (i % 16 == 0 && granule) assert_visits_all(KIB64 + draw_bytes(&random, 4 * GRANULE));
    if (i % 16 == 0) assert_counts();
    if (i % 16 == 0) assert_nodes_know();
  }
}

static void agrees_with_a_plain_array_without_granules(void **state)
{
  (void)state;
  agrees_with_a_plain_array(0, 1);
}

static void agrees_with_a_plain_array_with_granules(void **state)
{
  (void)state;
  agrees_with_a_plain_array(GRANULE, 2);
}

/* As in a runtime with granules smaller than what lists hold. */
static void agrees_with_a_plain_array_with_small_granules(void **state)
{
  (void)state;
  agrees_with_a_plain_array(4096, 3);
}

/* ---- Single rules ---- */

static uint32_t add_at(unsigned slot, uint64_t start, uint64_t bytes)
{
  slots[slot] = (struct slot){start, bytes, block_new(&blocks, start, bytes), ++now};
  free_index_add(&idx, &blocks, slots[slot].id);
  return slots[slot].id;
}

static uint32_t fit(uint64_t bytes, enum fit wanted)
{
  enum fit found;
  uint32_t id = free_index_fit(&idx, &blocks, bytes, &found);
  assert_int_equal(found, wanted);
  return id;
}

static void has_nothing_when_empty(void **state)
{
  (void)state;
  assert_int_equal(fit(256, FIT_NONE), BLOCK_NONE);
  assert_int_equal(fit(1ull << 45, FIT_NONE), BLOCK_NONE);
  assert_int_equal(free_index_any(&idx, &blocks), BLOCK_NONE);
  assert_int_equal(free_index_below(&idx, &blocks, BLOCK_NONE, KIB64), BLOCK_NONE);
}

static void takes_the_smallest_listed_block_the_last_freed_first(void **state)
{
  (void)state;
  cover(0);
  uint32_t larger_one = add_at(0, START, 1024);
  uint32_t first = add_at(1, START + 4096, 512), second = add_at(2, START + 8192, 512);
  assert_int_equal(fit(256, FIT_LIST), second);
  free_index_remove(&idx, &blocks, second);
  assert_int_equal(fit(512, FIT_LIST), first);
  assert_int_equal(fit(768, FIT_LIST), larger_one);
  assert_int_equal(fit(1280, FIT_NONE), BLOCK_NONE);
}

static void keeps_lists_up_to_the_last_size_below_64_kib(void **state)
{
  (void)state;
  cover(GRANULE);
  uint32_t last = add_at(0, START, KIB64 - 256), tree = add_at(1, START + KIB64, KIB64);
  assert_int_equal(fit(KIB64 - 256, FIT_LIST), last);
  assert_int_equal(fit(KIB64, FIT_BUSY), tree);
  free_index_remove(&idx, &blocks, last);
  assert_int_equal(fit(KIB64 - 256, FIT_BUSY), tree);
}

static void prefers_places_in_granules_that_are_busy_anyway(void **state)
{
  (void)state;
  cover(GRANULE);
  uint32_t idle = add_at(0, START, 2 * GRANULE);                               /* no prefix */
  uint32_t mixed = add_at(1, START + 3 * GRANULE - 2 * KIB64, 4 * GRANULE);    /* 128 KiB, then whole granules */
  uint32_t within = add_at(2, START + 9 * GRANULE + 4096, GRANULE - 2 * 4096); /* no whole granule */
  assert_int_equal(fit(KIB64, FIT_BUSY), mixed);
  assert_int_equal(fit(2 * KIB64, FIT_BUSY), mixed);
  assert_int_equal(fit(2 * KIB64 + 256, FIT_BUSY), within);
  assert_int_equal(fit(GRANULE - 256, FIT_ANYWHERE), idle);
  assert_int_equal(fit(GRANULE, FIT_ANYWHERE), idle);
  assert_int_equal(fit(2 * GRANULE + 256, FIT_ANYWHERE), mixed);
  assert_int_equal(fit(5 * GRANULE, FIT_NONE), BLOCK_NONE);
}

static void prefers_the_smallest_that_fits_where_nothing_moves(void **state)
{
  (void)state;
  cover(0);
  for (unsigned i = 0; i < N_SLOTS; i++) add_at(i, START + i * GRANULE, KIB64 * (1 + i % 16));
  const unsigned last = N_SLOTS - 1 - (N_SLOTS - 1) % 16; /* freed last of the smallest */
  for (unsigned i = 0; i < 11; i++) assert_int_equal(fit(KIB64 * (1 + i), FIT_LIST), slots[last + i].id);
  free_index_remove(&idx, &blocks, slots[last + 5].id);
  assert_int_equal(fit(6 * KIB64, FIT_LIST), slots[last + 5 - 16].id);
  assert_int_equal(fit(6 * KIB64 - 256, FIT_LIST), slots[last + 5 - 16].id);
}

static void prefers_the_lowest_address_where_granules_move(void **state)
{
  (void)state;
  cover(GRANULE);
  for (unsigned i = 0; i < N_SLOTS; i++) add_at(i, START + i * GRANULE, KIB64 * (1 + i % 16));
  for (unsigned i = 0; i < 16; i++) assert_int_equal(fit(KIB64 * (1 + i), FIT_BUSY), slots[i].id);
  add_at(0, START + N_SLOTS * GRANULE, GRANULE);
  uint32_t lower = add_at(1, START + (N_SLOTS + 2) * GRANULE, 3 * GRANULE);
  add_at(2, START + (N_SLOTS + 6) * GRANULE, 2 * GRANULE);
  assert_int_equal(fit(2 * GRANULE, FIT_ANYWHERE), lower);
}

/* As a range of addresses for a device with a terabyte is. */
static void knows_blocks_of_terabytes(void **state)
{
  uint64_t tib = 1ull << 40;
  (void)state;
  cover(GRANULE);
  uint32_t small = add_at(0, START, GRANULE), large = add_at(1, START + 2 * GRANULE, tib);
  uint32_t largest = add_at(2, START + 2 * GRANULE + 2 * tib, 16 * tib + 256);
  assert_int_equal(fit(GRANULE, FIT_ANYWHERE), small);
  assert_int_equal(fit(2 * GRANULE, FIT_ANYWHERE), large);
  assert_int_equal(fit(tib, FIT_ANYWHERE), large);
  assert_int_equal(fit(16 * tib + 256, FIT_ANYWHERE), largest);
  assert_int_equal(fit(16 * tib + 512, FIT_NONE), BLOCK_NONE);
  assert_visits_all(tib + 256);
}

static void remembers_when_more_addresses_come(void **state)
{
  (void)state;
  cover(GRANULE);
  uint32_t first = add_at(0, START + GRANULE, 3 * GRANULE), second = add_at(1, START + 8 * GRANULE, 5 * GRANULE);
  uint64_t far = START + (1ull << 43);
  uint32_t levels = idx.tree.n_levels;
  assert_true(blocks_cover(&blocks, far, 1ull << 45));
  assert_true(free_index_cover(&idx, &blocks));
  assert_true(idx.tree.n_levels > levels);
  uint32_t third = add_at(2, far + (1ull << 44), 7 * GRANULE);
  assert_int_equal(fit(2 * GRANULE, FIT_ANYWHERE), first);
  assert_int_equal(fit(4 * GRANULE, FIT_ANYWHERE), second);
  assert_int_equal(fit(6 * GRANULE, FIT_ANYWHERE), third);
  assert_int_equal(free_index_below(&idx, &blocks, BLOCK_NONE, GRANULE), third);
  assert_int_equal(free_index_below(&idx, &blocks, third, GRANULE), second);
  free_index_remove(&idx, &blocks, second);
  assert_int_equal(fit(4 * GRANULE, FIT_ANYWHERE), third);
}

/* Addresses that come later may lie lower: a block of the first ones holds nothing there. */
static void finds_the_block_that_holds_a_granule(void **state)
{
  const uint64_t low = START - (1ull << 43);
  (void)state;
  cover(GRANULE);
  uint32_t high = add_at(0, START + GRANULE, 3 * GRANULE);
  assert_int_equal(free_index_holding(&idx, &blocks, START + GRANULE, START + 2 * GRANULE), high);
  assert_int_equal(free_index_holding(&idx, &blocks, START + 2 * GRANULE, START + 4 * GRANULE), high);
  assert_int_equal(free_index_holding(&idx, &blocks, START + 2 * GRANULE, START + 5 * GRANULE), BLOCK_NONE);
  assert_int_equal(free_index_holding(&idx, &blocks, START, START + GRANULE), BLOCK_NONE);
  assert_true(blocks_cover(&blocks, low, 1ull << 42));
  assert_true(free_index_cover(&idx, &blocks));
  assert_int_equal(free_index_holding(&idx, &blocks, low + GRANULE, low + 2 * GRANULE), BLOCK_NONE);
  uint32_t other = add_at(1, low, 4 * GRANULE);
  assert_int_equal(free_index_holding(&idx, &blocks, low + GRANULE, low + 2 * GRANULE), other);
  assert_int_equal(free_index_holding(&idx, &blocks, low + 4 * GRANULE, low + 5 * GRANULE), BLOCK_NONE);
  assert_int_equal(free_index_holding(&idx, &blocks, START + 2 * GRANULE, START + 4 * GRANULE), high);
}

/* ---- Steps in long lists ---- */

/* How many blocks stand before this one in its list: the steps that it took to get there. */
static unsigned position_of(uint32_t id)
{
  unsigned position = 0;
  while ((id = block_of(&blocks, id)->previous)) position++;
  return position;
}

/* Blocks of ascending sizes, all in one list: the whole list would have to be passed each time. */
static void bounds_the_steps_in_a_list_of_many_sizes(void **state)
{
  (void)state;
  enum { MANY = 2000 };
  const uint64_t first_bytes = 64ull << 20, last_bytes = first_bytes + (MANY - 1) * HIPMM_ALIGNMENT;
  enum fit fit;
  cover(0);
  for (uint64_t i = 0; i < MANY; i++) {
    uint32_t id = block_new(&blocks, START + i * 2 * first_bytes, first_bytes + i * HIPMM_ALIGNMENT);
    free_index_add(&idx, &blocks, id);
    assert_in_range(position_of(id), 0, LIST_STEPS);
  }
  assert_int_equal(block_of(&blocks, free_index_largest_listed(&idx, &blocks))->bytes, last_bytes);
  assert_int_equal(block_of(&blocks, free_index_fit(&idx, &blocks, first_bytes, &fit))->bytes, first_bytes);

  /* The only block that fits is found, wherever it stands. */
  uint32_t last = free_index_fit(&idx, &blocks, last_bytes, &fit);
  assert_int_equal(block_of(&blocks, last)->bytes, last_bytes);

  /* A larger block is taken before the whole list is searched. */
  uint32_t larger = block_new(&blocks, START + MANY * 2 * first_bytes, 2 * first_bytes);
  free_index_add(&idx, &blocks, larger);
  assert_int_equal(position_of(last), LIST_STEPS);
  assert_int_equal(free_index_fit(&idx, &blocks, last_bytes, &fit), larger);
  assert_int_equal(fit, FIT_LIST);
  while (idx.count) free_index_remove(&idx, &blocks, free_index_any(&idx, &blocks));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(has_nothing_when_empty),
      TEST(takes_the_smallest_listed_block_the_last_freed_first),
      TEST(keeps_lists_up_to_the_last_size_below_64_kib),
      TEST(prefers_places_in_granules_that_are_busy_anyway),
      TEST(prefers_the_smallest_that_fits_where_nothing_moves),
      TEST(prefers_the_lowest_address_where_granules_move),
      TEST(knows_blocks_of_terabytes),
      TEST(remembers_when_more_addresses_come),
      TEST(finds_the_block_that_holds_a_granule),
      TEST(bounds_the_steps_in_a_list_of_many_sizes),
      TEST(agrees_with_a_plain_array_without_granules),
      TEST(agrees_with_a_plain_array_with_granules),
      TEST(agrees_with_a_plain_array_with_small_granules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
