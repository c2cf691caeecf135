/* SPDX-License-Identifier: MIT */
/* gate.h: a lock for what one thread, its owner, uses all the time, and other threads hardly ever. The owner passes
 * with plain loads and stores, where a lock would cost more than all that is done inside; others pay for both: they
 * have the system make every processor finish what it is about (membarrier), which takes microseconds.
 *
 * Whoever shuts gates is alone in that, by a lock of the caller's. */
#ifndef HIPMM_PLUGINS_COMMON_GATE_H
#define HIPMM_PLUGINS_COMMON_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

struct gate {
  atomic_bool inside; /* the owner is */
  atomic_bool shut;
};

/* To be called before any gate is used. */
void gates_prepare(void);

/* Whether the system can make processors agree; where it cannot, owners do it themselves. */
extern atomic_bool gates_are_light;

/* For the owner. False, and not passed, while the gate is shut. */
static inline bool gate_enter(struct gate *gate)
{
  if (__builtin_expect(atomic_load_explicit(&gates_are_light, memory_order_relaxed), 1)) {
    atomic_store_explicit(&gate->inside, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the store comes first: gates_fence() sees to the processor */
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

/* For others: gate_shut on each gate, gates_fence once, gate_await on each; then what is behind them is the caller's
 * until gate_open. */
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
