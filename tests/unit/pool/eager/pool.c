/* SPDX-License-Identifier: MIT */
/* The pool in which every thread gets a heap at once, as if it had waited: the linker has thread_heaps_count_entry() be this
 * function (-Wl,--wrap). */
#include "../../../../plugins/pool/thread_heaps.h"

void __wrap_thread_heaps_count_entry(struct cache *cache, bool waited);

void __wrap_thread_heaps_count_entry(struct cache *cache, bool waited)
{
  (void)waited;
  cache->wants_heap = true;
}
