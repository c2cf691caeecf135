/* SPDX-License-Identifier: MIT */
/* thread_cache.h: values that a thread remembers, and notification of resources when a thread ends. Used by cache.c of the
 * pool, biased_lock.c, stream_order.c and the arena. */
#ifndef HIPMM_PLUGINS_COMMON_THREAD_CACHE_H
#define HIPMM_PLUGINS_COMMON_THREAD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number of the calling thread that no other thread ever has. */
uint64_t thread_number(void);

/* ---- Memory: a value for an owner and a key, until another value needs its slot ---- */

/* A new number for an owner. Never the same number twice. */
uint64_t thread_new_owner(void);

enum { THREAD_MEMORIES = 64 };

struct thread_memory {
  uint64_t owner; /* 0: none */
  const void *key;
  void *value;
};

/* In the static block of thread-local storage: a call that finds it would cost as much as the rest of a cache hit. Empty while the
 * thread is not registered. */
extern _Thread_local struct thread_memory *thread_memories __attribute__((tls_model("initial-exec")));

/* The highest bits of the product, on which all bits of both have an effect. */
static inline size_t thread_memory_index(uint64_t owner, const void *key)
{
  return ((uintptr_t)key ^ owner << 4) * 0x9E3779B97F4A7C15ull / (UINT64_MAX / THREAD_MEMORIES + 1);
}

/* The value that an owner has remembered, whose only key has this index. */
static inline void *thread_recall_only(uint64_t owner, size_t index)
{
  return thread_memories[index].owner == owner ? thread_memories[index].value : NULL;
}

static inline void *thread_recall(uint64_t owner, const void *key)
{
  const struct thread_memory *memory = &thread_memories[thread_memory_index(owner, key)];
  return memory->owner == owner && memory->key == key ? memory->value : NULL;
}

/* Registers the thread, as thread_register() does. Does nothing if that fails. */
void thread_remember(uint64_t owner, const void *key, void *value);

/* ---- The end of threads ---- */

/* Gives the calling thread its thread_memories. From then on every watch is notified of the thread's end. False if there
 * is no memory, the process has no key left for thread-specific values, or the thread has ended: destructors of the program's
 * thread-specific values may run after its end. */
bool thread_register(void);

/* Is notified of the end of threads while it is open. The lock of the list of watches is not held while `ended` runs, so
 * `ended` may take any lock. But its thread cannot end until it returns, and a thread that holds a lock of a resource may
 * wait for that thread to end: `ended` should not wait for such a lock. */
struct thread_watch {
  void (*ended)(struct thread_watch *watch, uint64_t thread);
  struct thread_watch *next;
  unsigned n_calls; /* running calls of `ended` */
  bool is_closing;  /* no more calls */
};

void thread_watch_open(struct thread_watch *watch);

/* After this returns, `ended` is not running and is not called any more. The caller holds no lock that `ended` of this watch
 * waits for. It may hold locks that other watches wait for. */
void thread_watch_close(struct thread_watch *watch);

#endif
