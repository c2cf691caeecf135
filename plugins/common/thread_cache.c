/* SPDX-License-Identifier: MIT */
/* thread_cache.c: numbers and memories of threads, and one thread-specific key for all watches, whose destructor runs when
 * a thread ends. The plugin is never unloaded, so the destructor always exists. */
#include "thread_cache.h"
#include "../../core/base/lock_order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { MEMORY_BYTES = THREAD_MEMORIES * sizeof(struct thread_memory) };

/* The memories of a thread that has none yet, and of one that has ended. Always empty. */
static struct thread_memory no_memories[THREAD_MEMORIES], ended_memories[THREAD_MEMORIES];

_Thread_local struct thread_memory *thread_memories = no_memories;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of the fields of watches */
static pthread_cond_t call_over = PTHREAD_COND_INITIALIZER;
static struct thread_watch *watches;

uint64_t thread_number(void)
{
  static atomic_uint_fast64_t last;
  static _Thread_local uint64_t number;
  if (!number) number = atomic_fetch_add(&last, 1) + 1;
  return number;
}

uint64_t thread_new_owner(void)
{
  static atomic_uint_fast64_t last;
  return atomic_fetch_add(&last, 1) + 1;
}

/* The lock is held, but not during the call of `ended`; the watch stays in the list meanwhile. */
static void thread_cache_notify(struct thread_watch *watch, uint64_t thread)
{
  watch->n_calls++;
  pthread_mutex_unlock(&lock);
  lock_order_check(watch);
  lock_order_push(watch);
  watch->ended(watch, thread);
  lock_order_pop(watch);
  pthread_mutex_lock(&lock);
  if (!--watch->n_calls && watch->is_closing) pthread_cond_broadcast(&call_over);
}

static void thread_cache_ended(void *number)
{
  pthread_mutex_lock(&lock);
  for (struct thread_watch *watch = watches; watch; watch = watch->next)
    if (!watch->is_closing) thread_cache_notify(watch, (uintptr_t)number);
  pthread_mutex_unlock(&lock);
  munmap(thread_memories, MEMORY_BYTES);
  thread_memories = ended_memories;
}

static void thread_cache_make_key(void)
{
  has_key = !pthread_key_create(&key, thread_cache_ended);
}

/* From the system: the caller may be the application's malloc, which pthread_setspecific() may call too. A thread whose end
 * nobody would be told of remembers nothing. */
static void thread_cache_make_memories(void)
{
  pthread_once(&once, thread_cache_make_key);
  if (!has_key) return;
  void *memories = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memories == MAP_FAILED) return;
  thread_memories = memories;
  if (!pthread_setspecific(key, (void *)(uintptr_t)thread_number())) return;
  thread_memories = no_memories;
  munmap(memories, MEMORY_BYTES);
}

bool thread_register(void)
{
  if (thread_memories == no_memories) thread_cache_make_memories();
  return thread_memories != no_memories && thread_memories != ended_memories;
}

void thread_remember(uint64_t owner, const void *remembered_key, void *value)
{
  if (!thread_register()) return;
  thread_memories[thread_memory_index(owner, remembered_key)] = (struct thread_memory){owner, remembered_key, value};
}

void thread_watch_open(struct thread_watch *watch)
{
  pthread_mutex_lock(&lock);
  watch->next = watches;
  watches = watch;
  pthread_mutex_unlock(&lock);
}

void thread_watch_close(struct thread_watch *watch)
{
  lock_order_check(watch); /* it waits for calls of `ended`, as for a lock */
  lock_order_forget(watch);
  pthread_mutex_lock(&lock);
  watch->is_closing = true;
  while (watch->n_calls) pthread_cond_wait(&call_over, &lock);
  for (struct thread_watch **link = &watches; *link; link = &(*link)->next) {
    if (*link != watch) continue;
    *link = watch->next;
    break;
  }
  pthread_mutex_unlock(&lock);
}
