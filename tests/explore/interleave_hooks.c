/* SPDX-License-Identifier: MIT */
/* interleave_hooks.c: what compilers call from code that is compiled with -fsanitize=thread, and the functions in the place of
 * locks, fences and others: `--wrap` of the linker, as INTERLEAVE_FLAGS in Makefile.inc lists them. Outside of runs all of them do
 * what they are called for, at once. */
#include "../../core/base/asymmetric_fence.h"
#include "interleave_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HERE __builtin_return_address(0)

/* ---- Plain accesses ---- */

static void interleave_hooks_plain(const volatile void *at, size_t bytes, bool writes, const void *code)
{
  int thread = interleave_running;
  if (++interleave_accesses > INTERLEAVE_MOST_ACCESSES) interleave_fail("a thread does not end");
  interleave_memory_flush_for(thread, at, bytes);
  if (interleave_memory_is_free_of_order(at)) {
    interleave_point();
    return;
  }
  interleave_memory_access(thread, at, bytes, writes ? INTERLEAVE_WRITE : INTERLEAVE_READ, code);
}

#define PLAIN(name, bytes, writes)                    \
  void __tsan_##name(void *at);                       \
  void __tsan_##name(void *at)                        \
  {                                                   \
    if (__builtin_expect(interleave_running != INTERLEAVE_NOBODY, 0)) interleave_hooks_plain(at, bytes, writes, HERE); \
  }
PLAIN(read1, 1, false)
PLAIN(read2, 2, false)
PLAIN(read4, 4, false)
PLAIN(read8, 8, false)
PLAIN(read16, 16, false)
PLAIN(write1, 1, true)
PLAIN(write2, 2, true)
PLAIN(write4, 4, true)
PLAIN(write8, 8, true)
PLAIN(write16, 16, true)
PLAIN(unaligned_read2, 2, false)
PLAIN(unaligned_read4, 4, false)
PLAIN(unaligned_read8, 8, false)
PLAIN(unaligned_read16, 16, false)
PLAIN(unaligned_write2, 2, true)
PLAIN(unaligned_write4, 4, true)
PLAIN(unaligned_write8, 8, true)
PLAIN(unaligned_write16, 16, true)

#define RANGE(name, writes)                          \
  void __tsan_##name(void *at, long bytes);          \
  void __tsan_##name(void *at, long bytes)           \
  {                                                  \
    if (interleave_running != INTERLEAVE_NOBODY) interleave_hooks_plain(at, (size_t)bytes, writes, HERE); \
  }
RANGE(read_range, false)
RANGE(write_range, true)

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *code);
void __tsan_func_entry(void *code)
{
  (void)code;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

/* ---- Atomic variables ---- */

static bool interleave_hooks_acquires(int order)
{
  return order == memory_order_acquire || order == memory_order_consume || order == memory_order_acq_rel ||
         order == memory_order_seq_cst;
}

static bool interleave_hooks_releases(int order)
{
  return order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static uint64_t interleave_hooks_get(const volatile void *at, size_t bytes)
{
  uint64_t value = 0;
  memcpy(&value, (const void *)(uintptr_t)at, bytes);
  return value;
}

static void interleave_hooks_put(volatile void *at, size_t bytes, uint64_t value)
{
  memcpy((void *)(uintptr_t)at, &value, bytes);
}

static int interleave_hooks_order(const volatile void *at, int order)
{
  return interleave_memory_is_weak(at) ? memory_order_relaxed : order & 7;
}

static uint64_t interleave_hooks_load(const volatile void *at, size_t bytes, int order, const void *code)
{
  int thread = interleave_running;
  uint64_t value;
  if (thread == INTERLEAVE_NOBODY) return interleave_hooks_get(at, bytes);
  const struct interleave_place *place = interleave_memory_place(at, thread, false);
  interleave_memory_access(thread, at, bytes, INTERLEAVE_ATOMIC_READ, code);
  if (interleave_memory_forwards(thread, at, bytes, &value)) return value;
  if (interleave_memory_is_step(place, thread, false)) interleave_point();
  value = interleave_hooks_get(at, bytes);
  if (interleave_hooks_acquires(interleave_hooks_order(at, order))) interleave_memory_acquire(thread, place);
  interleave_look(at, value);
  return value;
}

/* A store that waits is no step: the other thread can tell only when it reaches memory. */
static void interleave_hooks_store(volatile void *at, size_t bytes, uint64_t value, int order, const void *code)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) {
    interleave_hooks_put(at, bytes, value);
    return;
  }
  struct interleave_place *place = interleave_memory_place(at, thread, true);
  bool releases = interleave_hooks_releases(interleave_hooks_order(at, order));
  interleave_memory_access(thread, at, bytes, INTERLEAVE_ATOMIC_WRITE, code);
  if ((order & 7) != memory_order_seq_cst && interleave_memory_is_step(place, thread, true)) {
    interleave_memory_delay(thread, at, bytes, value, releases);
    return;
  }
  if (interleave_memory_is_step(place, thread, true)) interleave_point();
  if ((order & 7) == memory_order_seq_cst) interleave_memory_flush(thread, SIZE_MAX);
  else
    interleave_memory_flush_for(thread, at, bytes);
  interleave_hooks_put(at, bytes, value);
  if (releases)
    interleave_memory_release(thread, place, false);
  else
    place->synced = (struct interleave_clock){{0}};
  interleave_wake();
}

/* Before a change, which is a full barrier. Returns the value. */
static uint64_t interleave_hooks_begin_change(volatile void *at, size_t bytes, int order, const void *code)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) return interleave_hooks_get(at, bytes);
  struct interleave_place *place = interleave_memory_place(at, thread, true);
  interleave_memory_access(thread, at, bytes, INTERLEAVE_ATOMIC_WRITE, code);
  if (interleave_memory_is_step(place, thread, true)) interleave_point();
  interleave_memory_flush(thread, SIZE_MAX);
  uint64_t value = interleave_hooks_get(at, bytes);
  if (interleave_hooks_acquires(interleave_hooks_order(at, order))) interleave_memory_acquire(thread, place);
  interleave_look(at, value);
  return value;
}

static void interleave_hooks_end_change(volatile void *at, size_t bytes, uint64_t value, int order)
{
  int thread = interleave_running;
  interleave_hooks_put(at, bytes, value);
  if (thread == INTERLEAVE_NOBODY) return;
  if (interleave_hooks_releases(interleave_hooks_order(at, order)))
    interleave_memory_release(thread, interleave_memory_place(at, thread, true), true);
  interleave_wake();
}

#define CHANGE(bits, name, expression)                                                                \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile void *at, uint##bits##_t operand, int order); \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile void *at, uint##bits##_t operand, int order)  \
  {                                                                                                   \
    uint##bits##_t old = (uint##bits##_t)interleave_hooks_begin_change(at, bits / 8, order, HERE);     \
    interleave_hooks_end_change(at, bits / 8, (uint##bits##_t)(expression), order);                   \
    return old;                                                                                       \
  }

#define COMPARE(bits, name)                                                                                      \
  bool __tsan_atomic##bits##_##name(volatile void *at, void *expected, uint##bits##_t wanted, int order, int failed); \
  bool __tsan_atomic##bits##_##name(volatile void *at, void *expected, uint##bits##_t wanted, int order, int failed)  \
  {                                                                                                              \
    (void)failed;                                                                                                \
    uint##bits##_t old = (uint##bits##_t)interleave_hooks_begin_change(at, bits / 8, order, HERE);                \
    bool is_same = old == *(uint##bits##_t *)expected;                                                           \
    if (is_same) interleave_hooks_end_change(at, bits / 8, wanted, order);                                       \
    if (!is_same) *(uint##bits##_t *)expected = old;                                                             \
    return is_same;                                                                                              \
  }

#define ATOMICS(bits)                                                                            \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile void *at, int order);                 \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile void *at, int order)                  \
  {                                                                                              \
    return (uint##bits##_t)interleave_hooks_load(at, bits / 8, order, HERE);                     \
  }                                                                                              \
  void __tsan_atomic##bits##_store(volatile void *at, uint##bits##_t value, int order);          \
  void __tsan_atomic##bits##_store(volatile void *at, uint##bits##_t value, int order)           \
  {                                                                                              \
    interleave_hooks_store(at, bits / 8, value, order, HERE);                                    \
  }                                                                                              \
  CHANGE(bits, exchange, operand)                                                                \
  CHANGE(bits, fetch_add, old + operand)                                                         \
  CHANGE(bits, fetch_sub, old - operand)                                                         \
  CHANGE(bits, fetch_and, old &operand)                                                          \
  CHANGE(bits, fetch_or, old | operand)                                                          \
  CHANGE(bits, fetch_xor, old ^ operand)                                                         \
  COMPARE(bits, compare_exchange_strong)                                                         \
  COMPARE(bits, compare_exchange_weak)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
  int thread = interleave_running;
  if (thread != INTERLEAVE_NOBODY && order == memory_order_seq_cst) interleave_memory_flush(thread, SIZE_MAX);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
  (void)order;
}

/* ---- The asymmetric fence ---- */

void __wrap_asymmetric_fence_prepare(void);
void __wrap_asymmetric_fence_prepare(void)
{
  asymmetric_fence_is_light = true;
}

/* membarrier(2): a barrier on every processor. */
void __wrap_asymmetric_fence_heavy(void);
void __wrap_asymmetric_fence_heavy(void)
{
  if (interleave_running == INTERLEAVE_NOBODY || interleave_has_no_fences()) return;
  interleave_point();
  for (int i = 0; i < INTERLEAVE_THREADS; i++) interleave_memory_flush(i, SIZE_MAX);
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

static int interleave_hooks_lock(pthread_mutex_t *mutex, bool waits)
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
  return interleave_hooks_lock(mutex, true);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
  return interleave_hooks_lock(mutex, false);
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

static void interleave_hooks_destroy(void)
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
    interleave_alone(thread, interleave_hooks_destroy);
  else
    interleave_hooks_destroy();
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
    interleave_memory_access(interleave_running, block, bytes - HEAP_UNIT, INTERLEAVE_WRITE, HERE);
    interleave_memory_free(block, bytes - HEAP_UNIT);
  }
}
