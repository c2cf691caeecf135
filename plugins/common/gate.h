/* SPDX-License-Identifier: MIT */
/* gate.h: an asymmetric gate, for data that one thread, the owner, uses all the time and other threads rarely. The owner
 * enters and leaves with plain loads and stores. Another thread shuts the gate and pays for both: membarrier(2) makes the
 * kernel run a memory barrier on every processor that runs a thread of the process, which takes microseconds. After the
 * barrier either the owner sees the shut gate, or the other thread sees the owner inside. This is Dekker's algorithm with
 * an asymmetric fence: Dice, Huang and Yang, "Asymmetric Dekker Synchronization", Sun Microsystems, 2001.
 *
 * A lock of the caller's allows only one thread at a time to shut gates. */
#ifndef HIPMM_PLUGINS_COMMON_GATE_H
#define HIPMM_PLUGINS_COMMON_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

struct gate {
  atomic_bool inside; /* the owner is */
  atomic_bool shut;
};

/* Called before any gate is used. */
void gates_prepare(void);

/* Whether the system has membarrier(2). Otherwise each entry of an owner is a full barrier. */
extern atomic_bool gates_are_light;

/* For the owner. False, and the owner is not inside, while the gate is shut. */
static inline bool gate_enter(struct gate *gate)
{
  if (__builtin_expect(atomic_load_explicit(&gates_are_light, memory_order_relaxed), 1)) {
    atomic_store_explicit(&gate->inside, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* for the compiler; gates_fence() is for the processor */
  } else {
    atomic_exchange(&gate->inside, true);
  }
  if (__builtin_expect(!atomic_load(&gate->shut), 1)) return true;
  atomic_store_explicit(&gate->inside, false, memory_order_release);
  return false;
}

static inline void gate_leave(struct gate *gate)
{
  atomic_store_explicit(&gate->inside, false, memory_order_release);
}

/* For the owner: whether it is inside. */
static inline bool gate_is_passed(const struct gate *gate)
{
  return atomic_load_explicit(&gate->inside, memory_order_relaxed);
}

/* For other threads: gate_shut() on each gate, gates_fence() once, gate_await() on each gate. Then the data behind the gates
 * belongs to the caller until gate_open(). */
static inline void gate_shut(struct gate *gate)
{
  atomic_store(&gate->shut, true);
}

static inline bool gate_is_shut(const struct gate *gate)
{
  return atomic_load_explicit(&gate->shut, memory_order_relaxed);
}

void gates_fence(void);
void gate_await(const struct gate *gate);

static inline void gate_open(struct gate *gate)
{
  atomic_store_explicit(&gate->shut, false, memory_order_release);
}

#endif
