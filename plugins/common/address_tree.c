/* SPDX-License-Identifier: MIT */
/* address_tree.c: a treap. */
#include "address_tree.h"
#include <stdbool.h>

/* A node's priority is its own address, mixed: no random state, and no field to keep. */
static uint64_t address_tree_weight(const struct address_tree_node *node)
{
  uint64_t mixed = (uintptr_t)node;
  mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdU;
  mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53U;
  return mixed ^ (mixed >> 33);
}

static bool address_tree_is_before(const struct address_tree_node *node, uintptr_t major, uintptr_t minor)
{
  return node->major < major || (node->major == major && node->minor < minor);
}

void address_tree_insert(struct address_tree_node **root, struct address_tree_node *node)
{
  uint64_t weight = address_tree_weight(node);
  struct address_tree_node **link = root;
  while (*link && address_tree_weight(*link) > weight)
    link = address_tree_is_before(*link, node->major, node->minor) ? &(*link)->right : &(*link)->left;
  struct address_tree_node *rest = *link, **less = &node->left, **more = &node->right;
  while (rest) {
    bool is_less = address_tree_is_before(rest, node->major, node->minor);
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

void address_tree_remove(struct address_tree_node **root, struct address_tree_node *node)
{
  struct address_tree_node **link = root;
  while (*link != node)
    link = address_tree_is_before(*link, node->major, node->minor) ? &(*link)->right : &(*link)->left;
  struct address_tree_node *less = node->left, *more = node->right;
  while (less && more) {
    if (address_tree_weight(less) > address_tree_weight(more)) {
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

struct address_tree_node *address_tree_at_least(struct address_tree_node *root, uintptr_t major, uintptr_t minor)
{
  struct address_tree_node *best = NULL;
  while (root) {
    if (address_tree_is_before(root, major, minor)) {
      root = root->right;
    } else {
      best = root;
      root = root->left;
    }
  }
  return best;
}

struct address_tree_node *address_tree_at_most(struct address_tree_node *root, uintptr_t major)
{
  struct address_tree_node *best = NULL;
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

struct address_tree_node *address_tree_holding(struct address_tree_node *root, uintptr_t address)
{
  struct address_tree_node *node = address_tree_at_most(root, address);
  return node && address - node->major < node->minor ? node : NULL;
}

struct address_tree_node *address_tree_next(struct address_tree_node *root, const struct address_tree_node *node)
{
  return address_tree_at_least(root, node->major, node->minor + 1);
}
