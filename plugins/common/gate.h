/* SPDX-License-Identifier: MIT */
/* gate.h: an asymmetric gate, for data that one thread, the owner, uses all the time and other threads rarely. The owner
 * enters and leaves with plain loads and stores. Another thread shuts the gate and pays for both: after its asymmetric
 * fence (core/base/asymmetric_fence.h), either the owner sees the shut gate, or the other thread sees the owner inside.
 *
 * A lock of the caller's allows only one thread at a time to shut gates. */
#ifndef HIPMM_PLUGINS_COMMON_GATE_H
#define HIPMM_PLUGINS_COMMON_GATE_H

#include "../../core/base/asymmetric_fence.h"

#include <stdatomic.h>
#include <stdbool.h>

struct gate {
  atomic_bool inside; /* the owner is */
  atomic_bool shut;
};

/* For the owner, after asymmetric_fence_prepare(). False, and the owner is not inside, while the gate is shut. */
static inline bool gate_enter(struct gate *gate)
{
  if (__builtin_expect(atomic_load_explicit(&asymmetric_fence_is_light, memory_order_relaxed), 1)) {
    atomic_store_explicit(&gate->inside, true, memory_order_relaxed);
    asymmetric_fence_light();
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

/* For other threads: gate_shut() on each gate, asymmetric_fence_heavy() once, gate_await() on each gate. Then the data
 * behind the gates belongs to the caller until gate_open(). */
static inline void gate_shut(struct gate *gate)
{
  atomic_store(&gate->shut, true);
}

static inline bool gate_is_shut(const struct gate *gate)
{
  return atomic_load_explicit(&gate->shut, memory_order_relaxed);
}

static inline void gate_await(const struct gate *gate)
{
  for (unsigned turn = 0; atomic_load(&gate->inside); turn++) asymmetric_fence_pause(turn);
}

static inline void gate_open(struct gate *gate)
{
  atomic_store_explicit(&gate->shut, false, memory_order_release);
}

#endif
