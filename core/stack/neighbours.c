/* SPDX-License-Identifier: MIT */
/* neighbours.c: asks the resources of a device for idle memory, and tries again. See neighbours.h. Called on the
 * path of allocations, after one has failed, and around the building of resources. */
#include "neighbours.h"
#include "../base/deadline.h"
#include "../base/error.h"
#include "../runtime/hip.h"
#include "stack.h"

#include <stdlib.h>

enum {
  MOST_ROUNDS = 64, /* while other threads take the memory that was given back */
  TURN_MS = 50,     /* the longest wait for another thread that asks */
};

/* ---- Asking ---- */

static int64_t neighbours_held_bytes(int device)
{
  int64_t bytes = 0;
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (stack->device == device) bytes += stack_held_bytes(stack);
  return bytes;
}

/* From the top down, as hipmm_device_trim() does. A resource that fails gives nothing. */
static void neighbours_ask_stack(const struct stack *stack, const struct exhausted *exhausted, size_t keep_bytes)
{
  for (size_t i = stack->graph->n_nodes; i-- > 0;) {
    const struct hipmm_resource *resource = &stack->instances[i].resource;
    if (attempt_is_giver(&stack->instances[i], exhausted)) resource->ops->trim(resource->self, keep_bytes);
  }
}

/* Asks the stacks of the device until they have given `bytes`. The last built stacks come first: they may stand on
 * earlier stacks, which get the memory back from them. */
static void neighbours_ask(const struct exhausted *exhausted, uint64_t bytes)
{
  size_t n;
  struct stack **stacks = stack_collect(exhausted->device, &n);
  for (size_t i = n; i-- > 0; stack_unpin(stacks[i])) {
    if (!bytes) continue;
    int64_t held = stack_held_bytes(stacks[i]);
    neighbours_ask_stack(stacks[i], exhausted, (uint64_t)held > bytes ? (size_t)((uint64_t)held - bytes) : 0);
    int64_t given = held - stack_held_bytes(stacks[i]);
    if (given > 0) bytes -= (uint64_t)given < bytes ? (uint64_t)given : bytes;
  }
  free(stacks);
}

/* ---- Trying again ---- */

/* What is tried: an allocation, or the building of resources. */
struct trial {
  const struct neighbours_call *call; /* NULL: building */
  size_t alignment;
  enum hipmm_status (*build)(void *closure);
  void *closure;
  size_t bytes;
  hipmm_stream_t stream;
};

static enum hipmm_status neighbours_make(void *trial_)
{
  const struct trial *trial = trial_;
  const struct neighbours_call *call = trial->call;
  return call ? call->resource->ops->allocate(call->resource->self, call->bytes, trial->alignment, call->stream,
                                              call->ptr_out)
              : trial->build(trial->closure);
}

static const struct instance *neighbours_top(const struct trial *trial)
{
  return trial->call ? instance_from(trial->call->resource) : NULL;
}

static enum hipmm_status neighbours_attempt(struct trial *trial, enum hipmm_effort effort)
{
  this_attempt.effort = effort;
  enum hipmm_status status =
      attempt_repeat_after(neighbours_make(trial), neighbours_top(trial), neighbours_make, trial);
  this_attempt.effort = (enum hipmm_effort)0;
  return status;
}

/* Asks first for the missing bytes and then for all idle memory, until the allocation succeeds, or until nothing was
 * given and nothing was taken meanwhile. Another thread may take what a neighbour gave, and may hold it idle when
 * this thread asks again. */
static enum hipmm_status neighbours_try(struct trial *trial, const struct exhausted *exhausted,
                                        enum hipmm_effort effort)
{
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  uint64_t bytes = effort == HIPMM_EFFORT_IDLE ? trial->bytes : UINT64_MAX;
  for (unsigned round = 0; round < MOST_ROUNDS; round++, bytes = UINT64_MAX) {
    int64_t held = neighbours_held_bytes(exhausted->device);
    this_attempt.effort = effort;
    neighbours_ask(exhausted, bytes);
    status = neighbours_attempt(trial, effort);
    if (!attempt_is_exhausted(status)) return status;
    if (bytes == UINT64_MAX && neighbours_held_bytes(exhausted->device) == held) return status;
  }
  return status;
}

/* A request that no device could serve takes no idle memory from other resources. */
static bool neighbours_may_fit(const struct exhausted *exhausted, size_t bytes)
{
  size_t unused, total;
  int previous = hip_enter_device(exhausted->device);
  int code = hip_table()->MemGetInfo(&unused, &total);
  if (code) hip_table()->GetLastError();
  hip_leave_device(exhausted->device, previous);
  return code || bytes <= total || exhausted->source->flags & HIPMM_PLUGIN_HOST_MEMORY;
}

/* One thread asks at a time, so that two do not take from each other in turn. The wait for another thread is limited: a
 * resource that is asked may call a function of the program, which may wait for this thread. */
static bool neighbours_take_turn(pthread_mutex_t *turn)
{
  struct timespec until = deadline_in_ms(CLOCK_REALTIME, TURN_MS);
  return !pthread_mutex_timedlock(turn, &until);
}

/* A captured stream forbids waits for the device. */
static enum hipmm_status neighbours_try_in_turn(struct trial *trial, const struct exhausted *exhausted)
{
  static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  bool is_in_turn = neighbours_take_turn(&turn);
  enum hipmm_status status = neighbours_try(trial, exhausted, HIPMM_EFFORT_IDLE);
  if (attempt_is_exhausted(status) && !hip_is_captured(exhausted->device, trial->stream))
    status = neighbours_try(trial, exhausted, HIPMM_EFFORT_WAIT);
  if (is_in_turn) pthread_mutex_unlock(&turn);
  return status;
}

/* The first attempt has failed with `status`. */
static enum hipmm_status neighbours_try_again(struct trial *trial, enum hipmm_status status)
{
  bool is_promised =
      this_attempt.holds_back && status == HIPMM_E_OUT_OF_MEMORY; /* or an earlier op succeeded after all */
  this_attempt.holds_back = false;
  if (!is_promised && !attempt_is_exhausted(status)) return status;
  const struct exhausted exhausted = is_promised ? this_attempt.told : this_attempt.exhausted;
  if (is_promised || attempt_can_ask_others(trial->call ? instance_from(trial->call->resource) : NULL, &exhausted)) {
    if (neighbours_may_fit(&exhausted, trial->bytes)) status = neighbours_try_in_turn(trial, &exhausted);
    if (status) status = neighbours_attempt(trial, HIPMM_EFFORT_ALL);
  }
  if (attempt_is_exhausted(status)) holders_explain(&this_attempt.exhausted, trial->bytes);
  return status;
}

enum hipmm_status neighbours_allocate(const struct neighbours_call *call, size_t alignment, enum hipmm_status status)
{
  struct trial trial = {.call = call, .alignment = alignment, .bytes = call->bytes, .stream = call->stream};
  status = attempt_repeat_after(status, neighbours_top(&trial), neighbours_make, &trial);
  if (!this_attempt.n_inner && !this_attempt.effort)
    status = neighbours_try_again(&trial, status);
  else
    this_attempt.holds_back = false;
  return instance_finish_op(instance_from(call->resource), status, "allocate");
}

enum hipmm_status neighbours_build(enum hipmm_status (*build)(void *closure), void *closure)
{
  if (this_attempt.n_inner || this_attempt.effort || this_attempt.is_building) return build(closure);
  this_attempt.is_building = true;
  this_attempt.holds_back = false;
  this_attempt.most_bytes = 0;
  enum hipmm_status status = build(closure);
  struct trial trial = {.build = build, .closure = closure, .bytes = this_attempt.most_bytes};
  if (status) status = neighbours_try_again(&trial, status);
  this_attempt.is_building = false;
  return status;
}

enum hipmm_status neighbours_allocate_and_count(const struct neighbours_call *call, size_t alignment,
                                                enum hipmm_status status)
{
  status = neighbours_allocate(call, alignment, status);
  if (status) error_count_allocation();
  return status;
}
