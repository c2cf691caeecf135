/* SPDX-License-Identifier: MIT */
/* address_tree.h: an ordered set of nodes that their owners embed, with O(log n) search by (major, minor). For address
 * ranges major is the start and minor the bytes; for free blocks by size major is the bytes and minor the start. It
 * never allocates, so insertion cannot fail. The caller holds the lock of what the set belongs to. */
#ifndef HIPMM_PLUGINS_COMMON_ADDRESS_TREE_H
#define HIPMM_PLUGINS_COMMON_ADDRESS_TREE_H

#include <stddef.h>
#include <stdint.h>

struct address_tree_node {
  struct address_tree_node *left, *right;
  uintptr_t major, minor; /* the key; must not change while the node is in a tree */
};

void address_tree_insert(struct address_tree_node **root, struct address_tree_node *node);

/* `node` must be in the tree. */
void address_tree_remove(struct address_tree_node **root, struct address_tree_node *node);

/* The first node whose key is (major, minor) or more; NULL if none. */
struct address_tree_node *address_tree_at_least(struct address_tree_node *root, uintptr_t major, uintptr_t minor);

/* The last node whose major is `major` or less; NULL if none. */
struct address_tree_node *address_tree_at_most(struct address_tree_node *root, uintptr_t major);

/* In a tree of ranges: the range that holds `address`; the node after `node`. */
struct address_tree_node *address_tree_holding(struct address_tree_node *root, uintptr_t address);
struct address_tree_node *address_tree_next(struct address_tree_node *root, const struct address_tree_node *node);

#endif
