/* SPDX-License-Identifier: MIT */
/* tree.h: an ordered set of nodes that their owners embed, with O(log n) search by (major, minor).
 *
 * Used for address ranges (major the start, minor the bytes) and for free blocks by size (major the bytes, minor the
 * start). It never allocates, so insertion cannot fail. Callers hold the device lock. */
#ifndef HIPMM_SOFTWARE_TREE_H
#define HIPMM_SOFTWARE_TREE_H

#include <stddef.h>
#include <stdint.h>

struct software_node {
  struct software_node *left, *right;
  uintptr_t major, minor; /* the key; must not change while the node is in a tree */
};

void software_tree_insert(struct software_node **root, struct software_node *node);

/* `node` must be in the tree. */
void software_tree_remove(struct software_node **root, struct software_node *node);

/* The first node whose key is (major, minor) or more; NULL if none. */
struct software_node *software_tree_at_least(struct software_node *root, uintptr_t major, uintptr_t minor);

/* The last node whose major is `major` or less; NULL if none. */
struct software_node *software_tree_at_most(struct software_node *root, uintptr_t major);

/* In a tree of ranges: the range that holds `address`; the node after `node`. */
struct software_node *software_tree_holding(struct software_node *root, uintptr_t address);
struct software_node *software_tree_next(struct software_node *root, const struct software_node *node);

#endif
