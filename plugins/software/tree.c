/* SPDX-License-Identifier: MIT */
/* tree.c: the ordered set of tree.h, as a treap. Called by the heap, the allocation table, pools and virtual memory. */
#include "tree.h"
#include <stdbool.h>

/* A node's priority is its own address, mixed: no random state, and no field to keep. */
static uint64_t tree_weight(const struct software_node *node)
{
  uint64_t mixed = (uintptr_t)node;
  mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdU;
  mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53U;
  return mixed ^ (mixed >> 33);
}

static bool tree_is_before(const struct software_node *node, uintptr_t major, uintptr_t minor)
{
  return node->major < major || (node->major == major && node->minor < minor);
}

void software_tree_insert(struct software_node **root, struct software_node *node)
{
  uint64_t weight = tree_weight(node);
  struct software_node **link = root;
  while (*link && tree_weight(*link) > weight)
    link = tree_is_before(*link, node->major, node->minor) ? &(*link)->right : &(*link)->left;
  struct software_node *rest = *link, **less = &node->left, **more = &node->right;
  while (rest) {
    bool is_less = tree_is_before(rest, node->major, node->minor);
    if (is_less) {
      *less = rest;
      less = &rest->right;
    } else {
      *more = rest;
      more = &rest->left;
    }
    rest = is_less ? rest->right : rest->left;
  }
  *less = NULL;
  *more = NULL;
  *link = node;
}

void software_tree_remove(struct software_node **root, struct software_node *node)
{
  struct software_node **link = root;
  while (*link != node) link = tree_is_before(*link, node->major, node->minor) ? &(*link)->right : &(*link)->left;
  struct software_node *less = node->left, *more = node->right;
  while (less && more) {
    if (tree_weight(less) > tree_weight(more)) {
      *link = less;
      link = &less->right;
      less = *link;
    } else {
      *link = more;
      link = &more->left;
      more = *link;
    }
  }
  *link = less ? less : more;
}

struct software_node *software_tree_at_least(struct software_node *root, uintptr_t major, uintptr_t minor)
{
  struct software_node *best = NULL;
  while (root) {
    if (tree_is_before(root, major, minor)) {
      root = root->right;
    } else {
      best = root;
      root = root->left;
    }
  }
  return best;
}

struct software_node *software_tree_at_most(struct software_node *root, uintptr_t major)
{
  struct software_node *best = NULL;
  while (root) {
    if (root->major > major) {
      root = root->left;
    } else {
      best = root;
      root = root->right;
    }
  }
  return best;
}

struct software_node *software_tree_holding(struct software_node *root, uintptr_t address)
{
  struct software_node *node = software_tree_at_most(root, address);
  return node && address - node->major < node->minor ? node : NULL;
}

struct software_node *software_tree_next(struct software_node *root, const struct software_node *node)
{
  return software_tree_at_least(root, node->major, node->minor + 1);
}
