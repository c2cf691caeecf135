/* SPDX-License-Identifier: MIT */
/* key_tree.c: a treap. */
#include "key_tree.h"
#include "text.h"

/* A node's priority is its own address, mixed: no random state, and no field to keep. */
static uint64_t key_tree_weight(const struct key_tree_node *node)
{
  uint64_t mixed = (uintptr_t)node;
  mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdU;
  mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53U;
  return mixed ^ (mixed >> 33);
}

static bool key_tree_is_before(const struct key_tree_node *node, uintptr_t major, uintptr_t minor)
{
  return node->major < major || (node->major == major && node->minor < minor);
}

void key_tree_insert(struct key_tree_node **root, struct key_tree_node *node)
{
  uint64_t weight = key_tree_weight(node);
  struct key_tree_node **link = root;
  while (*link && key_tree_weight(*link) > weight)
    link = key_tree_is_before(*link, node->major, node->minor) ? &(*link)->right : &(*link)->left;
  struct key_tree_node *rest = *link, **less = &node->left, **more = &node->right;
  while (rest) {
    bool is_less = key_tree_is_before(rest, node->major, node->minor);
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

void key_tree_remove(struct key_tree_node **root, struct key_tree_node *node)
{
  struct key_tree_node **link = root;
  while (*link != node) link = key_tree_is_before(*link, node->major, node->minor) ? &(*link)->right : &(*link)->left;
  struct key_tree_node *less = node->left, *more = node->right;
  while (less && more) {
    if (key_tree_weight(less) > key_tree_weight(more)) {
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

/* The first node behind `before`, if that is a node of the tree, with the key (major, minor) or more. */
static struct key_tree_node *key_tree_first(struct key_tree_node *root, uintptr_t major, uintptr_t minor,
                                            const struct key_tree_node *before)
{
  struct key_tree_node *best = NULL;
  while (root) {
    if (root == before || key_tree_is_before(root, major, minor)) {
      root = root->right;
    } else {
      best = root;
      root = root->left;
    }
  }
  return best;
}

struct key_tree_node *key_tree_at_least(struct key_tree_node *root, uintptr_t major, uintptr_t minor)
{
  return key_tree_first(root, major, minor, NULL);
}

struct key_tree_node *key_tree_next(struct key_tree_node *root, const struct key_tree_node *node)
{
  return key_tree_first(root, node->major, node->minor, node);
}

struct key_tree_node *key_tree_at(struct key_tree_node *root, uintptr_t major)
{
  struct key_tree_node *node = key_tree_at_least(root, major, 0);
  return node && node->major == major ? node : NULL;
}

struct key_tree_node *key_tree_at_most(struct key_tree_node *root, uintptr_t major)
{
  struct key_tree_node *best = NULL;
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

struct key_tree_node *key_tree_holding(struct key_tree_node *root, uintptr_t address)
{
  struct key_tree_node *node = key_tree_at_most(root, address);
  return node && address - node->major < node->minor ? node : NULL;
}

struct key_tree_node *key_tree_overlapping(struct key_tree_node *root, uintptr_t start, size_t bytes)
{
  struct key_tree_node *node = key_tree_holding(root, start);
  if (!node) node = key_tree_at_least(root, start, 0);
  return node && (node->major < start || node->major - start < bytes) ? node : NULL;
}

/* ---- Texts ---- */

void key_tree_insert_text(struct key_tree_node **root, struct key_tree_text *node, const char *text, size_t length)
{
  node->node.major = (uintptr_t)text_hash(text, length);
  node->node.minor = (uintptr_t)node; /* other texts may have the hash */
  node->text = text;
  node->length = length;
  key_tree_insert(root, &node->node);
}

struct key_tree_text *key_tree_find_text(struct key_tree_node *root, const char *text, size_t length)
{
  uintptr_t hash = (uintptr_t)text_hash(text, length);
  struct key_tree_node *node = key_tree_at(root, hash);
  for (; node && node->major == hash; node = key_tree_next(root, node)) {
    struct key_tree_text *found = (struct key_tree_text *)node;
    if (found->length == length && !memcmp(found->text, text, length)) return found;
  }
  return NULL;
}
