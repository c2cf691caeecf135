/* SPDX-License-Identifier: MIT */
/* deferred_free.c: see deferred.h. */
#include "deferred_free.h"

#include <pthread.h>
#include <stdlib.h>

static struct address_tree_node *first; /* linked through `left` */
static atomic_bool is_there;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void deferred_free_put(struct block *block)
{
  pthread_mutex_lock(&lock);
  block->by_address.left = first;
  first = &block->by_address;
  atomic_store(&is_there, true);
  pthread_mutex_unlock(&lock);
}

bool deferred_free_is_there(void)
{
  return atomic_load_explicit(&is_there, memory_order_relaxed);
}

/* What another thread defers from now on was not waited for. */
static struct address_tree_node *deferred_free_take_all(void)
{
  pthread_mutex_lock(&lock);
  struct address_tree_node *all = first;
  first = NULL;
  atomic_store(&is_there, false);
  pthread_mutex_unlock(&lock);
  return all;
}

int deferred_free_synchronize(void)
{
  struct address_tree_node *all = deferred_free_is_there() ? deferred_free_take_all() : NULL;
  int code = devices_synchronize();
  while (all) {
    struct block *block = (struct block *)all;
    all = all->left;
    if (code) {
      deferred_free_put(block);
      continue;
    }
    blocks_give_back(block);
    blocks_free(block);
  }
  return code;
}
