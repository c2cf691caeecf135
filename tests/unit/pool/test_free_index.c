/* SPDX-License-Identifier: MIT */
/* Tests of the index of free blocks against a plain array: what fits, by kind and size, and what is visited, all along
 * thousands of random changes. */
#include "../../../plugins/heap/free_index.h"
#include "../../support/random.h"
#include "../../support/support.h"
#include "fake.h"

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
  assert_true(address_map_cover(&blocks.map, START, 1ull << 42));
}

static int close_all(void **state)
{
  (void)state;
  blocks_close(&blocks);
  return fake_end();
}

/* ---- The plain array ---- */

static const struct block *block_in(const struct slot *slot)
{
  return block_of(&blocks, slot->id);
}

static enum kind kind_of(const struct block *block)
{
  uint64_t granule = blocks.granule_bytes;
  if (!granule) return KIND_PARTIAL; /* a whole segment */
  if (block->uncommitted) return KIND_PARTIAL;
  uint64_t first = (block->start + granule - 1) / granule, end = (block->start + block->bytes) / granule;
  return first < end ? KIND_WHOLE : KIND_BUSY;
}

/* What the lists distinguish: each size below 64 KiB, and sixteenths of a doubling. */
static uint64_t size_class(uint64_t bytes)
{
  uint64_t units = bytes / HIPMM_ALIGNMENT, step = 1;
  while (units >= KIB64 / HIPMM_ALIGNMENT && units / step >= 32) step *= 2;
  return units / step * step;
}

/* The best fit of the kind. */
static const struct slot *plain_fit(enum kind kind, uint64_t bytes)
{
  const struct slot *best = NULL;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) {
    if (!slot->id || kind_of(block_in(slot)) != kind || block_in(slot)->bytes < bytes) continue;
    if (!best || block_in(slot)->bytes < block_in(best)->bytes) best = slot;
  }
  return best;
}

/* The best fit, or at least one of its list; where the request's own list is long, maybe a larger one. */
static void assert_fits(uint64_t bytes)
{
  for (enum kind kind = KIND_BUSY; kind < KINDS; kind++) {
    const struct slot *best = plain_fit(kind, bytes);
    uint32_t id = free_index_fit(&idx, &blocks, kind, bytes);
    assert_int_equal(id != BLOCK_NONE, best != NULL);
    if (!id) continue;
    assert_int_equal(kind_of(block_of(&blocks, id)), kind);
    assert_true(block_of(&blocks, id)->bytes >= bytes);
    if (size_class(block_in(best)->bytes) > size_class(bytes))
      assert_int_equal(size_class(block_of(&blocks, id)->bytes), size_class(block_in(best)->bytes));
  }
}

/* The lowest of all blocks that fit, where there are few; where there are many, one of them. */
static void assert_finds_lowest(uint64_t bytes)
{
  const struct slot *lowest = NULL;
  unsigned n = 0;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) {
    if (!slot->id || block_in(slot)->bytes < bytes) continue;
    n++;
    if (!lowest || block_in(slot)->start < block_in(lowest)->start) lowest = slot;
  }
  uint32_t id = free_index_lowest(&idx, &blocks, bytes);
  assert_int_equal(id != BLOCK_NONE, lowest != NULL);
  if (!id) return;
  assert_true(block_of(&blocks, id)->bytes >= bytes);
  if (n <= LOWEST_STEPS / 2) assert_int_equal(block_of(&blocks, id)->start, block_in(lowest)->start);
}

/* Each block once, larger lists first. */
static void assert_visits_all(void)
{
  unsigned n = 0, visited = 0;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) n += slot->id != BLOCK_NONE;
  for (enum kind kind = KIND_BUSY; kind < KINDS; kind++) {
    uint64_t last = UINT64_MAX;
    for (uint32_t id = BLOCK_NONE; (id = free_index_next(&idx, &blocks, kind, id)); visited++) {
      assert_int_equal(kind_of(block_of(&blocks, id)), kind);
      assert_true(size_class(block_of(&blocks, id)->bytes) <= last);
      last = size_class(block_of(&blocks, id)->bytes);
      assert_true(visited <= n);
    }
  }
  assert_int_equal(visited, n);
}

static void assert_finds_holders(void)
{
  unsigned n = 0;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS; slot++) n += slot->id != BLOCK_NONE;
  for (const struct slot *slot = slots; slot < slots + N_SLOTS && blocks.granule_bytes; slot += 7) {
    uint64_t at = (slot->start + GRANULE - 1) / GRANULE * GRANULE;
    uint32_t found = free_index_holding(&idx, &blocks, at, at + GRANULE);
    bool holds = slot->id && block_holds(block_in(slot), at, at + GRANULE);
    if (found) assert_true(block_holds(block_of(&blocks, found), at, at + GRANULE));
    if (n < 100 && holds) assert_int_equal(found, slot->id);
  }
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
  assert_int_equal(free_index_bytes(&idx, &blocks, UINT64_MAX), bytes);
  assert_int_equal(idx.words != 0, count != 0);
  assert_int_equal(any_is_there, count != 0);
}

/* ---- Random changes ---- */

/* Sizes that matter: about the border between lists of one size and others, about the granule, and any. */
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
    block_of(&blocks, slot->id)->uncommitted = blocks.granule_bytes && bytes >= 2 * GRANULE && random_below(random, 2);
    slot->since = ++now;
    free_index_add(&idx, &blocks, slot->id);
  } else if (random_below(random, 2)) {
    block_of(&blocks, slot->id)->uncommitted = blocks.granule_bytes && bytes >= 2 * GRANULE && random_below(random, 2);
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
    assert_finds_lowest(draw_bytes(&random, 8 * GRANULE));
    if (i % 16 == 0) assert_visits_all();
    if (i % 16 == 0) assert_finds_holders();
    if (i % 16 == 0) assert_counts();
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

static uint32_t fit(enum kind kind, uint64_t bytes)
{
  return free_index_fit(&idx, &blocks, kind, bytes);
}

static void has_nothing_when_empty(void **state)
{
  (void)state;
  assert_fits(256);
  assert_fits(1ull << 45);
  assert_finds_lowest(256);
  assert_finds_lowest(1ull << 45);
  assert_int_equal(free_index_any(&idx, &blocks), BLOCK_NONE);
  assert_int_equal(free_index_next(&idx, &blocks, KIND_WHOLE, BLOCK_NONE), BLOCK_NONE);
}

static void takes_the_smallest_listed_block_the_last_freed_first(void **state)
{
  (void)state;
  cover(0);
  uint32_t larger_one = add_at(0, START, 1024);
  uint32_t first = add_at(1, START + 4096, 512), second = add_at(2, START + 8192, 512);
  assert_int_equal(fit(KIND_PARTIAL, 256), second);
  free_index_remove(&idx, &blocks, second);
  assert_int_equal(fit(KIND_PARTIAL, 512), first);
  assert_int_equal(fit(KIND_PARTIAL, 768), larger_one);
  assert_int_equal(fit(KIND_PARTIAL, 1280), BLOCK_NONE);
}

static void tells_blocks_in_busy_granules_from_whole_ones(void **state)
{
  (void)state;
  cover(GRANULE);
  uint32_t idle = add_at(0, START, 2 * GRANULE);
  uint32_t mixed = add_at(1, START + 3 * GRANULE - 2 * KIB64, 4 * GRANULE);    /* 128 KiB, then whole granules */
  uint32_t within = add_at(2, START + 9 * GRANULE + 4096, GRANULE - 2 * 4096); /* no whole granule */
  uint32_t across = add_at(3, START + 20 * GRANULE + 256, 2 * GRANULE - 512);  /* none either */
  assert_int_equal(fit(KIND_BUSY, KIB64), within);
  assert_int_equal(fit(KIND_BUSY, GRANULE), across);
  assert_int_equal(fit(KIND_BUSY, 2 * GRANULE), BLOCK_NONE);
  assert_int_equal(fit(KIND_WHOLE, KIB64), idle);
  assert_int_equal(fit(KIND_WHOLE, 2 * GRANULE + 256), mixed);
  assert_int_equal(fit(KIND_PARTIAL, 256), BLOCK_NONE);
}

/* Without granules; its neighbours come and go. */
static void tells_segments_from_their_parts(void **state)
{
  (void)state;
  cover(0);
  uint32_t id = add_at(0, START, 4096);
  assert_int_equal(fit(KIND_PARTIAL, 4096), id);
  for (int is_for_small = 0; is_for_small < 2; is_for_small++)
    for (int is_first = 0; is_first < 2; is_first++) {
      struct block *block = block_of(&blocks, id);
      block->is_for_small = is_for_small;
      *(is_first ? &block->after : &block->before) = 1000;
      free_index_move(&idx, &blocks, id, START, 4096);
      assert_int_equal(fit(is_for_small ? KIND_BUSY : KIND_WHOLE, 4096), id);
      assert_int_equal(fit(KIND_PARTIAL, 4096), BLOCK_NONE);
      block->after = block->before = BLOCK_NONE;
      free_index_move(&idx, &blocks, id, START, 4096);
      assert_int_equal(fit(KIND_PARTIAL, 4096), id);
    }
}

/* Its bounds stay, and chunks leave it. */
static void finds_the_kind_of_a_block_anew(void **state)
{
  (void)state;
  cover(GRANULE);
  uint32_t id = add_at(0, START, 4 * GRANULE);
  assert_int_equal(fit(KIND_WHOLE, GRANULE), id);
  block_of(&blocks, id)->uncommitted = 2;
  free_index_move(&idx, &blocks, id, START, 4 * GRANULE);
  assert_int_equal(fit(KIND_WHOLE, GRANULE), BLOCK_NONE);
  assert_int_equal(fit(KIND_PARTIAL, GRANULE), id);
  block_of(&blocks, id)->uncommitted = 0;
  free_index_move(&idx, &blocks, id, START, GRANULE - 256);
  assert_int_equal(fit(KIND_PARTIAL, 256), BLOCK_NONE);
  assert_int_equal(fit(KIND_BUSY, 256), id);
  assert_int_equal(free_index_bytes(&idx, &blocks, UINT64_MAX), GRANULE - 256);
}

static void prefers_the_smallest_that_fits(void **state)
{
  (void)state;
  cover(0);
  for (unsigned i = 0; i < N_SLOTS; i++) add_at(i, START + i * GRANULE, KIB64 * (1 + i % 16));
  const unsigned last = N_SLOTS - 1 - (N_SLOTS - 1) % 16; /* freed last of the smallest */
  for (unsigned i = 0; i < 11; i++) assert_int_equal(fit(KIND_PARTIAL, KIB64 * (1 + i)), slots[last + i].id);
  free_index_remove(&idx, &blocks, slots[last + 5].id);
  assert_int_equal(fit(KIND_PARTIAL, 6 * KIB64), slots[last + 5 - 16].id);
  assert_int_equal(fit(KIND_PARTIAL, 6 * KIB64 - 256), slots[last + 5 - 16].id);
}

/* As a range of addresses for a device with a terabyte is. */
static void knows_blocks_of_terabytes(void **state)
{
  uint64_t tib = 1ull << 40;
  (void)state;
  cover(GRANULE);
  uint32_t small = add_at(0, START, GRANULE), large = add_at(1, START + 2 * GRANULE, tib);
  uint32_t largest = add_at(2, START + 2 * GRANULE + 2 * tib, 16 * tib + 256);
  assert_int_equal(fit(KIND_WHOLE, GRANULE), small);
  assert_int_equal(fit(KIND_WHOLE, 2 * GRANULE), large);
  assert_int_equal(fit(KIND_WHOLE, tib), large);
  assert_int_equal(fit(KIND_WHOLE, 16 * tib + 256), largest);
  assert_int_equal(fit(KIND_WHOLE, 16 * tib + 512), BLOCK_NONE);
  assert_visits_all();
}

static void finds_the_block_that_holds_a_granule(void **state)
{
  (void)state;
  cover(GRANULE);
  uint32_t high = add_at(0, START + GRANULE, 3 * GRANULE), other = add_at(1, START + 8 * GRANULE, 4 * GRANULE);
  assert_int_equal(free_index_holding(&idx, &blocks, START + GRANULE, START + 2 * GRANULE), high);
  assert_int_equal(free_index_holding(&idx, &blocks, START + 2 * GRANULE, START + 4 * GRANULE), high);
  assert_int_equal(free_index_holding(&idx, &blocks, START + 2 * GRANULE, START + 5 * GRANULE), BLOCK_NONE);
  assert_int_equal(free_index_holding(&idx, &blocks, START, START + GRANULE), BLOCK_NONE);
  assert_int_equal(free_index_holding(&idx, &blocks, START + 11 * GRANULE, START + 12 * GRANULE), other);
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
  cover(0);
  for (uint64_t i = 0; i < MANY; i++) {
    uint32_t id = block_new(&blocks, START + i * 2 * first_bytes, first_bytes + i * HIPMM_ALIGNMENT);
    free_index_add(&idx, &blocks, id);
    assert_in_range(position_of(id), 0, LIST_STEPS);
  }
  assert_int_equal(block_of(&blocks, fit(KIND_PARTIAL, first_bytes))->bytes, first_bytes);

  /* The only block that fits is found, wherever it stands. */
  uint32_t last = fit(KIND_PARTIAL, last_bytes);
  assert_int_equal(block_of(&blocks, last)->bytes, last_bytes);

  /* A larger block is taken before the whole list is searched. */
  uint32_t larger = block_new(&blocks, START + MANY * 2 * first_bytes, 2 * first_bytes);
  free_index_add(&idx, &blocks, larger);
  assert_int_equal(position_of(last), LIST_STEPS);
  assert_int_equal(fit(KIND_PARTIAL, last_bytes), larger);
  while (idx.words) free_index_remove(&idx, &blocks, free_index_any(&idx, &blocks));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
  const struct CMUnitTest tests[] = {
      TEST(has_nothing_when_empty),
      TEST(takes_the_smallest_listed_block_the_last_freed_first),
      TEST(tells_blocks_in_busy_granules_from_whole_ones),
      TEST(tells_segments_from_their_parts),
      TEST(finds_the_kind_of_a_block_anew),
      TEST(prefers_the_smallest_that_fits),
      TEST(knows_blocks_of_terabytes),
      TEST(finds_the_block_that_holds_a_granule),
      TEST(bounds_the_steps_in_a_list_of_many_sizes),
      TEST(agrees_with_a_plain_array_without_granules),
      TEST(agrees_with_a_plain_array_with_granules),
      TEST(agrees_with_a_plain_array_with_small_granules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
