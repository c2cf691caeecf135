/* SPDX-License-Identifier: MIT */
/* ring.c: see ring.h. */
#include "ring.h"

/* ---- A skew heap: it needs no memory, and keeps itself balanced by and large ---- */

struct ring *rings_meld(struct ring *one, struct ring *other)
{
  struct ring *top = NULL, **link = &top;
  while (one && other) {
    if (row_time(ring_first(other)) < row_time(ring_first(one))) {
      struct ring *swapped = one;
      one = other;
      other = swapped;
    }
    *link = one;
    link = &one->left;
    struct ring *right = one->right;
    one->right = one->left;
    one = right;
  }
  *link = one ? one : other;
  return top;
}

uint64_t rings_second_time(const struct ring *top)
{
  uint64_t left = top->left ? row_time(ring_first(top->left)) : UINT64_MAX;
  uint64_t right = top->right ? row_time(ring_first(top->right)) : UINT64_MAX;
  return left < right ? left : right;
}
