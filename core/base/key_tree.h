/* SPDX-License-Identifier: MIT */
/* key_tree.h: an ordered set of nodes that their owners embed, with O(log n) search by (major, minor). For address
 * ranges major is the start and minor the bytes; for free blocks by size major is the bytes and minor the start. It
 * never allocates, so insertion cannot fail. The caller holds the lock of what the set belongs to. */
#ifndef HIPMM_CORE_BASE_KEY_TREE_H
#define HIPMM_CORE_BASE_KEY_TREE_H

#include <stddef.h>
#include <stdint.h>

struct key_tree_node {
  struct key_tree_node *left, *right;
  uintptr_t major, minor; /* the key; must not change while the node is in a tree */
};

/* No node of the tree has the same key. */
void key_tree_insert(struct key_tree_node **root, struct key_tree_node *node);

/* `node` must be in the tree. */
void key_tree_remove(struct key_tree_node **root, struct key_tree_node *node);

/* The first node whose key is (major, minor) or more; NULL if none. */
struct key_tree_node *key_tree_at_least(struct key_tree_node *root, uintptr_t major, uintptr_t minor);

/* The last node whose major is `major` or less; NULL if none. */
struct key_tree_node *key_tree_at_most(struct key_tree_node *root, uintptr_t major);

/* The first node whose major is `major`; NULL if none. */
struct key_tree_node *key_tree_at(struct key_tree_node *root, uintptr_t major);

/* The node after `node`, which is in the tree; NULL after the last. */
struct key_tree_node *key_tree_next(struct key_tree_node *root, const struct key_tree_node *node);

/* In a tree of ranges that do not overlap: the range that holds `address`, and the first one that shares a byte with
 * [start, start + bytes); NULL if none. */
struct key_tree_node *key_tree_holding(struct key_tree_node *root, uintptr_t address);
struct key_tree_node *key_tree_overlapping(struct key_tree_node *root, uintptr_t start, size_t bytes);

/* A node by a text of any bytes, which lasts as long as the node is in the tree. All nodes of that tree are such. */
struct key_tree_text {
  struct key_tree_node node; /* first; in the order of hashes */
  const char *text;
  size_t length;
};

/* key_tree_remove() removes such a node. */
void key_tree_insert_text(struct key_tree_node **root, struct key_tree_text *node, const char *text, size_t length);

/* A node with that text; NULL if none. */
struct key_tree_text *key_tree_find_text(struct key_tree_node *root, const char *text, size_t length);

#endif
