/* SPDX-License-Identifier: MIT */
/* reclaim.c: asks the resources of a device for idle memory, and tries again. See reclaim.h. Called on the
 * path of allocations, after one has failed, and around the building of resources. */
#include "reclaim.h"
#include "../base/deadline.h"
#include "../base/error.h"
#include "../runtime/hip.h"
#include "../stack/stack.h"

#include <stdlib.h>

enum {
  MOST_ROUNDS = 64, /* while other threads take the memory that was given back */
  TURN_MS = 50,     /* the longest wait for another thread that asks */
};

/* ---- Asking ---- */

static int64_t reclaim_held_bytes(int device)
{
  int64_t bytes = 0;
  for (struct stack *stack = stack_next(NULL); stack; stack = stack_next(stack))
    if (stack->device == device) bytes += stack_held_bytes(stack);
  return bytes;
}

/* From the top down, as hipmm_device_trim() does. A resource that fails gives nothing. */
static void reclaim_from_stack(const struct stack *stack, const struct oom_source *oom_source, size_t keep_bytes)
{
  STACK_EACH(instance, stack)
    if (attempt_is_donor(instance, oom_source)) instance->resource.ops->trim(instance->resource.self, keep_bytes);
}

/* Asks the stacks of the device until they have given `bytes`. The last built stacks come first: they may depend on
 * earlier stacks, which get the memory back from them. */
static void reclaim_from_device(const struct oom_source *oom_source, uint64_t bytes)
{
  size_t n;
  struct stack **stacks = stack_collect(oom_source->device, &n);
  for (size_t i = n; i-- > 0; stack_unpin(stacks[i])) {
    if (!bytes) continue;
    int64_t held = stack_held_bytes(stacks[i]);
    reclaim_from_stack(stacks[i], oom_source, (uint64_t)held > bytes ? (size_t)((uint64_t)held - bytes) : 0);
    int64_t given = held - stack_held_bytes(stacks[i]);
    if (given > 0) bytes -= (uint64_t)given < bytes ? (uint64_t)given : bytes;
  }
  free(stacks);
}

/* ---- Trying again ---- */

/* What is tried: an allocation, or the building of resources. */
struct trial {
  const struct reclaim_call *call; /* NULL: building */
  size_t alignment;
  enum hipmm_status (*build)(void *closure);
  void *closure;
  size_t bytes;
  hipmm_stream_t stream;
};

static enum hipmm_status reclaim_make(void *trial_)
{
  const struct trial *trial = trial_;
  const struct reclaim_call *call = trial->call;
  return call ? call->resource->ops->allocate(call->resource->self, call->bytes, trial->alignment, call->stream,
                                              call->ptr_out)
              : trial->build(trial->closure);
}

static const struct instance *reclaim_top(const struct trial *trial)
{
  return trial->call ? instance_from(trial->call->resource) : NULL;
}

static enum hipmm_status reclaim_attempt(struct trial *trial, enum hipmm_reclaim_level reclaim_level)
{
  this_attempt.reclaim_level = reclaim_level;
  enum hipmm_status status = attempt_repeat_after(reclaim_make(trial), reclaim_top(trial), reclaim_make, trial);
  this_attempt.reclaim_level = (enum hipmm_reclaim_level)0;
  return status;
}

/* Asks first for the missing bytes and then for all idle memory, until the allocation succeeds, or until nothing was
 * given and nothing was taken meanwhile. Another thread may take what another resource gave, and may hold it idle when
 * this thread asks again. */
static enum hipmm_status reclaim_try(struct trial *trial, const struct oom_source *oom_source,
                                     enum hipmm_reclaim_level reclaim_level)
{
  enum hipmm_status status = HIPMM_E_OUT_OF_MEMORY;
  uint64_t bytes = trial->bytes;
  for (unsigned round = 0; round < MOST_ROUNDS; round++, bytes = UINT64_MAX) {
    int64_t held = reclaim_held_bytes(oom_source->device);
    this_attempt.reclaim_level = reclaim_level;
    reclaim_from_device(oom_source, bytes);
    status = reclaim_attempt(trial, reclaim_level);
    if (!attempt_is_out_of_memory(status)) return status;
    if (bytes == UINT64_MAX && reclaim_held_bytes(oom_source->device) == held) return status;
  }
  return status;
}

/* A request that no device could serve takes no idle memory from other resources. */
static bool reclaim_may_fit(const struct oom_source *oom_source, size_t bytes)
{
  size_t unused, total;
  int previous = hip_enter_device(oom_source->device);
  int code = hip_table()->MemGetInfo(&unused, &total);
  if (code) hip_table()->GetLastError();
  hip_leave_device(oom_source->device, previous);
  return code || bytes <= total || oom_source->source->flags & HIPMM_PLUGIN_HOST_MEMORY;
}

/* One thread asks at a time, so that two do not take from each other in turn. The wait for another thread is limited: a
 * resource that is asked may call a function of the program, which may wait for this thread. */
static bool reclaim_take_turn(pthread_mutex_t *turn)
{
  struct timespec until = deadline_in_ms(CLOCK_REALTIME, TURN_MS);
  return !pthread_mutex_timedlock(turn, &until);
}

/* A captured stream forbids waits for the device. */
static enum hipmm_status reclaim_try_in_turn(struct trial *trial, const struct oom_source *oom_source)
{
  static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  bool is_in_turn = reclaim_take_turn(&turn);
  enum hipmm_status status = reclaim_try(trial, oom_source, HIPMM_RECLAIM_IDLE);
  if (attempt_is_out_of_memory(status) && !hip_is_captured(oom_source->device, trial->stream))
    status = reclaim_try(trial, oom_source, HIPMM_RECLAIM_WAIT);
  if (is_in_turn) pthread_mutex_unlock(&turn);
  return status;
}

/* The first attempt has failed with `status`. */
static enum hipmm_status reclaim_try_again(struct trial *trial, enum hipmm_status status)
{
  bool is_promised =
      this_attempt.holds_back && status == HIPMM_E_OUT_OF_MEMORY; /* or an earlier op succeeded after all */
  this_attempt.holds_back = false;
  if (!is_promised && !attempt_is_out_of_memory(status)) return status;
  const struct oom_source oom_source = is_promised ? this_attempt.held_back_for : this_attempt.oom_source;
  if (is_promised || attempt_can_ask_others(trial->call ? instance_from(trial->call->resource) : NULL, &oom_source)) {
    if (reclaim_may_fit(&oom_source, trial->bytes)) status = reclaim_try_in_turn(trial, &oom_source);
    if (status) status = reclaim_attempt(trial, HIPMM_RECLAIM_ALL);
  }
  if (attempt_is_out_of_memory(status))
    memory_users_explain(&this_attempt.oom_source, trial->bytes, hip_is_captured(oom_source.device, trial->stream));
  return status;
}

enum hipmm_status reclaim_retry(const struct reclaim_call *call, size_t alignment, enum hipmm_status status)
{
  struct trial trial = {.call = call, .alignment = alignment, .bytes = call->bytes, .stream = call->stream};
  status = attempt_repeat_after(status, reclaim_top(&trial), reclaim_make, &trial);
  if (!this_attempt.n_inner && !this_attempt.reclaim_level)
    status = reclaim_try_again(&trial, status);
  else
    this_attempt.holds_back = false;
  return instance_finish_op(instance_from(call->resource), status, "allocate");
}

enum hipmm_status reclaim_build(enum hipmm_status (*build)(void *closure), void *closure)
{
  if (this_attempt.n_inner || this_attempt.reclaim_level || this_attempt.is_building) return build(closure);
  this_attempt.is_building = true;
  this_attempt.holds_back = false;
  this_attempt.most_bytes = 0;
  enum hipmm_status status = build(closure);
  struct trial trial = {.build = build, .closure = closure, .bytes = this_attempt.most_bytes};
  if (status) status = reclaim_try_again(&trial, status);
  this_attempt.is_building = false;
  return status;
}

enum hipmm_status reclaim_retry_and_count(const struct reclaim_call *call, size_t alignment, enum hipmm_status status)
{
  status = reclaim_retry(call, alignment, status);
  if (status) error_count_allocation();
  return status;
}
