/* SPDX-License-Identifier: MIT */
/* thread_cache.h: what a thread remembers, and who is told when it ends. */
#ifndef HIPMM_PLUGINS_COMMON_THREAD_CACHE_H
#define HIPMM_PLUGINS_COMMON_THREAD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number of the calling thread that no other thread ever has. */
uint64_t thread_number(void);

/* ---- Memory: a value for an owner and a key, forgotten when others take its place ---- */

/* A number for an owner, never given twice. */
uint64_t thread_new_owner(void);

enum { THREAD_MEMORIES = 64 };

struct thread_memory {
  uint64_t owner; /* 0: none */
  const void *key;
  void *value;
};

/* In the static block of thread-local storage: a call to find it would cost as much as all the rest of a cache hit. */
extern _Thread_local struct thread_memory *thread_memories __attribute__((tls_model("initial-exec")));

static inline size_t thread_memory_index(uint64_t owner, const void *key)
{
  uint64_t mixed = (uintptr_t)key ^ owner << 4;
  return (mixed >> 4 ^ mixed >> 10 ^ mixed) % THREAD_MEMORIES;
}

static inline void *thread_recall(uint64_t owner, const void *key)
{
  if (!thread_memories) return NULL;
  const struct thread_memory *memory = &thread_memories[thread_memory_index(owner, key)];
  return memory->owner == owner && memory->key == key ? memory->value : NULL;
}

/* Does nothing when there is no memory for it, or the thread's end has been told. From then on the thread's end is told
 * to every watch. */
void thread_remember(uint64_t owner, const void *key, void *value);

/* ---- Ends ---- */

/* The calling thread's end is told to every watch, and it has thread_memories; false if there is no memory for it, or
 * its end has been told already: destructors of the program's thread-specific values may run after that. */
bool thread_register(void);

/* Something that wants to know which threads end; linked into a list while it is open. The list's lock is not held while
 * `ended` runs, so `ended` may take any lock; but it makes its thread wait, and a thread that holds a lock of a resource
 * may in turn wait for the thread to end: `ended` should not wait for such locks. */
struct thread_watch {
  void (*ended)(struct thread_watch *watch, uint64_t thread);
  struct thread_watch *next;
  unsigned n_calls; /* threads that are in `ended` */
  bool is_closing;  /* no more of them */
};

void thread_watch_open(struct thread_watch *watch);

/* After it returns, `ended` is not running and not called any more. The caller holds no lock that this watch's `ended`
 * waits for; it may hold those of other watches. */
void thread_watch_close(struct thread_watch *watch);

#endif
