/* SPDX-License-Identifier: MIT */
/* Tests of core/base/key_tree.c and core/base/key_map.c: random operations against a plain array, and the keys at both
 * ends. */
#include "../../core/base/key_map.h"
#include "../../core/base/key_tree.h"
#include "../../core/base/text.h"
#include "../support/random.h"
#include "../support/support.h"

#include <stdlib.h>

/* ---- The tree ---- */

enum { NODES = 400, STEPS = 20000 };

/* In the order of their keys: 20 majors with 20 minors each, of which the first and the last are the ends of all numbers. */
static struct member {
  struct key_tree_node node;
  bool is_in;
} members[NODES];

static uintptr_t end_or_number(size_t i)
{
  return i == 0 ? 0 : i == 19 ? UINTPTR_MAX : (i << 20) + i % 3;
}

/* The first from the index on that is in the tree. */
static struct key_tree_node *model_from(size_t i)
{
  while (i < NODES && !members[i].is_in) i++;
  return i < NODES ? &members[i].node : NULL;
}

static struct key_tree_node *model_at_least(uintptr_t major, uintptr_t minor)
{
  size_t i = 0;
  while (i < NODES &&
         (members[i].node.major < major || (members[i].node.major == major && members[i].node.minor < minor)))
    i++;
  return model_from(i);
}

static struct key_tree_node *model_at_most(uintptr_t major)
{
  size_t i = NODES;
  while (i && (!members[i - 1].is_in || members[i - 1].node.major > major)) i--;
  return i ? &members[i - 1].node : NULL;
}

static void tree_agrees_with_an_array(void **state)
{
  struct key_tree_node *root = NULL;
  uint64_t random = 1;
  (void)state;
  for (size_t i = 0; i < NODES; i++)
    members[i].node = (struct key_tree_node){.major = end_or_number(i / 20), .minor = end_or_number(i % 20)};
  for (size_t step = 0; step < STEPS; step++) {
    size_t i = random_below(&random, NODES);
    (members[i].is_in ? key_tree_remove : key_tree_insert)(&root, &members[i].node);
    members[i].is_in = !members[i].is_in;
    const struct key_tree_node *asked = &members[random_below(&random, NODES)].node;
    uintptr_t major = asked->major + random_below(&random, 3) - 1, minor = asked->minor + random_below(&random, 3) - 1;
    struct key_tree_node *first = model_at_least(major, 0), *last = model_at_most(major);
    assert_ptr_equal(key_tree_at_least(root, major, minor), model_at_least(major, minor));
    assert_ptr_equal(key_tree_at_most(root, major), last);
    assert_ptr_equal(key_tree_at(root, major), first && first->major == major ? first : NULL);
    assert_ptr_equal(key_tree_holding(root, major), last && major - last->major < last->minor ? last : NULL);
    if (members[i].is_in) assert_ptr_equal(key_tree_next(root, &members[i].node), model_from(i + 1));
  }
}

static size_t depth_of(const struct key_tree_node *node)
{
  if (!node) return 0;
  size_t left = depth_of(node->left), right = depth_of(node->right);
  return 1 + (left > right ? left : right);
}

static void tree_stays_shallow(void **state)
{
  enum { MANY = 100000, DEPTH = 60 /* of a random tree of so many about 45 */ };
  static struct key_tree_node nodes[MANY];
  struct key_tree_node *root = NULL;
  (void)state;
  for (size_t i = 0; i < MANY; i++) {
    nodes[i].major = i;
    key_tree_insert(&root, &nodes[i]);
  }
  assert_in_range(depth_of(root), 17, DEPTH);
  size_t i = 0;
  for (const struct key_tree_node *node = key_tree_at_least(root, 0, 0); node; node = key_tree_next(root, node))
    assert_ptr_equal(node, &nodes[i++]);
  assert_int_equal(i, MANY);
}

/* The second and the third have the same hash. */
static void tree_finds_texts(void **state)
{
  enum { TEXTS = 5 };
  static const char *const texts[TEXTS] = {"", "8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ", "a\0b", "a"};
  static const size_t lengths[TEXTS] = {0, 20, 20, 3, 1};
  static struct key_tree_text nodes[TEXTS];
  struct key_tree_node *root = NULL;
  (void)state;
  assert_int_equal(text_hash(texts[1], 20), text_hash(texts[2], 20));
  for (size_t i = 0; i < TEXTS; i++) {
    assert_null(key_tree_find_text(root, texts[i], lengths[i]));
    key_tree_insert_text(&root, &nodes[i], texts[i], lengths[i]);
    for (size_t j = 0; j <= i; j++) assert_ptr_equal(key_tree_find_text(root, texts[j], lengths[j]), &nodes[j]);
  }
  for (size_t i = 0; i < TEXTS; i++) {
    key_tree_remove(&root, &nodes[i].node);
    for (size_t j = 0; j < TEXTS; j++)
      assert_ptr_equal(key_tree_find_text(root, texts[j], lengths[j]), j > i ? &nodes[j] : NULL);
  }
}

/* ---- The map ---- */

enum { KEYS = 700, MAP_STEPS = 200000 };

/* Dense ones, ones that all have the same home, and the last of all. */
static uint64_t map_key(size_t i)
{
  if (i == KEYS - 1) return UINT64_MAX;
  return i % 2 ? i : i * UINT64_C(0xF1DE83E19937733D);
}

static bool host_is_full;
static size_t host_bytes;

static void *host_allocate(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  if (host_is_full) return NULL;
  host_bytes += bytes;
  return calloc(1, bytes);
}

static void host_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services;
  host_bytes -= bytes;
  free(ptr);
}

static const struct hipmm_services host_services = {.host_allocate = host_allocate, .host_free = host_free};

/* Every entry is shown once. */
static void check_entries(const struct key_map *map, const uint64_t *model)
{
  const struct key_map_entry *entry;
  size_t n = 0, at = 0, expected = 0;
  for (; (entry = key_map_next(map, &at)); n++) assert_int_equal(key_map_get(map, entry->key), entry->value);
  for (size_t i = 0; i < KEYS; i++) expected += model[i] != 0;
  for (size_t i = 0; i < KEYS; i++) assert_int_equal(key_map_get(map, map_key(i)), model[i]);
  assert_int_equal(map->count, expected);
  assert_int_equal(n, expected);
}

static void map_agrees_with_an_array(void **state)
{
  uint64_t model[KEYS] = {0}, random = 7;
  struct key_map map = {.services = &host_services};
  (void)state;
  for (uint64_t step = 1; step <= MAP_STEPS; step++) {
    size_t i = random_below(&random, KEYS);
    unsigned what = (unsigned)random_below(&random, 400);
    if (what < 200) {
      assert_true(key_map_put(&map, map_key(i), step % 3 ? step : UINT64_MAX));
      model[i] = step % 3 ? step : UINT64_MAX;
    } else if (what < 399) {
      assert_int_equal(key_map_extract(&map, map_key(i)), model[i]);
      model[i] = 0;
    } else {
      key_map_trim(&map);
      check_entries(&map, model);
    }
  }
  assert_int_equal(host_bytes, key_map_bytes(&map));
  key_map_clear(&map);
  assert_int_equal(host_bytes, 0);
}

static void map_shrinks_when_most_is_gone(void **state)
{
  enum { MANY = 20000, KEPT = 10 };
  struct key_map map = {0};
  (void)state;
  for (uint64_t i = 0; i < MANY; i++) assert_true(key_map_put(&map, i << 8, i + 1));
  for (uint64_t i = KEPT; i < MANY; i++) {
    assert_int_equal(key_map_extract(&map, i << 8), i + 1);
    key_map_trim(&map);
  }
  assert_in_range(map.capacity, 2 * KEPT, 256);
  for (uint64_t i = 0; i < MANY; i++) assert_int_equal(key_map_get(&map, i << 8), i < KEPT ? i + 1 : 0);
  key_map_clear(&map);
}

/* A key that the map has can be set without memory, also in a table that is full. */
static void map_loses_nothing_without_memory(void **state)
{
  struct key_map map = {.services = &host_services};
  uint64_t n = 0;
  (void)state;
  for (int round = 0; round < 4; round++) {
    host_is_full = true;
    while (key_map_put(&map, n, n + 1)) n++;
    assert_int_equal(map.count, n);
    assert_int_equal(key_map_get(&map, n), 0);
    for (uint64_t i = 0; i < n; i++) assert_int_equal(key_map_get(&map, i), i + 1);
    for (uint64_t i = 0; i < n; i++) assert_true(key_map_put(&map, i, i + 1));
    host_is_full = false;
    assert_true(key_map_put(&map, n, n + 1));
    n++;
  }
  for (uint64_t i = 16; i < n; i++) assert_int_equal(key_map_extract(&map, i), i + 1);
  host_is_full = true;
  key_map_trim(&map);
  host_is_full = false;
  for (uint64_t i = 0; i < 16; i++) assert_int_equal(key_map_extract(&map, i), i + 1);
  assert_int_equal(map.count, 0);
  key_map_clear(&map);
  assert_int_equal(host_bytes, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tree_agrees_with_an_array),
      cmocka_unit_test(tree_stays_shallow),
      cmocka_unit_test(tree_finds_texts),
      cmocka_unit_test(map_agrees_with_an_array),
      cmocka_unit_test(map_shrinks_when_most_is_gone),
      cmocka_unit_test(map_loses_nothing_without_memory),
  };
  return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
