/* SPDX-License-Identifier: MIT */
/* interleave_access.c: what compilers call from code that is compiled with -fsanitize=thread. Outside of runs an access is done at
 * once, and noted by nobody. */
#include "interleave_memory.h"

#include <stdatomic.h>
#include <string.h>

#define HERE __builtin_return_address(0)

/* ---- Plain accesses ---- */

static void interleave_access_plain(const volatile void *at, size_t bytes, bool writes, const void *code)
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

#define PLAIN(name, bytes, writes)                                    \
  void __tsan_##name(void *at);                                       \
  void __tsan_##name(void *at)                                        \
  {                                                                   \
    if (__builtin_expect(interleave_running != INTERLEAVE_NOBODY, 0)) \
      interleave_access_plain(at, bytes, writes, HERE);               \
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

#define RANGE(name, writes)                                                                                \
  void __tsan_##name(void *at, long bytes);                                                                \
  void __tsan_##name(void *at, long bytes)                                                                 \
  {                                                                                                        \
    if (interleave_running != INTERLEAVE_NOBODY) interleave_access_plain(at, (size_t)bytes, writes, HERE); \
  }
RANGE(read_range, false)
RANGE(write_range, true)

/* clang's. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
  __tsan_read_range((void *)(uintptr_t)from, (long)bytes);
  __tsan_write_range(to, (long)bytes);
  return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
  __tsan_read_range((void *)(uintptr_t)from, (long)bytes);
  __tsan_write_range(to, (long)bytes);
  return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes)
{
  __tsan_write_range(to, (long)bytes);
  return memset(to, value, bytes);
}

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

static bool interleave_access_acquires(int order)
{
  return order == memory_order_acquire || order == memory_order_consume || order == memory_order_acq_rel ||
         order == memory_order_seq_cst;
}

static bool interleave_access_releases(int order)
{
  return order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static uint64_t interleave_access_get(const volatile void *at, size_t bytes)
{
  uint64_t value = 0;
  memcpy(&value, (const void *)(uintptr_t)at, bytes);
  return value;
}

static void interleave_access_put(volatile void *at, size_t bytes, uint64_t value)
{
  memcpy((void *)(uintptr_t)at, &value, bytes);
}

static bool is_weaker;

void interleave_weaken_processor(bool weakens)
{
  is_weaker = weakens;
}

/* The order that the operation has on this processor. */
static int interleave_access_strength(int order)
{
  order &= 7;
  return is_weaker && order == memory_order_seq_cst ? memory_order_acq_rel : order;
}

static int interleave_access_order(const volatile void *at, int order)
{
  return interleave_memory_is_weak(at) ? memory_order_relaxed : interleave_access_strength(order);
}

static uint64_t interleave_access_load(const volatile void *at, size_t bytes, int order, const void *code)
{
  int thread = interleave_running;
  uint64_t value;
  if (thread == INTERLEAVE_NOBODY) return interleave_access_get(at, bytes);
  const struct interleave_place *place = interleave_memory_place(at, thread, false);
  interleave_memory_access(thread, at, bytes, INTERLEAVE_ATOMIC_READ, code);
  if (interleave_memory_forwards(thread, at, bytes, &value)) return value;
  if (interleave_memory_is_step(place, thread, false)) interleave_point();
  value = interleave_access_get(at, bytes);
  if (interleave_access_acquires(interleave_access_order(at, order))) interleave_memory_acquire(thread, place);
  interleave_look(at, value);
  return value;
}

/* A store that waits is no step: the other thread can tell only when it reaches memory. What is released overtakes nothing that
 * waits, whether the other thread is known to look at it or not. */
static void interleave_access_store(volatile void *at, size_t bytes, uint64_t value, int order, const void *code)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) {
    interleave_access_put(at, bytes, value);
    return;
  }
  struct interleave_place *place = interleave_memory_place(at, thread, true);
  bool releases = interleave_access_releases(interleave_access_order(at, order));
  interleave_memory_access(thread, at, bytes, INTERLEAVE_ATOMIC_WRITE, code);
  bool waits = interleave_memory_is_step(place, thread, true) || (releases && interleave_memory_waiting(thread));
  if (interleave_access_strength(order) != memory_order_seq_cst && waits) {
    interleave_memory_delay(thread, at, bytes, value, releases);
    return;
  }
  if (interleave_memory_is_step(place, thread, true)) interleave_point();
  if (interleave_access_strength(order) == memory_order_seq_cst)
    interleave_memory_flush(thread, SIZE_MAX);
  else
    interleave_memory_flush_for(thread, at, bytes);
  interleave_memory_flush_changes(1 - thread, at);
  interleave_access_put(at, bytes, value);
  if (releases)
    interleave_memory_release(thread, place, false);
  else
    place->synced = (struct interleave_clock){{0}};
  interleave_wake();
}

/* Whether the store of a change waits, while later loads of the thread run. Of one thread's changes at a time: what waits in both
 * could depend on each other. */
static bool interleave_access_delays_change(int thread, const volatile void *at, int order)
{
  return is_weaker && interleave_access_strength(order) != memory_order_seq_cst &&
         interleave_memory_is_step(interleave_memory_place(at, thread, true), thread, true) &&
         !interleave_memory_has_changes(1 - thread);
}

/* Before a change, which is a full barrier unless its own store waits. Returns the value. */
static uint64_t interleave_access_begin_change(volatile void *at, size_t bytes, int order, const void *code)
{
  int thread = interleave_running;
  if (thread == INTERLEAVE_NOBODY) return interleave_access_get(at, bytes);
  struct interleave_place *place = interleave_memory_place(at, thread, true);
  interleave_memory_access(thread, at, bytes, INTERLEAVE_ATOMIC_WRITE, code);
  if (interleave_memory_is_step(place, thread, true)) interleave_point();
  interleave_memory_flush_changes(1 - thread, at);
  if (interleave_access_delays_change(thread, at, order))
    interleave_memory_flush_for(thread, at, bytes);
  else
    interleave_memory_flush(thread, SIZE_MAX);
  interleave_look(at, interleave_access_get(at, bytes)); /* a pause, if there is one, comes before the change */
  interleave_memory_flush_changes(1 - thread, at);
  if (interleave_access_acquires(interleave_access_order(at, order))) interleave_memory_acquire(thread, place);
  return interleave_access_get(at, bytes);
}

static void interleave_access_end_change(volatile void *at, size_t bytes, uint64_t value, int order)
{
  int thread = interleave_running;
  if (thread != INTERLEAVE_NOBODY && interleave_access_delays_change(thread, at, order)) {
    bool releases = interleave_access_releases(interleave_access_order(at, order));
    interleave_memory_delay_change(thread, at, bytes, value, releases);
    return;
  }
  if (thread != INTERLEAVE_NOBODY) interleave_memory_flush(thread, SIZE_MAX);
  interleave_access_put(at, bytes, value);
  if (thread == INTERLEAVE_NOBODY) return;
  if (interleave_access_releases(interleave_access_order(at, order)))
    interleave_memory_release(thread, interleave_memory_place(at, thread, true), true);
  interleave_wake();
}

#define CHANGE(bits, name, expression)                                                               \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile void *at, uint##bits##_t operand, int order); \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile void *at, uint##bits##_t operand, int order)  \
  {                                                                                                  \
    uint##bits##_t old = (uint##bits##_t)interleave_access_begin_change(at, bits / 8, order, HERE);  \
    interleave_access_end_change(at, bits / 8, (uint##bits##_t)(expression), order);                 \
    return old;                                                                                      \
  }

#define COMPARE(bits, name)                                                                                           \
  bool __tsan_atomic##bits##_##name(volatile void *at, void *expected, uint##bits##_t wanted, int order, int failed); \
  bool __tsan_atomic##bits##_##name(volatile void *at, void *expected, uint##bits##_t wanted, int order, int failed)  \
  {                                                                                                                   \
    (void)failed;                                                                                                     \
    uint##bits##_t old = (uint##bits##_t)interleave_access_begin_change(at, bits / 8, order, HERE);                   \
    bool is_same = old == *(uint##bits##_t *)expected;                                                                \
    if (is_same) interleave_access_end_change(at, bits / 8, wanted, order);                                           \
    if (!is_same) *(uint##bits##_t *)expected = old;                                                                  \
    return is_same;                                                                                                   \
  }

#define COMPARE_VALUE(bits)                                                                                \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile void *at, uint##bits##_t expected,    \
                                                            uint##bits##_t wanted, int order, int failed); \
  uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile void *at, uint##bits##_t expected,    \
                                                            uint##bits##_t wanted, int order, int failed)  \
  {                                                                                                        \
    __tsan_atomic##bits##_compare_exchange_strong(at, &expected, wanted, order, failed);                   \
    return expected;                                                                                       \
  }

#define ATOMICS(bits)                                                                   \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile void *at, int order);        \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile void *at, int order)         \
  {                                                                                     \
    return (uint##bits##_t)interleave_access_load(at, bits / 8, order, HERE);           \
  }                                                                                     \
  void __tsan_atomic##bits##_store(volatile void *at, uint##bits##_t value, int order); \
  void __tsan_atomic##bits##_store(volatile void *at, uint##bits##_t value, int order)  \
  {                                                                                     \
    interleave_access_store(at, bits / 8, value, order, HERE);                          \
  }                                                                                     \
  CHANGE(bits, exchange, operand)                                                       \
  CHANGE(bits, fetch_add, old + operand)                                                \
  CHANGE(bits, fetch_sub, old - operand)                                                \
  CHANGE(bits, fetch_and, old &operand)                                                 \
  CHANGE(bits, fetch_or, old | operand)                                                 \
  CHANGE(bits, fetch_xor, old ^ operand)                                                \
  COMPARE(bits, compare_exchange_strong)                                                \
  COMPARE(bits, compare_exchange_weak)                                                  \
  COMPARE_VALUE(bits)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
  int thread = interleave_running;
  bool flushes =
      order == memory_order_seq_cst || (is_weaker && interleave_access_releases(order)); /* plain stores do not wait */
  if (thread != INTERLEAVE_NOBODY && flushes) interleave_memory_flush(thread, SIZE_MAX);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
  if (interleave_running != INTERLEAVE_NOBODY && order == memory_order_seq_cst)
    interleave_memory_fence(interleave_running);
}
