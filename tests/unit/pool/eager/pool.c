/* SPDX-License-Identifier: MIT */
/* The pool in which every thread gets a heap at once, as if it had waited: the linker has cache_new() be this function
 * (-Wl,--wrap). */
#include "../../../../plugins/pool/cache.h"

struct cache *__real_cache_new(struct caches *caches, struct heap *heap, hipmm_stream_t handle, uint32_t stream);
struct cache *__wrap_cache_new(struct caches *caches, struct heap *heap, hipmm_stream_t handle, uint32_t stream);

struct cache *__wrap_cache_new(struct caches *caches, struct heap *heap, hipmm_stream_t handle, uint32_t stream)
{
  struct cache *cache = __real_cache_new(caches, heap, handle, stream);
  if (cache) cache->wants_heap = !cache->has_heap;
  return cache;
}
