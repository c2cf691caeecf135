/* SPDX-License-Identifier: MIT */
/* address_tree.h: an ordered set of nodes that their owners embed, with O(log n) search by (major, minor).
 *
 * Used for address ranges (major the start, minor the bytes) and for free blocks by size (major the bytes, minor the
 * start). It never allocates, so insertion cannot fail. Callers hold the device lock. */
#ifndef HIPMM_PLUGINS_COMMON_ADDRESS_TREE_H
#define HIPMM_PLUGINS_COMMON_ADDRESS_TREE_H

#include <stddef.h>
#include <stdint.h>

struct tree_node {
  struct tree_node *left, *right;
  uintptr_t major, minor; /* the key; must not change while the node is in a tree */
};

void tree_insert(struct tree_node **root, struct tree_node *node);

/* `node` must be in the tree. */
void tree_remove(struct tree_node **root, struct tree_node *node);

/* The first node whose key is (major, minor) or more; NULL if none. */
struct tree_node *tree_at_least(struct tree_node *root, uintptr_t major, uintptr_t minor);

/* The last node whose major is `major` or less; NULL if none. */
struct tree_node *tree_at_most(struct tree_node *root, uintptr_t major);

/* In a tree of ranges: the range that holds `address`; the node after `node`. */
struct tree_node *tree_holding(struct tree_node *root, uintptr_t address);
struct tree_node *tree_next(struct tree_node *root, const struct tree_node *node);

#endif
