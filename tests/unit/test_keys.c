/* SPDX-License-Identifier: MIT */
/* Tests of core/base/key_tree.c and core/base/key_map.c: random operations against a plain array, and the keys at both
 * ends. */
#include "../../core/base/key_tree.h"
#include "../support/random.h"
#include "../support/support.h"

/* ---- The tree ---- */

enum { NODES = 400, STEPS = 20000 };

struct member {
  struct key_tree_node node;
  bool is_in;
};

/* The first member with the key (major, minor) or more, or behind it. */
static struct key_tree_node *model_first(struct member *members, uintptr_t major, uintptr_t minor, bool is_behind)
{
  struct key_tree_node *best = NULL;
  for (size_t i = 0; i < NODES; i++) {
    struct key_tree_node *node = &members[i].node;
    bool is_less = node->major < major || (node->major == major && node->minor < minor);
    bool is_equal = node->major == major && node->minor == minor;
    if (!members[i].is_in || is_less || (is_behind && is_equal)) continue;
    if (!best || node->major < best->major || (node->major == best->major && node->minor < best->minor)) best = node;
  }
  return best;
}

static struct key_tree_node *model_at_most(struct member *members, uintptr_t major)
{
  struct key_tree_node *best = NULL;
  for (size_t i = 0; i < NODES; i++) {
    struct key_tree_node *node = &members[i].node;
    if (!members[i].is_in || node->major > major) continue;
    if (!best || node->major > best->major || (node->major == best->major && node->minor > best->minor)) best = node;
  }
  return best;
}

/* 20 majors with 20 minors each; the first and the last of both are the ends of all numbers. */
static uintptr_t end_or_number(size_t i)
{
  return i == 0 ? 0 : i == 19 ? UINTPTR_MAX : (i << 20) + i % 3;
}

static void tree_agrees_with_an_array(void **state)
{
  static struct member members[NODES];
  struct key_tree_node *root = NULL;
  uint64_t random = 1;
  (void)state;
  for (size_t i = 0; i < NODES; i++)
    members[i].node = (struct key_tree_node){.major = end_or_number(i / 20), .minor = end_or_number(i % 20)};
  for (size_t step = 0; step < STEPS; step++) {
    struct member *member = &members[random_below(&random, NODES)];
    if (member->is_in)
      key_tree_remove(&root, &member->node);
    else
      key_tree_insert(&root, &member->node);
    member->is_in = !member->is_in;
    const struct key_tree_node *asked = &members[random_below(&random, NODES)].node;
    uintptr_t major = asked->major + random_below(&random, 3) - 1, minor = asked->minor + random_below(&random, 3) - 1;
    struct key_tree_node *first = model_first(members, major, 0, false), *last = model_at_most(members, major);
    assert_ptr_equal(key_tree_at_least(root, major, minor), model_first(members, major, minor, false));
    assert_ptr_equal(key_tree_at_most(root, major), last);
    assert_ptr_equal(key_tree_at(root, major), first && first->major == major ? first : NULL);
    assert_ptr_equal(key_tree_holding(root, major), last && major - last->major < last->minor ? last : NULL);
    if (member->is_in)
      assert_ptr_equal(key_tree_next(root, &member->node),
                       model_first(members, member->node.major, member->node.minor, true));
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

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tree_agrees_with_an_array),
      cmocka_unit_test(tree_stays_shallow),
  };
  return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
