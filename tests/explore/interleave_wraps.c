/* SPDX-License-Identifier: MIT */
/* interleave_wraps.c: the functions in the place of fences, locks, the ends of threads and host memory, by the linker's --wrap
 * (INTERLEAVE_WRAPS in Makefile.inc). */
#include "../../core/base/asymmetric_fence.h"
#include "interleave_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The asymmetric fence ---- */

void __wrap_asymmetric_fence_prepare(void);
void __wrap_asymmetric_fence_prepare(void)
{
  asymmetric_fence_is_light = true;
}

/* membarrier(2): a barrier on every processor. What the compiler may still move behind it stays in the other thread. */
void __wrap_asymmetric_fence_heavy(void);
void __wrap_asymmetric_fence_heavy(void)
{
  if (interleave_running == INTERLEAVE_NOBODY || interleave_has_no_fences() || !asymmetric_fence_is_light) return;
  interleave_point();
  interleave_memory_flush(interleave_running, SIZE_MAX);
  interleave_memory_flush_fenced(1 - interleave_running);
}

void __wrap_asymmetric_fence_pause(unsigned turn);
void __wrap_asymmetric_fence_pause(unsigned turn)
{
  (void)turn;
  if (interleave_running != INTERLEAVE_NOBODY) interleave_pause();
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
  __wrap_asymmetric_fence_pause(0);
  return 0;
}

/* ---- Locks. Outside of runs there is one thread. ---- */

static int interleave_wraps_lock(pthread_mutex_t *mutex, bool waits)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) return 0;
  struct interleave_place *place = interleave_memory_place(mutex, thread, true);
  if (interleave_memory_is_step(place, thread, true)) interleave_point();
  interleave_memory_flush(thread, SIZE_MAX);
  if (place->holder && !waits) return 1;
  if (place->holder == thread + 1) interleave_fail("a thread waits for a mutex that it holds");
  interleave_await(&place->holder);
  place->holder = thread + 1;
  interleave_memory_acquire(thread, place);
  return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
  return interleave_wraps_lock(mutex, true);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
  return interleave_wraps_lock(mutex, false);
}

/* No step: to leave a mutex later lets nobody do more. */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) return 0;
  struct interleave_place *place = interleave_memory_place(mutex, thread, true);
  interleave_memory_flush(thread, SIZE_MAX);
  if (place->holder != thread + 1) interleave_fail("a thread leaves a mutex that it does not hold");
  place->holder = 0;
  interleave_memory_release(thread, place, false);
  interleave_wake();
  return 0;
}

/* It may always wake by itself. */
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
  (void)condition;
  __wrap_pthread_mutex_unlock(mutex);
  __wrap_asymmetric_fence_pause(0);
  return __wrap_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
  (void)condition;
  return 0;
}

/* What is done once is there in all runs but the first: its accesses belong to no run. */
int __real_pthread_once(pthread_once_t *once, void (*routine)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void))
{
  int thread = interleave_running;
  interleave_running = INTERLEAVE_NOBODY;
  int code = __real_pthread_once(once, routine);
  interleave_running = thread;
  return code;
}

/* ---- The ends of threads ---- */

enum { MOST_KEYS = 4 };

static struct {
  void (*destroy)(void *value);
  void *values[INTERLEAVE_THREADS];
} keys[MOST_KEYS];

static unsigned n_keys;

int __wrap_pthread_key_create(pthread_key_t *key, void (*destroy)(void *));
int __wrap_pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
  if (n_keys == MOST_KEYS) abort();
  keys[n_keys].destroy = destroy;
  *key = n_keys++;
  return 0;
}

/* The thread of the test program itself does not end. */
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
  if (interleave_caller != INTERLEAVE_NOBODY) keys[key].values[interleave_caller] = (void *)(uintptr_t)value;
  return 0;
}

void interleave_forget_values(int thread)
{
  for (unsigned i = 0; i < n_keys; i++) keys[i].values[thread] = NULL;
}

static void interleave_wraps_destroy(void)
{
  for (unsigned i = 0; i < n_keys; i++) {
    void *value = keys[i].values[interleave_caller];
    keys[i].values[interleave_caller] = NULL;
    if (value) keys[i].destroy(value);
  }
}

void interleave_destroy_values(int thread)
{
  if (interleave_running == INTERLEAVE_NOBODY)
    interleave_alone(thread, interleave_wraps_destroy);
  else
    interleave_wraps_destroy();
}

/* ---- Host memory: at the same addresses in each run, and what is freed is not used again in the same run ---- */

enum { HEAP_BYTES = 1 << 20, HEAP_UNIT = 64 };

static _Alignas(HEAP_UNIT) char heap[HEAP_BYTES];
static size_t heap_used;
static bool heap_is_open;

void interleave_open_heap(bool is_open)
{
  heap_is_open = is_open;
  heap_used = 0;
}

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
  if (!heap_is_open) return __real_calloc(n, bytes);
  size_t used = (n * bytes + 2 * HEAP_UNIT) / HEAP_UNIT * HEAP_UNIT;
  if (used > HEAP_BYTES - heap_used) return NULL;
  char *block = heap + heap_used;
  heap_used += used;
  memcpy(block, &used, sizeof used);
  interleave_memory_make(block + HEAP_UNIT, used - HEAP_UNIT);
  return memset(block + HEAP_UNIT, 0, used - HEAP_UNIT);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
  return heap_is_open ? __wrap_calloc(1, bytes) : __real_malloc(bytes);
}

void __real_free(void *ptr);
void __wrap_free(void *ptr);
void __wrap_free(void *ptr)
{
  char *block = ptr;
  bool is_own = block >= heap && block < heap + HEAP_BYTES;
  size_t bytes;
  if (!is_own) {
    __real_free(ptr);
  } else if (interleave_running != INTERLEAVE_NOBODY) {
    memcpy(&bytes, block - HEAP_UNIT, sizeof bytes);
    interleave_memory_access(interleave_running, block, bytes - HEAP_UNIT, INTERLEAVE_WRITE,
                             __builtin_return_address(0));
    interleave_memory_free(block, bytes - HEAP_UNIT);
  }
}
